"""Cluster profiles: the size of each cluster, and the centre and spread of each variable.

All statistics are computed from `ProfileSums`. The sums of disjoint rows can be merged, so the
same code serves rows in memory, the blocks of a Dask collection and the parts of a large file.
"""

from functools import reduce
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from cafelearn.data.gaps import observed_extremes
from cafelearn.data.validation import check_data, check_weights, is_dask
from cafelearn.data.variables import of_variables, variable_codes

# Rows per batch.
ROWS = 65_536
# Smaller differences, in units of the overall spread, are not reported.
NOTABLE = 0.2
# Smallest divisor, so that the mean of no values is 0 instead of NaN.
TINY = np.finfo(np.float64).tiny
# Sums of weights above LARGEST could overflow when they are merged. Sizes of COUNTS or more are
# not shown as integers, because floats do not represent all integers of this size.
LARGEST, COUNTS = 1e300, 2.0**53
# Feature weights within this factor of each other count as equal.
ALIKE = 1.01


class ProfileSums(NamedTuple):
    """Moments and extrema of each column in each cluster; mergeable over disjoint rows.

    All fields except `mass` have the shape (n_clusters, n_columns) and leave out missing
    values.
    """

    mass: np.ndarray  # (n_clusters,) number of the members, or the sum of their weights
    observed: np.ndarray  # mass of the members whose value is observed
    mean: np.ndarray
    squares: np.ndarray  # sums of squared deviations from the mean
    low: np.ndarray
    high: np.ndarray


class ProfileMixin:
    """Add `profile_frame` and `weights_frame` to an estimator."""

    def profile_frame(self, X, sample_weight=None):
        """Describe each cluster and its differences from all other rows.

        Parameters
        ----------
        X : array-like, DataFrame or Dask collection of shape (n_samples, n_features)
            The rows to describe, in the format of :meth:`predict`; usually those of the fit.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row in sizes, centres and spreads; None counts each row once.

        Returns
        -------
        profile : DataFrame
            One row per cluster and variable; for categorical variables of a table, one row per
            cluster and category. Within a cluster, the largest differences (in absolute value)
            come first. Centres and spreads are in the units of the data, and ignore missing
            values.

            - ``cluster``, ``size``, ``share`` : the cluster, the number (or total weight) of
              its rows, and their share of all rows;
            - ``variable``, ``category`` : the variable and, if it is categorical, the category,
              else None;
            - ``center``, ``spread`` : mean and standard deviation over the members. For a
              category, the centre is its share among the members, and the spread is missing;
            - ``overall``, ``overall_spread`` : centre and spread of all rows;
            - ``difference`` : centre of the members minus centre of all other rows, divided by
              the standard deviation of all rows; missing if there are no other rows;
            - ``weight`` : weight of the variable in the cluster. It is high if the cluster is
              compact on the variable, even if the difference is 0;
            - ``description`` : the row in words, such as "alcohol 13.7 (overall 13.0)" or
              "plan: free 93% (overall 41%)".

        Examples
        --------
        >>> from cafelearn import MinkowskiWeightedKMeans
        >>> from cafelearn.datasets import load
        >>> X = load("iris").frame.drop(columns="target")
        >>> model = MinkowskiWeightedKMeans(3, n_init=5, random_state=0).fit(X)
        >>> profile = model.profile_frame(X)
        >>> for line in profile.groupby("cluster").head(1)["description"]:
        ...     print(line)
        petal_width 2.0 (overall 1.2)
        petal_length 1.5 (overall 3.8)
        sepal_width 2.7 (overall 3.1)
        """
        check_is_fitted(self)
        model = self
        if hasattr(self, "encode"):
            model, X = self.cafe_, self.encode(X)
        if is_dask(X):
            from cafelearn.distributed import reduce_new_rows

            sums = reduce_new_rows(model, X, sample_weight, profile_part, merge_sums)
        else:
            # Both check the column names, so both get `X` as it was given.
            labels, values = model.predict(X), check_data(model, X, reset=False, gaps=True)
            if sample_weight is not None:
                sample_weight = check_weights(sample_weight, values, model)
            sums = profile_sums(values, labels, len(model.feature_weights_), sample_weight)
        columns, units = self._profile_columns(), self._profile_units()
        return make_profile(sums, model.feature_weights_, columns, units)

    def weights_frame(self):
        """Return the feature weights as a labelled table, clusters by features.

        With `feature_groups`, there is one column per variable.
        """
        check_is_fitted(self)
        weights = variable_weights(self)
        index = [f"cluster {l}" for l in range(len(weights))]
        return pd.DataFrame(weights, index=index, columns=variable_names(self))

    def _profile_columns(self):
        """Return variable and category of each feature."""
        return [(name, None) for name in feature_names(self)]

    def _profile_units(self):
        """Return a dict from names of date and duration variables to "date" or "duration"."""
        return {}


def profile_part(part, model):
    """Compute the profile sums of a part of the rows, which may have none."""
    labels = model.predict(part.X) if len(part.X) else np.empty(0, dtype=np.int32)
    return profile_sums(part.X, labels, len(model.feature_weights_), part.sample_weight)


def feature_names(estimator):
    """Return the feature names of an estimator, or x0, x1, ..."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return [f"x{v}" for v in range(estimator.n_features_in_)]
    return list(names)


def variable_names(estimator):
    """Return the names of the variables of an estimator; without groups, of the features."""
    labels = getattr(estimator, "feature_groups_", None)
    return feature_names(estimator) if labels is None else list(dict.fromkeys(labels.tolist()))


def variable_weights(estimator):
    """Return the weight of each variable in each cluster."""
    return of_variables(estimator.feature_weights_, variable_codes(estimator))


def profile_sums(X, labels, n_clusters, sample_weight=None) -> ProfileSums:
    """Compute the ProfileSums of rows; rows of weight 0 are left out."""
    parts = [_empty_sums(n_clusters, X.shape[1])]
    for rows in gen_batches(len(X), ROWS):
        weight = None if sample_weight is None else sample_weight[rows]
        parts.append(_batch_sums(X[rows], labels[rows], n_clusters, weight))
    return merge_sums(parts)


def merge_sums(parts) -> ProfileSums:
    """Merge the sums of disjoint parts, in order."""
    return reduce(_merge_two, parts)


def _empty_sums(n_clusters, n_columns):
    zeros, far = np.zeros((n_clusters, n_columns)), np.full((n_clusters, n_columns), np.inf)
    return ProfileSums(np.zeros(n_clusters), *(zeros.copy() for _ in range(3)), far, -far)


def _total(weights):
    """Return the sum of weights; raise if it is too large."""
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if total > LARGEST:
        raise ValueError(
            f"profile_frame needs sample weights that sum to at most {LARGEST:.0e}; the "
            f"largest is {weights.max():.3g}. Divide them by a constant."
        )
    return total


def _batch_sums(X, labels, n_clusters, sample_weight):
    sums = _empty_sums(n_clusters, X.shape[1])
    for l in range(n_clusters):
        chosen = labels == l
        if sample_weight is not None:
            chosen &= sample_weight > 0
        if not chosen.any():
            continue
        members = np.asarray(X[chosen], dtype=np.float64)
        weight = np.ones(len(members)) if sample_weight is None else sample_weight[chosen]
        sums.mass[l] = sums.observed[l] = _total(weight)
        low, high = members.min(axis=0), members.max(axis=0)
        gaps = np.isnan(members) if np.isnan(low).any() else None
        if gaps is not None:
            sums.observed[l] = weight @ ~gaps
            low, high = observed_extremes(members)
            members[gaps] = 0.0
        mass = sums.mass[l] if gaps is None else np.maximum(sums.observed[l], TINY)
        # Squares that overflow give an infinite spread.
        with np.errstate(over="ignore"):
            sums.mean[l] = weight @ members / mass
            away = np.square(members - sums.mean[l])
            sums.squares[l] = weight @ (away if gaps is None else np.where(gaps, 0.0, away))
        there = sums.observed[l] > 0
        sums.low[l, there], sums.high[l, there] = low[there], high[there]
    return sums


def _merge_two(a, b):
    """Merge two ProfileSums by Chan, Golub and LeVeque's update, which avoids cancellation."""
    observed = a.observed + b.observed
    share = b.observed / np.where(observed > 0, observed, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        step = b.mean - a.mean
        between = np.square(step) * share * a.observed
    return ProfileSums(
        a.mass + b.mass,
        observed,
        a.mean + step * share,
        a.squares + b.squares + np.where(share > 0, between, 0),
        np.minimum(a.low, b.low),
        np.maximum(a.high, b.high),
    )


def _overall(sums):
    """Merge the sums of all clusters."""
    whole = merge_sums(
        [ProfileSums(*(part[l : l + 1] for part in sums)) for l in range(len(sums.mass))]
    )
    # The mean is computed again, because merging the clusters one by one adds rounding errors
    # to the shares of categories.
    if (sums.observed == sums.mass[:, None]).all():
        return whole._replace(mean=(sums.mass @ sums.mean / whole.mass)[None])
    total = np.where(whole.observed > 0, whole.observed, 1)
    return whole._replace(mean=(sums.observed * sums.mean).sum(axis=0)[None] / total)


def _center(sums):
    """Return the mean, exact if all values are equal."""
    return np.where(sums.low == sums.high, sums.low, sums.mean)


def _spread(sums):
    """Return the standard deviation, exactly 0 if all values are equal."""
    mass = np.where(sums.observed > 0, sums.observed, np.nan)
    return np.where(sums.low == sums.high, 0.0, np.sqrt(sums.squares / mass))


def make_profile(sums, weights, columns, units=MappingProxyType({})) -> pd.DataFrame:
    """Make the table of :meth:`ProfileMixin.profile_frame` from sums over all rows.

    `weights` are of shape (n_clusters, n_columns), `columns` has a pair (variable, category)
    for each column, and `units` maps names of variables to "date" or "duration". The category
    is None for numbers; otherwise the column is 1 for rows of this category and else 0.
    """
    k, m = weights.shape
    whole = _overall(sums)
    total = float(whole.mass[0])
    share = sums.mass / total
    there = np.where(sums.observed > 0, 1.0, np.nan)
    observed_share = sums.observed / whole.observed
    center, overall = _center(sums) * there, _center(whole)[0]
    overall_spread = _spread(whole)[0]
    is_category = np.array([category is not None for _, category in columns])
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        # The centre of the other rows is (overall - share * center) / (1 - share).
        from_rest = (center - overall) / (1 - observed_share)
        difference = np.where(overall_spread > 0, from_rest / overall_spread, 0.0 * from_rest)
    order = _order(difference)
    flat = (np.arange(k)[:, None] * m + order).ravel()
    column = order.ravel()

    def cells(values):
        return np.broadcast_to(values, (k, m)).ravel()[flat]

    counts = sums.mass.max() < COUNTS and not (sums.mass % 1).any()
    sizes = sums.mass.astype(np.int64) if counts else sums.mass
    frame = pd.DataFrame(
        {
            "cluster": np.repeat(np.arange(k), m),
            "size": np.repeat(sizes, m),
            "share": np.repeat(share, m),
            "variable": [columns[v][0] for v in column],
            "category": pd.Series([columns[v][1] for v in column], dtype=object),
            "center": cells(center),
            "spread": cells(np.where(is_category, np.nan, _spread(sums) * there)),
            "overall": cells(overall),
            "overall_spread": cells(np.where(is_category, np.nan, overall_spread)),
            "difference": cells(difference),
            "weight": cells(weights),
        }
    )
    decimals = [decimals_for(spread) for spread in overall_spread]
    names = ("variable", "category", "center", "overall")
    described = zip(column, *(frame[name] for name in names), strict=True)
    frame["description"] = [
        _description(variable, category, center, overall, decimals[v], units.get(variable))
        for v, variable, category, center, overall in described
    ]
    return frame


def _order(difference):
    """Return the order of the columns of each cluster by decreasing absolute difference.

    Of equal rounded ones, as of the categories of a binary variable, positive ones come first.
    """
    size = np.round(np.nan_to_num(np.abs(difference), nan=-1.0, posinf=np.inf), 9)
    return np.lexsort((-np.nan_to_num(difference), -size), axis=1)


def decimals_for(spread) -> int | None:
    """Return the decimals that show a quarter of a positive, finite spread; else None."""
    if not 0 < spread < np.inf:
        return None
    return max(0, int(np.ceil(-np.log10(spread / 4))))


def amount(value, decimals=None) -> str:
    """Format a number in the units of the data."""
    if not np.isfinite(value):
        return "unknown"
    size = abs(value)
    if decimals is None or size >= 1e9 or decimals > 6:
        return f"{value:.4g}"
    # Round to 12 digits first, or rounding errors decide ties. Adding 0.0 removes -0.0.
    return f"{round(float(f'{value:.12g}'), decimals) + 0.0:,.{decimals}f}"


def percent(share) -> str:
    """Format a share in percent; only shares of exactly 0 and 1 become 0% and 100%."""
    if 0 < share <= 0.005:
        return "<1%"
    if 0.995 <= share < 1:
        return ">99%"
    return f"{share:.0%}"


def date_text(days, decimals=None) -> str:
    """Format days since 1970-01-01 as a date, with the time of day if `decimals` is above 0."""
    if decimals:
        moment = np.datetime64(0, "m") + np.timedelta64(round(days * 1440), "m")
        return str(moment).replace("T", " ")
    return str(np.datetime64(0, "D") + np.timedelta64(round(days), "D"))


def amount_in(unit, value, decimals=None) -> str:
    """Format a number (`unit` None), a date ("date") or a duration ("duration")."""
    if unit is None or not np.isfinite(value):
        return amount(value, decimals)
    if unit == "date":
        return date_text(value, decimals)
    return f"{amount(value, decimals)} days"


def _description(variable, category, center, overall, decimals, unit):
    if np.isnan(center):
        return ""
    if category is None:
        there, all_rows = (amount_in(unit, x, decimals) for x in (center, overall))
        return f"{variable} {there} (overall {all_rows})"
    return f"{variable}: {category} {percent(center)} (overall {percent(overall)})"


class Portrait(NamedTuple):
    """Summary of one cluster."""

    cluster: int
    share: float
    different: pd.DataFrame  # rows with the largest differences, at most one per variable
    compact: pd.DataFrame  # rows with the highest weights, at most one per variable


def portraits(frame, most=3) -> list[Portrait]:
    """Select the most informative rows of a profile for each cluster.

    `different` has up to `most` notable differences. `compact` has up to `most` weights above
    the mean; it is empty if all weights are about equal.
    """
    found = []
    for cluster, rows in frame.groupby("cluster", sort=True):
        notable = rows[rows["difference"].abs() >= NOTABLE].drop_duplicates("variable")
        weighed = rows
        if (rows.groupby("variable")["weight"].nunique() == 1).all():
            # The categories of a variable share its weight, so one row per variable suffices.
            weighed = rows.drop_duplicates("variable").assign(category=None)
        weights = weighed["weight"]
        heavy = weighed[(weights > weights.mean()) & (weights.max() > ALIKE * weights.min())]
        heavy = heavy.sort_values("weight", ascending=False, kind="stable")
        share, compact = float(rows["share"].iloc[0]), heavy.drop_duplicates("variable")
        found.append(Portrait(int(cluster), share, notable.head(most), compact.head(most)))
    return found
