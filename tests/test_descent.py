"""The fit loop against Algorithm 1, written from the paper."""

import numpy as np
import pytest

import reference
from cafelearn import MinkowskiWeightedKMeans
from cafelearn.kmeans.descent import (
    ADVANCE,
    WORK_PER_CALL,
    Rows,
    Span,
    _chunks_at_once,
    descend,
    run_passes,
    scratch_for,
)
from cafelearn.kmeans.iteration import (
    ASSIGN,
    CYCLE,
    MEASURE,
    REASON,
    STOP,
    make_problem,
    start,
)
from cafelearn.kmeans.kernels.sums import CHANGED, MEMBERS, empty_stack
from cafelearn.kmeans.scales import data_scale
from conftest import make_blobs

EXPONENTS = (1.1, 1.5, 2.0, 3.0, 6.0, 12.0)


@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("offset", [0.0, 0.3, "mean"])
def test_the_whole_algorithm(p, offset, data):
    rng = np.random.default_rng(1)
    compared = 0
    for _ in range(4):
        Z = data[rng.choice(len(data), 3, replace=False)]
        try:
            labels, centers, w, D, path = reference.mwk_means(data, Z, p, offset, max_iter=30)
        except AssertionError:
            continue  # the reference does not handle empty clusters
        model = MinkowskiWeightedKMeans(
            3, p=p, init=Z, dispersion_offset=offset, max_iter=30
        ).fit(data)
        if len(path) == 30:
            continue
        compared += 1
        np.testing.assert_array_equal(model.labels_, labels)
        np.testing.assert_allclose(model.cluster_centers_, centers, atol=1e-8)
        np.testing.assert_allclose(model.feature_weights_, w, atol=1e-7)
        np.testing.assert_allclose(model.dispersions_, D, rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(model.objective_path_, path, rtol=1e-8)
        assert model.n_iter_ == len(path)
        assert model.stop_reason_ == "converged"
    assert compared


def test_many_rows_end_with_exact_centers():
    X, _ = make_blobs(30_000, 5, 4, seed=3)
    for p in (1.1, 1.5, 3.0):
        model = MinkowskiWeightedKMeans(4, p=p, dispersion_offset=0, n_init=1, random_state=0)
        model.fit(X)
        assert model.stop_reason_ == "converged"
        for l in range(4):
            for v in range(5):
                x = X[model.labels_ == l, v]
                error = abs(model.cluster_centers_[l, v] - reference.center(x, p))
                assert error <= 1e-9 * np.ptp(x)
        D = reference.dispersions(X, model.labels_, model.cluster_centers_, p)
        np.testing.assert_allclose(model.dispersions_, D, rtol=1e-9)
        np.testing.assert_allclose(
            model.feature_weights_, reference.feature_weights(D, p), rtol=1e-6, atol=1e-12
        )
        rises = np.diff(model.objective_path_) / model.objective_path_[:-1]
        assert rises.max(initial=0) <= 1e-9


def test_uniform_weights_at_p_2_are_k_means():
    from sklearn.cluster import KMeans

    X, _ = make_blobs(3000, 8, 5, seed=1)
    Z = X[:5]
    # A huge constant makes all weights equal.
    model = MinkowskiWeightedKMeans(5, p=2, init=Z, dispersion_offset=1e12).fit(X)
    kmeans = KMeans(5, init=Z, n_init=1, tol=0, algorithm="lloyd").fit(X)
    np.testing.assert_allclose(model.feature_weights_, 1 / 8, rtol=1e-6)
    np.testing.assert_array_equal(model.labels_, kmeans.labels_)
    np.testing.assert_allclose(model.cluster_centers_, kmeans.cluster_centers_, rtol=1e-10)
    np.testing.assert_allclose(model.inertia_ * 64, kmeans.inertia_, rtol=1e-5)
    assert model.n_iter_ + 1 == kmeans.n_iter_


def test_labels_that_come_back_end_the_run():
    # Cycles need a moving offset and are so rare (none in 20,000 random fits) that the
    # machine is fed with labels by hand: A, B, A.
    X = np.random.default_rng(0).normal(size=(40, 2))
    problem = make_problem(X, 1.5, 1.0, "mean", 50, 0.0)
    state = start(X[:2].copy(), np.ones(2), problem)
    some, others = np.arange(40) % 2, np.arange(40) // 20
    stack, scratch, reasons = empty_stack(1, 2, 2), scratch_for(X, 2, problem), []
    for labels in (some, others, some):
        rows, phase = Rows(X, np.ones(40), labels.astype(np.int32)), ASSIGN
        while phase != STOP:
            # A pass that measures leaves the labels alone.
            made = MEASURE if phase == ASSIGN else phase
            run_passes(made, state, stack, rows, problem, Span(0, 1), scratch)
            if phase == ASSIGN:
                stack[0, 2, CHANGED, 0] = 20
                members = np.array([11, 12] if labels is some else [13, 14], dtype=np.uint64)
                stack[0, :2, MEMBERS, 0] = members.view(np.float64)
            phase = run_passes(phase, state, stack, rows, problem, ADVANCE, scratch)
            if phase == ASSIGN:
                break
        reasons.append(int(state.counters[REASON]))
        if phase == STOP:
            break
    assert reasons[-1] == CYCLE
    assert len(reasons) == 3


def test_the_moving_offset_lets_the_objective_rise():
    rises = 0
    for seed in range(40):
        X = np.random.default_rng(seed).standard_cauchy(size=(60, 4))
        model = MinkowskiWeightedKMeans(3, p=1.5, n_init=1, random_state=seed).fit(X)
        np.testing.assert_array_equal(model.labels_, model.predict(X))
        rises += (np.diff(model.objective_path_) > 1e-9 * model.objective_path_[:-1]).any()
    assert rises


@pytest.mark.parametrize("p", [1.2, 2.0, 3.0, 20.0])
def test_max_iter(p, blobs):
    X, _ = blobs
    model = MinkowskiWeightedKMeans(3, p=p, max_iter=1, n_init=1, random_state=3).fit(X)
    assert model.n_iter_ == 1
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    D = reference.dispersions(X, model.labels_, model.cluster_centers_, p)
    np.testing.assert_allclose(model.dispersions_, D, rtol=1e-8)
    np.testing.assert_allclose(
        model.inertia_, reference.objective(D, model.feature_weights_, p), rtol=1e-8
    )


def test_tol_stops_earlier(blobs):
    X, _ = blobs
    options = dict(p=1.3, dispersion_offset=0, init=X[:5])
    full = MinkowskiWeightedKMeans(5, **options).fit(X)
    short = MinkowskiWeightedKMeans(5, tol=0.2, **options).fit(X)
    assert short.n_iter_ < full.n_iter_
    falls = 1 - short.objective_path_[1:] / short.objective_path_[:-1]
    assert (falls[:-1] > 0.2).all()
    assert falls[-1] <= 0.2
    np.testing.assert_array_equal(short.labels_, short.predict(X))


@pytest.mark.parametrize("p", [1.2, 2.0, 3.0])
def test_empty_clusters_are_filled(p):
    X, _ = make_blobs(200, 3, 3, n_noise=0)
    Z = np.vstack([X[:1], X[:1] + 1e9, X[:1] - 1e9, X[:1] + 2e9])
    model = MinkowskiWeightedKMeans(4, p=p, init=Z, dispersion_offset=0).fit(X)
    assert len(np.unique(model.labels_)) == 4
    assert np.abs(model.cluster_centers_).max() < 100


def test_the_seed_of_an_empty_cluster_is_the_farthest_row():
    X = np.array([[0.0], [0.1], [0.2], [10.0]])
    model = MinkowskiWeightedKMeans(2, init=[[0.1], [-1e6]], dispersion_offset=0).fit(X)
    np.testing.assert_array_equal(model.labels_, [0, 0, 0, 1])


def test_n_threads_of_one_descent(blobs):
    X, _ = make_blobs(60_000, 9, 4)
    scale, feature_scale = data_scale(X.min(axis=0), X.max(axis=0))
    problem = make_problem(X, 1.4, scale, "mean", 50, 0.0)
    ones = np.ones(len(X))
    first = descend(X, ones, X[:4], feature_scale, problem, 1)
    for n_threads in (2, 5):
        other = descend(X, ones, X[:4], feature_scale, problem, n_threads)
        for a, b in zip(first, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n_chunks", [1, 7, 191, 10**5])
@pytest.mark.parametrize("n_threads", [1, 2, 8])
@pytest.mark.parametrize("work", [2**10, 2**22, 3 * 2**23, 2**30])
def test_the_parts_of_a_pass_are_short(n_chunks, n_threads, work):
    """Interrupts are handled between them."""
    at_once = _chunks_at_once(n_chunks, n_threads, work)
    assert at_once.bit_count() == 1
    if at_once > 1:
        assert at_once * work <= WORK_PER_CALL
        assert at_once * 8 * n_threads <= n_chunks
    limit = min(n_chunks / (8 * n_threads), WORK_PER_CALL / work)
    assert 2 * at_once > limit
