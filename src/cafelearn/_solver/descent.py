"""The one fit loop, run to its end in memory: on one thread or on several.

What is to be done next is decided by the machine; here its passes are made.
"""

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from cafelearn._solver.iteration import (
    ASSIGN,
    BROKEN,
    CENTER,
    FIRST,
    HALT,
    ITERATION,
    LOOK,
    MEASURE,
    MOVE,
    NEARBY,
    REASON,
    STOP,
    STOP_REASONS,
    SURVEY,
    advance,
    first_phase,
    make_problem,
    n_far,
    start,
)
from cafelearn._solver.kernels.anchors import gather, look_chunk, near_chunk, scratch_for
from cafelearn._solver.kernels.assign import member_chunk, relabel_chunk
from cafelearn._solver.kernels.brackets import NEARBY_COUNT
from cafelearn._solver.kernels.compiling import EXACT, MAKES, PART, ZERO, njit
from cafelearn._solver.kernels.lists import Lists, empty_lists
from cafelearn._solver.kernels.members import empty_members, gather_members, gathered_chunk
from cafelearn._solver.kernels.moving import empty_bounds, move_chunk
from cafelearn._solver.kernels.pairs import find_pairs
from cafelearn._solver.kernels.sums import clear
from cafelearn._solver.kernels.tree import empty_stack, settle, stacked, total_of
from cafelearn._solver.kernels.weights import log_objective
from cafelearn._solver.shortcuts import advance_swiftly

# Descents that look at fewer distances of a feature than this in one pass end so soon that an
# interrupt can wait for them; a thread of their own would take longer.
BRIEF = 2**16
# Seconds that an interrupted descent has to end. The compiler, which may still be at work,
# cannot be told to.
GRACE = 0.5


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
    mass: np.ndarray  # (k,) sample weight of the members of each cluster


class Memory(NamedTuple):
    """What the passes of large data remember of the rows."""

    bounds: np.ndarray
    lists: Lists
    pairs: np.ndarray  # (n_chunks, 2, m) see kernels.pairs


@njit(**PART)
def chunk_pass(
    sums,
    phase,
    state,
    labels,
    memory,
    scratch,
    chunk,
    X,
    sample_weight,
    first,
    last,
    geometry,
):
    """What one chunk of rows has to say to this phase.

    `memory` is None for plain passes, which look at everything. They are compiled without what
    the others need, so that a first fit of small data does not wait for it.
    """
    if memory is None:
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
            return
    elif phase == MOVE:
        move_chunk(
            sums,
            labels,
            memory.bounds,
            memory.pairs[chunk],
            X,
            sample_weight,
            first,
            last,
            state,
            geometry,
            state.counters[SURVEY] > 0,
        )
        return
    elif phase == NEARBY:
        near_chunk(
            sums,
            labels,
            memory.lists,
            chunk,
            X,
            sample_weight,
            first,
            last,
            state.centers,
            state.brackets,
            geometry,
        )
        return
    elif phase in (FIRST, LOOK):
        look_chunk(
            sums,
            labels,
            memory.lists,
            scratch,
            memory.pairs[chunk],
            chunk,
            X,
            sample_weight,
            first,
            last,
            state.centers,
            state.brackets,
            geometry,
            phase == FIRST,
        )
        return
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
        phase == MEASURE,
    )


@njit(**PART)
def add_chunks(
    stack,
    first_chunk,
    last_chunk,
    numbered,
    phase,
    state,
    labels,
    memory,
    X,
    sample_weight,
    rows,
    geometry,
):
    """Put the sums of chunks that follow each other on an empty stack, merged.

    In the tree the first chunk of X has the number `numbered`. Returns the depth of the stack.
    """
    depth = 0
    scratch = None
    if memory is not None:
        n_rows = min(rows, len(X)) if phase in (FIRST, LOOK) else 0
        scratch = scratch_for(X, memory.lists, state.brackets, n_rows)
    for chunk in range(first_chunk, last_chunk):
        first = chunk * rows
        last = min(first + rows, len(X))
        part = stacked(stack, depth)
        clear(part)
        if state.counters[HALT] == 0:
            chunk_pass(
                part,
                phase,
                state,
                labels,
                memory,
                scratch,
                chunk,
                X,
                sample_weight,
                first,
                last,
                geometry,
            )
        depth = settle(stack, depth + 1, numbered + chunk + 1, numbered + first_chunk)
    return depth


@njit(**EXACT)
def _descend(phase, state, stack, members, labels, X, sample_weight, problem):
    """Run to the end on this thread, without the interpreter."""
    rows, geometry = problem.chunk, problem.geometry
    small = len(members.first) > 1
    n_chunks = -(-len(X) // rows)
    while phase != STOP and state.counters[HALT] == 0:
        if small and phase == CENTER:
            depth = 0
            for chunk in range(n_chunks):
                part = stacked(stack, depth)
                clear(part)
                gathered_chunk(part, members, chunk, state.centers, state.brackets, geometry)
                depth = settle(stack, depth + 1, chunk + 1, ZERO)
        else:
            depth = add_chunks(
                stack,
                ZERO,
                n_chunks,
                ZERO,
                phase,
                state,
                labels,
                None,
                X,
                sample_weight,
                rows,
                geometry,
            )
        before = phase
        phase = advance(phase, state, total_of(stack, depth), problem)
        if small and before == ASSIGN and phase == CENTER:
            gather_members(members, labels, X, sample_weight, rows, len(state.centers))


@njit(**PART)
def values_wanted(phase, state, labels, memory, X, sample_weight, rows):
    """The values that the centres of a pass nearby want one by one; none for other passes."""
    counts = state.brackets.values[NEARBY_COUNT] if phase == NEARBY else np.empty((0, 0))
    return gather(labels, memory.lists, X, sample_weight, rows, state.brackets, counts)


@njit(**MAKES)
def _descend_swiftly(phase, state, stack, labels, memory, X, sample_weight, problem):
    """Run swift passes to the end on this thread, without the interpreter."""
    rows, geometry = problem.chunk, problem.geometry
    n_chunks = -(-len(X) // rows)
    while phase != STOP and state.counters[HALT] == 0:
        depth = add_chunks(
            stack,
            ZERO,
            n_chunks,
            ZERO,
            phase,
            state,
            labels,
            memory,
            X,
            sample_weight,
            rows,
            geometry,
        )
        near = values_wanted(phase, state, labels, memory, X, sample_weight, rows)
        phase = advance_swiftly(phase, state, total_of(stack, depth), near, problem)


def _descend_by_passes(state, stack, labels, memory, X, sample_weight, problem, n_threads):
    """The same pass by pass, the chunks spread over threads and merged in their order."""
    rows, shape = problem.chunk, state.centers.shape
    n_chunks = -(-len(X) // rows)

    def run(part, phase, first, at_once):
        last = min(first + at_once, n_chunks)
        depth = add_chunks(
            part,
            first,
            last,
            0,
            phase,
            state,
            labels,
            memory,
            X,
            sample_weight,
            rows,
            problem.geometry,
        )
        return total_of(part, depth)

    phase = first_phase(problem)
    # Enough parts to keep the threads busy, few enough not to pile up in memory.
    parts = [empty_stack(n_chunks, *shape, n_far(problem)) for _ in range(4 * n_threads)]
    with ThreadPoolExecutor(n_threads) as pool:
        while phase != STOP and state.counters[HALT] == 0:
            under_way, depth, done = deque(), 0, 0
            at_once = _chunks_at_once(phase, n_chunks, n_threads)
            firsts = deque(range(0, n_chunks, at_once))
            while firsts or under_way:
                while firsts and len(under_way) < len(parts):
                    part = parts[firsts[0] // at_once % len(parts)]
                    under_way.append(pool.submit(run, part, phase, firsts.popleft(), at_once))
                for into, field in zip(stack, under_way.popleft().result(), strict=True):
                    into[depth] = field
                done += 1
                depth = settle(stack, depth + 1, done, 0)
            total = total_of(stack, depth)
            if problem.swift:
                near = values_wanted(phase, state, labels, memory, X, sample_weight, rows)
                phase = advance_swiftly(phase, state, total, near, problem)
            else:
                phase = advance(phase, state, total, problem)


def _chunks_at_once(phase, n_chunks, n_threads):
    """How many chunks one task takes.

    As many as there are under a node of the tree, so that the bits are the same for any
    number; few where they are much work, so that no thread has to wait long for another.
    """
    tasks = n_threads if phase == NEARBY else 8 * n_threads
    at_once = 1
    while 2 * at_once * tasks <= n_chunks:
        at_once *= 2
    return at_once


class Interrupts:
    """Ends the descents that have been told of it, from whatever thread they run on."""

    def __init__(self):
        self._lock, self._halted, self._running = threading.Lock(), False, []

    def watch(self, state):
        """Take note of a descent that begins."""
        with self._lock:
            self._running.append(state.counters)
            state.counters[HALT] = self._halted

    def halt(self):
        """End all descents, those that are yet to begin included."""
        with self._lock:
            self._halted = True
            for counters in self._running:
                counters[HALT] = 1


def _run_interruptibly(run, interrupts):
    """Call a compiled function so that interrupts are heard while it runs.

    Python hears them on the main thread, and only between its own instructions, so the
    function runs on another one.
    """
    raised = []

    def work():
        try:
            run()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(1.0)
    except BaseException:
        interrupts.halt()
        thread.join(GRACE)
        raise
    if raised:
        raise raised[0]


def descend(
    X,
    sample_weight,
    centers,
    feature_scale,
    problem,
    n_threads=1,
    interrupts=None,
    weights=None,
):
    """Run one descent from the given centres, and weights or uniform ones, to its end.

    X is C-contiguous float32 or float64, `centers` of the same type; `sample_weight` is
    float64 of length n. With several threads the rows of each pass are divided among them;
    the result has the same bits for any number.
    """
    interrupts = interrupts or Interrupts()
    centers = np.ascontiguousarray(centers, dtype=X.dtype)
    state = start(centers, feature_scale, problem, weights)
    labels = np.full(len(X), -1, dtype=np.int32)
    shape = state.centers.shape
    memory = None
    if problem.swift:
        bounds = empty_bounds(len(X), shape[0], X.shape[1] * X.itemsize)
        needed = problem.anchored
        lists = empty_lists(X, sample_weight, shape[0], problem.chunk, needed)
        memory = Memory(bounds, lists, find_pairs(X, problem.chunk))
    stack = empty_stack(-(-len(X) // problem.chunk), *shape, n_far(problem))
    interrupts.watch(state)

    def run():
        phase = first_phase(problem)
        if n_threads > 1 and len(X) > problem.chunk:
            _descend_by_passes(
                state, stack, labels, memory, X, sample_weight, problem, n_threads
            )
        elif problem.swift:
            _descend_swiftly(phase, state, stack, labels, memory, X, sample_weight, problem)
        else:
            members = empty_members(X, shape[0], problem.chunk, problem.geometry.p)
            _descend(phase, state, stack, members, labels, X, sample_weight, problem)

    heard = threading.current_thread() is threading.main_thread()
    if heard and X.size * shape[0] > BRIEF:
        _run_interruptibly(run, interrupts)
    else:
        run()
    if state.counters[HALT]:
        raise RuntimeError("the descent was interrupted.")
    result = make_result(state, labels, problem, len(np.unique(labels)), state.mass)
    return result._replace(mass=np.bincount(labels, sample_weight, shape[0]))


def make_result(state, labels, problem, n_found, mass):
    """What a descent that has stopped has found."""
    if state.counters[REASON] == BROKEN:
        raise ValueError(
            "mwk-means ended in centres or weights that are not finite numbers. Scale the "
            "features, for instance with cafelearn.RangeScaler."
        )
    n_iter = int(state.counters[ITERATION])
    log_dispersions = state.brackets.log_dispersion
    return FitResult(
        labels,
        state.centers,
        state.weights,
        log_dispersions,
        log_objective(
            state.weights, log_dispersions, -np.inf, problem.geometry.p, problem.groups
        ),
        state.path[:n_iter].copy(),
        n_iter,
        STOP_REASONS[int(state.counters[REASON])],
        n_found,
        mass,
    )


def one_cluster(X, sample_weight, feature_scale, p):
    """Minkowski centre of all rows and the log of their dispersions about it."""
    problem = one_cluster_problem(X, p)
    first = X[np.flatnonzero(sample_weight > 0)[0]]
    result = descend(X, sample_weight, first[None, :], feature_scale, problem)
    return result.centers[0], result.log_dispersions[0]


def one_cluster_problem(X, p):
    """The Problem of the Minkowski centre of all rows."""
    return make_problem(X, p, 1.0, -np.inf, 1, 0.0)._replace(swift=False, anchored=False)
