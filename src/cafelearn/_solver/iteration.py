"""What the fit loop decides: assign, centre, weight, stop.

The loop is a machine that asks for a pass over the data and decides, from the merged
sums of that pass alone, what to ask for next. All decisions are in `advance`; who runs
the passes (one thread, several, a cluster of machines) makes no difference to them.
"""

from typing import NamedTuple

import numpy as np

from cafelearn._solver.kernels.assign import (
    Geometry,
    chunk_rows,
    make_geometry,
)
from cafelearn._solver.kernels.brackets import ALL, CLOSED, Brackets, empty_brackets
from cafelearn._solver.kernels.centers import (
    SMALLEST_SPAN,
    SMALLEST_SPAN_SINGLE,
    begin,
    fits,
    fitting_scale,
    refine,
    smallest_span,
)
from cafelearn._solver.kernels.compiling import EXACT, njit
from cafelearn._solver.kernels.sums import FAR_TERMS, SPREAD
from cafelearn._solver.kernels.weights import (
    WEIGHTINGS,
    Groups,
    log_mean_dispersion,
    log_objective,
    make_groups,
    update_weights,
)

# What the loop asks for: a pass that assigns every row and looks at the old centres; one
# that assigns every row and sums those that move; a first look at the centres of clusters
# that changed, with the ranges of their members; a look at the centres still open; the same
# with anchors; a look at the members near the anchors; a pass that only measures; nothing.
ASSIGN, MOVE, FIRST, CENTER, LOOK, NEARBY, MEASURE, STOP = range(8)
RUNNING, CONVERGED, CYCLE, MAX_ITER, ABANDONED, BROKEN = range(6)
STOP_REASONS = {
    CONVERGED: "converged",
    CYCLE: "cycle",
    MAX_ITER: "max_iter",
    ABANDONED: "abandoned",
}

# Places in State.counters.
ITERATION, RESEEDED, REASON, CHANGED = range(4)
SURVEY = 4  # the next MOVE shall sum the moments of all rows, not the pulls of those that move
HALT = 5  # set from another thread to end the descent as soon as possible
# What an assignment means.
GO, RESEED, END = range(3)

# More rows than this repay passes that avoid work, and the minute that those take to compile.
MANY_ROWS = 20_000
# Data whose range is farther from 1 than this is not looked at in single precision.
WIDEST_RANGE = 2.0**40


class Problem(NamedTuple):
    """What stays fixed during a fit."""

    geometry: Geometry
    weighting: int  # see kernels.weights
    scale: float  # power of two that brings the data's range near 1
    moving_offset: bool  # the offset is the mean of all dispersions at each update
    log_offset: float  # else this constant
    max_iter: int
    tol: float
    chunk: int  # rows per chunk
    swift: bool  # passes of large data look only at the rows that may move
    anchored: bool  # and, for p < 2, at the members near the centres
    to_beat: float  # log of an objective; a run that will not get below it is given up
    groups: Groups  # the columns of each variable


class State(NamedTuple):
    """What the loop changes, beside the labels."""

    centers: np.ndarray  # (k, m)
    weights: np.ndarray  # (k, m)
    scaled_weights: np.ndarray  # (k, m), weights times Problem.scale
    brackets: Brackets
    fingerprint: np.ndarray  # (k,) members at the last centre update
    mass: np.ndarray  # (k,) sample weight then
    typical: np.ndarray  # (k, m) distance of a member from its centre
    placed: np.ndarray  # (2, k, m) centres and scaled weights at the last assignment
    drift: np.ndarray  # (k, 3) how far distances may have changed since, see kernels.moving
    history: np.ndarray  # one hash of all labels per iteration
    path: np.ndarray  # log of the objective per iteration
    counters: np.ndarray


def make_problem(X, p, scale, offset, max_iter, tol, weighting="cluster", variables=None):
    """A Problem for these rows. `offset` is "mean" or the log of a constant.

    `variables` are the numbers of the variables that the columns belong to.
    """
    moving = isinstance(offset, str)
    geometry = make_geometry(p, X.dtype)
    swift = len(X) > MANY_ROWS and geometry.p != 2 and not geometry.rooted
    swift = swift and 1 / WIDEST_RANGE <= scale <= WIDEST_RANGE
    return Problem(
        geometry,
        WEIGHTINGS[weighting].code,
        float(scale),
        moving,
        -np.inf if moving else float(offset),
        int(max_iter),
        float(tol),
        chunk_rows(X.shape[1]),
        swift,
        swift and geometry.p < 2,
        np.inf,
        make_groups(X.shape[1], variables),
    )


def is_constant(low, high):
    """Whether each feature has one value, as far as a fit can tell."""
    single = np.asarray(low).dtype == np.float32
    smallest = SMALLEST_SPAN_SINGLE if single else SMALLEST_SPAN
    return _half_span(low, high) < smallest / 2


def half_span(low, high):
    """Half of the range of each feature in its own type, 0 if it counts as constant."""
    return np.where(is_constant(low, high), 0, high / 2 - low / 2)


def _half_span(low, high):
    """Half of the range of each feature; the range itself may exceed the largest float."""
    return np.asarray(high, dtype=np.float64) / 2 - np.asarray(low, dtype=np.float64) / 2


def data_scale(low, high):
    """Power of two that brings the widest feature near 1, and one for each feature."""
    half = np.where(is_constant(low, high), 0.0, _half_span(low, high))

    def power_of_two(x):
        return np.ldexp(1.0, -1 - np.frexp(np.where(x > 0, x, 0.5))[1])

    return float(power_of_two(half.max())), power_of_two(half)


def extreme_unit(scale, dtype):
    """What to multiply data of this scale by, so that weights times its scale fit; mostly 1.

    Huge data is left rather large, so that its smaller features do not vanish.
    """
    single = np.dtype(dtype) == np.float32
    farthest, large = (2.0**60, 2.0**40) if single else (2.0**500, 2.0**400)
    if 1 / farthest <= scale <= farthest:
        return 1.0
    return float(scale) if scale > 1 else float(scale) * large


# Single precision is left for data whose features are farther from 0 than so many ranges,
FARTHEST_SINGLE = 2.0**8
# or so different in range that the p-th power of the ratio exceeds this.
WIDEST_SINGLE = 2.0**60


def exceeds_single(low, high, p):
    """Whether float32 would lose features of these extrema, so that float64 is needed.

    Centres far from 0 are rounded to much of their members' range, and the distances of a
    narrow feature vanish beside those of a wide one.
    """
    varies = ~is_constant(low, high)
    if not varies.any():
        return False
    low, high = np.float64(low[varies]), np.float64(high[varies])
    span = high - low
    far = (np.maximum(np.abs(low), np.abs(high)) > FARTHEST_SINGLE * span).any()
    return bool(far or p * np.log2(span.max() / span.min()) > np.log2(WIDEST_SINGLE))


def n_far(problem):
    """How many sums over far members a pass of this problem takes."""
    return FAR_TERMS if problem.anchored else 0


def first_phase(problem):
    """What a descent asks for first."""
    return MOVE if problem.swift else ASSIGN


def start(centers, feature_scale, problem, weights=None):
    """The state before the first pass; weights are uniform if not given."""
    n_clusters = len(centers)
    if weights is None:
        weights = np.full_like(centers, 1.0 / problem.groups.n_variables)
    weights = weights.astype(centers.dtype)
    scaled_weights = weights * centers.dtype.type(problem.scale)
    return State(
        centers.copy(),
        weights,
        scaled_weights,
        empty_brackets(feature_scale, n_clusters, centers.dtype, n_far(problem)),
        np.zeros(n_clusters, dtype=np.uint64),
        np.zeros(n_clusters),
        np.zeros(centers.shape),
        np.stack([centers, scaled_weights]).astype(np.float64),
        np.full((n_clusters, 3), np.nan),
        np.zeros(problem.max_iter + 1, dtype=np.uint64),
        np.full(problem.max_iter, np.nan),
        np.array([0, 0, 0, 0, 1, 0]),
    )


@njit(**EXACT)
def advance(phase, state, sums, problem):
    """Digest the sums of the plain pass just made; returns the next phase."""
    n_clusters, n_features = state.centers.shape
    brackets, geometry = state.brackets, problem.geometry
    if phase == MEASURE:
        return measure(state, sums, problem)
    if phase == ASSIGN:
        verdict = judge(state, sums, problem)
        if verdict == RESEED:
            return ASSIGN
        if verdict == END:
            return measure(state, sums, problem)
        open_clusters(state, sums)
    for l in range(n_clusters):
        for v in range(n_features):
            if brackets.open[l, v] == CLOSED:
                continue
            if phase == CENTER or begin(
                brackets,
                state.centers,
                l,
                v,
                sums.low[l, v],
                sums.high[l, v],
                sums.mass[l],
                geometry.p,
            ):
                refine(
                    brackets,
                    state.centers,
                    l,
                    v,
                    sums.terms[l],
                    sums.mass[l],
                    geometry.p,
                    geometry.tolerance,
                )
    if brackets.open.any():
        return CENTER
    weigh(state, problem)
    return ASSIGN if state.counters[REASON] in (RUNNING, CONVERGED) else STOP


@njit(**EXACT)
def judge(state, sums, problem):
    """What an assignment of all rows means: GO on, RESEED an empty cluster, or END.

    An empty cluster gets the farthest row as its centre.
    """
    n_clusters, n_features = state.centers.shape
    counters = state.counters
    changed = counters[CHANGED] + sums.changed[0] > 0
    counters[CHANGED] = 0
    if sums.farthest[0] > 0 and counters[RESEEDED] < n_clusters:
        for l in range(n_clusters):
            if sums.mass[l] == 0:
                counters[RESEEDED] += 1
                state.fingerprint[l] = 0
                for v in range(n_features):
                    state.centers[l, v] = sums.farthest_row[v]
                    state.weights[l, v] = 1 / (len(problem.groups.bounds) - 1)
                _scale_weights(state, problem)
                return RESEED
    counters[RESEEDED] = 0
    iteration = counters[ITERATION]
    seen = _all_members(sums.fingerprint)
    repeated = False
    for earlier in range(iteration):
        repeated |= state.history[earlier] == seen
    if counters[REASON] == CONVERGED or not changed:
        counters[REASON] = CONVERGED
    elif iteration == len(state.path):
        counters[REASON] = MAX_ITER
    elif repeated:
        counters[REASON] = CYCLE
    if counters[REASON] != RUNNING:
        return END
    state.history[iteration] = seen
    return GO


@njit(**EXACT)
def open_clusters(state, sums):
    """Open the centres of the clusters that changed."""
    n_clusters, n_features = state.centers.shape
    brackets = state.brackets
    first = state.counters[ITERATION] == 0
    for l in range(n_clusters):
        same = sums.fingerprint[l] == state.fingerprint[l] and not first
        state.fingerprint[l], state.mass[l] = sums.fingerprint[l], sums.mass[l]
        for v in range(n_features):
            brackets.open[l, v] = ALL if sums.mass[l] > 0 and not same else CLOSED
            if sums.mass[l] == 0:
                brackets.log_dispersion[l, v] = -np.inf


@njit(**EXACT)
def weigh(state, problem):
    """Weights of the present dispersions, which end an iteration."""
    counters, p = state.counters, problem.geometry.p
    log_dispersion = state.brackets.log_dispersion
    offset, counted = problem.log_offset, problem.log_offset
    if problem.moving_offset:
        # The moving offset belongs to no fixed objective; the path shows Eq. 3 itself.
        offset, counted = log_mean_dispersion(log_dispersion, problem.groups), -np.inf
    update_weights(state.weights, log_dispersion, offset, p, problem.weighting, problem.groups)
    _scale_weights(state, problem)
    iteration = counters[ITERATION]
    state.path[iteration] = log_objective(
        state.weights, log_dispersion, counted, p, problem.groups
    )
    if problem.tol > 0 and iteration > 0:
        fall = 1 - np.exp(state.path[iteration] - state.path[iteration - 1])
        if abs(fall) <= problem.tol:
            counters[REASON] = CONVERGED
    if _is_hopeless(state.path, iteration, problem.to_beat):
        counters[REASON] = ABANDONED
    if not (_all_finite(state.centers) and _all_finite(state.weights)):
        counters[REASON] = BROKEN
    counters[ITERATION] = iteration + 1


@njit(**EXACT)
def _all_finite(numbers):
    unsound = 0
    for l in range(len(numbers)):
        for v in range(numbers.shape[1]):
            unsound += not np.isfinite(numbers[l, v])
    return unsound == 0


@njit(**EXACT)
def _is_hopeless(path, iteration, to_beat):
    """Whether a path will end above an objective, judged by its last two steps.

    If they go on to shrink as the last one did, by a tenth at least, what is left is a
    geometric series. Twice as much is granted.
    """
    if iteration < 2 or np.isinf(to_beat):
        return False
    step, before = (
        path[iteration - 1] - path[iteration],
        path[iteration - 2] - path[iteration - 1],
    )
    ratio = min(max(step / before, 0.0), 0.9) if before > 0 else 0.9
    return path[iteration] - 2 * max(step, 0.0) * ratio / (1 - ratio) > to_beat


@njit(**EXACT)
def _scale_weights(state, problem):
    scale = state.weights.dtype.type(problem.scale)
    n_clusters, n_features = state.weights.shape
    for l in range(n_clusters):
        for v in range(n_features):
            state.scaled_weights[l, v] = state.weights[l, v] * scale


@njit(**EXACT)
def measure(state, sums, problem):
    """Dispersions of the present labels about the present centres, which end the fit."""
    n_clusters, n_features = state.centers.shape
    brackets, p = state.brackets, problem.geometry.p
    again = False
    for l in range(n_clusters):
        if sums.fingerprint[l] == state.fingerprint[l] and sums.fingerprint[l] != 0:
            continue
        for v in range(n_features):
            z = np.float64(state.centers[l, v])
            reach = max(sums.high[l, v] - z, z - sums.low[l, v])
            if not np.isfinite(reach) and sums.mass[l] > 0:
                state.counters[REASON] = BROKEN
                return STOP
            if sums.mass[l] == 0 or reach < smallest_span(state.centers):
                brackets.log_dispersion[l, v] = -np.inf
                continue
            scale = brackets.scale[l, v]
            if fits(scale, reach, p):
                brackets.log_dispersion[l, v] = np.log(sums.terms[l, SPREAD, v]) - p * np.log(
                    scale
                )
            else:
                brackets.scale[l, v] = fitting_scale(sums.low[l, v], sums.high[l, v], z, p)
                again = True
    return MEASURE if again else STOP


@njit(**EXACT)
def _all_members(fingerprints):
    """One hash of the whole labelling."""
    seen = np.uint64(0)
    for l in range(len(fingerprints)):
        mixed = (fingerprints[l] + np.uint64(l)) * np.uint64(0xBF58476D1CE4E5B9)
        seen = seen * np.uint64(31) + (mixed ^ (mixed >> np.uint64(29)))
    return seen
