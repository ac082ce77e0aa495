"""The kind of each column of a table, and its treatment.

The treatment is decided from a summary of the column, its `Look`. The summaries of disjoint
rows can be merged, so tables in memory and Dask dataframes are treated alike.
"""

import re
from datetime import date
from numbers import Number
from typing import NamedTuple

import numpy as np
import pandas as pd
from pandas.api import types

NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal", "empty")
DATES = ("datetime", "datetime64", "date")
DURATIONS = ("timedelta", "timedelta64")
ISO = r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?\s?(Z|[+-]\d\d(:?\d\d)?)?)?"
DAY = pd.Timedelta(days=1)

# Texts that mark missing values in columns whose other values are numbers.
MARKERS = frozenset(
    (
        *("", "-", "--", "?", ".", "NA", "na", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>"),
        *("NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
        *("NULL", "null", "None"),
    )
)
NUMBER_TEXT = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?inf(inity)?", re.IGNORECASE
)
# Codes with leading zeros, such as postal codes. As numbers they would lose the zeros.
PADDED = re.compile(r"0[0-9]+")
# Dates with the year last, in which the day may come before or after the month.
YEAR_LAST = re.compile(
    r"([0-9]{1,2})([./-])([0-9]{1,2})\2[0-9]{4}([ T][0-9]{1,2}:[0-9]{2}(:[0-9]{2})?)?"
)
# Texts that may be numbers: with thousands separators, a decimal comma, a currency symbol, a
# percent sign, a unit or a minus sign other than a hyphen.
SIGN, CURRENCY = "[+\u2212\u2013-]?", "[$\u00a2-\u00a5\u20a0-\u20cf]"
LIKE_NUMBER = re.compile(
    rf"{SIGN}{CURRENCY}?\s?{SIGN}"
    r"([1-9][0-9]{0,2}(?P<mark>[.,'\u2019 \u00a0\u202f])[0-9]{3}((?P=mark)[0-9]{3})*"
    r"([.,][0-9]+)?|(0|[1-9][0-9]*)([.,][0-9]+)?|[.,][0-9]+)(e[+-]?[0-9]+)?"
    rf"\s?(?P<unit>{CURRENCY}|[%\u2030\u00b0]|\u00b0?[^\W\d_][^\s\d]{{0,7}})?",
    re.IGNORECASE,
)
# With more than this many units, the texts are taken for codes such as 12A.
MOST_UNITS = 2
# Texts that may be dates.
TIME = r"([ T][0-9]{1,2}:.{1,24})?"
FIGURES = re.compile(
    rf"([0-9]{{4}}|[0-9]{{1,2}})([./-])([0-9]{{1,2}})\2([0-9]{{4}}|[0-9]{{1,2}}){TIME}"
)
MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
MONTH_NAMED = re.compile(
    rf"([0-9]{{1,2}}[ .-]{{0,2}}{MONTH}[ .,-]{{0,2}}([0-9]{{4}}|[0-9]{{2}})"
    rf"|{MONTH} ?[0-9]{{1,2}}(st|nd|rd|th)?,? [0-9]{{4}}){TIME}",
    re.IGNORECASE,
)
# What a text may be. Messages name texts in this order.
CODE, OTHER, LIKE_DATE, LIKE_NUMERAL, PLAIN = range(5)
# At most this many texts of each of these kinds are kept as examples for messages.
NAMED = 3

# A text column with more than FEW distinct values is an identifier if their number exceeds this
# share of the number of values.
DISTINCT = 0.5
FEW = 10
# A text column with many distinct values is free text if its values have at least this many
# words on average.
WORDS = 4
# Number of hashes kept to count distinct values. Below this number the count is exact; from
# there on it is an estimate with an error of about 3%.
SKETCH = 1024
# All values count as distinct if the estimated number of distinct values is at least this share
# of the number of values.
NEARLY_ALL = 0.9
ID_NAME = re.compile(r"(^|[\W_])(?i:id|uuid|guid|key|index|row)$|[a-z](Id|ID)$")

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


def is_number(text) -> bool:
    """Check whether a text is a number; codes with leading zeros are not."""
    text = text.strip()
    return bool(NUMBER_TEXT.fullmatch(text)) and not PADDED.fullmatch(text)


def likeness(text) -> int:
    """Return what a text may be: PLAIN, LIKE_NUMERAL, LIKE_DATE, CODE or OTHER."""
    if PADDED.fullmatch(text):
        return CODE
    if NUMBER_TEXT.fullmatch(text):
        return PLAIN
    if MONTH_NAMED.fullmatch(text) or _is_day_in_figures(text):
        return LIKE_DATE
    return LIKE_NUMERAL if LIKE_NUMBER.fullmatch(text) else OTHER


def is_day_first(text) -> bool:
    """Check whether a text may be a date in figures that begins with the day or the month."""
    match = FIGURES.fullmatch(text)
    return match is not None and len(match[1]) < 4


def _is_day_in_figures(text):
    match = FIGURES.fullmatch(text)
    if match is None:
        return False
    first, mark, middle, last = match.group(1, 2, 3, 4)
    if len(first) == 4:
        return _is_day(first, middle, last)
    # Two-digit years: 5/1/20, but not 5.1.20, which may be the number of a version or section.
    if len(last) == 1 or (len(last) == 2 and mark != "/" and len(first + middle) < 4):
        return False
    year = last if len(last) == 4 else f"20{last}"
    return _is_day(year, middle, first) or _is_day(year, first, middle)


def _is_day(year, month, day):
    try:
        date(int(year), int(month), int(day))
    except ValueError:
        return False
    return True


def is_marker(value) -> bool:
    """Check whether a value is a text that marks missing values among numbers."""
    return isinstance(value, str) and value.strip() in MARKERS


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


def as_days(column, kind="date") -> np.ndarray:
    """Convert dates to days since the beginning of 1970 (UTC), or durations to days.

    `kind` is "date" or "duration". Dates without a time zone are taken as UTC. Missing values
    become NaN. Raise a ValueError for values of another kind.
    """
    if column.isna().all():
        return np.full(len(column), np.nan)
    is_duration = types.is_timedelta64_dtype(column.dtype) or (
        types.is_object_dtype(column.dtype)
        and types.infer_dtype(column, skipna=True) in DURATIONS
    )
    if is_duration != (kind == "duration"):
        raise ValueError(f"not {kind}s")
    if is_duration:
        return (pd.to_timedelta(column) / DAY).to_numpy(dtype=np.float64)
    if isinstance(column.dtype, pd.PeriodDtype):
        column = column.dt.to_timestamp()
    if types.is_datetime64_any_dtype(column.dtype):
        times = pd.to_datetime(column, utc=True)
    else:
        if types.infer_dtype(column, skipna=True) == "string":
            column = column.str.strip()
        elif types.is_numeric_dtype(column.dtype):
            # Without this error, pandas would read numbers as nanoseconds.
            raise ValueError("numbers are not dates")
        times = pd.to_datetime(column, format="ISO8601", utc=True)
    # Use microseconds, because nanoseconds reach only to 2262, and 9999-12-31 is a common
    # placeholder.
    moments = times.dt.tz_convert(None).to_numpy(dtype="datetime64[us]")
    return (moments - np.datetime64(0, "us")) / np.timedelta64(1, "D")


def not_days(column, kind):
    """Return the values of a column that :func:`as_days` cannot convert."""
    there = column.dropna()
    if column.dtype.kind in "biufmM":
        return there
    return there[[not _is_of(kind, value) for value in there]]


def _is_of(kind, value):
    try:
        as_days(pd.Series([value]), kind)
    except (TypeError, ValueError):
        return False
    return True


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


def judge(name, kind, look, n_rows, max_categories, *, wanted=None) -> Treatment | None:
    """Return the treatment of a column, or None if it has too many categories.

    `wanted` is "number" or "category" if the user has specified the kind.
    """
    if wanted == CATEGORY or (kind == "category" and wanted is None):
        return _judge_texts(look, max_categories, is_wanted=wanted is not None)
    if kind in ("date", "text date"):
        return Treatment("date", NUMBER, "dates, as days since 1970-01-01")
    if kind == "duration":
        return Treatment("duration", NUMBER, "durations, as days")
    if wanted is None and look.is_whole and n_rows > FEW and look.is_distinct:
        if look.high - look.low == n_rows - 1:
            why = f"row numbers from {look.low} to {look.high}"
            return Treatment("identifier", LEFT_OUT, why)
        if ID_NAME.search(name):
            why = "distinct integers in a column named like an identifier"
            return Treatment("identifier", LEFT_OUT, why)
    why = "numbers"
    if kind == "text number":
        why = "numbers, as text"
        if look.others:
            why += f"; missing: {', '.join(map(repr, look.others))}"
    return Treatment("number", NUMBER, why)


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
