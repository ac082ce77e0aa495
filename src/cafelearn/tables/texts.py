"""Texts that may be numbers, dates, codes or markers of missing values."""

import re
from datetime import date

ISO = r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?\s?(Z|[+-]\d\d(:?\d\d)?)?)?"

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
