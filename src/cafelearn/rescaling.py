"""Rescale each row by the feature weights of its cluster."""

import numpy as np
from numba import njit


def rescale_rows(X, labels, weights, centers, rescaling="origin", out=None):
    """``w * x`` ("origin") or ``z + (w / max(w)) * (x - z)`` ("centroid").

    w are the weights and z is the centre of the row's cluster. `out` may be `X` itself.
    """
    weights = weights.astype(X.dtype)
    if rescaling == "origin":
        shifts = np.zeros_like(weights)
    else:
        weights = weights / weights.max(axis=1, keepdims=True)
        shifts = (1 - weights) * centers.astype(X.dtype)
    out = np.empty_like(X) if out is None else out
    _by_cluster(out, X, labels, weights, shifts)
    return out


@njit(nogil=True, cache=True)
def _by_cluster(out, X, labels, weights, shifts):
    """out[i] = weights[l] * X[i] + shifts[l] with l = labels[i]; no table of size n x m."""
    for i in range(len(X)):
        l = labels[i]
        for v in range(X.shape[1]):
            out[i, v] = weights[l, v] * X[i, v] + shifts[l, v]
