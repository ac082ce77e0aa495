"""Input checks shared by the estimators, in addition to those of scikit-learn."""

from collections import Counter
from numbers import Integral

import numpy as np
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.utils import assert_all_finite
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_sample_weight, validate_data

from cafelearn.base.words import listed
from cafelearn.data.gaps import has_gaps, is_sound, refuse_empty_rows, refuse_infinite_columns

# Values of `n_jobs` that joblib accepts.
N_JOBS = [
    None,
    Interval(Integral, None, -1, closed="right"),
    Interval(Integral, 1, None, closed="left"),
]


def is_dask(X):
    """Check whether `X` is a Dask collection, without importing Dask."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


def check_columns(X, owner):
    """Raise if columns of a frame have the same name, or if one is not numeric.

    The message names `owner`.
    """
    if not hasattr(X, "columns") or not hasattr(X, "dtypes"):
        return
    check_distinct_names(X.columns, owner)
    for name in X.columns:
        if not _is_numeric(X[name]):
            raise ValueError(
                f"{owner} needs numeric features, but column {name!r} has "
                f"dtype {X[name].dtype}. Encode it first (for categories, for instance with "
                "sklearn.preprocessing.OneHotEncoder) or drop it."
            )


def check_distinct_names(names, owner):
    """Raise if several columns have the same name; the message names `owner`."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(
            f"{owner} needs columns with distinct names, got {listed(repeated)} more than "
            "once. Rename or drop these columns."
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
        np.asarray(column[column.notna()], dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return True


def check_data(estimator, X, reset=True, *, gaps=False, **options):
    """Validate `X` and return it as dense floats in C order; float32 stays float32.

    With `gaps`, missing values are allowed and become NaN, and every row must have an observed
    value. Without `gaps`, missing values raise an error.
    """
    owner = type(estimator).__name__
    check_collected(X, owner)
    check_dense(X, owner)
    check_columns(X, owner)
    # scikit-learn checks finiteness by the sum of all numbers, which may overflow.
    with np.errstate(invalid="ignore"):
        options |= {
            "reset": reset,
            "dtype": [np.float64, np.float32],
            "order": "C",
            "accept_large_sparse": False,
            "ensure_all_finite": False,
        }
        try:
            X = validate_data(estimator, X, **options)
        except TypeError as error:
            if "NAType" not in str(error):
                raise
            X = validate_data(estimator, without_na(X), **options)
        # Like scikit-learn's check, this costs one sum if the data is finite.
        if not get_config()["assume_finite"] and not is_sound(X):
            refuse_infinite_columns(X, owner, getattr(estimator, "feature_names_in_", None))
            if not gaps:
                assert_all_finite(X, estimator_name=owner, input_name="X")
            refuse_empty_rows(np.flatnonzero(np.isnan(X).all(axis=1)), owner)
    return X


def check_collected(X, owner):
    """Raise if X is a lazy frame of polars."""
    if type(X).__name__ == "LazyFrame":
        raise TypeError(f"{owner} needs a table in memory, got a LazyFrame; use X.collect().")


def without_na(X):
    """Replace pandas.NA by NaN in a frame, or in an array or list of objects."""
    if hasattr(X, "notna"):
        return X.where(X.notna(), np.nan)
    from pandas import NA

    X = np.array(X, dtype=object)
    X[np.frompyfunc(lambda value: value is NA, 1, 1)(X).astype(bool)] = np.nan
    return X


def check_dense(X, owner):
    """Raise if X is a sparse matrix; the message states its size as a dense array."""
    if not issparse(X):
        return
    shape, size = " x ".join(f"{n:,}" for n in X.shape), 8 * np.prod(X.shape, dtype=float)
    raise TypeError(
        f"{owner} needs dense rows, got a sparse matrix of {shape}. Scaling would make its "
        f"zeros nonzero. As a dense array it takes {size / 1e6:,.3g} MB. Use X.toarray() if "
        "that fits into memory. Otherwise reduce the columns first, for instance with "
        "sklearn.decomposition.TruncatedSVD, or pass a Dask array whose blocks are dense."
    )


def check_columns_observed(estimator, X):
    """Raise if a column has no observed value."""
    if has_gaps(X):
        refuse_empty_columns(np.isnan(X).all(axis=0), estimator)


def refuse_empty_columns(empty, estimator):
    """Raise if any column is marked in `empty`, the mask of columns without observed values."""
    if empty.any():
        names = getattr(estimator, "feature_names_in_", np.arange(len(empty)))[empty]
        raise ValueError(
            f"{type(estimator).__name__} needs at least one observed value in each column, but "
            f"all values are missing (NaN) in {len(names)} column{'s' * (len(names) > 1)}: "
            f"{listed(names.tolist(), most=5)}. Drop these columns."
        )


def first_name(estimator, marked):
    """Return the name of the first marked column, or its position if it has no name."""
    column = int(np.flatnonzero(marked)[0])
    names = getattr(estimator, "feature_names_in_", None)
    return column if names is None else repr(str(names[column]))


def check_span(low, high, estimator):
    """Raise if the range of a column exceeds the largest float of its dtype."""
    dtype = np.asarray(low).dtype
    beyond = high / 2 - low / 2 > np.finfo(dtype).max / 2
    if beyond.any():
        raise ValueError(
            f"{type(estimator).__name__} cannot use column {first_name(estimator, beyond)}: "
            f"its range exceeds the largest {dtype.name}. Divide the column by a constant."
        )


def check_weights(sample_weight, X, estimator):
    """Validate sample weights and return them as float64; None means that all are 1."""
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not np.any(weights > 0):
        raise ValueError(
            f"{type(estimator).__name__} needs at least one positive sample weight, "
            "but all are zero."
        )
    return np.ascontiguousarray(weights, dtype=np.float64)


# If the largest weight is outside these bounds, all weights are multiplied by a power of two.
# Weights below a tiny fraction (SMALLEST_PART) of the largest weight are set to 0, because they
# are lost in sums anyway.
ORDINARY_WEIGHTS = 2.0**-32, 2.0**32
SMALLEST_PART, SMALLEST_PART_SINGLE = 2.0**-900, 2.0**-80


def weight_exponent(largest):
    """Return the exponent of the power of two by which weights are to be multiplied."""
    low, high = ORDINARY_WEIGHTS
    return 0 if low <= largest <= high or largest == 0 else -int(np.frexp(largest)[1])


def ordinary_weights(sample_weight, exponent, largest, dtype):
    """Multiply weights by 2**exponent, and set negligible weights to 0."""
    part = SMALLEST_PART_SINGLE if dtype == np.float32 else SMALLEST_PART
    vanishing = sample_weight < part * largest
    if exponent != 0:
        sample_weight = np.ldexp(sample_weight, exponent)
    return np.where(vanishing, 0.0, sample_weight) if vanishing.any() else sample_weight


# Limits of the binary exponents of numbers. Beyond EXTREME_EXPONENT (in absolute value), sums
# of squares over many rows may leave the range of floats. The limit for weights,
# COUNT_EXPONENT, is lower, because weights are also multiplied by sums and by each other.
EXTREME_EXPONENT, COUNT_EXPONENT = 480, 200


def ordinary_units(low, high):
    """Return factors that bring columns of extreme values near 1; None if no column is extreme.

    The factors are powers of two. The factor of a column without extreme values is 1.
    """
    peak = np.maximum(np.abs(low), np.abs(high)).astype(np.float64)
    exponents = np.frexp(peak)[1]
    is_extreme = (np.abs(exponents) > EXTREME_EXPONENT) & (peak > 0)
    if not is_extreme.any():
        return None
    # The reciprocal of a subnormal number may be infinite.
    return np.ldexp(1.0, np.where(is_extreme, -np.maximum(exponents, -1000), 0))


def check_unscaled(low, high, estimator):
    """Raise if the squares of unscaled values would leave the range of floats."""
    peaks = np.maximum(np.abs(low), np.abs(high))
    units = ordinary_units(low, high)
    largest = int(np.argmax(peaks))
    if units is not None and units[largest] != 1:
        name = first_name(estimator, np.arange(len(peaks)) == largest)
        raise ValueError(
            f"{type(estimator).__name__}(scaling=None) cannot use column {name}: its values "
            f"reach {peaks[largest]:.3g}, and their squares are outside the range of floats. "
            "Scale the column."
        )


def countable_weights(sample_weight):
    """Return weights, divided by a power of two if their products would overflow.

    The score treats weights as numbers of rows, so it depends on their size. Even after the
    division, the weights are so large that the prior and the penalty of the score are
    negligible.
    """
    exponent = int(np.frexp(sample_weight.max())[1])
    if exponent <= COUNT_EXPONENT:
        return sample_weight
    return np.ldexp(sample_weight, COUNT_EXPONENT - exponent)


def check_given_number(estimator):
    """Raise if `n_clusters` is True or False, which Python counts as integers."""
    if isinstance(estimator.n_clusters, bool):
        raise ValueError(
            f"{type(estimator).__name__} needs n_clusters to be an integer >= 1, 'auto' or "
            f"several integers; got {estimator.n_clusters}."
        )


def check_enough_rows(estimator, X):
    """Raise if there are fewer rows than clusters."""
    if len(X) < estimator.n_clusters:
        raise ValueError(
            f"{type(estimator).__name__} needs at least as many rows as clusters: "
            f"n_samples={len(X)}, n_clusters={estimator.n_clusters}."
        )
