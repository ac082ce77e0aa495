"""Convert text columns of a file to numbers, dates and truth values.

Markers are texts such as NA, which may stand for missing values; all other texts are values.
Conversions that could be wrong are reported by remarks, and options override them.
"""

import re
from collections import defaultdict

import numpy as np

from cafelearn.base.words import listed
from cafelearn.tables.texts import ISO, MARKERS, NUMBER_TEXT, PADDED, YEAR_LAST, is_number
from cafelearn.tables.values import value_text

# Numbers with a decimal comma and no thousands separators.
COMMA_NUMBER = re.compile(r"[+-]?([0-9]+,?[0-9]*|,[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
# Numbers with thousands separators; the key is the decimal separator.
GROUPED = {
    ".": re.compile(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]+)?"),
    ",": re.compile(r"[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})+(,[0-9]+)?"),
}
# Numbers with decimals after a comma, with or without points between thousands.
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+(\.[0-9]{3})*,[0-9]+")
# Numbers whose commas cannot be decimal commas.
CONTRARY = re.compile(r"[+-]?[0-9]{1,3}((,[0-9]{3}){2,}|(,[0-9]{3})+\.[0-9]+)")
# Numbers with one comma, followed by three digits: it may separate thousands or decimals.
ONE_GROUP = re.compile(r"[+-]?[0-9]+,[0-9]{3}")
DIGITS = re.compile(r"[+-]?[0-9.,]+")
# Whole numbers that floats may not represent. Python refuses to convert very long ones.
WHOLE = re.compile(r"[+-]?[0-9]{1,19}")
TRUTH = {"true": True, "false": False}
# Texts among numbers are read as missing values if none contains a digit, if there are at most
# FEW_TEXTS distinct texts, and if they make up at most the share FEW of the values.
FEW_TEXTS, FEW = 3, 0.1
NAMES = 4  # columns to name in a message
# Messages about columns, by what was found in them.
ERRORS = {
    "unclear": "commas may separate thousands or decimals in {}. Use --thousands ',' or "
    "--decimal ','.",
    "contrary": "commas separate thousands, contrary to --decimal ',', in {}. Omit --decimal.",
    "commas": "numbers have decimal commas in {}. Use --decimal ',' to read them, or --drop to "
    "leave a column out.",
}
REMARKS = {
    "grouped": "Read with thousands separators: {}. Use --thousands none to keep such numbers "
    "as text.",
    "points": "Read with decimal points, in spite of --decimal ',': {}.",
    "dates": "Read as dates: {}.",
    "few": "Read as numbers, with a few texts as missing values: {}. Use --category to keep a "
    "column as text.",
    "kept": "Read as text, not as missing values: {}. Use --missing if they mark missing "
    "values.",
}


class Texts:
    """Distinct texts of a column with their counts, and masks of those that are numbers.

    Plain numbers have no thousands separators; grouped numbers have them.
    """

    def __init__(self, column, reading, delimiter):
        counts = column.value_counts()
        self.column, self.index = column, counts.index
        self.counts = counts.to_numpy(dtype=np.int64)
        self.texts = np.array([str(text).strip() for text in counts.index], dtype=object)
        self.is_marker = self.which(MARKERS.__contains__)
        self.is_value = ~self.is_marker
        self.decimal = reading.decimal
        self.is_plain = self.which(_number_pattern(reading.decimal).fullmatch)
        self.is_grouped = self.which(GROUPED[reading.decimal].fullmatch)
        separator = "," if reading.decimal == "." else "."
        with_separator = self.which(lambda t: separator in t and DIGITS.fullmatch(t))
        # If some separators do not separate thousands, none are taken to do so.
        if not self.is_grouped[with_separator].all():
            self.is_grouped[:] = False
        self.are_groups_text = reading.thousands == "none" and bool(self.is_grouped.any())
        if self.are_groups_text:
            self.is_grouped[:] = False
        only = self.is_grouped & self.which(ONE_GROUP.fullmatch)
        # If all values have one comma, followed by three digits, it may be a decimal comma,
        # except in files delimited by commas.
        self.is_unclear = (
            reading.thousands is None
            and reading.decimal == "."
            and delimiter != ","
            and bool(only[self.is_value].all())
        )

    @property
    def is_other(self):
        """Mask of the texts that are neither numbers nor markers."""
        return self.is_value & ~self.is_plain & ~self.is_grouped

    @property
    def has_codes(self):
        """Whether there are codes with leading zeros."""
        return bool(self.which(PADDED.fullmatch).any())

    def share(self, chosen):
        """Return the share of the chosen texts among all values of the column."""
        return self.counts[chosen].sum() / self.counts[self.is_value].sum()

    def are_values(self, check):
        """Check whether all texts but the markers satisfy a condition."""
        return bool(self.which(check)[self.is_value].all())

    def first(self, chosen):
        """Return the most frequent of the chosen texts."""
        return self.texts[chosen][0]

    def spread(self, values):
        """Replace each text by its entry in `values`; missing cells stay missing."""
        import pandas as pd

        codes = self.index.get_indexer(self.column)
        there = pd.Series(values).astype(object)
        there.loc[len(there)] = None
        found = there.iloc[codes].infer_objects()
        return found.set_axis(self.column.index)

    def as_numbers(self, decimal=None):
        """Return the column as numbers; other texts become missing values."""
        decimal = decimal or self.decimal
        group = "," if decimal == "." else "."
        numbers = np.full(len(self.texts), np.nan)
        is_number = self.is_plain | self.is_grouped
        if decimal != self.decimal:
            is_number = self.is_value
        for i in np.flatnonzero(is_number):
            numbers[i] = float(self.texts[i].replace(group, "").replace(decimal, "."))
        codes = self.index.get_indexer(self.column)
        column = np.append(numbers, np.nan)[codes]
        is_whole = np.isfinite(column).all() and (column == np.round(column)).all()
        if is_whole and np.abs(column).max() < 2**53:
            column = column.astype(np.int64)
        return column

    def as_numbers_and_texts(self):
        """Return the column as numbers, but keep texts that are neither numbers nor markers."""
        import pandas as pd

        numbers = pd.Series(self.as_numbers(), index=self.column.index, dtype=object)
        return numbers.mask(self.column.isin(self.index[self.is_other]), self.column)

    def which(self, check):
        """Return a mask of the texts that satisfy a condition."""
        return np.array([bool(check(text)) for text in self.texts], dtype=bool)


def _number_pattern(decimal):
    return NUMBER_TEXT if decimal == "." else COMMA_NUMBER


def unused_columns(reading, columns):
    """Return the names of the columns that are not used and need not be examined."""
    from cafelearn.cli.options import column_names

    unused = set(column_names(reading.unused, columns))
    return unused if reading.used is None else unused | set(columns).difference(reading.used)


def tidy(frame, reading, delimiter, remark):
    """Convert text columns in place; return the guesses needed to read new rows the same way.

    The entries "texts" and "dates" contain, by column, the texts read as missing values and the
    formats of dates. The entry "thousands" is the thousands separator, if there is one.
    """
    from cafelearn.cli.options import column_names

    said = defaultdict(list)
    found = {"texts": {}, "dates": {}}
    unused = unused_columns(reading, frame.columns)
    numeric = set(column_names(reading.numeric, frame.columns))
    category = set(column_names(reading.category, frame.columns))
    for name in frame.columns[frame.dtypes.map(lambda dtype: dtype.kind not in "biuf")]:
        there = frame[name].dropna()
        if name in unused or not len(there) or not there.map(type).eq(str).all():
            continue
        texts = Texts(frame[name], reading, delimiter)
        wanted = "category" if name in category else "number" if name in numeric else None
        new = _converted(name, texts, reading, wanted, said, found)
        if new is not None:
            frame[name] = new
    _tell(said, remark)
    return found


def _converted(name, texts, reading, wanted, said, found):
    """Return the new column, or None if the column is unchanged.

    Entries for remarks and errors are added to `said`, and guesses to `found`.
    """
    if name in reading.categories:
        return _known_categories(texts, reading.categories[name], reading.decimal)
    if not texts.is_value.any():
        return _without(texts, texts.is_marker)
    if texts.are_values(lambda text: text.lower() in TRUTH):
        return texts.spread([TRUTH.get(text.lower()) for text in texts.texts])
    if texts.are_values(re.compile(ISO).fullmatch):
        return _without(texts, texts.is_marker)
    if wanted is None and texts.are_values(YEAR_LAST.fullmatch):
        dates = _dates(name, texts, reading, said, found)
        if dates is not None:
            return dates
    if wanted is None and reading.used is not None:
        return _as_iso_dates(texts, reading.dates.get(name))
    if wanted == "number" or not texts.has_codes:
        done, new = _numbers(name, texts, reading, wanted, said, found)
        if done:
            return new
    said["kept"] += [
        f"{text!r} in {name!r} ({_rows(count)})"
        for text, count in zip(
            texts.texts[texts.is_marker], texts.counts[texts.is_marker], strict=True
        )
    ]
    return None


def _known_categories(texts, categories, decimal):
    """Write texts as the categories of a fitted model; unknown markers become missing values.

    If the categories were numbers or truth values in the fit, 1.0 is written as 1, and TRUE as
    True. Each row is thus encoded in the same way, whatever texts the other rows have.
    """
    known, new = set(categories), list(texts.index)
    if all(_as_category(text, ".") == text for text in known):
        new = [_as_category(text, decimal) or text for text in texts.texts]
    is_gap = texts.is_marker & ~np.isin(texts.texts, categories)
    return texts.spread([None if gap else n for gap, n in zip(is_gap, new, strict=True)])


def _as_category(text, decimal):
    """Return the category of a number or truth value as in the fit; None for other texts."""
    if text.lower() in TRUTH:
        return str(TRUTH[text.lower()])
    if _number_pattern(decimal).fullmatch(text):
        text = text.replace(decimal, ".")
    elif not NUMBER_TEXT.fullmatch(text):
        return None
    return value_text(int(text) if WHOLE.fullmatch(text) else float(text))


def _numbers(name, texts, reading, wanted, said, found):
    """Return whether a column contains numbers, and the new column.

    The new column is None if there are no numbers, or if `_tell` will raise an error.
    """
    if wanted == "category":
        texts.is_grouped[:] = False
        done = texts.are_values(NUMBER_TEXT.fullmatch)
        return done, texts.as_numbers(".") if done else None
    has_groups, is_other = bool(texts.is_grouped.any()), texts.is_other
    is_comma = texts.which(DECIMAL_COMMA.fullmatch) & texts.is_value
    is_contrary = texts.which(CONTRARY.fullmatch)
    has_points = texts.are_values(lambda text: "," not in text and NUMBER_TEXT.fullmatch(text))
    is_point = reading.decimal == "."
    no_groups = not (has_groups or texts.are_groups_text)
    for key, is_so, shown in (
        ("commas", is_point and no_groups and texts.share(is_comma) > 0.5, is_comma),
        ("contrary", not is_point and is_contrary.any(), is_contrary),
        ("unclear", texts.is_unclear, texts.is_grouped),
        ("points", not is_point and is_other.any() and has_points, is_other),
    ):
        if is_so:
            said[key].append(f"{name!r} ({texts.first(shown)!r})")
            return True, texts.as_numbers(".") if key == "points" else None
    few = [text for text in texts.texts[is_other] if text not in reading.texts.get(name, ())]
    if few and (
        len(few) > FEW_TEXTS
        or texts.share(is_other) > FEW
        or any(character.isdigit() for text in few for character in text)
    ):
        # The encoder refuses the other texts, and names only them.
        if wanted == "number" and not texts.which(is_number)[is_other].any():
            return True, texts.as_numbers_and_texts()
        return False, None
    if is_other.any():
        found["texts"][name] = sorted(texts.texts[is_other])
        count = texts.counts[is_other].sum()
        words = ", ".join(map(repr, found["texts"][name]))
        if few:
            said["few"].append(f"{name!r} ({words}, {_rows(count)})")
    if has_groups and reading.thousands is None:
        text = texts.first(texts.is_grouped)
        group = "," if reading.decimal == "." else "."
        said["grouped"].append(f"{name!r} ({text!r} is {text.replace(group, '')})")
    if has_groups:
        found["thousands"] = "," if reading.decimal == "." else "."
    return True, texts.as_numbers()


def _rows(count):
    return f"{count:,} row{'s' if count > 1 else ''}"


def _dates(name, texts, reading, said, found):
    """Convert dates with the year last; return None if their format is not clear."""
    import pandas as pd

    shown = texts.texts[texts.is_value]
    form = reading.dates.get(name) or _date_format([YEAR_LAST.fullmatch(t) for t in shown])
    if form is None:
        return None
    dates = pd.to_datetime(pd.Series(texts.texts), format=form, errors="coerce")
    if dates[texts.is_value].isna().any():
        return None
    found["dates"][name] = form
    if name not in reading.dates:
        first = dates[texts.is_value].iloc[0]
        said["dates"].append(f"{name!r} ({shown[0]!r} is {first:%Y-%m-%d})")
    codes = texts.index.get_indexer(texts.column)
    dates = dates.to_numpy(dtype="datetime64[s]")
    return np.append(dates, np.datetime64("NaT"))[codes]


def _as_iso_dates(texts, form):
    """Write the dates of a column as in ISO 8601, for an encoder that needs dates.

    Other texts are kept, and markers become missing values. `form` is the format of the dates
    in the fit, or None.
    """
    import pandas as pd

    column = pd.Series(texts.texts)
    if form is not None:
        dates = pd.to_datetime(column, format=form, errors="coerce")
        column = dates.dt.strftime("%Y-%m-%dT%H:%M:%S").where(dates.notna(), column)
    return texts.spread(column.mask(texts.is_marker, None))


def _date_format(matches):
    """Return the format of dates with the year last.

    Return None if the dates have several formats, or if the order of day and month is unclear.
    """
    separators = {match[2] for match in matches}
    times = {match[4] and (match[4][0], bool(match[5])) for match in matches}
    if len(separators) > 1 or len(times) > 1:
        return None
    (separator,), (time,) = separators, times
    first, second = (max(int(match[i]) for match in matches) for i in (1, 3))
    if first > 12 and second > 12:
        return None
    # In dates with points, the day comes first.
    if first <= 12 and second <= 12 and separator != ".":
        return None
    form = separator.join(("%m", "%d", "%Y") if second > 12 else ("%d", "%m", "%Y"))
    if time is not None:
        form += f"{time[0]}%H:%M" + (":%S" if time[1] else "")
    return form


def _without(texts, is_gap):
    if not is_gap.any():
        return None
    return texts.column.mask(texts.column.isin(texts.index[is_gap]))


def _tell(said, remark):
    """Raise an error or make remarks about the columns in `said`."""
    for key, words in (*ERRORS.items(), *REMARKS.items()):
        if not said[key]:
            continue
        words = words.format(listed(said[key], str, most=NAMES))
        if key in ERRORS:
            raise ValueError(words)
        remark(words)
