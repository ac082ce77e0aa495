"""Descents over blocks: each pass serves all running descents.

On a worker a pass is a pure function of the block and of the models in the request. The
labels of the last assignment are cached; missing ones are recomputed from the model of that
assignment.
"""

from collections import deque
from typing import NamedTuple

import numpy as np

from cafelearn._dask.cache import CACHE
from cafelearn._dask.merging import NodeSums, combine, nodes, pack, totals
from cafelearn._solver.descent import (
    Rows,
    Seed,
    Span,
    advance_by,
    make_result,
    one_cluster_problem,
    scratch_for,
    sum_chunks,
)
from cafelearn._solver.iteration import ASSIGN, STOP, Problem, start
from cafelearn._solver.kernels.assign import hash_of
from cafelearn._solver.kernels.cells import CENTER, OPEN, SCALE, SCALED_WEIGHT
from cafelearn._solver.kernels.geometry import make_geometry
from cafelearn._solver.kernels.sums import MASS, MEMBERS, N_ROWS, empty_stack
from cafelearn._solver.placing import distances_with_gaps, nearest_centers

# Largest size in bytes of one block's sums of all running descents. Further descents begin when
# some have ended.
TOGETHER = 2 * 2**20
# Rows of the cells that a pass reads.
SENT = [CENTER, SCALED_WEIGHT, SCALE, OPEN]


class Request(NamedTuple):
    """One descent's part of a pass."""

    descent: int
    view: int  # which scaling of the rows, see Pass
    phase: int
    p: float
    cells: np.ndarray  # the rows SENT
    n_assigned: int  # number of assignments so far
    labeller: tuple | None  # centres, scaled weights and `typical` of the last assignment
    typical: np.ndarray | None  # (k, m) distances that gaps count for; None: no gaps


class Pass(NamedTuple):
    """One pass over all blocks."""

    views: list  # the scalings in use, each a View
    requests: list
    ended: list  # descents whose labels are no longer needed in the cache


def run_pass(rows, order):
    """The sums of one block for every descent."""
    requests = order.requests
    for descent, fit in order.ended:
        CACHE.drop((fit, "labels", rows.number, descent))
    found, view, seen = [], None, None
    for request in requests:
        # Descents are sorted by scaling, so only one scaled copy is in memory at a time.
        if request.view != view:
            view, seen = request.view, None
            seen = order.views[view](rows)
        found.append(pack(_sum_block(seen, request)))
    return NodeSums(rows.first_chunk, rows.last_chunk, found)


def _sum_block(rows, request):
    """The sums of a block's nodes for one descent."""
    cells = _cells(request)
    # Of the problem, a pass needs only p and the type of the rows.
    problem = one_cluster_problem(rows.X, request.p)
    n_clusters, n_features = len(cells), cells.shape[2]
    key = (rows.fit, "labels", rows.number, request.descent)
    labels = _labels(rows, request, key)
    n_chunks = rows.last_chunk - rows.first_chunk
    stack = empty_stack(n_chunks, n_clusters, n_features)
    sum_chunks(
        request.phase,
        cells,
        stack,
        Rows(rows.X, rows.sample_weight, labels),
        problem,
        Span(0, n_chunks, rows.first_chunk),
        scratch_for(rows.X, n_clusters, problem),
        request.typical,
    )
    sums = stack[: len(nodes(rows.first_chunk, rows.last_chunk))]
    if request.phase == ASSIGN:
        # Rows are numbered within their block; this distinguishes equal numbers.
        members = sums[:, :-1, MEMBERS, 0].copy().view(np.uint64)
        members *= hash_of.from_python(np.uint64(rows.number)) | np.uint64(1)
        sums[:, :-1, MEMBERS, 0] = members.view(np.float64)
        _cache(key, labels, request.n_assigned + 1, n_clusters)
    return sums


def _cells(request):
    sent = request.cells
    cells = np.zeros((len(sent), max(SENT) + 1, sent.shape[2]))
    cells[:, SENT] = sent
    return cells


def _labels(rows, request, key):
    """The labels of the last assignment, cached or computed again."""
    if request.labeller is None:
        return np.full(len(rows.X), -1, dtype=np.int32)
    known = CACHE.get(key, request.n_assigned)
    if known is not None:
        return known[0].astype(np.int32)
    centers, weights, typical = request.labeller
    if typical is None:
        geometry = make_geometry(request.p, rows.X.dtype)
        labels, _ = nearest_centers(rows.X, centers, weights, geometry)
    else:
        away = distances_with_gaps(rows.X, centers, weights, typical, request.p)
        labels = away.argmin(axis=1).astype(np.int32)
    _cache(key, labels, request.n_assigned, len(request.cells))
    return labels


def _cache(key, labels, version, n_clusters):
    CACHE.put(key, version, (labels.astype(np.min_scalar_type(n_clusters - 1)),))


class Descent:
    """One descent on the client."""

    def __init__(self, number, seed: Seed, feature_scale, problem: Problem, view):
        self.number, self.problem, self.phase, self.view = number, problem, ASSIGN, view
        centers, weights, self.typical = seed
        self.dtype = centers.dtype
        self.state = start(centers, feature_scale, problem, weights)
        self.labeller, self.n_assigned, self.mass = None, 0, None

    def request(self, views):
        """The request of the next pass."""
        return Request(
            self.number,
            views.index(self.view),
            self.phase,
            self.problem.geometry.p,
            self.state.cells[:, SENT],
            self.n_assigned,
            self.labeller,
            self.typical,
        )

    def advance(self, stack):
        """Update the state from the sums of one pass, which are in stack[0]."""
        cells, typical, assigned = self.state.cells, self.typical, self.phase == ASSIGN
        if assigned:
            kept = None if typical is None else typical.copy()
            self.labeller = cells[:, CENTER].copy(), cells[:, SCALED_WEIGHT].copy(), kept
            self.n_assigned += 1
        self.phase = advance_by(self.phase, self.state, stack, self.problem, typical)
        if assigned:
            self.mass = stack[0, :-1, MASS, 0].copy()

    def result(self):
        """The result, without labels."""
        return make_result(self.state, None, self.dtype, self.mass, self.typical)


def descend(blocks, descents):
    """Run descents together to their ends; yield each one as it ends."""
    waiting, running, ended = deque(descents), [], []
    n_clusters, _, n_features = waiting[0].state.cells.shape
    at_most = max(1, TOGETHER // (8 * (n_clusters + 1) * N_ROWS * n_features))
    while waiting or running:
        while waiting and len(running) < at_most:
            running.append(waiting.popleft())
        views = []
        for descent in running:
            if descent.view not in views:
                views.append(descent.view)
        order = Pass(views, [descent.request(views) for descent in running], ended)
        part = blocks.reduce(run_pass, combine, order)
        for descent, sums in zip(running, totals(part), strict=True):
            descent.advance(sums)
        ended = [(d.number, d.view.fit) for d in running if d.phase == STOP]
        yield from (descent for descent in running if descent.phase == STOP)
        running = [descent for descent in running if descent.phase != STOP]
