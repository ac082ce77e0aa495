"""Run one descent: passes over the rows, on one thread or several, until it stops.

Where a value is missing, its distance from a centre is replaced by a typical distance (see
`kernels.gaps`). The array `typical` holds these distances by cluster and feature. It is None
for complete rows.
"""

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import NamedTuple

import numpy as np

from cafelearn.data.gaps import observed_extremes
from cafelearn.kmeans.iteration import (
    ASSIGN,
    BROKEN,
    CENTERS,
    ITERATION,
    REASON,
    RESEEDED,
    STOP,
    STOP_REASONS,
    State,
    advance,
    make_problem,
    start,
)
from cafelearn.kmeans.kernels.assign import add_members, assign_chunk, fill_mass
from cafelearn.kmeans.kernels.blocks import make_scratch
from cafelearn.kmeans.kernels.cells import CENTER, LOG_DISPERSION, WEIGHT
from cafelearn.kmeans.kernels.compiling import ENTRY, njit
from cafelearn.kmeans.kernels.gaps import (
    gapped_assign_chunk,
    gapped_member_chunk,
    stand_for_all,
)
from cafelearn.kmeans.kernels.sums import CHANGED, MASS_OF_ALL, clear, empty_stack, merge_stack
from cafelearn.kmeans.kernels.vectors import minimum

# One compiled call makes several short passes, of about this many terms |x - z|^p together.
# Longer passes are split into several calls, because Python handles interrupts only between
# calls.
WORK_PER_CALL = 2**27
# Time per term of rows with gaps, as a multiple of that of complete rows.
SLOWNESS_OF_GAPS = 16


class FitResult(NamedTuple):
    """Result of a descent, with logarithms of values that may exceed the range of floats."""

    labels: np.ndarray
    centers: np.ndarray
    weights: np.ndarray
    log_dispersions: np.ndarray
    log_inertia: float
    log_path: np.ndarray
    n_iter: int
    stop_reason: str
    mass: np.ndarray  # (k,) sum of the sample weights of each cluster's members
    typical: np.ndarray | None = None  # (k, m)

    @property
    def n_found(self):
        """Number of clusters that have members."""
        return int((self.mass > 0).sum())


class Seed(NamedTuple):
    """Initial state of a descent."""

    centers: np.ndarray  # (k, m)
    weights: np.ndarray | None = None  # (k, m), uniform if None
    typical: np.ndarray | None = None  # (k, m)


class Rows(NamedTuple):
    """The rows of a descent."""

    X: np.ndarray  # (n, m) C-contiguous float32 or float64
    weight: np.ndarray  # (n,) float64
    labels: np.ndarray  # (n,) int32, updated by the passes


class Span(NamedTuple):
    """The chunks first <= i < last that one call of `run_passes` sums."""

    first: int
    last: int
    numbered: int = 0  # index of the first chunk of X in the tree of all chunks
    n_passes: int = 0  # passes to make, each advancing the state; 0: sum once, do not advance


# With this span, which contains no chunks, `run_passes` advances the state by stack[0].
ADVANCE = Span(0, 0, 0, 1)


@njit(**ENTRY)
def run_passes(phase, state, stack, rows, problem, span, scratch):
    """Sum chunks of rows for `phase`, and merge the sums on `stack` (see `merge_stack`).

    With `span.n_passes` = 0, return the depth of the stack. Otherwise advance the state after
    each pass, and return the next phase; the span must then contain all chunks or be `ADVANCE`.
    """
    cells, geometry, n_passes = state.cells, problem.geometry, span.n_passes
    while True:
        depth = 0
        for chunk in range(span.first, span.last):
            first = chunk * problem.chunk
            last = minimum(first + problem.chunk, len(rows.X))
            X, weight = rows.X[first:last], rows.weight[first:last]
            labels = rows.labels[first:last]
            sums = stack[depth]
            clear(sums)
            if phase == ASSIGN:
                assign_chunk(sums, labels, X, weight, first, cells, geometry, scratch)
            else:
                for i in range(len(X)):
                    scratch.members[i] = labels[i] if weight[i] > 0 else -1
            if phase != ASSIGN or sums[-1, CHANGED, 0] > 0:
                add_members(sums, X, weight, cells, geometry, phase != CENTERS, scratch)
            fill_mass(sums)
            done, begin = span.numbered + chunk + 1, span.numbered + span.first
            depth = merge_stack(stack, depth + 1, done, begin)
        if n_passes == 0:
            return depth
        merge_stack(stack, depth, span.first, span.first)
        phase = advance(phase, state, stack[0], problem)
        n_passes -= 1
        if phase == STOP or n_passes == 0:
            return phase


def scratch_for(X, n_clusters, problem):
    """Allocate the scratch buffers of `run_passes` for one thread."""
    return make_scratch(X, n_clusters, min(len(X), problem.chunk), problem.geometry.p)


def sum_chunks(phase, cells, stack, rows, problem, span, scratch, typical=None):
    """Sum chunks of rows once, with or without missing values; return the stack's depth."""
    if typical is None:
        state = State(cells, np.empty(0, np.uint64), np.empty(0), np.empty(0, np.int64))
        return run_passes(phase, state, stack, rows, problem, span, scratch)
    depth, geometry = 0, problem.geometry
    for chunk in range(span.first, span.last):
        first, sums = chunk * problem.chunk, stack[depth]
        X, weight, labels = (part[first : first + problem.chunk] for part in rows)
        clear.from_python(sums)
        if phase == ASSIGN:
            gapped_assign_chunk(sums, labels, X, weight, first, cells, typical, geometry)
        else:
            everything = phase != CENTERS
            gapped_member_chunk(sums, labels, X, weight, cells, geometry, everything)
        done, begin = span.numbered + chunk + 1, span.numbered + span.first
        depth = merge_stack.from_python(stack, depth + 1, done, begin)
    return depth


def advance_by(phase, state, stack, problem, typical=None):
    """Advance the state by the sums of a pass in stack[0]; return the next phase.

    `typical` is updated in place before each assignment.
    """
    cells, p = state.cells, problem.geometry.p
    n_clusters, _, n_features = cells.shape
    if typical is not None:
        stand_for_all(stack[0], cells, typical, p)
    nothing = np.empty((0, n_features), np.float32 if problem.geometry.single else np.float64)
    rows = Rows(nothing, np.empty(0), np.empty(0, np.int32))
    scratch = scratch_for(nothing, n_clusters, problem)
    phase = run_passes(phase, state, stack, rows, problem, ADVANCE, scratch)
    if typical is not None and phase == ASSIGN:
        _update_typical(typical, state, stack[0, :-1, MASS_OF_ALL, 0], p)
    return phase


def _update_typical(typical, state, mass, p):
    """Set the typical distances for the next assignment."""
    if state.counters[RESEEDED] > 0:
        # A row has become the centre of the first empty cluster. The row must be assigned to
        # that cluster, even if some of its values are missing.
        typical[np.flatnonzero(mass == 0)[0]] = 0.0
        return
    logs = np.log(np.where(mass > 0, mass, 1.0))[:, None]
    typical[:] = np.exp((state.cells[:, LOG_DISPERSION] - logs) / p)


def _run_in_parts(state, stack, rows, problem, typical, n_threads, interrupted):
    """Make all passes, each divided into parts; merge the sums of the parts in order."""
    n_chunks, shape = -(-len(rows.X) // problem.chunk), state.cells.shape[::2]
    work = problem.chunk * shape[0] * shape[1] * (1 if typical is None else SLOWNESS_OF_GAPS)
    at_once = _chunks_at_once(n_chunks, n_threads, work)
    # Buffers for the parts under way. Their number keeps threads busy and bounds the memory.
    parts = [
        (empty_stack(n_chunks, *shape), scratch_for(rows.X, shape[0], problem))
        for _ in range(min(4 * n_threads, -(-n_chunks // at_once)))
    ]

    def run(part, phase, first):
        sums, scratch = part
        span = Span(first, min(first + at_once, n_chunks))
        if not interrupted.is_set():
            depth = sum_chunks(phase, state.cells, sums, rows, problem, span, scratch, typical)
            merge_stack.from_python(sums, depth, 0, 0)
        return sums[0]

    phase, pool = ASSIGN, ThreadPoolExecutor(n_threads)
    # With one thread, the pool is not used, because submitting a task can take longer than a
    # short pass.
    submit, result_of = (pool.submit, Future.result) if n_threads > 1 else (partial, _call)
    try:
        while phase != STOP and not interrupted.is_set():
            under_way, depth, done = deque(), 0, 0
            firsts = deque(range(0, n_chunks, at_once))
            while firsts or under_way:
                while firsts and len(under_way) < len(parts):
                    part = parts[firsts[0] // at_once % len(parts)]
                    under_way.append(submit(run, part, phase, firsts.popleft()))
                stack[depth] = result_of(under_way.popleft())
                done += 1
                depth = merge_stack.from_python(stack, depth + 1, done, 0)
            merge_stack.from_python(stack, depth, 0, 0)
            phase = advance_by(phase, state, stack, problem, typical)
    finally:
        pool.shutdown(cancel_futures=True)


def _call(function):
    return function()


def _chunks_at_once(n_chunks, n_threads, work):
    """Return the number of chunks in a part, if one chunk takes as long as `work` terms.

    It is a power of two, the size of a node of the tree, so that results do not depend on the
    number of threads, not even in the last bit. It is small, so that no thread waits long for
    another, and an interrupt is handled soon.
    """
    most = min(n_chunks // (8 * n_threads), WORK_PER_CALL // work)
    return 1 << max(most.bit_length() - 1, 0)


def descend(X, sample_weight, seed, feature_scale, problem, n_threads=1, interrupted=None):
    """Run one descent from a Seed, or from centres alone, to its end.

    X is float32 or float64; `sample_weight` is float64 of length n. With several threads the
    rows of each pass are divided among them; the number of threads does not change the result.
    If the Event `interrupted` is set, the descent stops and raises RuntimeError.
    """
    interrupted = interrupted or Event()
    X = np.ascontiguousarray(X)  # required by the kernels
    centers, weights, typical = seed if isinstance(seed, Seed) else Seed(seed)
    centers = np.ascontiguousarray(centers, dtype=X.dtype)
    state = start(centers, feature_scale, problem, weights)
    rows = Rows(X, sample_weight, np.full(len(X), -1, dtype=np.int32))
    n_chunks, n_clusters = -(-len(X) // problem.chunk), len(centers)
    stack = empty_stack(n_chunks, *centers.shape)
    n_passes = WORK_PER_CALL // (X.size * n_clusters)
    n_threads = min(n_threads, n_chunks)
    if typical is not None:
        typical = np.array(typical, dtype=np.float64)
    if typical is not None or n_threads > 1 or (n_chunks > 1 and n_passes == 0):
        _run_in_parts(state, stack, rows, problem, typical, n_threads, interrupted)
    else:
        phase, span = ASSIGN, Span(0, n_chunks, 0, max(n_passes, 1))
        scratch = scratch_for(X, n_clusters, problem)
        while phase != STOP and not interrupted.is_set():
            phase = run_passes(phase, state, stack, rows, problem, span, scratch)
    if interrupted.is_set():
        raise RuntimeError("the descent was interrupted.")
    mass = np.bincount(rows.labels, sample_weight, n_clusters)
    return make_result(state, rows.labels, X.dtype, mass, typical)


def make_result(state, labels, dtype, mass, typical=None):
    """Return the FitResult of a stopped descent; centres and weights are of type `dtype`."""
    if state.counters[REASON] == BROKEN:
        raise ValueError(
            "mwk-means ended with centres or weights that are not finite. Scale the features, "
            "for instance with cafelearn.RangeScaler."
        )
    n_iter = int(state.counters[ITERATION])
    return FitResult(
        labels,
        state.cells[:, CENTER].astype(dtype),
        state.cells[:, WEIGHT].astype(dtype),
        state.cells[:, LOG_DISPERSION].copy(),
        state.log_inertia,
        state.path[:n_iter].copy(),
        n_iter,
        STOP_REASONS[int(state.counters[REASON])],
        mass,
        typical,
    )


def one_cluster(X, sample_weight, feature_scale, p, gaps=False):
    """Compute the Minkowski centre of all rows and the log dispersions about it."""
    first, typical = X[np.flatnonzero(sample_weight > 0)[0]], None
    if gaps:
        first = np.where(np.isnan(first), observed_extremes(X[sample_weight > 0])[0], first)
        typical = np.zeros((1, X.shape[1]))
    problem = one_cluster_problem(X, p)
    seed = Seed(first[None, :], typical=typical)
    result = descend(X, sample_weight, seed, feature_scale, problem)
    return result.centers[0], result.log_dispersions[0]


def one_cluster_problem(X, p):
    """Make the Problem of finding the Minkowski centre of all rows."""
    return make_problem(X, p, 1.0, -np.inf, 1, 0.0)
