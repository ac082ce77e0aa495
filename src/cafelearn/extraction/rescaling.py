"""The input of CAFE's extractor: rescaled rows, or rows and their log distances."""

from typing import NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from cafelearn.data.variables import sum_over_variables, used_columns
from cafelearn.kmeans.kernels.compiling import CACHED, njit

# The values of the parameter `rescaling`.
RESCALINGS = ("memberships", "distances", "origin", "centroid")
# This fraction of the typical distance of a member from its centre is added to all distances
# before logarithms are taken, because the logarithm of 0 is infinite.
SHORTEST = 1e-3
# Rows per batch.
ROWS = 65_536


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


def beside_memberships(X, mixture):
    """Extend standardised rows by what a Mixture knows of them.

    The rows have a total variance of m, the number of columns that vary. The m columns of the
    rows are followed by the membership probabilities, times sqrt(m / 2), and by the signed
    roots of twice the log density of each cluster relative to its peak, whose total variance is
    m / 2. Missing values are filled with the means of the clusters, weighted by the
    probabilities.
    """
    share, roots = mixture._cluster_features(X)
    gaps = np.isnan(X)
    if gaps.any():
        X = np.where(gaps, share @ mixture.means_, X)
    rows = (X - mixture._center) / mixture._spread
    half = np.sqrt(mixture._n_varying / 2)
    return np.hstack([rows, half * share, half * roots]).astype(X.dtype, copy=False)


class SpreadSums(NamedTuple):
    """Sums over the members of each cluster, about a common centre; additive over rows."""

    mass: np.ndarray  # (k,)
    observed: np.ndarray  # (k, m) mass of the observed values
    first: np.ndarray  # (k, m)
    second: np.ndarray  # (k, m)

    def __add__(self, other):
        return SpreadSums(*(a + b for a, b in zip(self, other, strict=True)))


def spread_sums(X, labels, k, mass, center):
    """Compute the `SpreadSums` of rows."""
    total = SpreadSums(np.zeros(k), *np.zeros((3, k, X.shape[1])))
    for rows in gen_batches(len(X), ROWS) if len(X) else ():
        away = X[rows].astype(np.float64) - center
        there = ~np.isnan(away)
        away = np.where(there, away, 0.0)
        members = np.eye(k)[labels[rows]].T * mass[rows]
        parts = members.sum(axis=1), members @ there, members @ away, members @ (away * away)
        total = total + SpreadSums(*parts)
    return total


def weights_of(sums, ranges, codes=None):
    """Compute the paper's weights (Eq. 4 with p = 2) of given clusters from their sums.

    The mean of all dispersions is added to each of them, as by ``dispersion_offset="mean"``.
    Columns of the same variable share a weight. `ranges` are those of the columns.
    """
    count = np.maximum(sums.observed, 1e-300)
    scatter = np.maximum(sums.second - sums.first**2 / count, 0.0)
    # A missing value counts like the mean of the observed ones.
    dispersions = scatter / count * sums.mass[:, None]
    codes = np.arange(len(ranges)) if codes is None else codes
    used = used_columns(ranges, codes)
    of_variable = sum_over_variables(dispersions, codes)
    used = np.bincount(codes, used) > 0
    offset = of_variable[:, used].mean()
    inverse = np.where(used, 1 / (of_variable + (offset if offset > 0 else 1.0)), 0.0)
    return (inverse / inverse.sum(axis=1, keepdims=True))[:, codes]


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
