"""Check Dask collections and sample weights, and divide them into Blocks."""

import dask.array as da
import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import _check_feature_names, _check_n_features

from cafelearn.data.validation import check_columns
from cafelearn.distributed.blocks import Blocks


def as_array(estimator, X, reset):
    """Return a Dask array with one chunk of columns, and the type to fit: float32 or float64.

    With `reset`, names and number of the features are stored in the estimator; otherwise they
    are compared with those stored.
    """
    if hasattr(X, "to_dask_array"):
        check_columns(X._meta, type(estimator).__name__)
        _check_feature_names(estimator, X._meta, reset=reset)
        X = _numbers_of(X, type(estimator).__name__).to_dask_array()
    elif hasattr(X, "to_dataframe") and not hasattr(X, "rechunk"):
        raise TypeError(
            f"{type(estimator).__name__} takes Dask arrays and dataframes, got a Dask "
            f"{type(X).__name__}; convert it with to_dataframe()."
        )
    else:
        _check_feature_names(estimator, X, reset=reset)
    if X.ndim == 2 and np.isnan(X.shape[1]):
        X = X.compute_chunk_sizes()
    # Check the type and the dimensions of an array without rows.
    shown = np.zeros((0, *X.shape[1:]), dtype=X.dtype)
    dtype = check_array(
        shown, dtype=[np.float64, np.float32], estimator=estimator, ensure_min_samples=0
    ).dtype
    _check_n_features(estimator, X, reset=reset)
    return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X, dtype


def _numbers_of(X, owner):
    """Convert the columns of a dataframe to NumPy's numeric types if necessary.

    Types with their own missing values would otherwise become arrays of objects.
    """
    dtypes = X._meta.dtypes if X.ndim == 2 else ()
    if all(isinstance(d, np.dtype) and d.kind in "biuf" for d in dtypes):
        return X
    single = all(getattr(d, "kind", "O") == "f" and d.itemsize == 4 for d in dtypes)
    dtype = np.float32 if single else np.float64
    return X.map_partitions(_as_floats, owner, dtype, meta=X._meta.astype(dtype))


def _as_floats(frame, owner, dtype):
    check_columns(frame, owner)  # objects can be checked only here, because `_meta` has no rows
    return frame.astype(dtype)


def as_weights(sample_weight, X):
    """Return the weights, in blocks like those of X, and X.

    The weights stay None if none were given. Unknown lengths of blocks are computed if
    necessary.
    """
    if sample_weight is None:
        return None, X
    if hasattr(sample_weight, "to_dask_array"):
        sample_weight = sample_weight.to_dask_array()
    if not isinstance(sample_weight, da.Array):
        X = _with_lengths(X)
        if np.ndim(sample_weight) == 0:
            sample_weight = da.full(X.shape[0], float(sample_weight), chunks=(X.chunks[0],))
        else:
            sample_weight = da.from_array(np.asarray(sample_weight))
    if sample_weight.ndim != 1:
        raise ValueError(
            f"Sample weights must be 1D array or scalar, got {sample_weight.ndim}D"
        )
    if sample_weight.numblocks[0] != X.numblocks[0]:
        X, sample_weight = _with_lengths(X), _with_lengths(sample_weight)
    if not (np.isnan(X.shape[0]) or np.isnan(sample_weight.shape[0])):
        if sample_weight.shape[0] != X.shape[0]:
            raise ValueError(
                f"sample_weight.shape == {sample_weight.shape}, expected {(X.shape[0],)}!"
            )
        return sample_weight.rechunk((X.chunks[0],)), X
    return sample_weight, X


def _with_lengths(array):
    return array.compute_chunk_sizes() if np.isnan(array.shape[0]) else array


def make_blocks(estimator, X, sample_weight=None, reset=True):
    """Return the Blocks of a collection for an estimator; `reset` as in `as_array`."""
    X, dtype = as_array(estimator, X, reset)
    sample_weight, X = as_weights(sample_weight, X)
    names = getattr(estimator, "feature_names_in_", None)
    return Blocks(X, sample_weight, dtype, type(estimator).__name__, names)
