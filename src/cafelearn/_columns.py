"""What the columns of a table hold, and which of them are used.

A column is judged by its `Look`, which adds up over disjoint rows, so that tables in memory and
the partitions of a Dask dataframe are judged alike.
"""

import re
from numbers import Number
from typing import NamedTuple

import numpy as np
import pandas as pd
from pandas.api import types

NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal", "empty")
DATES = ("datetime", "datetime64", "date")
ISO = r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?\s?(Z|[+-]\d\d(:?\d\d)?)?)?"
DAY = pd.Timedelta(days=1)

# Text with more distinct values than this share of the rows names rows, not kinds of rows.
DISTINCT = 0.5
FEW = 10
# Text of so many words on average is prose.
WORDS = 4
# So many hash values are kept; up to there distinct values are counted, beyond estimated (3%).
SKETCH = 1024
# Share of distinct values that stands for all where they are estimated.
NEARLY_ALL = 0.9
ID_NAME = re.compile(r"(^|[\W_])(?i:id|uuid|guid|key|index|row)$|[a-z](Id|ID)$")

NUMBER, CATEGORY, LEFT_OUT = "number", "category", "left out"


class Treatment(NamedTuple):
    """What is done with a column, and why."""

    kind: str  # number, date, duration, category, identifier, free text, constant or dropped
    treatment: str
    reason: str


class Look(NamedTuple):
    """What decides about the use of a column, from some of its rows."""

    n_values: int  # that are not missing
    is_whole: bool  # all rows have an integer
    low: float
    high: float
    n_words: int
    hashes: np.ndarray  # the smallest ones of the distinct values, ascending

    @property
    def n_distinct(self) -> int:
        """The number of distinct values, from SKETCH on an estimate."""
        if len(self.hashes) < SKETCH:
            return len(self.hashes)
        # Hashes are uniform: the last of the smallest tells how dense they are.
        return min(self.n_values, round((SKETCH - 1) * 2.0**64 / float(self.hashes[-1])))

    @property
    def is_distinct(self) -> bool:
        """Whether no value is there twice, as far as that can be told."""
        if len(self.hashes) < SKETCH:
            return len(self.hashes) == self.n_values
        return self.n_distinct >= NEARLY_ALL * self.n_values


def kind_of(column) -> str:
    """What a column holds: number, category, date, text date, duration, or another word."""
    dtype = column.dtype
    if types.is_object_dtype(dtype):
        found = types.infer_dtype(column, skipna=True)
        if found in NUMBERS:
            return "number"
        if found in DATES:
            return "date"
        there = column.dropna()
        if not there.map(lambda value: isinstance(value, str | Number | np.bool_)).all():
            return f"{found} values"
        return "text date" if found == "string" and _holds_dates(there) else "category"
    if isinstance(dtype, pd.CategoricalDtype) or types.is_bool_dtype(dtype):
        return "category"
    if types.is_string_dtype(dtype):
        return "text date" if _holds_dates(column.dropna()) else "category"
    if types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype):
        return "number"
    if types.is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype):
        return "date"
    return "duration" if types.is_timedelta64_dtype(dtype) else str(dtype)


def merged_kind(kinds) -> str:
    """The kind of a column whose parts have these kinds."""
    if len(kinds) == 1:
        return next(iter(kinds))
    texts = kinds & {"number", "category", "text date"}
    return "category" if texts == kinds else min(kinds - texts)


def _holds_dates(text):
    """Whether all of these texts are dates as ISO 8601 writes them."""
    if not len(text) or not re.fullmatch(ISO, str(text.iloc[0]).strip()):
        return False
    distinct = text.drop_duplicates().astype(str).str.strip()
    if not distinct.str.fullmatch(ISO).all():
        return False
    return bool(
        pd.to_datetime(distinct, format="ISO8601", utc=True, errors="coerce").notna().all()
    )


def as_days(column) -> np.ndarray:
    """Dates as days since the beginning of 1970 (UTC), durations as days.

    Dates without a time zone are taken for UTC. Missing ones are NaN, and what is no date
    raises a ValueError.
    """
    if types.is_timedelta64_dtype(column.dtype):
        return (column / DAY).to_numpy(dtype=np.float64)
    if isinstance(column.dtype, pd.PeriodDtype):
        column = column.dt.to_timestamp()
    if types.is_datetime64_any_dtype(column.dtype):
        times = pd.to_datetime(column, utc=True)
    else:
        if types.infer_dtype(column, skipna=True) == "string":
            column = column.str.strip()
        elif types.is_numeric_dtype(column.dtype) and column.notna().any():
            # pandas would take numbers for nanoseconds.
            raise ValueError("numbers are no dates")
        times = pd.to_datetime(column, format="ISO8601", utc=True)
    # Nanoseconds end in 2262, which is too early for dates that stand for never.
    moments = times.dt.tz_convert(None).to_numpy(dtype="datetime64[us]")
    return (moments - np.datetime64(0, "us")) / np.timedelta64(1, "D")


def not_dates(column):
    """The values of a column that :func:`as_days` refuses."""
    there = column.dropna()
    return there[[not _is_date(value) for value in there]]


def _is_date(value):
    try:
        as_days(pd.Series([value]))
    except (TypeError, ValueError):
        return False
    return True


def look_at(column, kind, texts=None) -> Look:
    """The Look of some rows.

    `texts` are the distinct values of a column of categories, and of one whose other rows
    may show that it is one.
    """
    n_values, n_words, low, high = int(column.notna().sum()), 0, np.inf, -np.inf
    numbers = _whole_numbers(column) if kind == "number" else None
    hashes = np.empty(0, dtype=np.uint64)
    if numbers is not None:
        low, high = int(numbers.min()), int(numbers.max())
        hashes = _smallest(pd.util.hash_array(numbers))
    if texts is not None:
        hashes = _smallest(pd.util.hash_array(np.array(texts, dtype=object)))
        counts = column.value_counts(sort=False)
        words = [len(str(value).split()) for value in counts.index]
        n_words = int(np.dot(words, counts.to_numpy(dtype=np.int64)))
    return Look(n_values, numbers is not None, low, high, n_words, hashes)


def _whole_numbers(column):
    """The values of a column of integers, or None if it is none, lacks some or has no rows."""
    if not len(column) or column.hasnans:
        return None
    if types.is_object_dtype(column.dtype):
        if types.infer_dtype(column, skipna=False) != "integer":
            return None
        column = pd.to_numeric(column)
    # Beyond 2^63 numbers do not count rows.
    if not types.is_integer_dtype(column.dtype) or column.max() >= 2**63:
        return None
    return column.to_numpy(dtype=np.int64)


def _smallest(hashes):
    if len(hashes) > 64 * SKETCH:
        # Most rows are distinct or few values are: both need no table of all hashes.
        few = pd.unique(hashes[hashes < np.uint64(2**64 // len(hashes) * 4 * SKETCH)])
        if len(few) >= SKETCH:
            return np.sort(few)[:SKETCH]
    return np.sort(pd.unique(hashes))[:SKETCH]


def merge_looks(looks) -> Look:
    """The Look of all rows from those of disjoint parts."""
    return Look(
        sum(look.n_values for look in looks),
        all(look.is_whole for look in looks),
        min(look.low for look in looks),
        max(look.high for look in looks),
        sum(look.n_words for look in looks),
        _smallest(np.concatenate([look.hashes for look in looks])),
    )


def judge(name, kind, look, n_rows, max_categories, *, wanted=None) -> Treatment | None:
    """What to do with a column; None for categories that are too many.

    `wanted` is "number" or "category" if the user has said what the column is.
    """
    if wanted == CATEGORY or (kind == "category" and wanted is None):
        return _judge_texts(look, max_categories, is_wanted=wanted is not None)
    if kind in ("date", "text date"):
        return Treatment("date", NUMBER, "dates, as days since 1970-01-01")
    if kind == "duration":
        return Treatment("duration", NUMBER, "durations, as days")
    if wanted is None and look.is_whole and n_rows > FEW and look.is_distinct:
        if look.high - look.low == n_rows - 1:
            why = f"counts the rows, from {look.low} to {look.high}"
            return Treatment("identifier", LEFT_OUT, why)
        if ID_NAME.search(name):
            why = "whole numbers under such a name, all different"
            return Treatment("identifier", LEFT_OUT, why)
    return Treatment("number", NUMBER, "numbers")


def _judge_texts(look, max_categories, *, is_wanted):
    n_distinct, n_values = look.n_distinct, look.n_values
    found = f"{n_distinct:,} distinct values in {n_values:,} rows"
    is_prose = look.n_words >= WORDS * n_values
    is_many = n_distinct > max_categories
    if not is_wanted:
        is_many_of_all = n_distinct > max(FEW, DISTINCT * n_values)
        if is_prose and (is_many or is_many_of_all):
            return Treatment("free text", LEFT_OUT, found)
        if is_many_of_all:
            return Treatment("identifier", LEFT_OUT, found)
    if is_many:
        return None
    return Treatment("category", CATEGORY, f"{n_distinct:,} categories")
