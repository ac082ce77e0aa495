"""Open the data of a fit, and make methods lazy on Dask collections."""

from functools import wraps

from cafelearn.data.validation import (
    check_columns_observed,
    check_data,
    check_enough_rows,
    check_weights,
    is_dask,
)
from cafelearn.kmeans.rows import InMemory


def open_rows(estimator, X, sample_weight=None):
    """Check all rows and weights of a fit; return their source (see `data.source`)."""
    if is_dask(X):
        from cafelearn import distributed

        return distributed.open_rows(estimator, X, sample_weight)
    X = check_data(estimator, X, gaps=True)
    if sample_weight is not None:
        sample_weight = check_weights(sample_weight, X, estimator)
    if hasattr(estimator, "n_clusters"):
        check_enough_rows(estimator, X)
    check_columns_observed(estimator, X)
    return InMemory(X, sample_weight)


def lazy_on_dask(method):
    """Make a method with one argument X lazy and blockwise on Dask collections."""

    @wraps(method)
    def dispatch(self, X):
        if is_dask(X):
            from cafelearn.distributed import lazily

            return lazily(self, method.__name__, X)
        return method(self, X)

    return dispatch
