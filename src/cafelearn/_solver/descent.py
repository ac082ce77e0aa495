"""Run one descent to its end: the passes over the rows, on one thread or several."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import NamedTuple

import numpy as np

from cafelearn._gaps import observed_extremes
from cafelearn._solver.iteration import (
    ASSIGN,
    BROKEN,
    CENTERS,
    ITERATION,
    REASON,
    RESEEDED,
    STOP,
    STOP_REASONS,
    advance,
    make_problem,
    start,
)
from cafelearn._solver.kernels.assign import add_members, assign_chunk, fill_mass
from cafelearn._solver.kernels.blocks import make_scratch
from cafelearn._solver.kernels.cells import CENTER, LOG_DISPERSION, WEIGHT
from cafelearn._solver.kernels.compiling import ENTRY, njit
from cafelearn._solver.kernels.gaps import (
    gapped_assign_chunk,
    gapped_member_chunk,
    stand_for_all,
)
from cafelearn._solver.kernels.sums import (
    CHANGED,
    clear,
    empty_stack,
    empty_sums,
    merge_stack,
)

# Terms |x - z|^p of a compiled call, about, so that Python can handle an interrupt in between.
WORK_PER_CALL = 2**27


class FitResult(NamedTuple):
    """One finished descent. Logarithms, because the values may exceed the range of floats."""

    labels: np.ndarray
    centers: np.ndarray
    weights: np.ndarray
    log_dispersions: np.ndarray
    log_inertia: float
    log_path: np.ndarray
    n_iter: int
    stop_reason: str
    n_found: int
    mass: np.ndarray  # (k,) sample weight of the members of each cluster
    typical: np.ndarray | None = None  # (k, m) distance that a gap counts for; None: no gaps


class Seed(NamedTuple):
    """Initial state of a descent."""

    centers: np.ndarray  # (k, m)
    weights: np.ndarray | None = None  # (k, m), uniform if None
    typical: np.ndarray | None = None  # (k, m) distance that a gap counts for; None: no gaps


class Rows(NamedTuple):
    """The rows of a descent."""

    X: np.ndarray  # (n, m) C-contiguous float32 or float64
    weight: np.ndarray  # (n,) float64
    labels: np.ndarray  # (n,) int32, updated by the passes


class Span(NamedTuple):
    """The chunks that one call of `run_passes` works on."""

    first: int
    last: int
    numbered: int = 0  # number of the first chunk of X in the tree
    n_passes: int = 0  # passes to make, advancing the state; 0: only sum these chunks


# Advance the state by the sums in stack[0], without a pass.
ADVANCE = Span(0, 0, 0, 1)


@njit(**ENTRY)
def run_passes(phase, state, stack, rows, problem, span, scratch):
    """Sum chunks of rows for `phase`, merged in the tree, from the bottom of the stack on.

    If `span.n_passes` > 0, the span must be all chunks. The state is then advanced after each
    pass, and the next phase is returned; otherwise the depth of the stack is.
    """
    cells, geometry, n_passes = state.cells, problem.geometry, span.n_passes
    while True:
        depth = 0
        for chunk in range(span.first, span.last):
            first = chunk * problem.chunk
            last = min(first + problem.chunk, len(rows.X))
            X, weight, labels = (
                rows.X[first:last],
                rows.weight[first:last],
                rows.labels[first:last],
            )
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
    """Scratch of `run_passes` for one thread."""
    return make_scratch(X, n_clusters, min(len(X), problem.chunk), problem.geometry.p)


def _run_in_parts(state, stack, rows, problem, n_threads, interrupted):
    """Make all passes with their chunks spread over threads, merged in their order."""
    n_chunks, shape = -(-len(rows.X) // problem.chunk), state.cells.shape[::2]
    at_once = _chunks_at_once(n_chunks, n_threads)
    # Enough parts to keep the threads busy, few enough to bound the memory.
    parts = [
        (empty_stack(n_chunks, *shape), scratch_for(rows.X, shape[0], problem))
        for _ in range(4 * n_threads)
    ]

    def run(part, phase, first):
        sums, scratch = part
        span = Span(first, min(first + at_once, n_chunks))
        if not interrupted.is_set():
            depth = run_passes(phase, state, sums, rows, problem, span, scratch)
            merge_stack(sums, depth, 0, 0)
        return sums[0]

    phase, pool = ASSIGN, ThreadPoolExecutor(n_threads)
    try:
        while phase != STOP and not interrupted.is_set():
            under_way, depth, done = deque(), 0, 0
            firsts = deque(range(0, n_chunks, at_once))
            while firsts or under_way:
                while firsts and len(under_way) < len(parts):
                    part = parts[firsts[0] // at_once % len(parts)]
                    under_way.append(pool.submit(run, part, phase, firsts.popleft()))
                stack[depth] = under_way.popleft().result()
                done += 1
                depth = merge_stack(stack, depth + 1, done, 0)
            merge_stack(stack, depth, 0, 0)
            phase = run_passes(phase, state, stack, rows, problem, ADVANCE, parts[0][1])
    finally:
        pool.shutdown(cancel_futures=True)


def _run_with_gaps(state, stack, rows, problem, typical, n_threads, interrupted):
    """Make all passes over rows with gaps, with their chunks spread over threads.

    `typical`, the distances that gaps count for, is updated after each iteration.
    """
    n_clusters, n_features = typical.shape
    n_chunks, geometry = -(-len(rows.X) // problem.chunk), problem.geometry
    parts = empty_sums(n_clusters, n_features, n_chunks)
    scratch = scratch_for(rows.X, n_clusters, problem)
    phase, pool = ASSIGN, ThreadPoolExecutor(n_threads)

    def run(chunk):
        first, sums = chunk * problem.chunk, parts[chunk]
        X, weight, labels = (part[first : first + problem.chunk] for part in rows)
        clear(sums)
        if interrupted.is_set():
            return
        if phase == ASSIGN:
            gapped_assign_chunk(sums, labels, X, weight, first, state.cells, typical, geometry)
        else:
            everything = phase != CENTERS
            gapped_member_chunk(sums, labels, X, weight, state.cells, geometry, everything)

    try:
        each = pool.map if n_threads > 1 and n_chunks > 1 else map
        while phase != STOP and not interrupted.is_set():
            list(each(run, range(n_chunks)))
            depth = 0
            for done in range(1, n_chunks + 1):
                stack[depth] = parts[done - 1]
                depth = merge_stack(stack, depth + 1, done, 0)
            merge_stack(stack, depth, 0, 0)
            mass = np.bincount(rows.labels, rows.weight, n_clusters)
            stand_for_all(stack[0], state.cells, mass, typical, geometry.p)
            phase = run_passes(phase, state, stack, rows, problem, ADVANCE, scratch)
            if phase == ASSIGN:
                _update_typical(typical, state, mass, geometry.p)
    finally:
        pool.shutdown(cancel_futures=True)


def _update_typical(typical, state, mass, p):
    """Set the distances that gaps count for in the next assignment."""
    if state.counters[RESEEDED] > 0:
        # A row that is its own centre must stay assigned to it despite its gaps.
        typical[np.flatnonzero(mass == 0)[0]] = 0.0
        return
    logs = np.log(np.where(mass > 0, mass, 1.0))[:, None]
    typical[:] = np.exp((state.cells[:, LOG_DISPERSION] - logs) / p)


def _chunks_at_once(n_chunks, n_threads):
    """Number of chunks of one task.

    As many as there are under a node of the tree, so that the bits do not depend on the number
    of threads; few enough that no thread waits long for another.
    """
    at_once = 1
    while 2 * at_once * 8 * n_threads <= n_chunks:
        at_once *= 2
    return at_once


def descend(X, sample_weight, seed, feature_scale, problem, n_threads=1, interrupted=None):
    """Run one descent from a Seed, or from centres alone, to its end.

    X is float32 or float64; `sample_weight` is float64 of length n. With several threads the
    rows of each pass are divided among them; the result has the same bits for any number.
    Setting the Event `interrupted` ends the descent.
    """
    interrupted = interrupted or Event()
    X = np.ascontiguousarray(X)  # as the kernels assume
    centers, weights, typical = seed if isinstance(seed, Seed) else Seed(seed)
    centers = np.ascontiguousarray(centers, dtype=X.dtype)
    state = start(centers, feature_scale, problem, weights)
    rows = Rows(X, sample_weight, np.full(len(X), -1, dtype=np.int32))
    n_chunks, n_clusters = -(-len(X) // problem.chunk), len(centers)
    stack = empty_stack(n_chunks, *centers.shape)
    n_passes = WORK_PER_CALL // (X.size * n_clusters)
    if typical is not None:
        typical = np.array(typical, dtype=np.float64)
        _run_with_gaps(state, stack, rows, problem, typical, n_threads, interrupted)
    elif n_chunks > 1 and (n_threads > 1 or n_passes == 0):
        _run_in_parts(state, stack, rows, problem, n_threads, interrupted)
    else:
        phase, span = ASSIGN, Span(0, n_chunks, 0, max(n_passes, 1))
        scratch = scratch_for(X, n_clusters, problem)
        while phase != STOP and not interrupted.is_set():
            phase = run_passes(phase, state, stack, rows, problem, span, scratch)
    if interrupted.is_set():
        raise RuntimeError("the descent was interrupted.")
    mass = np.bincount(rows.labels, sample_weight, n_clusters)
    result = make_result(state, rows.labels, X.dtype, len(np.unique(rows.labels)), mass)
    return result._replace(typical=typical)


def make_result(state, labels, dtype, n_found, mass):
    """The result of a descent that has stopped; centres and weights of type `dtype`."""
    if state.counters[REASON] == BROKEN:
        raise ValueError(
            "mwk-means ended in centres or weights that are not finite numbers. Scale the "
            "features, for instance with cafelearn.RangeScaler."
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
        n_found,
        mass,
    )


def one_cluster(X, sample_weight, feature_scale, p, gaps=False):
    """Minkowski centre of all rows and the log of their dispersions about it."""
    first, typical = X[np.flatnonzero(sample_weight > 0)[0]], None
    if gaps:
        first = np.where(np.isnan(first), observed_extremes(X)[0], first)
        typical = np.zeros((1, X.shape[1]))
    problem = one_cluster_problem(X, p)
    seed = Seed(first[None, :], typical=typical)
    result = descend(X, sample_weight, seed, feature_scale, problem)
    return result.centers[0], result.log_dispersions[0]


def one_cluster_problem(X, p):
    """The Problem of the Minkowski centre of all rows."""
    return make_problem(X, p, 1.0, -np.inf, 1, 0.0)
