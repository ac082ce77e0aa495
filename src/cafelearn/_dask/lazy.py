"""Lazy methods of fitted estimators on Dask collections, block by block."""

from copy import copy

import dask
import dask.array as da
import numpy as np
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from cafelearn._dask.inputs import as_array, as_weights
from cafelearn._profiles import merge_sums, profile_sums

# Attributes that workers do not need; lazy labels would also keep a reference to the data.
LEFT_BEHIND = ("labels_", "feature_names_in_", "_sklearn_output_config")
# Methods that return one number for each row, and its type; None is the type of the data.
ONE_EACH = {"predict": np.int32, "assignment_margin": None}

# Number of partial sums that one task merges.
MERGED = 16


def lazily(estimator, name, X):
    """Return the result of the method `name` of a fitted estimator on X as a Dask array."""
    check_is_fitted(estimator)
    wanted = _get_output_config("transform", estimator)["dense"]
    if name == "transform" and wanted != "default":
        # scikit-learn would load all rows into a table on the client.
        raise ValueError(
            f"{type(estimator).__name__}.transform returns a Dask array for a Dask collection, "
            f"but transform_output={wanted!r} is set; set it to 'default'."
        )
    X, dtype = as_array(estimator, X, reset=False)
    return blockwise(estimator, name, X, dtype)


def blockwise(estimator, name, X, dtype):
    """Call the method `name` on each block of a Dask array that has been validated."""
    worker, one_each = detached(estimator), name in ONE_EACH
    dtype = ONE_EACH.get(name) or dtype
    width = () if one_each else (_width(estimator, name),)
    return da.map_blocks(
        _call,
        X,
        estimator=worker,
        method=name,
        width=width,
        out_dtype=np.dtype(dtype),
        dtype=dtype,
        drop_axis=1 if one_each else [],
        chunks=(X.chunks[0], *((length,) for length in width)),
        meta=np.empty((0,) * (1 + len(width)), dtype=dtype),
    )


def _width(estimator, name):
    # A scaler returns as many features as it takes.
    n_features_in = estimator.n_features_in_
    return (
        getattr(estimator, "_n_features_out", n_features_in)
        if name == "transform"
        else (n_features_in)
    )


def _call(block, estimator, method, width, out_dtype):
    if len(block) == 0:
        return np.empty((0, *width), dtype=out_dtype)
    return np.asarray(getattr(estimator, method)(block))


def detached(estimator):
    """Return a copy with only the attributes that its methods need on a worker."""
    worker = copy(estimator)
    for attribute in LEFT_BEHIND:
        worker.__dict__.pop(attribute, None)
    if hasattr(worker, "n_jobs"):
        worker.n_jobs = None
    if hasattr(worker, "model_"):
        worker.model_ = detached(worker.model_)
        worker.models_ = [worker.model_]
    return worker


def score(estimator, X, sample_weight):
    """Compute minus the objective of the rows, eagerly."""
    check_is_fitted(estimator)
    X, _ = as_array(estimator, X, reset=False)
    sample_weight, X = as_weights(sample_weight, X)
    operands = [X] if sample_weight is None else [X, sample_weight[:, None]]
    parts = da.map_blocks(
        _score,
        *operands,
        estimator=detached(estimator),
        dtype=np.float64,
        chunks=((1,) * X.numblocks[0], (1,)),
        meta=np.empty((0, 0)),
    )
    return float(parts.sum().compute())


def _score(block, weights=None, estimator=None):
    weights = None if weights is None else weights[:, 0]
    # All weights of a block may be zero.
    if len(block) == 0 or (weights is not None and not weights.any()):
        return np.zeros((1, 1))
    return np.full((1, 1), estimator.score(block, sample_weight=weights))


def profile(estimator, X, sample_weight):
    """Compute the sums for `profile_frame`, eagerly."""
    check_is_fitted(estimator)
    X, _ = as_array(estimator, X, reset=False)
    sample_weight, X = as_weights(sample_weight, X)
    blocks = X.to_delayed().ravel()
    weights = (
        [None] * len(blocks) if sample_weight is None else sample_weight.to_delayed().ravel()
    )
    worker = dask.delayed(detached(estimator), pure=False, traverse=False)
    tasks = [
        dask.delayed(_profile)(block, weight, worker)
        for block, weight in zip(blocks, weights, strict=True)
    ]
    while len(tasks) > MERGED:
        tasks = [
            dask.delayed(merge_sums)(tasks[i : i + MERGED])
            for i in range(0, len(tasks), MERGED)
        ]
    return merge_sums(dask.compute(*tasks))


def _profile(block, weights, estimator):
    labels = estimator.predict(block) if len(block) else np.empty(0, dtype=np.int32)
    return profile_sums(block, labels, len(estimator.feature_weights_), weights)
