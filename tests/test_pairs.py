"""Columns of two values are counted, and their distances need no powers."""

import numpy as np
import pytest

from cafelearn._solver.iteration import FIRST, LOOK, MOVE
from cafelearn._solver.kernels.assign import chunk_rows
from cafelearn._solver.kernels.chords import OTHER, PAIRED, draw_chords
from cafelearn._solver.kernels.pairs import LESS, find_pairs
from cafelearn._solver.kernels.screening import bounds_of, make_screen
from cafelearn._solver.kernels.sums import (
    ABOVE,
    AT_ABOVE,
    AT_BELOW,
    BELOW,
    CURVE_DOWN,
    CURVE_UP,
    PULL_DOWN,
    PULL_UP,
    SPREAD,
)
from swift import Passes, assert_equal, fits, place_all, truth_values

pytestmark = pytest.mark.usefixtures("few_are_many")


@pytest.fixture(scope="module")
def mixed():
    """Two values in six columns, of other sizes and signs; many in three; one in the last."""
    rng = np.random.default_rng(4)
    X = truth_values(9_000, 10, 4, seed=1)
    X[:, 1] = 3 - 0.1 * X[:, 1]
    X[:, 2] = 1e-3 * (X[:, 2] - 1)
    X[:, 6:9] = rng.normal(size=(9_000, 3)) * 0.3 + X[:, :3]
    X[:, 9] = -0.5
    return X


class TestFinding:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_values_of_each_chunk(self, dtype):
        rng = np.random.default_rng(0)
        X = rng.integers(0, 2, size=(1_000, 7)).astype(dtype)
        X[:, 1] = rng.normal(size=1_000)
        X[:, 2] = 0.25
        X[:, 3] = np.arange(1_000) // 130  # three in a chunk of 300, two in the last one
        X[:, 4] = 7 - 9 * X[:, 4]
        X[299, 5] = 2  # a third value in the last row of a chunk
        X[600, 6] = -0.0
        found = find_pairs(X, 300)
        assert found.shape == (4, 2, 7)
        assert found.dtype == dtype
        n_pairs = 0
        for chunk, values in enumerate(found):
            for v, column in enumerate(X[300 * chunk : 300 * chunk + 300].T):
                unique = np.unique(column)
                if len(unique) > 2:
                    assert np.isnan(values[:, v]).all()
                else:
                    n_pairs += 1
                    np.testing.assert_array_equal(values[:, v], unique[[0, -1]])
        assert n_pairs == 20


class TestCounting:
    @pytest.mark.parametrize("p", [1.05, 1.5, 2.5, 3, 4, 7])
    def test_sums_are_those_over_the_members(self, mixed, p):
        passes = Passes(mixed, 4, p)
        passes.sums(MOVE)
        passes.ones = np.random.default_rng(0).integers(0, 3, len(mixed)) * 0.5
        assert np.isnan(passes.pairs[0, LESS]).sum() == 3
        passes.state.centers[:] = mixed.mean(axis=0) + 0.01 * np.arange(4)[:, None]
        passes.state.centers[1, :2] = 1, 2.9  # values that members have
        counted = passes.sums(FIRST)
        passes.pairs[:] = np.nan
        summed = passes.sums(FIRST)
        for name in ("mass", "low", "high"):
            np.testing.assert_array_equal(getattr(counted, name), getattr(summed, name))
        used = [PULL_DOWN, CURVE_DOWN, SPREAD]
        used += [BELOW, ABOVE, AT_BELOW, AT_ABOVE] if p < 2 else [PULL_UP, CURVE_UP]
        for term in used:
            one, other = counted.terms[:, term], summed.terms[:, term]
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-9, err_msg=str(term))

    @pytest.mark.parametrize("p", [1.1, 1.5, 2.5, 3, 6])
    def test_one_look_is_enough(self, p):
        phases = Passes(truth_values(8_000, 12, 4, seed=0), 4, p).run().phases
        assert phases.count(FIRST) > 3
        assert LOOK not in phases


class TestChords:
    def screen(self, X, k, p, scaled_weights=None):
        """What single precision tells of the distances of each row, beside the truth."""
        passes = Passes(X, k, p)
        geometry, state = passes.problem.geometry, passes.state
        if scaled_weights is not None:
            state.scaled_weights[:] = scaled_weights
        screen = make_screen(X, k, 1)
        draw_chords(screen, passes.pairs[0], state, geometry)
        found, truth = place_all(screen, passes)
        low, high = bounds_of(found, X.shape[1], geometry)
        return screen.chords.counts, low, high, found.bounds[:, 1], truth

    @pytest.mark.parametrize("p", [1.05, 1.5, 2.5, 3, 7])
    @pytest.mark.parametrize("columns", [slice(0, 6), slice(0, 10), slice(5, 9)])
    def test_distances_are_those_of_powers(self, mixed, p, columns):
        X = np.ascontiguousarray(mixed[:, columns])
        weights = np.random.default_rng(0).dirichlet(np.ones(X.shape[1]), size=5)
        counts, low, high, second, truth = self.screen(X, 5, p, weights)
        assert counts[OTHER] == {6: 0, 10: 3, 4: 3}[X.shape[1]]
        assert counts.sum() == X.shape[1]
        assert (low <= truth[:, 0]).all()
        assert (high >= truth[:, 0]).all()
        assert (second <= truth[:, 1]).all()
        np.testing.assert_allclose(low, high, rtol=1e-3, atol=1e-4)
        apart = truth[:, 1] > 1.001 * truth[:, 0] + 1e-4
        assert apart.mean() > 0.5
        assert (high < second)[apart].all()

    @pytest.mark.parametrize("p", [1.2, 3])
    def test_a_row_at_its_centre_is_seen_there(self, p):
        # Differences of sums of powers would leave an error of the size of the powers.
        X = truth_values(300, 6, 3, seed=2)
        counts, low, high, _, truth = self.screen(X, 3, p)
        assert counts[PAIRED] == 6
        there = truth[:, 0] == 0
        assert there.sum() >= 3
        assert (high[there] < 1e-6).all()
        assert (low[there] <= 0).all()

    def test_values_that_single_precision_cannot_tell_apart(self):
        X = truth_values(300, 4, 3, seed=2)
        X[:, 0] = 1 + 1e-9 * X[:, 0]
        X[0, 0] = 1
        passes = Passes(X, 3, 1.5)
        passes.state.centers[2, 0] = 0
        screen = make_screen(X, 3, 1)
        draw_chords(screen, passes.pairs[0], passes.state, passes.problem.geometry)
        assert screen.chords.counts.tolist() == [3, 1]
        assert screen.chords.names[OTHER, 0] == 0

    def test_powers_that_would_overflow(self):
        X = truth_values(300, 4, 3, seed=2)
        passes = Passes(X, 3, 7.0)
        passes.state.centers[1, 2] = 1e4
        passes.state.scaled_weights[:] = 1
        screen = make_screen(X, 3, 1)
        draw_chords(screen, passes.pairs[0], passes.state, passes.problem.geometry)
        assert screen.chords.names[OTHER, 0] == 2
        assert screen.chords.counts.tolist() == [3, 1]


class TestSameAsThePlainLoop:
    @pytest.mark.parametrize("p", [1.1, 1.5, 2.5, 3, 4.5])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_mixed_columns(self, mixed, p, weighted):
        # Weights whose sums are rounded: what was counted seldom adds up to the mass.
        weights = np.random.default_rng(0).integers(0, 4, len(mixed)) * 0.1
        offset = np.log(0.01)
        assert_equal(*fits(mixed, 4, p, weights=weights if weighted else None, offset=offset))

    @pytest.mark.parametrize("p", [1.1, 1.6, 3])
    def test_values_that_differ_between_chunks(self, p):
        n = 3 * chunk_rows(8)
        X = truth_values(n, 8, 5, seed=3)
        rows = np.arange(n)
        X[:, 0] = rows // 5_000  # some chunks see two values, all see six
        X[:, 1] += rows // chunk_rows(8)  # pairs that share a value with the next one
        X[:, 2] = rows >= n - 1  # one row is unlike all others
        kinds = np.isnan(find_pairs(X, chunk_rows(8))[:, LESS, 0])
        assert kinds.any()
        swift, other = fits(X, 5, p, max_iter=25)
        assert_equal(swift, other)

    @pytest.mark.parametrize("p", [1.1, 1.5, 3])
    def test_float32(self, mixed, p):
        swift, other = fits(mixed.astype(np.float32), 4, p, max_iter=8)
        assert (swift.labels == other.labels).mean() > 0.999
        np.testing.assert_allclose(swift.centers, other.centers, atol=1e-4)

    @pytest.mark.parametrize("p", [1.1, 3])
    def test_same_bits_for_any_number_of_threads(self, p):
        X = truth_values(3 * chunk_rows(9), 9, 4, seed=5)
        one, _ = fits(X, 4, p, max_iter=10)
        three, _ = fits(X, 4, p, max_iter=10, n_threads=3)
        for a, b in zip(one, three, strict=True):
            np.testing.assert_array_equal(a, b)
