"""Read untrusted Parquet and Feather files within memory limits.

Arrow allocates as many bytes as the headers of a file state, and it does not check the offsets
in a Feather file. This module checks the sizes before decompression, and the offsets before
conversion to pandas.
"""

import struct
from contextlib import contextmanager

import numpy as np

from cafelearn._words import listed
from cafelearn.cli.limits import check_memory
from cafelearn.cli.parquet_pages import pages_of

# Limits of a batch: the bytes of its decoded text, and the number of its rows.
EXPANDED, ROWS = 128 << 20, 65_536
# Estimated bytes of a cell in Arrow and pandas together, if the cell is a number, text, another
# Python object, or an object that contains other objects.
NUMBER, TEXT, OBJECT, NESTED = 16, 64, 128, 256
FEATHER = b"ARROW1\0\0"
PARTS = "If the table really is this large, put the file in a directory to read it in parts."
GROUPS = "If the table really is this large, write the file with smaller row groups."


def read_arrow(path, kind, row_id=None):
    """Read a Parquet or Feather file as a data frame; `row_id` is the column of row names."""
    read = _read_parquet if kind == "parquet" else _read_feather
    with reading(path, kind):
        table = read(path)
        table.validate(full=True)
        check_memory(path, table.nbytes + _needed_by_views(table))
        return to_frame(table, row_id)


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


def read_row_group(path, number, columns):
    """Read columns of one row group of a Parquet file as an Arrow table."""
    with reading(path, "parquet"):
        table = _read_parquet(path, [number], columns, GROUPS)
        table.validate(full=True)
        return table


@contextmanager
def reading(path, kind):
    """Convert errors of Arrow in the `with` block to a one-line ValueError with the path."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(
            "Reading Parquet and Feather needs the package pyarrow: "
            "pip install 'cafelearn[cli]'."
        ) from error
    try:
        yield
    # Damaged pandas metadata causes lookup, type and attribute errors; damaged sizes cause
    # memory, overflow and struct errors.
    except (
        pa.ArrowException,
        OSError,
        LookupError,
        TypeError,
        AttributeError,
        MemoryError,
        OverflowError,
        struct.error,
    ) as error:
        words = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
        raise ValueError(f"{path} cannot be read as {kind}: {words}.") from None


def _read_parquet(path, groups=None, columns=None, advice=PARTS):
    """Read row groups of a Parquet file in batches, to limit the memory for decoded text.

    Decoded text can be much larger than its page, because a page can store repeated text only
    once. `groups` and `columns` select the row groups and columns to read; None means all.
    """
    import pyarrow as pa
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        schema, leaves = file.schema_arrow, file.metadata.schema
        _check_types(path, schema)
        cells = _cells(schema)
        groups = range(file.metadata.num_row_groups) if groups is None else groups
        needed, longest = 0, 1
        for number, pages in pages_of(path, file.metadata, groups):
            leaf = leaves.column(number)
            cell = cells.get(leaf.path, NESTED) + 2 * max(leaf.length, 0)
            needed += sum(page.size + page.n_values * cell for page in pages)
            check_memory(path, needed, advice)
            longest = max([longest, *(page.size for page in pages if page.expands)])
        batches, expanded = [], 0
        size = max(1, min(EXPANDED // longest, ROWS))
        for batch in file.iter_batches(size, list(groups), columns):
            expanded += 2 * batch.nbytes
            check_memory(path, max(needed, expanded), advice)
            batches.append(batch)
    if columns is not None:
        schema = pa.schema([schema.field(name) for name in batches[0].schema.names])
    return pa.Table.from_batches(batches, schema)


def _cells(schema):
    """Return a dict from the path of each column in a Parquet file to its bytes per cell."""
    found = {}
    is_nested = any(kind.num_fields for kind in schema.types)
    for name, kind in zip(schema.names, schema.types, strict=True):
        # A name with a dot may equal the path of a field in a nested column.
        cell = NESTED if is_nested and "." in name else _cell(kind)
        found[name] = max(found.get(name, 0), cell)
    return found


def _read_feather(path):
    """Read the messages of a Feather file in order, because its footer may be damaged."""
    import pyarrow as pa
    from pyarrow import feather, ipc

    # From memory, Arrow takes slices of the buffer. From a file, it would allocate as many
    # bytes as the headers of the messages state.
    with pa.BufferReader(path.read_bytes()) as source:
        if source.read(len(FEATHER)) != FEATHER:
            return feather.read_table(path)  # version 1 of the format has no compression
        reader = ipc.open_stream(source)
        _check_types(path, reader.schema)
        cells = [_cell(part) for column in reader.schema.types for part in _parts(column)]
        source.seek(len(FEATHER))
        needed = 0
        for message in ipc.MessageReader.open_stream(source):
            if message.type in ("record batch", "dictionary"):
                rows, size = _batch_sizes(message)
                some = cells if message.type == "record batch" else [NESTED] * len(rows)
                pairs = zip(rows, some, strict=True)
                needed += 2 * size + sum(count * cell for count, cell in pairs)
                check_memory(path, needed)
        source.seek(len(FEATHER))
        return ipc.open_stream(source).read_all()


def _batch_sizes(message):
    """Return the lengths of a message's arrays, including nested ones, and its unpacked size.

    The layout of a message is defined in Message.fbs and Schema.fbs of Arrow.
    """
    data, body = message.metadata.to_pybytes(), message.body
    batch = _target(data, _field(data, _target(data, 0), 2))
    if message.type == "dictionary":
        batch = _target(data, _field(data, batch, 1))
    nodes, buffers = (_pairs(data, _field(data, batch, number)) for number in (1, 2))
    is_packed, size = _field(data, batch, 3) is not None, 0
    for start, length in buffers:
        # In a compressed message, each buffer begins with its unpacked length, or with -1 if
        # the buffer itself is not compressed.
        unpacked = struct.unpack_from("<q", body, start)[0] if is_packed and length else -1
        size += length if unpacked < 0 else unpacked
    return [length for length, _ in nodes], size


def _field(data, table, number):
    """Return the position of a field in a FlatBuffers table; None if the field is absent."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    if 4 + 2 * number >= struct.unpack_from("<H", data, vtable)[0]:
        return None
    offset = struct.unpack_from("<H", data, vtable + 4 + 2 * number)[0]
    return table + offset if offset else None


def _target(data, place):
    """Return the position to which the offset at `place` in a FlatBuffers message points."""
    return place + struct.unpack_from("<I", data, place)[0]


def _pairs(data, place):
    """Return a vector of pairs of 64-bit integers as a list, empty if `place` is None."""
    if place is None:
        return []
    start = _target(data, place)
    (count,) = struct.unpack_from("<I", data, start)
    start += 4 + -(start + 4) % 8  # pairs are aligned to 8 bytes
    return [struct.unpack_from("<qq", data, start + 16 * each) for each in range(count)]


def _parts(kind):
    """Yield a type and the types nested in it, in the order of Arrow's messages."""
    yield kind
    for number in range(kind.num_fields):
        yield from _parts(kind.field(number).type)


def _cell(kind):
    """Estimate the bytes that a value of this type takes in Arrow and pandas together."""
    from pyarrow import types

    if types.is_nested(kind):
        return NESTED
    if _is_view(kind) or types.is_string(kind) or types.is_large_string(kind):
        return TEXT
    plain = (types.is_integer, types.is_floating, types.is_boolean, types.is_null)
    times = (types.is_timestamp, types.is_duration, types.is_dictionary)
    return NUMBER if any(test(kind) for test in (*plain, *times)) else OBJECT


def _is_view(kind):
    from pyarrow import types

    return types.is_string_view(kind) or types.is_binary_view(kind)


def _check_types(path, schema):
    """Raise TypeError if the size of a column does not follow from the sizes of its buffers."""
    from pyarrow import types

    tests = (types.is_run_end_encoded, types.is_list_view, types.is_large_list_view)
    unknown = [
        f"{name!r} ({kind})"
        for name, kind in zip(schema.names, schema.types, strict=True)
        for depth, part in enumerate(_parts(kind))
        if any(test(part) for test in tests) or (depth and _is_view(part))
    ]
    if unknown:
        raise TypeError(f"unsupported column types: {listed(unknown, str)}")


def _needed_by_views(table):
    """Estimate the bytes of the text of view columns.

    In Arrow, several views may share the same bytes; in pandas, each value has its own copy.
    """
    needed = 0
    chunks = (chunk for column in table.columns for chunk in column.chunks)
    for chunk in chunks:
        if _is_view(chunk.type) and len(chunk):
            lengths = np.frombuffer(chunk.buffers()[1], dtype=np.int32)[::4]
            needed += 2 * int(lengths[chunk.offset :][: len(chunk)].sum(dtype=np.int64))
    return needed
