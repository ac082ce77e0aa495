"""The fit loop as a state machine: assign rows, find centres, update weights, stop.

`advance` chooses the next pass from the state and the merged sums of the last pass alone, so
passes may run on one thread, several threads or a cluster.
"""

from typing import NamedTuple

import numpy as np

from cafelearn.kmeans.kernels.cells import (
    CENTER,
    LOG_DISPERSION,
    MASS,
    MEMBERS,
    OPEN,
    SCALE,
    SCALED_WEIGHT,
    WEIGHT,
    make_cells,
)
from cafelearn.kmeans.kernels.centers import begin, fits, fitting_scale, refine, smallest_span
from cafelearn.kmeans.kernels.compiling import EXACT, njit
from cafelearn.kmeans.kernels.geometry import Geometry, chunk_rows, make_geometry
from cafelearn.kmeans.kernels.sums import CHANGED, FARTHEST, FARTHEST_ROW, HIGH, LOW, SPREAD
from cafelearn.kmeans.kernels.sums import MASS as SUM_MASS
from cafelearn.kmeans.kernels.sums import MEMBERS as SUM_MEMBERS
from cafelearn.kmeans.kernels.vectors import maximum, minimum, rounded, to_bits
from cafelearn.kmeans.kernels.weights import (
    WEIGHTINGS,
    Groups,
    log_mean_dispersion,
    log_objective,
    make_groups,
    uniform_weights,
    update_weights,
)

# The phase determines the next pass. ASSIGN: assign every row, and sum about the old centres.
# CENTERS: sum about the current estimates of the centres that have not converged. MEASURE: sum
# about the final centres, to compute dispersions. STOP: no more passes.
ASSIGN, CENTERS, MEASURE, STOP = map(np.int64, range(4))
# Reasons to stop. RUNNING: none yet. BROKEN: centres or weights are not finite.
RUNNING, CONVERGED, CYCLE, MAX_ITER, ABANDONED, BROKEN = map(np.int64, range(6))
STOP_REASONS = {
    CONVERGED: "converged",
    CYCLE: "cycle",
    MAX_ITER: "max_iter",
    ABANDONED: "abandoned",
}

MIXER = 0xBF58476D1CE4E5B9  # multiplier in the hash of a labelling
# Indices into State.counters.
ITERATION, RESEEDED, REASON = map(np.int64, range(3))


class Problem(NamedTuple):
    """Constants of a fit."""

    geometry: Geometry
    groups: Groups  # the columns of each variable
    weighting: int  # see kernels.weights
    scale: float  # power of two that brings the range of the widest feature near 1
    moving_offset: bool  # whether the offset added to dispersions is always their current mean
    log_offset: float  # log of the offset if it is constant
    max_iter: int
    tol: float
    to_beat: float  # log of an objective; a start predicted to end above it is abandoned
    chunk: int  # rows per chunk


class State(NamedTuple):
    """Variables of a fit, without the labels."""

    cells: np.ndarray  # (k, N_CELLS, m), see kernels.cells
    history: np.ndarray  # (max_iter + 1,) hash of the labels of each iteration
    path: np.ndarray  # (max_iter + 1,) log objective by iteration; last entry: log of Eq. 3
    counters: np.ndarray  # ITERATION, RESEEDED, REASON

    @property
    def log_inertia(self):
        """Log of the objective (Eq. 3) once the descent has stopped."""
        return float(self.path[-1])


def make_problem(X, p, scale, offset, max_iter, tol, weighting="cluster", groups=None):
    """Make the Problem of rows X. `offset` is "mean" or the log of a constant.

    Without `groups`, each column is a variable of its own.
    """
    moving = isinstance(offset, str)
    return Problem(
        make_geometry(p, X.dtype),
        make_groups(X.shape[1]) if groups is None else groups,
        WEIGHTINGS[weighting].code,
        float(scale),
        moving,
        -np.inf if moving else float(offset),
        int(max_iter),
        float(tol),
        np.inf,
        chunk_rows(X.shape[1]),
    )


def start(centers, feature_scale, problem, weights=None):
    """Make the state before the first pass; weights are uniform if not given."""
    if weights is None:
        weights = uniform_weights(problem.groups, *centers.shape, centers.dtype)
    return State(
        make_cells(centers, weights.astype(centers.dtype), problem.scale, feature_scale),
        np.zeros(problem.max_iter + 1, dtype=np.uint64),
        np.full(problem.max_iter + 1, np.nan),
        np.zeros(3, dtype=np.int64),
    )


@njit(**EXACT)
def advance(phase, state, sums, problem):
    """Update the state from the sums of the last pass; return the next phase."""
    cells, geometry = state.cells, problem.geometry
    n_clusters, n_features = len(cells), cells.shape[2]
    if phase == ASSIGN:
        if _reseed(cells, state.counters, sums, problem):
            return ASSIGN
        _judge(state.history, state.counters, sums)
        if state.counters[REASON] == RUNNING:
            _open_clusters(cells, sums, state.counters[ITERATION] == 0)
    if state.counters[REASON] != RUNNING:
        return _measure(state, sums, problem)
    searching = False
    for l in range(n_clusters):
        for v in range(n_features):
            cell, terms = cells[l, :, v], sums[l, :, v]
            if cell[OPEN] == 0:
                continue
            if phase == CENTERS or begin(cell, terms, geometry.p, geometry.single):
                refine(cell, terms, geometry)
            searching |= cell[OPEN] > 0
    if searching:
        return CENTERS
    _weigh(state, problem)
    return ASSIGN if state.counters[REASON] in (RUNNING, CONVERGED) else STOP


@njit(**EXACT)
def _reseed(cells, counters, sums, problem):
    """Reseed the first empty cluster, if any, with the row that is farthest from its centre.

    The row becomes the centre, and the weights become uniform. Return whether a cluster was
    reseeded.
    """
    n_clusters, n_features = len(cells), cells.shape[2]
    common = sums[n_clusters]
    if common[FARTHEST, 0] > 0 and counters[RESEEDED] < n_clusters:
        for l in range(n_clusters):
            if sums[l, SUM_MASS, 0] == 0:
                counters[RESEEDED] += 1
                cells[l, MEMBERS, 0] = 0
                for v in range(n_features):
                    cells[l, CENTER, v] = common[FARTHEST_ROW, v]
                uniform = rounded(1 / (len(problem.groups.bounds) - 1), problem.geometry.single)
                for v in problem.groups.order:
                    cells[l, WEIGHT, v] = uniform
                _scale_weights(cells, problem.scale, problem.geometry.single)
                return True
    counters[RESEEDED] = 0
    return False


@njit(**EXACT)
def _judge(history, counters, sums):
    """After an assignment, set the reason to stop, if there is one."""
    n_clusters, iteration = len(sums) - 1, counters[ITERATION]
    seen = np.uint64(0)
    for l in range(n_clusters):
        mixed = (to_bits(sums[l, SUM_MEMBERS, 0]) + np.uint64(l)) * np.uint64(MIXER)
        seen = seen * np.uint64(31) + (mixed ^ (mixed >> np.uint64(29)))
    repeated = False
    for earlier in range(iteration):
        repeated |= history[earlier] == seen
    if counters[REASON] == CONVERGED or sums[n_clusters, CHANGED, 0] == 0:
        counters[REASON] = CONVERGED
    elif iteration == len(history) - 1:
        counters[REASON] = MAX_ITER
    elif repeated:
        counters[REASON] = CYCLE
    else:
        history[iteration] = seen


@njit(**EXACT)
def _open_clusters(cells, sums, first):
    """Start the search for the centres of the clusters whose members have changed."""
    n_clusters, n_features = len(cells), cells.shape[2]
    for l in range(n_clusters):
        empty = sums[l, SUM_MASS, 0] == 0
        same = _same_members(cells, sums, l) and not first
        cells[l, MEMBERS, 0] = sums[l, SUM_MEMBERS, 0]
        for v in range(n_features):
            cells[l, MASS, v] = sums[l, SUM_MASS, v]
            cells[l, OPEN, v] = not (empty or same)
            if empty:
                cells[l, LOG_DISPERSION, v] = -np.inf


@njit(**EXACT)
def _same_members(cells, sums, l):
    """Check whether cluster l has the same members as at the last update of its centre."""
    return to_bits(cells[l, MEMBERS, 0]) == to_bits(sums[l, SUM_MEMBERS, 0])


@njit(**EXACT)
def _weigh(state, problem):
    """End an iteration: update the weights, record the objective, check whether to stop."""
    cells, path, counters = state.cells, state.path, state.counters
    geometry, groups = problem.geometry, problem.groups
    offset, counted = problem.log_offset, problem.log_offset
    if problem.moving_offset:
        # Objectives with different offsets are not comparable; record Eq. 3 without an offset.
        offset, counted = log_mean_dispersion(cells, groups), -np.inf
    p, iteration = geometry.p, counters[ITERATION]
    update_weights(cells, offset, p, problem.weighting, groups, geometry.single)
    _scale_weights(cells, problem.scale, geometry.single)
    path[iteration] = log_objective(cells, counted, p, groups)
    if problem.tol > 0 and iteration > 0:
        fall = 1 - np.exp(path[iteration] - path[iteration - 1])
        if abs(fall) <= problem.tol:
            counters[REASON] = CONVERGED
    if _is_hopeless(path, iteration, problem.to_beat):
        counters[REASON] = ABANDONED
    if not (_all_finite(cells, CENTER) and _all_finite(cells, WEIGHT)):
        counters[REASON] = BROKEN
    counters[ITERATION] = iteration + 1
    path[-1] = log_objective(cells, -np.inf, p, groups)


@njit(**EXACT)
def _all_finite(cells, row):
    sound = True
    for l in range(len(cells)):
        for v in range(cells.shape[2]):
            sound &= np.isfinite(cells[l, row, v])
    return sound


@njit(**EXACT)
def _scale_weights(cells, scale, single):
    for l in range(len(cells)):
        for v in range(cells.shape[2]):
            cells[l, SCALED_WEIGHT, v] = rounded(cells[l, WEIGHT, v] * scale, single)


@njit(**EXACT)
def _is_hopeless(path, iteration, to_beat):
    """Predict from the last two steps of a path whether it will end above `to_beat`.

    The remaining fall is estimated as a geometric series. Its ratio is that of the last two
    steps, but at most 0.9. A descent is hopeless if even twice this fall would leave it above
    `to_beat`.
    """
    if iteration < 2 or np.isinf(to_beat):
        return False
    step = path[iteration - 1] - path[iteration]
    before = path[iteration - 2] - path[iteration - 1]
    ratio = minimum(maximum(step / before, 0.0), 0.9) if before > 0 else 0.9
    return path[iteration] - 2 * maximum(step, 0.0) * ratio / (1 - ratio) > to_beat


@njit(**EXACT)
def _measure(state, sums, problem):
    """Compute the dispersions about the final centres; return the next phase.

    It is MEASURE, another pass, if a scale does not fit the members' distances, else STOP.
    """
    cells, geometry = state.cells, problem.geometry
    p, again = geometry.p, False
    for l in range(len(cells)):
        if _same_members(cells, sums, l) and to_bits(sums[l, SUM_MEMBERS, 0]) != 0:
            continue
        for v in range(cells.shape[2]):
            cell, terms = cells[l, :, v], sums[l, :, v]
            z, mass = cell[CENTER], terms[SUM_MASS]
            reach = maximum(terms[HIGH] - z, z - terms[LOW])
            if not np.isfinite(reach) and mass > 0:
                state.counters[REASON] = BROKEN
                return STOP
            if mass == 0 or reach < smallest_span(geometry.single):
                cell[LOG_DISPERSION] = -np.inf
            elif fits(cell[SCALE], reach, p):
                cell[LOG_DISPERSION] = np.log(terms[SPREAD]) - p * np.log(cell[SCALE])
            else:
                cell[SCALE] = fitting_scale(terms[LOW], terms[HIGH], z, p)
                again = True
    if again:
        return MEASURE
    state.path[-1] = log_objective(cells, -np.inf, p, problem.groups)
    return STOP
