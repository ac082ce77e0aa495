"""Memory limits for tables, checked before decompression.

A small file can describe a huge table: repetitions compress a thousandfold, and missing cells
take no space at all. The memory of a table is therefore estimated from the headers of its file,
or from the number of its lines and delimiters. A table may take up to `ALWAYS` bytes, whatever
the size of its file. A larger table may take at most `RATIO` times the size of its file, which
is far more than ordinary files need.
"""

import gzip
import os
from typing import NamedTuple

ALWAYS = 640 << 20
RATIO = 1000
BLOCK = 1 << 20  # bytes or characters to read at a time
# Estimated bytes that parsers and pandas take together: per text cell, per column and per byte
# of JSON. Even the shortest JSON values become objects of 64 bytes.
CELL, COLUMN, JSON_BYTE = 48, 2_000, 25
LINE_ENDS = (b"\n", b"\r")


def check_memory(path, needed, advice=""):
    """Raise ValueError if a table needs too much memory for its file size or for this computer.

    `needed` is the estimated memory of the table in bytes or, if the table is read in parts,
    that of one part. `advice` is a sentence appended to the error if the table is too large for
    its file.
    """
    if needed > memory():
        raise ValueError(
            f"{path} was not read: it would need about {needed / 1e9:.1f} GB, more than this "
            "computer's memory."
        )
    if needed <= ALWAYS:
        return
    files = path.rglob("*") if path.is_dir() else [path]
    size = sum(file.stat().st_size for file in files if file.is_file())
    if needed > RATIO * size:
        raise ValueError(
            f"{path} was not read: it has {size:,} bytes and would need about "
            f"{needed / 1e9:.1f} GB, more than {RATIO:,} times as much. {advice}".rstrip()
        )


def memory():
    """Return the memory of this computer in bytes, or infinity if it is unknown."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return float("inf")


class Text(NamedTuple):
    """Counts of an unpacked text file."""

    size: int  # bytes
    lines: int  # number of line ends, plus one

    def needed(self, n_columns):
        """Estimate the bytes of a table of `n_columns` columns.

        Each line counts as `n_columns` cells, because pandas fills up short lines.
        """
        return 2 * self.size + (CELL * self.lines + COLUMN) * n_columns


def survey(path, compressed, delimiters):
    """Count the bytes and lines of a text file; raise if its table would need too much memory.

    `delimiters` is empty for JSON lines.
    """
    advice = "If it really is this large, decompress the file first." if compressed else ""
    marks = [*LINE_ENDS, *(delimiter.encode() for delimiter in delimiters)]
    size = lines = cells = 0
    with gzip.open(path) if compressed else open(path, "rb") as file:
        while block := file.read(BLOCK):
            counts = [block.count(mark) for mark in marks]
            size += len(block)
            lines += sum(counts[: len(LINE_ENDS)])
            cells += sum(counts)
            needed = 2 * size + CELL * cells if delimiters else JSON_BYTE * size
            check_memory(path, needed, advice)
    return Text(size, lines + 1)
