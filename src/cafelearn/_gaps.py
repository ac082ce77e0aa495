"""Missing values (NaN) of data in memory: find, describe and fill them."""

import numpy as np

from cafelearn._words import listed


def is_sound(X):
    """Check whether the sum of all values is finite, which implies that each value is."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(X.sum()))


def has_gaps(X):
    """Check whether any value is missing; one pass suffices if the sum is finite."""
    return not is_sound(X) and bool(np.isnan(X).any())


def refuse_empty_rows(empty, owner):
    """Raise if `empty` lists any rows without observed values; the message names `owner`."""
    if len(empty):
        raise ValueError(
            f"{owner} needs at least one observed value in each row, but all values are "
            f"missing (NaN) in {len(empty)} row{'s' * (len(empty) > 1)} (counted from 0): "
            f"{listed(empty.tolist(), most=5)}. Drop these rows."
        )


def observed_extremes(X):
    """Return the smallest and largest observed value of each column; 0 if there is none."""
    low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    nothing = np.isnan(low)
    low[nothing] = high[nothing] = 0
    return low, high


def extremes(X):
    """Return the observed extrema of each column, and whether any value is missing."""
    low, high = X.min(axis=0), X.max(axis=0)
    if not np.isnan(low).any():
        return low, high, False
    return *observed_extremes(X), True


def observed_moments(X):
    """Compute mean and variance of the observed values of each column; 0 if there are none."""
    observed = ~np.isnan(X)
    count = np.maximum(observed.sum(axis=0), 1)
    mean = np.where(observed, X, 0.0).sum(axis=0, dtype=np.float64) / count
    away = np.where(observed, X - mean, 0.0)
    return mean, (away * away).sum(axis=0) / count


def fill_columns(X, values):
    """Return a copy of rows whose gaps are filled with one value for each column."""
    return np.where(np.isnan(X), values.astype(X.dtype), X)


def fill_gaps(X, labels, centers):
    """Return a copy of rows whose gaps are filled from the centre of the row's cluster."""
    gaps = np.isnan(X)
    filled = X.copy()
    filled[gaps] = centers.astype(X.dtype)[labels][gaps]
    return filled
