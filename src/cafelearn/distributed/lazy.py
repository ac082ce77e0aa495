"""Lazy methods of fitted estimators on Dask collections, block by block."""

from copy import copy

import dask.array as da
import numpy as np
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from cafelearn.distributed.inputs import as_array, make_blocks

# Attributes that workers do not need. Lazy labels would even keep a reference to the data.
LEFT_BEHIND = ("labels_", "feature_names_in_", "_sklearn_output_config")
# Methods that return one number per row, with its type; None means the type of the data.
ONE_EACH = {"predict": np.int32, "assignment_margin": None}


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
    width = () if one_each else (_width(worker, name, dtype),)
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


def _width(estimator, name, dtype):
    if name == "transform":
        # A scaler has no `_n_features_out`, because it returns as many features as it takes.
        return getattr(estimator, "_n_features_out", estimator.n_features_in_)
    row = np.zeros((1, estimator.n_features_in_), dtype)
    return getattr(estimator, name)(row).shape[1]


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
    if "mixture_" in vars(worker):  # TabularCAFE has a property of this name
        worker.mixture_ = detached(worker.mixture_)
    return worker


def reduce_new_rows(estimator, X, sample_weight, run, combine):
    """Make one pass over new rows: call run(part, fitted estimator) on each part."""
    check_is_fitted(estimator)
    blocks = make_blocks(estimator, X, sample_weight, reset=False)
    return blocks.reduce(run, combine, detached(estimator), check=True)
