"""MinkowskiWeightedKMeans as a scikit-learn estimator, and its invariances."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csc_matrix, csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import reference
from cafelearn import CAFE, MinkowskiWeightedKMeans, RangeScaler, TableEncoder
from cafelearn.extraction import ReconstructionICA, ReplicatedNMF
from cafelearn.theory import certificate
from conftest import make_blobs

OFFSETS = (0.0, "fixed", "mean", 0.7)
ARRAYS = ("labels_", "cluster_centers_", "feature_weights_", "dispersions_", "objective_path_")


@parametrize_with_checks(
    [
        MinkowskiWeightedKMeans(n_init=2),
        MinkowskiWeightedKMeans(n_init=2, p=1.3, dispersion_offset=0, init="k-means++"),
        MinkowskiWeightedKMeans(p=3, dispersion_offset="fixed", init="anomalous"),
        RangeScaler(),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def same_bits(a, b):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    np.testing.assert_array_equal(a.init_objectives_, b.init_objectives_)


@pytest.mark.parametrize("init", ["random", "k-means++", "anomalous"])
@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("p", [1.05, 1.5, 2.0, 3.0, 15.0])
def test_every_combination_is_consistent(p, offset, init, data):
    model = MinkowskiWeightedKMeans(
        4, p=p, dispersion_offset=offset, init=init, n_init=3, random_state=0
    ).fit(data)
    np.testing.assert_array_equal(model.labels_, model.predict(data))
    np.testing.assert_array_equal(model.labels_, model.transform(data).argmin(axis=1))
    np.testing.assert_allclose(model.feature_weights_.sum(axis=1), 1)
    D = reference.dispersions(data, model.labels_, model.cluster_centers_, p)
    np.testing.assert_allclose(model.dispersions_, D, rtol=1e-6, atol=1e-13)
    W = reference.objective(D, model.feature_weights_, p)
    np.testing.assert_allclose(model.inertia_, W, rtol=1e-6)
    np.testing.assert_allclose(-model.score(data), W, rtol=1e-6)
    np.testing.assert_allclose(model.inertia_, model.init_objectives_.min(), rtol=2e-9)
    assert len(model.init_objectives_) == (1 if init == "anomalous" else 3)
    assert len(model.objective_path_) == model.n_iter_


@pytest.mark.parametrize("n_jobs", [2, 4])
@pytest.mark.parametrize("n_rows", [300, 40_000])
@pytest.mark.parametrize("n_init", [1, 5])
def test_threads_do_not_change_the_bits(n_rows, n_init, n_jobs):
    X, _ = make_blobs(n_rows, 12, 4)
    model = MinkowskiWeightedKMeans(4, p=1.3, n_init=n_init, random_state=0, max_iter=20)
    one, many = clone(model).fit(X), clone(model).set_params(n_jobs=n_jobs).fit(X)
    same_bits(one, many)
    np.testing.assert_array_equal(one.predict(X), many.predict(X))
    np.testing.assert_array_equal(one.transform(X), many.transform(X))


def draw_data(data, n_max=60):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n, m = data.draw(st.integers(6, n_max)), data.draw(st.integers(1, 6))
    X = rng.normal(size=(n, m))
    if data.draw(st.booleans()):
        X = np.round(X)
    if data.draw(st.booleans()):
        X[rng.integers(n), rng.integers(m)] = 1e4
    return X, rng


@given(data=st.data(), p=st.floats(1.02, 12), offset=st.sampled_from([0.0, "fixed", 0.5]))
def test_the_objective_never_rises(data, p, offset):
    X, _ = draw_data(data)
    k = data.draw(st.integers(1, 5))
    assume(len(np.unique(X, axis=0)) >= k)
    model = MinkowskiWeightedKMeans(
        k, p=p, dispersion_offset=offset, n_init=1, random_state=0
    ).fit(X)
    path = model.objective_path_
    assert (path[1:] <= path[:-1] * (1 + 1e-8) + 1e-300).all()
    assert model.stop_reason_ == "converged"


@given(data=st.data(), p=st.floats(1.02, 12))
def test_weights_sum_to_one_and_follow_the_power_law(data, p):
    X, _ = draw_data(data)
    assume(len(np.unique(X, axis=0)) >= 3)
    model = MinkowskiWeightedKMeans(3, p=p, dispersion_offset=0, n_init=1, random_state=0).fit(
        X
    )
    w, D = model.feature_weights_, model.dispersions_
    np.testing.assert_allclose(w.sum(axis=1), 1)
    assert (w >= 0).all()
    varies = X.max(axis=0) > X.min(axis=0)
    assert (w[:, ~varies] == 0).all()
    w, D = w[:, varies], D[:, varies]
    for l in range(3):
        seen = (D[l] > 1e-200) & (w[l] > 1e-100)
        if (D[l] == 0).any():
            assert (w[l][D[l] > 0] == 0).all()
        elif seen.sum() > 1:
            log_w, log_D = np.log(w[l][seen]), np.log(D[l][seen])
            np.testing.assert_allclose(np.diff(log_w), -np.diff(log_D) / (p - 1), atol=1e-6)


@pytest.mark.parametrize("factor", [1e-100, 1e-30, 1e-3, 2.0**-70, 3.7, 1e30, 1e100])
@pytest.mark.parametrize("offset", [0.0, "fixed", "mean"])
@pytest.mark.parametrize("p", [1.1, 2.0, 3.0, 10.0, 50.0])
def test_scale_changes_nothing(p, offset, factor, data):
    init = data[:3]
    options = dict(p=p, dispersion_offset=offset, max_iter=50)
    plain = MinkowskiWeightedKMeans(3, init=init, **options).fit(data)
    scaled = MinkowskiWeightedKMeans(3, init=init * factor, **options).fit(data * factor)
    np.testing.assert_array_equal(plain.labels_, scaled.labels_)
    np.testing.assert_allclose(plain.feature_weights_, scaled.feature_weights_, atol=1e-7)
    np.testing.assert_allclose(
        plain.cluster_centers_ * factor, scaled.cluster_centers_, rtol=1e-6, atol=1e-9 * factor
    )


@given(data=st.data(), p=st.sampled_from([1.2, 2.0, 3.5]))
def test_order_of_rows_changes_nothing(data, p):
    X, rng = draw_data(data)
    assume(len(np.unique(X, axis=0)) >= 3)
    order = rng.permutation(len(X))
    options = dict(p=p, dispersion_offset="fixed", n_init=2, random_state=3)
    for init in ("random", "k-means++"):
        one = MinkowskiWeightedKMeans(3, init=init, **options).fit(X)
        two = MinkowskiWeightedKMeans(3, init=init, **options).fit(X[order])
        np.testing.assert_allclose(one.inertia_, two.inertia_, rtol=1e-6, atol=1e-12)
        assert adjusted_rand_score(one.labels_[order], two.labels_) == 1


@pytest.mark.parametrize("p", [1.2, 2.0, 3.0, 10.0])
def test_order_of_features_changes_nothing(p, data):
    order = np.random.default_rng(0).permutation(data.shape[1])
    one = MinkowskiWeightedKMeans(3, p=p, init=data[:3]).fit(data)
    two = MinkowskiWeightedKMeans(3, p=p, init=data[:3, order]).fit(data[:, order])
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_allclose(one.feature_weights_[:, order], two.feature_weights_, atol=1e-9)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("init", ["random", "k-means++", "anomalous"])
def test_integer_weights_are_repetitions(init, offset, data):
    counts = np.random.default_rng(0).integers(0, 4, size=len(data))
    model = MinkowskiWeightedKMeans(
        3, p=1.4, dispersion_offset=offset, init=init, n_init=3, random_state=1
    )
    weighted = clone(model).fit(data, sample_weight=counts)
    repeated = clone(model).fit(np.repeat(data, counts, axis=0))
    np.testing.assert_allclose(weighted.init_objectives_, repeated.init_objectives_, rtol=1e-7)
    np.testing.assert_array_equal(np.repeat(weighted.labels_, counts), repeated.labels_)
    np.testing.assert_allclose(weighted.feature_weights_, repeated.feature_weights_, atol=1e-8)
    np.testing.assert_allclose(weighted.dispersions_, repeated.dispersions_, rtol=1e-7)
    np.testing.assert_allclose(
        weighted.score(data, sample_weight=counts), -weighted.inertia_, rtol=1e-7
    )


def test_duplicated_rows_double_the_objective(data):
    one = MinkowskiWeightedKMeans(3, p=1.5, dispersion_offset=0, init=data[:3]).fit(data)
    two = MinkowskiWeightedKMeans(3, p=1.5, dispersion_offset=0, init=data[:3]).fit(
        np.vstack([data, data])
    )
    np.testing.assert_array_equal(np.tile(one.labels_, 2), two.labels_)
    np.testing.assert_allclose(2 * one.inertia_, two.inertia_)


def test_fixed_offset_is_the_documented_constant(data):
    p, k = 1.7, 3
    center = np.array([reference.center(x, p) for x in data.T])
    constant = 0.1 * (np.abs(data - center) ** p).sum(axis=0).mean() / k
    named = MinkowskiWeightedKMeans(k, p=p, init=data[:k], dispersion_offset="fixed").fit(data)
    given_ = MinkowskiWeightedKMeans(k, p=p, init=data[:k], dispersion_offset=constant).fit(
        data
    )
    np.testing.assert_allclose(named.feature_weights_, given_.feature_weights_, rtol=1e-7)
    np.testing.assert_allclose(named.objective_path_, given_.objective_path_, rtol=1e-7)
    extra = constant * (named.feature_weights_**p).sum()
    np.testing.assert_allclose(named.objective_path_[-1], named.inertia_ + extra)


def test_random_starts_are_distinct_rows_drawn_by_weight():
    from cafelearn.kmeans.draws import make_draw
    from cafelearn.kmeans.seeding import random_rows

    X = np.repeat(np.arange(5.0), [1, 1, 1, 1, 96])[:, None]
    draw = make_draw(X, np.ones(100), np.ones(X.shape[1]))
    rng = np.random.default_rng(0)
    draws = np.array([random_rows(X, 2, draw, rng)[:, 0] for _ in range(400)])
    assert (draws[:, 0] != draws[:, 1]).all()
    assert (draws == 4).any(axis=1).mean() > 0.9
    assert set(np.unique(draws)) == set(range(5))
    weights = np.zeros(100)
    weights[[0, 2]] = 1
    only = random_rows(X, 2, make_draw(X, weights, np.ones(1)), rng)
    assert sorted(only[:, 0]) == [0, 2]


def test_rows_that_coincide_in_the_draw_are_told_apart():
    from cafelearn.kmeans.draws import make_draw

    # The second feature is lost beside the first one's 1e20.
    X = np.array([[1e20, 1.0], [1e20, 1.0], [1e20, 2.0], [0.0, 0.0]])
    draw = make_draw(X, np.array([1.0, 2.0, 4.0, 8.0]), np.ones(2))
    assert sorted(draw.mass) == [3, 4, 8]


def test_random_starts_do_not_depend_on_the_units(data):
    one = MinkowskiWeightedKMeans(3, p=1.5, n_init=4, random_state=0).fit(data)
    two = MinkowskiWeightedKMeans(3, p=1.5, n_init=4, random_state=0).fit(1000 * data)
    np.testing.assert_array_equal(one.labels_, two.labels_)


def test_k_means_plus_plus_spreads_the_starts():
    from cafelearn.kmeans.draws import make_draw
    from cafelearn.kmeans.seeding import kmeans_plusplus

    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(98, 2)), [[1e4, 1e4], [-1e4, 1e4]]])
    draw = make_draw(X, np.ones(100), np.ones(X.shape[1]))
    for p in (1.3, 2.0, 4.0):
        for _ in range(10):
            Z = kmeans_plusplus(X, 3, np.ones(100), draw, rng, p, 1.0)
            assert (np.abs(Z).max(axis=1) > 20).sum() >= 2


def test_anomalous_starts_find_clear_clusters():
    X, y = make_blobs(600, 4, 3, n_noise=0, seed=4)
    model = MinkowskiWeightedKMeans(3, p=1.5, init="anomalous").fit(X)
    again = MinkowskiWeightedKMeans(3, p=1.5, init="anomalous", random_state=9).fit(X)
    same_bits(model, again)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    # More clusters than anomalies can give: completed, not fewer.
    many = MinkowskiWeightedKMeans(40, p=1.5, init="anomalous").fit(X)
    assert len(np.unique(many.labels_)) == 40


def test_callable_and_array_as_init(data):
    seen = []

    def init(X, n_clusters, random_state):
        seen.append(random_state.randint(1000))
        return X[:n_clusters]

    called = MinkowskiWeightedKMeans(3, init=init, n_init=4, random_state=0).fit(data)
    given_ = MinkowskiWeightedKMeans(3, init=data[:3].tolist()).fit(data)
    np.testing.assert_array_equal(called.labels_, given_.labels_)
    assert len(seen) == 4
    assert len(set(seen)) > 1
    assert len(given_.init_objectives_) == 1


def test_more_starts_extend_the_same_sequence(blobs):
    X, _ = blobs
    few = MinkowskiWeightedKMeans(3, p=1.2, n_init=3, random_state=7).fit(X)
    more = MinkowskiWeightedKMeans(3, p=1.2, n_init=6, random_state=7).fit(X)
    np.testing.assert_array_equal(few.init_objectives_, more.init_objectives_[:3])


@pytest.mark.parametrize("p", [1.1, 1.5, 2.0, 3.0, 7.0])
def test_single_precision_stays_and_agrees(p):
    X, _ = make_blobs(2000, 6, 3)
    double = MinkowskiWeightedKMeans(3, p=p, init=X[:3]).fit(X)
    single = MinkowskiWeightedKMeans(3, p=p, init=X[:3]).fit(X.astype(np.float32))
    assert single.cluster_centers_.dtype == single.feature_weights_.dtype == np.float32
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    assert adjusted_rand_score(double.labels_, single.labels_) > 0.99
    np.testing.assert_array_equal(single.labels_, single.predict(X.astype(np.float32)))
    np.testing.assert_allclose(single.inertia_, double.inertia_, rtol=1e-2)


def test_frames_keep_their_names(data):
    names = [f"feature {v}" for v in range(data.shape[1])]
    frame = pd.DataFrame(data, columns=names, index=np.arange(len(data)) + 100)
    model = MinkowskiWeightedKMeans(3, n_init=2, random_state=0)
    plain = clone(model).fit(data)
    for X in (frame, pl.DataFrame(data, schema=names)):
        fitted = clone(model).fit(X)
        assert list(fitted.feature_names_in_) == names
        same_bits(plain, fitted)
        np.testing.assert_array_equal(fitted.predict(X), plain.labels_)
    out = clone(model).set_output(transform="pandas").fit(frame).transform(frame)
    assert list(out.columns) == [f"minkowskiweightedkmeans{l}" for l in range(3)]
    assert (out.index == frame.index).all()
    out = clone(model).set_output(transform="polars").fit(frame).transform(frame)
    assert isinstance(out, pl.DataFrame)


def test_in_a_pipeline(data):
    pipeline = make_pipeline(RangeScaler(), MinkowskiWeightedKMeans(3, random_state=0))
    labels = pipeline.fit_predict(data * 7 + 3)
    np.testing.assert_array_equal(labels, pipeline.predict(data * 7 + 3))


def test_verbose_reports_each_start(blobs, capsys):
    X, _ = blobs
    MinkowskiWeightedKMeans(3, n_init=3, verbose=2, random_state=0).fit(X)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert "start 3/3 (p=2): objective" in lines[-1]
    MinkowskiWeightedKMeans(3, n_init=3, random_state=0).fit(X)
    out = capsys.readouterr()
    assert out.err == out.out == ""


class TestUnusualData:
    def test_one_feature(self):
        X = np.concatenate([np.arange(5.0), 100 + np.arange(5.0)])[:, None]
        model = MinkowskiWeightedKMeans(2, p=1.5, random_state=0).fit(X)
        assert adjusted_rand_score([0] * 5 + [1] * 5, model.labels_) == 1
        np.testing.assert_array_equal(model.feature_weights_, [[1.0], [1.0]])

    def test_one_row(self):
        model = MinkowskiWeightedKMeans(1).fit([[3.0, 4.0]])
        np.testing.assert_array_equal(model.cluster_centers_, [[3.0, 4.0]])
        np.testing.assert_array_equal(model.feature_weights_, [[0.5, 0.5]])
        assert model.inertia_ == 0

    @pytest.mark.parametrize("offset", OFFSETS)
    def test_all_rows_equal(self, offset):
        X = np.full((10, 3), 2.5)
        with pytest.warns(ConvergenceWarning, match=r"clusters \(1\) found smaller than"):
            model = MinkowskiWeightedKMeans(3, dispersion_offset=offset, random_state=0).fit(X)
        np.testing.assert_allclose(model.feature_weights_, 1 / 3)
        assert model.inertia_ == 0

    def test_fewer_distinct_rows_than_clusters(self):
        X = np.repeat([[0.0, 1.0], [5.0, 5.0]], 10, axis=0)
        for init in ("random", "k-means++", "anomalous"):
            with pytest.warns(ConvergenceWarning, match=r"\(2\) found smaller than"):
                model = MinkowskiWeightedKMeans(4, init=init, random_state=0).fit(X)
            np.testing.assert_array_equal(model.labels_, model.predict(X))

    def test_a_cluster_for_every_row(self):
        X = np.random.default_rng(0).normal(size=(12, 2))
        model = MinkowskiWeightedKMeans(12, dispersion_offset=0, random_state=0).fit(X)
        assert len(np.unique(model.labels_)) == 12
        assert model.inertia_ == 0

    @pytest.mark.parametrize("p", [1.1, 2.0, 4.0])
    def test_constant_features(self, p, blobs):
        X, _ = blobs
        X = np.column_stack([X, np.full(len(X), 7.0)])
        for options in ({"dispersion_offset": 0}, {}, {"weighting": "uniform"}):
            model = MinkowskiWeightedKMeans(3, p=p, random_state=0, **options).fit(X)
            without = MinkowskiWeightedKMeans(3, p=p, random_state=0, **options).fit(X[:, :-1])
            assert (model.feature_weights_[:, -1] == 0).all()
            assert (model.cluster_centers_[:, -1] == 7).all()
            np.testing.assert_array_equal(
                model.feature_weights_[:, :-1], without.feature_weights_
            )
            np.testing.assert_array_equal(model.labels_, without.labels_)
            np.testing.assert_array_equal(model.labels_, model.predict(X))
            # A new value in the constant column changes nothing.
            moved = X + np.eye(X.shape[1])[-1]
            np.testing.assert_array_equal(model.transform(moved), model.transform(X))
            assert certificate(model, X).all_hold

    def test_constant_variables(self, blobs):
        X = np.column_stack([blobs[0], np.full((len(blobs[0]), 2), 7.0)])
        groups = [0, 0, 1, 2, 3, 3, 4, 4]
        model = MinkowskiWeightedKMeans(3, p=1.5, feature_groups=groups, random_state=0).fit(X)
        assert (model.feature_weights_[:, 6:] == 0).all()
        assert (model.feature_weights_[:, :6] > 0).all()
        assert certificate(model, X).all_hold

    @pytest.mark.parametrize("make", [csr_array, csc_matrix])
    def test_sparse_rows_are_refused_with_advice(self, make, blobs):
        X = make(blobs[0])
        model = MinkowskiWeightedKMeans(3, random_state=0).fit(blobs[0])
        for call in (MinkowskiWeightedKMeans(3).fit, CAFE(3).fit, model.predict):
            with pytest.raises(TypeError, match=r"needs dense rows, got a sparse .*toarray"):
                call(X)

    def test_zero_weights_do_not_count(self, blobs):
        X, _ = blobs
        far = np.vstack([X, np.full((3, X.shape[1]), 1e6)])
        weights = np.r_[np.ones(len(X)), np.zeros(3)]
        model = MinkowskiWeightedKMeans(3, n_init=3, random_state=0)
        with_, without = clone(model).fit(far, sample_weight=weights), clone(model).fit(X)
        np.testing.assert_array_equal(with_.labels_[: len(X)], without.labels_)
        np.testing.assert_allclose(with_.inertia_, without.inertia_)

    def test_the_input_is_left_alone(self, blobs):
        X, _ = blobs
        X.setflags(write=False)
        before = X.copy()
        MinkowskiWeightedKMeans(3, p=1.2, init=X[:3]).fit(X)
        np.testing.assert_array_equal(X, before)


class TestBadInput:
    X = np.random.default_rng(0).normal(size=(20, 3))

    @pytest.mark.parametrize("p", [1, 0.5, -2, np.nan, np.inf, "two", None])
    def test_p(self, p):
        with pytest.raises(ValueError, match="'p' parameter of MinkowskiWeightedKMeans"):
            MinkowskiWeightedKMeans(2, p=p).fit(self.X)

    @pytest.mark.parametrize("k", [0, -1, 2.5, "3", None])
    def test_n_clusters(self, k):
        with pytest.raises(ValueError, match="'n_clusters' parameter"):
            MinkowskiWeightedKMeans(k).fit(self.X)

    def test_more_clusters_than_rows(self):
        with pytest.raises(ValueError, match="rows as clusters: n_samples=20"):
            MinkowskiWeightedKMeans(21).fit(self.X)

    @pytest.mark.parametrize("offset", [-0.1, "median", np.nan, None])
    def test_offset(self, offset):
        with pytest.raises(ValueError, match="'dispersion_offset' parameter"):
            MinkowskiWeightedKMeans(2, dispersion_offset=offset).fit(self.X)

    def test_infinity(self):
        X = self.X.copy()
        X[3, 1] = np.inf
        with pytest.raises(ValueError, match="infinity"):
            MinkowskiWeightedKMeans(2).fit(X)

    @pytest.mark.parametrize(
        "estimator",
        [MinkowskiWeightedKMeans(2), CAFE(2), RangeScaler(), ReplicatedNMF(2)],
    )
    @pytest.mark.parametrize("lazy", [False, True])
    def test_columns_with_infinity_are_named(self, estimator, lazy):
        X = pd.DataFrame(np.abs(self.X), columns=["one", "two", "three"])
        X.loc[3, ["two", "three"]] = np.inf
        owner, rows, values = type(estimator).__name__, X, X.to_numpy()
        if lazy and owner != "ReplicatedNMF":
            rows = dd.from_pandas(X, npartitions=2)
            values = da.from_array(values, chunks=(4, 3))
        with pytest.raises(ValueError, match=f"{owner} needs .* in columns 'two', 'three'"):
            estimator.fit(rows)
        with pytest.raises(ValueError, match=f"{owner} needs .* in columns 1, 2"):
            estimator.fit(values)

    @pytest.mark.parametrize(
        "estimator", [MinkowskiWeightedKMeans(2), CAFE(2), RangeScaler(), TableEncoder()]
    )
    def test_repeated_names(self, estimator):
        X = pd.DataFrame(self.X, columns=["one", "two", "one"])
        message = f"{type(estimator).__name__} needs columns with distinct names, got 'one'"
        for rows in (X, dd.from_pandas(X, npartitions=2)):
            with pytest.raises(ValueError, match=message):
                estimator.fit(rows)

    @pytest.mark.parametrize(
        "estimator", [MinkowskiWeightedKMeans(2), CAFE(2), RangeScaler(), TableEncoder()]
    )
    def test_lazy_frames_of_polars(self, estimator):
        lazy = pl.DataFrame(self.X, schema=["one", "two", "three"]).lazy()
        message = rf"{type(estimator).__name__} needs .* LazyFrame; use X.collect\(\)"
        with pytest.raises(TypeError, match=message):
            estimator.fit(lazy)

    @pytest.mark.parametrize("kind", [MinkowskiWeightedKMeans, CAFE, ReconstructionICA])
    def test_no_threads(self, kind):
        with pytest.raises(ValueError, match=rf"'n_jobs' .* of {kind.__name__} .* Got 0"):
            kind(2, n_jobs=0).fit(self.X)
        kind(2, n_jobs=-2).fit(self.X)

    def test_sparse(self):
        from scipy.sparse import csr_array

        with pytest.raises(TypeError, match=r"[Ss]parse"):
            MinkowskiWeightedKMeans(2).fit(csr_array(self.X))

    @pytest.mark.parametrize("X", [np.empty((0, 3)), np.empty((3, 0)), [], [1.0, 2.0]])
    def test_empty_or_flat(self, X):
        with pytest.raises(ValueError, match=r"0 sample|0 feature|Expected 2D"):
            MinkowskiWeightedKMeans(1).fit(X)

    @pytest.mark.parametrize(("shape", "what"), [((3, 3), "clusters 2"), ((2, 4), "features")])
    def test_init_shape(self, shape, what):
        with pytest.raises(ValueError, match=f"initial centers .* {what}"):
            MinkowskiWeightedKMeans(2, init=np.ones(shape)).fit(self.X)
        with pytest.raises(ValueError, match=f"initial centers .* {what}"):
            MinkowskiWeightedKMeans(2, init=lambda X, k, random_state: np.ones(shape)).fit(
                self.X
            )

    def test_init_name(self):
        with pytest.raises(ValueError, match="'init' parameter"):
            MinkowskiWeightedKMeans(2, init="kmeans").fit(self.X)

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            (np.r_[-1.0, np.ones(19)], "[Nn]egative"),
            (np.zeros(20), "at least one"),
            (np.r_[np.nan, np.ones(19)], "NaN"),
            (np.ones(19), "shape"),
        ],
    )
    def test_weights(self, weights, message):
        with pytest.raises(ValueError, match=message):
            MinkowskiWeightedKMeans(2).fit(self.X, sample_weight=weights)

    @pytest.mark.parametrize(
        "column",
        [
            ["a"] * 20,
            [1, "x"] * 10,
            pd.Categorical(["a", "b"] * 10),
            pd.date_range("2020", periods=20),
        ],
    )
    def test_columns_that_are_not_numbers_are_named(self, column):
        frame = pd.DataFrame(self.X, columns=["one", "two", "three"]).assign(culprit=column)
        with pytest.raises(ValueError, match="column 'culprit' has dtype"):
            MinkowskiWeightedKMeans(2).fit(frame)

    def test_polars_strings_are_named(self):
        frame = pl.DataFrame({"one": [1.0, 2.0], "culprit": ["a", "b"]})
        with pytest.raises(ValueError, match="column 'culprit' has dtype String"):
            MinkowskiWeightedKMeans(2).fit(frame)

    def test_other_columns_in_predict(self):
        frame = pd.DataFrame(self.X, columns=["one", "two", "three"])
        model = MinkowskiWeightedKMeans(2, random_state=0).fit(frame)
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame.rename(columns={"one": "uno"}))
        with pytest.raises(ValueError, match="2 features"):
            model.predict(self.X[:, :2])

    def test_not_fitted(self):
        from sklearn.exceptions import NotFittedError

        for call in ("predict", "transform", "score"):
            with pytest.raises(NotFittedError):
                getattr(MinkowskiWeightedKMeans(2), call)(self.X)


def test_rounding_does_not_choose_among_candidates_of_kmeans_plusplus():
    """Two candidates leave the same sum of distances; the order of rows rounded it."""
    rng = np.random.default_rng(167694092)
    X = rng.normal(size=(6, 1))
    options = dict(init="k-means++", dispersion_offset="fixed", n_init=2, random_state=3)
    one, two = (
        MinkowskiWeightedKMeans(3, **options).fit(rows) for rows in (X, X[rng.permutation(6)])
    )
    np.testing.assert_allclose(one.init_objectives_, two.init_objectives_, rtol=1e-9)
