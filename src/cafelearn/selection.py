"""Compare clusterings of the same rows: likelihood score, agreement, and choice of the best.

All results are computed from a `Tally`, sums that are additive over disjoint sets of rows, so
the same code serves rows in memory and the blocks of a Dask collection. An atom of a feature is
an extreme value that many rows share; see `likelihood_score`.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import check_array, column_or_1d, gen_batches

from cafelearn._gaps import observed_extremes, observed_moments
from cafelearn._typing import MatrixLike, VectorLike
from cafelearn._validation import countable_weights, ordinary_units
from cafelearn._variables import (
    check_groups,
    codes_of,
    fitted_variables,
    largest_sums,
    several_columns,
)
from cafelearn.theory import normalized_objective

__all__ = ["likelihood_score"]

# Rows per batch.
ROWS = 65_536
# Scores with a relative difference of at most TIE are ties. TIE is also a tolerance for
# rounding errors.
TIE = 1e-9
# The smallest or largest value of a feature is an atom if at least this share of rows has it.
ATOM = 0.1
# The prior adds PRIOR rows to each cluster. In the probabilities of a feature, these rows are
# divided between atoms and other values in the same proportions as all rows. In the variance of
# the other values, PRIOR is added to their number and SCATTER to the sum of their squared
# deviations.
PRIOR, SCATTER = 4.0, 3.0


class Frame(NamedTuple):
    """Statistics of all rows, by which rows are standardised before they are summed."""

    mean: np.ndarray  # (m,) mean of the rows times `units`
    scale: np.ndarray  # (m,) their standard deviation; 1 for constant features
    low: np.ndarray  # (m,) smallest value of the rows themselves
    high: np.ndarray  # (m,) largest value
    atoms: np.ndarray  # (2, m) whether the smallest and the largest value count as atoms
    one_hot: np.ndarray | None = None  # (m,) index of each column's one-hot variable, or -1
    units: np.ndarray | None = None  # (m,) powers of two, see `ordinary_units`; None: all 1

    def standardise(self, X):
        """Standardise rows to mean 0 and standard deviation 1; missing values stay NaN."""
        return (_in_units(X.astype(np.float64), self.units) - self.mean) / self.scale


def _in_units(X, units):
    return X if units is None else X * units


def make_frame(mean, variance, low, high, shares, codes=None, sums=None, units=None):
    """Make the Frame of rows with these moments and extrema.

    The moments are those of the rows times `units`; the extrema are those of the rows.
    `shares`, of shape (2, m), are the shares of the rows at the smallest and at the largest
    value of each feature. `codes[v]` is the index of the variable of column v; `codes` is None
    without groups. `sums` are the `largest_sums` of the rows.
    """
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    scale = np.sqrt(np.where(low == high, 1.0, variance))
    only_two = shares.sum(axis=0) > 1 - TIE
    return Frame(
        np.asarray(mean, dtype=np.float64),
        np.where(scale > 0, scale, 1.0),
        low,
        high,
        ((shares >= ATOM) | only_two) & (low < high),
        _one_hot(codes, sums, only_two),
        units,
    )


def _one_hot(codes, sums, only_two):
    """Return the index of the one-hot variable of each column, or -1 for other columns.

    The columns of a one-hot variable have two values each, and in each row at most one column
    has its larger value. Return None if no variable is one-hot.
    """
    several = several_columns(codes)
    if not several.any():
        return None
    others = np.bincount(codes, weights=~only_two) > 0
    is_category = several & ~(others | (sums > 1 + TIE))[codes]
    return np.where(is_category, codes, -1) if is_category.any() else None


def frame_of(X, sample_weight=None, codes=None):
    """Make the Frame of rows in memory; `codes[v]` is the index of the variable of column v."""
    low, high = X.min(axis=0), X.max(axis=0)
    gaps = np.isnan(low)
    if gaps.any():
        low, high = observed_extremes(X)
    units = ordinary_units(low, high)
    scaled = _in_units(X, units)
    mean, variance = (f(scaled, axis=0, dtype=np.float64) for f in (np.mean, np.var))
    mass = np.full(len(X), 1 / len(X)) if sample_weight is None else sample_weight
    total = mass.sum()
    if gaps.any():
        # Use only the observed values of these columns; a column without any is constant.
        mean[gaps], variance[gaps] = observed_moments(scaled[:, gaps])
        total = np.where(gaps, np.maximum(mass @ ~np.isnan(X), TIE), total)
    shares = count_extremes(X, mass, low, high) / total
    sums = None if codes is None else largest_sums(X, low, high, codes)
    if sums is not None and gaps.any():
        sums[gaps_differ(X, codes)] = np.inf
    return make_frame(mean, variance, low, high, shares, codes, sums, units)


def gaps_differ(X, codes):
    """Return, for each variable, whether any row lacks some but not all of its columns."""
    missing = np.isnan(X)
    return np.array(
        [
            (missing[:, codes == g] != missing[:, codes == g][:, :1]).any()
            for g in range(codes.max() + 1)
        ]
    )


def count_extremes(X, mass, low, high):
    """Return the mass (sum of weights) of the rows at each feature's extremes; shape (2, m)."""
    return np.stack([mass @ (low == X), mass @ (high == X)])


class ClusterSums(NamedTuple):
    """Sums over the members of each cluster; missing values are left out."""

    mass: np.ndarray  # (k,) number of the members, or the sum of their weights
    first: np.ndarray  # (k, m) sum of the values t, standardised by a Frame
    second: np.ndarray  # (k, m) sum of t^2
    atoms: np.ndarray  # (2, k, m) mass at each extreme value; 0 if it is not an atom
    observed: np.ndarray  # (k, m) mass of the members whose value is observed


class Tally(NamedTuple):
    """Sums over some rows for several clusterings; additive over disjoint rows."""

    clusters: list  # one ClusterSums for each clustering
    tables: dict  # contingency table (k_i, k_j) of clusterings i and j, for (i, j) with j < i


def tally(X, labellings, sizes, frame, sample_weight=None):
    """Compute the Tally of rows; `sizes` has the number of clusters of each labelling."""
    m = X.shape[1]
    clusters = [
        ClusterSums(
            np.zeros(k),
            np.zeros((k, m)),
            np.zeros((k, m)),
            np.zeros((2, k, m)),
            np.zeros((k, m)),
        )
        for k in sizes
    ]
    mass = np.ones(len(X)) if sample_weight is None else sample_weight
    columns = [np.flatnonzero(used) for used in frame.atoms]
    for rows in gen_batches(len(X), ROWS) if len(X) else ():
        some, weight = X[rows], mass[rows]
        t = frame.standardise(some)
        gaps = np.isnan(t)
        observed = (~gaps).astype(np.float64) if gaps.any() else None
        if observed is not None:
            t[gaps] = 0.0
        squares = t * t
        at_atoms = [
            (some[:, used] == extreme[used]).astype(np.float64)
            for used, extreme in zip(columns, (frame.low, frame.high), strict=True)
        ]
        for labels, k, sums in zip(labellings, sizes, clusters, strict=True):
            count = len(t)
            members = csr_array((weight, labels[rows], np.arange(count + 1)), (count, k)).T
            sizes_here = members.sum(axis=1)
            sums.mass[:] += sizes_here
            sums.observed[:] += sizes_here[:, None] if observed is None else members @ observed
            sums.first[:] += members @ t
            sums.second[:] += members @ squares
            for side, used in enumerate(columns):
                sums.atoms[side][:, used] += members @ at_atoms[side]
    return Tally(clusters, contingency_tables(labellings, sizes))


def contingency_tables(labellings, sizes):
    """Return the contingency table of clusterings i and j, for each (i, j) with j < i."""
    return {
        (i, j): np.bincount(
            labellings[i].astype(np.int64) * sizes[j] + labellings[j],
            minlength=sizes[i] * sizes[j],
        ).reshape(sizes[i], sizes[j])
        for i in range(len(sizes))
        for j in range(i)
    }


def add_tallies(parts):
    """Add the Tallies of disjoint parts, in order."""
    return Tally(
        [
            ClusterSums(*(np.sum(field, axis=0) for field in zip(*sums, strict=True)))
            for sums in zip(*(part.clusters for part in parts), strict=True)
        ],
        {
            pair: np.sum([part.tables[pair] for part in parts], axis=0)
            for pair in parts[0].tables
        },
    )


def likelihood_scores(tally, frame):
    """Compute the score of each clustering of a Tally; see :func:`likelihood_score`."""
    return np.array([_score(sums, frame) for sums in tally.clusters])


def _score(sums, frame):
    varies = frame.low < frame.high
    if frame.one_hot is not None:
        varies &= frame.one_hot < 0  # one-hot columns are scored by variable
    found = sums.mass > 0
    mass, n, k = sums.mass[found][:, None], sums.mass.sum(), len(sums.mass)
    first, second = sums.first[found][:, varies], sums.second[found][:, varies]
    used, atoms = frame.atoms[:, varies], sums.atoms[:, found][:, :, varies]
    price = 0.5 * np.log(n)  # penalty of one parameter
    score = float((mass * np.log((mass + 1) / (n + k))).sum())
    # From here on, a row counts for a feature only if its value is observed.
    mass, n = _observed_mass(sums, varies)
    if frame.one_hot is not None:
        score += _category_score(sums, frame)
    # The discrete part: atoms, and the event that a value is between them.
    between = np.maximum(mass - atoms.sum(axis=0), 0.0)
    between[:, used.all(axis=0) & (between.sum(axis=0) <= TIE * n)] = 0.0
    for part in (*atoms, between):
        score += _share_score(part, mass, n)
    gaussian = between.sum(axis=0) > 0
    score -= price * k * float((used.sum(axis=0) + gaussian - 1).sum())
    # The Gaussian part: values between the atoms, in units of their standard deviation.
    between = between[:, gaussian]
    for side, extreme in enumerate((frame.low, frame.high)):
        t = frame.standardise(extreme)[varies]
        first, second = first - atoms[side] * t, second - atoms[side] * t * t
    first, second = first[:, gaussian], second[:, gaussian]
    means = np.divide(first, between, out=np.zeros_like(first), where=between > 0)
    scatter = np.maximum(second - first * means, 0.0)
    total = between.sum(axis=0)
    variance = np.maximum(second.sum(axis=0) / total - (first.sum(axis=0) / total) ** 2, TIE)
    scatter /= variance
    # For each feature, either one variance per cluster or one variance for all clusters.
    own = (scatter + SCATTER) / (between + PRIOR)
    shared = scatter.sum(axis=0) / total + TIE
    own_fit = -0.5 * (between * np.log(own) + scatter / own).sum(axis=0) - 2 * k * price
    shared_fit = -0.5 * total * (np.log(shared) + 1) - (k + 1) * price
    return score + float(np.maximum(own_fit, shared_fit).sum())


def _observed_mass(sums, columns):
    """Return the observed mass in these columns, by nonempty cluster and in total."""
    observed = sums.observed[sums.mass > 0][:, columns]
    complete = (observed == sums.mass[sums.mass > 0][:, None]).all(axis=0)
    return observed, np.where(complete, sums.mass.sum(), observed.sum(axis=0))


def _category_score(sums, frame):
    """Score each one-hot variable as one distribution over its categories."""
    found, k, price = sums.mass > 0, len(sums.mass), 0.5 * np.log(sums.mass.sum())
    score = 0.0
    for variable in np.unique(frame.one_hot[frame.one_hot >= 0]):
        columns = np.flatnonzero(frame.one_hot == variable)
        parts = sums.atoms[1][found][:, columns].T
        # A row that lacks one column of a one-hot variable lacks all of them.
        mass, n = (part[..., 0] for part in _observed_mass(sums, columns[:1]))
        rest = np.maximum(mass - parts.sum(axis=0), 0.0)
        if rest.sum() > TIE * n:  # rows in none of the encoded categories
            parts = np.vstack([parts, rest])
        score -= price * k * (len(parts) - 1)
        for part in parts:
            score += _share_score(part, mass, n)
    return score


def _share_score(part, mass, n):
    """Compute the log-likelihood of the rows in one category of a discrete distribution.

    `part` is the mass of these rows in each cluster, `mass` that of all rows in each cluster,
    and `n` the total mass.
    """
    share = (part + PRIOR * (part.sum(axis=0) / n)) / (mass + PRIOR)
    return float((part * np.log(np.where(part > 0, share, 1.0))).sum())


def likelihood_score(
    X: MatrixLike,
    labels: VectorLike,
    *,
    sample_weight: VectorLike | None = None,
    feature_groups: object = None,
) -> float:
    """Score a clustering by a penalised classification likelihood; higher is better.

    The score compares clusterings of the same rows, made by any method. The clustering with
    the higher score describes the rows better. The score does not depend on the units of the
    features. Only differences between scores are meaningful. The score is meant for
    clusterings with the same number of clusters; do not use it to choose that number.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The data: dense and numeric. Missing values (NaN) are ignored.
    labels : array-like of shape (n_samples,)
        The cluster of each row: integers, strings or anything else that can be sorted.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row; an integer weight is equivalent to repeating the row.
    feature_groups : array-like of shape (n_features,), default=None
        One label per feature; features of one variable have the same label. The columns of a
        one-hot encoded variable are scored as one distribution over its categories. With
        ``None``, they are scored as independent binary features.

    Returns
    -------
    score : float
        The logarithm of the likelihood, minus the penalty.

    Notes
    -----
    Let n be the number of rows, n_l the number of rows in cluster l, and k the number of
    clusters. The smallest value of a feature is an *atom* if at least a tenth of all rows have
    it; likewise the largest value. If a feature has only two values, both are atoms. The
    categories of a feature are its atoms and, if it has other values, "no atom". The score is
    the sum of four parts:

    - **Sizes:** the sum of ``n_l log((n_l + 1) / (n + k))`` over the clusters.
    - **Categories**, for each feature: let h_lc be the number of rows of cluster l in category
      c, and g_c the share of all rows that are in c. The term is the sum of
      ``h_lc log((h_lc + 4 g_c) / (n_l + 4))`` over l and c.
    - **Gaussians**, for each feature with values that are not atoms: the log-likelihood of
      these values under a Gaussian for each cluster. Let h_l be their number in cluster l, and
      S_l the sum of their squared deviations from their mean in the cluster, in units of the
      variance of all such values. The Gaussians have either a variance for each cluster,
      ``(S_l + 3) / (h_l + 4)``, or one variance for all clusters, whichever gives the feature
      the higher score.
    - **Penalty:** minus half of log n for each parameter. A feature has k parameters for each
      category but one. The Gaussians have 2 k parameters, or k + 1 with one variance.

    The categories of a one-hot variable of `feature_groups` are scored like those of one
    feature, where h_lc is the number of rows of cluster l with the value c. Other variables of
    several features are scored feature by feature.

    If values of a feature are missing, its terms count only the rows in which it is observed.
    The sizes and the penalty count all rows.

    Atoms are needed for features that are mostly 0. Without atoms, a cluster in which such a
    feature is always 0 would have a variance near 0, and the feature would dominate the score.

    See Also
    --------
    sklearn.metrics.silhouette_score : A score based on distances.

    Examples
    --------
    >>> import numpy as np
    >>> from cafelearn.selection import likelihood_score
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(0, 1, (50, 3)), rng.normal(4, 1, (50, 3))]
    >>> halves, alternating = np.arange(100) // 50, np.arange(100) % 2
    >>> likelihood_score(X, halves) > likelihood_score(X, alternating)
    True
    """
    with np.errstate(invalid="ignore"):  # from scikit-learn's check for NaN
        X = check_array(
            X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan", input_name="X"
        )
    labels = column_or_1d(labels)
    _check_one_each("label", labels, X)
    if sample_weight is not None:
        sample_weight = check_array(
            sample_weight,
            dtype=np.float64,
            ensure_2d=False,
            ensure_non_negative=True,
            input_name="sample_weight",
        )
        _check_one_each("sample weight", sample_weight, X)
        weighed = sample_weight > 0
        X, labels, sample_weight = X[weighed], labels[weighed], sample_weight[weighed]
        if len(X) == 0:
            raise ValueError("likelihood_score needs a row with a positive sample_weight.")
        sample_weight = countable_weights(sample_weight)
    names, codes = np.unique(labels, return_inverse=True)
    variables = None
    if feature_groups is not None:
        groups = check_groups(feature_groups, X.shape[1], "likelihood_score")
        variables = codes_of(groups)
    frame = frame_of(X, sample_weight, variables)
    found = tally(X, [codes], [len(names)], frame, sample_weight)
    return float(likelihood_scores(found, frame)[0])


def _check_one_each(what, values, X):
    """Raise unless the values are an array with one value for each row of X."""
    if values.shape != (len(X),):
        raise ValueError(
            f"likelihood_score needs one {what} for each of {len(X):,} rows, got an array of "
            f"shape {values.shape}."
        )


def adjusted_rand_index(table):
    """Compute the adjusted Rand index of two clusterings from their contingency table."""
    # Use Python's integers, because products of numbers of rows may exceed 64 bits.
    table = table.astype(object)
    n_rows, squares = int(table.sum()), int((table * table).sum())
    rows, columns = int((table.sum(axis=1) ** 2).sum()), int((table.sum(axis=0) ** 2).sum())
    together, only_first, only_second = squares - n_rows, rows - squares, columns - squares
    apart = n_rows**2 - only_first - only_second - squares
    if only_first == 0 and only_second == 0:
        return 1.0
    return (
        2.0
        * (together * apart - only_first * only_second)
        / (
            (together + only_first) * (only_first + apart)
            + (together + only_second) * (only_second + apart)
        )
    )


def agreement_matrix(tables, n_clusterings):
    """Compute the adjusted Rand indices between clusterings from `contingency_tables`."""
    matrix = np.eye(n_clusterings)
    for (i, j), table in tables.items():
        matrix[i, j] = matrix[j, i] = adjusted_rand_index(table)
    return matrix


def by_likelihood(models, scores, agreement):
    """Return the index of the clustering with the highest score; of ties, the first."""
    return highest(scores)


def highest(scores):
    """Return the index of the highest score; of ties, the first."""
    best = scores.max()
    return int(np.argmax(scores >= best - TIE * abs(best)))


def by_agreement(models, scores, agreement):
    """Return the index of the clustering that agrees most with the others (Algorithm 2).

    Ties go to the model whose objective is lower relative to its bounds (Theorem 2), then to
    the smaller exponent, then to the first. With two candidates there is always a tie.
    """
    total = agreement.sum(axis=1) - 1

    def rank(i):
        # Round, so that the choice does not depend on the order of summation.
        _, dispersions = fitted_variables(models[i])
        position = normalized_objective(dispersions, models[i].p)
        return -round(total[i], 12), round(position, 12), models[i].p, i

    return min(range(len(models)), key=rank)
