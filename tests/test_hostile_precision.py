"""Fits that need more digits than their numbers have: ties near p = 1, data far from zero."""

import warnings

import numpy as np
import pytest

import reference
from cafelearn import MinkowskiWeightedKMeans
from cafelearn.kmeans.descent import descend, one_cluster_problem


def fit(X, k, sample_weight=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"n_init": 2, "random_state": 225, **options}
        return MinkowskiWeightedKMeans(k, **options).fit(X, sample_weight=sample_weight)


def rise(model):
    """The largest rise of the objective in one iteration, as a part of it."""
    path = model.objective_path_
    return (np.diff(path) / path[:-1]).max(initial=0)


@pytest.mark.parametrize("p", [1.001, 1.01, 1.02])
@pytest.mark.parametrize("k", [2, 3])
def test_dispersions_of_tied_values_in_single_precision(p, k):
    """Centres come so near to 0 that negative powers of the distance overflowed."""
    X = np.random.default_rng(225).integers(-2, 3, (200, 2)).astype(np.float32)
    model = fit(X, k, p=p, dispersion_offset=0.0)
    centers = model.cluster_centers_.astype(np.float64)
    expected = reference.dispersions(X.astype(np.float64), model.labels_, centers, p)
    np.testing.assert_allclose(model.dispersions_, expected, rtol=1e-5)
    assert rise(model) < 1e-6


@pytest.mark.parametrize("init", ["random", "k-means++", "anomalous"])
@pytest.mark.parametrize("p", [1.3, 2.0, 3.0, 8.0])
def test_single_precision_far_from_zero(p, init):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(129, 4)) * [0.2, 1, 10, 90] + 4 * rng.integers(0, 3, (129, 1)) + 1e6
    X = X.astype(np.float32)
    for offset in (0.0, "fixed"):
        model = fit(X, 4, p=p, init=init, dispersion_offset=offset)
        double = fit(X.astype(np.float64), 4, p=p, init=init, dispersion_offset=offset)
        np.testing.assert_array_equal(model.labels_, double.labels_)
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        assert rise(model) < 1e-7
        assert model.transform(X).dtype == np.float32


@pytest.mark.parametrize("p", [1.3, 2.0, 3.0, 3.9])
def test_single_precision_with_columns_of_very_different_ranges(p):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(90, 5)) * 10.0 ** np.array([-6, -3, 0, 3, 6])
    X = (X + rng.integers(0, 3, (90, 1)) * 4e-6).astype(np.float32)
    for seed in range(5):
        model = fit(X, 3, p=p, dispersion_offset=0.0, random_state=seed)
        assert rise(model) < 1e-5
        np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_ordinary_single_precision_is_kept():
    X = np.random.default_rng(3).normal(size=(60, 3)).astype(np.float32) * [1, 1000, 1]
    model = fit(X.astype(np.float32) + np.float32(20), 3, p=3.0)
    assert model.cluster_centers_.dtype == np.float32


def test_a_cycle_with_a_constant_offset_is_one_of_equal_objectives():
    cycles = 0
    for seed in range(40):
        X = np.random.default_rng(seed).integers(-2, 3, (60, 4)).astype(float)
        model = fit(X, 3, p=1.02, dispersion_offset="fixed", random_state=seed)
        assert rise(model) < 1e-7
        if model.stop_reason_ == "cycle":
            cycles += 1
            assert model.objective_path_[-2] / model.objective_path_[-1] - 1 < 1e-9
        np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert cycles < 20


@pytest.mark.parametrize(("p", "accuracy"), [(1.001, 1e-9), (3.0, 3e-8), (4.0, 3e-8)])
def test_centres_of_heavy_tails(p, accuracy):
    """The documented accuracy where it is less than that of ordinary data."""
    for seed in range(4):
        X = np.random.default_rng(seed).standard_cauchy((40, 1))
        model = fit(X, 1, p=p, n_init=1)
        error = abs(
            float(reference.precise_center(X[:, 0], p, 40) - model.cluster_centers_[0, 0])
        )
        assert error <= accuracy * np.ptp(X)


@pytest.mark.parametrize(("dtype", "accuracy"), [(np.float64, 5e-9), (np.float32, 1e-5)])
@pytest.mark.parametrize("p", [1.001, 1.01, 1.1, 1.3])
def test_dispersions_about_centres_of_heavy_tails_are_the_smallest(p, dtype, accuracy):
    """A small part of the range may be far more than the distances of most members."""
    for seed in range(8):
        x = (np.random.default_rng(seed).standard_cauchy(1000) ** 3).astype(dtype)
        model = fit(x[:, None], 1, p=p, n_init=1)
        x = x.astype(np.longdouble)
        found, best = (
            (np.abs(x - center) ** np.longdouble(p)).sum()
            for center in (model.cluster_centers_[0, 0], reference.center(x, p))
        )
        assert found <= (1 + accuracy) * best, seed


@pytest.mark.parametrize(("dtype", "accuracy"), [(np.float64, 5e-9), (np.float32, 1e-5)])
@pytest.mark.parametrize("p", [1.001, 1.01, 1.1, 1.3])
def test_a_heavy_member_is_the_centre(p, dtype, accuracy):
    """The number next to it is within the accuracy, but its dispersion is far larger."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x, weights = rng.normal(7, 1, 3).astype(dtype), np.array([1e5, 1e-5, 1e-5])
        model = fit(x[:, None], 1, p=p, n_init=1, sample_weight=weights)
        away = np.abs(x.astype(np.longdouble) - model.cluster_centers_[0, 0])
        at_member = np.abs(x.astype(np.longdouble) - x[0])
        found, best = (weights @ way ** np.longdouble(p) for way in (away, at_member))
        assert found <= (1 + accuracy) * best, seed


@pytest.mark.parametrize(("dtype", "accuracy"), [(np.float64, 1e-7), (np.float32, 1e-4)])
@pytest.mark.parametrize("p", [3.0, 4.0, 5.0])
def test_centres_of_weights_of_many_sizes(p, dtype, accuracy):
    """Heavy members bend the gradient on a length far below the range of all members."""
    for seed in (*range(200), 530, 811, 1956, 2233, 2323):
        rng = np.random.default_rng(seed)
        kinds = rng.integers(-2, 3, 8), rng.standard_cauchy(8), rng.normal(size=8)
        x = kinds[seed % 3].astype(dtype)
        weights = 10 ** rng.uniform(-5, 5, 8)
        model = fit(x[:, None], 1, p=p, n_init=1, sample_weight=weights)
        error = abs(model.cluster_centers_[0, 0] - reference.center(x, p, weights))
        assert error <= accuracy * np.ptp(x), seed


@pytest.mark.parametrize(("dtype", "accuracy"), [(np.float64, 1e-7), (np.float32, 1e-4)])
@pytest.mark.parametrize("p", [2.7, 3.0, 3.5, 4.0])
def test_a_search_that_begins_at_a_heavy_member(p, dtype, accuracy):
    """Its curvature is zero at its own place, so only light members show in the first step."""
    weights = np.array([1e-3, 1e-3, 1e5])
    for imbalance in 10.0 ** np.arange(-7, -2):
        x = np.array([0, 1, 0.5 + imbalance], dtype=dtype)[:, None]
        problem = one_cluster_problem(x, p)
        result = descend(x, weights, x[2:], np.ones(1), problem)
        error = abs(result.centers[0, 0] - reference.center(x[:, 0], p, weights))
        assert error <= accuracy, imbalance


@pytest.mark.parametrize(("dtype", "tiny"), [(np.float64, 2.0**-200), (np.float32, 2.0**-40)])
@pytest.mark.parametrize("p", [1.5, 2.0, 3.0, 4.7, 9.0])
def test_a_centre_far_from_members_of_a_tiny_range(p, dtype, tiny):
    x = np.array([-1.1, 0.3, 1.8]) * tiny
    problem = one_cluster_problem(x[:, None].astype(dtype), p)
    for start in (0.5, 1.0, -1.0):
        result = descend(
            x[:, None].astype(dtype), np.ones(3), np.array([[start]]), np.ones(1), problem
        )
        expected = reference.center(x / tiny, p)
        np.testing.assert_allclose(result.centers[0, 0] / tiny, expected, atol=2e-5)
        spread = np.log((np.abs(x / tiny - expected) ** p).sum()) + p * np.log(tiny)
        np.testing.assert_allclose(result.log_dispersions[0, 0], spread, rtol=0, atol=1e-4)


@pytest.mark.parametrize("p", [2.5, 3.0, 4.0, 6.0])
def test_dispersions_of_weights_of_many_sizes(p):
    """The last step to a centre may be one along which the gradient is no straight line."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X, weights = rng.standard_cauchy((8, 8)), 10 ** rng.uniform(-5, 5, 8)
        model = fit(X, 1, p=p, n_init=1, sample_weight=weights)
        away = np.abs(X.astype(np.longdouble) - model.cluster_centers_)
        expected = weights @ away ** np.longdouble(p)
        np.testing.assert_allclose(
            model.dispersions_[0].astype(np.longdouble) / expected, 1, rtol=0, atol=p * 1e-9
        )


def test_huge_data_times_huge_weights():
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(40, 3)), rng.normal(size=(40, 3)) + 5]
    plain = fit(X, 2, p=3.0, random_state=0)
    for data, weight in ((166, 100), (500, 500), (900, 1000), (-900, -1000)):
        weights = np.full(80, 2.0**weight)
        model = fit(np.ldexp(X, data), 2, p=3.0, random_state=0, sample_weight=weights)
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        np.testing.assert_allclose(
            np.ldexp(model.cluster_centers_, -data), plain.cluster_centers_
        )
        np.testing.assert_allclose(model.feature_weights_, plain.feature_weights_)


@pytest.mark.parametrize("factor", [1e-300, 1e300])
def test_findings_about_clusters_of_extreme_weight(factor):
    X = np.r_[np.zeros((1, 2)), np.random.default_rng(4).normal(size=(60, 2)) + 50]
    weights = np.full(61, factor)
    weights[0] /= 1e3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        model = MinkowskiWeightedKMeans(2, init=X[:2]).fit(X, sample_weight=weights)
    (finding,) = (f for f in model.diagnosis_ if f.code == "collapsed")
    assert finding.message == "99% of the total sample weight is in one of 2 clusters."
