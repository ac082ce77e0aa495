"""Variables: groups of columns that share one weight in each cluster.

The argument `codes` contains the index of each column's variable, or is None if every column
is a variable.
"""

import numpy as np
import pandas as pd
from sklearn.utils import gen_batches

# Rows per batch.
ROWS = 65_536
# Separator of variable and category in the column names that TableEncoder makes.
SEPARATOR = "="


def set_variables(estimator):
    """Set `feature_groups_`: the name of each column's variable, or None without groups.

    Call this after validating the data, because the validation sets the number and the names
    of the columns.
    """
    given = estimator.feature_groups
    if given is None:
        estimator.feature_groups_ = None
    elif isinstance(given, str):
        estimator.feature_groups_ = _from_names(estimator)
    else:
        owner = type(estimator).__name__
        estimator.feature_groups_ = check_groups(given, estimator.n_features_in_, owner)


def _from_names(estimator):
    """Return the part of each column name before the first "=", as in TableEncoder's names."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        raise ValueError(
            f"{type(estimator).__name__}(feature_groups='auto') needs a data frame with "
            "column names such as 'plan=free', as TableEncoder makes them; the given columns "
            "have no names. Pass feature_groups with a label for each column."
        )
    return np.array([name.partition(SEPARATOR)[0] for name in names], dtype=np.str_)


def check_groups(given, n_features, owner):
    """Validate the labels of columns and return them as text; messages name `owner`."""
    labels = np.asarray(given, dtype=object)
    if labels.shape != (n_features,):
        raise ValueError(
            f"{owner} needs feature_groups with one label for each of {n_features} features, "
            f"got an array of shape {labels.shape}."
        )
    missing = np.flatnonzero(pd.isna(labels))
    if len(missing):
        raise ValueError(
            f"{owner} needs feature_groups with a label for every feature; the label of "
            f"feature {missing[0]} is missing."
        )
    return np.array([str(label) for label in labels], dtype=np.str_)


def codes_of(labels):
    """Number labels from 0, in the order of their first appearance."""
    return pd.factorize(labels)[0].astype(np.int64)


def variable_codes(estimator):
    """Return the index of each column's variable, or None without groups."""
    labels = getattr(estimator, "feature_groups_", None)
    return None if labels is None else codes_of(labels)


def columns_of_variables(estimator):
    """Return the columns of each variable, or None without groups."""
    codes = variable_codes(estimator)
    return None if codes is None else columns_by_code(codes)


def several_columns(codes):
    """Return, for each column, whether its variable has several columns.

    The result is empty if `codes` is None.
    """
    return np.zeros(0, dtype=bool) if codes is None else np.bincount(codes)[codes] > 1


def of_variables(values, codes):
    """Return the values of the first column of each variable; columns are the last axis."""
    return values if codes is None else values[..., np.unique(codes, return_index=True)[1]]


def used_columns(ranges, codes):
    """Return, for each column, whether its variable varies; other variables get no weight.

    If no variable varies, all columns are used.
    """
    varies = np.asarray(ranges) > 0
    if codes is not None:
        varies = (np.bincount(codes, varies) > 0)[codes]
    return varies if varies.any() else np.ones_like(varies)


def fitted_columns(model):
    """Return the `used_columns` of a fitted MinkowskiWeightedKMeans."""
    ranges = getattr(model, "_ranges", None)  # older model files lack it
    if ranges is None or len(ranges) != model.feature_weights_.shape[1]:
        return np.ones(model.feature_weights_.shape[1], dtype=bool)
    return used_columns(ranges, variable_codes(model))


def fitted_variables(model):
    """Return the weights and the dispersions of the variables that vary."""
    codes = variable_codes(model)
    used = of_variables(fitted_columns(model), codes)
    weights = of_variables(model.feature_weights_, codes)
    return weights[:, used], sum_over_variables(model.dispersions_, codes)[:, used]


def sum_over_variables(values, codes):
    """Sum values over the columns of each variable; columns are the last axis."""
    if codes is None:
        return values
    sums = [values[..., codes == g].sum(axis=-1) for g in range(codes.max() + 1)]
    return np.stack(sums, axis=-1)


def largest_sums(X, low, high, codes):
    """Return the largest row sum of the columns of each variable.

    The columns are first scaled from [low, high] to [0, 1]. The result is 1 for a one-hot
    encoded variable, and is defined as 1 for a variable of one column. Missing values count as
    0. Results for disjoint sets of rows can be merged by taking the maximum.
    """
    found = np.ones(codes.max() + 1)
    for g in np.unique(codes[several_columns(codes)]):
        columns = np.flatnonzero(codes == g)
        smallest = np.asarray(low, dtype=np.float64)[columns]
        span = np.asarray(high, dtype=np.float64)[columns] - smallest
        span = np.where(span > 0, span, np.inf)
        found[g] = 0.0
        for rows in gen_batches(len(X), ROWS) if len(X) else ():
            sums = np.nansum((X[rows][:, columns] - smallest) / span, axis=1)
            found[g] = max(found[g], float(sums.max()))
    return found


def one_hot_groups(X):
    """Group columns into variables: adjacent 0/1 columns that sum to 1 are one variable.

    Rows with missing values in these columns are ignored.
    """
    groups, start, total = [], None, None
    for v, column in enumerate(X.T):
        groups.append([v])
        if not ((column == 0) | (column == 1) | np.isnan(column)).all():
            start = None
            continue
        if start is None or np.fmax.reduce(total + column) > 1:
            start, total = v, column.copy()
        else:
            total += column
        if np.fmin.reduce(total) == 1:
            del groups[len(groups) - (v - start + 1) :]
            groups.append(list(range(start, v + 1)))
            start = None
    return groups


def columns_by_code(codes):
    """Return the columns of each variable."""
    return [np.flatnonzero(codes == code).tolist() for code in range(codes.max() + 1)]
