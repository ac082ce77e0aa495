"""The number of clusters: what is measured, what is chosen, and how the estimators use it."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_wine, make_blobs

from cafelearn import CAFE, PAPER, MinkowskiWeightedKMeans
from cafelearn import _n_clusters as numbers_module
from cafelearn._candidates import fit_models
from cafelearn._n_clusters import (
    MEASURED,
    _smallest_as_good,
    choose_number,
    chosen_number,
    number_frame,
)
from cafelearn._tabular import TabularCAFE
from cafelearn.datasets import corrupt
from cafelearn.diagnosis import DiagnosisWarning
from cafelearn.persistence import ModelFileError, load_model, save_model
from cafelearn.theory import certificate

QUICK = {"n_init": 2, "p": 2.0, "n_permutations": 2}


def blobs(k, n=240, m=4, seed=0):
    centers = 10.0 * np.random.default_rng(seed).permutation(np.eye(k, m) + np.eye(k, m, 1))
    return make_blobs(n, centers=centers, random_state=seed)[0]


def noise(n=200, m=4, seed=0):
    return np.random.default_rng(seed).uniform(size=(n, m))


@pytest.fixture
def few_splits(monkeypatch):
    """Where clear clusters are to be found, two splits find them."""
    monkeypatch.setattr(numbers_module, "SPLITS", 2)
    monkeypatch.setattr(numbers_module, "STARTS", 2)


def choose(X, numbers=range(1, 7), model=None, seed=0, **options):
    return choose_number(X, list(numbers), model, np.random.SeedSequence(seed), **options)


class TestChoice:
    @pytest.mark.parametrize("k", [2, 3, 4])
    def test_finds_clear_clusters(self, k):
        found = choose(blobs(k))
        assert chosen_number(found) == k
        assert found["found"] is True
        table = number_frame(found)
        assert table.loc[k, "stability"] == pytest.approx(1.0)
        assert table.loc[k, "spread"] == pytest.approx(0.0, abs=1e-12)
        assert table.loc[k, "score"] > table.loc[k, "permuted_score"]

    def test_one_cluster_where_there_is_no_structure(self):
        kinds = [
            noise(),
            np.random.default_rng(1).normal(size=(200, 3)),
            np.random.default_rng(2).lognormal(size=(300, 4)),
            (noise(300, 6, seed=3) < 0.3).astype(float),
        ]
        for X in kinds:
            found = choose(X)
            assert chosen_number(found) == 1
            assert found["found"] is False

    def test_one_is_chosen_only_if_it_is_tried(self):
        found = choose(noise(), range(2, 5))
        assert chosen_number(found) in (2, 3, 4)
        assert found["found"] is False

    def test_the_table(self):
        table = number_frame(choose(blobs(3)))
        assert table.index.tolist() == [1, 2, 3, 4, 5, 6]
        assert table.index.name == "n_clusters"
        assert table.columns.tolist() == [*MEASURED, "chosen"]
        assert table.loc[1, list(MEASURED)].isna().all()
        others = table.loc[2:]
        # All splits agree here, so the means tell the mean of the products.
        expected = table.loc[3, "stability"] * np.sqrt(table.loc[3, "score"])
        assert table.loc[3, "criterion"] == pytest.approx(expected, rel=1e-3)
        assert others["criterion"].idxmax() == 3
        assert table["chosen"].tolist() == [k == 3 for k in table.index]

    def test_of_numbers_that_are_as_good_the_smallest(self):
        # Means 5, 9.9, 10 and 8; the second and the third differ by 0.1 +- 0.27.
        change = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
        criterion = np.c_[5.0 + change, 9.9 + 0.6 * change, 10.0 - 0.25 * change, 8.0 + change]
        assert _smallest_as_good(criterion) == 1
        assert _smallest_as_good(criterion - [0, 2, 0, 0]) == 2
        # What all splits say alike is no matter of chance.
        assert _smallest_as_good(np.tile([5.0, 9.9, 10.0, 8.0], (5, 1))) == 2
        assert _smallest_as_good(np.zeros((5, 3))) == 0

    def test_units_do_not_matter(self):
        X = blobs(3)
        table, scaled = (number_frame(choose(Z)) for Z in (X, X * [1e-3, 1, 10, 1e6] + 5))
        pd.testing.assert_frame_equal(table, scaled, rtol=1e-6)

    def test_the_seed_decides_and_threads_do_not(self):
        X = noise(120)
        one, two = (number_frame(choose(X, n_jobs=n)) for n in (1, 2))
        pd.testing.assert_frame_equal(one, two, check_exact=True)
        assert not one.equals(number_frame(choose(X, seed=1)))

    def test_constant_columns_and_equal_rows(self):
        X = blobs(3)
        with_constant = np.c_[X, np.ones(len(X))]
        pd.testing.assert_frame_equal(
            number_frame(choose(X)), number_frame(choose(with_constant)), check_exact=True
        )
        found = choose(np.ones((30, 3)))
        assert chosen_number(found) == 1
        assert found["found"] is False

    def test_some_features_blurred_in_each_cluster(self):
        # The clusters that k-means finds in halves of these rows are not the six.
        rng = np.random.default_rng(3)
        y = np.repeat(np.arange(6), 80)
        X, _ = corrupt(
            rng.normal(size=(6, 8))[y] + 0.1 * rng.normal(size=(480, 8)), y, 0.4, 4.0, rng
        )
        assert chosen_number(choose(X, range(1, 9))) == 6

    def test_the_largest_number_is_found(self):
        X = blobs(4)
        assert chosen_number(choose(X, range(1, 5))) == 4
        assert chosen_number(choose(X, [2, 4])) == 4

    def test_few_distinct_rows(self):
        X = np.repeat([[0.0, 0.0, 1.0], [0.0, 5.0, 2.0], [7.0, 5.0, 3.0]], 50, axis=0)
        assert chosen_number(choose(X)) == 3

    def test_more_rows_than_are_needed(self, monkeypatch):
        monkeypatch.setattr(numbers_module, "ROWS", 200)
        seen = []
        monkeypatch.setattr(
            numbers_module,
            "choose_number",
            lambda X, *rest: seen.append(X.shape) or choose_number(X, *rest),
        )
        model = MinkowskiWeightedKMeans([2, 3], random_state=0).fit(blobs(3, n=900))
        assert seen == [(200, 4)]
        assert model.n_clusters_ == 3
        assert len(model.labels_) == 900


class TestHostileColumns:
    """A few values must neither hide clusters nor make clusters."""

    @pytest.mark.parametrize("value", [100.0, 1000.0, 9999.0, 1e300])
    def test_one_outlier(self, value):
        X = blobs(4, n=400)
        X[0, 0] = value
        assert chosen_number(choose(X, range(1, 9))) == 4

    def test_three_outliers(self):
        X = blobs(4, n=400)
        X[[0, 100, 200], [0, 1, 2]] = 9999.0
        found = choose(X, range(1, 9))
        assert chosen_number(found) == 4
        assert found["found"]

    @pytest.mark.parametrize("seed", range(3))
    def test_a_column_of_heavy_tails(self, seed):
        X, _ = make_blobs(500, 6, centers=4, random_state=seed)
        X = np.c_[X, np.random.default_rng(seed).lognormal(0, 1.5, 500)]
        assert chosen_number(choose(X, range(1, 9))) == 4

    @pytest.mark.parametrize("kind", ["normal", "uniform"])
    def test_a_single_column_of_noise(self, kind):
        X = getattr(np.random.default_rng(0), kind)(size=(300, 1))
        assert chosen_number(choose(X)) == 1
        with pytest.warns(DiagnosisWarning, match="No cluster structure"):
            CAFE(3, random_state=0).fit(X)

    def test_a_single_column_of_clusters(self):
        rng = np.random.default_rng(0)
        X = rng.normal(10 * np.repeat([0, 1, 2], 100))[:, None]
        X[::30] = np.nan
        X = X[~np.isnan(X[:, 0])]
        assert chosen_number(choose(X)) == 3
        assert CAFE(3, random_state=0).fit(X).diagnosis_ == []

    def test_values_are_drawn_in_without_changing_their_order(self):
        X = np.c_[np.r_[np.linspace(-1, 1, 40), 1e3, -50.0, 2e3], np.arange(43.0)]
        drawn = numbers_module._draw_in(X)
        assert_array_equal(drawn[:40], X[:40])
        assert_array_equal(drawn[:, 1], X[:, 1])
        assert_array_equal(np.argsort(drawn[:, 0]), np.argsort(X[:, 0]))
        assert drawn[:, 0].max() < 20
        same = np.where(np.arange(43) < 36, 5.0, X[:, 0])[:, None]
        assert_array_equal(numbers_module._draw_in(same), same)

    def test_one_verdict(self):
        # The variables depend on each other in pairs, which the choice recognises.
        rng = np.random.default_rng(0)
        X = pd.DataFrame({"a": rng.normal(size=300), "c": rng.choice(list("uvw"), 300)})
        X["h"] = X["c"].str.upper()
        model = TabularCAFE(CAFE("auto", random_state=0, n_init=2)).fit(X)
        assert model.n_clusters_ > 1
        assert "no-structure" not in [finding.code for finding in model.diagnosis_]


class TestGaps:
    """Filled values would form clusters of their own."""

    @pytest.mark.parametrize("share", [0.1, 0.3])
    def test_values_missing_at_random(self, share):
        X = blobs(3)
        X[np.random.default_rng(0).random(X.shape) < share] = np.nan
        X = X[~np.isnan(X).all(axis=1)]
        assert chosen_number(choose(X, range(1, 9))) == 3
        model = MinkowskiWeightedKMeans(range(2, 9), random_state=0).fit(X)
        assert model.n_clusters_ == 3

    @pytest.mark.parametrize("share", [0.0, 0.1, 0.3])
    def test_a_table_of_customers(self, share):
        rng = np.random.default_rng(0)
        y = np.repeat([0, 1, 2], 80)
        plan = np.array(["free", "pro", "team"])[np.where(rng.random(240) < 0.1, 0, y)]
        age = np.array([25, 45, 65])[y] + 3 * rng.normal(size=240)
        income = np.array([20, 80, 50])[y] + 4 * rng.normal(size=240)
        table = pd.DataFrame({"age": age, "income": 1000 * income, "plan": plan})
        gaps = rng.random(table.shape) < share
        gaps[gaps.all(axis=1)] = False
        cafe = CAFE(range(2, 9), random_state=0, **QUICK)
        assert TabularCAFE(cafe).fit(table.mask(gaps)).n_clusters_ == 3

    def test_noise_is_one_cluster(self):
        X = noise()
        X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
        assert chosen_number(choose(X[~np.isnan(X).all(axis=1)])) == 1

    def test_columns_and_rows_with_few_observed_values(self):
        X = np.c_[blobs(2, n=80), np.full(80, np.nan), np.ones(80)]
        X[3:5, 4] = 1.0, 2.0  # a half may have none of these
        X[7, :5] = np.nan  # nothing but a constant is left of this row
        for asked in ("auto", range(1, 4)):
            assert CAFE(asked, random_state=0, **QUICK).fit(X).n_clusters_ == 2
        assert MinkowskiWeightedKMeans([1, 2, 3], random_state=0).fit(X).n_clusters_ == 2

    @pytest.mark.usefixtures("few_splits")
    def test_dask(self):
        da = pytest.importorskip("dask.array")
        X = blobs(3, n=600)
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
        X = X[~np.isnan(X).all(axis=1)]
        lazy = CAFE("auto", random_state=0, **QUICK).fit(da.from_array(X, chunks=(250, 4)))
        in_memory = CAFE("auto", random_state=0, **QUICK).fit(X)
        assert lazy.n_clusters_ == 3
        pd.testing.assert_frame_equal(lazy.n_clusters_table_, in_memory.n_clusters_table_)


@pytest.mark.usefixtures("few_splits")
class TestEstimators:
    def test_cafe_is_that_of_the_number_chosen(self):
        X = blobs(3)
        chosen = CAFE("auto", random_state=0, **QUICK).fit(X)
        given = CAFE(3, random_state=0, **QUICK).fit(X)
        assert chosen.n_clusters == "auto"
        assert chosen.n_clusters_ == given.n_clusters_ == 3
        assert given.n_clusters_table_ is None
        assert_array_equal(chosen.labels_, given.labels_)
        assert_array_equal(chosen.transform(X), given.transform(X))
        assert_array_equal(chosen.feature_weights_, given.feature_weights_)
        assert chosen.n_clusters_table_["chosen"].idxmax() == 3
        assert chosen.n_clusters_table_.index.tolist() == list(range(1, 11))
        assert clone(chosen).n_clusters == "auto"

    def test_mwkmeans_uses_its_own_settings(self):
        X = blobs(3)
        asked = range(2, 6)
        model = MinkowskiWeightedKMeans(asked, p=1.5, random_state=0).fit(X)
        given = MinkowskiWeightedKMeans(3, p=1.5, random_state=0).fit(X)
        assert model.n_clusters is asked
        assert model.n_clusters_ == 3
        assert_array_equal(model.labels_, given.labels_)
        assert_array_equal(model.cluster_centers_, given.cluster_centers_)
        assert certificate(model, X).loc[:, "verdict"].ne("does not hold").all()

    def test_mwkmeans_is_fitted_to_halves_as_it_is(self, monkeypatch):
        fitted = []
        monkeypatch.setattr(
            numbers_module,
            "fit_models",
            lambda models, *rest, **more: (
                fitted.extend(models) or fit_models(models, *rest, **more)
            ),
        )
        settings = {"p": 1.5, "weighting": "uniform", "init": "anomalous", "n_init": 2}
        MinkowskiWeightedKMeans([2, 3], **settings, random_state=0).fit(blobs(3))
        assert len(fitted) == 2 * (numbers_module.SPLITS + numbers_module.PERMUTED)
        most = {"n_clusters": 3 + numbers_module.EXTRA}
        for model in fitted:
            assert model.get_params().items() >= (settings | most).items()

    def test_sample_weights(self):
        X = np.r_[blobs(3), blobs(4, n=80, seed=5) + 40.0]
        weight = np.r_[np.ones(240), np.zeros(80)]
        model = MinkowskiWeightedKMeans(range(2, 7), random_state=0)
        assert model.fit(X, sample_weight=weight).n_clusters_ == 3
        table = model.n_clusters_table_
        for factor in (2.0**-10, 2.0**900):
            model.fit(X, sample_weight=factor * weight)
            pd.testing.assert_frame_equal(model.n_clusters_table_, table)

    def test_a_fit_forgets_the_one_before(self):
        cafe = CAFE([2, 3], random_state=0, **QUICK).fit(blobs(3))
        assert cafe.n_clusters_table_ is not None
        cafe.set_params(n_clusters=2).fit(blobs(3))
        assert cafe.n_clusters_table_ is None
        assert cafe.n_clusters_ == 2

    def test_no_structure_is_one_cluster_and_a_finding(self):
        X = noise()
        with pytest.warns(DiagnosisWarning, match="so all are in one cluster"):
            cafe = CAFE("auto", random_state=0).fit(X)
        assert cafe.n_clusters_ == 1
        assert [f.code for f in cafe.diagnosis_ if f.severity == "severe"] == ["no-structure"]
        assert cafe.transform(X).shape == (200, 2)
        assert set(cafe.predict(X)) == {0}
        with pytest.warns(DiagnosisWarning, match="No cluster structure"):
            several = MinkowskiWeightedKMeans([2, 3], random_state=0).fit(X)
        assert several.n_clusters_ in (2, 3)
        assert several.diagnosis_[0].code == "no-structure"
        assert "one cluster" not in several.diagnosis_[0].message

    def test_the_paper_and_tables(self):
        X = pd.DataFrame(blobs(3), columns=list("abcd")).assign(kind="x")
        X.loc[X["a"] > 5, "kind"] = "y"
        settings = PAPER | {"n_init": 2, "n_permutations": 2}
        model = TabularCAFE(CAFE([2, 3, 4], random_state=0, **settings)).fit(X)
        assert model.n_clusters_ == 3
        assert model.n_clusters_table_.index.tolist() == [2, 3, 4]
        assert model.cafe.n_clusters == [2, 3, 4]

    def test_wine(self):
        X = load_wine().data
        assert CAFE("auto", random_state=0, **QUICK).fit(X).n_clusters_ == 3

    def test_few_rows(self):
        table = CAFE("auto", random_state=0, **QUICK).fit(blobs(2, n=40)).n_clusters_table_
        assert table.index.tolist() == [1, 2, 3, 4]

    def test_one_number_in_a_list(self):
        model = MinkowskiWeightedKMeans([1], random_state=0).fit(blobs(2))
        assert model.n_clusters_ == 1
        assert model.diagnosis_ == []

    @pytest.mark.parametrize("kind", [MinkowskiWeightedKMeans, CAFE])
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ([], "at least one number of clusters"),
            ([2, 2], "distinct numbers"),
            ([0, 2], r"got 0 in \[0, 2\]"),
            ([2, 2.5], r"got 2.5 in"),
            ([2, True], r"got True in"),
            (range(2, 40), "needs at least 78 rows for 39 clusters; got 60"),
            ("many", "must be an int"),
        ],
    )
    def test_bad_numbers(self, kind, given, message):
        with pytest.raises(ValueError, match=message):
            kind(given).fit(blobs(2, n=60))

    def test_an_array_of_centres_has_one_number(self):
        with pytest.raises(ValueError, match="needs init to be a name or a callable"):
            MinkowskiWeightedKMeans("auto", init=np.eye(2, 4)).fit(blobs(2))


@pytest.mark.usefixtures("few_splits")
class TestModels:
    @pytest.mark.parametrize("asked", ["auto", range(2, 5), [2, 3]])
    def test_files(self, tmp_path, asked):
        X = pd.DataFrame(blobs(3), columns=list("abcd"))
        for kind in (CAFE(asked, random_state=0, **QUICK), MinkowskiWeightedKMeans(asked)):
            model = kind.fit(X)
            again = load_model(save_model(model, tmp_path / "model.skops", force=True))
            pd.testing.assert_frame_equal(again.n_clusters_table_, model.n_clusters_table_)
            assert_array_equal(again.predict(X), model.predict(X))
            assert model.n_clusters is asked
        table = TabularCAFE(CAFE(asked, random_state=0, **QUICK)).fit(X)
        again = load_model(save_model(table, tmp_path / "table.skops"))
        assert again.n_clusters_ == table.n_clusters_

    def test_damaged_tables_are_refused(self, tmp_path):
        model = MinkowskiWeightedKMeans([2, 3], random_state=0).fit(blobs(3))
        model._numbers["table"]["chosen"] = [True, False]
        path = save_model(model, tmp_path / "model.skops")
        with pytest.raises(ModelFileError, match=r"3 centres, but .*_table_ chooses \[2\]"):
            load_model(path)
        del model._numbers["table"]["score"]
        path = save_model(model, path, force=True)
        with pytest.raises(ModelFileError, match="n_clusters_table_"):
            load_model(path)


@pytest.mark.usefixtures("few_splits")
def test_dask():
    da = pytest.importorskip("dask.array")
    X = blobs(3, n=600)
    lazy = da.from_array(X, chunks=(250, 4))
    model = MinkowskiWeightedKMeans(range(2, 6), random_state=0).fit(lazy)
    assert model.n_clusters_ == 3
    cafe = CAFE("auto", random_state=0, **QUICK).fit(lazy)
    assert cafe.n_clusters_ == 3
    assert cafe.n_clusters == "auto"
    # Up to as many rows as are used, the sample is all of them, in their order.
    in_memory = CAFE("auto", random_state=0, **QUICK).fit(X)
    pd.testing.assert_frame_equal(cafe.n_clusters_table_, in_memory.n_clusters_table_)


@pytest.mark.usefixtures("few_splits")
class TestDisplay:
    def test_what_is_drawn(self):
        pytest.importorskip("matplotlib")
        from matplotlib import pyplot as plt

        from cafelearn.plotting import NumberOfClustersDisplay

        model = MinkowskiWeightedKMeans(range(1, 5), random_state=0).fit(blobs(3))
        display = NumberOfClustersDisplay.from_estimator(model)
        table = model.n_clusters_table_
        columns = ("stability", "permuted_stability", "score", "permuted_score")
        for line, column in zip(display.lines_, columns, strict=True):
            assert_array_equal(line.get_xdata(), [1, 2, 3, 4])
            assert_array_equal(line.get_ydata(), table[column])
        assert [set(mark.get_xdata()) for mark in display.marks_] == [{3}, {3}]
        display.figure_.canvas.draw()
        plt.close(display.figure_)

    def test_refusals(self):
        pytest.importorskip("matplotlib")
        from cafelearn.plotting import NumberOfClustersDisplay

        model = MinkowskiWeightedKMeans(2, random_state=0).fit(blobs(2))
        with pytest.raises(ValueError, match="got one with n_clusters=2"):
            NumberOfClustersDisplay.from_estimator(model)
        table = TabularCAFE(CAFE(2, random_state=0, **QUICK)).fit(blobs(2))
        with pytest.raises(ValueError, match="one with n_clusters=2"):
            NumberOfClustersDisplay.from_estimator(table)
        with pytest.raises(ValueError, match=r"permuted_stability, .* not found"):
            NumberOfClustersDisplay(pd.DataFrame({"stability": [1.0], "spread": [0.0]}))
