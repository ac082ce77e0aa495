"""Arrays on disk as Dask arrays."""

import os
from os import PathLike
from os.path import abspath

import dask.array as da
import numpy as np

from cafelearn.data.npy import read_header
from cafelearn.kmeans.kernels.geometry import chunk_rows as kernel_rows

# Number of the solver's chunks in one block. With 32 to 1,024 float64 features, such a block
# has about 32 MB.
CHUNKS_PER_BLOCK = 16


def from_npy(path: str | PathLike, chunk_rows: int | None = None) -> da.Array:
    """Open a ``.npy`` file as a Dask array whose blocks are read when needed.

    Unlike ``dask.array.from_array`` of a memory-mapped array, this sends no rows from the
    client to the workers: each worker reads its own part of the file, which must have the same
    path on all workers. For Parquet use ``dask.dataframe.read_parquet``, for Zarr
    ``dask.array.from_zarr``; both also read on the workers.

    Parameters
    ----------
    path : str or path-like
        A file with a two-dimensional array, written by ``numpy.save``.
    chunk_rows : int, default=None
        Number of rows of a block. ``None`` means blocks of about 32 MB for 32 to 1,024
        float64 features. Without scaling, a fit is then bitwise equal to a fit of the array in
        memory.

    Returns
    -------
    X : dask.array.Array of shape (n_samples, n_features)
        The rows.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from cafelearn.distributed import from_npy
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "rows.npy"
    ...     np.save(path, np.arange(20.0).reshape(10, 2))
    ...     X = from_npy(path, chunk_rows=4)
    ...     print(X.chunks, X.sum().compute())
    ((4, 4, 2), (2,)) 190.0
    """
    # Workers may have been started in another directory.
    path = abspath(path)
    with open(path, "rb") as file:
        try:
            shape, dtype = read_header(file, os.fstat(file.fileno()).st_size)
        except ValueError as error:
            raise ValueError(f"{path} cannot be read as an array: {error}.") from None
    if len(shape) != 2 or not shape[1]:
        raise ValueError(
            "from_npy needs an array of 2 dimensions with at least one column, got shape "
            f"{shape} in {path}."
        )
    if dtype.kind not in "biuf":
        raise ValueError(f"from_npy needs numbers, got {dtype} in {path}.")
    if chunk_rows is None:
        chunk_rows = CHUNKS_PER_BLOCK * kernel_rows(shape[1])
    elif chunk_rows < 1:
        raise ValueError(f"from_npy needs chunk_rows >= 1, got {chunk_rows}.")
    chunks = da.core.normalize_chunks((chunk_rows, -1), shape)
    return da.map_blocks(
        _read,
        path=path,
        chunks=chunks,
        dtype=dtype,
        meta=np.empty((0, 0), dtype=dtype),
    )


def _read(path, block_info=None):
    (first, last), _ = block_info[None]["array-location"]
    return np.array(np.load(path, mmap_mode="r")[first:last])
