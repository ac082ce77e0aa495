"""Read Parquet and Feather files of any origin, within limits of memory.

Arrow allocates as many bytes as the headers of a file claim, and does not check the offsets in
a Feather file. Both are checked here: sizes before anything is unpacked, offsets before
anything is converted.
"""

import struct
from contextlib import contextmanager

import numpy as np

from cafelearn._words import listed
from cafelearn.cli.limits import check_memory
from cafelearn.cli.parquet_pages import pages_of

# Bytes that text of one batch of rows may expand to, and the most rows of a batch.
EXPANDED, ROWS = 128 << 20, 65_536
# Bytes of a cell in Arrow and pandas together: of numbers, of text, of other Python objects,
# and of objects that hold others.
NUMBER, TEXT, OBJECT, NESTED = 16, 64, 128, 256
FEATHER = b"ARROW1\0\0"
PARTS = "If that is right, put it in a directory to read it in parts."
GROUPS = "If that is right, write it with smaller row groups."


def read_arrow(path, kind):
    """The data frame in a Parquet or Feather file."""
    read = _read_parquet if kind == "parquet" else _read_feather
    with reading(path, kind):
        table = read(path)
        table.validate(full=True)
        check_memory(path, table.nbytes + _needed_by_views(table))
        return table.to_pandas()


def read_row_group(path, number, columns):
    """Some columns of a row group of a Parquet file, as a table of Arrow."""
    with reading(path, "parquet"):
        table = _read_parquet(path, [number], columns, GROUPS)
        table.validate(full=True)
        return table


@contextmanager
def reading(path, kind):
    """Raise what Arrow raises in the body as an error of one line that names the file."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError(
            "Reading Parquet and Feather needs the package pyarrow: "
            "pip install 'cafelearn[cli]'."
        ) from error
    try:
        yield
    # Damaged pandas metadata raises lookup and type errors; damaged sizes raise errors of
    # memory, integers and headers.
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
    """Read in batches, because repeated text expands when it is converted.

    `groups` and `columns` are those to read, all if not given.
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
    """Bytes of a cell of each column that is not nested, by its path in a Parquet file."""
    found = {}
    is_nested = any(kind.num_fields for kind in schema.types)
    for name, kind in zip(schema.names, schema.types, strict=True):
        # A name with a dot looks like a field of a nested column.
        cell = NESTED if is_nested and "." in name else _cell(kind)
        found[name] = max(found.get(name, 0), cell)
    return found


def _read_feather(path):
    """Read the messages of a Feather file in order, because its footer may be damaged."""
    import pyarrow as pa
    from pyarrow import feather, ipc

    # Read from memory, where Arrow only takes slices. From a file it would allocate as many
    # bytes as the lengths in it claim.
    with pa.BufferReader(path.read_bytes()) as source:
        if source.read(len(FEATHER)) != FEATHER:
            return feather.read_table(path)  # the first version, which has no compression
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
    """Lengths of all arrays of a message, nested ones included, and bytes of their buffers.

    See the definitions Message.fbs and Schema.fbs of Arrow.
    """
    data, body = message.metadata.to_pybytes(), message.body
    batch = _target(data, _field(data, _target(data, 0), 2))
    if message.type == "dictionary":
        batch = _target(data, _field(data, batch, 1))
    nodes, buffers = (_pairs(data, _field(data, batch, number)) for number in (1, 2))
    is_packed, size = _field(data, batch, 3) is not None, 0
    for start, length in buffers:
        # A packed buffer begins with its unpacked length, or with -1 if it is not compressed.
        unpacked = struct.unpack_from("<q", body, start)[0] if is_packed and length else -1
        size += length if unpacked < 0 else unpacked
    return [length for length, _ in nodes], size


def _field(data, table, number):
    """Position of a field of a FlatBuffers table, or None."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    if 4 + 2 * number >= struct.unpack_from("<H", data, vtable)[0]:
        return None
    offset = struct.unpack_from("<H", data, vtable + 4 + 2 * number)[0]
    return table + offset if offset else None


def _target(data, place):
    """Target of an offset in a FlatBuffers message."""
    return place + struct.unpack_from("<I", data, place)[0]


def _pairs(data, place):
    """A vector of structs of two 64-bit integers; none if the field is not there."""
    if place is None:
        return []
    start = _target(data, place)
    (count,) = struct.unpack_from("<I", data, start)
    start += 4 + -(start + 4) % 8  # aligned
    return [struct.unpack_from("<qq", data, start + 16 * each) for each in range(count)]


def _parts(kind):
    """A type and those of the arrays inside of it, in the order of Arrow's messages."""
    yield kind
    for number in range(kind.num_fields):
        yield from _parts(kind.field(number).type)


def _cell(kind):
    """Bytes that a value of this type takes in Arrow and pandas together."""
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
    """Raise if the size of a column cannot be computed from its parts."""
    from pyarrow import types

    tests = (types.is_run_end_encoded, types.is_list_view, types.is_large_list_view)
    unknown = [
        f"{name!r} ({kind})"
        for name, kind in zip(schema.names, schema.types, strict=True)
        for depth, part in enumerate(_parts(kind))
        if any(test(part) for test in tests) or (depth and _is_view(part))
    ]
    if unknown:
        raise TypeError(f"unsupported types of columns, {listed(unknown, str)}")


def _needed_by_views(table):
    """Bytes of text in columns of views, which may all refer to the same bytes."""
    needed = 0
    chunks = (chunk for column in table.columns for chunk in column.chunks)
    for chunk in chunks:
        if _is_view(chunk.type) and len(chunk):
            lengths = np.frombuffer(chunk.buffers()[1], dtype=np.int32)[::4]
            needed += 2 * int(lengths[chunk.offset :][: len(chunk)].sum(dtype=np.int64))
    return needed
