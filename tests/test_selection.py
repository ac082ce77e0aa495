"""Comparing clusterings: the likelihood score, agreement from tables, and ties."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from cafelearn import theory
from cafelearn.choice.selection import (
    add_tables,
    adjusted_rand_index,
    agreement_matrix,
    by_agreement,
    by_likelihood,
    contingency_tables,
    likelihood_score,
)
from cafelearn.mixture import Mixture
from cafelearn.mixture.settings import SETTINGS
from conftest import make_blobs


@pytest.fixture
def mixed():
    """Continuous, two-valued and constant columns, and three labellings of the rows."""
    X, y = make_blobs(300, 4, 3, n_noise=1, seed=5)
    rng = np.random.default_rng(1)
    X = np.column_stack([X, rng.integers(2, size=300), (y == 1) * 3.0, np.full(300, 2.5)])
    return X, [y, rng.integers(2, size=300), rng.integers(4, size=300)], [3, 2, 4]


class TestScore:
    def test_better_clusterings_score_higher(self):
        X, y = make_blobs(300, 5, 3, n_noise=0, seed=2)
        rng = np.random.default_rng(0)
        some_wrong = np.where(rng.random(300) < 0.2, rng.integers(3, size=300), y)
        scores = [likelihood_score(X, labels) for labels in (y, some_wrong, rng.permutation(y))]
        assert scores == sorted(scores, reverse=True)
        assert all(type(score) is float for score in scores)

    @pytest.mark.parametrize(
        "rename",
        [
            lambda y: 7 - 3 * y,
            lambda y: np.array(["c", "a", "b"])[y],
            lambda y: [f"class {label}" for label in y],
            lambda y: np.where(y == 0, -1, y),
            lambda y: y + 0.5,
        ],
    )
    def test_labels_from_anywhere(self, mixed, rename):
        X, (y, *_), _ = mixed
        assert likelihood_score(X, rename(y)) == pytest.approx(
            likelihood_score(X, y), rel=1e-12
        )

    def test_other_units_do_not_change_a_comparison(self, mixed):
        X, labellings, _ = mixed
        scaled = X * 10.0 ** np.arange(-3, 4) + 50
        before, after = (
            np.array([likelihood_score(data, labels) for labels in labellings])
            for data in (X, scaled)
        )
        np.testing.assert_allclose(np.diff(after), np.diff(before), rtol=1e-6)

    def test_order_of_rows_and_columns(self, mixed):
        X, (y, *_), _ = mixed
        rng = np.random.default_rng(3)
        rows, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
        assert likelihood_score(X[rows][:, columns], y[rows]) == pytest.approx(
            likelihood_score(X, y), rel=1e-10
        )

    def test_single_precision(self, mixed):
        X, (y, *_), _ = mixed
        single = X.astype(np.float32)
        assert likelihood_score(single, y) == pytest.approx(
            likelihood_score(single.astype(np.float64), y), rel=1e-6
        )

    @pytest.mark.parametrize("labels", [np.zeros(300, int), np.arange(300), np.arange(300) > 0])
    def test_extreme_clusterings_are_finite(self, mixed, labels):
        assert np.isfinite(likelihood_score(mixed[0], labels))

    def test_degenerate_data_is_finite(self):
        assert np.isfinite(likelihood_score(np.ones((5, 2)), [0, 0, 1, 1, 1]))
        assert np.isfinite(likelihood_score([[1.0], [2.0]], [0, 1]))
        assert np.isfinite(likelihood_score([[1e150], [-1e150], [3e149]], [0, 1, 0]))

    def test_bad_input(self, mixed):
        X, (y, *_), _ = mixed
        with pytest.raises(ValueError, match="likelihood_score needs one label for each of"):
            likelihood_score(X, y[:-1])
        with pytest.raises(ValueError, match="contains infinity"):
            likelihood_score(np.where(X > 2, np.inf, X), y)
        with pytest.raises(ValueError, match="should be a 1d array"):
            likelihood_score(X, np.column_stack([y, y]))
        with pytest.raises(ValueError, match="one sample weight for each of"):
            likelihood_score(X, y, sample_weight=np.ones(3))


class TestFormula:
    @pytest.mark.parametrize("seed", range(4))
    def test_categories_by_hand(self, seed):
        rng = np.random.default_rng(seed)
        n, k = 200, 3
        labels = rng.integers(0, k, n)
        X = (rng.random((n, 4)) < np.where(labels[:, None] == 0, 0.8, 0.3)) * 1.0
        X[:, 3] = rng.random(n) < 0.5
        price, expected = 0.5 * np.log(n), -0.5 * np.log(n) * (k - 1)
        weight = (np.bincount(labels) + 1) / (n + k)
        expected += np.bincount(labels) @ np.log(weight) + np.log(weight * k).sum()
        share = np.stack([1 - X.mean(axis=0), X.mean(axis=0)])
        for l in range(k):
            count = np.stack([(X[labels == l] == value).sum(axis=0) for value in (0, 1)])
            prior = SETTINGS.prior * share
            ratio = np.log((count + prior) / (count + prior).sum(axis=0) / share)
            gain = ((count + prior) * ratio).sum(axis=0) - price
            expected += np.maximum(gain, 0.0).sum()
        assert likelihood_score(X, labels) == pytest.approx(expected)

    def test_clear_clusters_have_the_objective_of_a_mixture(self):
        X = np.random.default_rng(1).normal(size=(150, 5)) + 20 * (np.arange(150) % 3)[:, None]
        mixture = Mixture(3, covariance="independent", tails=False, background=False)
        mixture.fit(X)
        assert mixture.predict_proba(X).max(axis=1).min() > 1 - 1e-9
        assert likelihood_score(X, mixture.labels_) == pytest.approx(mixture.lower_bound_)

    def test_zeros_are_no_clusters_of_their_own(self):
        rng = np.random.default_rng(0)
        y = np.repeat([0, 1], 200)
        X = rng.poisson(np.where(y[:, None] == 0, 20, 40), (400, 4)).astype(float)
        X[rng.random(X.shape) < 0.5] = 0
        split = (X[:, 0] == 0).astype(int)
        assert likelihood_score(X, y) > likelihood_score(X, split)

    def test_integer_weights_are_repetitions(self):
        X, y = make_blobs(60, 4, 3, n_noise=1, seed=5)
        weight = np.random.default_rng(0).integers(0, 4, 60)
        repeated = likelihood_score(np.repeat(X, weight, axis=0), np.repeat(y, weight))
        # Units are those of the rows as given, which cancels in a comparison.
        other = np.roll(y, 1)
        difference = repeated - likelihood_score(
            np.repeat(X, weight, axis=0), np.repeat(other, weight)
        )
        weighed = likelihood_score(X, y, sample_weight=weight)
        weighed -= likelihood_score(X, other, sample_weight=weight)
        assert weighed == pytest.approx(difference, rel=0.01)

    def test_weights_must_be_positive(self):
        with pytest.raises(ValueError, match="positive sample_weight"):
            likelihood_score([[1.0], [2.0]], [0, 1], sample_weight=[0, 0])
        with pytest.raises(ValueError, match="Negative values"):
            likelihood_score([[1.0], [2.0]], [0, 1], sample_weight=[1, -1])


class TestAgreement:
    @pytest.mark.parametrize("cuts", [(), (1,), (100, 200), (0, 7, 7, 299)])
    def test_tables_of_parts_add_up(self, mixed, cuts):
        _, labellings, sizes = mixed
        parts = [
            contingency_tables([labels[place] for labels in labellings], sizes)
            for place in np.split(np.arange(300), cuts)
        ]
        whole, added = contingency_tables(labellings, sizes), add_tables(parts)
        assert added.keys() == whole.keys()
        for pair, table in whole.items():
            np.testing.assert_array_equal(added[pair], table)

    @pytest.mark.parametrize("k", [1, 2, 5])
    def test_from_a_table(self, k):
        rng = np.random.default_rng(0)
        for _ in range(5):
            a, b = rng.integers(k, size=(2, 300))
            table = np.bincount(a * k + b, minlength=k * k).reshape(k, k)
            assert adjusted_rand_index(table) == adjusted_rand_score(a, b)

    def test_of_billions_of_rows(self):
        table = np.array([[3 * 10**9, 10**9], [0, 2 * 10**9]])
        small = adjusted_rand_index(table // 10**6)
        assert adjusted_rand_index(table) == pytest.approx(small, abs=1e-3)

    def test_matrix(self, mixed):
        _, labellings, sizes = mixed
        found = agreement_matrix(contingency_tables(labellings, sizes), 3)
        direct = [[adjusted_rand_score(a, b) for b in labellings] for a in labellings]
        np.testing.assert_allclose(found, direct, rtol=1e-12)

    def test_labels_of_any_integer_type(self, mixed):
        _, labellings, sizes = mixed
        expected = contingency_tables(labellings, sizes)
        for kind in (np.int32, np.uint8):
            found = contingency_tables([labels.astype(kind) for labels in labellings], sizes)
            for pair, table in expected.items():
                np.testing.assert_array_equal(found[pair], table)


class Fitted:
    """The attributes of a model that the choice by agreement reads."""

    def __init__(self, p, labels, dispersions):
        self.p, self.labels, self.dispersions_ = p, np.asarray(labels), np.asarray(dispersions)
        self.feature_weights_ = self.cluster_centers_ = np.ones_like(self.dispersions_)


def choose(models):
    """The exponent of the model that by_agreement chooses."""
    labels = [model.labels for model in models]
    matrix = np.array([[adjusted_rand_score(a, b) for b in labels] for a in labels])
    return models[by_agreement(models, None, matrix)].p


class TestChoice:
    def test_ties_in_agreement(self):
        even, uneven = [[1.0, 1.0]], [[1.0, 8.0]]
        # Two exponents always tie; the objective relative to its bounds decides,
        high, low = Fitted(3.0, [0, 1, 1], uneven), Fitted(1.2, [0, 0, 1], uneven)
        assert theory.normalized_objective(uneven, 1.2) < theory.normalized_objective(
            uneven, 3.0
        )
        assert choose([high, low]) == 1.2
        # in favour of the larger exponent if it is lower there,
        assert choose([Fitted(3.0, [0, 1, 1], even), Fitted(1.2, [0, 0, 1], uneven)]) == 3.0
        # and then the smaller exponent.
        assert choose([Fitted(3.0, [0, 1, 1], even), Fitted(1.2, [0, 0, 1], even)]) == 1.2
        majority = [
            Fitted(1.1, [0, 1, 0, 1, 0, 1], even),
            Fitted(2.0, [0, 0, 0, 1, 1, 1], uneven),
            Fitted(3.0, [1, 1, 1, 0, 0, 0], uneven),
        ]
        assert choose(majority) == 2.0

    def test_ties_of_everything_go_to_the_first(self):
        models = [Fitted(2.0, [0, 1, 1], [[1.0, 1.0]]) for _ in range(3)]
        assert by_agreement(models, None, np.ones((3, 3))) == 0

    def test_likelihood(self):
        assert by_likelihood(None, np.array([-5.0, -3.0, -4.0]), None) == 1
        # Scores that differ by rounding alone are ties, which go to the first.
        assert by_likelihood(None, np.array([-5.0, -3.0 - 1e-12, -3.0]), None) == 1
