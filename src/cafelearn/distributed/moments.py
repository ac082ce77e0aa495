"""Means and covariances from sums over blocks; scalers and PCA fitted from them."""

from typing import NamedTuple

import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler
from sklearn.preprocessing._data import _handle_zeros_in_scale, _is_constant_feature

from cafelearn.data.gaps import has_gaps, observed_moments
from cafelearn.data.validation import ordinary_units
from cafelearn.distributed.extents import measure
from cafelearn.distributed.inputs import make_blocks
from cafelearn.estimators.scaling import RangeScaler, in_units_of_data
from cafelearn.extraction.fitting import oriented, shares_of
from cafelearn.kmeans.kernels.geometry import chunk_rows
from cafelearn.kmeans.scales import is_constant


class Moments(NamedTuple):
    """Count, mean and sums of squares about the mean of observed values, in float64.

    Mean and scatter are those of the rows multiplied by the units, if there are any.
    """

    # The comment for mypy is needed because tuples have a method `count`.
    count: int | np.ndarray  # type: ignore[assignment]  # (m,) if values are missing
    mean: np.ndarray  # (m,)
    scatter: np.ndarray  # (m,) or, with products, (m, m)


def find_moments(rows, units):
    """Compute the Moments of one block; `units` are those of `ordinary_units`."""
    return moments_of(rows.X, products=False, units=units)


def moments_of(X, products, units=None):
    """Compute the Moments of an array, some rows at a time, to keep float64 copies small."""
    n_features = X.shape[1]
    shape = (n_features, n_features) if products else n_features
    parts = [Moments(0, np.zeros(n_features), np.zeros(shape))]
    step = 4 * chunk_rows(n_features)
    for first in range(0, len(X), step):
        some = X[first : first + step].astype(np.float64)
        some = some if units is None else some * units
        if has_gaps(some):
            count = (~np.isnan(some)).sum(axis=0)
            mean, variance = observed_moments(some)
            parts.append(Moments(count, mean, variance * count))
            continue
        mean = some.mean(axis=0)
        some -= mean
        scatter = some.T @ some if products else (some * some).sum(axis=0)
        parts.append(Moments(len(some), mean, scatter))
    return combine_moments(parts)


def combine_moments(parts):
    """Combine Moments by the formula of Chan, Golub and LeVeque (1979)."""
    total = parts[0]
    for part in parts[1:]:
        if np.all(part.count == 0):
            continue
        count = total.count + part.count
        divisor = np.maximum(count, 1)
        step = part.mean - total.mean
        shift = np.outer(step, step) if total.scatter.ndim == 2 else step * step
        total = Moments(
            count,
            total.mean + step * (part.count / divisor),
            total.scatter + part.scatter + shift * (total.count * part.count / divisor),
        )
    return total


def fit_scaler(scaler, moments, extents, units=None):
    """Fit a RangeScaler or StandardScaler; return False for any other scaler.

    `units` are those used for the moments.
    """
    if type(scaler) is RangeScaler:
        low, high, dtype = extents.low, extents.high, extents.low.dtype
        constant = is_constant(low, high)
        mean = moments.mean if units is None else moments.mean / units
        scaler.mean_ = np.where(constant, low, mean.astype(dtype))
        scaler.range_ = np.where(constant, dtype.type(1), 2 * (high / 2 - low / 2))
    elif type(scaler) is StandardScaler:
        variance = moments.scatter / moments.count
        constant = _is_constant_feature(variance, moments.mean, moments.count)
        scaler.mean_ = moments.mean if scaler.with_mean or scaler.with_std else None
        scaler.var_ = variance if scaler.with_std else None
        scaler.scale_ = (
            _handle_zeros_in_scale(np.sqrt(variance), copy=False, constant_mask=constant)
            if scaler.with_std
            else None
        )
        scaler.n_samples_seen_ = moments.count
        if units is not None:
            in_units_of_data(scaler, units)
    else:
        return False
    scaler.n_features_in_ = len(moments.mean)
    return True


def fit_range_scaler(scaler, X):
    """Fit a RangeScaler to a Dask collection."""
    blocks = make_blocks(scaler, X)
    extents = measure(scaler, blocks)
    units = ordinary_units(extents.low, extents.high)
    moments = blocks.reduce(find_moments, combine_moments, units)
    fit_scaler(scaler, moments, extents, units)
    return scaler


def fits_from_moments(extractor):
    """Check whether an extractor is a PCA whose components follow from mean and covariance."""
    return type(extractor) is PCA and (
        extractor.n_components is None or isinstance(extractor.n_components, (int, np.integer))
    )


def fit_pca(pca, moments, dtype):
    """Fit scikit-learn's PCA from the moments of the rows."""
    n_features = len(moments.mean)
    n_components = min(pca.n_components or n_features, n_features, moments.count)
    variances, vectors = np.linalg.eigh(moments.scatter / (moments.count - 1))
    variances = np.maximum(variances[::-1], 0.0)
    components = oriented(vectors.T[::-1])
    rest = variances[n_components : min(n_features, moments.count)]
    pca.n_samples_, pca.n_components_ = moments.count, n_components
    pca.n_features_in_ = n_features
    pca.mean_ = moments.mean.astype(dtype)
    pca.components_ = np.ascontiguousarray(components[:n_components], dtype=dtype)
    pca.explained_variance_ = variances[:n_components].astype(dtype)
    pca.explained_variance_ratio_ = shares_of(variances)[:n_components].astype(dtype)
    pca.singular_values_ = np.sqrt(variances[:n_components] * (moments.count - 1)).astype(dtype)
    pca.noise_variance_ = dtype.type(rest.mean() if len(rest) else 0.0)
    return pca
