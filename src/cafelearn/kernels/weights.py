"""Weightings: feature weights as a function of dispersions, in log space.

At p = 1.01 a dispersion is raised to the power -100, so everything here works on log D:
Eq. 4 is w = softmax(-log(D + c) / (p - 1)) over the features of a cluster.

To add a weighting, give it a code and an entry in `WEIGHTINGS`, and compute it in
`update_weights`; estimators, candidates and messages read the table.
"""

from typing import NamedTuple

import numpy as np

from cafelearn.kernels.compiling import EXACT, njit


class Weighting(NamedTuple):
    """One way to compute weights from dispersions."""

    code: int  # how `update_weights` knows it
    uses_offset: bool  # whether `dispersion_offset` has an effect
    text: str  # one phrase for reports


CLUSTER, UNIFORM = range(2)
WEIGHTINGS = {
    "cluster": Weighting(CLUSTER, True, "one weight per cluster and feature"),
    "uniform": Weighting(UNIFORM, False, "equal weights (ordinary Minkowski k-means)"),
}


@njit(**EXACT)
def log_mean(log_values):
    """log of the mean of exp(log_values) over a whole array; -inf if all are zero."""
    peak, total = -np.inf, 0.0
    for value in log_values.flat:
        peak = max(peak, value)
    if peak == -np.inf:
        return peak
    for value in log_values.flat:
        total += np.exp(value - peak)
    return peak + np.log(total / log_values.size)


@njit(**EXACT)
def update_weights(weights, log_dispersion, log_offset, p, weighting):
    """Weights of all clusters by the weighting with this code.

    CLUSTER is Eq. 4 with `exp(log_offset)` added to every dispersion, row by row. Features
    of no dispersion take the limit: they share the weight of 1 equally.
    IN log_dispersion (k, m); OUT weights (k, m)
    """
    n_clusters, n_features = weights.shape
    if weighting == UNIFORM:
        weights[:] = 1 / n_features
        return
    for l in range(n_clusters):
        smallest = np.inf
        for v in range(n_features):
            smallest = min(smallest, _log_add(log_dispersion[l, v], log_offset))
        total = 0.0
        for v in range(n_features):
            log_d = _log_add(log_dispersion[l, v], log_offset)
            if smallest == -np.inf:
                weights[l, v] = 1.0 if log_d == -np.inf else 0.0
            else:
                weights[l, v] = np.exp((smallest - log_d) / (p - 1))
            total += weights[l, v]
        for v in range(n_features):
            weights[l, v] /= total


@njit(**EXACT)
def log_objective(weights, log_dispersion, log_offset, p):
    """log of sum w^p (D + c) (Eq. 3 with an offset); -inf when the sum is zero."""
    n_clusters, n_features = weights.shape
    peak = -np.inf
    for round in range(2):
        total = 0.0
        for l in range(n_clusters):
            for v in range(n_features):
                log_d = _log_add(log_dispersion[l, v], log_offset)
                if weights[l, v] > 0 and log_d > -np.inf:
                    term = p * np.log(weights[l, v]) + log_d
                    if round == 0:
                        peak = max(peak, term)
                    else:
                        total += np.exp(term - peak)
        if peak == -np.inf:
            return peak
    return peak + np.log(total)


@njit(**EXACT)
def _log_add(a, b):
    """log(exp(a) + exp(b))."""
    high, low = max(a, b), min(a, b)
    if low == -np.inf:
        return high
    return high + np.log1p(np.exp(low - high))
