"""Joint scaling of the columns of a variable.

A value of a variable with several columns is a point. The scaling "range" divides these points
by a bound on their diameter, "standard" by the square root of their total variance.
"""

import numpy as np

from cafelearn.data.validation import ordinary_units
from cafelearn.data.variables import largest_sums, several_columns, sum_over_variables
from cafelearn.estimators.candidates import make_scaler
from cafelearn.estimators.scaling import fit_scaler


def scaling_key(candidate, codes):
    """Return a key that is equal for candidates with the same scaled rows.

    `codes` contains the index of each column's variable, or is None if every column is a
    variable. With "range" and a variable of several columns, the scaled rows depend on p,
    because the diameter does.
    """
    by_p = _is_named(candidate.scaling, "range") and several_columns(codes).any()
    return id(candidate.scaling), candidate.p if by_p else None


def fit_scalers(candidates, source, codes=None, seed=None):
    """Fit the scalers of candidates; return a dict from `scaling_key` to scaler."""
    facts = None
    if several_columns(codes).any():
        ends = source.low, source.high
        facts = *ends, source.reduce(find_largest_sums, _largest, (*ends, codes))
    scalers = {}
    for candidate in candidates:
        key = scaling_key(candidate, codes)
        if key not in scalers:
            scalers[key] = fit_scaler(make_scaler(candidate.scaling), source, seed)
            if facts is not None:
                scale_as_one(scalers[key], candidate, codes, *facts)
    return scalers


def find_largest_sums(part, request):
    """Compute the `largest_sums` of a part; `request` is (low, high, codes)."""
    return largest_sums(part.X, *request)


def _largest(parts):
    return np.max(parts, axis=0)


def scale_as_one(scaler, candidate, codes, low, high, sums):
    """Adjust the fitted scaler of a candidate to scale the columns of each variable jointly.

    Only the scalings "range" and "standard" are adjusted; custom scalers are left unchanged.
    `low` and `high` are the extrema of each column, and `sums` is the result of `largest_sums`.
    """
    several = several_columns(codes)
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    # Half of the range, because the difference of huge numbers would overflow.
    span = high / 2 - low / 2
    varies = several & (span > 0)
    if _is_named(candidate.scaling, "range"):
        # For u and u' in [0, 1], |u - u'|^p is at most 1 and at most u + u'. The p-th power of
        # a distance is therefore at most `farthest`. For a one-hot variable this bound is 2,
        # and it is reached, because two categories differ in two columns.
        farthest = np.minimum(np.bincount(codes, weights=span > 0), 2 * sums)[codes]
        diameter = np.where(varies, farthest, 1.0) ** (1 / candidate.p)
        scaler.range_ = (scaler.range_ * diameter).astype(scaler.range_.dtype)
    elif _is_named(candidate.scaling, "standard"):
        # Variances are divided by squared ranges, because variances in different units cannot
        # be added.
        variance = np.zeros(len(span))
        if ordinary_units(low, high) is None:
            np.divide(scaler.var_, (2 * span) ** 2, out=variance, where=varies)
        else:
            np.divide(scaler.scale_, 2 * span, out=variance, where=varies)
            variance *= variance
        total = np.sqrt(sum_over_variables(variance, codes))[codes]
        varies &= total > 0
        scaler.scale_ = np.where(varies, 2 * span * total, scaler.scale_)


def _is_named(scaling, name):
    return isinstance(scaling, str) and scaling == name
