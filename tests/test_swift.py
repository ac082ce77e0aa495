"""The passes of large data avoid work and change no result."""

import numpy as np
import pytest
from numba import njit
from sklearn.base import clone

from cafelearn import CAFE, MinkowskiWeightedKMeans
from cafelearn._solver.descent import descend, one_cluster
from cafelearn._solver.iteration import (
    FIRST,
    LOOK,
    MOVE,
    NEARBY,
    _is_hopeless,
    data_scale,
    make_problem,
)
from cafelearn._solver.kernels.assign import assign_chunk, make_geometry
from cafelearn._solver.kernels.brackets import ALL, NEAR, empty_brackets
from cafelearn._solver.kernels.power import negative_powers, reciprocal
from cafelearn._solver.kernels.screening import (
    bounds_of,
    make_screen,
    n_groups,
)
from cafelearn._solver.kernels.series import add_far, add_series
from cafelearn._solver.kernels.sums import CURVE_DOWN, FAR_TERMS, PULL_DOWN, SPREAD
from cafelearn._solver.kernels.vectors import inside_window, lowest_bit
from conftest import make_blobs
from swift import Passes, assert_equal, fits, place_all, plain
from swift import truth_values as make_truth_values

pytestmark = pytest.mark.usefixtures("few_are_many")


@pytest.fixture(scope="module")
def blobs():
    X, _ = make_blobs(12_000, 9, 6, n_noise=4, seed=2)
    return X / np.ptp(X, axis=0)


@pytest.fixture(scope="module")
def truth_values():
    return make_truth_values(8_000, 12, 4, seed=0)


class TestSameAsThePlainLoop:
    @pytest.mark.parametrize("p", [1.05, 1.1, 1.3, 1.5, 1.9, 2.5, 3, 4, 7.3])
    @pytest.mark.parametrize("seed", [0, 1])
    def test_blobs(self, blobs, p, seed):
        assert_equal(*fits(blobs, 6, p, seed=seed))

    @pytest.mark.parametrize("p", [1.1, 1.5, 3])
    def test_without_structure(self, p):
        X = np.random.default_rng(0).uniform(size=(8_000, 5))
        assert_equal(*fits(X, 9, p))

    @pytest.mark.parametrize("p", [1.1, 1.6, 3])
    @pytest.mark.parametrize("offset", [-np.inf, np.log(0.01)])
    def test_offsets(self, blobs, p, offset):
        assert_equal(*fits(blobs, 6, p, offset=offset))

    @pytest.mark.parametrize("p", [1.1, 1.5, 3])
    def test_sample_weights(self, blobs, p):
        weights = np.random.default_rng(0).integers(0, 4, len(blobs)) * 0.5
        assert_equal(*fits(blobs, 6, p, weights=weights))

    @pytest.mark.parametrize("p", [1.1, 1.5, 3])
    @pytest.mark.parametrize("max_iter", [1, 2, 4])
    def test_stopped_early(self, blobs, p, max_iter):
        assert_equal(*fits(blobs, 6, p, max_iter=max_iter))

    @pytest.mark.parametrize("p", [1.01, 1.1, 1.5, 1.95, 3])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_truth_values(self, truth_values, p, weighted):
        weights = None
        if weighted:
            weights = np.random.default_rng(1).integers(0, 3, len(truth_values)) * 0.25
        # Equal rows tie, so the path may be long.
        assert_equal(*fits(truth_values, 4, p, weights=weights, max_iter=30))

    @pytest.mark.parametrize("p", [1.1, 1.5, 3])
    def test_tied_binary_and_constant_columns(self, p):
        rng = np.random.default_rng(3)
        X = np.column_stack(
            [
                rng.integers(0, 2, size=(9_000, 3)),
                rng.integers(0, 7, size=(9_000, 2)) / 7,
                rng.normal(size=(9_000, 2)),
                np.full(9_000, 0.5),
            ]
        ).astype(float)
        assert_equal(*fits(X, 4, p, offset=np.log(0.01)))

    @pytest.mark.parametrize("p", [1.1, 1.5, 3, 6])
    @pytest.mark.parametrize(
        "change",
        [
            lambda X: X + 1e6,  # far from the origin, where single precision is too coarse
            lambda X: X * 10.0 ** np.arange(-5, 4),  # units that differ much
            lambda X: np.round(X, 1),  # many rows as far from one centre as from another
            lambda X: np.vstack([X[:3_000]] * 4),  # every row four times
            lambda X: np.vstack([X, X[:1] + 1e4]),  # one row far away from all others
        ],
    )
    def test_hard_for_single_precision(self, blobs, p, change):
        X = change(blobs)
        assert_equal(*fits(X, 6, p), atol=5e-10 * np.ptp(X, axis=0).max())

    @pytest.mark.parametrize("p", [1.1, 1.5, 3])
    @pytest.mark.parametrize("k", [1, 2, 40])
    def test_more_clusters_than_bounds(self, p, k):
        X, _ = make_blobs(8_000, 3, 12, seed=3)
        assert n_groups(40, X.shape[1] * 8) == 1
        assert_equal(*fits(X, k, p, max_iter=30))

    @pytest.mark.parametrize("p", [1.1, 3])
    def test_empty_clusters_are_reseeded(self, p):
        X, _ = make_blobs(9_000, 4, 3, seed=1)
        scale, feature_scale = data_scale(X.min(axis=0), X.max(axis=0))
        far = X.max(axis=0) + 10 * np.ptp(X, axis=0)
        centers = np.vstack([X[:3], far, far + 1])
        problem = make_problem(X, p, scale, "mean", 300, 0.0)
        ones = np.ones(len(X))
        swift = descend(X, ones, centers, feature_scale, problem)
        other = descend(X, ones, centers, feature_scale, plain(problem))
        assert swift.n_found == 5
        assert_equal(swift, other)

    @pytest.mark.parametrize("p", [1.5, 3])
    @pytest.mark.parametrize("seed", range(3))
    def test_of_rows_that_are_equally_far_the_first_fills_a_cluster(self, p, seed):
        # Few distinct rows: starts are equal, clusters remain empty, and distances tie.
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 3, size=(6_000, 3)) * np.array([1.0, 0.5, 2.0])
        swift, other = fits(X, 20, p, seed=seed, offset=np.log(0.1), max_iter=10)
        assert swift.n_found == 20
        assert_equal(swift, other)

    @pytest.mark.parametrize("p", [1.1, 1.5, 3])
    @pytest.mark.parametrize("way", [1e3, 1e7])
    def test_centres_that_begin_far_away(self, blobs, p, way):
        # So far that single precision does not tell where between them a row is.
        swift, other = fits(blobs, 4, p, centers=blobs[:4] + way * np.arange(4)[:, None])
        assert swift.n_found == 4
        assert_equal(swift, other)

    @pytest.mark.parametrize("p", [1.1, 1.5, 3])
    def test_float32(self, blobs, p):
        swift, other = fits(blobs.astype(np.float32), 6, p)
        assert (swift.labels == other.labels).mean() > 0.999
        np.testing.assert_allclose(swift.centers, other.centers, atol=1e-4)

    @pytest.mark.parametrize("p", [1.1, 1.5, 3])
    def test_same_bits_for_any_number_of_threads(self, blobs, p):
        one, _ = fits(blobs, 6, p)
        three, _ = fits(blobs, 6, p, n_threads=3)
        for a, b in zip(one, three, strict=True):
            np.testing.assert_array_equal(a, b)

    @pytest.mark.parametrize("scale", [1e-100, 1e100])
    def test_units_do_not_matter(self, blobs, scale):
        one = MinkowskiWeightedKMeans(6, p=1.4, n_init=1, random_state=0).fit(blobs)
        other = MinkowskiWeightedKMeans(6, p=1.4, n_init=1, random_state=0).fit(blobs * scale)
        np.testing.assert_array_equal(one.labels_, other.labels_)
        np.testing.assert_allclose(one.feature_weights_, other.feature_weights_, rtol=1e-6)

    @pytest.mark.parametrize("p", [1.1, 1.5, 3])
    def test_centers_are_exact(self, blobs, p):
        swift, _ = fits(blobs, 6, p)
        _, feature_scale = data_scale(blobs.min(axis=0), blobs.max(axis=0))
        # At the end nothing moves: the centres are those of the members.
        for cluster in range(6):
            rows = np.ascontiguousarray(blobs[swift.labels == cluster])
            center, log_dispersion = one_cluster(rows, np.ones(len(rows)), feature_scale, p)
            np.testing.assert_allclose(swift.centers[cluster], center, rtol=0, atol=2e-10)
            np.testing.assert_allclose(
                swift.log_dispersions[cluster], log_dispersion, rtol=0, atol=1e-8
            )


class TestBounds:
    @pytest.mark.parametrize("p", [1.1, 1.5, 3])
    @pytest.mark.parametrize("repeat", [1, 5, 9])
    def test_they_hold_for_every_row_in_every_pass(self, blobs, p, repeat):
        def watch(phase, passes):
            if phase != MOVE:
                return
            state, X = passes.state, passes.X
            scaled = state.scaled_weights[None] * np.abs(X[:, None] - state.centers[None])
            distances = (scaled**p).sum(axis=2) ** (1 / p)
            own = distances[np.arange(len(X)), passes.labels]
            np.testing.assert_array_equal(passes.labels, distances.argmin(axis=1))
            distances[np.arange(len(X)), passes.labels] = np.inf
            assert (passes.bounds[:, 0] >= own * (1 - 1e-8)).all()
            groups = np.arange(6) * n // 6
            for group in range(n):
                others = distances[:, groups == group].min(axis=1)
                assert (passes.bounds[:, 1 + group] <= others * (1 + 1e-8)).all()

        X = np.hstack([blobs[:6_000]] * repeat)
        n = n_groups(6, X.shape[1] * 8)
        assert n == {1: 1, 5: 3, 9: 6}[repeat]
        Passes(X, 6, p).run(watch)

    @pytest.mark.parametrize("p", [1.1, 1.5, 3])
    def test_they_let_rows_sleep(self, p):
        X, _ = make_blobs(6_000, 6, 4, seed=0)
        passes = Passes(X, 4, p).run()
        assert passes.asleep[-1] > 0.5 * len(X)

    @pytest.mark.parametrize("p", [1.1, 1.5, 3, 5])
    def test_what_single_precision_tells(self, blobs, p):
        rng = np.random.default_rng(0)
        X = blobs * rng.uniform(0.01, 1, size=9)
        passes = Passes(X, 6, p)
        problem = passes.problem
        geometry, state = problem.geometry, passes.state
        state.scaled_weights[:] = rng.dirichlet(np.ones(9), size=6)
        screen = make_screen(X, 6, 1)
        found, distances = place_all(screen, passes)
        low, high = bounds_of(found, 9, geometry)
        assert found.seen.all()
        assert (low <= distances[:, 0]).all()
        assert (high >= distances[:, 0]).all()
        assert (found.bounds[:, 1] <= distances[:, 1]).all()
        # They are close enough to leave few rows open.
        assert (high < found.bounds[:, 1]).mean() > 0.99


class TestAnchors:
    @pytest.mark.parametrize("p", [1.1, 1.5])
    def test_few_looks_are_needed(self, blobs, p):
        passes = Passes(blobs, 6, p).run()
        phases = passes.phases
        assert phases.count(FIRST) == phases.count(MOVE) - 1
        # One look at all members, and one at those nearby, which are wanted one by one.
        asked = dict.fromkeys((FIRST, LOOK), 0)
        for phase, count in zip(phases, passes.asked, strict=True):
            if phase in asked:
                asked[phase] += count
        assert asked[LOOK] < asked[FIRST] / 2
        assert phases.count(NEARBY) < 2 * phases.count(FIRST)

    @pytest.mark.parametrize("p", [1.1, 1.5])
    def test_one_look_at_truth_values_is_enough(self, truth_values, p):
        phases = Passes(truth_values, 4, p).run().phases
        assert phases.count(FIRST) > 3
        assert LOOK not in phases
        assert NEARBY not in phases

    @pytest.mark.parametrize("p", [1.2, 1.6])
    def test_without_lists_the_rows_tell_the_same_bits(self, blobs, p):
        kept, read = Passes(blobs, 6, p).run(), Passes(blobs, 6, p, forgetful=True).run()
        assert kept.phases == read.phases
        np.testing.assert_array_equal(kept.state.centers, read.state.centers)
        np.testing.assert_array_equal(kept.labels, read.labels)

    def test_lists_that_are_too_short_are_not_used(self, blobs):
        kept = Passes(blobs, 6, 1.2).run()
        short = Passes(blobs, 6, 1.2)
        short.lists = short.lists._replace(values=short.lists.values[:, :100].copy())
        seen = []
        short.run(lambda phase, passes: seen.append(bool(passes.lists.complete[0])))
        assert not all(seen)
        np.testing.assert_array_equal(kept.state.centers, short.state.centers)

    @pytest.mark.parametrize("p", [1.05, 1.5, 1.95])
    @pytest.mark.parametrize("way", [0.0, 0.1, -0.4])
    def test_the_series_is_the_sum_over_far_members(self, p, way):
        rng = np.random.default_rng(0)
        x = rng.normal(size=128)
        x = x[np.abs(x) > 0.25]
        columns = np.zeros((1, 160))
        columns[0, : len(x)] = x
        weights = np.zeros(160)
        weights[: len(x)] = rng.uniform(size=len(x))
        window, scale = 0.2, 1.0
        far = np.zeros((1, FAR_TERMS, 1))
        geometry = make_geometry(p, np.float64)
        one = np.ones((1, 1))
        features = np.zeros(1, dtype=np.int64)
        add_far(
            far,
            0,
            features,
            columns,
            weights,
            0 * one,
            scale * one,
            window * one,
            160,
            geometry.negative,
        )
        terms = np.zeros((9, 1))
        missing = add_series(terms, far[0], 0, way * window, window, p)
        t, w = x - way * window, weights[: len(x)]
        tolerance = 1e-11 + missing
        assert terms[PULL_DOWN, 0] == pytest.approx(
            -(w * np.sign(t) * np.abs(t) ** (p - 1)).sum(), abs=tolerance
        )
        assert terms[SPREAD, 0] == pytest.approx((w * np.abs(t) ** p).sum(), abs=1e-8)
        assert terms[CURVE_DOWN, 0] == pytest.approx(
            (w * np.abs(t) ** (p - 2)).sum(), rel=1e-3 if way == -0.4 else 1e-7
        )


class TestPrimitives:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_inside_window(self, dtype):
        @njit
        def marks(values, anchor, scale, window):
            found, out = inside_window(values, 1, anchor, scale, window), []
            while found != 0:
                out.append(np.int64(lowest_bit(found)))
                found &= found - np.uint64(1)
            return out

        values = np.array([9, 0, 1, 2, 3, 4, -1, -2, np.inf, 5], dtype=dtype)
        number = np.dtype(dtype).type
        assert marks(values, number(1), number(2), number(4)) == [0, 1, 2, 3, 5]

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_reciprocal(self, dtype):
        @njit
        def inverse(numbers):
            out = np.empty_like(numbers)
            for i in range(len(numbers)):
                out[i] = reciprocal(numbers[i])
            return out

        numbers = np.concatenate([np.geomspace(1e-12, 1e12, 999), -np.geomspace(1e-3, 9, 99)])
        numbers = numbers.astype(dtype)
        rtol = 4 * np.finfo(dtype).eps
        np.testing.assert_allclose(inverse(numbers), 1 / numbers, rtol=rtol)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("p", [1.05, 1.5, 1.9])
    def test_negative_powers(self, dtype, p):
        geometry = make_geometry(p, dtype)
        numbers = np.concatenate([[0], np.geomspace(1e-12, 1e3, 300), [-0.3]]).astype(dtype)
        factors = np.linspace(0, 2, len(numbers)).astype(dtype)
        out = np.empty_like(numbers)
        negative_powers(out, numbers, factors, geometry.negative, geometry.distances)
        expected = factors[1:] * np.abs(numbers[1:].astype(float)) ** (p - 2)
        assert out[0] == 0
        np.testing.assert_allclose(
            out[1:], expected, rtol=1e-10 if dtype == np.float64 else 2e-5
        )


def test_small_data_take_the_plain_loop(blobs):
    assert not make_problem(blobs[:5_000], 1.1, 1.0, "mean", 9, 0.0).swift
    assert make_problem(blobs, 1.1, 1.0, "mean", 9, 0.0).swift
    # p = 2 has one look for an iteration as it is.
    assert not make_problem(blobs, 2, 1.0, "mean", 9, 0.0).swift
    assert empty_brackets(np.ones(2), 2).open.max() == ALL < NEAR


def test_predict_agrees_with_the_labels(blobs):
    for p in (1.1, 1.7, 3):
        model = MinkowskiWeightedKMeans(6, p=p, n_init=2, random_state=0).fit(blobs)
        np.testing.assert_array_equal(model.predict(blobs), model.labels_)
        labels, nearest = np.empty(len(blobs), dtype=np.int32), np.empty(len(blobs))
        scaled = model.feature_weights_
        geometry = make_geometry(p, np.float64)
        assign_chunk(
            labels, nearest, blobs, 0, len(blobs), model.cluster_centers_, scaled, geometry
        )
        np.testing.assert_array_equal(labels, model.labels_)


class TestEarlyStopping:
    @pytest.mark.parametrize("p", [1.2, 2, 3])
    def test_it_saves_iterations_and_keeps_a_good_start(self, p, capsys):
        X, _ = make_blobs(900, 8, 8, seed=3)
        model = MinkowskiWeightedKMeans(8, p=p, n_init=30, random_state=0, verbose=2)
        whole = model.fit(X)
        lines = capsys.readouterr().err.splitlines()
        short = clone(model).set_params(early_stopping=True).fit(X)
        given_up = capsys.readouterr().err.splitlines()
        assert len(lines) == len(given_up) == 30
        assert lines[:5] == given_up[:5]
        abandoned = sum(line.endswith("abandoned") for line in given_up)
        assert abandoned >= 8

        def iterations(lines):
            return sum(int(line.split(", ")[1].split()[0]) for line in lines)

        assert iterations(given_up) < 0.9 * iterations(lines)
        assert short.stop_reason_ != "abandoned"
        assert short.inertia_ <= whole.init_objectives_[:5].min() * (1 + 1e-9)
        assert len(short.init_objectives_) == 30

    def test_large_data_too(self, blobs):
        model = MinkowskiWeightedKMeans(6, p=1.3, n_init=9, random_state=1)
        short = clone(model).set_params(early_stopping=True).fit(blobs)
        whole = model.fit(blobs)
        np.testing.assert_array_equal(short.init_objectives_[:5], whole.init_objectives_[:5])
        assert (short.init_objectives_ != whole.init_objectives_).any()
        # Of starts within 1e-9 of each other the first is kept.
        assert short.inertia_ <= short.init_objectives_[:5].min() * (1 + 1e-9)

    def test_the_result_does_not_depend_on_the_number_of_threads(self):
        X, _ = make_blobs(600, 6, 5, seed=4)
        model = MinkowskiWeightedKMeans(
            5, p=1.4, n_init=20, early_stopping=True, random_state=0
        )
        one, two = clone(model).fit(X), clone(model).set_params(n_jobs=2).fit(X)
        np.testing.assert_array_equal(one.init_objectives_, two.init_objectives_)
        np.testing.assert_array_equal(one.labels_, two.labels_)

    def test_cafe_hands_it_on(self):
        X, _ = make_blobs(300, 5, 4)
        cafe = CAFE(4, p=(1.5, 3.0), n_init=8, early_stopping=True, random_state=0).fit(X)
        assert all(model.early_stopping for model in cafe.models_)

    def test_steps_that_shrink_slowly_are_given_time(self):
        falling = np.array([10.0, 9.0, 8.1, 7.3])
        assert not _is_hopeless(falling, 3, 1.0)
        assert _is_hopeless(falling, 3, -9.0 - 7.3)
        assert not _is_hopeless(falling, 3, np.inf)
        assert _is_hopeless(np.array([3.0, 2.0, 1.99]), 2, 1.9)
        assert not _is_hopeless(np.array([3.0, 2.0]), 1, 1.9)
