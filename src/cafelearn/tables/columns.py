"""The kind of each column of a table, and its treatment.

The treatment is decided from a summary of the column, its `Look`. The summaries of disjoint
rows can be merged, so tables in memory and Dask dataframes are treated alike.
"""

import re
from numbers import Number
from typing import NamedTuple

import numpy as np
import pandas as pd
from pandas.api import types

from cafelearn.tables.texts import (
    CODE,
    ISO,
    LIKE_DATE,
    LIKE_NUMBER,
    LIKE_NUMERAL,
    MOST_UNITS,
    OTHER,
    PLAIN,
    is_marker,
    is_number,
    likeness,
)

NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal", "empty")
DATES = ("datetime", "datetime64", "date")
DURATIONS = ("timedelta", "timedelta64")
# At most this many texts of each of these kinds are kept as examples for messages.
NAMED = 3

# Number of hashes kept to count distinct values. Below this number the count is exact; from
# there on it is an estimate with an error of about 3%.
SKETCH = 1024
# All values count as distinct if the estimated number of distinct values is at least this share
# of the number of values.
NEARLY_ALL = 0.9
NUMBER, CATEGORY, LEFT_OUT = "number", "category", "left out"
# Unit of the values of a column of this kind, if it is not a column of categories.
UNITS = {
    **{"number": NUMBER, "text number": NUMBER, "duration": "duration"},
    **{"date": "date", "text date": "date"},
}


class Treatment(NamedTuple):
    """Treatment of a column and its reason."""

    kind: str  # number, date, duration, category, identifier, free text, constant or dropped
    treatment: str
    reason: str


class Look(NamedTuple):
    """Summary of some rows of a column, from which its treatment is decided."""

    n_values: int  # number of values that are not missing
    is_whole: bool  # whether the value of every row is an integer
    low: float  # smallest integer, defined only if is_whole
    high: float  # largest integer, defined only if is_whole
    n_words: int  # number of words in all texts
    hashes: np.ndarray  # smallest hashes of the distinct values, ascending
    n_numbers: int = 0  # number of texts that are numbers
    texts: tuple = ()  # up to NAMED texts of each kind, see `likeness`
    n_dates: int = 0  # number of texts that may be dates
    n_likes: int = 0  # number of other texts that may be numbers
    units: tuple = ()  # up to MOST_UNITS + 1 of their units

    @property
    def n_distinct(self) -> int:
        """Number of distinct values, estimated if there are SKETCH or more."""
        if len(self.hashes) < SKETCH:
            return len(self.hashes)
        # Hashes are uniform on [0, 2^64), so the largest one kept gives their density.
        return min(self.n_values, round((SKETCH - 1) * 2.0**64 / float(self.hashes[-1])))

    @property
    def is_distinct(self) -> bool:
        """Whether all values are distinct; judged from `n_distinct` if it is an estimate."""
        if len(self.hashes) < SKETCH:
            return len(self.hashes) == self.n_values
        return self.n_distinct >= NEARLY_ALL * self.n_values

    @property
    def others(self) -> list[str]:
        """Up to NAMED texts that are not plain numbers, codes with leading zeros first."""
        return self.named(CODE, OTHER, LIKE_DATE, LIKE_NUMERAL)

    @property
    def is_nearly_numbers(self) -> bool:
        """Whether more than half of the values, but not all, are plain numbers.

        False if there are codes with leading zeros.
        """
        others = self.others
        return bool(others) and not self.named(CODE) and self.n_values < 2 * self.n_numbers

    @property
    def are_likely_numbers(self) -> bool:
        """Whether more than half of the values, and of those not plain, may be numbers.

        False if there are codes with leading zeros, or too many units.
        """
        return (
            not self.named(CODE)
            and len(self.units) <= MOST_UNITS
            and self.n_values < 2 * (self.n_numbers + self.n_likes)
            and self.n_values - self.n_numbers < 2 * self.n_likes
        )

    @property
    def are_likely_dates(self) -> bool:
        """Whether more than half of the values may be dates."""
        return self.n_values < 2 * self.n_dates

    def named(self, *kinds) -> list[str]:
        """Return up to NAMED texts of these kinds, see `likeness`, in the order of `texts`."""
        return [text for text in self.texts if likeness(text) in kinds][:NAMED]


def kind_of(column) -> str:
    """Return the kind of a column.

    The kinds are "number", "text number", "category", "date", "text date", "duration" and
    "markers" (only texts that mark missing values). For any other column, return the name of
    its dtype or, if it holds objects, a description such as "list values".
    """
    dtype = column.dtype
    if types.is_object_dtype(dtype):
        found = types.infer_dtype(column, skipna=True)
        if found in NUMBERS:
            return "number"
        if found in DATES:
            return "date"
        if found in DURATIONS:
            return "duration"
        there = column.dropna()
        if not there.map(_is_text_or_number).all():
            if found == "mixed":
                first, *others = there.map(type).unique()
                found = f"{first.__name__} and other" if others else first.__name__
            return f"{found} values"
        if found == "string" and _holds_dates(there):
            return "text date"
        return _kind_of_texts(there)
    if isinstance(dtype, pd.CategoricalDtype) or types.is_bool_dtype(dtype):
        return "category"
    if types.is_string_dtype(dtype):
        there = column.dropna()
        return "text date" if _holds_dates(there) else _kind_of_texts(there)
    if types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype):
        return "number"
    if types.is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype):
        return "date"
    return "duration" if types.is_timedelta64_dtype(dtype) else str(dtype)


def merged_kind(kinds) -> str:
    """Return the kind of a column whose parts have these kinds."""
    if len(kinds) == 1:
        kind = next(iter(kinds))
        return "category" if kind == "markers" else kind
    kinds = kinds - {"markers"}
    if kinds <= {"number", "text number"}:
        return "text number"
    texts = kinds & {"number", "text number", "category", "text date"}
    return "category" if texts == kinds else min(kinds - texts)


def _kind_of_texts(values):
    """Return "text number" if all values other than markers are numbers, else "category".

    If all values are markers, return "markers".
    """
    n_numbers = 0
    for value in values.drop_duplicates():
        if isinstance(value, bool | np.bool_):
            return "category"
        if not isinstance(value, str) or is_number(value):
            n_numbers += 1
        elif not is_marker(value):
            return "category"
    return "text number" if n_numbers else "markers"


def _is_text_or_number(value):
    return isinstance(value, str | Number | np.bool_) and not np.iscomplexobj(value)


def _holds_dates(text):
    """Check whether all values are ISO 8601 dates."""
    if not len(text) or not re.fullmatch(ISO, str(text.iloc[0]).strip()):
        return False
    distinct = text.drop_duplicates().astype(str).str.strip()
    if not distinct.str.fullmatch(ISO).all():
        return False
    return bool(
        pd.to_datetime(distinct, format="ISO8601", utc=True, errors="coerce").notna().all()
    )


def look_at(column, kind, texts=None) -> Look:
    """Summarise some rows of a column.

    `texts` are the distinct values as text. They are needed if the column, or another part of
    it, may contain categories.
    """
    n_values, n_words, low, high = int(column.notna().sum()), 0, np.inf, -np.inf
    numbers = _whole_numbers(column) if kind in ("number", "text number") else None
    n_numbers, named, n_dates, n_likes, units = 0, (), 0, 0, ()
    hashes = np.empty(0, dtype=np.uint64)
    if numbers is not None:
        low, high = int(numbers.min()), int(numbers.max())
        hashes = _smallest(pd.util.hash_array(numbers))
    if texts is not None:
        hashes = _smallest(pd.util.hash_array(np.array(texts, dtype=object)))
        counts = column.value_counts(sort=False)
        n_of_each = counts.to_numpy(dtype=np.int64)
        stripped = [str(value).strip() for value in counts.index]
        n_words = int(np.dot([len(text.split()) for text in stripped], n_of_each))
        if not isinstance(column.dtype, pd.CategoricalDtype):
            found = np.array([likeness(text) for text in stripped], dtype=np.int64)
            n_numbers, n_dates, n_likes = (
                int(n_of_each[found == like].sum()) for like in (PLAIN, LIKE_DATE, LIKE_NUMERAL)
            )
            named = _named(stripped, found)
            units = _units(
                match["unit"]
                for text, like in zip(stripped, found, strict=True)
                if like == LIKE_NUMERAL and (match := LIKE_NUMBER.fullmatch(text))
            )
    return Look(
        *(n_values, numbers is not None, low, high, n_words, hashes),
        *(n_numbers, named, n_dates, n_likes, units),
    )


def _named(texts, kinds):
    """Return the first NAMED distinct texts of each kind, ordered by kind."""
    kept = [set() for _ in range(PLAIN + 1)]
    for text, kind in zip(texts, kinds, strict=True):
        kept[kind].add(text)
    return tuple(text for found in kept for text in sorted(found)[:NAMED])


def _units(units):
    """Return the first MOST_UNITS + 1 distinct units."""
    return tuple(sorted({unit for unit in units if unit})[: MOST_UNITS + 1])


def _whole_numbers(column):
    """Return the values of a complete, nonempty column of integers, else None."""
    if not len(column) or column.hasnans:
        return None
    if types.is_object_dtype(column.dtype) or types.is_string_dtype(column.dtype):
        if types.infer_dtype(column, skipna=False) not in ("integer", "string"):
            return None
        column = pd.to_numeric(column, errors="coerce")
        if column.hasnans:
            return None
    # Larger numbers do not fit into int64.
    if not types.is_integer_dtype(column.dtype) or column.max() >= 2**63:
        return None
    return column.to_numpy(dtype=np.int64)


def _smallest(hashes):
    """Return the SKETCH smallest distinct hashes in ascending order."""
    if len(hashes) > 64 * SKETCH:
        # With many distinct values, enough hashes are below this bound, and only these are
        # sorted. With few distinct values, `unique` of all hashes is fast.
        few = pd.unique(hashes[hashes < np.uint64(2**64 // len(hashes) * 4 * SKETCH)])
        if len(few) >= SKETCH:
            return np.sort(few)[:SKETCH]
    return np.sort(pd.unique(hashes))[:SKETCH]


def merge_looks(looks) -> Look:
    """Merge the summaries of disjoint parts."""
    texts = [text for look in looks for text in look.texts]
    return Look(
        sum(look.n_values for look in looks),
        all(look.is_whole for look in looks),
        min(look.low for look in looks),
        max(look.high for look in looks),
        sum(look.n_words for look in looks),
        _smallest(np.concatenate([look.hashes for look in looks])),
        sum(look.n_numbers for look in looks),
        _named(texts, map(likeness, texts)),
        sum(look.n_dates for look in looks),
        sum(look.n_likes for look in looks),
        _units(unit for look in looks for unit in look.units),
    )
