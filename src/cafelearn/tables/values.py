"""Conversion of the columns of a table to texts, numbers and days."""

import numpy as np
import pandas as pd
from pandas.api import types

from cafelearn.base.words import listed
from cafelearn.tables.columns import DURATIONS, NUMBER
from cafelearn.tables.texts import is_marker

DAY = pd.Timedelta(days=1)


def owner(estimator):
    """Return the name of an estimator in messages."""
    return type(estimator).__name__


def distinct(column):
    """Return the distinct values of a column as text.

    They are sorted, or in the order of the dtype for pandas categories.
    """
    present = set(as_text(column).dropna().unique())
    if isinstance(column.dtype, pd.CategoricalDtype):
        return [text for text in map(value_text, column.cat.categories) if text in present]
    return sorted(present)


def as_text(column):
    return column.astype(object).map(value_text, na_action="ignore")


def value_text(value):
    """Return a value as text, the same for 1 and 1.0.

    Otherwise a missing value, which turns a column of integers into floats, would change the
    names of its categories.
    """
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


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


def to_numbers(estimator, column, dtype=np.float64, *, kind=NUMBER):
    """Return the values of a column of numbers, with NaN for missing ones.

    `kind` is "number", "date" or "duration".
    """
    try:
        return _converted(column, dtype, kind)
    except (TypeError, ValueError):
        distinct = {str(value): value for value in column.dropna()}
        bad = [text for text, value in distinct.items() if not _converts(value, kind)]
        if not bad:
            raise
        raise ValueError(
            f"{owner(estimator)} needs {kind}s in column {column.name!r}, got "
            f"{listed(bad, most=3)}."
        ) from None


def _converted(column, dtype, kind):
    if kind != NUMBER:
        return as_days(column, kind)
    return pd.to_numeric(_plain(column)).to_numpy(dtype=dtype, na_value=np.nan)


def _converts(value, kind):
    try:
        _converted(pd.Series([value]), np.float64, kind)
    except (TypeError, ValueError):
        return False
    return True


def _plain(column):
    """Prepare a column for `to_numeric`: no categorical dtype, NaN for texts such as N/A.

    Dates and durations become objects, which `to_numeric` refuses.
    """
    is_time = column.dtype.kind in "mM" or isinstance(column.dtype, pd.PeriodDtype)
    if is_time or isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if not (types.is_object_dtype(column.dtype) or types.is_string_dtype(column.dtype)):
        return column
    if types.is_object_dtype(column.dtype):
        column = column.where(column.notna(), np.nan)  # not NaT
    markers = [value for value in column.unique() if is_marker(value)]
    return column.mask(column.isin(markers)) if markers else column


def refuse_infinite(estimator, counts):
    """Raise if any column contains infinite values; `counts` has their number by column."""
    found = [f"{name!r} ({count})" for name, count in counts.items() if count]
    if found:
        raise ValueError(
            f"{owner(estimator)} needs finite numbers, got infinite values (inf) in "
            f"{listed(found, str)}."
        )


def refuse_empty(estimator, names):
    """Raise if `names`, the columns without any value, is not empty."""
    if names:
        raise ValueError(
            f"{owner(estimator)} cannot use columns without any value: {listed(names)}. "
            "Leave them out (drop, --drop)."
        )
