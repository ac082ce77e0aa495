"""Support for Dask arrays and dataframes that are larger than memory or spread over a cluster.

The estimators accept Dask collections directly. Each pass over the data serves all running
starts of all candidates. The blocks stay on their workers, which sum over their rows and merge
the sums, so that the client receives a single result. With a :class:`distributed.Client` the
passes run on its cluster, otherwise on threads.

Examples
--------
>>> import dask.array as da
>>> import numpy as np
>>> from cafelearn import MinkowskiWeightedKMeans
>>> X = np.repeat([[0.0, 1.0], [5.0, 3.0]], 50, axis=0)
>>> X += np.random.default_rng(0).normal(scale=0.1, size=X.shape)
>>> model = MinkowskiWeightedKMeans(n_clusters=2, p=1.5, n_init=2, random_state=0)
>>> labels = model.fit(da.from_array(X, chunks=(30, 2))).labels_
>>> type(labels).__name__, labels.chunks
('Array', ((30, 30, 30, 10),))
>>> bool((labels.compute() == model.fit(X).labels_).all())
True
"""

try:
    import dask.array  # noqa: F401
except ImportError as error:
    raise ImportError(
        "Dask collections need the packages dask and distributed: "
        "pip install 'cafelearn[dask]'."
    ) from error

from cafelearn.distributed.files import from_npy
from cafelearn.distributed.lazy import lazily as lazily
from cafelearn.distributed.lazy import reduce_new_rows as reduce_new_rows
from cafelearn.distributed.partitions import map_partitions as map_partitions
from cafelearn.distributed.partitions import meta_of as meta_of
from cafelearn.distributed.partitions import reduce_partitions as reduce_partitions
from cafelearn.distributed.rows import open_rows as open_rows

# The estimators call the other names.
__all__ = ["from_npy"]
