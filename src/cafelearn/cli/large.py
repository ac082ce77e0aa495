"""Open tables larger than memory with Dask: Parquet directories, Zarr arrays, .npy files."""

import math
import re
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cafelearn.base.words import listed
from cafelearn.cli.arrow import to_frame, try_reading
from cafelearn.cli.limits import COLUMN, check_memory
from cafelearn.cli.reading import repaired

SUFFIXES = (".parquet", ".parq", ".pq")
# Target size of a partition in bytes; row groups are not split. To encode a partition and
# assign its rows, a thread needs about six times as much.
PARTITION = 8 * 2**20
TASK = 1_000  # estimated bytes of a Dask task that reads one chunk
# Names that pandas and Dask write to Parquet files for an index without a name.
INDEX = re.compile(r"__index_level_\d+__|__null_dask_index__")


class Large(NamedTuple):
    """A table that Dask reads partition by partition."""

    frame: object  # dask.dataframe.DataFrame
    lengths: list  # number of rows in each partition


def is_large(path):
    """Check whether a path is a directory or .npy file, which are read with Dask."""
    return Path(path).is_dir() or Path(path).suffix.lower() == ".npy"


def is_zarr(path):
    """Check whether a path is a directory with a Zarr array."""
    marks = ("zarr.json", ".zarray", ".zgroup")
    is_marked = path.suffix.lower() == ".zarr" or any((path / mark).exists() for mark in marks)
    return path.is_dir() and is_marked


def open_large(path, remark=lambda text: None, row_id=None):
    """Open a directory of Parquet files, a Zarr array or a .npy file.

    `remark` is called with a sentence for each repair. `row_id` is the column of row names.
    """
    from cafelearn.distributed import from_npy

    path = Path(path).absolute()  # workers may have a different working directory
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    if not path.is_dir():
        return _table(path, from_npy(path))
    return _table(path, _open_zarr(path)) if is_zarr(path) else _parquet(path, remark, row_id)


def open_and_tell(run, path, tell, row_id):
    """Open a table, record its size in the facts of the run, and report it with `tell`."""
    large = open_large(path, run.remark, row_id)
    size = {"rows": sum(large.lengths), "columns": len(large.frame.columns)}
    run.facts["data"] = {"path": path, **size, "parts": len(large.lengths)}
    parts = f"{len(large.lengths):,} part{'s' if len(large.lengths) > 1 else ''}"
    tell(
        f"Found {path}: {size['rows']:,} rows, {size['columns']:,} columns, to be read in "
        f"{parts}"
    )
    return large


def _parquet(path, remark, row_id):
    import dask.dataframe as dd
    from dask.utils import natural_sort_key
    from pyarrow import parquet

    files = [
        f for f in path.iterdir() if f.suffix.lower() in SUFFIXES and f.name[0] not in "._"
    ]
    files.sort(key=lambda file: natural_sort_key(file.name))
    if not files:
        raise ValueError(
            f"{path} is a directory without Parquet files ({', '.join(SUFFIXES)})."
        )
    try_reading(path, "groups", files)
    schema = parquet.read_schema(files[0])
    names = [name for name in schema.names if not INDEX.fullmatch(name)]
    _check_same(schema, files)
    pieces, lengths = _pieces(files)
    if not lengths or not names:
        raise ValueError(f"{path} has Parquet files but no {'columns' if lengths else 'rows'}.")
    if len(names) < len(schema.names):
        remark("The index of the table has no name; it is left out.")
    meta = schema.empty_table().to_pandas(ignore_metadata=True)[names]
    frame = dd.from_map(_read_groups, pieces, columns=names, row_id=row_id, meta=meta)
    new = dict(zip(names, repaired(names, remark), strict=True))
    return Large(frame.rename(columns=new), lengths)


def _check_same(schema, files):
    """Raise unless all files have the columns and types of a schema, that of the first file."""
    from pyarrow import parquet

    wanted = set(zip(schema.names, schema.types, strict=True))
    for file in files:
        own = parquet.read_schema(file)
        strange = wanted ^ set(zip(own.names, own.types, strict=True))
        if strange:
            raise ValueError(
                "all files of a directory need the same columns and types, but "
                f"{file.name} differs from {files[0].name} in "
                f"{listed(sorted({name for name, _ in strange}), most=4)}."
            )


def _pieces(files):
    """Join row groups to partitions, which are lists of pairs (file, number of the group).

    Return the partitions and their lengths.
    """
    from pyarrow import parquet

    pieces, lengths, size = [], [], math.inf
    for file in files:
        metadata = parquet.read_metadata(file)
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            # Repeated values take few bytes in the file.
            own_size = max(group.total_byte_size, 8 * group.num_rows * group.num_columns)
            if size + own_size > PARTITION and group.num_rows:
                pieces.append([])
                lengths.append(0)
                size = 0
            if group.num_rows:
                pieces[-1].append((str(file), number))
                lengths[-1] += group.num_rows
                size += own_size
    return pieces, lengths


def _read_groups(piece, columns, row_id):
    import pyarrow as pa
    from pyarrow import parquet

    tables = []
    for path, number in piece:
        with parquet.ParquetFile(path) as file:
            # The order of the columns may differ between files.
            tables.append(file.read_row_group(number, columns=columns).select(columns))
    return to_frame(pa.concat_tables(tables), row_id, ignore_metadata=True)


def _table(path, X):
    import dask.dataframe as dd

    if X.ndim != 2 or not all(X.shape) or X.dtype.kind not in "biuf":
        raise ValueError(
            f"{path} needs rows and columns of numbers, but has the shape {X.shape} and the "
            f"type {X.dtype}."
        )
    X = X.rechunk({1: -1})
    frame = dd.from_dask_array(X, columns=[f"x{v}" for v in range(X.shape[1])])
    return Large(frame, list(X.chunks[0]))


def _open_zarr(path):
    import dask.array as da
    import zarr

    with _naming(path):
        array = zarr.open_array(str(path), mode="r")
        shape, chunk = array.shape, getattr(array, "shards", None) or array.chunks
        n_chunks = math.prod(-(-m // each) for m, each in zip(shape, chunk, strict=True))
    width, size = math.prod(shape[1:]), max(array.dtype.itemsize, 8)
    rows = min(chunk[0], shape[0]) if shape else 0
    # Chunks are unpacked whole; those of the same rows are joined.
    needed = TASK * n_chunks + COLUMN * width + size * (math.prod(chunk) + 2 * rows * width)
    check_memory(path, needed, "If it really is this large, write it in smaller chunks.")
    return da.map_blocks(
        _read_zarr,
        array,
        path,
        chunks=da.core.normalize_chunks(chunk, shape),
        dtype=array.dtype,
        meta=np.empty((0, 0), dtype=array.dtype),
    )


def _read_zarr(array, path, block_info=None):
    with _naming(path):
        return array[tuple(slice(*ends) for ends in block_info[None]["array-location"])]


@contextmanager
def _naming(path):
    """Name the path in errors of Zarr, which have no common base class."""
    try:
        yield
    except Exception as error:
        words = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise ValueError(f"{path} cannot be read as a Zarr array: {words}.") from error
