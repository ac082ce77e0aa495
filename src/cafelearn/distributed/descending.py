"""Descents over blocks: one task for each block and pass serves all that are running.

On a worker a pass is a pure function of the block and of the models in the request. The
labels of the last assignment are remembered there; where they are not, they are made
again from the model of that assignment.
"""

from collections import deque
from functools import partial
from typing import NamedTuple

import numpy as np
from numba import njit

from cafelearn.descent import (
    ASSIGN,
    STOP,
    Problem,
    State,
    advance,
    chunk_pass,
    empty_stack,
    make_result,
    settle,
    stacked,
    start,
)
from cafelearn.distributed.cache import CACHE
from cafelearn.distributed.merging import (
    NodeSums,
    combine,
    nodes,
    totals,
    width,
    write_sums,
)
from cafelearn.kernels.assign import _hash as mix
from cafelearn.kernels.assign import assign_chunk, chunk_rows, make_geometry
from cafelearn.kernels.centers import Brackets
from cafelearn.kernels.power import EXACT
from cafelearn.kernels.sums import clear

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
    phase: int
    p: float
    n_assigned: int  # how often the rows have been assigned before
    labeller: Labeller | None  # by which model, the last time
    centers: np.ndarray
    scaled_weights: np.ndarray
    open: np.ndarray
    scale: np.ndarray


class Pass(NamedTuple):
    """What a pass must know."""

    requests: list
    ended: list  # descents whose labels need not be remembered any longer


def run_pass(rows, order):
    """The sums of one block for every descent."""
    X, first, requests = rows.X, rows.first_chunk, order.requests
    for descent in order.ended:
        CACHE.drop(_labels_of(rows, descent))
    chunk = chunk_rows(X.shape[1])
    last = first + -(-len(X) // chunk)
    n_clusters, n_features = requests[0].centers.shape
    inside = nodes(first, last)
    numbers = np.empty((len(requests), len(inside), width(n_clusters, n_features)))
    works = [_Work(rows, request, last - first) for request in requests]
    # Chunk by chunk, so that the rows are in the cache for all descents.
    for number in range(first, last):
        begin = (number - first) * chunk
        for work in works:
            work.add_chunk(begin, min(begin + chunk, len(X)), number)
    present = np.zeros((len(requests), n_clusters), dtype=bool)
    for position, work in enumerate(works):
        present[position, work.labels] = True
        for node in range(len(inside)):
            sums = stacked(work.stack, node)
            if work.request.phase == ASSIGN:
                # Rows are numbered within their block; this tells equal numbers apart.
                sums.fingerprint[:] *= mix(np.uint64(rows.number)) | np.uint64(1)
            write_sums(numbers[position, node], sums)
        work.remember()
    return NodeSums(first, last, numbers, present)


def _labels_of(rows, descent):
    return (rows.fit, "labels", rows.number, descent)


class _Work:
    """One descent's part of a pass over one block."""

    def __init__(self, rows, request, n_chunks):
        self.rows, self.request, self.depth = rows, request, 0
        self.key = _labels_of(rows, request.descent)
        self.geometry = make_geometry(request.p, rows.X.dtype)
        self.state = _state(request)
        self.stack = empty_stack(n_chunks, *request.centers.shape)
        self.labels = self._labels()

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

    def add_chunk(self, begin, end, number):
        self.depth = _add_chunk(
            self.stack,
            self.depth,
            self.request.phase,
            self.state,
            self.labels,
            self.rows.X,
            self.rows.sample_weight,
            begin,
            end,
            number,
            self.rows.first_chunk,
            self.geometry,
        )

    def remember(self):
        if self.request.phase == ASSIGN:
            self._remember(self.labels, self.request.n_assigned + 1)

    def _remember(self, labels, version):
        small = np.min_scalar_type(len(self.request.centers) - 1)
        CACHE.put(self.key, version, (labels.astype(small),))


@njit(**EXACT)
def _add_chunk(
    stack, depth, phase, state, labels, X, sample_weight, begin, end, number, first, geometry
):
    """The sums of one chunk, put on the stack and merged with what is there."""
    part = stacked(stack, depth)
    clear(part)
    chunk_pass(part, phase, state, labels, X, sample_weight, begin, end, geometry)
    return settle(stack, depth + 1, number + 1, first)


def _state(request):
    """As much of a State as a pass looks at."""
    nothing = np.empty((0, 0))
    return State(
        _writable(request.centers),
        _writable(request.scaled_weights),
        _writable(request.scaled_weights),
        Brackets(
            _writable(request.open), _writable(request.scale), nothing, np.empty((0, 0, 0))
        ),
        np.empty(0, dtype=np.uint64),
        np.empty(0, dtype=np.uint64),
        np.empty(0),
        np.empty(0, dtype=np.int64),
    )


def _writable(array):
    return array if array.flags.writeable else array.copy()


class Descent:
    """One descent, as the client sees it."""

    def __init__(self, number, centers, feature_scale, problem: Problem):
        self.number, self.problem, self.phase = number, problem, ASSIGN
        self.state = start(centers, feature_scale, problem)
        self.labeller, self.n_assigned, self.present = None, 0, None

    def request(self):
        state = self.state
        return Request(
            self.number,
            self.phase,
            self.problem.geometry.p,
            self.n_assigned,
            self.labeller,
            state.centers,
            state.scaled_weights,
            state.brackets.open,
            state.brackets.scale,
        )

    def advance(self, sums, present):
        """Digest one pass."""
        if self.phase == ASSIGN:
            state = self.state
            self.labeller = Labeller(state.centers.copy(), state.scaled_weights.copy())
            self.n_assigned += 1
            self.present = present
        self.phase = advance(self.phase, self.state, sums, self.problem)

    def result(self, labels=None):
        return make_result(self.state, labels, self.problem, int(self.present.sum()))


def descend(blocks, descents):
    """Run descents to their ends together; yields each one as it ends."""
    waiting, running, ended = deque(descents), [], []
    shape = waiting[0].state.centers.shape
    at_most = max(1, TOGETHER // (8 * width(*shape)))
    merging = partial(combine, n_clusters=shape[0], n_features=shape[1])
    while waiting or running:
        while waiting and len(running) < at_most:
            running.append(waiting.popleft())
        order = Pass([descent.request() for descent in running], ended)
        part = blocks.reduce(run_pass, merging, order)
        found = zip(running, totals(part, *shape), part.present, strict=True)
        for descent, sums, present in found:
            descent.advance(sums, present)
        ended = [descent.number for descent in running if descent.phase == STOP]
        yield from (descent for descent in running if descent.phase == STOP)
        running = [descent for descent in running if descent.phase != STOP]
