"""Read the unpacked sizes of Parquet pages from the page headers.

Arrow allocates as much memory as the header of a page states. This size need not agree with
the sizes in the footer of the file. Headers are structs in Thrift's compact protocol, defined
in parquet.thrift of the Parquet format.
"""

import io
from typing import NamedTuple

# Field numbers in a PageHeader and in the structs that it contains.
UNPACKED, PACKED, DATA, DICTIONARY, DATA_2 = 2, 3, 5, 7, 8
N_VALUES, ENCODING, ENCODING_2 = 1, 2, 4
SHARED_PREFIXES = 7  # the encoding DELTA_BYTE_ARRAY
# Type codes of Thrift's compact protocol.
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
# Field numbers on the path from the footer to the SizeStatistics of a column, and field numbers
# in the SizeStatistics.
ROW_GROUPS, COLUMNS, METADATA, SIZES = 4, 1, 3, 16
TEXT_BYTES, REPETITIONS, DEFINITIONS = 1, 2, 3
HEADER = 1 << 16  # bytes to read for a header; even a header with statistics is shorter


class Page(NamedTuple):
    """A page of a column."""

    size: int  # bytes when unpacked
    n_values: int  # 0 for a dictionary
    expands: bool  # whether decoded text may take more bytes than the page


def pages_of(path, metadata, groups):
    """Yield the index and the pages of each column of each row group in `groups`.

    `metadata` is pyarrow's metadata of the file. Raise ValueError if a header is damaged.
    """
    with open(path, "rb") as file:
        _check_sizes(path, file, metadata)
        for group in groups:
            columns = metadata.row_group(group)
            for number in range(columns.num_columns):
                chunk = columns.column(number)
                start = chunk.data_page_offset
                if chunk.has_dictionary_page and 0 < chunk.dictionary_page_offset < start:
                    start = chunk.dictionary_page_offset
                is_text = chunk.physical_type == "BYTE_ARRAY"
                try:
                    pages = [*_pages(file, start, start + chunk.total_compressed_size, is_text)]
                except (IndexError, KeyError, TypeError, RecursionError):
                    raise ValueError(
                        f"{path} cannot be read as parquet: the header of a page of column "
                        f"{chunk.path_in_schema!r} is damaged."
                    ) from None
                yield number, pages


def _check_sizes(path, file, metadata):
    """Raise ValueError if size statistics do not match their columns.

    Arrow would abort the process on such a file.
    """
    file.seek(-8, io.SEEK_END)
    length = int.from_bytes(file.read(4), "little")
    file.seek(-8 - length, io.SEEK_END)
    try:
        groups = _Reader(file.read(length)).struct()[ROW_GROUPS]
        sound = all(
            _fits(chunk.get(METADATA, {}).get(SIZES, {}), metadata.schema.column(number))
            for group in groups
            for number, chunk in enumerate(group[COLUMNS])
        )
    except (IndexError, KeyError, TypeError, AttributeError, RecursionError):
        sound = False
    if not sound:
        raise ValueError(f"{path} cannot be read as parquet: its footer is damaged.")


def _fits(sizes, column):
    levels = {
        REPETITIONS: column.max_repetition_level,
        DEFINITIONS: column.max_definition_level,
    }
    return (TEXT_BYTES not in sizes or column.physical_type == "BYTE_ARRAY") and all(
        len(sizes.get(field, ())) in (0, most + 1) for field, most in levels.items()
    )


def _pages(file, start, end, is_text):
    while start < end:
        file.seek(start)
        reader = _Reader(file.read(HEADER))
        header = reader.struct()
        if min(header[PACKED], header[UNPACKED]) < 0:
            raise IndexError("negative size")
        data = header.get(DATA) or header.get(DATA_2) or {}
        encoding = data.get(ENCODING_2 if DATA_2 in header else ENCODING)
        expands = is_text and (DICTIONARY in header or encoding == SHARED_PREFIXES)
        yield Page(header[UNPACKED], data.get(N_VALUES, 0), expands)
        start += reader.data.tell() + header[PACKED]


class _Reader:
    """Reader of values in Thrift's compact protocol."""

    def __init__(self, data):
        self.data = io.BytesIO(data)

    def struct(self):
        """Return a struct as a dict from field numbers to values."""
        fields, number = {}, 0
        while kind := self._byte():
            number = number + (kind >> 4) if kind >> 4 else self._integer()
            fields[number] = self._value(kind & 15)
        return fields

    def _value(self, kind):
        if kind in (TRUE, FALSE):
            return kind == TRUE
        if kind in (I16, I32, I64):
            return self._integer()
        if kind == STRUCT:
            return self.struct()
        if kind in (LIST, SET):
            head = self._byte()
            count = self._count() if head >> 4 == 15 else head >> 4
            element = BYTE if head & 15 in (TRUE, FALSE) else head & 15
            return [self._value(element) for _ in range(count)]
        lengths = {BYTE: lambda: 1, DOUBLE: lambda: 8, BINARY: self._count}
        length = lengths[kind]()
        found = self.data.read(length)
        if len(found) < length:
            raise IndexError("cut off")
        return found

    def _byte(self):
        return self.data.read(1)[0]

    def _count(self):
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise IndexError("number too long")

    def _integer(self):
        value = self._count()
        return value >> 1 ^ -(value & 1)
