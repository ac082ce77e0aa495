"""Starts on a sample of the rows, refined on all of them."""

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone

from cafelearn import CAFE, MinkowskiWeightedKMeans
from cafelearn.distributed import drawing as dask_starts
from cafelearn.kmeans import draws
from cafelearn.kmeans.rows import InMemory
from cafelearn.kmeans.starts import prepare
from conftest import make_blobs

ATTRIBUTES = ("cluster_centers_", "feature_weights_", "dispersions_", "init_objectives_")


@pytest.fixture(scope="module")
def rows():
    return make_blobs(20_000, 6, 4, seed=3)[0]


def model(**options):
    settings = {"p": 1.5, "n_init": 4, "subsample": 2_000, "random_state": 0}
    return MinkowskiWeightedKMeans(4, **{**settings, **options})


def same_fit(one, other):
    for name in ATTRIBUTES:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_array_equal(np.asarray(one.labels_), np.asarray(other.labels_))


class TestSample:
    def draw(self, X, weights=None, size=100, seed=0):
        weights = np.ones(len(X)) if weights is None else weights
        draw = draws.rows_to_draw(X, weights, X.min(axis=0), X.max(axis=0))
        return draws.draw_sample(X, draw, size, np.random.default_rng(seed))

    def test_rows_of_the_data_each_once(self, rows):
        found, mass = self.draw(rows)
        assert found.shape == (100, 6)
        assert mass.shape == (100,)
        assert len(np.unique(found, axis=0)) == 100
        known = {row.tobytes() for row in rows}
        assert all(row.tobytes() in known for row in found)

    def test_order_of_the_rows_does_not_matter(self, rows):
        one, other = self.draw(rows), self.draw(rows[::-1])
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])

    def test_seeds_draw_different_rows(self, rows):
        assert not np.array_equal(self.draw(rows)[0], self.draw(rows, seed=1)[0])

    def test_weights_estimate_the_whole(self, rows):
        mass = np.random.default_rng(0).exponential(size=len(rows))
        found = [self.draw(rows, mass, 500, seed) for seed in range(100)]
        totals = [weights.sum() for _, weights in found]
        means = [np.average(X[:, 0], weights=weights) for X, weights in found]
        assert np.mean(totals) == pytest.approx(mass.sum(), rel=0.03)
        assert np.mean(means) == pytest.approx(np.average(rows[:, 0], weights=mass), abs=0.1)

    def test_a_row_that_is_repeated_often_is_always_drawn(self, rows):
        X = rows.copy()
        X[::2] = 0
        for seed in range(5):
            found, mass = self.draw(X, seed=seed)
            zero = np.flatnonzero((found == 0).all(axis=1))
            assert len(zero) == 1
            assert mass[zero[0]] == pytest.approx(10_000)

    def test_few_distinct_rows_are_all_taken_with_their_counts(self):
        X = np.repeat(np.arange(12.0).reshape(6, 2), [1, 2, 3, 4, 5, 85], axis=0)
        found, mass = self.draw(X, size=50)
        assert sorted(mass) == [1, 2, 3, 4, 5, 85]
        assert len(found) == 6


class TestFit:
    @pytest.mark.parametrize("init", ["random", "k-means++", "anomalous"])
    def test_as_good_as_starts_on_all_rows(self, rows, init):
        sampled = model(init=init).fit(rows)
        whole = model(init=init, subsample=None).fit(rows)
        assert sampled.inertia_ <= 1.005 * whole.inertia_
        np.testing.assert_array_equal(sampled.labels_, sampled.predict(rows))

    def test_no_sample_of_fewer_than_twice_as_many_rows(self, rows):
        source = InMemory(rows).ordinary(2.0)
        (job,) = prepare([model(subsample=10_001)], source)
        assert job.on_sample is None
        (job,) = prepare([model(subsample=10_000)], source)
        assert len(job.on_sample.rows.X) == 10_000

    def test_estimates_of_the_objective(self, rows):
        fitted = model().fit(rows)
        assert len(fitted.init_objectives_) == 4
        assert fitted.init_objectives_.min() == pytest.approx(fitted.inertia_, rel=0.05)

    def test_order_of_the_rows_does_not_matter(self, rows):
        order = np.random.default_rng(0).permutation(len(rows))
        one, other = model().fit(rows), model().fit(rows[order])
        np.testing.assert_array_equal(one.labels_[order], other.labels_)
        np.testing.assert_allclose(one.inertia_, other.inertia_, rtol=1e-12)

    def test_weights_are_repetitions(self, rows):
        weights = np.random.default_rng(0).integers(1, 4, len(rows))
        one = model().fit(rows, sample_weight=weights)
        other = model().fit(np.repeat(rows, weights, axis=0))
        np.testing.assert_array_equal(np.repeat(one.labels_, weights), other.labels_)
        np.testing.assert_allclose(one.inertia_, other.inertia_, rtol=1e-9)

    def test_constant_offsets_are_those_of_all_rows(self, rows):
        offset = model(subsample=None).fit(rows).dispersions_.mean() / 2
        one = model(dispersion_offset=offset).fit(rows)
        other = model(dispersion_offset=offset, subsample=None).fit(rows)
        np.testing.assert_allclose(one.inertia_, other.inertia_, rtol=1e-4)
        np.testing.assert_allclose(
            np.sort(one.feature_weights_, axis=0),
            np.sort(other.feature_weights_, axis=0),
            atol=1e-4,
        )

    def test_given_centres_need_no_sample(self, rows):
        init = rows[:4]
        same_fit(model(init=init).fit(rows), model(init=init, subsample=None).fit(rows))

    def test_threads_do_not_change_the_bits(self, rows):
        same_fit(model().fit(rows), model(n_jobs=2).fit(rows))

    def test_early_stopping(self, rows):
        fitted = model(n_init=12, early_stopping=True).fit(rows)
        assert len(fitted.init_objectives_) == 12
        assert fitted.stop_reason_ == "converged"

    def test_many_more_rows_than_the_sample_get_more_starts(self, rows):
        for size, starts in ((2_000, 4), (500, 8), (200, 16), (50, 16)):
            found = model(subsample=size).fit(rows)
            assert len(found.init_objectives_) == starts
        assert len(model(subsample=50, init="anomalous").fit(rows).init_objectives_) == 1

    def test_refinements_that_fall_behind_end_early(self, capfd):
        # Overlapping clusters: several clusterings of almost equal objectives.
        X = np.random.default_rng(0).normal(size=(20_000, 4))
        found = model(n_init=10, subsample=5_000, verbose=2).fit(X)
        lines = [line for line in capfd.readouterr().err.splitlines() if "start" in line]
        refined = lines[len(found.init_objectives_) :]
        assert not refined[0].endswith("abandoned")
        assert any(line.endswith("abandoned") for line in refined[1:])
        ended = [line for line in refined if not line.endswith("abandoned")]
        objectives = [float(line.split("objective ")[1].split(",")[0]) for line in ended]
        assert found.inertia_ == pytest.approx(min(objectives), rel=1e-5)

    @pytest.mark.parametrize("subsample", [0, -1, 1.5, "many"])
    def test_sizes_that_are_none(self, rows, subsample):
        with pytest.raises(ValueError, match="subsample"):
            model(subsample=subsample).fit(rows)

    def test_candidates_are_those_fitted_alone(self, rows):
        cafe = CAFE(4, p=(2.0, 3.0), scaling=None, n_init=2, subsample=2_000, random_state=0)
        cafe.fit(rows)
        for fitted in cafe.models_:
            same_fit(fitted, clone(fitted).fit(rows))


class TestDask:
    @pytest.mark.parametrize("init", ["random", "k-means++"])
    @pytest.mark.parametrize("chunks", [8_192, 16_384])
    def test_same_bits(self, rows, init, chunks):
        one = model(init=init).fit(rows)
        same_fit(one, model(init=init).fit(da.from_array(rows, chunks=(chunks, -1))))

    def test_rows_that_are_in_several_blocks(self, rows):
        X = np.round(rows)
        one = model().fit(X)
        same_fit(one, model().fit(da.from_array(X, chunks=(8_192, -1))))

    @pytest.mark.parametrize("buckets", [7, 2**19])
    @pytest.mark.parametrize("digits", [0, 8])
    def test_many_blocks(self, rows, digits, buckets, monkeypatch):
        monkeypatch.setattr(dask_starts, "FEW_BLOCKS", 1)
        monkeypatch.setattr(dask_starts, "BUCKETS", buckets)
        listed, sum_masses = [], dask_starts.sum_masses

        def spy(rows, request):
            listed.append(len(request[1][0]))
            return sum_masses(rows, request)

        monkeypatch.setattr(dask_starts, "sum_masses", spy)
        X = np.round(rows, digits)
        one = model().fit(X)
        lazy = da.from_array(X, chunks=(8_192, -1))
        same_fit(one, model().fit(lazy))
        few = max(listed)
        if digits and buckets > 7:
            # Most buckets have one row, so that few rows are listed in vain.
            monkeypatch.setattr(dask_starts, "FEW_BLOCKS", 1000)
            listed.clear()
            same_fit(one, model().fit(lazy))
            assert 1.2 * few < max(listed)

    def test_few_rows_are_no_sample(self, rows):
        one = model(subsample=10_000, n_init=2).fit(rows)
        lazy = da.from_array(rows, chunks=(8_192, -1))
        same_fit(one, model(subsample=10_000, n_init=2).fit(lazy))
