"""Descents over blocks: each pass serves all running descents.

The result of a task depends only on its block and on the models in its requests. Workers cache
the labels of the last assignment; lost labels are recomputed from the model of that assignment.
"""

from collections import deque
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from cafelearn.distributed.cache import CACHE
from cafelearn.distributed.merging import NodeSums, combine, nodes, totals
from cafelearn.kmeans.descent import (
    Rows,
    Seed,
    Span,
    advance_by,
    make_result,
    scratch_for,
    sum_chunks,
)
from cafelearn.kmeans.iteration import ASSIGN, STOP, Problem, start
from cafelearn.kmeans.kernels.assign import hash_of
from cafelearn.kmeans.kernels.geometry import chunk_rows
from cafelearn.kmeans.kernels.sums import MASS, MEMBERS, N_ROWS, empty_stack

# Largest total size in bytes of the sums of one node (see `merging`) for all running descents.
# The other descents wait until some of these have ended.
TOGETHER = 2 * 2**20


class Model(NamedTuple):
    """The state of a descent that a pass needs."""

    cells: np.ndarray  # see kernels.cells
    typical: np.ndarray | None  # (k, m) distances for missing values; None: complete rows


class Request(NamedTuple):
    """Arguments of a pass for one descent."""

    labels: tuple  # cache key of the last labels: (descent, number of assignments so far)
    change: Any  # of the rows, or None; see `Change`
    problem: Problem
    phase: int
    model: Model
    labeller: Model | None  # the model of the last assignment; None before the first


class Pass(NamedTuple):
    """Arguments of a pass over all blocks."""

    fit: str  # first part of the keys of the blocks in the cache
    requests: list


def last_chunk(part):
    """Return the number of the first chunk after this block."""
    return part.first_chunk + -(-len(part.X) // chunk_rows(part.X.shape[1]))


def run_pass(rows, order):
    """Compute the sums of one block for every descent."""
    entry, found, labels = (order.fit, rows.number), [], {}
    known = CACHE.get(entry)
    last, X = None, rows.X
    for request in order.requests:
        # Descents with the same scaling are next to each other, so few copies are made.
        if request.change is not last:
            last = request.change
            X = rows.X if last is None else np.require(last(rows.X), None, "CW")
        own = _labels(rows._replace(X=X), request, known.get(request.labels))
        found.append(_sum_block(rows._replace(X=X), own, request, request.phase, request.model))
        descent, n_assigned = request.labels
        n_clusters = len(request.model.cells)
        labels[descent, n_assigned + (request.phase == ASSIGN)] = own.astype(
            np.min_scalar_type(n_clusters - 1)
        )
    # This also removes the labels of descents that have ended.
    CACHE.put(entry, labels)
    return NodeSums(rows.first_chunk, last_chunk(rows), np.stack(found, axis=1))


def _labels(rows, request, known):
    """Return the labels of the last assignment; recompute them if `known` is None."""
    if known is not None:
        return known.astype(np.int32)
    labels = np.full(len(rows.X), -1, dtype=np.int32)
    if request.labeller is not None:
        _sum_block(rows, labels, request, ASSIGN, request.labeller)
    return labels


def _sum_block(rows, labels, request, phase, model):
    """Compute the sums of the nodes of a block for one descent; ASSIGN updates `labels`."""
    cells, problem = model.cells, request.problem
    n_clusters, _, n_features = cells.shape
    n_chunks = last_chunk(rows) - rows.first_chunk
    stack = empty_stack(n_chunks, n_clusters, n_features)
    sum_chunks(
        phase,
        cells,
        stack,
        Rows(rows.X, rows.sample_weight, labels),
        problem,
        Span(0, n_chunks, rows.first_chunk),
        scratch_for(rows.X, n_clusters, problem),
        model.typical,
    )
    sums = stack[: len(nodes(rows.first_chunk, last_chunk(rows)))]
    if phase == ASSIGN:
        # Hashes use the number of a row within its block; the factor distinguishes blocks.
        members = sums[:, :-1, MEMBERS, 0].copy().view(np.uint64)
        members *= hash_of.from_python(np.uint64(rows.number)) | np.uint64(1)
        sums[:, :-1, MEMBERS, 0] = members.view(np.float64)
    return sums


class Descent:
    """One descent on the client."""

    def __init__(self, seed: Seed, feature_scale, problem: Problem, change):
        self.problem, self.phase, self.change = problem, ASSIGN, change
        centers, weights, self.typical = seed
        self.dtype = centers.dtype
        self.state = start(centers, feature_scale, problem, weights)
        self.key, self.n_assigned = uuid4().hex, 0
        self.labeller, self.mass = None, None

    def request(self):
        """Return the request for the next pass."""
        return Request(
            (self.key, self.n_assigned),
            self.change,
            self.problem,
            self.phase,
            Model(self.state.cells, self.typical),
            self.labeller,
        )

    def advance(self, sums):
        """Update the state from the sums of one pass."""
        if self.phase == ASSIGN:
            typical = None if self.typical is None else self.typical.copy()
            self.labeller = Model(self.state.cells.copy(), typical)
            self.n_assigned += 1
        stack = sums[None]
        phase = advance_by(self.phase, self.state, stack, self.problem, self.typical)
        if self.phase == ASSIGN:
            self.mass = stack[0, :-1, MASS, 0].copy()
        self.phase = phase

    def result(self):
        """Return the result, without labels."""
        return make_result(self.state, None, self.dtype, self.mass, self.typical)


def descend(blocks, descents):
    """Run descents together to their ends; yield their results in the given order."""
    try:
        left = deque(descents)
        while left:
            n_clusters, _, n_features = left[0].state.cells.shape
            at_most = max(1, TOGETHER // (8 * (n_clusters + 1) * N_ROWS * n_features))
            running = [descent for descent in left if descent.phase != STOP][:at_most]
            order = Pass(blocks.fit, [descent.request() for descent in running])
            part = blocks.reduce(run_pass, combine, order)
            for descent, sums in zip(running, totals(part), strict=True):
                descent.advance(sums)
            while left and left[0].phase == STOP:
                yield left.popleft().result()
    finally:
        blocks.forget(blocks.fit)
