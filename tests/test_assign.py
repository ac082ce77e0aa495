"""Distances, labels and sums of one chunk against the reference."""

import numpy as np
import pytest

import reference
from cafelearn.kmeans.iteration import ASSIGN, MEASURE
from cafelearn.kmeans.kernels.blocks import (
    BLOCK,
    LONG_BLOCK,
    PAD,
    make_scratch,
    transpose,
)
from cafelearn.kmeans.kernels.sums import (
    ABOVE,
    AT_ABOVE,
    AT_BELOW,
    BELOW,
    CHANGED,
    CURVATURE_ABOVE,
    CURVATURE_BELOW,
    GRADIENT_ABOVE,
    GRADIENT_BELOW,
    HIGH,
    LOW,
    MASS,
    MEMBERS,
    SPREAD,
    merge,
    no_sums,
)
from cafelearn.kmeans.placing import assign, distances, make_model
from passes import SCALE, from_python, sums_of

EXPONENTS = (1.01, 1.1, 1.5, 2.0, 2.7, 3.0, 4.0, 6.0, 10.0, 50.0)


def case(n=300, m=7, k=4, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)).astype(dtype)
    w = rng.random((k, m)).astype(dtype)
    return X, X[:k].copy(), w / w.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (5, 3, 2), (129, 17, 3), (257, 17, 3), (700, 40, 9)]
)
def test_distances(shape, p):
    X, Z, w = case(*shape)
    expected = reference.distances(X, Z, w, p) ** (1 / p)
    out = distances(X, make_model(Z, w, p, 1.0, X.dtype))
    np.testing.assert_allclose(out, expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("p", EXPONENTS)
def test_labels(p):
    X, Z, w = case(2000, 12, 6)
    labels, nearest = assign(X, make_model(Z, w, p, 1.0, X.dtype))
    np.testing.assert_array_equal(labels, reference.assign(X, Z, w, p))
    expected = reference.distances(X, Z, w, p).min(axis=1) ** (1 / p)
    np.testing.assert_allclose(nearest, expected, rtol=1e-10, atol=1e-14)


def test_single_precision():
    X, Z, w = case(1000, 12, 6, dtype=np.float32)
    for p in EXPONENTS:
        out = distances(X, make_model(Z, w, p, 1.0, X.dtype))
        assert out.dtype == np.float32
        expected = reference.distances(*(a.astype(float) for a in (X, Z, w)), p) ** (1 / p)
        np.testing.assert_allclose(out, expected, rtol=2e-5, atol=1e-6)


def test_threads_do_not_change_the_bits():
    X, Z, w = case(30_000, 40, 5)
    model = make_model(Z, w, 1.3, 1.0, X.dtype)
    for one, two in zip(assign(X, model, 1), assign(X, model, 3), strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(distances(X, model, 1), distances(X, model, 4))


def test_a_tie_goes_to_the_lower_index():
    X = np.array([[0.0], [1.0]])
    Z = np.array([[-1.0], [1.0], [1.0]])
    labels, _ = assign(X, make_model(Z, np.ones((3, 1)), 1.5, 1.0, X.dtype))
    np.testing.assert_array_equal(labels, [0, 1])


@pytest.mark.parametrize("p", EXPONENTS)
def test_old_labels_only_save_time(p):
    X, Z, w = case(3000, 40, 6)
    expected, _ = assign(X, make_model(Z, w, p, 1.0, X.dtype))
    for old in (np.full(len(X), -1), expected, np.arange(len(X)) % 6, np.zeros(len(X))):
        labels = old.astype(np.int32)
        sums = sums_of(ASSIGN, X, np.ones(len(X)), labels, Z, w, p)
        np.testing.assert_array_equal(labels, expected)
        assert sums[-1, CHANGED, 0] == (old != expected).sum()
        np.testing.assert_array_equal(sums[:-1, MASS, 0], np.bincount(expected, minlength=6))


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("how", ["assigned", "members"])
def test_sums_about_the_centers(p, how):
    X, Z, w = case(900, 5, 3)
    X = np.round(X, 1)  # ties, so that neighbours have multiplicities
    weights = np.random.default_rng(1).integers(0, 3, size=len(X)).astype(float)
    labels = reference.assign(X, Z, w, p).astype(np.int32)
    phase, given = MEASURE, labels.copy()
    if how == "assigned":
        phase, given = ASSIGN, np.arange(len(X), dtype=np.int32) % 3
    sums = sums_of(phase, X, weights, given, Z, w, p)
    for l in range(3):
        rows = (labels == l) & (weights > 0)
        x, wt = X[rows], weights[rows, None]
        t = SCALE * (x - Z[l])
        np.testing.assert_array_equal(sums[l, LOW], x.min(axis=0))
        np.testing.assert_array_equal(sums[l, HIGH], x.max(axis=0))
        assert (sums[l, MASS] == wt.sum()).all()
        with np.errstate(divide="ignore"):
            curve = np.where(t != 0, np.abs(t) ** (p - 2), 0.0)
        down = (wt * np.where(t < 0, np.abs(t), 0) ** (p - 1)).sum(axis=0)
        up = (wt * np.where(t > 0, t, 0) ** (p - 1)).sum(axis=0)
        expected = {SPREAD: (wt * np.abs(t) ** p).sum(axis=0)}
        if p > 2:
            expected[GRADIENT_BELOW], expected[GRADIENT_ABOVE] = down, up
            expected[CURVATURE_BELOW] = (wt * curve * (t < 0)).sum(axis=0)
            expected[CURVATURE_ABOVE] = (wt * curve * (t > 0)).sum(axis=0)
        else:
            expected[GRADIENT_BELOW] = down - up
        if p < 2:
            expected[CURVATURE_BELOW] = (wt * curve).sum(axis=0)
            below = np.where(x <= Z[l], x, -np.inf).max(axis=0)
            above = np.where(x > Z[l], x, np.inf).min(axis=0)
            expected[BELOW], expected[ABOVE] = below, above
            expected[AT_BELOW] = (wt * (x == below)).sum(axis=0)
            expected[AT_ABOVE] = (wt * (x == above)).sum(axis=0)
        for term, value in expected.items():
            np.testing.assert_allclose(sums[l, term], value, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("p", [1.3, 2.0, 3.0])
def test_chunks_merge_into_the_whole(p):
    X, Z, w = case(1000, 6, 3)
    X = np.round(X, 1)
    weights = np.ones(len(X))
    first, second = (np.full(len(X), -1, dtype=np.int32) for _ in range(2))
    whole, total = sums_of(ASSIGN, X, weights, first, Z, w, p), no_sums(*Z.shape)
    for rows in (slice(0, 313), slice(313, 314), slice(314, 1000)):
        part = sums_of(ASSIGN, X[rows], weights[rows], second[rows], Z, w, p)
        from_python(merge)(total, part)
    np.testing.assert_array_equal(first, second)
    # The rows of a part are numbered from 0, so its hash of the members is another one.
    whole[:, MEMBERS] = total[:, MEMBERS] = 0
    np.testing.assert_allclose(whole, total, rtol=1e-11)


def test_padding_divides_the_block():
    assert BLOCK % PAD == LONG_BLOCK % PAD == 0


class TestTranspose:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("m", [1, 3, 7, 8, 9, 16, 50])
    @pytest.mark.parametrize("size", [1, 7, 8, 31, 64, 100, 128])
    def test_all_and_some_features(self, dtype, m, size):
        rng = np.random.default_rng(m * size)
        X = rng.normal(size=(300, m)).astype(dtype)
        rows = rng.choice(300, size, replace=False)
        for features in (np.arange(m), np.arange(0, m, 2), np.arange(m // 3 + 1)):
            columns = make_scratch(X, 1, len(X), 2.0).columns
            columns[:] = np.nan
            from_python(transpose)(columns, X, rows, features)
            np.testing.assert_array_equal(columns[features, :size], X[rows][:, features].T)
            # What is left of the last vector is like the first row.
            width = -(-size // PAD) * PAD
            rest = np.broadcast_to(X[rows[0], features][:, None], (len(features), width - size))
            np.testing.assert_array_equal(columns[features, size:width], rest)
