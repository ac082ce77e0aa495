"""Missing values: what is learnt from the observed ones, and errors where there are none."""

import numpy as np
import pandas as pd
import pytest
from benchmarks.selection import score as plain_score
from sklearn.preprocessing import StandardScaler

from cafelearn import RangeScaler
from cafelearn._gaps import fill_gaps, has_gaps, observed_extremes, observed_moments
from cafelearn._profiles import make_profile, merge_sums, profile_sums
from cafelearn._structure import one_hot_groups, permute
from cafelearn.selection import (
    add_tallies,
    frame_of,
    likelihood_score,
    likelihood_scores,
    tally,
)
from conftest import with_gaps


@pytest.fixture
def rows():
    rng = np.random.default_rng(5)
    y = np.repeat(np.arange(3), 40)
    X = rng.normal(size=(120, 5)) + 3 * y[:, None]
    X[:, 3] = rng.poisson(1 + y)
    X[:, 4] = rng.random(120) < 0.3 + 0.2 * y
    return X, y


class TestHelpers:
    def test_gaps_are_found(self):
        X = np.ones((3, 2))
        assert not has_gaps(X)
        X[1, 1] = np.nan
        assert has_gaps(X)

    def test_sums_that_cancel_are_no_gaps(self):
        huge = np.finfo(np.float64).max
        assert not has_gaps(np.array([[huge, huge, -huge, -huge]] * 40))

    def test_moments_and_extremes(self, rows):
        X = with_gaps(rows[0], 0.3)
        mean, variance = observed_moments(X)
        np.testing.assert_allclose(mean, np.nanmean(X, axis=0))
        np.testing.assert_allclose(variance, np.nanvar(X, axis=0))
        np.testing.assert_array_equal(observed_extremes(X)[0], np.nanmin(X, axis=0))
        np.testing.assert_array_equal(observed_extremes(X)[1], np.nanmax(X, axis=0))

    def test_fill(self):
        X = np.array([[1.0, np.nan], [np.nan, 2.0]])
        filled = fill_gaps(X, np.array([1, 0]), np.array([[5.0, 6.0], [7.0, 8.0]]))
        np.testing.assert_array_equal(filled, [[1.0, 8.0], [5.0, 2.0]])
        assert np.isnan(X).sum() == 2


class TestRangeScaler:
    def test_observed_values_are_scaled_as_without_the_others(self, rows):
        X = with_gaps(rows[0], 0.3)
        scaled = RangeScaler().fit_transform(X)
        np.testing.assert_array_equal(np.isnan(scaled), np.isnan(X))
        for v in range(X.shape[1]):
            there = ~np.isnan(X[:, v])
            alone = RangeScaler().fit_transform(X[there, v : v + 1])[:, 0]
            np.testing.assert_allclose(scaled[there, v], alone, atol=1e-14)

    def test_weights_are_repetitions(self, rows):
        X = with_gaps(rows[0], 0.3)
        weight = np.random.default_rng(0).integers(0, 4, len(X))
        weighed = RangeScaler().fit(X, sample_weight=weight)
        repeated = RangeScaler().fit(np.repeat(X, weight, axis=0))
        np.testing.assert_allclose(weighed.mean_, repeated.mean_)
        np.testing.assert_array_equal(weighed.range_, repeated.range_)

    def test_inverse(self, rows):
        X = with_gaps(rows[0], 0.3)
        scaler = RangeScaler().fit(X)
        np.testing.assert_allclose(scaler.inverse_transform(scaler.transform(X)), X, atol=1e-14)

    def test_empty_rows_and_columns_are_named(self):
        X = pd.DataFrame({"a": [1.0, np.nan, 2.0], "b": [np.nan] * 3})
        with pytest.raises(ValueError, match=r"RangeScaler .* from 0\): 1\. Drop"):
            RangeScaler().fit(X)
        with pytest.raises(ValueError, match=r"RangeScaler .* in 1 column: 'b'\. Drop"):
            RangeScaler().fit(X.drop(index=1))


class TestScore:
    def test_plain_form_of_each_feature(self, rows):
        X, y = rows
        gapped = with_gaps(X, 0.3)
        n, k = len(X), 3
        sizes = sum(m * np.log((m + 1) / (n + k)) for m in np.bincount(y))
        total = sizes
        for v in range(X.shape[1]):
            there = ~np.isnan(gapped[:, v])
            count = there.sum()
            own = sum(m * np.log((m + 1) / (count + k)) for m in np.bincount(y[there]))
            alone = plain_score(X[there, v : v + 1], y[there], k) - own
            # The price of a parameter is that of all rows.
            more = 0.5 * (np.log(n) - np.log(count)) * n_parameters(X[there, v], y[there], k)
            total += alone - more
        assert likelihood_score(gapped, y) == pytest.approx(total, abs=1e-3)

    def test_parts_add_up(self, rows):
        X, y = rows
        X = with_gaps(X, 0.3)
        frame = frame_of(X)
        whole = tally(X, [y], [3], frame)
        parts = [tally(X[rows], [y[rows]], [3], frame) for rows in (slice(50), slice(50, None))]
        np.testing.assert_allclose(
            likelihood_scores(add_tallies(parts), frame), likelihood_scores(whole, frame)
        )

    def test_complete_features_count_as_before(self, rows):
        X, y = rows
        with_empty = np.column_stack([X, np.full(len(X), np.nan)])
        assert likelihood_score(with_empty, y) == likelihood_score(X, y)

    def test_missing_categories(self, rows):
        _, y = rows
        category = (y + (np.random.default_rng(0).random(120) < 0.2)) % 3
        X = np.eye(3)[category]
        missing = np.random.default_rng(1).random(120) < 0.3
        gapped = np.where(missing[:, None], np.nan, X)
        groups = ["c"] * 3
        there = ~missing
        sizes = [
            sum(m * np.log((m + 1) / (len(z) + 3)) for m in np.bincount(z))
            for z in (y, y[there])
        ]
        price = 0.5 * np.log(len(y) / there.sum()) * 3 * 2
        expected = likelihood_score(X[there], y[there], feature_groups=groups)
        expected += sizes[0] - sizes[1] - price
        assert likelihood_score(gapped, y, feature_groups=groups) == pytest.approx(expected)


def n_parameters(x, y, k):
    """Parameters that the score pays for one feature, found from its own slope in log n."""
    low, high = (x == x.min()).mean(), (x == x.max()).mean()
    atoms = 2 if low + high > 1 - 1e-9 else (low >= 0.1) + (high >= 0.1)
    if low + high > 1 - 1e-9:
        return k
    between = (x > x.min()) & (x < x.max()) if atoms == 2 else np.ones(len(x), bool)
    between = (x > x.min()) if atoms == 1 and low >= 0.1 else between
    between = (x < x.max()) if atoms == 1 and high >= 0.1 else between
    t = (x - x[between].mean()) / x[between].std()
    groups = [t[between & (y == l)] for l in range(k)]
    scatter = np.array([((g - g.mean()) ** 2).sum() for g in groups])
    size = np.array([len(g) for g in groups])
    own = (scatter + 3) / (size + 4)
    pooled = scatter.sum() / size.sum() + 1e-9
    price = 0.5 * np.log(len(x))
    own_fit = -0.5 * (size * np.log(own) + scatter / own).sum() - 2 * k * price
    shared_fit = -0.5 * size.sum() * (np.log(pooled) + 1) - (k + 1) * price
    return k * atoms + (2 * k if own_fit > shared_fit else k + 1)


class TestProfiles:
    def test_observed_values_alone(self, rows):
        X, y = rows
        X = with_gaps(X, 0.3)
        profile = make_profile(
            profile_sums(X, y, 3), np.full((3, 5), 0.2), [(f"x{v}", None) for v in range(5)]
        )
        table = profile.set_index(["cluster", "variable"])
        for l in range(3):
            for v in range(5):
                mine = table.loc[(l, f"x{v}")]
                assert mine["center"] == pytest.approx(np.nanmean(X[y == l, v]))
                assert mine["spread"] == pytest.approx(np.nanstd(X[y == l, v]))
                assert mine["overall"] == pytest.approx(np.nanmean(X[:, v]))
                rest = np.nanmean(X[y != l, v])
                away = (np.nanmean(X[y == l, v]) - rest) / np.nanstd(X[:, v])
                assert mine["difference"] == pytest.approx(away)
                assert mine["size"] == 40

    def test_parts_merge(self, rows):
        X, y = rows
        X = with_gaps(X, 0.5)
        parts = [
            profile_sums(X[rows], y[rows], 3) for rows in np.split(np.arange(120), [1, 70])
        ]
        for one, other in zip(merge_sums(parts), profile_sums(X, y, 3), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12)

    def test_nothing_observed_in_a_cluster(self):
        X = np.array([[1.0, np.nan], [2.0, np.nan], [3.0, 4.0], [5.0, 6.0]])
        columns = [("a", None), ("b", None)]
        profile = make_profile(
            profile_sums(X, np.array([0, 0, 1, 1]), 2), np.ones((2, 2)), columns
        )
        unknown = profile.query("cluster == 0 and variable == 'b'").iloc[0]
        assert np.isnan(unknown["center"])
        assert unknown["description"] == ""
        assert unknown["overall"] == 5.0


class TestPermutedCopies:
    def test_gaps_stay_and_values_move(self, rows):
        X = with_gaps(rows[0], 0.4)
        copy = permute(X, [[0, 1], [2], [3], [4]], np.random.default_rng(0))
        np.testing.assert_array_equal(np.isnan(copy), np.isnan(X))
        np.testing.assert_array_equal(np.sort(copy, axis=0), np.sort(X, axis=0))
        assert not np.array_equal(copy[:, 2], X[:, 2], equal_nan=True)
        pairs = {tuple(pair) for pair in X[~np.isnan(X[:, :2]).any(axis=1), :2]}
        kept = copy[~np.isnan(copy[:, :2]).any(axis=1), :2]
        assert {tuple(pair) for pair in kept} == pairs

    def test_one_hot_columns_with_gaps(self):
        category = np.array([0, 1, 2, 0, 1, 2, 0])
        X = np.column_stack([np.eye(3)[category], np.arange(7.0)])
        X[2, :3] = np.nan
        assert one_hot_groups(X) == [[0, 1, 2], [3]]


def test_the_standard_scaler_ignores_gaps(rows):
    X = with_gaps(rows[0], 0.3)
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_allclose(np.nanstd(scaled, axis=0), 1.0)
