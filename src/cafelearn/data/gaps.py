"""Gaps, the missing values (NaN) of data in memory: find, report and fill them."""

import numpy as np

from cafelearn.base.words import listed


def is_sound(X):
    """Check whether the sum of all values is finite; if it is, no value is NaN or infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(X.sum()))


def has_gaps(X):
    """Check whether any value is missing; for complete data this takes one pass."""
    return not is_sound(X) and bool(np.isnan(X).any())


def refuse_empty_rows(empty, owner):
    """Raise if there are rows without observed values; `empty` has their positions."""
    if len(empty):
        raise ValueError(
            f"{owner} needs at least one observed value in each row, but all values are "
            f"missing (NaN) in {len(empty)} row{'s' * (len(empty) > 1)} (counted from 0): "
            f"{listed(empty.tolist(), most=5)}. Drop these rows."
        )


def refuse_infinite_columns(X, owner, names=None):
    """Raise if values are infinite; the message names their columns."""
    infinite = np.flatnonzero(np.isinf(X).any(axis=0))
    if len(infinite):
        found = infinite if names is None else np.asarray(names)[infinite]
        raise ValueError(
            f"{owner} needs finite numbers, but X contains infinity or a value too large for "
            f"{X.dtype.name} in column{'s' * (len(found) > 1)} "
            f"{listed(found.tolist(), most=5)}."
        )


def observed_extremes(X):
    """Return the smallest and the largest observed value of each column.

    Both are 0 for a column without observed values.
    """
    low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    nothing = np.isnan(low)
    low[nothing] = high[nothing] = 0
    return low, high


def extremes(X):
    """Return the extrema of the observed values by column, and whether any value is missing."""
    low, high = X.min(axis=0), X.max(axis=0)
    if not np.isnan(low).any():
        return low, high, False
    return *observed_extremes(X), True


def informative_rows(X):
    """Return, for each row, whether it has an observed value in a column that varies."""
    low, high, gaps = extremes(X)
    varies = low < high
    if not (gaps and varies.any()):
        return np.ones(len(X), dtype=bool)
    return ~np.isnan(X[:, varies]).all(axis=1)


def observed_moments(X):
    """Compute the mean and the variance of the observed values of each column.

    Both are 0 for a column without observed values.
    """
    observed = ~np.isnan(X)
    count = np.maximum(observed.sum(axis=0), 1)
    mean = np.where(observed, X, 0.0).sum(axis=0, dtype=np.float64) / count
    away = np.where(observed, X - mean, 0.0)
    return mean, (away * away).sum(axis=0) / count


def fill_columns(X, values):
    """Return a copy of the rows in which gaps are filled with one value per column."""
    return np.where(np.isnan(X), values.astype(X.dtype), X)


def fill_gaps(X, labels, centers):
    """Return a copy of the rows, with the gaps of each row filled from its cluster's centre."""
    gaps = np.isnan(X)
    filled = X.copy()
    filled[gaps] = centers.astype(X.dtype)[labels][gaps]
    return filled
