"""Comparing clusterings: sums that can be merged, agreement from tables, and ties."""

import numpy as np
import pytest
from benchmarks.selection import FORMS
from benchmarks.selection import score as plain_score
from sklearn.metrics import adjusted_rand_score

from cafelearn import theory
from cafelearn.selection import (
    add_tallies,
    adjusted_rand_index,
    agreement_matrix,
    by_agreement,
    by_likelihood,
    contingency_tables,
    frame_of,
    likelihood_score,
    likelihood_scores,
    tally,
)
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

    def test_empty_clusters_are_finite(self, mixed):
        X, (y, *_), _ = mixed
        frame = frame_of(X)
        (score,) = likelihood_scores(tally(X, [y * 2], [6], frame), frame)
        assert np.isfinite(score)

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
    """Against the plain form that the ablation varies, written without any shared code."""

    @pytest.mark.parametrize("seed", range(8))
    def test_plain_form(self, seed):
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(20, 300)), int(rng.integers(1, 6))
        counts = rng.poisson(rng.uniform(0.1, 3, 3), (n, 3)) * rng.integers(0, 2, (n, 3))
        ends = np.clip(rng.normal(size=(n, 2)), -0.8, 0.6)
        flags = (rng.random((n, 2)) < 0.3) * 5.0 - 2
        X = np.column_stack([rng.normal(size=(n, 3)), counts, ends, flags, np.full(n, 1.5)])
        labels = rng.integers(0, k, n)
        labels[:k] = np.arange(k)
        assert likelihood_score(X, labels) == pytest.approx(plain_score(X, labels, k), abs=1e-4)

    def test_zeros_are_no_clusters_of_their_own(self):
        """Without atoms, splitting off the rows without zeros would win by far."""
        rng = np.random.default_rng(0)
        y = np.repeat([0, 1], 200)
        X = rng.poisson(np.where(y[:, None] == 0, 20, 40), (400, 4)).astype(float)
        X[rng.random(X.shape) < 0.5] = 0
        split = (X[:, 0] == 0).astype(int)
        assert likelihood_score(X, y) > likelihood_score(X, split)
        without = FORMS["no atoms (except in two-valued features)"]
        assert plain_score(X, y, 2, without) < plain_score(X, split, 2, without)

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
        assert weighed == pytest.approx(difference, rel=1e-9)

    def test_weights_must_be_positive(self):
        with pytest.raises(ValueError, match="positive sample_weight"):
            likelihood_score([[1.0], [2.0]], [0, 1], sample_weight=[0, 0])
        with pytest.raises(ValueError, match="Negative values"):
            likelihood_score([[1.0], [2.0]], [0, 1], sample_weight=[1, -1])


class TestSums:
    def assert_same(self, one, other, rtol=1e-9):
        for sums, theirs in zip(one.clusters, other.clusters, strict=True):
            for field, their in zip(sums, theirs, strict=True):
                np.testing.assert_allclose(field, their, rtol=rtol, atol=1e-9)
        assert one.tables.keys() == other.tables.keys()
        for pair, table in one.tables.items():
            np.testing.assert_array_equal(table, other.tables[pair])

    @pytest.mark.parametrize("cuts", [(), (1,), (100, 200), (0, 7, 7, 299)])
    def test_parts_add_up_to_the_whole(self, mixed, cuts):
        X, labellings, sizes = mixed
        frame = frame_of(X)
        parts = [
            tally(rows, [labels[place] for labels in labellings], sizes, frame)
            for place in np.split(np.arange(300), cuts)
            for rows in [X[place]]
        ]
        whole = tally(X, labellings, sizes, frame)
        self.assert_same(add_tallies(parts), whole)
        np.testing.assert_allclose(
            likelihood_scores(add_tallies(parts), frame),
            likelihood_scores(whole, frame),
            rtol=1e-10,
        )

    def test_batches_make_no_difference(self, mixed, monkeypatch):
        X, labellings, sizes = mixed
        frame = frame_of(X)
        whole = tally(X, labellings, sizes, frame)
        monkeypatch.setattr("cafelearn.selection.ROWS", 37)
        self.assert_same(tally(X, labellings, sizes, frame), whole)

    def test_sums_by_hand(self, mixed):
        X, labellings, sizes = mixed
        found = tally(X, labellings, sizes, frame_of(X))
        scale = np.where(np.ptp(X, axis=0) > 0, X.std(axis=0), 1.0)
        t = (X - X.mean(axis=0)) / scale
        for sums, labels, k in zip(found.clusters, labellings, sizes, strict=True):
            for l in range(k):
                members = t[labels == l]
                assert sums.mass[l] == len(members)
                np.testing.assert_allclose(sums.first[l], members.sum(axis=0), atol=1e-9)
                np.testing.assert_allclose(sums.second[l], (members**2).sum(axis=0), atol=1e-9)

    def test_weights_are_repetitions(self, mixed):
        X, (y, *_), _ = mixed
        counts = np.random.default_rng(0).integers(1, 4, size=300)
        repeated = np.repeat(X, counts, axis=0), [np.repeat(y, counts)], [3]
        frame = frame_of(repeated[0])
        one = tally(*repeated, frame)
        other = tally(X, [y], [3], frame, counts.astype(float))
        np.testing.assert_allclose(
            likelihood_scores(other, frame), likelihood_scores(one, frame), rtol=1e-9
        )


class TestAgreement:
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
