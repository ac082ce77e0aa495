"""Helpers shared by the three extractors."""

import numpy as np
from sklearn.utils import check_array


def resolve_components(estimator, n_features):
    """Return the number of components; by default half the number of features."""
    n_components = estimator.n_components
    if n_components is None:
        return max(1, n_features // 2)
    if n_components > n_features:
        raise ValueError(
            f"{type(estimator).__name__} needs n_components <= {n_features} features, "
            f"got {n_components}."
        )
    return int(n_components)


def root_mean_square(values):
    """Compute the root mean square without overflow of the squares."""
    values = np.asarray(values, dtype=np.float64)
    peak = np.max(np.abs(values))
    if peak == 0 or not np.isfinite(peak):
        return float(peak)
    return float(peak * np.sqrt(np.mean((values / peak) ** 2)))


def check_features(estimator, X):
    """Validate the input of `inverse_transform`: dense floats, one column per component."""
    X = check_array(X, dtype=[np.float64, np.float32], order="C")
    if X.shape[1] != estimator._n_features_out:
        raise ValueError(
            f"{type(estimator).__name__}.inverse_transform needs "
            f"{estimator._n_features_out} features, one per component, got {X.shape[1]}."
        )
    return X


def dot(a, b):
    """Compute the dot products of corresponding rows of two arrays with any leading axes."""
    return np.einsum("...i,...i->...", a, b)
