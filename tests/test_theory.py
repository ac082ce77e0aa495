"""Each claim of the paper, on dispersions drawn at random and on real fits."""

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import reference
from cafelearn import MinkowskiWeightedKMeans, theory
from cafelearn.theory import certificate

positive = arrays(
    float,
    st.tuples(st.integers(1, 5), st.integers(2, 8)),
    elements=st.floats(1e-6, 1e6),
)
exponents = st.floats(1.05, 20)


@given(D=positive, p=exponents)
def test_weights_are_equation_4(D, p):
    np.testing.assert_allclose(
        theory.feature_weights(D, p), reference.feature_weights(D, p), rtol=1e-9, atol=1e-300
    )
    np.testing.assert_allclose(
        theory.feature_weights(D, p, offset=2.0), reference.feature_weights(D + 2, p), rtol=1e-9
    )


def test_weights_at_zero_dispersion():
    np.testing.assert_array_equal(theory.feature_weights([0.0, 3.0, 0.0], 1.5), [0.5, 0, 0.5])
    np.testing.assert_array_equal(theory.feature_weights([[0.0, 0.0]], 9), [[0.5, 0.5]])


@given(D=positive, p=exponents)
def test_lemma_1_and_2(D, p):
    W = reference.objective(D, reference.feature_weights(D, p), p)
    np.testing.assert_allclose(theory.objective(D, p), W, rtol=1e-9)
    np.testing.assert_allclose(theory.power_mean_objective(D, p), W, rtol=1e-9)
    # Corollary 1: the sum of power means is the objective times a constant.
    means = theory.power_mean(D, -1 / (p - 1)).sum()
    np.testing.assert_allclose(means, W * D.shape[1] ** (p - 1), rtol=1e-8)


@given(D=positive, p=exponents)
def test_theorem_2_bounds(D, p):
    lower, upper = theory.objective_bounds(D, p)
    W = theory.objective(D, p)
    assert lower * (1 - 1e-9) <= W <= upper * (1 + 1e-9)
    assert -1e-9 <= theory.normalized_objective(D, p) <= 1 + 1e-9


def test_theorem_2_bounds_are_reached():
    D = np.array([[1.0, 2.0, 7.0], [3.0, 1.0, 1.5]])
    assert theory.normalized_objective(D, 1 + 1e-6) < 1e-5
    assert theory.normalized_objective(D, 1e6) > 1 - 1e-5
    assert theory.normalized_objective(np.ones((2, 3)), 2) == 0
    assert theory.normalized_objective(np.full((1, 5), 1.5), 3) == 0
    assert theory.normalized_objective(np.zeros((2, 3)), 2) == 0


@given(D=positive)
def test_power_means_rise_with_their_order(D):
    orders = (-np.inf, -50.0, -1.0, -0.1, 0.0, 0.1, 1.0, 30.0, np.inf)
    means = np.array([theory.power_mean(D, r) for r in orders])
    assert (np.diff(means, axis=0) >= -1e-9 * means[:-1]).all()
    np.testing.assert_allclose(means[0], D.min(axis=1))
    np.testing.assert_allclose(means[6], D.mean(axis=1))
    np.testing.assert_allclose(means[-1], D.max(axis=1))


@given(D=positive, p=exponents)
def test_proposition_2_and_theorem_3(D, p):
    w = theory.feature_weights(D, p)
    for l in range(len(D)):
        for u in range(D.shape[1]):
            for v in range(D.shape[1]):
                ratio = theory.weight_ratio(D[l, u], D[l, v], p)
                np.testing.assert_allclose(w[l, u], ratio * w[l, v], rtol=1e-7, atol=1e-290)
                if D[l, v] < D[l, u] * (1 - 1e-9):
                    assert w[l, v] > w[l, u] or w[l, v] == 0
                    C = D[l, u] / D[l, v]
                    bound = theory.weight_ratio_bound(C, p) * w[l, v]
                    assert w[l, u] <= bound * (1 + 1e-7) + 1e-290


@given(D=positive)
def test_limits_of_the_weights(D):
    D = np.round(np.log(D)) + 20.0  # ties are exact, and differences are not tiny
    np.testing.assert_allclose(
        theory.feature_weights(D, 1 + 1e-9), theory.selective_limit(D), atol=1e-12
    )
    np.testing.assert_allclose(theory.feature_weights(D, 1e12), 1 / D.shape[1], rtol=1e-9)
    contrast = [
        theory.feature_weights(D, p).max(axis=1) / theory.feature_weights(D, p).min(axis=1)
        for p in (1.3, 1.5, 2, 3, 10)
    ]
    assert (np.diff(contrast, axis=0) <= 1e-9).all()


@given(D=positive, p=exponents)
def test_theorem_4_and_corollary_4(D, p):
    w, m = theory.feature_weights(D, p), D.shape[1]
    feature, C = theory.dominance(D)
    for l in range(len(D)):
        u = feature[l]
        assert (D[l, u] >= C[l] * np.delete(D[l], u) * (1 - 1e-12)).all()
        if C[l] > 1:
            bound = theory.suppression_bound(C[l], m, p)
            assert w[l, u] <= bound * (1 + 1e-9) + 1e-300
            limit = theory.noise_suppression_bound(D[l, u], C[l], m, p)
            rescaled = theory.rescaled_dispersions(D, p)[l, u]
            assert rescaled <= limit * (1 + 1e-8) + 1e-300


@given(D=positive, p=exponents)
def test_lemma_3_reversal(D, p):
    rescaled = theory.rescaled_dispersions(D, p)
    for before, after in zip(D, rescaled, strict=True):
        for u in range(len(before)):
            for v in range(len(before)):
                if before[u] > before[v] * (1 + 1e-6) and after[v] > 1e-280:
                    assert after[u] < after[v]


def test_the_bound_of_corollary_4_is_not_monotone_in_p():
    bounds = [theory.noise_suppression_bound(1.0, 2.0, 3, p) for p in (1.2, 2.0, 3.0)]
    np.testing.assert_allclose(1 / np.array(bounds), [149.8, 25, 56.1], rtol=1e-3)
    # In C it is.
    falling = theory.noise_suppression_bound(1.0, np.array([1.5, 2, 5, 50]), 3, 2.0)
    assert (np.diff(falling) < 0).all()


def test_log_space_where_powers_explode():
    D = np.array([[1e-90, 3e-90, 2e200], [5.0, 5.1, 1e-300]])
    for p in (1.001, 1.01, 40.0):
        r = mpmath.mpf(-1) / (mpmath.mpf(p) - 1)
        expected = []
        for row in D:
            powers = [mpmath.mpf(d) ** r for d in row]
            total = mpmath.fsum(powers)
            expected.append([float(x / total) for x in powers])
        np.testing.assert_allclose(
            theory.feature_weights(D, p), expected, rtol=1e-9, atol=1e-300
        )
        assert 0 <= theory.normalized_objective(D, p) <= 1 + 1e-12


def test_definition_2():
    noisy = theory.noise_pairs([[1.0, 5.0], [2.0, 2.0]], [[1.0, 2.0], [3.0, 1.0]])
    np.testing.assert_array_equal(noisy, [[False, True], [False, True]])


@pytest.mark.parametrize("bad", [1, 0.3, np.inf, np.nan, "x", None])
def test_bad_p(bad):
    with pytest.raises(ValueError, match="p must be"):
        theory.feature_weights([1.0, 2.0], bad)


@pytest.mark.parametrize("bad", [[-1.0, 2.0], [np.nan, 1.0], 3.0])
def test_bad_dispersions(bad):
    with pytest.raises(ValueError, match="Dispersions must be"):
        theory.objective(bad, 2)


class TestCertificate:
    @pytest.mark.parametrize("p", [1.05, 1.1, 1.5, 2.0, 3.0, 5.0, 20.0])
    @pytest.mark.parametrize("init", ["random", "k-means++"])
    def test_every_claim_holds_without_an_offset(self, p, init, data):
        model = MinkowskiWeightedKMeans(
            3, p=p, dispersion_offset=0, init=init, n_init=3, random_state=0
        ).fit(data)
        table = certificate(model, data)
        assert isinstance(table, pd.DataFrame)
        assert list(table.columns) == ["measured", "bound", "slack", "verdict", "note"]
        assert len(table) == 20
        assert table.all_hold, f"\n{table}"
        assert (table["verdict"] == "holds").sum() >= 18, f"\n{table}"

    @pytest.mark.parametrize("offset", ["mean", "fixed", 0.5])
    def test_an_offset_is_said_and_its_fixed_point_checked(self, offset, data):
        model = MinkowskiWeightedKMeans(
            3, p=1.6, dispersion_offset=offset, n_init=3, random_state=0
        ).fit(data)
        table = certificate(model, data)
        assert table.all_hold, f"\n{table}"
        assert table.loc["Eq. 4: fixed point, weights", "verdict"] == "holds"
        lemma = table.loc["Lemma 1: objective from dispersions"]
        assert lemma["verdict"] == "does not apply"
        assert repr(offset) in lemma["note"]
        monotone = table.loc["Theorem 1: descent is monotone", "verdict"]
        assert monotone == ("does not apply" if offset == "mean" else "holds")

    @pytest.mark.parametrize(
        ("spoil", "claims"),
        [
            ("labels_", ["Fixed point: labels"]),
            ("cluster_centers_", ["Proposition 1: fixed point, centres"]),
            ("feature_weights_", ["Eq. 4: fixed point, weights", "Eq. 4: weights sum to 1"]),
            ("objective_path_", ["Theorem 1: descent is monotone"]),
        ],
    )
    def test_it_fails_where_it_should(self, spoil, claims, blobs):
        X, _ = blobs
        model = MinkowskiWeightedKMeans(3, p=1.5, dispersion_offset=0, random_state=0).fit(X)
        value = getattr(model, spoil).copy()
        value.flat[:40] = (
            (value.flat[:40] + 1) % 3 if spoil == "labels_" else 2 * value.flat[:40]
        )
        if spoil == "objective_path_":
            value = np.append(value, 2 * value[-1])
        setattr(model, spoil, value)
        table = certificate(model, X)
        assert not table.all_hold
        for claim in claims:
            assert table.loc[claim, "verdict"] == "does not hold", f"\n{table}"

    def test_unfinished_fits_say_so(self, blobs):
        X, _ = blobs
        model = MinkowskiWeightedKMeans(
            5, p=1.1, dispersion_offset=0, max_iter=1, n_init=1, random_state=1
        ).fit(X)
        table = certificate(model, X)
        assert table.loc["Proposition 1: fixed point, centres", "note"] == "stopped by max_iter"
        assert table.all_hold, f"\n{table}"

    def test_weights_and_single_precision(self, blobs):
        X, _ = blobs
        weights = np.random.default_rng(0).integers(0, 3, size=len(X))
        options = dict(p=1.4, dispersion_offset=0, random_state=0)
        model = MinkowskiWeightedKMeans(3, **options).fit(X, sample_weight=weights)
        assert certificate(model, X, weights).all_hold
        single = MinkowskiWeightedKMeans(3, **options).fit(X.astype(np.float32))
        table = certificate(single, X.astype(np.float32))
        assert table.all_hold, f"\n{table}"

    def test_it_prints_as_one_table(self, blobs):
        X, _ = blobs
        model = MinkowskiWeightedKMeans(3, dispersion_offset=0, random_state=0).fit(X)
        table = certificate(model, X)
        lines = repr(table).splitlines()
        assert len(lines) == 22
        assert all("..." not in line for line in lines)
        assert max(map(len, lines)) < 150
        assert "measured" in repr(table[["measured"]])

    def test_other_data_is_refused(self, blobs):
        X, _ = blobs
        model = MinkowskiWeightedKMeans(3, random_state=0).fit(X)
        with pytest.raises(ValueError, match=r"the 400 rows .* fitted on, got 7"):
            certificate(model, X[:7])
