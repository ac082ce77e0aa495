"""RangeScaler, and functions that fit and apply the scaler of a candidate of CAFE."""

from typing import Self

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from cafelearn.base.typing import MatrixLike, VectorLike
from cafelearn.data.gaps import extremes
from cafelearn.data.validation import (
    check_columns_observed,
    check_data,
    check_span,
    check_weights,
    distributed,
    first_name,
    is_dask,
    lazy_on_dask,
    ordinary_units,
)
from cafelearn.kmeans.scales import is_constant

__all__ = ["RangeScaler"]


class RangeScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Centre each feature on its mean and divide it by its range.

    The result is (x - mean) / (max - min), the normalisation used throughout the mwk-means
    literature. Unlike division by the standard deviation, it does not favour unimodal
    features over multimodal ones, which separate the clusters.

    A constant feature becomes 0. A feature with a range below 1e-307 (5e-38 in single
    precision), where floats lose digits, becomes approximately 0. A range beyond the
    largest float raises an error. Missing values (NaN) are ignored in the mean and the range,
    and stay missing.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of each feature.
    range_ : ndarray of shape (n_features,)
        Largest minus smallest value of each feature; 1 for constant features.
    n_features_in_ : int
        Number of features seen during :meth:`fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during :meth:`fit`. Defined only when `X` has feature names
        that are all strings.

    See Also
    --------
    sklearn.preprocessing.StandardScaler : Divides by the standard deviation.
    sklearn.preprocessing.MinMaxScaler : Maps the range to [0, 1].

    Examples
    --------
    >>> from cafelearn import RangeScaler
    >>> RangeScaler().fit_transform([[0.0, 5.0], [1.0, 5.0], [5.0, 5.0]])
    array([[-0.4,  0. ],
           [-0.2,  0. ],
           [ 0.6,  0. ]])
    """

    def fit(
        self, X: MatrixLike, y: object = None, sample_weight: VectorLike | None = None
    ) -> Self:
        """Compute the mean and the range of each feature.

        Parameters
        ----------
        X : array-like, Dask array or Dask dataframe of shape (n_samples, n_features)
            The data. On Dask collections, `fit` computes immediately; `transform` and
            `inverse_transform` are lazy.
        y : None
            Ignored; present by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row in the mean; rows of zero weight are also excluded from the
            range. Not supported for Dask collections.

        Returns
        -------
        self : RangeScaler
            The fitted scaler.
        """
        if is_dask(X):
            if sample_weight is not None:
                raise ValueError("RangeScaler takes no sample_weight for Dask collections.")
            return distributed().fit_range_scaler(self, X)
        X = check_data(self, X, gaps=True)
        check_columns_observed(self, X)
        if sample_weight is not None:
            sample_weight = check_weights(sample_weight, X, self)
            X, sample_weight = X[sample_weight > 0], sample_weight[sample_weight > 0]
        low, high, gaps = extremes(X)
        check_span(low, high, self)
        # Halve first, because the difference of huge numbers would overflow.
        half = high / 2 - low / 2
        # Average the deviations from the middle, because rounding errors would otherwise grow
        # with the distance of a feature's values from 0.
        middle = low + half
        units = ordinary_units(low, high)
        away = X - middle if units is None else (X - middle) * units
        if sample_weight is None:
            shift = np.mean(away, axis=0, dtype=np.float64)
        else:
            shift = np.average(away, axis=0, weights=sample_weight)
        shift = np.asarray(shift)
        for v in np.flatnonzero(np.isnan(shift)) if gaps else ():
            there = ~np.isnan(X[:, v])
            weight = None if sample_weight is None else sample_weight[there]
            some = np.float64(away[there, v])
            shift[v] = np.average(some, weights=weight) if there.any() else 0.0
        if units is not None:
            shift = shift / units
        self.mean_ = middle + shift.astype(X.dtype)
        constant = is_constant(low, high)
        self.mean_[constant] = low[constant]
        self.range_ = np.where(constant, X.dtype.type(1), 2 * half)
        return self

    @lazy_on_dask
    def transform(self, X: MatrixLike) -> np.ndarray:
        """Scale the data with the mean and range learnt in :meth:`fit`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.

        Returns
        -------
        X_scaled : ndarray of shape (n_samples, n_features)
            The scaled data.
        """
        check_is_fitted(self)
        X = check_data(self, X, reset=False, gaps=True)
        scaled = X - self.mean_.astype(X.dtype)
        scaled /= self.range_.astype(X.dtype)
        return scaled

    @lazy_on_dask
    def inverse_transform(self, X: MatrixLike) -> np.ndarray:
        """Convert scaled data back to the original units.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Scaled data.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            The data in the original units.
        """
        check_is_fitted(self)
        X = check_data(self, X, reset=False, gaps=True)
        original = X * self.range_.astype(X.dtype)
        original += self.mean_.astype(X.dtype)
        return original

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def fit_scaler(scaler, X, sample_weight=None):
    """Fit a scaler to validated rows; return None if the scaler is None.

    A scaler whose `fit` takes no `sample_weight` is fitted to the rows of positive weight.
    """
    if isinstance(scaler, StandardScaler):
        units = ordinary_units(X.min(axis=0), X.max(axis=0))
        if units is not None:
            scaler.fit(X * units, sample_weight=sample_weight)
            return in_units_of_data(scaler, units)
    if scaler is None or sample_weight is None:
        return None if scaler is None else scaler.fit(X)
    if has_fit_parameter(scaler, "sample_weight"):
        return scaler.fit(X, sample_weight=sample_weight)
    return scaler.fit(X[sample_weight > 0])


def in_units_of_data(scaler, units):
    """Convert the statistics of a StandardScaler to those of the rows themselves.

    The scaler was fitted to the rows times `units`.
    """
    with np.errstate(over="ignore", under="ignore"):
        if scaler.mean_ is not None:
            scaler.mean_ = scaler.mean_ / units
        if scaler.scale_ is not None:
            scaler.scale_ = scaler.scale_ / units
            scaler.var_ = scaler.var_ / units / units
    return scaler


def scale_rows(scaler, X):
    """Scale validated rows with a fitted scaler; return them unchanged if it is None."""
    if scaler is None or len(X) == 0:
        return X
    spread = getattr(scaler, "scale_", None)
    if spread is not None and not np.isfinite(spread).all():
        name = first_name(scaler, ~np.isfinite(spread))
        raise ValueError(
            f"{type(scaler).__name__} cannot scale column {name}: its variance exceeds the "
            "largest float. Divide the column by a constant, or use scaling='range'."
        )
    with config_context(assume_finite=True):
        return np.ascontiguousarray(scaler.transform(X), dtype=X.dtype)
