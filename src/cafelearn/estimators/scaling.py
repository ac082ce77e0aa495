"""RangeScaler, and functions that fit and apply the scaler of a candidate of CAFE."""

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.preprocessing._data import _handle_zeros_in_scale, _is_constant_feature
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from cafelearn.base.typing import MatrixLike, VectorLike
from cafelearn.data.moments import combine_moments, sum_moments
from cafelearn.data.validation import (
    check_data,
    check_span,
    is_dask,
    ordinary_units,
)
from cafelearn.estimators.opening import lazy_on_dask, open_rows
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
        if is_dask(X) and sample_weight is not None:
            raise ValueError("RangeScaler takes no sample_weight for Dask collections.")
        return self._learn(open_rows(self, X, sample_weight))

    def _learn(self, source):
        """Fit to validated rows."""
        low, high, dtype = source.low, source.high, source.low.dtype
        check_span(low, high, self)
        # Halve first, because the difference of huge numbers would overflow.
        half = high / 2 - low / 2
        middle, units = low + half, ordinary_units(low, high)
        shift = source.reduce(sum_away, add_pairs, (middle, units, source.weighted))
        shift = np.divide(*shift, out=np.zeros(len(low)), where=shift[1] > 0)
        if units is not None:
            shift = shift / units
        self.mean_ = middle + shift.astype(dtype)
        constant = is_constant(low, high)
        self.mean_[constant] = low[constant]
        self.range_ = np.where(constant, dtype.type(1), 2 * half)
        self.n_features_in_ = len(low)
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


def sum_away(part, request):
    """Return sums of the deviations of columns from their middle, and their mass.

    Sums of the values themselves would have rounding errors that grow with their distance
    from 0.
    """
    middle, units, weighted = request
    away = part.X - middle if units is None else (part.X - middle) * units
    mass = np.full(away.shape[1], part.sample_weight.sum() if weighted else float(len(away)))
    there = ~np.isnan(away)
    weight = part.sample_weight if weighted else None
    sums = _sum_rows(away, weight)
    for v in np.flatnonzero(~there.all(axis=0)):
        some = None if weight is None else weight[there[:, v]]
        sums[v] = _sum_rows(np.float64(away[there[:, v], v]), some)
        mass[v] = there[:, v].sum() if some is None else some.sum()
    return sums, mass


def _sum_rows(values, weight):
    if weight is not None:
        values = values * (weight if values.ndim == 1 else weight[:, None])
    return values.sum(axis=0, dtype=np.float64)


def add_pairs(parts):
    """Add pairs of sums."""
    sums, masses = zip(*parts, strict=True)
    return sum(sums), sum(masses)


# Enough rows to fit a scaler or an extractor, and few enough for memory.
LARGEST_SAMPLE = 100_000


def fit_scaler(scaler, source, seed):
    """Fit a scaler, if it is not None, to a source; to a sample if there is no other way.

    A scaler whose `fit` takes no `sample_weight` is fitted to the rows of positive weight.
    """
    if type(scaler) is RangeScaler:
        return scaler._learn(source)
    if type(scaler) is StandardScaler and not source.in_memory:
        return _fit_by_moments(scaler, source)
    if scaler is None:
        return None
    if not source.in_memory:
        return scaler.fit(source.sample(seed, LARGEST_SAMPLE)[0])
    X, weight = source.X, source.mass
    if isinstance(scaler, StandardScaler):
        units = ordinary_units(X.min(axis=0), X.max(axis=0))
        if units is not None:
            scaler.fit(X * units, sample_weight=weight)
            return in_units_of_data(scaler, units)
    if weight is None or has_fit_parameter(scaler, "sample_weight"):
        return scaler.fit(X, **({} if weight is None else {"sample_weight": weight}))
    return scaler.fit(X[weight > 0])


def _fit_by_moments(scaler, source):
    """Fit a StandardScaler by sums over parts."""
    units = ordinary_units(source.low, source.high)
    request = None, False, {"units": units}
    mass, mean, scatter = source.reduce(sum_moments, combine_moments, request)
    variance = scatter / mass
    constant = _is_constant_feature(variance, mean, mass)
    scaler.mean_ = mean if scaler.with_mean or scaler.with_std else None
    scaler.var_ = scaler.scale_ = None
    if scaler.with_std:
        spread, given = np.sqrt(variance), {"copy": False, "constant_mask": constant}
        scaler.var_, scaler.scale_ = variance, _handle_zeros_in_scale(spread, **given)
    scaler.n_samples_seen_, scaler.n_features_in_ = mass, len(mean)
    return scaler if units is None else in_units_of_data(scaler, units)


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
