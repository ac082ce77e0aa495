"""The number of clusters: what is chosen, how sure that is, and how the estimators use it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_blobs

from cafelearn import CAFE, PAPER, MinkowskiWeightedKMeans
from cafelearn.choice import chosen as numbers_module
from cafelearn.choice.chosen import MEASURED, chosen_number, number_frame
from cafelearn.choice.numbers import choose_number
from cafelearn.diagnosis import DiagnosisWarning
from cafelearn.estimators.tabular import TabularCAFE
from cafelearn.mixture.settings import SETTINGS
from cafelearn.persistence import ModelFileError, load_model, save_model
from cafelearn.theory import certificate

QUICK = {"n_init": 1, "p": 2.0}
# Where the number is clear, few numbers need to be tried.
FEW = [1, 2, 3, 4]


def blobs(k, n=180, m=4, seed=0):
    """Clusters, each of which is apart from the others in all columns."""
    rng = np.random.default_rng(seed)
    centers = 8.0 * np.stack([rng.permutation(k) for _ in range(m)], axis=1)
    return make_blobs(n, centers=centers, random_state=seed)[0]


def noise(n=200, m=4, seed=0):
    return np.random.default_rng(seed).uniform(size=(n, m))


def choose(X, numbers=FEW, seed=0, **options):
    return choose_number(X, list(numbers), np.random.SeedSequence(seed), **options)


def elongated(rng):
    shape = np.array([[3.0, 2.5], [0.0, 1.0]])
    return np.vstack([rng.normal(size=(70, 2)) @ shape + [0, 8 * l] for l in range(3)])


def skewed(rng):
    return np.r_[rng.lognormal(0, 0.6, (100, 3)), rng.lognormal(2.5, 0.6, (100, 3))]


def heavy_tails(rng):
    centers = 12 * np.array([[0, 0, 0], [1, 1, 0], [0, 1, 1]])
    return np.vstack([rng.standard_t(3, size=(70, 3)) + center for center in centers])


def codes(rng):
    return 1.0 + (np.arange(210)[:, None] % 3 + (rng.random((210, 5)) < 0.15)) % 3


def one_hot(rng):
    return np.hstack([np.eye(3)[column - 1] for column in codes(rng).astype(int).T])


def counts(rng):
    return np.r_[rng.poisson(2, (100, 4)), rng.poisson(12, (100, 4))].astype(float)


def of_two_sizes(rng):
    return np.r_[rng.normal(size=(150, 3)), rng.normal(size=(20, 3)) + 6]


def mixed(rng):
    y = np.arange(180) % 3
    is_large = (y == 2) ^ (rng.random(180) < 0.1)
    return np.c_[rng.normal(4 * y), rng.normal(-3 * y), is_large, rng.normal(size=180)]


KINDS = {
    elongated: 3,
    skewed: 2,
    heavy_tails: 3,
    codes: 3,
    one_hot: 3,
    counts: 2,
    of_two_sizes: 2,
    mixed: 3,
}


def correlated(rng):
    return rng.normal(size=(250, 4)) @ rng.normal(size=(4, 4))


def lognormal(rng):
    return rng.lognormal(size=(250, 3))


def uniform(rng):
    return rng.uniform(size=(200, 4))


def t_cloud(rng):
    return rng.standard_t(3, size=(250, 3))


def ordinal(rng):
    answers = 3 + rng.normal(size=(250, 1)) + 0.8 * rng.normal(size=(250, 5))
    return np.clip(np.round(answers), 1, 5)


def binary(rng):
    return (rng.random((250, 6)) < 0.3).astype(float)


def one_column(rng):
    return rng.normal(size=(250, 1))


CLOUDS = (correlated, lognormal, uniform, t_cloud, ordinal, binary, one_column)


class TestChoice:
    @pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
    def test_finds_clear_clusters(self, k):
        found = choose(blobs(k), range(1, k + 2))
        assert chosen_number(found) == k
        assert found["found"] is True

    @pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
    def test_finds_clusters_of_many_kinds(self, kind):
        found = choose(kind(np.random.default_rng(0)))
        assert chosen_number(found) == KINDS[kind]
        assert found["found"] is True

    @pytest.mark.parametrize("kind", CLOUDS, ids=lambda kind: kind.__name__)
    def test_a_single_cloud_is_no_structure(self, kind):
        """One cluster, or cuts through a continuum."""
        X = kind(np.random.default_rng(1))
        cafe = CAFE([1, 2, 3], random_state=0, **QUICK)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DiagnosisWarning)
            cafe.fit(X)
        assert cafe.n_clusters_ == 1 or cafe.verdict_ in ("continuum", "inconclusive", "none")
        assert cafe.confidence_ == "low"

    def test_one_is_chosen_only_if_it_is_tried(self):
        found = choose(noise(), range(2, 5))
        assert chosen_number(found) in (2, 3, 4)
        assert found["found"] is False

    def test_the_table(self):
        table = number_frame(choose(blobs(3)))
        assert table.index.tolist() == FEW
        assert table.index.name == "n_clusters"
        assert table.columns.tolist() == [*MEASURED, "chosen"]
        assert table.loc[1].tolist() == [0.0, True, False, False]
        assert table["gain"].idxmax() == 3
        assert table.loc[3, "gain"] > 10 * SETTINGS.margin
        assert table["chosen"].tolist() == [k == 3 for k in table.index]
        assert table.dtypes.astype(str).tolist() == ["float64", "bool", "bool", "bool"]

    def test_near_ties(self):
        # Two of the three clusters overlap, so that two clusters are nearly as good.
        rng = np.random.default_rng(5)
        tied = []
        for gap in np.linspace(2.2, 3.4, 7):
            X = np.r_[
                rng.normal(size=(50, 2)) + 12,
                rng.normal(size=(50, 2)),
                rng.normal(size=(50, 2)),
            ]
            X[100:] += gap
            table = number_frame(choose(X, [1, 2, 3]))
            near = table["counts"] & (table["gain"] >= table["gain"].max() - SETTINGS.margin)
            assert (table["tied"] == near & ~table["chosen"] & (table.index > 1)).all()
            tied += table.index[table["tied"]].tolist()
        assert set(tied) & {2, 3}

    @pytest.mark.parametrize("exponent", [-300, 1, 300])
    def test_units_do_not_matter(self, exponent):
        X = blobs(3)
        table, scaled = (number_frame(choose(Z)) for Z in (X, np.ldexp(X, 3 * exponent)))
        pd.testing.assert_frame_equal(table, scaled)
        shifted = number_frame(choose(X * [1e-3, 1, 10, 1e6] + 5))
        pd.testing.assert_frame_equal(table, shifted, rtol=1e-3)

    def test_the_seed_decides_and_threads_do_not(self):
        X = blobs(3, seed=1)
        cafe = CAFE(FEW, random_state=3, **QUICK)
        one, two = (clone(cafe).set_params(n_jobs=n).fit(X) for n in (1, 2))
        tables = one.n_clusters_table_, two.n_clusters_table_
        pd.testing.assert_frame_equal(*tables, check_exact=True)
        assert_array_equal(one.labels_, two.labels_)
        assert chosen_number(choose(X, seed=4)) == 3

    def test_constant_columns_and_equal_rows(self):
        X = blobs(3)
        with_constant = np.c_[X, np.ones(len(X))]
        pd.testing.assert_frame_equal(
            number_frame(choose(X)), number_frame(choose(with_constant))
        )
        found = choose(np.ones((30, 3)))
        assert chosen_number(found) == 1
        assert found["found"] is False

    def test_the_largest_number_is_found(self):
        X = blobs(4)
        assert chosen_number(choose(X, range(1, 5))) == 4
        assert chosen_number(choose(X, [2, 4])) == 4

    @pytest.mark.filterwarnings("ignore:Number of distinct clusters")
    def test_few_distinct_rows(self):
        X = np.repeat([[0.0, 0.0, 1.0], [4.0, 5.0, 2.0], [7.0, 9.0, 3.0]], 40, axis=0)
        assert chosen_number(choose(X)) == 3

    def test_more_columns_than_rows_of_a_cluster(self):
        rng = np.random.default_rng(0)
        X = np.repeat(rng.normal(size=(4, 100)), 50, axis=0) + rng.normal(size=(200, 100))
        assert chosen_number(choose(X, [1, 3, 4, 5])) == 4
        assert chosen_number(choose(rng.normal(size=(200, 100)), [1, 2, 3])) == 1

    @pytest.mark.parametrize("n", [4, 8, 20])
    def test_few_rows(self, n):
        X = np.random.default_rng(0).normal(size=(n, 3))
        table = number_frame(choose(X, range(1, n // 2 + 1)))
        assert np.isfinite(table["gain"]).all()
        assert table["chosen"].sum() == 1
        assert chosen_number(choose(X, [1, 2])) == 1

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

    @pytest.mark.parametrize("value", [100.0, 9999.0])
    def test_one_outlier(self, value):
        X = blobs(3)
        X[0, 0] = value
        assert chosen_number(choose(X)) == 3

    def test_three_outliers(self):
        X = blobs(3)
        X[[0, 60, 120], [0, 1, 2]] = 9999.0
        found = choose(X)
        assert chosen_number(found) == 3
        assert found["found"]

    @pytest.mark.parametrize("seed", range(2))
    def test_a_column_of_heavy_tails(self, seed):
        X = np.c_[blobs(3, seed=seed), np.random.default_rng(seed).lognormal(0, 1.5, 180)]
        assert chosen_number(choose(X)) == 3

    def test_a_single_column_of_noise(self):
        X = np.random.default_rng(0).normal(size=(200, 1))
        with pytest.warns(DiagnosisWarning, match="No cluster structure"):
            CAFE(3, random_state=0, **QUICK).fit(X)


class TestGaps:
    """Filled values would form clusters of their own."""

    @pytest.mark.parametrize("share", [0.1, 0.3])
    def test_values_missing_at_random(self, share):
        X = blobs(3)
        X[np.random.default_rng(0).random(X.shape) < share] = np.nan
        X = X[~np.isnan(X).all(axis=1)]
        assert chosen_number(choose(X)) == 3
        model = MinkowskiWeightedKMeans([2, 3, 4], random_state=0).fit(X)
        assert model.n_clusters_ == 3

    @pytest.mark.parametrize("share", [0.0, 0.2])
    def test_a_table_of_customers(self, share):
        rng = np.random.default_rng(0)
        y = np.repeat([0, 1, 2], 80)
        plan = np.array(["free", "pro", "team"])[np.where(rng.random(240) < 0.1, 0, y)]
        age = np.array([25, 45, 65])[y] + 3 * rng.normal(size=240)
        income = np.array([20, 80, 50])[y] + 4 * rng.normal(size=240)
        table = pd.DataFrame({"age": age, "income": 1000 * income, "plan": plan})
        gaps = rng.random(table.shape) < share
        gaps[gaps.all(axis=1)] = False
        cafe = CAFE([2, 3, 4], random_state=0, **QUICK)
        assert TabularCAFE(cafe).fit(table.mask(gaps)).n_clusters_ == 3

    def test_noise_is_one_cluster(self):
        X = noise()
        X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
        assert chosen_number(choose(X[~np.isnan(X).all(axis=1)])) == 1

    def test_columns_and_rows_with_few_observed_values(self):
        X = np.c_[blobs(2, n=80), np.full(80, np.nan), np.ones(80)]
        X[3:5, 4] = 1.0, 2.0  # a half may have none of these
        X[7, :5] = np.nan  # nothing but a constant is left of this row
        assert CAFE(range(1, 4), random_state=0, **QUICK).fit(X).n_clusters_ == 2
        assert MinkowskiWeightedKMeans([1, 2, 3], random_state=0).fit(X).n_clusters_ == 2

    def test_dask(self):
        da = pytest.importorskip("dask.array")
        X = blobs(3, n=300)
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
        X = X[~np.isnan(X).all(axis=1)]
        cafe = CAFE(FEW, random_state=0, **QUICK)
        lazy = clone(cafe).fit(da.from_array(X, chunks=(120, 4)))
        assert lazy.n_clusters_ == 3
        in_memory = clone(cafe).fit(X)
        pd.testing.assert_frame_equal(lazy.n_clusters_table_, in_memory.n_clusters_table_)


def small_data(seed):
    """Data of various sizes and kinds."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(24, 60)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, m)) + rng.uniform(0, 8) * rng.integers(0, 3, (n, 1))
    if seed % 3 == 1:
        X = np.round(X)
    if seed % 4 == 2:
        gaps = rng.random(X.shape) < 0.2
        X = np.where(gaps & ~gaps.all(axis=1, keepdims=True), np.nan, X)
    return X


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

    @pytest.mark.filterwarnings("ignore::cafelearn.diagnosis.DiagnosisWarning")
    @pytest.mark.parametrize("seed", range(20))
    def test_a_fit_with_the_chosen_number_says_the_same(self, seed):
        X = small_data(seed)
        chosen = CAFE([1, 2, 3], random_state=seed, **QUICK).fit(X)
        given = CAFE(chosen.n_clusters_, random_state=seed, **QUICK).fit(X)
        assert_array_equal(chosen.labels_, given.labels_)
        assert chosen._answer == given._answer
        assert_array_equal(chosen.transform(X), given.transform(X))

    @pytest.mark.parametrize("selection", ["likelihood", "agreement"])
    def test_hard_candidates(self, selection):
        X = blobs(3)
        settings = QUICK | {"selection": selection, "p": (2.0, 3.0), "random_state": 0}
        chosen, given = CAFE(FEW, **settings).fit(X), CAFE(3, **settings).fit(X)
        assert_array_equal(chosen.labels_, given.labels_)
        assert_array_equal(chosen.transform(X), given.transform(X))

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

    def test_sample_weights(self):
        X = np.r_[blobs(3), blobs(4, n=80, seed=5) + 40.0]
        weight = np.r_[np.ones(180), np.zeros(80)]
        model = MinkowskiWeightedKMeans(FEW, random_state=0)
        assert model.fit(X, sample_weight=weight).n_clusters_ == 3
        table = model.n_clusters_table_
        # Weights below one on average are relative, those above it count rows.
        for factor in (2.0**-1000, 2.0**-10):
            model.fit(X, sample_weight=factor * weight)
            pd.testing.assert_frame_equal(model.n_clusters_table_, table)
        model.fit(X, sample_weight=2.0**900 * weight)
        assert np.isfinite(model.n_clusters_table_["gain"]).all()

    def test_groups(self):
        X = one_hot(np.random.default_rng(0))
        groups = np.repeat(list("abcde"), 3)
        found = CAFE([2, 3, 4], feature_groups=groups, random_state=0, **QUICK).fit(X)
        assert found.n_clusters_ == 3

    def test_a_fit_forgets_the_one_before(self):
        cafe = CAFE([2, 3], random_state=0, **QUICK).fit(blobs(3))
        assert cafe.n_clusters_table_ is not None
        cafe.set_params(n_clusters=2).fit(blobs(3))
        assert cafe.n_clusters_table_ is None
        assert cafe.n_clusters_ == 2

    def test_no_structure_is_one_cluster_and_a_finding(self):
        X = noise()
        with pytest.warns(DiagnosisWarning, match="so all are in one cluster"):
            cafe = CAFE(FEW, random_state=0).fit(X)
        assert cafe.n_clusters_ == 1
        assert [f.code for f in cafe.diagnosis_ if f.severity == "severe"] == ["no-structure"]
        assert cafe.transform(X).shape == (200, 6)
        assert set(cafe.predict(X)) == {0}
        with pytest.warns(DiagnosisWarning, match="No cluster structure"):
            several = MinkowskiWeightedKMeans([2, 3], random_state=0).fit(X)
        assert several.n_clusters_ in (2, 3)
        assert several.diagnosis_[0].code == "no-structure"
        assert "one cluster" not in several.diagnosis_[0].message

    def test_the_paper_and_tables(self):
        X = pd.DataFrame(blobs(3), columns=list("abcd")).assign(kind="x")
        X.loc[X["a"] > 5, "kind"] = "y"
        settings = PAPER | {"n_init": 2}
        model = TabularCAFE(CAFE([2, 3, 4], random_state=0, **settings)).fit(X)
        assert model.n_clusters_ == 3
        assert model.n_clusters_table_.index.tolist() == [2, 3, 4]
        assert model.cafe.n_clusters == [2, 3, 4]

    def test_auto_tries_fewer_numbers_for_few_rows(self):
        table = CAFE("auto", random_state=0, **QUICK).fit(blobs(2, n=40)).n_clusters_table_
        assert table.index.tolist() == [1, 2, 3, 4]

    def test_one_number_in_a_list(self):
        for model in (MinkowskiWeightedKMeans([1], random_state=0), CAFE([1], **QUICK)):
            model.fit(blobs(2))
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
            (range(2, 40), "needs at least 78 rows to choose among up to 39 .*; got 60"),
            ("many", "must be an int"),
        ],
    )
    def test_bad_numbers(self, kind, given, message):
        with pytest.raises(ValueError, match=message):
            kind(given).fit(blobs(2, n=60))

    def test_an_array_of_centres_has_one_number(self):
        with pytest.raises(ValueError, match="needs init to be a name or a callable"):
            MinkowskiWeightedKMeans("auto", init=np.eye(2, 4)).fit(blobs(2))


class TestModels:
    @pytest.mark.parametrize("asked", ["auto", range(2, 5), [2, 3]])
    def test_files(self, tmp_path, asked):
        X = pd.DataFrame(blobs(3, n=60), columns=list("abcd"))
        for kind in (CAFE(asked, random_state=0, **QUICK), MinkowskiWeightedKMeans(asked)):
            model = kind.fit(X)
            again = load_model(save_model(model, tmp_path / "model.skops", force=True))
            pd.testing.assert_frame_equal(again.n_clusters_table_, model.n_clusters_table_)
            assert_array_equal(again.predict(X), model.predict(X))
            assert model.n_clusters is asked
        table = TabularCAFE(CAFE([2, 3], random_state=0, **QUICK)).fit(X)
        again = load_model(save_model(table, tmp_path / "table.skops"))
        assert again.n_clusters_ == table.n_clusters_

    def test_damaged_tables_are_refused(self, tmp_path):
        model = MinkowskiWeightedKMeans([2, 3], random_state=0).fit(blobs(3))
        model._numbers["table"]["chosen"] = [True, False]
        path = save_model(model, tmp_path / "model.skops")
        with pytest.raises(ModelFileError, match=r"3 centres, but .*_table_ chooses \[2\]"):
            load_model(path)
        del model._numbers["table"]["gain"]
        path = save_model(model, path, force=True)
        with pytest.raises(ModelFileError, match="n_clusters_table_"):
            load_model(path)


def test_dask():
    da = pytest.importorskip("dask.array")
    X = blobs(3, n=300)
    lazy = da.from_array(X, chunks=(120, 4))
    model = MinkowskiWeightedKMeans([2, 3, 4], random_state=0).fit(lazy)
    assert model.n_clusters_ == 3
    cafe = CAFE(FEW, random_state=0, **QUICK).fit(lazy)
    assert cafe.n_clusters_ == 3
    # Up to as many rows as are used, the sample is all of them, in their order.
    in_memory = CAFE(FEW, random_state=0, **QUICK).fit(X)
    pd.testing.assert_frame_equal(cafe.n_clusters_table_, in_memory.n_clusters_table_)


class TestDisplay:
    def test_refusals(self):
        pytest.importorskip("matplotlib")
        from cafelearn.plotting import NumberOfClustersDisplay

        model = MinkowskiWeightedKMeans(2, random_state=0).fit(blobs(2))
        with pytest.raises(ValueError, match="got one with n_clusters=2"):
            NumberOfClustersDisplay.from_estimator(model)
        table = TabularCAFE(CAFE(2, random_state=0, **QUICK)).fit(blobs(2))
        with pytest.raises(ValueError, match="one with n_clusters=2"):
            NumberOfClustersDisplay.from_estimator(table)
        with pytest.raises(ValueError, match=r"gain, .* not found"):
            NumberOfClustersDisplay(pd.DataFrame({"counts": [True]}))

    def test_what_is_drawn(self):
        pytest.importorskip("matplotlib")
        from matplotlib import pyplot as plt

        from cafelearn.plotting import NumberOfClustersDisplay

        model = MinkowskiWeightedKMeans(FEW, random_state=0).fit(blobs(3))
        display = NumberOfClustersDisplay.from_estimator(model)
        display.figure_.canvas.draw()
        plt.close(display.figure_)
