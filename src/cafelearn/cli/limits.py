"""Memory limits for tables, checked before their memory is allocated.

A small file can describe a huge table: repetitions compress a thousandfold, and missing cells
take no space at all. A table may take up to `ALWAYS` bytes of memory, whatever the size of its
file. A larger table may take at most `RATIO` times the size of its file, which is far more than
ordinary files need, and never more than the memory of the computer.
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
    """Raise ValueError if a table needs more memory than it may take.

    `needed` is the estimated memory of the table in bytes or, if the table is read in parts,
    that of one part. `advice` is a sentence appended to the error.
    """
    if needed > ALWAYS and needed > allowed(path):
        raise too_large(path, needed, advice, "about")


def allowed(path):
    """Return the number of bytes that the table of a file or directory may take."""
    return min(max(ALWAYS, RATIO * _size(path)), memory())


def too_large(path, needed, advice="", how="more than"):
    """Make the ValueError for a table that needs `how` `needed` bytes."""
    words = f"would need {how} {needed / 1e9:.1f} GB"
    if needed >= memory():
        return ValueError(f"{path} was not read: it {words}, more than this computer's memory.")
    return ValueError(
        f"{path} was not read: it has {_size(path):,} bytes and {words}, which is too much for "
        f"a file of this size. {advice}".rstrip()
    )


def _size(path):
    """Return the size in bytes of a file, or of all files in a directory."""
    if not os.path.isdir(path):
        return os.path.getsize(path)
    folders = os.walk(path)
    return sum(
        os.path.getsize(os.path.join(top, name)) for top, _, names in folders for name in names
    )


def memory():
    """Return the memory of this computer in bytes; if it is unknown, a number beyond it."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 1 << 62


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
