"""Fits that avoid work beside those that do not, and fits that are run pass by pass."""

import numpy as np

from cafelearn._solver.descent import Memory, chunk_pass, descend, values_wanted
from cafelearn._solver.iteration import MOVE, STOP, data_scale, first_phase, make_problem, start
from cafelearn._solver.kernels.anchors import scratch_for
from cafelearn._solver.kernels.brackets import ALL
from cafelearn._solver.kernels.lists import empty_lists
from cafelearn._solver.kernels.moving import _doubtful, empty_bounds
from cafelearn._solver.kernels.pairs import find_pairs
from cafelearn._solver.kernels.screening import Found, look_from, place_rows
from cafelearn._solver.kernels.sums import FAR_TERMS, empty_sums
from cafelearn._solver.shortcuts import advance_swiftly


def plain(problem):
    return problem._replace(swift=False, anchored=False)


def fits(
    X, k, p, *, weights=None, offset="mean", max_iter=300, seed=0, n_threads=1, centers=None
):
    """The same descent twice: with all work avoided that can be, and without."""
    weights = np.ones(len(X)) if weights is None else weights
    scale, feature_scale = data_scale(X.min(axis=0), X.max(axis=0))
    if centers is None:
        centers = X[np.random.default_rng(seed).choice(len(X), k, replace=False)]
    problem = make_problem(X, p, scale, offset, max_iter, 0.0)
    assert problem.swift
    assert problem.anchored == (p < 2)
    swift = descend(X, weights, centers, feature_scale, problem, n_threads)
    return swift, descend(X, weights, centers, feature_scale, plain(problem))


def assert_equal(swift, other, atol=5e-10):
    np.testing.assert_array_equal(swift.labels, other.labels)
    assert swift.n_iter == other.n_iter
    assert swift.stop_reason == other.stop_reason
    np.testing.assert_allclose(swift.centers, other.centers, rtol=0, atol=atol)
    np.testing.assert_allclose(swift.weights, other.weights, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(swift.log_path, other.log_path, rtol=0, atol=1e-9)
    finite = np.isfinite(other.log_dispersions)
    np.testing.assert_array_equal(finite, np.isfinite(swift.log_dispersions))
    np.testing.assert_allclose(
        swift.log_dispersions[finite], other.log_dispersions[finite], rtol=0, atol=1e-8
    )


def truth_values(n, m, k, seed):
    """Rows of 0 and 1 with k clusters."""
    rng = np.random.default_rng(seed)
    odds = rng.beta(0.4, 0.6, size=(k, m))
    return (rng.random((n, m)) < odds[rng.integers(k, size=n)]).astype(float)


def place_all(screen, passes):
    """What single precision tells of all rows, and their distances in rising order."""
    X, state, geometry = passes.X, passes.state, passes.problem.geometry
    error = look_from(screen, -1, state, geometry)
    size = len(X)
    found = Found(
        np.zeros(size, dtype=np.int32),
        np.empty(size, dtype=np.float32),
        np.empty((size, 2), dtype=np.float32),
        np.empty(size, dtype=np.float32),
        np.zeros(size, dtype=np.bool_),
    )
    for first in range(0, size, 128):
        rows = np.arange(first, min(first + 128, size))
        place_rows(found, rows, 0, X, screen, error, geometry)
    scaled = state.scaled_weights[None] * np.abs(X[:, None] - state.centers[None])
    return found, np.sort((scaled**geometry.p).sum(axis=2) ** (1 / geometry.p), axis=1)


class Passes:
    """A descent that is run pass by pass, in one chunk, with what each one saw."""

    def __init__(self, X, k, p, forgetful=False):
        self.X, self.ones = X, np.ones(len(X))
        scale, feature_scale = data_scale(X.min(axis=0), X.max(axis=0))
        self.problem = make_problem(X, p, scale, "mean", 300, 0.0)
        assert not self.problem.geometry.rooted  # swift passes have no room for that
        centers = X[np.random.default_rng(0).choice(len(X), k, replace=False)]
        self.state = start(centers, feature_scale, self.problem)
        self.labels = np.full(len(X), -1, dtype=np.int32)
        self.bounds = empty_bounds(len(X), k, X.shape[1] * 8)
        self.lists, self.forgetful = empty_lists(X, self.ones, k, len(X), True), forgetful
        self.pairs = find_pairs(X, len(X))
        self.phases, self.asleep, self.asked = [], [], []

    def memory(self):
        return Memory(self.bounds, self.lists, self.pairs)

    def sums(self, phase):
        """What one pass finds."""
        sums = empty_sums(*self.state.centers.shape, FAR_TERMS)
        chunk_pass(
            sums,
            phase,
            self.state,
            self.labels,
            self.memory(),
            scratch_for(self.X, self.lists, self.state.brackets, len(self.X)),
            0,
            self.X,
            self.ones,
            0,
            len(self.X),
            self.problem.geometry,
        )
        return sums

    def run(self, watch=lambda phase, passes: None):
        phase = first_phase(self.problem)
        while phase != STOP:
            if phase == MOVE and self.labels[0] >= 0:
                doubtful = _doubtful(self.labels, self.bounds.copy(), self.state.drift)
                self.asleep.append(int((doubtful < 0).sum()))
            sums = self.sums(phase)
            if self.forgetful:
                self.lists.complete[:] = False
            self.phases.append(phase)
            self.asked.append(int((self.state.brackets.open == ALL).sum()))
            watch(phase, self)
            data = self.X, self.ones, len(self.X)
            near = values_wanted(phase, self.state, self.labels, self.memory(), *data)
            phase = advance_swiftly(phase, self.state, sums, near, self.problem)
        return self
