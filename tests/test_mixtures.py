"""Mixtures with independent features: densities, EM, atoms and merging."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from cafelearn._mixtures import (
    ATOM,
    PRIOR,
    SCATTER,
    fit_mixture,
    log_sum,
    make_layout,
    merged_memberships,
    row_statistics,
)


def two_clusters(n=120, seed=0):
    """Rows about (0, 0, 0) and (6, 6, 0), and their clusters."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 3)) * [1.0, 0.5, 2.0] + 6.0 * y[:, None] * [1, 1, 0], y


def fit(X, memberships, **options):
    layout = make_layout(X)
    statistics = row_statistics(X, layout)
    return fit_mixture(statistics, memberships, layout, **options), statistics, layout


def density(X, memberships):
    """Logarithms of share times density by the formulas, one component after the other."""
    n, k = memberships.shape
    out = np.zeros((n, k))
    for l, share in enumerate(memberships.T):
        out[:, l] = np.log((share.sum() + 1) / (n + k))
        for column in X.T:
            there = ~np.isnan(column)
            distinct, counts = np.unique(column[there], return_counts=True)
            atoms = distinct[counts >= ATOM * there.sum()]
            rest = there & ~np.isin(column, atoms)
            total = share[there].sum() + PRIOR
            for atom in atoms:
                at = column == atom
                mass = share[at].sum() + PRIOR * at.sum() / there.sum()
                out[at, l] += np.log(mass / total)
            t, weight = column[rest], share[rest]
            t = (t - t.mean()) / t.std()
            mean = weight @ t / weight.sum()
            scatter = weight @ (t - mean) ** 2
            deviation = np.sqrt((scatter + SCATTER) / (weight.sum() + PRIOR))
            out[rest, l] += norm.logpdf(t, mean, deviation) + 0.5 * np.log(2 * np.pi)
            if len(atoms):
                mass = weight.sum() + PRIOR * rest.sum() / there.sum()
                out[rest, l] += np.log(mass / total)
    return out


@pytest.mark.parametrize("with_gaps", [False, True])
@pytest.mark.parametrize("with_atoms", [False, True])
def test_densities_are_those_of_the_formulas(with_atoms, with_gaps, monkeypatch):
    monkeypatch.setattr("cafelearn._mixtures.ITERATIONS", 1000)
    monkeypatch.setattr("cafelearn._mixtures.GAIN", -np.inf)
    X, y = two_clusters()
    if with_atoms:
        X[::3, 0] = 0.0
        X[1::4, 0] = 1.0
        X[:40, 2] = -1.0
    if with_gaps:
        X[::5, 0] = X[1::4, 1] = np.nan
    mixture, statistics, _ = fit(X, np.eye(2)[y])
    # EM has converged, so the components follow from their own memberships.
    expected = density(X, mixture.memberships)
    assert_allclose(mixture.log_densities(statistics), expected, rtol=1e-6, atol=1e-6)
    assert mixture.likelihood == pytest.approx(log_sum(expected).sum(), abs=1e-4)
    assert_allclose(mixture.memberships.sum(axis=1), 1.0)


def test_em_finds_the_clusters_from_poor_ones():
    X, y = two_clusters()
    start = y.copy()
    start[:40] = 1 - start[:40]
    mixture, _, _ = fit(X, np.eye(2)[start])
    assert_array_equal(mixture.memberships.argmax(axis=1), y)


def test_weights_are_repetitions():
    X, y = two_clusters()
    weight = np.where(np.arange(len(X)) < 30, 3.0, 1.0)
    layout, repeated = make_layout(X), np.repeat(np.arange(len(X)), weight.astype(int))
    one = fit_mixture(row_statistics(X, layout), np.eye(2)[y] * weight[:, None], layout, weight)
    two = fit_mixture(row_statistics(X[repeated], layout), np.eye(2)[y[repeated]], layout)
    assert_allclose(one.offset, two.offset)
    assert_allclose(one.slope, two.slope)
    assert one.likelihood == pytest.approx(two.likelihood)


def test_two_values_are_probabilities():
    rare = np.repeat([0.0, 1.0], [190, 10])
    mixture, statistics, layout = fit(np.c_[rare, 1 - rare], np.ones((200, 1)))
    assert not layout.continuous.any()
    log_share = np.log(np.where(rare == 1, 0.05, 0.95))
    assert_allclose(mixture.log_densities(statistics)[:, 0], 2 * log_share)


def test_columns_of_one_category_count_once():
    category = np.repeat([0, 1, 2], [100, 60, 40])
    X = np.eye(3)[category]
    layout = make_layout(X, one_hot=np.zeros(3, dtype=int))
    statistics = row_statistics(X, layout)
    mixture = fit_mixture(statistics, np.ones((200, 1)), layout)
    expected = np.log(np.array([0.5, 0.3, 0.2])[category])
    assert_allclose(mixture.log_densities(statistics)[:, 0], expected)


def test_few_rows_have_no_atoms():
    assert len(make_layout(np.arange(8.0).reshape(4, 2)).columns) == 0


def test_the_two_parts_of_a_cluster_are_merged():
    X, y = two_clusters(240)
    parts = np.where(y == 0, 0, 1 + (np.arange(240) // 2) % 2)
    mixture, statistics, layout = fit(X, np.eye(3)[parts])
    merged = merged_memberships(mixture, statistics, layout)
    assert merged.shape == (240, 2)
    assert_allclose(merged.sum(axis=1), 1.0)
    assert_array_equal(merged.argmax(axis=1), y)


class TestGaps:
    def test_rows_without_gaps_have_the_same_statistics(self):
        X, _ = two_clusters()
        X[::3, 0] = 1.0
        layout = make_layout(X)
        assert len(layout.gapped) == 0
        assert row_statistics(X, layout).shape == (len(X), 2 * 3 + 1 + 1)

    def test_a_category_with_gaps_is_a_distribution_of_observed_rows(self):
        category = np.repeat([0, 1, 2], [100, 60, 40])
        X = np.eye(3)[category]
        X[::4] = np.nan
        layout = make_layout(X, one_hot=np.zeros(3, dtype=int))
        statistics = row_statistics(X, layout)
        mixture = fit_mixture(statistics, np.ones((200, 1)), layout)
        there = np.arange(200) % 4 > 0
        share = np.bincount(category[there]) / there.sum()
        expected = np.where(there, np.log(share[category]), 0.0)
        assert_allclose(mixture.log_densities(statistics)[:, 0], expected)

    def test_the_clusters_are_found(self):
        X, y = two_clusters(240)
        X[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
        start = y.copy()
        start[:60] = 1 - start[:60]
        mixture, _, _ = fit(X, np.eye(2)[start])
        there = ~np.isnan(X[:, :2]).all(axis=1)
        found = mixture.memberships.argmax(axis=1)
        assert (found == y)[there].mean() > 0.99
