"""Conditions of a correct fit, computed from the data alone in extended precision.

Written from the paper, as `tests/reference.py`; dispersions are kept as logarithms here,
because those of hostile data fit into no float.
"""

import numpy as np
from tests import reference

Number = np.longdouble
# Ranges below this may count as 0, see docs/guarantees.md.
SMALLEST_SPAN = {"float64": 2.0**-1020, "float32": 2.0**-124}
ENLARGED_SPAN = {"float64": 2.0**-501, "float32": 2.0**-61}


def log_sum_of_powers(distances, weights, p):
    """log of sum weights * distances^p over the first axis."""
    peak = distances.max(axis=0)
    safe = np.where(peak > 0, peak, 1)
    total = (weights[:, None] * (distances / safe) ** Number(p)).sum(axis=0)
    with np.errstate(divide="ignore"):
        return np.log(total) + p * np.log(peak)


def log_dispersions(X, labels, centers, p, weights):
    """Logarithms of the dispersions, -inf for none."""
    out = np.full(centers.shape, -np.inf, dtype=Number)
    for l in range(len(centers)):
        members = (labels == l) & (weights > 0)
        if members.any():
            rows = X[members].astype(Number)
            away = np.abs(rows - centers[l].astype(Number))
            out[l] = log_sum_of_powers(away, weights[members].astype(Number), p)
    return out


def is_doubtful(X, labels, weights):
    """Whether members of a cluster have a range so small that it may count as 0."""
    for l in np.unique(labels):
        rows = X[(labels == l) & (weights > 0)].astype(Number)
        spans = np.ptp(rows, axis=0) if len(rows) else np.zeros(1)
        if ((spans > 0) & (spans < SMALLEST_SPAN[X.dtype.name])).any():
            return True
    return False


def varying(X, weights):
    """Columns that vary among the rows of positive weight, or all if none does."""
    rows = X[weights > 0].astype(Number)
    spans = rows.max(axis=0) - rows.min(axis=0)
    # If all are small, they are enlarged first.
    enlarged = spans.max() < ENLARGED_SPAN[X.dtype.name]
    varies = spans >= (np.finfo(Number).tiny if enlarged else SMALLEST_SPAN[X.dtype.name])
    return varies if varies.any() else np.ones_like(varies)


def log_offset(case, X, log_d, weights):
    """Compute the log of the dispersion offset (see MinkowskiWeightedKMeans).

    X and log_d hold the columns that vary.
    """
    offset = case["offset"]
    if offset == "mean":
        return log_mean(log_d)
    if offset != "fixed":
        return np.log(Number(offset)) if offset > 0 else Number(-np.inf)
    centre = np.array([center(X[:, v], case["p"], weights) for v in range(X.shape[1])])
    one = log_dispersions(X, np.zeros(len(X), int), centre[None], case["p"], weights)
    return log_mean(one) + np.log(Number(0.1) / case["n_clusters"])


def center(x, p, weights):
    """`reference.center` for values of any size."""
    x = x.astype(Number)
    low, high = x[weights > 0].min(), x[weights > 0].max()
    if high == low:
        return low
    unit = ((x - low) / (high - low)).astype(float)
    scaled = (weights / weights.max()).astype(float)
    return low + Number(reference.center(unit, p, scaled)) * (high - low)


def log_mean(log_values):
    peak = log_values.max()
    return peak if np.isinf(peak) else peak + np.log(np.exp(log_values - peak).mean())


def log_weights(log_d, offset, p):
    """Logarithms of the weights of Eq. 4."""
    log_d = np.logaddexp(log_d, offset)
    out = np.empty_like(log_d)
    for l, row in enumerate(log_d):
        zero = np.isneginf(row)
        if zero.any():
            out[l] = np.where(zero, -np.log(Number(zero.sum())), -np.inf)
        else:
            terms = (row.min() - row) / (p - 1)
            out[l] = terms - np.log(np.exp(terms).sum())
    return out


def distances(X, centers, weights, p):
    """p-th roots of Eq. 2 for every row and centre."""
    out = np.empty((len(X), len(centers)), dtype=Number)
    rows, p = X.astype(Number), Number(p)
    for l in range(len(centers)):
        terms = weights[l].astype(Number) * np.abs(rows - centers[l].astype(Number))
        peak = terms.max(axis=1)
        safe = np.where(peak > 0, peak, 1)
        out[:, l] = ((terms / safe[:, None]) ** p).sum(axis=1) ** (1 / p) * peak
    return out


def center_error(x, z, p, weights, allowed):
    """Whether the root of the gradient of Eq. 5 is within `allowed` of z, in ranges of x.

    The gradient is increasing, so it is enough to look at its signs at both ends.
    """
    x, z = x.astype(Number), Number(z)
    low, span = x.min(), np.ptp(x)
    x, z, weights = (x - low) / span, (z - low) / span, weights.astype(Number)
    weights = weights / weights.max()

    def gradient(place):
        away = place - x
        return (weights * np.sign(away) * np.abs(away) ** Number(p - 1)).sum()

    return gradient(z - allowed) > 0 or gradient(z + allowed) < 0
