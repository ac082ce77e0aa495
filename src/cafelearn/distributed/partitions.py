"""Passes over the partitions of Dask dataframes."""

import dask

from cafelearn.distributed.blocks import FAN_IN
from cafelearn.distributed.lazy import detached


def meta_of(X):
    """Return a frame without rows like a Dask dataframe; raise for other collections."""
    if not hasattr(X, "map_partitions"):
        raise TypeError(
            f"TableEncoder takes Dask dataframes, got a Dask {type(X).__name__}; convert it "
            "with dask.dataframe.from_dask_array."
        )
    if not all(isinstance(name, str) for name in X.columns):
        raise TypeError("TableEncoder needs column names that are strings.")
    return X._meta


def reduce_partitions(X, run, combine, *request):
    """Call run(partition, *request) on each partition, and combine(results, *request)."""
    parts = [dask.delayed(run)(part, *request) for part in X.to_delayed()]
    while len(parts) > 1:
        parts = [
            dask.delayed(combine)(parts[i : i + FAN_IN], *request)
            for i in range(0, len(parts), FAN_IN)
        ]
    return parts[0].compute()


def map_partitions(X, run, estimator):
    """Call run(partition, estimator) on each partition, lazily."""
    worker = detached(estimator)
    return X.map_partitions(run, worker, meta=run(X._meta, worker))
