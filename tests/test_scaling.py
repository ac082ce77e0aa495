"""RangeScaler against its formula."""

import numpy as np
import pandas as pd
import pytest

from cafelearn import RangeScaler


def test_formula():
    X = np.random.default_rng(0).normal(size=(50, 4)) * [1, 10, 1e-3, 1e5]
    expected = (X - X.mean(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    scaler = RangeScaler().fit(X)
    np.testing.assert_allclose(scaler.transform(X), expected, atol=1e-14)
    np.testing.assert_allclose(np.ptp(scaler.transform(X), axis=0), 1)
    np.testing.assert_allclose(scaler.inverse_transform(scaler.transform(X)), X)


def test_constant_features_become_zero_and_come_back():
    X = np.array([[0.1, 1.0], [0.1, 2.0], [0.1, 3.0]])
    scaler = RangeScaler().fit(X)
    assert (scaler.transform(X)[:, 0] == 0).all()
    assert scaler.range_[0] == 1
    np.testing.assert_array_equal(scaler.inverse_transform(scaler.transform(X))[:, 0], 0.1)


@pytest.mark.parametrize("factor", [1e-300, 1e-100, 1e100, 1e307])
def test_extreme_numbers(factor):
    X = np.array([[-1.7], [1.0], [1.7]])
    out = RangeScaler().fit_transform(X * factor)
    np.testing.assert_allclose(out, RangeScaler().fit_transform(X), rtol=1e-12)


def test_far_from_zero_nothing_is_lost():
    X = np.random.default_rng(0).normal(size=(1000, 1))
    far = X + 2.0**40
    out = RangeScaler().fit_transform(far)
    np.testing.assert_allclose(out, RangeScaler().fit_transform(X), atol=1e-3)
    assert abs(out.mean()) < 1e-5


def test_single_precision_and_frames():
    X = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    scaler = RangeScaler().fit(X)
    assert scaler.transform(X).dtype == scaler.mean_.dtype == scaler.range_.dtype == np.float32
    frame = pd.DataFrame(X, columns=["a", "b"])
    out = RangeScaler().set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == ["a", "b"]
    assert list(RangeScaler().fit(frame).get_feature_names_out()) == ["a", "b"]
