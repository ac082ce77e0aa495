"""Missing values: what is learnt from the observed ones, and errors where there are none."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from cafelearn import RangeScaler
from cafelearn.data.gaps import fill_gaps, has_gaps, observed_extremes, observed_moments
from cafelearn.data.variables import one_hot_groups
from cafelearn.interpret.profiles import make_profile, merge_sums, profile_sums
from cafelearn.selection import likelihood_score
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
    def test_gaps_add_nothing(self, rows):
        """A row without a value of a feature counts for the other features only."""
        X, y = rows
        gapped = X[:, :3].copy()
        gapped[::3, 2] = np.nan
        others = likelihood_score(gapped[:, :2], y)
        alone = likelihood_score(gapped[:, 2:], y) - likelihood_score(np.zeros((120, 1)), y)
        assert likelihood_score(gapped, y) == pytest.approx(others + alone, rel=0.02)

    def test_complete_features_count_as_before(self, rows):
        X, y = rows
        with_empty = np.column_stack([X, np.full(len(X), np.nan)])
        assert likelihood_score(with_empty, y) == likelihood_score(X, y)


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


def test_one_hot_columns_with_gaps():
    category = np.array([0, 1, 2, 0, 1, 2, 0])
    X = np.column_stack([np.eye(3)[category], np.arange(7.0)])
    X[2, :3] = np.nan
    assert one_hot_groups(X) == [[0, 1, 2], [3]]


def test_the_standard_scaler_ignores_gaps(rows):
    X = with_gaps(rows[0], 0.3)
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_allclose(np.nanstd(scaled, axis=0), 1.0)
