"""Dask collections: the same fit as in memory, little for the client, and lost workers."""

import os
import pickle
import re
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from cafelearn import CAFE, PAPER, MinkowskiWeightedKMeans, RangeScaler
from cafelearn.estimators import cafe_fitting as cafe_module
from cafelearn.estimators import scaling
from cafelearn.estimators.opening import open_rows
from cafelearn.estimators.tabular import TabularCAFE
from cafelearn.kmeans.kernels.geometry import chunk_rows
from cafelearn.persistence import load_model, save_model
from cafelearn.report import write_fit_report
from cafelearn.tables.encoding import TableEncoder
from conftest import make_blobs, same_bits

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
import cloudpickle  # noqa: E402
import dask  # noqa: E402

from cafelearn.distributed import blocks as blocks_module  # noqa: E402
from cafelearn.distributed import (  # noqa: E402
    cache,
    drawing,
    from_npy,
    merging,
)
from cafelearn.distributed import rows as rows_module  # noqa: E402
from cafelearn.distributed.lazy import detached  # noqa: E402

M = 128
CHUNK = chunk_rows(M)


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def tall():
    """Four chunks of rows, the last one short."""
    X, _ = make_blobs(3 * CHUNK + 500, M, 4, n_noise=40, seed=1)
    return X


@pytest.fixture(autouse=True)
def by_blocks(monkeypatch):
    """Nothing is fetched, except for random starts that run on all rows."""
    monkeypatch.setattr(rows_module, "FEW_ROWS", 0)


@pytest.fixture
def small():
    return make_blobs(600, 6, 3)[0]


@pytest.fixture
def coded(monkeypatch):
    """Few rows are drawn as many are."""
    monkeypatch.setattr("cafelearn.kmeans.draws.RANKED_ROWS", 0)


def both(model, X, chunks, sample_weight=None):
    """The model fitted in memory and to blocks, its starts on the same sample."""
    model = clone(model).set_params(subsample=len(X) // 4)
    lazy = da.from_array(X, chunks=(chunks, -1))
    weights = None if sample_weight is None else da.from_array(sample_weight, chunks=chunks)
    return (
        clone(model).fit(X, sample_weight=sample_weight),
        clone(model).fit(lazy, sample_weight=weights),
    )


class TestSameAsInMemory:
    @pytest.mark.parametrize("p", [1.3, 2.0, 3.0])
    @pytest.mark.parametrize("offset", ["mean", "fixed", 0])
    def test_bits(self, tall, p, offset):
        model = MinkowskiWeightedKMeans(
            4, p=p, dispersion_offset=offset, n_init=2, max_iter=12, random_state=0
        )
        same_bits(*both(model, tall, CHUNK))

    @pytest.mark.parametrize("p", [1.3, 3.0])
    def test_bits_of_truth_values(self, tall, p, monkeypatch):
        X = (tall > np.median(tall, axis=0)).astype(float)
        X[:, -1] = tall[:, -1]
        model = MinkowskiWeightedKMeans(4, p=p, n_init=2, max_iter=12, random_state=0)
        one, other = both(model, X, CHUNK)
        same_bits(one, other)
        monkeypatch.setattr(cache.CACHE, "limit", 0)
        same_bits(one, clone(one).fit(da.from_array(X, chunks=(CHUNK, -1))))

    @pytest.mark.parametrize("chunks", [2 * CHUNK, 3 * CHUNK, -1])
    def test_bits_do_not_depend_on_the_division(self, tall, chunks):
        model = MinkowskiWeightedKMeans(4, p=1.6, n_init=1, max_iter=6, random_state=2)
        same_bits(*both(model, tall, chunks))

    @pytest.mark.parametrize("ranked_rows", [0, 5_000])
    @pytest.mark.parametrize("init", ["random", "k-means++"])
    def test_starts_with_ties_and_weights(self, init, ranked_rows, monkeypatch):
        monkeypatch.setattr("cafelearn.kmeans.draws.RANKED_ROWS", ranked_rows)
        rng = np.random.default_rng(0)
        X = rng.integers(4, size=(500, 3)).astype(float)
        weights = rng.integers(0, 4, size=500).astype(float)
        model = MinkowskiWeightedKMeans(4, p=1.4, init=init, n_init=4, random_state=3)
        one, other = both(model, X, 90, weights)
        np.testing.assert_allclose(one.init_objectives_, other.init_objectives_, rtol=1e-9)
        np.testing.assert_array_equal(one.labels_, other.labels_.compute())

    def test_any_chunks(self, tall):
        model = MinkowskiWeightedKMeans(4, p=1.5, n_init=2, max_iter=10, random_state=0)
        one, other = both(model, tall, (100, 1, 1900, 3000, len(tall) - 5001))
        np.testing.assert_array_equal(one.labels_, other.labels_.compute())
        np.testing.assert_allclose(one.inertia_, other.inertia_, rtol=1e-9)

    def test_columns_in_several_chunks(self, small):
        model = MinkowskiWeightedKMeans(3, n_init=2, random_state=0)
        same_bits(
            clone(model).fit(small), clone(model).fit(da.from_array(small, chunks=(999, 4)))
        )

    def test_float32_stays(self, tall):
        X = tall.astype(np.float32)
        model = MinkowskiWeightedKMeans(4, p=1.5, n_init=1, max_iter=6, random_state=0)
        one, other = both(model, X, CHUNK)
        same_bits(one, other)
        lazy = da.from_array(X, chunks=(CHUNK, -1))
        assert other.cluster_centers_.dtype == other.transform(lazy).dtype == np.float32
        assert other.transform(lazy).compute().dtype == np.float32

    def test_integers_become_float64(self):
        X = np.random.default_rng(0).integers(9, size=(200, 3))
        one, other = both(MinkowskiWeightedKMeans(3, n_init=1, random_state=0), X, 50)
        assert other.cluster_centers_.dtype == np.float64
        np.testing.assert_array_equal(one.labels_, other.labels_.compute())

    def test_given_and_called_centres(self, small):
        def init(X, n_clusters, random_state):
            return X[random_state.choice(len(X), n_clusters, replace=False)]

        for start in (small[:3], init):
            model = MinkowskiWeightedKMeans(3, p=1.5, init=start, n_init=2, random_state=0)
            same_bits(*both(model, small, 600))

    @pytest.mark.parametrize("subsample", [300, 100])
    def test_anomalous_clusters(self, small, subsample):
        model = MinkowskiWeightedKMeans(
            3, p=1.5, init="anomalous", subsample=subsample, random_state=0
        )
        lazy = da.from_array(small, chunks=(600, -1))
        same_bits(clone(model).fit(small), clone(model).fit(lazy))

    def test_empty_clusters_take_a_row_of_another_block(self, tall):
        far = np.full((2, M), 1e4) * [[1], [-1]]
        X = tall.copy()
        X[-1] += 50.0  # the farthest row, in the last block
        model = MinkowskiWeightedKMeans(4, p=1.5, init=np.vstack([X[:2], far]), max_iter=5)
        one, other = both(model, X, CHUNK)
        same_bits(one, other)
        assert len(np.unique(one.labels_)) == 4

    def test_too_few_distinct_rows(self, coded):
        X = np.repeat(np.eye(3), 20, axis=0)
        with pytest.warns(ConvergenceWarning, match=r"clusters \(3\) found"):
            model = MinkowskiWeightedKMeans(5, n_init=2, random_state=0).fit(
                da.from_array(X, chunks=(25, 3))
            )
        np.testing.assert_allclose(model.inertia_, 0)

    def test_blocks_without_rows(self, small, coded):
        empty = da.from_array(small[:0])
        X = da.concatenate([empty, da.from_array(small, chunks=(600, 6)), empty])
        model = MinkowskiWeightedKMeans(3, n_init=2, random_state=0)
        other = clone(model).fit(X)
        same_bits(clone(model).fit(small), other)
        assert other.transform(X).compute().shape == (600, 3)

    def test_many_blocks_are_combined_on_the_workers(self, small, coded):
        model = MinkowskiWeightedKMeans(3, p=1.5, n_init=2, random_state=0)
        one, other = both(model, small, 15)
        np.testing.assert_array_equal(one.labels_, other.labels_.compute())
        np.testing.assert_allclose(one.inertia_, other.inertia_, rtol=1e-9)

    def test_few_descents_at_a_time(self, small, coded, monkeypatch):
        model = MinkowskiWeightedKMeans(3, p=1.5, n_init=5, random_state=0)
        monkeypatch.setattr("cafelearn.distributed.descending.TOGETHER", 1)
        same_bits(*both(model, small, 600))


class TestFewRows:
    """Few rows are fetched, and fitted in memory."""

    @pytest.fixture
    def passes(self, monkeypatch):
        """Names of the functions that ran on the blocks."""
        reduce, found = blocks_module.Blocks.reduce, []

        def counting(self, run, *args, **options):
            found.append(run.__name__)
            return reduce(self, run, *args, **options)

        monkeypatch.setattr(blocks_module.Blocks, "reduce", counting)
        monkeypatch.setattr(rows_module, "FEW_ROWS", 20_000)
        return found

    def test_two_passes(self, passes):
        X = make_blobs(300, 6, 3)[0]
        cafe = CAFE(3, n_init=2, random_state=0)
        one, other = clone(cafe).fit(X), clone(cafe).fit(da.from_array(X, chunks=(100, 6)))
        assert passes == ["find_extents", "fetch"]
        assert isinstance(other.labels_, da.Array)
        assert all(isinstance(model.labels_, da.Array) for model in other.models_)
        same_bits(one.model_, other.model_)
        np.testing.assert_array_equal(one.labels_, other.labels_)
        np.testing.assert_array_equal(one.transform(X), other.transform(X))

    def test_starts_on_a_sample_read_blocks(self, passes, small):
        model = MinkowskiWeightedKMeans(3, n_init=2, subsample=100, random_state=0)
        model.fit(da.from_array(small, chunks=(200, 6)))
        assert "run_pass" in passes
        assert "fetch" not in passes

    def test_given_centres_and_weights(self, passes, small):
        weights = np.arange(600.0) % 3
        model = MinkowskiWeightedKMeans(3, p=1.5, init=small[:3])
        one = clone(model).fit(small, sample_weight=weights)
        lazy = da.from_array(small, chunks=(200, 6))
        other = clone(model).fit(lazy, sample_weight=da.from_array(weights, chunks=200))
        assert passes == ["find_extents", "fetch"]
        same_bits(one, other)
        np.testing.assert_array_equal(one._members, other._members)


class TestMemoryOfTheWorkers:
    def test_nothing_depends_on_it(self, tall, monkeypatch):
        model = MinkowskiWeightedKMeans(
            4, p=1.5, init="k-means++", n_init=2, subsample=900, max_iter=5, random_state=0
        )
        one, other = both(model, tall, CHUNK)
        monkeypatch.setattr(cache.CACHE, "limit", 0)
        forgetful = clone(one).fit(da.from_array(tall, chunks=(CHUNK, -1)))
        same_bits(one, other)
        same_bits(one, forgetful)

    def test_it_is_used_and_freed(self, small, monkeypatch):
        used = []
        put = cache.CACHE.put
        monkeypatch.setattr(
            cache.CACHE, "put", lambda *a: (put(*a), used.append(cache.CACHE.size))
        )
        MinkowskiWeightedKMeans(3, n_init=2, subsample=99).fit(
            da.from_array(small, chunks=(100, 6))
        )
        assert max(used) > 0
        assert cache.CACHE.size == 0

    def test_limit(self):
        memory = cache.Cache(100)
        memory.put(("fit", 0), {("a", 1): np.zeros(10)})
        memory.put(("fit", 1), {("b", 1): np.zeros(10)})
        assert memory.get(("fit", 1)).get(("b", 1)) is None
        assert memory.get(("fit", 0)).get(("a", 2)) is None
        assert len(memory.get(("fit", 0)).get(("a", 1))) == 10
        memory.put(("fit", 0), {("a", 2): np.zeros(9)})
        assert memory.size == 72
        memory.forget("another fit")
        assert memory.size == 72
        memory.forget("fit")
        assert memory.size == 0


class TestManyStarts:
    def test_early_stopping_is_that_of_the_fit_in_memory(self, tall):
        model = MinkowskiWeightedKMeans(
            4, p=1.3, n_init=9, subsample=900, max_iter=9, early_stopping=True, random_state=0
        )
        one, other = clone(model).fit(tall), clone(model).fit(da.from_array(tall, (CHUNK, -1)))
        same_bits(one, other)
        np.testing.assert_array_equal(one.init_objectives_, other.init_objectives_)


def block_tasks(graph):
    """Number of tasks of a pass that take a block."""
    return sum(blocks_module._run in as_tuple(task) for task in dict(graph).values())


def as_tuple(task):
    return task if isinstance(task, tuple) else (getattr(task, "func", None),)


def remembered():
    """Bytes in the memory of a worker."""
    from cafelearn.distributed.cache import CACHE

    return CACHE.size


class TestCluster:
    def test_same_bits(self, client, tall, tmp_path):
        np.save(tmp_path / "rows.npy", tall)
        model = MinkowskiWeightedKMeans(
            4, p=1.3, n_init=3, subsample=900, max_iter=8, random_state=0
        )
        X = da.from_array(tall, chunks=(CHUNK, -1))
        one = clone(model).fit(tall)
        with client.as_current():
            same_bits(one, clone(model).fit(X))
            same_bits(one, clone(model).fit(X.persist()))
            same_bits(one, clone(model).fit(from_npy(tmp_path / "rows.npy", chunk_rows=CHUNK)))
            sizes = client.run(remembered)
        assert set(sizes.values()) == {0}

    def test_blocks_scattered_over_the_workers(self, client, tall, monkeypatch):
        compute, tasks = blocks_module.Blocks._compute, []

        def counting(self, graph, keys):
            tasks.append(block_tasks(graph))
            return compute(self, graph, keys)

        monkeypatch.setattr(blocks_module.Blocks, "_compute", counting)
        first, second = client.nthreads()
        model = MinkowskiWeightedKMeans(
            4, p=1.3, n_init=2, subsample=900, max_iter=8, random_state=0
        )
        blocks = [tall[i : i + CHUNK] for i in range(0, len(tall), CHUNK)]
        homes = [first, second, first, first]
        held = [
            da.from_delayed(
                dask.delayed(client.scatter(block, workers=[home], hash=False)),
                block.shape,
                block.dtype,
            )
            for block, home in zip(blocks, homes, strict=True)
        ]
        with client.as_current():
            X = da.concatenate(held).persist()
            distributed.wait(X)
            same_bits(clone(model).fit(tall), clone(model).fit(X))
        assert set(tasks) == {len(blocks)}

    def test_a_lost_worker(self, client, tall, monkeypatch):
        model = MinkowskiWeightedKMeans(
            4, p=1.3, n_init=2, subsample=900, max_iter=8, random_state=0
        )
        compute, passes = blocks_module.Blocks._compute, []

        def killing(self, graph, keys):
            passes.append(keys)
            if len(passes) == 8:  # in the middle of the descents
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
            return compute(self, graph, keys)

        monkeypatch.setattr(blocks_module.Blocks, "_compute", killing)
        with client.as_current():
            X = da.from_array(tall, chunks=(CHUNK, -1)).persist()
            distributed.wait(X)
            survived = clone(model).fit(X)
            same_bits(clone(model).fit(tall), survived)
        assert len(passes) > 9

    @pytest.mark.parametrize("selection", ["mixture", "likelihood"])
    def test_what_reaches_the_client_does_not_grow_with_the_rows(
        self, client, selection, monkeypatch
    ):
        compute, sizes = blocks_module.Blocks._compute, []

        def weighing(self, graph, keys):
            parts = compute(self, graph, keys)
            sizes.append(len(pickle.dumps(parts)))
            return parts

        monkeypatch.setattr(blocks_module.Blocks, "_compute", weighing)
        # The test for structure and the mixture fetch a sample of fixed size.
        settings = {"p": (1.5, 2.0), "n_init": 2, "max_iter": 5}
        model = CAFE(3, subsample=50, selection=selection, random_state=0, **settings)
        few = cafe_module.LIMITS._replace(search_rows=300)
        monkeypatch.setattr(cafe_module, "LIMITS", few)
        largest = {}
        for n_rows in (6_000, 64_000):
            X, _ = make_blobs(n_rows, 6, 3)
            sizes.clear()
            with client.as_current():
                model.fit(da.from_array(X, chunks=(n_rows // 4, 6)))
            largest[n_rows] = max(sizes)
        assert largest[64_000] < 1.2 * largest[6_000]
        assert largest[64_000] < 64_000  # less than a byte for each row

    def test_rows_of_this_process_are_sent_once(self, client):
        X = np.random.default_rng(0).normal(size=(8_000, 10))
        frame = pd.DataFrame(X, columns=list("abcdefghij"))
        collections = (
            da.from_array(X, chunks=(2_000, 10)),
            da.from_array(X, chunks=(2_000, 10)) * 2,
            dd.from_pandas(frame, npartitions=4).to_dask_array(),
        )
        with client.as_current():
            for collection in collections:
                blocks = blocks_module.Blocks(collection, None, np.float64, "test")
                assert len(cloudpickle.dumps((blocks._sources, blocks._graph))) < 10_000

    def test_cafe(self, client, small):
        cafe = CAFE(
            3, subsample=150, n_components=2, p=(1.5, 2.0, 3.0), n_init=3, random_state=0
        )
        one = clone(cafe).fit(small)
        with client.as_current():
            X = da.from_array(small, chunks=(150, 6))
            other = clone(cafe).fit(X)
            np.testing.assert_array_equal(one.labels_, other.labels_.compute())
            np.testing.assert_allclose(one.transform(small), other.transform(X), atol=1e-9)


def fit_in_task(model, X, chunks):
    """Fit a Dask array inside a task; return its labels."""
    with dask.config.set(scheduler=None):
        return model.fit(da.from_array(X, chunks=chunks)).labels_.compute()


@pytest.mark.parametrize("subsample", [100, 10_000])
def test_fit_inside_a_task(small, subsample):
    model = MinkowskiWeightedKMeans(3, n_init=2, subsample=subsample, random_state=0)
    cafe = CAFE(3, n_init=1, p=2.0, subsample=subsample, random_state=0)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        for estimator in (model, cafe):
            future = client.submit(fit_in_task, clone(estimator), small, (200, 6))
            labels = future.result(timeout=60)
            np.testing.assert_array_equal(labels, clone(estimator).fit(small).labels_)


class TestCAFE:
    @pytest.mark.parametrize("rescaling", ["origin", "centroid"])
    @pytest.mark.parametrize("scaling", ["range", "standard", None])
    def test_same_as_in_memory(self, small, scaling, rescaling):
        # Far from the origin scikit-learn's own PCA loses digits.
        X = small if scaling is None else small + 1e3
        settings = {"scaling": scaling, "rescaling": rescaling, "p": (1.3, 2.0, 3.0)}
        cafe = CAFE(
            3, subsample=150, n_components=3, random_state=0, **PAPER | settings | {"n_init": 3}
        )
        lazy = da.from_array(X, chunks=(160, 6))
        one, other = clone(cafe).fit(X), clone(cafe).fit(lazy)
        assert one.p_ == other.p_
        np.testing.assert_allclose(one.agreement_, other.agreement_, rtol=1e-12)
        np.testing.assert_array_equal(one.labels_, other.labels_.compute())
        for model, there in zip(one.models_, other.models_, strict=True):
            np.testing.assert_array_equal(model.labels_, there.labels_.compute())
            np.testing.assert_allclose(model.inertia_, there.inertia_, rtol=1e-9)
        np.testing.assert_allclose(one.feature_weights_, other.feature_weights_, atol=1e-9)
        for name in ("transform", "rescale", "assignment_margin", "predict"):
            lazily = getattr(other, name)(lazy)
            assert isinstance(lazily, da.Array)
            assert lazily.chunks[0] == lazy.chunks[0]
            here = getattr(one, name)(X)
            assert lazily.shape == here.shape
            assert lazily.dtype == lazily.compute().dtype == here.dtype
            np.testing.assert_allclose(here, lazily, atol=1e-9)
        # A model fitted to blocks takes arrays, and the other way round.
        np.testing.assert_allclose(other.transform(X), one.transform(lazy), atol=1e-9)
        np.testing.assert_array_equal(
            other.get_feature_names_out(), one.get_feature_names_out()
        )

    @pytest.mark.parametrize("selection", ["likelihood", "agreement"])
    def test_same_candidates_as_in_memory(self, small, selection):
        cafe = CAFE(
            3,
            subsample=150,
            selection=selection,
            p=(1.5, 2.0),
            scaling=("range", None, MinMaxScaler()),
            dispersion_offset=("mean", "fixed", 0.5),
            weighting=("cluster", "uniform"),
            n_init=2,
            random_state=0,
        )
        one = clone(cafe).fit(small)
        other = clone(cafe).fit(da.from_array(small, chunks=(170, 6)))
        assert len(one.candidates_) == 3 * 2 * (3 + 1)
        pd.testing.assert_frame_equal(one.candidates_, other.candidates_, rtol=1e-8)
        np.testing.assert_allclose(one.agreement_, other.agreement_, rtol=1e-12)
        assert one.models_.index(one.model_) == other.models_.index(other.model_)
        assert type(one.scaler_) is type(other.scaler_)
        np.testing.assert_array_equal(one.labels_, other.labels_.compute())

    def test_attributes_of_the_pca(self, small):
        cafe = CAFE(
            3, subsample=150, extractor=PCA(4, whiten=True), p=2.0, n_init=2, random_state=0
        )
        one = clone(cafe).fit(small)
        other = clone(cafe).fit(da.from_array(small, chunks=(250, 6)))
        for name in (
            "components_",
            "explained_variance_",
            "explained_variance_ratio_",
            "singular_values_",
            "mean_",
            "noise_variance_",
        ):
            np.testing.assert_allclose(
                getattr(one.extractor_, name),
                getattr(other.extractor_, name),
                atol=1e-9,
                err_msg=name,
            )
        assert other.extractor_.n_samples_ == 600

    @pytest.mark.parametrize("extractor", ["ica", PCA(0.9)])
    def test_other_extractors_learn_from_rows(self, small, extractor):
        cafe = CAFE(3, subsample=150, extractor=extractor, p=2.0, n_init=2, random_state=0)
        if isinstance(extractor, str):
            cafe.set_params(n_components=2)
        lazy = da.from_array(small, chunks=(250, 6))
        one, other = clone(cafe).fit(small), clone(cafe).fit(lazy)
        np.testing.assert_allclose(one.transform(small), other.transform(lazy), atol=1e-6)
        assert other.transform(lazy).shape == one.transform(small).shape

    def test_of_many_rows_some(self, small, monkeypatch):
        for module in (scaling, cafe_module):
            monkeypatch.setattr(module, "LARGEST_SAMPLE", 200)
        cafe = CAFE(
            3, subsample=150, extractor=PCA(0.99), p=2.0, scaling=MinMaxScaler(), n_init=2
        )
        cafe.set_params(selection="likelihood")
        lazy = da.from_array(small, chunks=(250, 6))
        means = []
        for seed in (0, 0, 1):
            extractor = cafe.set_params(random_state=seed).fit(lazy).extractor_
            assert extractor.n_samples_ == 200
            means.append(extractor.mean_)
        np.testing.assert_array_equal(means[0], means[1])
        assert not np.allclose(means[0], means[2])

    def test_a_sample_is_that_of_the_rows_in_memory(self):
        X = np.random.default_rng(0).normal(size=(100, 2))
        lazy = da.from_array(X, chunks=(30, 2))
        here, there = open_rows(RangeScaler(), X), open_rows(RangeScaler(), lazy)
        for count in (1, 50, 99, 200):
            seed = np.random.SeedSequence(count)
            one, other = here.sample(seed, count), there.sample(seed, count)
            assert len(one[0]) == min(count, 100)
            np.testing.assert_array_equal(one[0], other[0])
            np.testing.assert_array_equal(one[1], other[1])

    def test_custom_scaler_is_fitted_to_all_rows_if_they_are_few(self, small):
        cafe = CAFE(
            3, subsample=150, selection="likelihood", scaling=MinMaxScaler(), random_state=0
        )
        other = clone(cafe).fit(da.from_array(small, chunks=(250, 6)))
        np.testing.assert_array_equal(other.scaler_.data_min_, small.min(axis=0))

    def test_standard_scaler_of_constant_features(self, small):
        X = small.copy()
        X[:, 2] = 3.0
        cafe = CAFE(
            3, subsample=150, selection="likelihood", p=2.0, scaling="standard", random_state=0
        )
        other = clone(cafe).fit(da.from_array(X, chunks=(250, 6)))
        expected = StandardScaler().fit(X)
        np.testing.assert_allclose(other.scaler_.scale_, expected.scale_)
        np.testing.assert_allclose(other.scaler_.mean_, expected.mean_)


class TestMixture:
    """The default of CAFE."""

    @pytest.mark.parametrize("chunks", [600, 170, 25])
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"n_components": 3},
            {"rescaling": "distances", "n_components": 3},
            {"rescaling": "origin"},
            {"rescaling": "centroid", "extractor": None},
            {"selection": "likelihood", "rescaling": "distances", "extractor": None},
        ],
        ids=str,
    )
    def test_same_as_in_memory(self, small, options, chunks):
        X = small + 100.0
        cafe = CAFE(3, subsample=150, n_init=2, random_state=0, **options)
        lazy = da.from_array(X, chunks=(chunks, 6))
        one, other = clone(cafe).fit(X), clone(cafe).fit(lazy)
        np.testing.assert_array_equal(one.labels_, other.labels_.compute())
        assert other.labels_.chunks == (lazy.chunks[0],)
        np.testing.assert_allclose(one.feature_weights_, other.feature_weights_, rtol=1e-9)
        np.testing.assert_allclose(one.cluster_centers_, other.cluster_centers_, rtol=1e-9)
        names = ["transform", "rescale", "assignment_margin", "predict"]
        if cafe.selection == "mixture":
            names.append("predict_proba")
            assert one._answer == other._answer
            assert [finding.code for finding in one.diagnosis_] == [
                finding.code for finding in other.diagnosis_
            ]
            np.testing.assert_array_equal(one.relevance_, other.relevance_)
            np.testing.assert_allclose(one.mixture_.weights_, other.mixture_.weights_)
        for name in names:
            here, there = getattr(one, name)(X), getattr(other, name)(lazy)
            assert isinstance(there, da.Array)
            assert there.shape == here.shape
            assert there.dtype == there.compute().dtype == here.dtype
            assert there.chunks[0] == lazy.chunks[0]
            np.testing.assert_allclose(here, there, atol=1e-9)
        np.testing.assert_array_equal(
            one.get_feature_names_out(), other.get_feature_names_out()
        )

    def test_nothing_is_computed_before_it_is_asked_for(self, small):
        cafe = CAFE(3, subsample=150, n_init=1, p=2.0, random_state=0).fit(small)
        calls = []

        def counted(block):
            calls.append(len(block))
            return block

        X = da.from_array(small, chunks=(200, 6)).map_blocks(counted, dtype=small.dtype)
        calls.clear()
        shares, rows = cafe.predict_proba(X), cafe.rescale(X)
        assert not calls
        assert shares.chunks == ((200, 200, 200), (3,))
        assert rows.chunks == ((200, 200, 200), (6 + 2 * 3,))
        np.testing.assert_allclose(shares.compute().sum(axis=1), 1)
        empty = cafe.predict_proba(X[X[:, 0] > 1e9].compute_chunk_sizes())
        assert empty.compute().shape == (0, 3)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_more_rows_than_the_search_uses(self, dtype):
        X, y = make_blobs(9_000, 6, 3)
        X = X.astype(dtype)
        cafe = CAFE(3, n_init=2, subsample=500, random_state=0)
        lazy = da.from_array(X, chunks=(2_000, 6))
        one, other = clone(cafe).fit(X), clone(cafe).fit(lazy)
        labels = other.labels_.compute()
        assert adjusted_rand_score(one.labels_, labels) > 0.98
        assert adjusted_rand_score(y, labels) > 0.98
        np.testing.assert_array_equal(other.predict(X), labels)
        # The means and the shares are those of all rows.
        share = other.predict_proba(X).astype(float)
        np.testing.assert_allclose(other.mixture_.weights_, share.mean(axis=0), rtol=1e-4)
        means = share.T @ X / share.sum(axis=0)[:, None]
        np.testing.assert_allclose(other.cluster_centers_, means, atol=1e-3)
        assert other.verdict_ == one.verdict_ == "structure"
        again = clone(cafe).fit(lazy)
        np.testing.assert_array_equal(again.predict_proba(X), other.predict_proba(X))

    def test_the_sample_is_refined_by_all_rows_in_any_division(self, monkeypatch):
        # A sample of the same rows gives the same mixture, whatever the blocks.
        X, _ = make_blobs(3_000, 4, 3)
        few = cafe_module.LIMITS._replace(search_rows=400)
        monkeypatch.setattr(cafe_module, "LIMITS", few)
        cafe = CAFE(3, subsample=150, n_init=1, p=2.0, extractor=None, random_state=0)
        found = [
            clone(cafe).fit(da.from_array(X, chunks=(chunks, 4))) for chunks in (3_000, 700, 90)
        ]
        found.append(clone(cafe).fit(X))
        for other in found[1:]:
            np.testing.assert_allclose(
                found[0].predict_proba(X), other.predict_proba(X), atol=1e-9
            )
            np.testing.assert_allclose(found[0].rescale(X), other.rescale(X), atol=1e-9)
            np.testing.assert_allclose(found[0].feature_weights_, other.feature_weights_)

    def test_blocks_without_rows(self, small):
        empty = da.from_array(small[:0])
        X = da.concatenate([empty, da.from_array(small, chunks=(600, 6)), empty])
        cafe = CAFE(3, subsample=150, n_init=1, p=2.0, n_components=2, random_state=0)
        here, there = clone(cafe).fit(small), clone(cafe).fit(X)
        np.testing.assert_array_equal(here.labels_, there.labels_.compute())
        np.testing.assert_allclose(here.transform(small), there.transform(X), atol=1e-9)

    def test_variables_and_atoms(self, small):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(small[:, :3], columns=list("xyz"))
        frame["z"] = np.where(rng.random(600) < 0.4, 0.0, frame["z"])
        for value in range(3):
            frame[f"k={value}"] = (np.arange(600) % 3 == value) * 1.0
        cafe = CAFE(3, subsample=150, feature_groups="auto", n_init=1, p=2.0, random_state=0)
        here = clone(cafe).fit(frame)
        there = clone(cafe).fit(dd.from_pandas(frame, npartitions=4))
        np.testing.assert_array_equal(here.labels_, there.labels_.compute())
        np.testing.assert_allclose(here.feature_weights_, there.feature_weights_)
        assert len(set(there.feature_weights_[0, 3:])) == 1

    def test_number_of_clusters(self, small):
        cafe = CAFE([2, 3, 4], n_init=1, p=2.0, random_state=0)
        here = clone(cafe).fit(small)
        there = clone(cafe).fit(da.from_array(small, chunks=(250, 6)))
        assert here.n_clusters_ == there.n_clusters_ == 3
        np.testing.assert_array_equal(here.labels_, there.labels_.compute())

    def test_tasks_do_not_carry_the_labels(self, small):
        cafe = CAFE(3, subsample=150, n_init=1, p=2.0, random_state=0).fit(
            np.tile(small, (3, 1))
        )
        assert hasattr(cafe.mixture_, "labels_")
        assert not hasattr(detached(cafe).mixture_, "labels_")
        assert not hasattr(detached(cafe), "labels_")
        assert hasattr(cafe, "labels_")


class TestLazyMethods:
    def test_nothing_is_computed_before_it_is_asked_for(self, small):
        model = MinkowskiWeightedKMeans(3, n_init=1, random_state=0).fit(small)
        calls = []

        def counted(block):
            calls.append(len(block))
            return block

        X = da.from_array(small, chunks=(200, 6)).map_blocks(counted, dtype=small.dtype)
        calls.clear()
        labels, distances = model.predict(X), model.transform(X)
        assert not calls
        assert labels.chunks == ((200, 200, 200),)
        assert labels.dtype == np.int32
        assert distances.chunks == ((200, 200, 200), (3,))
        np.testing.assert_array_equal(labels.compute(), model.predict(small))
        np.testing.assert_array_equal(distances.compute(), model.transform(small))

    def test_score(self, small):
        model = MinkowskiWeightedKMeans(3, p=1.5, n_init=1, random_state=0).fit(small)
        weights = np.random.default_rng(0).random(600)
        X = da.from_array(small, chunks=(250, 6))
        np.testing.assert_allclose(model.score(X), model.score(small))
        np.testing.assert_allclose(
            model.score(X, sample_weight=da.from_array(weights, chunks=100)),
            model.score(small, sample_weight=weights),
        )

    def test_no_table_of_all_rows_is_made(self, small):
        model = MinkowskiWeightedKMeans(3, n_init=1, random_state=0).fit(small)
        model.set_output(transform="pandas")
        with pytest.raises(ValueError, match="transform_output='pandas' is set"):
            model.transform(da.from_array(small))
        np.testing.assert_array_equal(model.predict(da.from_array(small)), model.labels_)

    def test_tasks_do_not_carry_the_labels(self, small):
        X = da.from_array(small, chunks=(200, 6))
        model = MinkowskiWeightedKMeans(3, n_init=1, random_state=0).fit(X)
        assert len(pickle.dumps(detached(model))) < 5_000

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_range_scaler(self, small, dtype):
        X = small.astype(dtype)
        lazy = da.from_array(X, chunks=(250, 6))
        here, there = RangeScaler().fit(X), RangeScaler().fit(lazy)
        assert there.mean_.dtype == there.range_.dtype == dtype
        tolerance = 1e-12 if dtype is np.float64 else 1e-6
        np.testing.assert_allclose(here.mean_, there.mean_, rtol=0, atol=tolerance)
        np.testing.assert_array_equal(here.range_, there.range_)
        scaled = there.transform(lazy)
        assert isinstance(scaled, da.Array)
        np.testing.assert_allclose(scaled, here.transform(X), atol=tolerance)
        np.testing.assert_allclose(there.inverse_transform(scaled), X, atol=10 * tolerance)
        with pytest.raises(ValueError, match="0 sample"):
            RangeScaler().fit(lazy[:0])

    def test_pipeline(self, small):
        lazy = da.from_array(small, chunks=(250, 6))
        pipeline = make_pipeline(
            RangeScaler(), MinkowskiWeightedKMeans(3, n_init=2, random_state=0)
        )
        here = clone(pipeline).fit_predict(small)
        there = clone(pipeline).fit_predict(lazy)
        assert isinstance(there, da.Array)
        np.testing.assert_array_equal(here, there.compute())

    @pytest.mark.parametrize("name", ["fit_transform", "fit_predict"])
    def test_fit_and_more(self, small, name):
        lazy = da.from_array(small, chunks=(250, 6))
        for estimator in (
            MinkowskiWeightedKMeans(3, n_init=2, random_state=0),
            CAFE(3, p=2.0, n_init=2, random_state=0),
        ):
            there = getattr(clone(estimator), name)(lazy)
            assert isinstance(there, da.Array)
            here = getattr(clone(estimator), name)(small)
            np.testing.assert_allclose(here, there, atol=1e-9)

    def test_score_where_a_block_has_no_weight(self, small):
        model = MinkowskiWeightedKMeans(3, n_init=1, random_state=0).fit(small)
        weights = np.r_[np.zeros(200), np.ones(400)]
        there = model.score(da.from_array(small, chunks=(200, 6)), sample_weight=weights)
        np.testing.assert_allclose(there, model.score(small, sample_weight=weights))

    def test_a_fitted_model_is_saved_without_its_labels(self, small, tmp_path):
        pytest.importorskip("skops")
        lazy = da.from_array(small, chunks=(250, 6))
        cafe = CAFE(3, n_init=1, p=(1.5, 2.0), random_state=0).fit(lazy)
        same = load_model(save_model(cafe, tmp_path / "model.skops"))
        np.testing.assert_array_equal(same.transform(small), cafe.transform(small))
        assert isinstance(cafe.labels_, da.Array)
        assert not hasattr(same, "labels_")
        assert not any(hasattr(model, "labels_") for model in same.models_)
        assert not hasattr(same.mixture_, "labels_")
        assert same.model_ in same.models_
        pd.testing.assert_frame_equal(same.candidates_, cafe.candidates_)

    def test_report_of_some_rows(self, small, tmp_path):
        pytest.importorskip("jinja2")
        lazy = da.from_array(small, chunks=(250, 6))
        cafe = CAFE(3, n_init=1, p=2.0, random_state=0).fit(lazy)
        text = write_fit_report(cafe, small[:100], tmp_path / "some.html").read_text()
        assert "3 clusters to 600 rows" in text
        assert "from a sample of 100 rows" in text
        text = write_fit_report(cafe, small, tmp_path / "all.html").read_text()
        assert "sample of" not in text
        with pytest.raises(TypeError, match="needs rows in memory, got a Dask Array"):
            write_fit_report(cafe, lazy, tmp_path / "none.html")


class TestTables:
    @pytest.fixture
    def table(self, small):
        return pd.DataFrame(small[:, :3], columns=list("abc")).assign(
            kind=np.where(np.arange(600) % 3, "u", "v"),
            size=pd.Categorical(np.where(np.arange(600) < 300, "S", "L"), ["S", "L", "XL"]),
            count=pd.array(np.arange(600) % 7, dtype="Int64"),
            same=1.0,
        )

    @pytest.mark.parametrize("n_parts", [1, 5, 40])
    def test_encoder(self, table, n_parts):
        lazy = dd.from_pandas(table, npartitions=n_parts)
        here = TableEncoder(categorical=["count"]).fit(table)
        there = TableEncoder(categorical=["count"]).fit(lazy)
        for name in ("numbers_", "categories_", "constant_features_", "n_features_in_"):
            assert getattr(here, name) == getattr(there, name)
        pd.testing.assert_frame_equal(here.treatments_, there.treatments_)
        assert here.categories_["size"] == ["S", "L"]
        encoded = there.transform(lazy)
        assert encoded.npartitions == lazy.npartitions
        pd.testing.assert_frame_equal(encoded.compute(), here.transform(table))

    def test_objects_are_judged_by_all_parts(self, table):
        with dask.config.set({"dataframe.convert-string": False}):
            for words in ([1.5, 2, 3], [1.5, 2, "x"], [1.5, 2, [3]]):
                values = pd.Series([1, 2] * 250 + words + [2] * 97, dtype=object)
                frame = table.assign(o=values)
                lazy = dd.from_pandas(frame, npartitions=4)
                try:
                    here = TableEncoder().fit(frame)
                except ValueError as error:
                    with pytest.raises(ValueError, match=re.escape(str(error))):
                        TableEncoder().fit(lazy)
                else:
                    there = TableEncoder().fit(lazy)
                    assert there.categories_ == here.categories_
                    assert there.numbers_ == here.numbers_

    def test_refusals_are_those_of_a_frame(self, table):
        for frame in (table.assign(a=np.inf), table.assign(c=1j)):
            with pytest.raises(ValueError, match="TableEncoder needs") as here:
                TableEncoder().fit(frame)
            with pytest.raises(ValueError, match="TableEncoder needs") as there:
                TableEncoder().fit(dd.from_pandas(frame, npartitions=4))
            assert str(here.value) == str(there.value)
        with pytest.raises(ValueError, match="a median cannot be merged from parts"):
            TableEncoder("median").fit(dd.from_pandas(table, npartitions=4))
        with pytest.raises(TypeError, match="takes Dask dataframes, got a Dask Array"):
            TableEncoder().fit(da.ones((3, 2)))

    def test_new_columns_and_values(self, table):
        lazy = dd.from_pandas(table, npartitions=3)
        encoder = TableEncoder(drop=["same"]).fit(lazy)
        with pytest.raises(ValueError, match="'kind' is missing from the table"):
            encoder.transform(lazy.drop(columns="kind"))
        with pytest.warns(UserWarning, match="not in the fit: 'new'"):
            encoder.transform(lazy.assign(new=1))

    def test_tabular_cafe(self, table):
        lazy = dd.from_pandas(table, npartitions=3)
        model = TabularCAFE(CAFE(3, p=(1.5, 2.0), n_init=2, random_state=0))
        here, there = clone(model).fit(table), clone(model).fit(lazy)
        for name in ("transform", "predict", "assignment_margin"):
            found = getattr(there, name)(lazy)
            assert isinstance(found, da.Array)
            np.testing.assert_allclose(getattr(here, name)(table), found, atol=1e-9)
        np.testing.assert_array_equal(here.labels_, there.labels_.compute())


class TestDataFrames:
    @pytest.fixture
    def frame(self, small):
        return pd.DataFrame(small, columns=list("abcdef"))

    def test_names_and_unknown_lengths(self, frame, small):
        X = dd.from_pandas(frame, npartitions=4)
        X = X[X.a < 100]  # after which nobody knows how many rows are left
        model = MinkowskiWeightedKMeans(3, n_init=2, random_state=0)
        one, other = clone(model).fit(frame), clone(model).fit(X)
        np.testing.assert_array_equal(other.feature_names_in_, list("abcdef"))
        assert other.labels_.shape == (600,)
        np.testing.assert_array_equal(one.labels_, other.labels_.compute())
        np.testing.assert_array_equal(one.labels_, other.predict(X).compute())
        with pytest.raises(ValueError, match="feature names"):
            other.predict(X[list("fedcba")])
        with (
            pytest.warns(UserWarning, match="valid feature names"),
            pytest.raises(ValueError, match="6 features"),
        ):
            other.predict(da.from_array(small[:, :4]))

    def test_weights_are_a_column(self, frame, small):
        frame = frame.assign(w=np.random.default_rng(0).integers(0, 3, size=600))
        X = dd.from_pandas(frame, npartitions=4)
        model = MinkowskiWeightedKMeans(3, p=1.5, n_init=2, random_state=0)
        one = clone(model).fit(small, sample_weight=frame.w)
        for weights in (X.w, frame.w.to_numpy()):
            other = clone(model).fit(X[list("abcdef")], sample_weight=weights)
            np.testing.assert_array_equal(one.labels_, other.labels_.compute())
            np.testing.assert_allclose(one.inertia_, other.inertia_, rtol=1e-9)

    def test_text_is_refused_by_name(self, frame):
        X = dd.from_pandas(frame.assign(c="word"), npartitions=2)
        with pytest.raises(ValueError, match="column 'c'"):
            MinkowskiWeightedKMeans(3).fit(X)

    def test_objects_and_types_with_their_own_missing_values(self, frame):
        model = MinkowskiWeightedKMeans(3, p=1.5, n_init=2, random_state=0)
        expected = clone(model).fit(frame).inertia_
        with dask.config.set({"dataframe.convert-string": False}):
            for dtype in ("Float64", "float64[pyarrow]", object):
                X = dd.from_pandas(frame.astype(dtype), npartitions=3)
                found = clone(model).fit(X)
                np.testing.assert_allclose(found.inertia_, expected)
                np.testing.assert_array_equal(found.predict(X), found.labels_)
            X = frame.astype("Float64")
            X.iloc[333, 2] = pd.NA
            found = clone(model).fit(dd.from_pandas(X, npartitions=3))
            np.testing.assert_array_equal(found.labels_, clone(model).fit(X).labels_)
            X = frame.astype(object)
            X.iloc[333, 2] = "word"
            with pytest.raises(ValueError, match="column 'c' has dtype object"):
                model.fit(dd.from_pandas(X, npartitions=3))
        X = dd.from_pandas(frame.astype("Float32"), npartitions=3)
        assert clone(model).fit(X).cluster_centers_.dtype == np.float32

    def test_weights_in_other_blocks_of_unknown_lengths(self, frame, small):
        weights = np.random.default_rng(0).random(600)
        model = MinkowskiWeightedKMeans(3, p=1.5, n_init=2, random_state=0)
        there = clone(model).fit(
            dd.from_pandas(frame, npartitions=4),
            sample_weight=da.from_array(weights, chunks=100),
        )
        here = clone(model).fit(small, sample_weight=weights)
        np.testing.assert_allclose(here.inertia_, there.inertia_, rtol=1e-9)


class TestFiles:
    def test_npy(self, tmp_path, tall):
        path = tmp_path / "rows.npy"
        np.save(path, tall)
        X = from_npy(path)
        assert X.chunks[0][0] == min(16 * CHUNK, len(tall))
        model = MinkowskiWeightedKMeans(4, p=2.0, n_init=1, max_iter=4, random_state=0)
        X = from_npy(path, chunk_rows=CHUNK)
        assert X.numblocks == (4, 1)
        same_bits(clone(model).fit(tall), clone(model).fit(X))
        # Nothing of the file is in the graph.
        assert len(pickle.dumps(dict(X.__dask_graph__()))) < 20_000

    def test_blocks_are_read_where_they_are_used(self, tmp_path, tall, monkeypatch):
        np.save(tmp_path / "rows.npy", tall)
        compute, graphs = blocks_module.Blocks._compute, []
        monkeypatch.setattr(
            blocks_module.Blocks,
            "_compute",
            lambda self, graph, keys: (graphs.append(graph), compute(self, graph, keys))[1],
        )
        X = from_npy(tmp_path / "rows.npy", chunk_rows=CHUNK)
        model = MinkowskiWeightedKMeans(4, p=2.0, n_init=1, max_iter=2, random_state=0)
        one = clone(model).fit(X)
        # One task for each of the four blocks.
        assert {block_tasks(graph) for graph in graphs} == {4}
        assert {len(dict(graph)) for graph in graphs} == {5}  # with the one that combines them
        graphs.clear()
        # Blocks that depend on their neighbours are left to the scheduler.
        other = clone(model).fit(X.rechunk((CHUNK - 100, M)).rechunk((CHUNK, M)))
        assert min(len(dict(graph)) for graph in graphs) > 5
        same_bits(one, other)

    def test_npy_refuses(self, tmp_path):
        path = tmp_path / "rows.npy"
        np.save(path, np.zeros(3))
        with pytest.raises(ValueError, match="2 dimensions"):
            from_npy(path)
        np.save(path, np.zeros((3, 2)))
        with pytest.raises(ValueError, match="chunk_rows >= 1, got 0"):
            from_npy(path, chunk_rows=0)

    def test_parquet_and_zarr(self, tmp_path, small):
        pytest.importorskip("pyarrow")
        zarr = pytest.importorskip("zarr")
        model = MinkowskiWeightedKMeans(3, p=1.5, n_init=2, random_state=0)
        here = clone(model).fit(small)
        frame = pd.DataFrame(small, columns=list("abcdef"))
        dd.from_pandas(frame, npartitions=3).to_parquet(tmp_path / "parts")
        there = clone(model).fit(dd.read_parquet(tmp_path / "parts"))
        np.testing.assert_array_equal(here.labels_, there.labels_.compute())
        store = zarr.open_array(
            tmp_path / "rows.zarr", mode="w", shape=small.shape, chunks=(200, 6), dtype="f8"
        )
        store[:] = small
        there = clone(model).fit(da.from_zarr(tmp_path / "rows.zarr"))
        np.testing.assert_array_equal(here.labels_, there.labels_.compute())


class TestRefusals:
    def test_infinite_values(self, small):
        X = small.copy()
        X[450, 2] = np.inf
        lazy = da.from_array(X, chunks=(200, 6))
        for estimator in (MinkowskiWeightedKMeans(3), CAFE(3)):
            with pytest.raises(ValueError, match="infinity") as here:
                clone(estimator).fit(X)
            with pytest.raises(ValueError, match="infinity") as there:
                clone(estimator).fit(lazy)
            assert str(here.value) == str(there.value)
        model = MinkowskiWeightedKMeans(3, n_init=1).fit(small)
        with pytest.raises(ValueError, match="infinity"):
            model.predict(lazy).compute()

    def test_starts_on_all_of_many_rows(self, small, monkeypatch):
        monkeypatch.setattr(rows_module, "FEW_ROWS", 500)
        X, model = da.from_array(small, chunks=(200, 6)), MinkowskiWeightedKMeans(3)
        with pytest.raises(ValueError, match=r"subsample=None\) needs the rows in memory"):
            model.set_params(subsample=None).fit(X)
        model.set_params(init=small[:3]).fit(X)

    def test_shapes(self, small):
        model = MinkowskiWeightedKMeans(3)
        with pytest.raises(ValueError, match="2D array"):
            model.fit(da.from_array(small[:, 0]))
        with pytest.raises(ValueError, match="2D array"):
            model.fit(dd.from_pandas(pd.Series(small[:, 0]), npartitions=2))
        with pytest.raises(ValueError, match=r"rows as clusters: n_samples=2, n_clusters=3"):
            model.fit(da.from_array(small[:2]))
        with pytest.raises(ValueError, match="0 sample"):
            model.fit(da.from_array(small[:0]))
        with pytest.raises(ValueError, match="does not match the number of clusters 3"):
            model.set_params(init=small[:2]).fit(da.from_array(small))

    def test_blocks_of_other_widths(self, small):
        def narrow(block, block_info=None):
            last = bool(block_info) and block_info[0]["chunk-location"] == (2, 0)
            return block[:, :5] if last else block

        X = da.from_array(small, chunks=(200, 6)).map_blocks(narrow, dtype=float)
        with pytest.raises(ValueError, match="same 6 features in every block, but block 2"):
            MinkowskiWeightedKMeans(3).fit(X)

    def test_repeated_names_are_judged_as_those_of_a_frame(self, small):
        frame = pd.DataFrame(small, columns=list("abcdea"))
        with pytest.raises(Exception, match="needs columns with distinct names") as here:
            MinkowskiWeightedKMeans(3).fit(frame)
        with pytest.raises(type(here.value)):
            MinkowskiWeightedKMeans(3).fit(dd.from_pandas(frame, npartitions=2))

    def test_weights(self, small):
        X, model = da.from_array(small, chunks=(200, 6)), MinkowskiWeightedKMeans(3)
        with pytest.raises(ValueError, match="Negative values"):
            model.fit(X, sample_weight=np.full(600, -1.0))
        with pytest.raises(ValueError, match="at least one positive sample weight"):
            model.fit(X, sample_weight=np.zeros(600))
        with pytest.raises(ValueError, match="expected"):
            model.fit(X, sample_weight=np.ones(599))

    def test_bags(self):
        bag = pytest.importorskip("dask.bag").from_sequence([1, 2])
        with pytest.raises(TypeError, match="got a Dask Bag"):
            MinkowskiWeightedKMeans(3).fit(bag)


class TestParts:
    def test_tree_of_nodes(self):
        for first, last in [(0, 1), (0, 11), (5, 23), (8, 16), (7, 7), (16, 31)]:
            found = merging.nodes(first, last)
            assert sum(size for _, size in found) == last - first
            assert all(begin % size == 0 for begin, size in found)
            assert len(found) <= 2 * max(1, (last - first).bit_length())

    def test_bound_of_a_draw_rises_until_enough_come(self, small, coded, monkeypatch):
        # One row in a thousand carries next to all of the weight.
        weights = np.full(600, 1e-9)
        weights[0] = 1.0
        asked = []
        name = drawing.name_candidates
        monkeypatch.setattr(
            drawing, "name_candidates", lambda *a: (asked.append(1), name(*a))[1]
        )
        drawing.name_candidates.__name__ = "name_candidates"
        model = MinkowskiWeightedKMeans(3, n_init=1, max_iter=1, subsample=100, random_state=0)
        one = clone(model).fit(small, sample_weight=weights)
        lazy, lazy_weights = (da.from_array(a, chunks=200) for a in (small, weights))
        other = clone(model).fit(lazy, sample_weight=lazy_weights)
        assert len(asked) > 3
        np.testing.assert_allclose(one.inertia_, other.inertia_, rtol=1e-9)


def test_dask_is_imported_only_when_it_comes():
    code = (
        "import sys, numpy, cafelearn\n"
        "X = numpy.random.default_rng(0).normal(size=(30, 2))\n"
        "cafelearn.CAFE(2, p=2.0, n_init=1).fit(X).transform(X)\n"
        "sys.exit(int('dask' in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_threads_are_the_rule_without_a_client(small):
    seen = []

    def get(graph, keys, **options):
        seen.append(block_tasks(graph))
        return dask.threaded.get(graph, keys, **options)

    with dask.config.set(scheduler=get):
        MinkowskiWeightedKMeans(3, n_init=1).fit(da.from_array(small, chunks=(200, 6)))
    assert set(seen) == {3}
