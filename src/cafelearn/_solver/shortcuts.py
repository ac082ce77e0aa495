"""What the fit loop decides for large data, whose passes avoid work.

The same machine with other passes: the rows that move tell where the centres will go, one
look at all members of the clusters that changed is made there, and for p < 2 the looks that
follow need only the members near the centre.
"""

import numpy as np

from cafelearn._solver.iteration import (
    CHANGED,
    CONVERGED,
    END,
    FIRST,
    ITERATION,
    LOOK,
    MEASURE,
    MOVE,
    NEARBY,
    REASON,
    RESEED,
    RUNNING,
    STOP,
    SURVEY,
    judge,
    measure,
    open_clusters,
    weigh,
)
from cafelearn._solver.kernels.anchors import sum_values
from cafelearn._solver.kernels.brackets import ALL, CLOSED, EACH, LAST, NEAR, NEARBY_COUNT
from cafelearn._solver.kernels.centers import (
    FEW_VALUES,
    begin,
    predict,
    refine,
    refine_near,
    set_anchor,
    settle_pair,
)
from cafelearn._solver.kernels.compiling import EXACT, MAKES, njit
from cafelearn._solver.kernels.moving import measure_drift
from cafelearn._solver.kernels.sums import COUNT

# Fewer looks at members nearby than this, for each look at all members that waits for them,
# are not worth a pass.
FEW = 0.15


@njit(**EXACT)
def advance_swiftly(phase, state, sums, near, problem):
    """Digest the sums of the swift pass just made; returns the next phase.

    `near` are the Values that the centres of a pass nearby wanted one by one.
    """
    if phase == MOVE:
        return _after_moves(state, sums, problem)
    if phase == MEASURE:
        return measure(state, sums, problem)
    n_clusters, n_features = state.centers.shape
    brackets = state.brackets
    wanted = NEAR if phase == NEARBY else ALL
    for l in range(n_clusters):
        for v in range(n_features):
            if brackets.open[l, v] == EACH:
                _search(state, sums, near, problem, l, v)
                continue
            if brackets.open[l, v] != wanted:
                continue
            if phase != FIRST or begin(
                brackets,
                state.centers,
                l,
                v,
                sums.low[l, v],
                sums.high[l, v],
                sums.mass[l],
                problem.geometry.p,
            ):
                _digest(state, sums, problem, l, v)
            else:
                brackets.window[l, v] = 0.0
    return _next_phase(state, problem)


@njit(**EXACT)
def _after_moves(state, sums, problem):
    n_clusters, n_features = state.centers.shape
    brackets, counters = state.brackets, state.counters
    surveyed = counters[SURVEY] > 0
    counters[SURVEY] = 1  # if the pass is repeated, the pulls of this one are lost
    if sums.changed[1] > 0 and _has_zero(sums.mass):
        # The farthest row is wanted, so every distance must be looked at.
        counters[CHANGED] += sums.changed[0]
        state.drift[:] = np.nan
        return MOVE
    verdict = judge(state, sums, problem)
    if verdict == RESEED:
        measure_drift(state, problem.geometry.p)
        return MOVE
    if verdict == END:
        return STOP if _same(sums.fingerprint, state.fingerprint) else MEASURE
    counters[SURVEY] = 0
    open_clusters(state, sums)
    for l in range(n_clusters):
        for v in range(n_features):
            if brackets.open[l, v] != CLOSED:
                predict(
                    brackets,
                    state.centers,
                    l,
                    v,
                    sums.terms[l],
                    sums.mass[l],
                    surveyed,
                    problem.geometry.p,
                    problem.anchored,
                )
    return FIRST if brackets.open.any() else _next_phase(state, problem)


@njit(**EXACT)
def _has_zero(numbers):
    zeros = 0
    for i in range(len(numbers)):
        zeros += numbers[i] == 0
    return zeros > 0


@njit(**EXACT)
def _same(numbers, others):
    different = 0
    for i in range(len(numbers)):
        different += numbers[i] != others[i]
    return different == 0


@njit(**EXACT)
def _digest(state, sums, problem, l, v):
    """What a look tells about one centre."""
    brackets, geometry, mass = state.brackets, problem.geometry, sums.mass[l]
    centers, terms = state.centers, sums.terms[l]
    if settle_pair(brackets, centers, l, v, terms, mass, geometry.p):
        return
    if brackets.open[l, v] == ALL and brackets.window[l, v] > 0:
        count = sums.terms[l, COUNT, v]
        brackets.open[l, v] = EACH if count <= FEW_VALUES else NEAR
        brackets.values[NEARBY_COUNT, l, v] = count
        for term in range(brackets.far.shape[1]):
            brackets.far[l, term, v] = sums.far[l, term, v]
    if brackets.open[l, v] in (NEAR, EACH):
        refine_near(brackets, centers, l, v, terms, mass, geometry.p, geometry.tolerance)
        return
    before = centers[l, v]
    refine(brackets, centers, l, v, terms, mass, geometry.p, geometry.tolerance)
    if problem.anchored and brackets.open[l, v] == ALL:
        set_anchor(brackets, centers, l, v, centers[l, v] - before, mass)


@njit(**MAKES)
def _search(state, sums, near, problem, l, v):
    """Search for one centre among the values near its anchor, until it is found or leaves."""
    begin, end = near.begin[l, v], near.end[l, v]
    values, weights = near.values[begin:end], near.weights[begin:end]
    scratch = np.empty_like(values), np.empty_like(values)
    feature, counts = np.full(1, v), np.zeros(state.centers.shape[1], dtype=np.int64)
    counts[v] = end - begin
    _search_among(state, sums, values, weights, scratch, feature, counts, problem, l)


@njit(**EXACT)
def _search_among(state, sums, values, weights, scratch, feature, counts, problem, l):
    brackets, geometry, terms, v = state.brackets, problem.geometry, sums.terms[l], feature[0]
    while brackets.open[l, v] == EACH:
        sum_values(
            terms,
            l,
            feature,
            counts,
            values,
            weights,
            scratch,
            state.centers,
            brackets,
            geometry,
        )
        refine_near(
            brackets,
            state.centers,
            l,
            v,
            terms,
            state.mass[l],
            geometry.p,
            geometry.tolerance,
        )


@njit(**EXACT)
def _join(state):
    """Let the last centres that look at members nearby look at all, with the others."""
    brackets, centers = state.brackets, state.centers
    for l in range(len(centers)):
        for v in range(centers.shape[1]):
            if brackets.open[l, v] in (NEAR, EACH):
                step = np.float64(centers[l, v]) - brackets.values[LAST, l, v]
                set_anchor(brackets, centers, l, v, step, state.mass[l])


@njit(**EXACT)
def _next_phase(state, problem):
    brackets, p = state.brackets, problem.geometry.p
    n_near = n_all = 0
    for l in range(len(brackets.open)):
        for v in range(brackets.open.shape[1]):
            n_near += brackets.open[l, v] >= NEAR
            n_all += brackets.open[l, v] == ALL
    if n_near > FEW * n_all:
        return NEARBY
    if n_all > 0:
        _join(state)
        return LOOK
    weigh(state, problem)
    if state.counters[REASON] not in (RUNNING, CONVERGED):
        return STOP
    # The first weights make so many rows move that their pulls tell little.
    state.counters[SURVEY] = problem.anchored and state.counters[ITERATION] == 1
    measure_drift(state, p)
    for l in range(len(state.mass)):
        mass = np.log(state.mass[l]) if state.mass[l] > 0 else np.inf
        for v in range(brackets.open.shape[1]):
            state.typical[l, v] = np.exp((brackets.log_dispersion[l, v] - mass) / p)
    return MOVE
