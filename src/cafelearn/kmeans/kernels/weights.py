"""Weightings: feature weights as a function of dispersions, in log space.

At p = 1.01 a dispersion D is raised to the power -100, so everything here works on log D: Eq. 4
is w = softmax(-log(D + c) / (p - 1)) over the variables of a cluster, where c is the offset. A
variable is a group of columns with one weight; its dispersion is the sum over its columns. If
every column is a variable of its own, this sum has one term and is exact.

To add a weighting, give it a code and an entry in `WEIGHTINGS`, and compute it in
`update_weights`; estimators, candidates and messages read `WEIGHTINGS`.
"""

from typing import NamedTuple

import numpy as np

from cafelearn.kmeans.kernels.cells import LOG_DISPERSION, N_CELLS, WEIGHT
from cafelearn.kmeans.kernels.compiling import EXACT, callable_from_python, njit
from cafelearn.kmeans.kernels.vectors import maximum, minimum, rounded


class Weighting(NamedTuple):
    """One way to compute weights from dispersions."""

    code: int  # for `update_weights`
    uses_offset: bool  # whether `dispersion_offset` has an effect
    text: str  # one phrase for reports


CLUSTER, UNIFORM, FEATURE = range(3)
WEIGHTINGS = {
    "cluster": Weighting(CLUSTER, True, "one weight per cluster and feature"),
    "uniform": Weighting(UNIFORM, False, "equal weights (ordinary Minkowski k-means)"),
    "feature": Weighting(FEATURE, True, "one weight per feature, the same in all clusters"),
}


class Groups(NamedTuple):
    """The columns of each variable."""

    order: np.ndarray  # (at most m,) columns, those of a variable next to each other
    bounds: np.ndarray  # (n_variables + 1,) where each variable begins in `order`, and the end

    @property
    def n_variables(self):
        """Number of variables."""
        return len(self.bounds) - 1


def make_groups(n_features, codes=None, used=None):
    """Make the Groups; `codes` has, for each column, the index of its variable.

    By default each column is a variable of its own, and all are used. Columns that are not
    `used` belong to no variable; their weight stays 0.
    """
    codes = np.arange(n_features) if codes is None else np.asarray(codes)
    columns = np.arange(n_features) if used is None else np.flatnonzero(used)
    _, codes, sizes = np.unique(codes[columns], return_inverse=True, return_counts=True)
    order = columns[np.argsort(codes, kind="stable")]
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    return Groups(order.astype(np.int64), bounds.astype(np.int64))


def uniform_weights(groups, n_clusters, n_features, dtype=np.float64):
    """Return equal weights for all variables."""
    weights = np.zeros((n_clusters, n_features), dtype=dtype)
    weights[:, groups.order] = 1.0 / groups.n_variables
    return weights


def cells_of(log_dispersion, weights=0.0):
    """Make cells with these log dispersions and weights, for calls from Python."""
    cells = np.zeros((len(log_dispersion), N_CELLS, log_dispersion.shape[1]))
    cells[:, LOG_DISPERSION], cells[:, WEIGHT] = log_dispersion, weights
    return cells


@callable_from_python
@njit(**EXACT)
def log_mean_dispersion(cells, groups):
    """Compute the log of the mean dispersion over clusters and variables; -inf if all are 0."""
    n_variables = len(groups.bounds) - 1
    peak, total = -np.inf, 0.0
    for l in range(len(cells)):
        for g in range(n_variables):
            peak = maximum(peak, _log_total(cells, groups, l, g))
    if peak == -np.inf:
        return peak
    for l in range(len(cells)):
        for g in range(n_variables):
            total += np.exp(_log_total(cells, groups, l, g) - peak)
    return peak + np.log(total / (len(cells) * n_variables))


@callable_from_python
@njit(**EXACT)
def update_weights(cells, log_offset, p, weighting, groups, single):
    """Compute the weights of all clusters; `weighting` is the code of a Weighting.

    CLUSTER is Eq. 4 for each cluster, with `exp(log_offset)` added to the dispersion of every
    variable. FEATURE is the same with the sums over the clusters (W-k-means). If some of these
    sums are 0, the limit is used: those variables share a weight of 1 equally. All columns of a
    variable get its weight. If `single`, round to float32.
    """
    n_variables = len(groups.bounds) - 1
    for l in range(len(cells)):
        weights, smallest, total = cells[l, WEIGHT], np.inf, 0.0
        for g in range(n_variables):
            log_d = _log_weighed(cells, groups, l, g, log_offset, weighting)
            smallest = minimum(smallest, log_d)
        for g in range(n_variables):
            v = groups.order[groups.bounds[g]]
            log_d = _log_weighed(cells, groups, l, g, log_offset, weighting)
            if weighting == UNIFORM:
                weights[v] = 1.0
            elif smallest == -np.inf:
                weights[v] = 1.0 if log_d == -np.inf else 0.0
            else:
                weights[v] = rounded(np.exp((smallest - log_d) / (p - 1)), single)
            total += weights[v]
        for g in range(n_variables):
            v = groups.order[groups.bounds[g]]
            weights[v] = rounded(weights[v] / total, single)
            for place in range(groups.bounds[g] + 1, groups.bounds[g + 1]):
                weights[groups.order[place]] = weights[v]


@njit(**EXACT)
def _log_weighed(cells, groups, l, g, log_offset, weighting):
    """Compute the log of the sum from which variable g gets its weight in cluster l."""
    if weighting != FEATURE:
        return _log_add(_log_total(cells, groups, l, g), log_offset)
    log_d = -np.inf
    for other in range(len(cells)):
        log_one = _log_add(_log_total(cells, groups, other, g), log_offset)
        log_d = _log_add(log_d, log_one)
    return log_d


@njit(**EXACT)
def log_objective(cells, log_offset, p, groups):
    """Compute the log of sum w^p (D + c) (Eq. 3 with an offset); -inf if the sum is zero."""
    n_variables = len(groups.bounds) - 1
    peak = -np.inf
    for round in range(2):
        total = 0.0
        for l in range(len(cells)):
            for g in range(n_variables):
                weight = cells[l, WEIGHT, groups.order[groups.bounds[g]]]
                log_d = _log_add(_log_total(cells, groups, l, g), log_offset)
                if weight > 0 and log_d > -np.inf:
                    term = p * np.log(weight) + log_d
                    if round == 0:
                        peak = maximum(peak, term)
                    else:
                        total += np.exp(term - peak)
        if peak == -np.inf:
            return peak
    return peak + np.log(total)


@njit(**EXACT)
def _log_total(cells, groups, l, g):
    """Compute the log dispersion of variable g in cluster l, summed over its columns."""
    log_dispersion = cells[l, LOG_DISPERSION]
    first, end = groups.bounds[g], groups.bounds[g + 1]
    peak = log_dispersion[groups.order[first]]
    if end == first + 1:
        return peak
    for place in range(first + 1, end):
        peak = maximum(peak, log_dispersion[groups.order[place]])
    if peak == -np.inf:
        return peak
    total = 0.0
    for place in range(first, end):
        total += np.exp(log_dispersion[groups.order[place]] - peak)
    return peak + np.log(total)


@njit(**EXACT)
def _log_add(a, b):
    """Compute log(exp(a) + exp(b))."""
    high, low = maximum(a, b), minimum(a, b)
    if low == -np.inf:
        return high
    return high + np.log1p(np.exp(low - high))
