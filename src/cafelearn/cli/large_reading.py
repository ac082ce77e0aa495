"""Read tables larger than memory as Dask dataframes: Parquet directories and arrays."""

import math
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cafelearn._words import listed
from cafelearn.cli.arrow_reading import GROUPS, read_row_group, reading, to_frame
from cafelearn.cli.limits import COLUMN, check_memory
from cafelearn.cli.reading import repaired

PARQUET = (".parquet", ".parq", ".pq")
# Target size of a partition in memory, in bytes. Row groups are not split. To encode a
# partition and assign its rows, a thread needs about six times the size of the partition.
PARTITION = 8 * 2**20
# Size in bytes above which a row group causes a remark.
LARGE = 256 * 2**20
# Estimated memory of a Dask task that reads one chunk, in bytes.
TASK = 1_000
# Names that pandas and Dask write to Parquet files for an index without a name.
INDEX = re.compile(r"__index_level_\d+__|__null_dask_index__")


class Large(NamedTuple):
    """A table that Dask reads partition by partition."""

    frame: object  # dask.dataframe.DataFrame
    lengths: list  # number of rows in each partition
    types: dict  # column -> its type in Parquet files; empty for arrays


def is_large(path):
    """Check whether a path is a directory or .npy file, which are read with Dask."""
    path = Path(path)
    return path.is_dir() or path.suffix.lower() == ".npy"


def read_large(path, remark=lambda text: None, row_id=None):
    """Open a directory of Parquet files, a Zarr array or a .npy file.

    `remark` is called with a sentence for each repair or guess. `row_id` is the column of row
    names.
    """
    need_dask(path)
    path = Path(path).absolute()  # workers may have a different working directory
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    if path.is_dir() and not is_zarr(path):
        return _read_parquet(path, remark, row_id)
    return _read_array(path)


def need_dask(path):
    """Raise if dask, which is needed to read `path`, is not installed."""
    try:
        import dask.dataframe  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"Reading {path} needs the package dask: pip install 'cafelearn[dask]'."
        ) from error


def is_zarr(path):
    """Check whether a directory is a Zarr array."""
    marks = ("zarr.json", ".zarray", ".zgroup")
    return path.suffix.lower() == ".zarr" or any((path / mark).exists() for mark in marks)


def _read_parquet(path, remark, row_id):
    import dask.dataframe as dd

    files = _parquet_files(path)
    pieces, lengths, schema = _pieces(files, remark)
    if not lengths:
        raise ValueError(f"{path} has Parquet files but no rows.")
    meta = schema.empty_table().to_pandas(ignore_metadata=True)
    names = [name for name in schema.names if not INDEX.fullmatch(name)]
    if not names:
        raise ValueError(f"{path} has no columns.")
    if len(names) < len(meta.columns):
        remark("The index of the table has no name; it is left out.")
    frame = dd.from_map(_read_piece, pieces, columns=names, row_id=row_id, meta=meta[names])
    new = repaired(names, remark)
    if new != names:
        frame = frame.rename(columns=dict(zip(names, new, strict=True)))
    types = dict(zip(schema.names, schema.types, strict=True))
    return Large(frame, lengths, {n: types[old] for n, old in zip(new, names, strict=True)})


def _parquet_files(path):
    from dask.utils import natural_sort_key

    def found(folder):
        return [
            file
            for file in folder.iterdir()
            if file.suffix.lower() in PARQUET and not file.name.startswith((".", "_"))
        ]

    files = [file for file in found(path) if file.is_file()]
    if files:
        return sorted(files, key=lambda file: natural_sort_key(file.name))
    if not any(path.iterdir()):
        raise ValueError(f"{path} is an empty directory.")
    folders = sorted(folder for folder in path.iterdir() if folder.is_dir())
    below = [folder.name for folder in folders if found(folder)]
    hint = f" Subdirectories with Parquet files: {listed(below, most=3)}." if below else ""
    raise ValueError(
        f"{path} is a directory without Parquet files ({', '.join(PARQUET)}).{hint}"
    )


def _pieces(files, remark):
    """Group the row groups of all files into partitions.

    Return the row groups of each partition as pairs (file, index of the row group), the
    number of rows in each partition, and the schema.
    """
    pieces, lengths, size, schema, largest = [], [], PARTITION, None, 0
    for file in files:
        metadata = _metadata(file)
        own = metadata.schema.to_arrow_schema()
        if schema is None:
            schema = own
        _check_schema(file, own, files[0], schema)
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            if not group.num_rows:
                continue
            # Estimate the size in memory, because repeated values take few bytes in the file.
            own_size = max(group.total_byte_size, 8 * group.num_rows * group.num_columns)
            check_memory(file, own_size, GROUPS)
            largest = max(largest, own_size)
            if size + own_size > PARTITION:
                pieces.append([])
                lengths.append(0)
                size = 0
            pieces[-1].append((str(file), number))
            lengths[-1] += group.num_rows
            size += own_size
    if largest > LARGE:
        remark(
            f"Row groups of up to {largest / 1e6:,.0f} MB are read whole, one per thread; "
            "smaller row groups would need less memory."
        )
    return pieces, lengths, schema


def _metadata(file):
    with reading(file, "parquet"):
        from pyarrow import parquet

        return parquet.read_metadata(file)


def _check_schema(file, own, first, schema):
    """Raise unless a file has the same columns and types as the first file."""
    ours = dict(zip(own.names, own.types, strict=True))
    theirs = dict(zip(schema.names, schema.types, strict=True))
    for names, what in (
        ([name for name in theirs if name not in ours], "lacks"),
        ([name for name in ours if name not in theirs], "also has"),
    ):
        if names:
            raise ValueError(
                f"all files of a directory need the same columns, but {file.name} {what} "
                f"{listed(names)}, compared with {first.name}."
            )
    other = [
        f"{name!r} ({ours[name]}, not {theirs[name]})"
        for name in theirs
        if ours[name] != theirs[name]
    ]
    if other:
        raise ValueError(
            "all files of a directory need columns of the same types, but "
            f"{file.name} differs from {first.name} in {listed(other, str, most=4)}."
        )


def _read_piece(piece, columns=None, row_id=None):
    import pyarrow as pa

    tables = [read_row_group(Path(file), number, columns) for file, number in piece]
    # Select the columns by name, because their order may differ between files.
    tables = [table.select(columns or tables[0].schema.names) for table in tables]
    return to_frame(pa.concat_tables(tables), row_id, ignore_metadata=True)


def _read_array(path):
    import dask.dataframe as dd

    from cafelearn.distributed import from_npy

    X = _open_zarr(path) if path.is_dir() else from_npy(path)
    if X.ndim != 2 or not X.shape[1]:
        raise ValueError(f"{path} needs rows and columns, but has the shape {X.shape}.")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"{path} needs numbers, but has the type {X.dtype}.")
    if not X.shape[0]:
        raise ValueError(f"{path} has no rows.")
    X = X.rechunk({1: -1})
    frame = dd.from_dask_array(X, columns=[f"x{v}" for v in range(X.shape[1])])
    return Large(frame, list(X.chunks[0]), {})


def _open_zarr(path):
    import dask.array as da

    try:
        import zarr
    except ImportError as error:
        raise ImportError(
            f"Reading {path} needs the package zarr: pip install 'cafelearn[dask]'."
        ) from error
    try:
        array = zarr.open_array(str(path), mode="r")
        needed = _needed_by_zarr(array)
    except Exception as error:  # zarr's errors have no common base class
        raise _not_zarr(path, error) from None
    check_memory(path, needed, "If it really is this large, write it in smaller chunks.")
    try:
        chunks = da.from_zarr(str(path)).chunks
        source = _ZarrBlocks(array, path)
    except Exception as error:
        raise _not_zarr(path, error) from None
    return da.from_array(source, chunks=chunks, meta=np.empty((0, 0), dtype=source.dtype))


def _needed_by_zarr(array):
    """Estimate the bytes needed to list all chunks and read all columns of a chunk's rows."""
    shape, chunk = array.shape, getattr(array, "shards", None) or array.chunks
    n_chunks = math.prod(-(-length // each) for length, each in zip(shape, chunk, strict=True))
    rows = min(chunk[0], shape[0]) if shape else 0
    # A chunk is unpacked whole, even if it extends beyond the array.
    whole = math.prod(chunk) * array.dtype.itemsize
    joined = rows * math.prod(shape[1:]) * max(array.dtype.itemsize, 8)
    return TASK * n_chunks + whole + 2 * joined + COLUMN * math.prod(shape[1:])


def _not_zarr(path, error):
    words = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
    return ValueError(f"{path} cannot be read as a Zarr array: {words}.")


class _ZarrBlocks:
    """A Zarr array whose read errors name its path."""

    def __init__(self, array, path):
        self.array, self.path = array, path
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim

    def __getitem__(self, key):
        try:
            return self.array[key]
        except Exception as error:
            raise _not_zarr(self.path, error) from error
