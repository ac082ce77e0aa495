"""Input checks shared by the estimators: what scikit-learn's own checks do not say."""

import numpy as np
from sklearn.utils.validation import _check_sample_weight, validate_data


def check_columns(X, estimator):
    """Raise if a column of a data frame cannot be read as numbers, and name it."""
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        return
    for name in X.columns:
        if not _is_numeric(X[name]):
            raise ValueError(
                f"{type(estimator).__name__} needs numeric features, but column {name!r} has "
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
    # Duplicated or missing column names are for validate_data to judge.
    if not hasattr(X, "columns") or len(set(X.columns)) == len(X.columns):
        check_columns(X, estimator)
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
