"""Minkowski centres against a reference of high precision."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import reference
from cafelearn.kmeans.descent import descend, one_cluster, one_cluster_problem
from cafelearn.kmeans.scales import data_scale
from cafelearn.theory import minkowski_center

EXPONENTS = (1.001, 1.1, 1.5, 2.0, 3.0, 10.0, 50.0)

CASES = {
    "one point": [3.7],
    "one point, many times": [0.1] * 7,
    "two points": [0.0, 1.0],
    "two points, one doubled": [0.0, 0.0, 1.0],
    "three points": [0.0, 0.3, 1.0],
    "ties": [1, 1, 1, 1, 2, 2, 3, 5, 5, 5, 10],
    "binary": [0] * 37 + [1] * 12,
    "half and half": [0] * 10 + [1] * 10,
    "an outlier of 1e12": [*np.random.default_rng(0).normal(size=40), 1e12],
    "outliers on both sides": [*np.random.default_rng(1).normal(size=40), 1e12, -3e11],
    "far from zero": 1e6 + np.random.default_rng(2).normal(size=30),
    "normal": np.random.default_rng(3).normal(size=301),
    "two modes": [*np.random.default_rng(4).normal(size=300), *np.linspace(29, 31, 100)],
    "heavy tails": np.random.default_rng(5).standard_cauchy(size=200),
    "tiny": 1e-100 * np.random.default_rng(6).normal(size=20),
    "huge": 1e100 * np.random.default_rng(7).normal(size=20),
    "close pair among many": [0.0, 1e-13, *np.linspace(-1, 1, 20)],
    "almost tied": [0.0, -1e-17, 1.0],
    "almost tied, the least": [0.0, -1e-109, 1.0],
    "almost tied, at all scales": [0.0, 2e-145, -6e-137, 0.0, -4e-258, 1e-11, *[1.0] * 5],
    "almost tied and tiny": [-1e-204, -2e-281, 1e-277],
}


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("name", CASES)
def test_against_high_precision(name, p):
    x = np.asarray(CASES[name], dtype=float)
    expected = float(reference.precise_center(x, p))
    span = np.ptp(x)
    # The data's own rounding is all that a floating-point centre can be asked to respect.
    allowed = 1e-9 * span + np.spacing(np.abs(x).max())
    assert abs(minkowski_center(x, p) - expected) <= allowed


@pytest.mark.parametrize("p", EXPONENTS)
def test_far_tighter_than_promised_on_ordinary_data(p):
    x = CASES["normal"]
    error = abs(minkowski_center(x, p) - float(reference.precise_center(x, p)))
    assert error <= 2e-10 * np.ptp(x)


def test_two_points_where_the_rest_of_the_gradient_is_equally_steep():
    """The slope between 9169 and 9381 is smallest in the middle of these two points."""
    x = np.r_[
        [8386, 8465, 8605, 8615, 8617, 8647, 8657, 8673, 8784, 8965, 9158, 9162, 9169],
        [9381, 9387, 9566, 9604, 9730, 9754, 9797, 9798, 9834, 9971, 9977, 9982, 9998.0],
    ]
    # The next point of the search is 9265.68, and the slopes differ by 7e-5 of themselves.
    start = np.array([[9309.887365162875]])
    _, feature_scale = data_scale(x[[0]], x[[-1]])
    problem = one_cluster_problem(x[:, None], 1.5)
    result = descend(x[:, None], np.ones(len(x)), start, feature_scale, problem)
    error = abs(result.centers[0, 0] - float(reference.precise_center(x, 1.5)))
    assert error <= 1e-10 * np.ptp(x)


def test_special_exponents():
    x = np.random.default_rng(0).normal(size=(57, 3))
    np.testing.assert_allclose(minkowski_center(x, 2), x.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(minkowski_center(x, 1 + 1e-9), np.median(x, axis=0), rtol=1e-9)
    midrange = (x.min(axis=0) + x.max(axis=0)) / 2
    np.testing.assert_allclose(minkowski_center(x, 3000), midrange, atol=0.02)


def numbers(n):
    value = st.floats(-1e6, 1e6, allow_subnormal=False)
    few = st.sampled_from([-1.0, 0.0, 0.25, 1.0])
    return arrays(float, n, elements=st.one_of(value, few))


@given(x=st.integers(2, 40).flatmap(numbers), p=st.floats(1.01, 30))
def test_any_numbers(x, p):
    expected = reference.center(x, p)
    assert abs(minkowski_center(x, p) - expected) <= 1e-9 * np.ptp(x) + np.spacing(1e6)


LOGS = st.one_of(st.floats(-300, 0), st.floats(-30, 0))


def near_ties(n):
    """Few places, and next to them numbers at any distance."""
    place = st.sampled_from([0.0, 0.5, 1.0])
    distance = st.builds(lambda sign, log: sign * 10**log, st.sampled_from([-1, 0, 1]), LOGS)
    return arrays(float, n, elements=st.builds(lambda a, b: a + b, place, distance))


@given(x=st.integers(2, 12).flatmap(near_ties), p=st.floats(1.01, 4))
def test_almost_tied(x, p):
    expected = reference.center(x, p)
    allowed = 1e-10 * np.ptp(x) + np.spacing(np.abs(x).max())
    assert abs(minkowski_center(x, p) - expected) <= allowed


@given(x=st.integers(2, 30).flatmap(numbers), p=st.floats(1.05, 10), data=st.data())
def test_weights_are_repetitions(x, p, data):
    counts = data.draw(arrays(np.int64, len(x), elements=st.integers(0, 4)))
    if not counts.any():
        counts[0] = 1
    scale = np.ones(1)
    weighted, log_weighted = one_cluster(x[:, None], counts.astype(float), scale, p)
    repeated = np.repeat(x, counts)[:, None]
    plain, log_plain = one_cluster(repeated, np.ones(len(repeated)), scale, p)
    span = np.ptp(repeated)
    assert abs(weighted[0] - plain[0]) <= 1e-9 * span
    if span > 0:
        np.testing.assert_allclose(log_weighted, log_plain, atol=1e-6)


@pytest.mark.parametrize("p", EXPONENTS)
def test_dispersions_come_with_the_centers(p):
    x = np.random.default_rng(0).normal(size=(500, 4))
    center, log_dispersion = one_cluster(x, np.ones(500), np.full(4, 0.25), p)
    np.testing.assert_allclose(
        log_dispersion, np.log((np.abs(x - center) ** p).sum(axis=0)), atol=1e-9
    )


@pytest.mark.parametrize("p", EXPONENTS)
def test_single_precision(p):
    x = np.random.default_rng(0).normal(size=(300, 5)).astype(np.float32)
    center, _ = one_cluster(x, np.ones(300), np.full(5, 0.25), p)
    assert center.dtype == np.float32
    for v in range(5):
        assert abs(center[v] - reference.center(x[:, v], p)) <= 3e-5 * np.ptp(x[:, v])


@pytest.mark.parametrize("bad", [[], [np.nan, 1.0], [np.inf]])
def test_bad_values(bad):
    with pytest.raises(ValueError, match="finite"):
        minkowski_center(bad, 2)
