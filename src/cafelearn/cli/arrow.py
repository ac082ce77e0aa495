"""Read Parquet and Feather files, which may be damaged.

A file is read twice: first by `trial`, in a process of limited memory, then here.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from cafelearn.cli.limits import allowed, too_large

PARTS = "If the table really is this large, put the file in a directory to read it in parts."
GROUPS = "If the table really is this large, write the file with smaller row groups."
TRIAL = Path(__file__).with_name("trial.py")
# Memory of other threads and of Arrow's own pool would count as memory of the table.
FRUGAL = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1"}


def read_arrow(path, kind, row_id=None):
    """Read a Parquet or Feather file as a data frame; `row_id` is the column of row names."""
    try_reading(path, kind, [path])
    from pyarrow import feather, parquet

    if kind == "feather":
        return to_frame(feather.read_table(path, memory_map=False), row_id)
    with parquet.ParquetFile(path) as file:
        return to_frame(file.read(), row_id)


def try_reading(path, kind, files):
    """Raise ValueError if a file is damaged or needs too much memory.

    `files` are those of `path`: the path itself or, if `kind` is "groups", Parquet files whose
    row groups are read one by one.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "Reading Parquet and Feather needs the package pyarrow: "
            "pip install 'cafelearn[cli]'."
        ) from error
    limit = allowed(path)
    done = subprocess.run(
        [sys.executable, "-P", TRIAL, str(limit), kind],
        input=json.dumps([str(file) for file in files]),
        capture_output=True,
        text=True,
        errors="replace",
        env=os.environ | FRUGAL,
    )
    if done.returncode == 0:
        return
    if done.returncode == 1 and not done.stdout:
        raise RuntimeError(f"cannot check {path}: {done.stderr.strip().splitlines()[-1]}")
    finding = json.loads(done.stdout or "{}")
    file = finding.get("path", path)
    if finding.get("needs_more"):
        raise too_large(file, limit, GROUPS if kind == "groups" else PARTS)
    words = finding.get("words", "the file is damaged")
    raise ValueError(
        f"{file} cannot be read as {'parquet' if kind == 'groups' else kind}: {words}."
    )


def to_frame(table, row_id=None, **options):
    """Convert an Arrow table to a data frame.

    If some row names are missing, the others stay integers; in other columns they would become
    floats.
    """
    import pandas as pd
    from pyarrow import types

    frame = table.to_pandas(**options)
    place = -1 if row_id is None else table.schema.get_field_index(row_id)
    if place < 0 or row_id not in frame.columns:
        return frame
    names = table[place]
    if names.null_count and types.is_integer(names.type):
        is_signed = types.is_signed_integer(names.type)
        dtype = pd.Int64Dtype() if is_signed else pd.UInt64Dtype()
        frame[row_id] = names.to_pandas(types_mapper=lambda _: dtype).array
    return frame
