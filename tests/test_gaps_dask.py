"""Fits of Dask collections with missing values: those of the same rows in memory."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import conftest
from cafelearn import CAFE, MinkowskiWeightedKMeans, RangeScaler, TableEncoder, TabularCAFE
from cafelearn.kmeans import descent
from cafelearn.kmeans.kernels.geometry import chunk_rows
from conftest import make_blobs, with_gaps

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

from cafelearn.distributed import cache  # noqa: E402

M = 128
CHUNK = chunk_rows(M)


@pytest.fixture(scope="module")
def tall():
    """Four chunks of rows with gaps, the last one short; one chunk in the middle has none."""
    X, _ = make_blobs(3 * CHUNK + 500, M, 4, n_noise=40, seed=1)
    return np.concatenate(
        [with_gaps(X[:CHUNK]), X[CHUNK : 2 * CHUNK], with_gaps(X[2 * CHUNK :])]
    )


@pytest.fixture(autouse=True)
def by_blocks(monkeypatch):
    """Nothing is fetched, except for random starts that run on all rows."""
    monkeypatch.setattr("cafelearn.distributed.rows.FEW_ROWS", 0)


@pytest.fixture(scope="module")
def small():
    return with_gaps(make_blobs(600, 6, 3)[0])


def same_bits(one, other):
    conftest.same_bits(one, other, "_typical", "_mass")


def blocks_of(X, rows):
    return da.from_array(X, chunks=(rows, -1))


class TestMinkowskiWeightedKMeans:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize(
        ("p", "offset", "init", "subsample"),
        [
            (1.3, "mean", "random", 900),
            (2.0, "fixed", "k-means++", 400),
            (3.0, 0.5, "random", 600),
            (1.5, "mean", "random", 500),
            (3.0, "fixed", "k-means++", 700),
        ],
    )
    def test_bits(self, tall, p, offset, init, subsample, dtype):
        X = tall.astype(dtype)
        model = MinkowskiWeightedKMeans(
            4,
            p=p,
            dispersion_offset=offset,
            init=init,
            subsample=subsample,
            n_init=2,
            max_iter=8,
            random_state=0,
        )
        one = clone(model).fit(X)
        assert one.cluster_centers_.dtype == dtype
        for rows in (CHUNK, 3 * CHUNK):
            same_bits(one, clone(model).fit(blocks_of(X, rows)))

    def test_any_blocks(self, tall):
        model = MinkowskiWeightedKMeans(
            4, p=1.5, n_init=2, subsample=700, max_iter=10, random_state=0
        )
        one, other = clone(model).fit(tall), clone(model).fit(blocks_of(tall, 1_100))
        np.testing.assert_array_equal(one.labels_, other.labels_.compute())
        np.testing.assert_allclose(one.inertia_, other.inertia_, rtol=1e-9)

    def test_weights(self, tall):
        model = MinkowskiWeightedKMeans(
            4, p=1.6, n_init=2, subsample=700, max_iter=8, random_state=0
        )
        weights = np.random.default_rng(3).integers(0, 4, len(tall)).astype(float)
        one = clone(model).fit(tall, sample_weight=weights)
        same_bits(one, clone(model).fit(blocks_of(tall, CHUNK), sample_weight=weights))

    def test_labels_that_are_not_cached_are_computed_again(self, tall, monkeypatch):
        model = MinkowskiWeightedKMeans(
            4, p=1.6, n_init=2, subsample=700, max_iter=5, random_state=0
        )
        one = clone(model).fit(tall)
        monkeypatch.setattr(cache.CACHE, "limit", 0)
        same_bits(one, clone(model).fit(blocks_of(tall, CHUNK)))

    def test_given_called_and_anomalous_starts(self, small):
        def init(X, n_clusters, random_state):
            assert np.isfinite(X).all()
            return X[random_state.choice(len(X), n_clusters, replace=False)]

        start = np.nan_to_num(small[:3])
        for given in (start, init, "anomalous"):
            model = MinkowskiWeightedKMeans(3, p=1.5, init=given, n_init=2, random_state=0)
            same_bits(clone(model).fit(small), clone(model).fit(blocks_of(small, 600)))

    def test_equal_rows_of_a_sample_are_those_with_equal_filled_values(self):
        rng = np.random.default_rng(0)
        X = with_gaps(rng.integers(3, size=(500, 4)).astype(float), 0.3)
        model = MinkowskiWeightedKMeans(3, p=1.4, n_init=2, subsample=60, random_state=1)
        one, other = clone(model).fit(X), clone(model).fit(blocks_of(X, 90))
        np.testing.assert_allclose(one.init_objectives_, other.init_objectives_, rtol=1e-9)
        np.testing.assert_array_equal(one.labels_, other.labels_.compute())

    def test_a_block_without_values_of_a_column(self, small):
        X = small.copy()
        X[:200, 2] = np.nan
        model = MinkowskiWeightedKMeans(3, n_init=2, subsample=99, random_state=0)
        one, other = clone(model).fit(X), clone(model).fit(blocks_of(X, 200))
        np.testing.assert_array_equal(one.labels_, other.labels_.compute())

    def test_empty_clusters_take_a_row_of_another_block(self, tall):
        far = np.full((2, M), 1e4) * [[1], [-1]]
        X = tall.copy()
        X[-1] += 50.0
        model = MinkowskiWeightedKMeans(
            4, p=1.5, init=np.vstack([np.nan_to_num(X[:2]), far]), max_iter=5
        )
        one = clone(model).fit(X)
        same_bits(one, clone(model).fit(blocks_of(X, CHUNK)))
        assert len(np.unique(one.labels_)) == 4

    def test_number_of_clusters(self, small):
        model = MinkowskiWeightedKMeans([2, 3, 4], n_init=2, random_state=0)
        one, other = clone(model).fit(small), clone(model).fit(blocks_of(small, 600))
        pd.testing.assert_frame_equal(one.n_clusters_table_, other.n_clusters_table_)
        same_bits(one, other)

    def test_a_column_that_the_sample_lacks(self, small, monkeypatch):
        monkeypatch.setattr("cafelearn.choice.chosen.ROWS", 200)
        X = np.column_stack([small, np.r_[[1.0, 2.0], np.full(598, np.nan)]])
        model = MinkowskiWeightedKMeans([2, 3, 4], n_init=2, random_state=0)
        assert model.fit(blocks_of(X, 150)).n_clusters_ == 3

    def test_complete_blocks_take_the_plain_passes(self, small, monkeypatch):
        for name in ("gapped_assign_chunk", "gapped_member_chunk"):
            monkeypatch.setattr(descent, name, lambda *_: pytest.fail("not complete"))
        model = MinkowskiWeightedKMeans(3, n_init=2, subsample=99, random_state=0)
        model.fit(blocks_of(np.nan_to_num(small), 200))


class TestScalers:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_range_scaler(self, small, dtype):
        X = small.astype(dtype)
        here, there = RangeScaler().fit(X), RangeScaler().fit(blocks_of(X, 170))
        assert there.mean_.dtype == there.range_.dtype == dtype
        np.testing.assert_allclose(
            here.mean_, there.mean_, atol=1e-6 if dtype is np.float32 else 1e-12
        )
        np.testing.assert_array_equal(here.range_, there.range_)

    def test_standard_scaler(self, small):
        X = small.copy()
        X[:300, 1] = np.nan
        settings = {"selection": "likelihood", "random_state": 0}
        cafe = CAFE(3, p=2.0, scaling="standard", n_init=2, subsample=99, **settings)
        found, expected = cafe.fit(blocks_of(X, 170)).scaler_, StandardScaler().fit(X)
        np.testing.assert_allclose(found.mean_, expected.mean_)
        np.testing.assert_allclose(found.scale_, expected.scale_)
        np.testing.assert_array_equal(found.n_samples_seen_, expected.n_samples_seen_)


class TestCAFE:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize("subsample", [500, 200])
    def test_bits(self, dtype, subsample):
        # Scaled rows are exempt: their means are summed in another order.
        X = with_gaps(make_blobs(2 * CHUNK + 300, M, 3, seed=2)[0].astype(dtype))
        cafe = CAFE(
            3,
            selection="likelihood",
            scaling=None,
            p=(1.5, 2.0),
            dispersion_offset=("mean", "fixed"),
            subsample=subsample,
            n_init=2,
            max_iter=6,
            random_state=0,
        )
        one = clone(cafe).fit(X)
        for rows in (CHUNK, 2 * CHUNK):
            other = clone(cafe).fit(blocks_of(X, rows))
            assert one.models_.index(one.model_) == other.models_.index(other.model_)
            for model, there in zip(one.models_, other.models_, strict=True):
                same_bits(model, there)

    @pytest.mark.parametrize(
        ("selection", "rescaling"),
        [
            *(("likelihood", name) for name in ("distances", "origin", "centroid")),
            *(("mixture", name) for name in ("memberships", "distances", "origin")),
        ],
    )
    def test_same_as_in_memory(self, small, selection, rescaling):
        cafe = CAFE(
            3,
            n_components=3,
            selection=selection,
            rescaling=rescaling,
            scaling=("range", "standard", MinMaxScaler()),
            p=(1.5, 2.0),
            n_init=2,
            subsample=150,
            random_state=0,
        )
        lazy = blocks_of(small, 170)
        one, other = clone(cafe).fit(small), clone(cafe).fit(lazy)
        pd.testing.assert_frame_equal(one.candidates_, other.candidates_, rtol=1e-8)
        np.testing.assert_array_equal(one.labels_, other.labels_.compute())
        for name in ("transform", "rescale", "assignment_margin", "predict"):
            here, there = getattr(one, name)(small), getattr(other, name)(lazy).compute()
            assert np.isfinite(there).all()
            np.testing.assert_allclose(here, there, atol=1e-9)
        assert one._answer == other._answer
        if selection == "likelihood":
            return
        np.testing.assert_allclose(one.predict_proba(small), other.predict_proba(lazy))
        # The features of the rows of the fit are those that `transform` computes.
        whole = clone(cafe).set_params(extractor=None, n_components=None).fit(small)
        np.testing.assert_allclose(whole.transform(small), one.rescale(small))
        np.testing.assert_allclose(one.extractor_.mean_, one.rescale(small).mean(axis=0))

    @pytest.mark.parametrize("rows", [600, 130, 25])
    def test_mixture_in_any_blocks(self, small, rows):
        cafe = CAFE(3, n_init=2, subsample=150, random_state=0)
        one, other = clone(cafe).fit(small), clone(cafe).fit(blocks_of(small, rows))
        np.testing.assert_array_equal(one.labels_, other.labels_.compute())
        np.testing.assert_allclose(one.rescale(small), other.rescale(small), atol=1e-9)
        np.testing.assert_allclose(one.feature_weights_, other.feature_weights_)

    def test_a_column_that_the_sample_lacks(self, small, monkeypatch):
        from cafelearn.estimators import cafe_fitting as module

        few = module.LIMITS._replace(search_rows=100)
        monkeypatch.setattr(module, "LIMITS", few)
        rare = np.r_[np.full(598, np.nan), [1.0, 2.0]]
        X = np.column_stack([small, rare])
        cafe = CAFE(3, n_init=2, subsample=150, p=2.0, random_state=0).fit(blocks_of(X, 150))
        assert (cafe.relevance_[:, 6] == 0).all()
        for found in (cafe.transform(X), cafe.feature_weights_, cafe.cluster_centers_):
            assert np.isfinite(found).all()

    def test_starts_from_filled_rows_are_refined(self, small, monkeypatch):
        from cafelearn.estimators import cafe_fitting as module

        fit, calls = module.fit_models, []

        def record(models, sources, n_jobs, verbose, filled):
            calls.append(filled)
            return fit(models, sources, n_jobs, verbose, filled)

        monkeypatch.setattr(module, "fit_models", record)
        cafe = CAFE(3, selection="likelihood", p=2.0, n_init=2, subsample=99, random_state=0)
        cafe.fit(blocks_of(small, 200))
        assert calls == [False, True]
        cafe.fit(blocks_of(np.nan_to_num(small), 200))
        assert calls == [False, True, False]


class TestCluster:
    def test_bits_on_two_workers(self, tall):
        distributed = pytest.importorskip("distributed")
        options = {"n_init": 2, "max_iter": 5, "random_state": 0}
        model = MinkowskiWeightedKMeans(4, p=1.4, subsample=600, **options)
        settings = {"selection": "likelihood"}
        cafe = CAFE(4, scaling=None, p=2.0, subsample=600, **settings, **options)
        here, chosen = clone(model).fit(tall), clone(cafe).fit(tall)
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, dashboard_address=":0"
            ) as cluster,
            distributed.Client(cluster),
        ):
            X = blocks_of(tall, CHUNK).persist()
            same_bits(here, clone(model).fit(X))
            for one, other in zip(chosen.models_, clone(cafe).fit(X).models_, strict=True):
                same_bits(one, other)


class TestErrors:
    @pytest.mark.parametrize(
        "estimator", [MinkowskiWeightedKMeans(3), CAFE(3), CAFE("auto"), RangeScaler()]
    )
    def test_rows_and_columns_without_a_value(self, small, estimator):
        X = pd.DataFrame(small, columns=list("abcdef"))
        for changed in (X.assign(c=np.nan), X.drop(index=[7, 450]).reindex(X.index)):
            with pytest.raises(ValueError, match=r"'c'\. Drop|: 7, 450\. Drop") as here:
                clone(estimator).fit(changed)
            with pytest.raises(ValueError, match=r"'c'\. Drop|: 7, 450\. Drop") as there:
                clone(estimator).fit(dd.from_pandas(changed, npartitions=4))
            assert str(here.value) == str(there.value)


class TestTables:
    @pytest.fixture
    def table(self, small):
        table = pd.DataFrame(small[:, :3], columns=list("abc")).assign(
            kind=np.where(np.arange(600) % 3, "u", "v"),
            count=pd.array(np.arange(600) % 7, dtype="Int64"),
        )
        table.loc[[3, 90, 500], "kind"] = None
        table.loc[[5, 333], "count"] = pd.NA
        return table

    def test_encoder(self, table):
        lazy = dd.from_pandas(table, npartitions=4)
        here = TableEncoder(categorical=["count"]).fit(table)
        there = TableEncoder(categorical=["count"]).fit(lazy)
        assert here.categories_ == there.categories_
        pd.testing.assert_frame_equal(here.treatments_, there.treatments_)
        pd.testing.assert_frame_equal(there.transform(lazy).compute(), here.transform(table))

    def test_tabular_cafe(self, table):
        lazy = dd.from_pandas(table, npartitions=3)
        model = TabularCAFE(CAFE(3, p=(1.5, 2.0), n_init=2, random_state=0))
        here, there = clone(model).fit(table), clone(model).fit(lazy)
        np.testing.assert_array_equal(here.labels_, there.labels_.compute())
        for name in ("transform", "predict", "assignment_margin"):
            found = getattr(there, name)(lazy).compute()
            np.testing.assert_allclose(getattr(here, name)(table), found, atol=1e-9)
        pd.testing.assert_frame_equal(
            here.cafe_.candidates_, there.cafe_.candidates_, rtol=1e-8
        )
        pd.testing.assert_frame_equal(here.profile_frame(table), there.profile_frame(lazy))

    def test_columns_of_a_variable_that_are_missing_one_by_one(self, small):
        names = ["k=a", "k=b", "k=c", "x", "y"]
        X = np.column_stack([np.eye(3)[np.arange(600) % 3], small[:, :2]])
        X[[1, 300], [0, 2]] = np.nan
        frame = pd.DataFrame(X, columns=names)
        cafe = CAFE(3, feature_groups="auto", p=2.0, n_init=2, random_state=0)
        here, there = clone(cafe).fit(frame), clone(cafe).fit(dd.from_pandas(frame, 4))
        pd.testing.assert_frame_equal(here.candidates_, there.candidates_, rtol=1e-8)

    def test_empty_columns_are_refused_as_in_memory(self, table):
        with pytest.raises(ValueError, match="without any value: 'a', 'kind'") as here:
            TableEncoder().fit(table.assign(a=np.nan, kind=None))
        empty = dd.from_pandas(table.assign(a=np.nan, kind=None), npartitions=4)
        with pytest.raises(ValueError, match="without any value") as there:
            TableEncoder().fit(empty)
        assert str(here.value) == str(there.value)
