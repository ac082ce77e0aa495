"""The one fit loop: assign, centre, weight, stop.

The loop is a machine that asks for a pass over the data and decides, from the merged
sums of that pass alone, what to ask for next. All decisions are in `advance`; who runs
the passes (one thread, several, a cluster of machines) makes no difference to them.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numba import njit

from cafelearn.kernels.assign import (
    Geometry,
    buffer,
    chunk_rows,
    make_geometry,
    member_chunk,
    relabel_chunk,
)
from cafelearn.kernels.centers import (
    Brackets,
    begin,
    empty_brackets,
    fits,
    fitting_scale,
    refine,
)
from cafelearn.kernels.members import empty_members, gather_members, gathered_chunk
from cafelearn.kernels.power import EXACT
from cafelearn.kernels.sums import SPREAD, Sums, clear, empty_sums, merge
from cafelearn.kernels.weights import log_mean, log_objective, update_weights

# What the loop asks for: a pass that assigns every row and looks at the old centres; a
# pass that looks at the centres still open; a pass that only measures; nothing more.
ASSIGN, CENTER, MEASURE, STOP = range(4)
RUNNING, CONVERGED, CYCLE, MAX_ITER = range(4)
STOP_REASONS = {CONVERGED: "converged", CYCLE: "cycle", MAX_ITER: "max_iter"}

# Places in State.counters.
ITERATION, RESEEDED, REASON, EXACT_SINCE = range(4)

# With many rows, and while labels still change, a centre may be off by this fraction of the
# step it takes: the descent goes on with it, and ends only with exact centres.
HASTE = 0.2
HASTY_ROWS = 5_000


class Problem(NamedTuple):
    """What stays fixed during a fit."""

    geometry: Geometry
    scale: float  # power of two that brings the data's range near 1
    moving_offset: bool  # the offset is the mean of all dispersions at each update
    log_offset: float  # else this constant
    max_iter: int
    tol: float
    chunk: int  # rows per chunk
    haste: float  # see HASTE; 0 solves every centre exactly every time


class State(NamedTuple):
    """What the loop changes, beside the labels."""

    centers: np.ndarray  # (k, m)
    weights: np.ndarray  # (k, m)
    scaled_weights: np.ndarray  # (k, m), weights times Problem.scale
    brackets: Brackets
    fingerprint: np.ndarray  # (k,) members at the last centre update
    history: np.ndarray  # one hash of all labels per iteration
    path: np.ndarray  # log of the objective per iteration
    counters: np.ndarray


class FitResult(NamedTuple):
    """One finished descent. Logs, because the values may not fit into a float."""

    labels: np.ndarray
    centers: np.ndarray
    weights: np.ndarray
    log_dispersions: np.ndarray
    log_inertia: float
    log_path: np.ndarray
    n_iter: int
    stop_reason: str
    n_found: int


def make_problem(X, p, scale, offset, max_iter, tol):
    """A Problem for these rows. `offset` is "mean" or the log of a constant."""
    moving = isinstance(offset, str)
    return Problem(
        make_geometry(p, X.dtype),
        float(scale),
        moving,
        -np.inf if moving else float(offset),
        int(max_iter),
        float(tol),
        chunk_rows(X.shape[1]),
        HASTE if len(X) > HASTY_ROWS else 0.0,
    )


def data_scale(low, high):
    """Power of two that brings the widest feature near 1, and one for each feature."""
    span = np.asarray(high, dtype=np.float64) - low

    def power_of_two(x):
        x = np.where((x > 0) & np.isfinite(x), x, 1.0)
        return np.ldexp(1.0, -np.frexp(x)[1])

    return float(power_of_two(span.max())), power_of_two(span)


def start(centers, feature_scale, problem):
    """The state before the first pass."""
    n_clusters, n_features = centers.shape
    weights = np.full_like(centers, 1.0 / n_features)
    return State(
        centers.copy(),
        weights,
        weights * centers.dtype.type(problem.scale),
        empty_brackets(feature_scale, n_clusters),
        np.zeros(n_clusters, dtype=np.uint64),
        np.zeros(problem.max_iter + 1, dtype=np.uint64),
        np.full(problem.max_iter, np.nan),
        np.array([0, 0, 0, -1 if problem.haste > 0 else 0]),
    )


@njit(**EXACT)
def chunk_pass(sums, phase, state, labels, X, sample_weight, first, last, geometry):
    """What one chunk of rows has to say to this phase."""
    if phase == ASSIGN:
        relabel_chunk(
            sums,
            labels,
            X,
            sample_weight,
            first,
            last,
            state.centers,
            state.scaled_weights,
            state.brackets,
            geometry,
        )
    else:
        member_chunk(
            sums,
            labels,
            X,
            sample_weight,
            first,
            last,
            state.centers,
            state.brackets,
            geometry,
            phase == MEASURE,
        )


@njit(**EXACT)
def advance(phase, state, sums, problem):
    """Digest the sums of the pass just made; returns the next phase."""
    if phase == ASSIGN:
        return _after_assignment(state, sums, problem)
    if phase == MEASURE:
        return _measure(state, sums, problem)
    n_clusters, n_features = state.centers.shape
    brackets, geometry = state.brackets, problem.geometry
    for l in range(n_clusters):
        for v in range(n_features):
            if brackets.open[l, v]:
                refine(
                    brackets,
                    state.centers,
                    l,
                    v,
                    sums.terms[l],
                    sums.mass[l],
                    geometry.p,
                    geometry.tolerance,
                    problem.haste if state.counters[EXACT_SINCE] < 0 else 0.0,
                )
    return CENTER if brackets.open.any() else _update_weights(state, problem)


@njit(**EXACT)
def _after_assignment(state, sums, problem):
    n_clusters, n_features = state.centers.shape
    counters = state.counters
    if sums.farthest[0] > 0 and counters[RESEEDED] < n_clusters:
        for l in range(n_clusters):
            if sums.mass[l] == 0:
                counters[RESEEDED] += 1
                state.fingerprint[l] = 0
                for v in range(n_features):
                    state.centers[l, v] = sums.farthest_row[v]
                    state.weights[l, v] = 1 / n_features
                _scale_weights(state, problem)
                return ASSIGN
    counters[RESEEDED] = 0
    iteration = counters[ITERATION]
    seen = _all_members(sums.fingerprint)
    exact = counters[EXACT_SINCE] >= 0
    repeated = sums.changed[0] == 0
    for earlier in range(max(counters[EXACT_SINCE], 0), iteration):
        repeated |= state.history[earlier] == seen
    if counters[REASON] == CONVERGED or (exact and sums.changed[0] == 0):
        counters[REASON] = CONVERGED
    elif iteration == len(state.path):
        counters[REASON] = MAX_ITER
    elif exact and repeated:
        counters[REASON] = CYCLE
    elif repeated:
        # Labels that come back under hasty centres prove nothing; go on with exact ones.
        counters[EXACT_SINCE] = iteration
        for l in range(n_clusters):
            state.fingerprint[l] = 0
    if counters[REASON] != RUNNING:
        return _measure(state, sums, problem)
    state.history[iteration] = seen
    return _begin_centers(state, sums, problem)


@njit(**EXACT)
def _begin_centers(state, sums, problem):
    """Open the centres of the clusters that changed and use the sums of the assignment."""
    n_clusters, n_features = state.centers.shape
    brackets, geometry = state.brackets, problem.geometry
    first = state.counters[ITERATION] == 0
    for l in range(n_clusters):
        same = sums.fingerprint[l] == state.fingerprint[l] and not first
        state.fingerprint[l] = sums.fingerprint[l]
        for v in range(n_features):
            if sums.mass[l] == 0:
                brackets.open[l, v] = False
                brackets.log_dispersion[l, v] = -np.inf
            elif same:
                brackets.open[l, v] = False
            elif begin(
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
                    problem.haste if state.counters[EXACT_SINCE] < 0 else 0.0,
                )
    return CENTER if brackets.open.any() else _update_weights(state, problem)


@njit(**EXACT)
def _update_weights(state, problem):
    counters, p = state.counters, problem.geometry.p
    log_dispersion = state.brackets.log_dispersion
    offset, counted = problem.log_offset, problem.log_offset
    if problem.moving_offset:
        # The moving offset belongs to no fixed objective; the path shows Eq. 3 itself.
        offset, counted = log_mean(log_dispersion), -np.inf
    update_weights(state.weights, log_dispersion, offset, p)
    _scale_weights(state, problem)
    iteration = counters[ITERATION]
    state.path[iteration] = log_objective(state.weights, log_dispersion, counted, p)
    if problem.tol > 0 and iteration > 0:
        fall = 1 - np.exp(state.path[iteration] - state.path[iteration - 1])
        if abs(fall) <= problem.tol:
            counters[REASON] = CONVERGED
    counters[ITERATION] = iteration + 1
    return ASSIGN


@njit(**EXACT)
def _scale_weights(state, problem):
    scale = state.weights.dtype.type(problem.scale)
    n_clusters, n_features = state.weights.shape
    for l in range(n_clusters):
        for v in range(n_features):
            state.scaled_weights[l, v] = state.weights[l, v] * scale


@njit(**EXACT)
def _measure(state, sums, problem):
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
            if sums.mass[l] == 0 or reach == 0:
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


def empty_stack(n_chunks, n_clusters, n_features):
    """Room for the sums of the chunks of one pass while they are being merged.

    Sums are merged like the numbers of a binary counter: of two neighbours of equal size,
    the left one beginning at a multiple of twice that size. This tree is the same however
    the chunks are divided among workers, and so are the bits of the total.
    """
    one = empty_sums(n_clusters, n_features)
    depth = int(n_chunks).bit_length() + 1
    return Sums(*(np.empty((depth, *field.shape), dtype=field.dtype) for field in one))


@njit(**EXACT)
def stacked(stack, place):
    """The sums at one place of a stack."""
    return Sums(
        stack.mass[place],
        stack.fingerprint[place],
        stack.low[place],
        stack.high[place],
        stack.terms[place],
        stack.changed[place],
        stack.farthest[place],
        stack.farthest_row[place],
    )


@njit(**EXACT)
def settle(stack, depth, done, first):
    """Merge what can be merged once the chunks first <= i < done are on the stack."""
    size = 1
    while done % (2 * size) == 0 and done - 2 * size >= first:
        merge(stacked(stack, depth - 2), stacked(stack, depth - 1))
        depth -= 1
        size *= 2
    return depth


@njit(**EXACT)
def total_of(stack, depth):
    """The sums over all chunks, from what is left on the stack after the last one."""
    while depth > 1:
        merge(stacked(stack, depth - 2), stacked(stack, depth - 1))
        depth -= 1
    return stacked(stack, 0)


@njit(**EXACT)
def _descend(phase, state, stack, members, labels, X, sample_weight, problem):
    """Run to the end on this thread, without the interpreter."""
    rows, geometry = problem.chunk, problem.geometry
    n_clusters, n_features = state.centers.shape
    small = len(members.first) > 1
    powers = buffer(n_features if small and geometry.p > 2 else np.int64(1), X)
    while phase != STOP:
        depth = 0
        for first in range(0, len(X), rows):
            last = min(first + rows, len(X))
            part = stacked(stack, depth)
            clear(part)
            if small and phase == CENTER:
                gathered_chunk(
                    part,
                    members,
                    first // rows,
                    powers,
                    state.centers,
                    state.brackets,
                    geometry,
                )
            else:
                chunk_pass(part, phase, state, labels, X, sample_weight, first, last, geometry)
            depth = settle(stack, depth + 1, first // rows + 1, 0)
        before = phase
        phase = advance(phase, state, total_of(stack, depth), problem)
        if small and before == ASSIGN and phase == CENTER:
            gather_members(members, labels, X, sample_weight, rows, n_clusters)


def _descend_in_threads(state, stack, labels, X, sample_weight, problem, pool, n_threads):
    """The same with the chunks of each pass spread over threads, merged in their order."""
    n_clusters, n_features = state.centers.shape
    # Enough parts to keep the threads busy, few enough not to pile up in memory.
    parts = [empty_sums(n_clusters, n_features) for _ in range(4 * n_threads)]

    def run(part, phase, first):
        last = min(first + problem.chunk, len(X))
        clear(part)
        chunk_pass(part, phase, state, labels, X, sample_weight, first, last, problem.geometry)
        return part

    phase, under_way = ASSIGN, []
    depth = done = 0

    def take():
        nonlocal depth, done
        for into, field in zip(stack, under_way.pop(0).result(), strict=True):
            into[depth] = field
        done += 1
        depth = settle(stack, depth + 1, done, 0)

    while phase != STOP:
        depth = done = 0
        for position, first in enumerate(range(0, len(X), problem.chunk)):
            if len(under_way) == len(parts):
                take()
            part = parts[position % len(parts)]
            under_way.append(pool.submit(run, part, phase, first))
        while under_way:
            take()
        phase = advance(phase, state, total_of(stack, depth), problem)


def descend(X, sample_weight, centers, feature_scale, problem, n_threads=1):
    """Run one descent from the given centres to its end.

    X is C-contiguous float32 or float64, `centers` of the same type; `sample_weight` is
    float64 of length n. With several threads the rows of each pass are divided among them;
    the result has the same bits for any number.
    """
    state = start(np.ascontiguousarray(centers, dtype=X.dtype), feature_scale, problem)
    labels = np.full(len(X), -1, dtype=np.int32)
    shape = state.centers.shape
    stack = empty_stack(-(-len(X) // problem.chunk), *shape)
    if n_threads > 1 and len(X) > problem.chunk:
        with ThreadPoolExecutor(n_threads) as pool:
            _descend_in_threads(
                state, stack, labels, X, sample_weight, problem, pool, n_threads
            )
    else:
        members = empty_members(X, shape[0], problem.chunk)
        _descend(ASSIGN, state, stack, members, labels, X, sample_weight, problem)
    return make_result(state, labels, problem, len(np.unique(labels)))


def make_result(state, labels, problem, n_found):
    """What a descent that has stopped has found."""
    n_iter = int(state.counters[ITERATION])
    log_dispersions = state.brackets.log_dispersion
    return FitResult(
        labels,
        state.centers,
        state.weights,
        log_dispersions,
        log_objective(state.weights, log_dispersions, -np.inf, problem.geometry.p),
        state.path[:n_iter].copy(),
        n_iter,
        STOP_REASONS[int(state.counters[REASON])],
        n_found,
    )


def one_cluster(X, sample_weight, feature_scale, p):
    """Minkowski centre of all rows and the log of their dispersions about it."""
    problem = one_cluster_problem(X, p)
    first = X[np.flatnonzero(sample_weight > 0)[0]]
    result = descend(X, sample_weight, first[None, :], feature_scale, problem)
    return result.centers[0], result.log_dispersions[0]


def one_cluster_problem(X, p):
    """The Problem of the Minkowski centre of all rows."""
    return make_problem(X, p, 1.0, -np.inf, 1, 0.0)._replace(haste=0.0)
