"""Read a table from a file that may be malformed.

Column names are repaired: if the third name is empty, it becomes ``column 3``, and the second
of two columns named ``size`` becomes ``size (2)``. The repair depends only on the header, so
files with the same header get the same names in fit and transform.
"""

import codecs
import csv
import gzip
import itertools
import json
import re
import zlib
from pathlib import Path

from cafelearn.base.words import listed
from cafelearn.cli.arrow import read_arrow
from cafelearn.cli.limits import BLOCK, CELL, check_memory, survey
from cafelearn.cli.options import Reading, column_names
from cafelearn.cli.reading_code import other_code, text_code
from cafelearn.cli.text_columns import tidy, unused_columns
from cafelearn.cli.writing import kind_of
from cafelearn.tables.texts import PADDED

DELIMITERS = (",", ";", "\t", "|")
WORDS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
# Delimiters that are too common in texts to be detected, and their names.
UNLIKELY = {" ": "spaces", ":": "colons"}
SAMPLE = 20  # lines to inspect before reading
CODE = 64  # overlap of blocks, in characters, in the search for leading zeros
PLAIN = Reading()
# By default, the module csv refuses cells of more than 131,072 characters.
csv.field_size_limit(2**31 - 1)


def read_table(path, reading=PLAIN, remark=lambda text: None, trace=None):
    """Read a file as a data frame with distinct column names.

    `remark` is called with a sentence for each repair or guess. The dict `trace` gets the
    equivalent pandas code under "code" and, for text files, the result of `tidy` under "found".
    """
    path, trace = Path(path), {} if trace is None else trace
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory; a single file is needed.")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    if not path.is_file():
        raise ValueError(
            f"{path} is a pipe or a device; a file is needed, because it is read several times."
        )
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty.")
    kind, compressed = kind_of(path)
    try:
        if kind in ("csv", "tsv"):
            frame = _read_text(path, kind, compressed, reading, remark, trace)
        elif kind == "jsonl":
            frame = _read_json_lines(path, compressed, reading.row_id)
        else:
            frame = _with_index(read_arrow(path, kind, reading.row_id), remark, trace)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is truncated or not a gzip file: {error}.") from error
    given, has_index = list(frame.columns), trace.pop("has_index", False)
    frame.columns = repaired(given, remark)
    if "code" not in trace:
        trace["code"] = other_code(path, given, frame.columns, has_index=has_index)
    if not len(frame.columns):
        raise ValueError(f"{path} has no columns.")
    if not len(frame):
        raise ValueError(f"{path} has a header but no rows.")
    return frame.reset_index(drop=True)


def read_and_tell(run, path, reading, tell):
    """Read a table, record its size in the facts of the run, and report it with `tell`.

    Return the table and the `trace` of `read_table`.
    """
    trace = {}
    frame = read_table(path, reading, run.remark, trace)
    run.facts["data"] = {"path": path, "rows": len(frame), "columns": frame.shape[1]}
    tell(f"Read {path}: {len(frame):,} rows, {frame.shape[1]:,} columns")
    return frame, trace


def repaired(names, remark):
    """Make column names nonempty and distinct."""
    out, changed = [], []
    taken = {str(name).strip() for name in names}
    seen = set()
    for place, name in enumerate(names, start=1):
        given = new = "" if name is None else str(name).strip()
        if not given:
            new = f"column {place}"
        count = 1
        while new in seen or (count > 1 and new in taken):
            count += 1
            new = f"{given or f'column {place}'} ({count})"
        if new != given:
            changed.append(f"{given!r} (column {place}) is now {new!r}")
        seen.add(new)
        out.append(new)
    if changed:
        remark(f"Empty or repeated column names: {listed(changed, str, most=4)}.")
    return out


def _read_text(path, kind, compressed, reading, remark, trace):
    import pandas as pd

    delimiters = {*DELIMITERS, reading.delimiter or ","}
    text = survey(path, compressed, delimiters)
    encoding = _encoding(path, compressed, remark)
    with _open(path, compressed, encoding) as file:
        lines = list(itertools.islice(file, SAMPLE))
    delimiter = reading.delimiter or _delimiter(lines, "\t" if kind == "tsv" else ",", remark)
    rows = _parse(path, lines, delimiter)
    if not rows:
        raise ValueError(f"{path} has only empty lines.")
    (_, header), data = rows[0], rows[1:]
    check_memory(path, text.needed(len(header)))
    if not reading.header:
        header, data = [f"column {v + 1}" for v in range(len(header))], rows
    elif all(_is_number(name) for name in header):
        remark("The first line contains only numbers. If it is data, use --no-header.")
    for line, row in data:
        if len(row) > len(header):
            raise ValueError(_too_many(path, line, len(row), len(header)))
    names = repaired(header, remark)
    spaces = any(f"{delimiter} " in line for line in lines)
    options = {
        "sep": delimiter,
        "names": names,
        "header": 0 if reading.header else None,
        "index_col": False,
        "decimal": reading.decimal,
        # Only empty cells and the texts of --missing are missing here; `tidy` finds others.
        "keep_default_na": False,
        "na_values": ["", *reading.missing],
        "encoding": encoding,
        "compression": "gzip" if compressed else None,
        "skipinitialspace": True,
        "low_memory": False,
        "on_bad_lines": "error",
    }
    try:
        frame = pd.read_csv(path, **options)
    except pd.errors.EmptyDataError:
        raise ValueError(f"{path} has a header but no rows.") from None
    except pd.errors.ParserError as error:
        raise ValueError(_parser_words(path, str(error))) from None
    if frame.iloc[:, -1].isna().any():
        _remark_short(path, compressed, encoding, delimiter, len(header), remark)
    is_padded = has_padding(path, compressed, encoding, delimiter)
    texts = _restore_texts(frame, path, options, reading, is_padded, remark)
    trace["found"] = tidy(frame, reading, delimiter, remark)
    trace["code"] = text_code(
        path,
        delimiter,
        reading,
        encoding,
        header=header,
        frame=frame,
        spaces=spaces,
        texts=texts,
        found=trace["found"],
    )
    return frame


def _remark_short(path, compressed, encoding, delimiter, wanted, remark):
    """Remark on rows with fewer fields than the header."""
    with _open(path, compressed, encoding) as file:
        reader = _rows(file, delimiter)
        lines = [reader.line_num for row in reader if 0 < len(row) < wanted]
    if lines:
        rows = "1 row has" if len(lines) == 1 else f"{len(lines):,} rows have"
        remark(
            f"{rows} fewer than {wanted} fields, the first in line {lines[0]:,}; the missing "
            "fields are read as missing values."
        )


def _restore_texts(frame, path, options, reading, is_padded, remark):
    """Restore the texts of columns that pandas has read as numbers or truth values.

    These are row names, categories of a fitted model, and codes, for example postal codes.
    Return the names of the columns.
    """
    import pandas as pd

    kinds = {name: dtype.kind for name, dtype in frame.dtypes.items() if dtype.kind in "biuf"}
    unused = unused_columns(reading, frame.columns)
    row_id = reading.row_id if reading.row_id in unused else None
    numeric = set(column_names(reading.numeric, frame.columns))
    wanted = [name for name in kinds if name == row_id or name in reading.categories]
    if is_padded:
        numbers = [name for name, kind in kinds.items() if kind != "b" and name not in numeric]
        wanted = [*dict.fromkeys([*wanted, *numbers])]
    if not wanted:
        return []
    texts = pd.read_csv(path, **options, usecols=wanted, dtype=str)
    restored, told = [], []
    for name in wanted:
        text = texts[name].dropna().drop_duplicates().str.strip()
        padded = text[text.str.fullmatch(PADDED)]
        if name == row_id:
            is_same = frame[name].astype(str).equals(texts[name].str.strip())
            is_text = kinds[name] != "i" or not is_same
        elif name in reading.categories:
            is_text = True
        else:
            is_text = len(padded) and text.str.fullmatch("[0-9]+").all()
            if is_text and name not in unused:
                told.append(f"{name!r} ({padded.iloc[0]!r})")
        if is_text:
            frame[name] = texts[name]
            restored.append(name)
    if told:
        remark(
            f"Kept as text because of leading zeros: {listed(told, str, most=4)}. Use "
            "--numeric to read a column as numbers."
        )
    return restored


def has_padding(path, compressed, encoding, delimiter):
    """Check whether any cell looks like a whole number with leading zeros."""
    ends = re.escape(delimiter) + r'"\r\n'
    pattern, tail = re.compile(rf"(?:^|[{ends}]) *0[0-9]+ *(?=[{ends}]|$)"), ""
    with _open(path, compressed, encoding) as file:
        while block := file.read(BLOCK):
            if pattern.search(tail + block):
                return True
            tail = block[-CODE:]
    return False


def _open(path, compressed, encoding):
    if compressed:
        return gzip.open(path, "rt", encoding=encoding, newline="")
    return open(path, encoding=encoding, newline="")


def _encoding(path, compressed, remark):
    """Detect a Unicode encoding; fall back to Latin-1, which can decode any file."""
    with gzip.open(path) if compressed else open(path, "rb") as file:
        block = file.read(BLOCK)
        # Test UTF-32 first: its byte order mark may begin with that of UTF-16.
        if block.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
            return "utf-32"
        if block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            while block:
                if b"\0" in block:
                    raise ValueError(f"{path} is not text: it contains null bytes.")
                decoder.decode(block)
                block = file.read(BLOCK)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            remark(f"{path.name} is not UTF-8; it was read as Latin-1.")
            return "latin-1"
    return "utf-8-sig"


def _delimiter(lines, usual, remark):
    """Return the usual delimiter, or another one that fits the first lines better.

    A delimiter fits if it splits all lines into the same number of fields, at least two. If no
    delimiter fits and the usual one does not split the first line, one that does is returned.
    If there is none, but spaces or colons fit, there is a remark.
    """

    def widths(delimiter):
        try:
            return [len(row) for row in _rows(lines, delimiter) if row]
        except csv.Error:
            return [1]

    def splits(delimiter):
        found = widths(delimiter)
        return bool(found) and found[0] > 1 and len(set(found)) == 1

    found = widths(usual)
    if splits(usual):
        return usual
    others = [other for other in DELIMITERS if other != usual and splits(other)]
    if not others and found[:1] == [1]:
        others = [other for other in DELIMITERS if widths(other)[:1] > [1]]
    if not others:
        for other in filter(splits, UNLIKELY if found[:1] == [1] else ()):
            remark(
                f"Read as one column. If {UNLIKELY[other]} separate the columns, use "
                f"--delimiter '{other}'."
            )
        return usual
    best = max(others, key=lambda other: widths(other)[0])
    remark(f"Detected {WORDS[best]} as the delimiter.")
    return best


def _parse(path, lines, delimiter):
    """Return the nonempty rows among the first lines, each with the number of its last line."""
    reader = _rows(lines, delimiter)
    try:
        return [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num}: {error}.") from None


def _rows(lines, delimiter):
    """Return a reader of rows; the rows of lines that pandas skips, too, are empty."""
    there = (line if line.strip(" \r\n") else line.strip(" ") for line in lines)
    return csv.reader(there, delimiter=delimiter, skipinitialspace=True)


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def _too_many(path, line, found, wanted):
    return (
        f"{path}, line {line} has {found} fields, but the header has {wanted}. "
        "Quote fields that contain the delimiter, or set --delimiter."
    )


def _parser_words(path, message):
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", message)
    if found:
        wanted, line, saw = map(int, found.groups())
        return _too_many(path, line, saw, wanted)
    if "EOF inside string" in message:
        return f'{path}: a quote (") is opened and never closed.'
    return f"{path} cannot be read: {message.splitlines()[0]}"


def _read_json_lines(path, compressed, row_id):
    import pandas as pd

    survey(path, compressed, delimiters=())
    records, names = [], set()
    try:
        with _open(path, compressed, "utf-8-sig") as file:
            for line, text in enumerate(file, start=1):
                if text.strip():
                    record = json.loads(text)
                    if not isinstance(record, dict):
                        raise ValueError(f"{path}, line {line} is not a JSON object.")
                    records.append(record)
                    names.update(record)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {line} is not JSON: {error.msg}.") from None
    except RecursionError:
        raise ValueError(f"{path}, line {line} is nested too deeply.") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8, which JSON requires: {error.reason}.") from None
    if not records:
        raise ValueError(f"{path} has no rows.")
    check_memory(path, CELL * len(records) * len(names))
    frame = pd.DataFrame(records)
    if row_id in names and frame[row_id].dtype.kind == "f":
        # pandas has converted integers to floats.
        frame[row_id] = pd.Series([record.get(row_id) for record in records], dtype=object)
    return frame


def _with_index(frame, remark, trace):
    """Convert the index to a column, unless it only numbers the rows."""
    import pandas as pd

    if not isinstance(frame.index, pd.RangeIndex):
        frame, trace["has_index"] = frame.reset_index(), True
        remark(f"The index of the table is read as a column, {str(frame.columns[0])!r}.")
    return frame
