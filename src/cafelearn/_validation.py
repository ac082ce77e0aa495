"""Input checks shared by the estimators: what scikit-learn's own checks do not say."""

from functools import wraps
from importlib import import_module

import numpy as np
from sklearn.utils.validation import _check_sample_weight, validate_data


def is_dask(X):
    """Whether this is a Dask collection, told without importing Dask."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


def distributed():
    """The module for Dask collections, which comes after all that may be handed one.

    It is imported here, and only when such a collection has come.
    """
    return import_module("cafelearn.distributed")


def lazy_on_dask(method):
    """Let a method of one argument X work block by block, and later, on Dask collections."""

    @wraps(method)
    def dispatch(self, X):
        if is_dask(X):
            return distributed().lazily(self, method.__name__, X)
        return method(self, X)

    return dispatch


def check_columns(X, owner):
    """Raise, in the name of `owner`, if a column of a frame cannot be read as numbers."""
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        return
    # Duplicated or missing column names are for scikit-learn to judge.
    if len(set(X.columns)) < len(X.columns):
        return
    for name in X.columns:
        if not _is_numeric(X[name]):
            raise ValueError(
                f"{owner} needs numeric features, but column {name!r} has "
                f"dtype {X[name].dtype}. Encode it first (for categories, for instance with "
                "sklearn.preprocessing.OneHotEncoder) or drop it."
            )


def _is_numeric(column):
    kind = column.dtype
    if hasattr(kind, "is_numeric"):  # polars
        return kind.is_numeric() or str(kind) == "Boolean"
    if getattr(kind, "kind", "O") in "biuf":
        return True
    if kind != np.dtype(object):
        return False
    try:
        np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return True


def check_data(estimator, X, reset=True, **options):
    """`validate_data` for dense floats in C order, float32 kept, columns named in errors."""
    check_columns(X, type(estimator).__name__)
    return validate_data(
        estimator,
        X,
        reset=reset,
        dtype=[np.float64, np.float32],
        order="C",
        accept_large_sparse=False,
        **options,
    )


def check_weights(sample_weight, X, estimator):
    """Sample weights as float64; none means one each."""
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not np.any(weights > 0):
        raise ValueError(
            f"{type(estimator).__name__} needs at least one positive sample weight, "
            "but all are zero."
        )
    return np.ascontiguousarray(weights, dtype=np.float64)


def check_enough_rows(estimator, X):
    """Raise if there are fewer rows than clusters."""
    if len(X) < estimator.n_clusters:
        raise ValueError(f"n_samples={len(X)} should be >= n_clusters={estimator.n_clusters}.")
