"""Contribution of each feature to the assignment of a row.

For a mixture, it is the change of log p(first) - log p(second) if the feature were unknown; for
distances to centres, the term of the feature in the difference of the distances.
"""

from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from cafelearn.base.typing import Estimator, MatrixLike
from cafelearn.data.validation import check_data
from cafelearn.data.variables import variable_codes
from cafelearn.interpret.labels import is_mixture
from cafelearn.interpret.profiles import (
    ProfileMixin,
    amount_in,
    feature_names,
    percent,
    variable_names,
)
from cafelearn.mixture.columns import read_rows
from cafelearn.mixture.em import log_joint

__all__ = ["explain"]

# Columns that are shown in the units of the data.
SHOWN = ("value", "first_center", "second_center")
# Dates closer together than this are shown with the time of day.
FEW_DAYS = 3
# Columns in the units of the p-th power of the distance.
TERMS = ["first_term", "second_term", "contribution"]
# Powers of two with exponents up to this size can be added without overflow or underflow.
ORDINARY = 800


def explain(estimator: Estimator, X: MatrixLike, row: int) -> pd.DataFrame:
    """Compute the contribution of each feature to the assignment of a row.

    For a CAFE with ``selection="mixture"``, the contribution of a feature is the difference
    between ``log(p_first / p_second)`` and the same if the value of the feature were missing.
    Here p_first and p_second are the probabilities of the most likely and the second most
    likely cluster. If the features are independent within clusters and have no heavy tails,
    the contributions and the attribute ``prior`` sum to the log ratio. Correlated features
    share what they know, so their contributions need not sum to it.

    For other estimators, let d_first be the distance of the row to the nearest centre, and
    d_second its distance to the second nearest. The p-th power of a distance is a sum over
    features, and so is ``d_second**p - d_first**p``. The contribution of a feature is its term
    in this difference.

    Features with a positive contribution favour the cluster of the row; features with a
    negative contribution favour the other cluster.

    Parameters
    ----------
    estimator : CAFE, TabularCAFE or MinkowskiWeightedKMeans
        A fitted model of at least two clusters.
    X : array-like or DataFrame of shape (n_samples, n_features)
        Rows, in the format of ``predict``.
    row : int
        Position of the row in `X`, from 0; negative positions count from the end.

    Returns
    -------
    contributions : DataFrame
        One row per feature, largest contribution (in absolute value) first:

        - ``value`` : the value of the feature in this row, in the units of `X`;
        - ``first_center``, ``second_center`` : the two centres, in the units of `X`;
        - ``first_weight``, ``second_weight`` : weights of the feature in the two clusters;
        - ``first_term``, ``second_term`` : for a mixture, the log densities of the value in the
          two clusters, given the other values of the row and relative to all rows; else the
          terms of the feature in ``d_first**p`` and ``d_second**p``; for a missing value, the
          mean term of the members of the cluster;
        - ``contribution`` : ``first_term - second_term`` for a mixture, else
          ``second_term - first_term``;
        - ``share`` : ``contribution / sum(abs(contribution))``; correct even if terms
          overflow to infinity.

        With `feature_groups`, as in a TabularCAFE, there is one row per variable, and its terms
        are sums over its features. An additional column ``category`` contains the category of
        the explained row; it is None for variables of one feature and for missing values. The
        value and the centres are those of the encoded column of this category.

        The ``attrs`` of the frame are ``first`` and ``second`` (the two clusters), ``margin``
        and ``units``; for a mixture also ``first_probability``, ``second_probability``,
        ``log_ratio`` (of the two) and ``prior`` (the log ratio of the sizes of the two
        clusters); else ``first_distance``, ``second_distance`` and ``p``. ``units`` is a dict
        that maps variables of a TabularCAFE to "date" (values are days since 1970-01-01) or
        "duration" (values are numbers of days).

    See Also
    --------
    CAFE.assignment_margin : Margin between the first and the second cluster.

    Examples
    --------
    >>> from cafelearn import CAFE
    >>> from cafelearn.datasets import load
    >>> from cafelearn.explanation import explain
    >>> X = load("iris").frame.drop(columns="target")
    >>> cafe = CAFE(3, random_state=0).fit(X)
    >>> found = explain(cafe, X, 70)
    >>> found["share"].round(2)
    petal_width     0.73
    sepal_width     0.10
    petal_length    0.10
    sepal_length    0.07
    Name: share, dtype: float64
    """
    if not isinstance(estimator, ProfileMixin):
        raise TypeError(
            "explain needs a CAFE, a TabularCAFE or a MinkowskiWeightedKMeans, got "
            f"{type(estimator).__name__}."
        )
    check_is_fitted(estimator)
    one = _one_row(X, row)
    inner: Any = estimator
    if hasattr(inner, "cafe_"):
        one, inner = inner.encode(one), inner.cafe_
    if len(inner.feature_weights_) < 2:
        raise ValueError(
            f"explain needs a {type(estimator).__name__} of at least two clusters, got one."
        )
    explained = _of_mixture if is_mixture(inner) else _of_distances
    terms, centers, facts, divided = explained(inner, one)
    found = _table(inner, np.asarray(one, dtype=np.float64)[0], terms, centers, facts)
    if divided is not None:
        found = found.assign(**{name: divided(found[name]) for name in TERMS})
    found.attrs = facts | {"units": estimator._profile_units()}
    return found


def _table(model, values, terms, centers, facts):
    """Tabulate the terms of two clusters, largest contribution first."""
    weights = model.feature_weights_[[facts["first"], facts["second"]]]
    contribution = terms[0] - terms[1] if is_mixture(model) else terms[1] - terms[0]
    found = pd.DataFrame(
        {
            "value": values,
            "first_center": centers[0],
            "second_center": centers[1],
            "first_weight": weights[0],
            "second_weight": weights[1],
            "first_term": terms[0],
            "second_term": terms[1],
            "contribution": contribution,
        },
        index=feature_names(model),
    )
    codes = variable_codes(model)
    if codes is not None:
        found = _by_variable(found, codes, variable_names(model))
    total = found["contribution"].abs().sum()
    found["share"] = found["contribution"] / total if total > 0 else 0.0
    return found.iloc[np.argsort(-found["contribution"].abs().to_numpy(), kind="stable")]


def _of_distances(model, row):
    """Return terms, centres and attributes of the two nearest centres.

    The last result converts terms to the units of the data; it is None if they have them.
    """
    scaler, scaled = getattr(model, "scaler_", None), row
    if hasattr(model, "model_"):
        model, scaled = model.model_, model._checked(row)
    distances, first = model.transform(scaled)[0], int(model.predict(scaled)[0])
    second = int(np.argmin(np.where(np.arange(len(distances)) == first, np.inf, distances)))
    pair = [first, second]
    centers, weights = model.cluster_centers_[pair], model.feature_weights_[pair]
    # Convert `scaled` only now: `transform` and `predict` check the column names of a frame.
    x = np.asarray(scaled, dtype=np.float64)[0]
    gaps = model._gap_distances()[pair] if np.isnan(x).any() else None
    terms, unit = _terms(x, centers, weights, model.p, gaps)
    one, two = float(distances[first]), float(distances[second])
    facts = {
        "first": first,
        "second": second,
        "first_distance": one,
        "second_distance": two,
        "margin": 1 - one / two if two > 0 else 0.0,
        "p": float(model.p),
    }
    divided = None if unit == 1 else partial(_divided, unit=unit, p=model.p)
    return terms, centers if scaler is None else _in_units(scaler, centers), facts, divided


def _of_mixture(cafe, row):
    """Return terms, centres and attributes of the two most likely clusters, and None."""
    X = check_data(cafe, row, reset=False, gaps=True)
    mixture, codes = cafe.mixture_, variable_codes(cafe)
    joint = log_joint_without(mixture, X)
    # The first of equally likely clusters is the one that `predict` returns.
    first, second = np.argsort(-joint, kind="stable")[:2].tolist()
    groups = np.arange(X.shape[1]) if codes is None else codes
    # With groups, the terms of a variable are at its first column, to be summed later.
    terms = np.zeros((2, X.shape[1]))
    for g in range(groups.max() + 1):
        columns = np.flatnonzero(groups == g)
        terms[:, columns[0]] = (joint - log_joint_without(mixture, X, columns))[[first, second]]
    share = np.exp(joint - joint[first])
    log_weight = mixture._fitted.parameters.log_weight
    facts = {
        "first": first,
        "second": second,
        "first_probability": float(1 / share.sum()),
        "second_probability": float(share[second] / share.sum()),
        "margin": float(1 - share[second]),
        "log_ratio": float(joint[first] - joint[second]),
        "prior": float(log_weight[first] - log_weight[second]),
    }
    return terms, cafe.cluster_centers_[[first, second]], facts, None


def log_joint_without(mixture, X, columns=()):
    """Return log(weight x density) of one row in each cluster, as if columns were missing.

    Columns that are independent of the others are missing values. The columns of the block,
    which depend on each other, are left out of the covariance matrices, too.
    """
    layout, parameters, family = mixture._fitted
    block, columns = parameters.block, np.asarray(columns, dtype=np.int64)
    kept = ~np.isin(layout.place[block], columns)
    if not kept.all():
        parameters = parameters._replace(
            block=block[kept],
            block_mean=parameters.block_mean[:, kept],
            covariance=parameters.covariance[:, kept][:, :, kept],
        )
    X = np.array(X, dtype=np.float64)
    X[:, columns] = np.nan
    joint, *_ = log_joint(read_rows(X, layout), parameters, layout, family)
    return joint[0, : len(parameters.mean)]


def values_shown(found: pd.DataFrame) -> pd.DataFrame:
    """Return the values and centres of a result of :func:`explain` as text."""
    units = found.attrs.get("units", {})
    rows = []
    for name, row in found.iterrows():
        numbers = [float(row[column]) for column in SHOWN]
        category, unit = row.get("category"), units.get(name)
        if category is not None:
            own = category if numbers[0] > 0 else f"not {category}"
            rows.append([own, *(f"{category} {percent(share)}" for share in numbers[1:])])
        elif unit is not None:
            # If the value and the centres are within a few days, show dates with the time of
            # day, and durations with one decimal.
            decimals = 1 if np.nanmax(numbers) - np.nanmin(numbers) < FEW_DAYS else 0
            rows.append([_known(x, amount_in(unit, x, decimals)) for x in numbers])
        else:
            rows.append([_known(x, f"{x:.4g}") for x in numbers])
    return pd.DataFrame(rows, index=found.index, columns=list(SHOWN))


def _known(number, text):
    return "missing" if np.isnan(number) else text


def _terms(x, centers, weights, p, gaps=None):
    """Compute the terms of both distances, and the power of two that x was multiplied by.

    The power is 1 unless the terms would overflow or underflow. A missing value counts as the
    distance given in `gaps`.
    """
    # Halve first, because the difference of huge numbers may overflow.
    half = np.abs(x / 2 - centers / 2)
    if gaps is not None:
        half = np.where(np.isnan(half), gaps / 2, half)
    peak = (weights * half).max()
    exponent = int(np.frexp(peak)[1]) + 1
    unit = 1.0
    if peak > 0 and abs(exponent * p) > ORDINARY:
        unit = float(np.ldexp(1.0, -max(exponent, -1000)))
    away = np.abs(x * unit - centers * unit)
    if gaps is not None:
        away = np.where(np.isnan(away), gaps * unit, away)
    return (weights * away) ** p, unit


def _divided(terms, unit, p):
    """Convert terms to the units of the data; they may be infinite or 0, but not NaN."""
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        factor = np.float64(unit) ** -p
        return np.where(terms == 0, 0.0, terms * factor)


def _by_variable(found, codes, variables):
    """Reduce `found` from one row per feature to one row per variable.

    The terms are summed over the features of a variable. All other columns are those of the
    feature with the largest value: for a one-hot variable, the row's category.
    """
    terms = found[TERMS].groupby(codes).sum()
    value = found["value"].to_numpy()
    columns = [
        max(np.flatnonzero(codes == g), key=lambda v: np.nan_to_num(value[v], nan=-np.inf))
        for g in range(len(variables))
    ]
    is_category = (np.bincount(codes) > 1) & ~np.isnan(value[columns])
    names = [str(found.index[v]) for v in columns]
    one = found.iloc[columns].set_axis(variables, axis=0)
    one[terms.columns] = terms.to_numpy()
    categories = [
        name.removeprefix(f"{variable}=") if there else None
        for name, variable, there in zip(names, variables, is_category, strict=True)
    ]
    one.insert(1, "category", pd.Series(categories, index=one.index, dtype=object))
    return one


def _one_row(X, row):
    X = X if hasattr(X, "shape") else np.asarray(X)
    n_rows = X.shape[0]
    if not isinstance(row, Integral) or isinstance(row, bool):
        raise TypeError(f"explain needs the position of a row (an integer), got {row!r}.")
    if not -n_rows <= row < n_rows:
        raise IndexError(f"explain needs -{n_rows} <= row < {n_rows}, got {row}.")
    return _safe_indexing(X, [int(row) % n_rows])


def _in_units(scaler, centers):
    """Return centres in the units of the data; NaN if the scaler has no inverse."""
    if not hasattr(scaler, "inverse_transform"):
        return np.full_like(centers, np.nan)
    return np.asarray(scaler.inverse_transform(centers))
