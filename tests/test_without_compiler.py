"""Small fits of every kind against the reference; `make nojit` runs them without Numba."""

import numpy as np
import pytest

import reference
from cafelearn import MinkowskiWeightedKMeans
from cafelearn.kmeans.descent import descend, one_cluster
from cafelearn.kmeans.iteration import make_problem
from cafelearn.kmeans.placing import assign, make_model

# Every branch of the powers and of the search for centres.
EXPONENTS = (1.05, 1.5, 2.0, 2.4, 3.0, 3.5, 4.0, 5.0, 6.0, 9.5, 30.0)
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # hashes overflow on purpose


def rows(n=36, m=9, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) + 3 * (np.arange(n) % 3)[:, None] * rng.random(m)
    X[:, 0] = np.round(X[:, 0])
    X[:, 1] = X[:, 1] > 0
    return X.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("p", EXPONENTS)
def test_a_fit_is_a_fixed_point(p, dtype):
    X, weight = rows(dtype=dtype), np.arange(36) % 3 + 1.0
    weight[5] = 0
    model = MinkowskiWeightedKMeans(3, p=p, init=X[:3], dispersion_offset=0.5, max_iter=6)
    model.fit(X, sample_weight=weight)
    labels, centers, w = model.labels_, model.cluster_centers_, model.feature_weights_
    rough = 1e-7 if dtype == np.float64 else 2e-3
    for l in range(3):
        members = np.repeat(np.arange(36), weight.astype(int) * (labels == l))
        for v in range(9):
            x = X[members, v].astype(float)
            assert abs(centers[l, v] - reference.center(x, p)) <= rough * max(np.ptp(x), 1e-9)
    repeated = np.repeat(np.arange(36), weight.astype(int))
    D = reference.dispersions(X[repeated].astype(float), labels[repeated], centers, p)
    np.testing.assert_allclose(model.dispersions_, D, rtol=max(rough, 1e-6) * p, atol=rough)
    np.testing.assert_allclose(w.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(labels, model.predict(X))
    expected = reference.distances(X.astype(float), centers.astype(float), w.astype(float), p)
    rough, least = (2e-5, 1e-30) if dtype == np.float32 else (1e-9, 0)
    np.testing.assert_allclose(model.transform(X), expected ** (1 / p), rtol=rough, atol=least)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("p", [1.4, 2.0, 3.0, 9.5, 40.0])
def test_rows_with_gaps(p, dtype):
    X = rows(24, 4, dtype=dtype)
    X[np.arange(24) % 5 == 0, 1] = np.nan
    X[np.arange(24) % 7 == 0, 3] = np.nan
    weight = np.arange(24) % 3 + 1.0
    weight[4] = 0
    start = np.nan_to_num(X[[1, 2, 3]])
    model = MinkowskiWeightedKMeans(3, p=p, init=start, dispersion_offset=0.5, max_iter=4)
    model.fit(X, sample_weight=weight)
    rough = 1e-7 if dtype == np.float64 else 2e-3
    for l in range(3):
        for v in range(4):
            seen = (model.labels_ == l) & ~np.isnan(X[:, v])
            x = np.repeat(X[seen, v], weight[seen].astype(int)).astype(float)
            if len(x):
                error = abs(model.cluster_centers_[l, v] - reference.center(x, p))
                assert error <= rough * max(np.ptp(x), 1e-9)
    assert (model.labels_ == model.predict(X)).mean() > 0.8
    assert np.isfinite(model.transform(X)).all()


@pytest.mark.parametrize("init", ["random", "k-means++", "anomalous"])
@pytest.mark.parametrize("offset", ["mean", "fixed", 0])
def test_starts_and_offsets(init, offset):
    X = rows(24, 3)
    model = MinkowskiWeightedKMeans(
        2, p=1.6, init=init, dispersion_offset=offset, n_init=2, max_iter=5, random_state=0
    ).fit(X)
    np.testing.assert_array_equal(model.labels_, model.predict(X))


def test_variables_of_several_columns():
    model = MinkowskiWeightedKMeans(2, p=2.5, feature_groups=[0, 0, 1], init=rows(24, 3)[:2])
    weights = model.fit(rows(24, 3)).feature_weights_
    np.testing.assert_array_equal(weights[:, 0], weights[:, 1])
    uniform = MinkowskiWeightedKMeans(2, weighting="uniform", init=rows(24, 3)[:2])
    assert (uniform.fit(rows(24, 3)).feature_weights_ == 1 / 3).all()


def test_rows_in_several_chunks_and_threads(monkeypatch):
    monkeypatch.setattr("cafelearn.kmeans.iteration.chunk_rows", lambda m: 8)
    X, ones = rows(37, 10), np.ones(37)
    results = []
    for n_threads in (1, 2):
        problem = make_problem(X, 1.4, 1.0, "mean", 4, 0.0)
        results.append(descend(X, ones, X[:3], np.ones(10), problem, n_threads))
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


def test_every_reason_to_stop():
    X = np.random.default_rng(0).normal(size=(60, 4))
    options = dict(p=1.3, init=X[:5], dispersion_offset=0.1)
    reasons = [
        MinkowskiWeightedKMeans(5, max_iter=n, tol=tol, **options).fit(X).stop_reason_
        for n, tol in ((1, 0.0), (50, 0.0), (50, 0.5))
    ]
    assert reasons == ["max_iter", "converged", "converged"]
    problem = make_problem(X, 1.3, 1.0, np.log(0.1), 50, 0.0)._replace(to_beat=-99.0)
    assert descend(X, np.ones(60), X[:5], np.ones(4), problem).stop_reason == "abandoned"


def test_empty_clusters_and_constant_features():
    X = np.hstack([rows(20, 2), np.ones((20, 1))])
    far = np.vstack([X[0], X[0] + 1e9])
    model = MinkowskiWeightedKMeans(2, p=1.5, init=far, dispersion_offset=0.1).fit(X)
    assert len(np.unique(model.labels_)) == 2
    assert (model.feature_weights_[:, 2] == 0).all()
    # A feature that is constant in one cluster alone takes all weight there.
    X[:10, 2], X[10:, 2] = 5, 1
    equal = MinkowskiWeightedKMeans(2, p=1.5, init=X[[0, 10]], dispersion_offset=0).fit(X)
    np.testing.assert_array_equal(equal.feature_weights_, [[0, 0, 1], [0, 0, 1]])


def test_scales_that_do_not_fit():
    # The last pass measures once more where the scale of a feature is far off.
    X = rows(20, 2)
    problem = make_problem(X, 6.0, 1.0, 0.0, 1, 0.0)
    result = descend(X, np.ones(20), X[:2], np.array([1e-200, 1e200]), problem)
    D = reference.dispersions(X, result.labels, result.centers, 6.0)
    np.testing.assert_allclose(np.exp(result.log_dispersions), D, rtol=1e-8)


@pytest.mark.parametrize("p", [1.2, 2.0, 3.0, 40.0])
def test_centers_far_from_the_start(p):
    x = np.array([[1e9], [1e9 + 1], [1e9 + 3], [1e9 + 3.5]])
    center, _ = one_cluster(np.vstack([x, x + 0.25]) - 1e9, np.ones(8), np.array([1e-9]), p)
    expected = reference.center(np.concatenate([x, x + 0.25])[:, 0] - 1e9, p)
    assert abs(center[0] - expected) <= 1e-8


def test_ties_go_to_the_lower_index():
    X, Z = np.array([[0.0], [1.0]]), np.array([[-1.0], [1.0], [1.0]])
    labels, _ = assign(X, make_model(Z, np.ones((3, 1)), 1.5, 1.0, X.dtype))
    np.testing.assert_array_equal(labels, [0, 1])
