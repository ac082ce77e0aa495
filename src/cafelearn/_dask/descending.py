"""Descents over blocks: one task for each block and pass serves all that are running.

On a worker a pass is a pure function of the block and of the models in the request. The
labels of the last assignment are remembered there; where they are not, they are made
again from the model of that assignment.
"""

from collections import deque
from functools import partial
from typing import NamedTuple

import numpy as np

from cafelearn._dask.cache import CACHE
from cafelearn._dask.merging import (
    NodeSums,
    combine,
    join_values,
    near_values,
    nodes,
    pack_stack,
    totals,
    width,
)
from cafelearn._solver.descent import Memory, add_chunks, make_result
from cafelearn._solver.iteration import (
    ASSIGN,
    FIRST,
    LOOK,
    MOVE,
    NEARBY,
    STOP,
    Problem,
    State,
    advance,
    first_phase,
    start,
)
from cafelearn._solver.kernels.anchors import gather
from cafelearn._solver.kernels.assign import assign_chunk, chunk_rows, make_geometry
from cafelearn._solver.kernels.assign import hash_of as mix
from cafelearn._solver.kernels.brackets import EACH, NEARBY_COUNT, Brackets
from cafelearn._solver.kernels.lists import Lists, empty_lists, trimmed
from cafelearn._solver.kernels.moving import empty_bounds
from cafelearn._solver.kernels.pairs import find_pairs
from cafelearn._solver.kernels.sums import FAR_TERMS
from cafelearn._solver.kernels.tree import empty_stack
from cafelearn._solver.shortcuts import advance_swiftly

# Descents run together as long as their sums of one block take no more bytes than this.
# The others begin when some of them have ended.
TOGETHER = 2 * 2**20


class Labeller(NamedTuple):
    """The model that the rows were last assigned by."""

    centers: np.ndarray
    scaled_weights: np.ndarray


class Request(NamedTuple):
    """What a pass must know of one descent."""

    descent: int
    view: int  # which scaling of the rows, see Pass
    phase: int
    p: float
    n_assigned: int  # how often the rows have been assigned before
    labeller: Labeller | None  # by which model, the last time
    centers: np.ndarray
    scaled_weights: np.ndarray
    typical: np.ndarray
    drift: np.ndarray
    open: np.ndarray
    scale: np.ndarray
    anchor: np.ndarray
    window: np.ndarray
    near_count: np.ndarray
    counters: np.ndarray
    n_looked: int  # how often all members have been looked at


class Pass(NamedTuple):
    """What a pass must know."""

    views: list  # the scalings in use, each a View
    requests: list
    ended: list  # descents whose labels need not be remembered any longer


def run_pass(rows, order):
    """The sums of one block for every descent."""
    requests = order.requests
    for descent, fit in order.ended:
        for kind in ("labels", "bounds", "lists"):
            CACHE.drop(_kept(rows._replace(fit=fit), kind, descent))
    n_clusters = len(requests[0].centers)
    present = np.zeros((len(requests), n_clusters), dtype=bool)
    found, near = [], []
    view, seen = None, None
    for position, request in enumerate(requests):
        # Descents of one scaling follow each other, so one scaled copy is held at a time.
        if request.view != view:
            view, seen = request.view, None
            seen = order.views[view](rows)
        work = _Work(seen, request)
        work.run()
        if request.phase in (ASSIGN, MOVE):
            present[position] = np.bincount(work.labels, minlength=n_clusters) > 0
            # Rows are numbered within their block; this tells equal numbers apart.
            work.stack.fingerprint[:] *= mix(np.uint64(rows.number)) | np.uint64(1)
        found.append(work.packed())
        near.append(work.near())
        work.remember()
    return NodeSums(rows.first_chunk, rows.last_chunk, found, present, near)


def _kept(rows, what, descent):
    """The name of something that the worker remembers of a block."""
    return (rows.fit, what, rows.number, descent)


def _sums_far(request):
    """Whether a pass sums the series of far members."""
    return request.phase in (FIRST, LOOK) and bool((request.window > 0).any())


class _Work:
    """One descent's part of a pass over one block."""

    def __init__(self, rows, request):
        self.rows, self.request = rows, request
        self.n_chunks = rows.last_chunk - rows.first_chunk
        self.key = _kept(rows, "labels", request.descent)
        self.geometry = make_geometry(request.p, rows.X.dtype)
        self.state = _state(request)
        n_far = FAR_TERMS if _sums_far(request) else 0
        self.stack = empty_stack(self.n_chunks, *request.centers.shape, n_far)
        swift = request.phase in (MOVE, FIRST, LOOK, NEARBY)
        self.memory = None
        if swift:
            self.memory = Memory(self._bounds(), self._lists(), self._pairs())
        self.labels = np.empty(0, dtype=np.int32) if self._is_listed() else self._labels()

    def _is_listed(self):
        """Whether the lists are all that a look needs."""
        if self.request.phase != NEARBY:
            return False
        complete = self.memory.lists.complete
        return len(complete) > 0 and bool(complete.all())

    def _labels(self):
        """The labels of the last assignment, remembered or made again."""
        X, labeller = self.rows.X, self.request.labeller
        if labeller is None:
            return np.full(len(X), -1, dtype=np.int32)
        known = CACHE.get(self.key, self.request.n_assigned)
        if known is not None:
            return known[0].astype(np.int32)
        labels = np.empty(len(X), dtype=np.int32)
        nearest = np.empty(len(X), dtype=X.dtype)
        assign_chunk(
            labels,
            nearest,
            X,
            0,
            len(X),
            labeller.centers,
            labeller.scaled_weights,
            self.geometry,
        )
        self._remember(labels, self.request.n_assigned)
        return labels

    def _bounds(self):
        """The bounds that are remembered, or such as have nothing to say."""
        request, rows = self.request, self.rows
        n_clusters, n_features = request.centers.shape
        size = n_clusters, n_features * rows.X.itemsize
        if request.phase != MOVE:
            return empty_bounds(0, *size)
        known = CACHE.take(_kept(rows, "bounds", request.descent), request.n_assigned)
        if known is not None:
            return known[0]
        self.state.drift[:] = np.nan
        return empty_bounds(len(rows.X), *size)

    def _lists(self):
        """Room for the values near the anchors, or those that are remembered, or none."""
        X, request = self.rows.X, self.request
        n_clusters, chunk = len(request.centers), chunk_rows(X.shape[1])
        if request.phase == NEARBY:
            known = CACHE.get(_kept(self.rows, "lists", request.descent), request.n_looked)
            if known is not None:
                return Lists(*known)
        needed = _sums_far(request)
        return empty_lists(X, self.rows.sample_weight, n_clusters, chunk, needed)

    def _pairs(self):
        """The values of columns that have two, which are the same for every descent."""
        X, key = self.rows.X, (self.rows.fit, "pairs", self.rows.number)
        if self.request.phase == NEARBY:
            return np.empty((0, 2, X.shape[1]), dtype=X.dtype)
        known = CACHE.get(key, 0)
        if known is not None:
            return known[0]
        pairs = find_pairs(X, chunk_rows(X.shape[1]))
        CACHE.put(key, 0, (pairs,))
        return pairs

    def run(self):
        """Sum all chunks of the block."""
        rows = self.rows
        add_chunks(
            self.stack,
            0,
            self.n_chunks,
            rows.first_chunk,
            self.request.phase,
            self.state,
            self.labels,
            self.memory,
            rows.X,
            rows.sample_weight,
            chunk_rows(rows.X.shape[1]),
            self.geometry,
        )

    def packed(self):
        """The sums of the block's nodes, which are what is left on the stack."""
        return pack_stack(self.stack, len(nodes(self.rows.first_chunk, self.rows.last_chunk)))

    def near(self):
        """The values that centres want one by one, in a list, or an empty list."""
        request, rows = self.request, self.rows
        wanted = request.open == EACH
        if request.phase != NEARBY or not wanted.any():
            return []
        found = gather(
            self.labels,
            self.memory.lists,
            rows.X,
            rows.sample_weight,
            chunk_rows(rows.X.shape[1]),
            self.state.brackets,
            _writable(request.near_count),
        )
        return [near_values(found, wanted)]

    def remember(self):
        request = self.request
        if request.phase in (ASSIGN, MOVE):
            self._remember(self.labels, request.n_assigned + 1)
        if request.phase == MOVE:
            key = _kept(self.rows, "bounds", request.descent)
            CACHE.put(key, request.n_assigned + 1, (self.memory.bounds,))
        elif _sums_far(request):
            key = _kept(self.rows, "lists", request.descent)
            CACHE.put(key, request.n_looked + 1, tuple(trimmed(self.memory.lists)))

    def _remember(self, labels, version):
        small = np.min_scalar_type(len(self.request.centers) - 1)
        CACHE.put(self.key, version, (labels.astype(small),))


def _state(request):
    """As much of a State as a pass looks at."""
    nothing, numbers = np.empty((0, 0)), np.empty((0, 0, 0))
    brackets = Brackets(
        _writable(request.open),
        _writable(request.scale),
        nothing,
        numbers,
        _writable(request.anchor),
        _writable(request.window),
        numbers,
    )
    return State(
        _writable(request.centers),
        _writable(request.scaled_weights),
        _writable(request.scaled_weights),
        brackets,
        np.empty(0, dtype=np.uint64),
        np.empty(0),
        _writable(request.typical),
        numbers,
        request.drift.copy(),
        np.empty(0, dtype=np.uint64),
        np.empty(0),
        _writable(request.counters),
    )


def _writable(array):
    return array if array.flags.writeable else array.copy()


class Descent:
    """One descent, as the client sees it."""

    def __init__(self, number, centers, feature_scale, problem: Problem, view, weights=None):
        self.number, self.problem, self.phase = number, problem, first_phase(problem)
        self.view = view
        self.state = start(centers, feature_scale, problem, weights)
        self.labeller, self.n_assigned, self.present = None, 0, None
        self.n_looked = 0

    def request(self, views):
        state = self.state
        return Request(
            self.number,
            views.index(self.view),
            self.phase,
            self.problem.geometry.p,
            self.n_assigned,
            self.labeller,
            state.centers,
            state.scaled_weights,
            state.typical,
            state.drift,
            state.brackets.open,
            state.brackets.scale,
            state.brackets.anchor,
            state.brackets.window,
            state.brackets.values[NEARBY_COUNT],
            state.counters,
            self.n_looked,
        )

    def advance(self, sums, present, near):
        """Digest one pass."""
        if self.phase in (FIRST, LOOK):
            self.n_looked += 1
        if self.phase in (ASSIGN, MOVE):
            state = self.state
            self.labeller = Labeller(state.centers.copy(), state.scaled_weights.copy())
            self.n_assigned += 1
            self.present = present
        if self.problem.swift:
            wanted = self.state.brackets.open == EACH
            near = join_values(near, wanted & (self.phase == NEARBY), self.state.centers.dtype)
            self.phase = advance_swiftly(self.phase, self.state, sums, near, self.problem)
        else:
            self.phase = advance(self.phase, self.state, sums, self.problem)

    def result(self, labels=None):
        state, n_found = self.state, int(self.present.sum())
        return make_result(state, labels, self.problem, n_found, state.mass.copy())


def descend(blocks, descents):
    """Run descents to their ends together; yields each one as it ends."""
    waiting, running, ended = deque(descents), [], []
    shape = waiting[0].state.centers.shape
    at_most = max(1, TOGETHER // (8 * width(*shape, FAR_TERMS)))
    merging = partial(combine, n_clusters=shape[0], n_features=shape[1])
    while waiting or running:
        while waiting and len(running) < at_most:
            running.append(waiting.popleft())
        views = []
        for descent in running:
            if descent.view not in views:
                views.append(descent.view)
        order = Pass(views, [descent.request(views) for descent in running], ended)
        part = blocks.reduce(run_pass, merging, order)
        found = zip(running, totals(part, *shape), part.present, part.near, strict=True)
        for descent, sums, present, near in found:
            descent.advance(sums, present, near)
        ended = [(d.number, d.view.fit) for d in running if d.phase == STOP]
        yield from (descent for descent in running if descent.phase == STOP)
        running = [descent for descent in running if descent.phase != STOP]
