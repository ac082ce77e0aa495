"""The input of CAFE's extractor: rescaled rows, or rows and their log distances."""

import numpy as np

from cafelearn._solver.kernels.compiling import CACHED, njit

# The values of the parameter `rescaling`.
RESCALINGS = ("distances", "origin", "centroid")
# This fraction of the typical distance of a member from its centre is added to all distances
# before logarithms are taken, because the logarithm of 0 is infinite.
SHORTEST = 1e-3


def rescale_rows(X, labels, weights, centers, rescaling="origin", out=None):
    """Compute ``w * x`` ("origin") or ``z + (w / max(w)) * (x - z)`` ("centroid").

    Here w and z are the weights and the centre of the row's cluster. `out` may be `X` itself.
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


def shortest_distance(inertia, mass, p):
    """Return the distance that is added before logarithms are taken."""
    typical = (inertia / mass) ** (1 / p)
    return SHORTEST * typical if 0 < typical < np.inf else 1.0


def beside_distances(X, distances, shortest, scales=(1.0, 1.0)):
    """Extend the rows by their log distances; divide each part by its scale."""
    out = np.empty((len(X), X.shape[1] + distances.shape[1]), dtype=X.dtype)
    np.divide(X, scales[0], out=out[:, : X.shape[1]])
    logs = out[:, X.shape[1] :]
    np.log(distances + X.dtype.type(shortest), out=logs)
    logs /= scales[1]
    return out


def balancing_scales(variances, n_features):
    """Return the divisors that bring rows and log distances to a total variance of 1 each.

    The first `n_features` of the `variances` are those of the rows.
    """
    parts = np.array([variances[:n_features].sum(), variances[n_features:].sum()])
    return np.sqrt(np.where(parts > 0, parts, 1.0))


@njit(nogil=True, cache=CACHED)
def _by_cluster(out, X, labels, weights, shifts):
    """Set out[i] = weights[l] * X[i] + shifts[l], l = labels[i], without large temporaries."""
    for i in range(len(X)):
        l = labels[i]
        for v in range(X.shape[1]):
            out[i, v] = weights[l, v] * X[i, v] + shifts[l, v]
