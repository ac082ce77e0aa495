"""Decisions on the treatment of columns, and warnings of texts that look like numbers."""

import re
import shlex

from cafelearn.base.warning import warn_caller
from cafelearn.base.words import listed
from cafelearn.tables.columns import (
    CATEGORY,
    LEFT_OUT,
    NUMBER,
    Treatment,
)
from cafelearn.tables.texts import LIKE_DATE, LIKE_NUMERAL, PLAIN, is_day_first
from cafelearn.tables.values import owner

# A text column with more than FEW distinct values is an identifier if their number exceeds this
# share of the number of values.
DISTINCT = 0.5
FEW = 10
# A text column with many distinct values is free text if its values have at least this many
# words on average.
WORDS = 4
ID_NAME = re.compile(r"(^|[\W_])(?i:id|uuid|guid|key|index|row)$|[a-z](Id|ID)$")


def judge_columns(estimator, kinds, looks, values, n_rows):
    """Decide the treatment of columns from their kinds, Looks and distinct texts."""
    found, unusable, many = {}, [], []
    for name, kind in kinds.items():
        wanted = NUMBER if name in estimator.numeric else None
        wanted = "category" if name in estimator.categorical else wanted
        known = ("number", "text number", "category", "date", "text date", "duration")
        if kind not in known:
            unusable.append(f"{name!r} ({kind})")
            continue
        look, most = looks[name], estimator.max_categories
        found[name] = judge(name, kind, look, n_rows, most, wanted=wanted)
        if found[name] is None:
            many.append(f"{name!r} ({look.n_distinct} in {n_rows} rows)")
    if unusable:
        raise ValueError(
            f"{owner(estimator)} needs numbers, text, dates or booleans, got "
            f"{listed(unusable, str)}. Convert these columns or leave them out (drop, --drop)."
        )
    if many:
        raise ValueError(
            f"{owner(estimator)} needs categories with at most {estimator.max_categories} "
            f"distinct values (max_categories), got {listed(many, str)}. Leave these columns "
            "out (drop, --drop) or use one as row names (id_column, --id)."
        )
    found |= {name: Treatment("dropped", LEFT_OUT, "as requested") for name in estimator.drop}
    for name, kind in kinds.items():
        is_chosen = name in estimator.numeric or name in estimator.categorical
        if kind == "category" and not is_chosen:
            _warn_of_text(name, looks[name], found[name])
    # Lists, because model files cannot hold named tuples.
    estimator._treatments = {name: list(each) for name, each in found.items()}
    used = {name: each for name, each in found.items() if each.treatment != LEFT_OUT}
    estimator.numbers_ = [n for n, each in used.items() if each.treatment == NUMBER]
    estimator.dates_ = [n for n in estimator.numbers_ if used[n].kind in ("date", "duration")]
    estimator.categories_ = {
        n: values[n] for n, each in used.items() if each.treatment == "category"
    }


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


def _warn_of_text(name, look, treatment):
    """Warn if a column is treated as text, although its values may be numbers or dates."""
    what = "left out" if treatment.treatment == LEFT_OUT else "treated as categories"
    if look.are_likely_dates:
        found, advice = _on_dates(name, look)
    elif look.are_likely_numbers:
        texts = ", ".join(map(repr, look.named(LIKE_NUMERAL)))
        found = f"numbers with separators, symbols or units, such as {texts},"
        advice = "Write them as plain numbers such as 1234.5"
    elif look.is_nearly_numbers:
        found = f"{look.n_numbers:,} numbers"
        convert = f'pd.to_numeric(X[{name!r}], errors="coerce")'
        found, advice = _on_others(found, look.n_values - look.n_numbers, look.others, convert)
    else:
        return
    warn_caller(
        f"Column {name!r} has {found} and is {what}. {advice}; otherwise name the column in "
        "categorical (--category) or drop (--drop)."
    )


def _on_dates(name, look):
    """Return what a column of texts that may be dates contains, and advice."""
    dates, n_others = look.named(LIKE_DATE), look.n_values - look.n_dates
    is_clear = not any(map(is_day_first, dates))
    options = ("" if is_clear else ", dayfirst=True") + (', errors="coerce"' * bool(n_others))
    convert = f"pd.to_datetime(X[{name!r}]{options})"
    found = f"dates such as {', '.join(map(repr, dates))}"
    advice = f"Write them as 2020-12-31, or convert them with {convert}"
    if not is_clear:
        advice += " or dayfirst=False"
    if n_others:
        others = look.named(*(like for like in range(PLAIN + 1) if like != LIKE_DATE))
        found, gaps = _on_others(f"{look.n_dates:,} {found}", n_others, others, convert)
        advice = gaps if is_clear else advice
    return found, advice


def _on_others(found, n_others, texts, convert):
    """Add other texts to what was found in a column; return it and advice on the texts."""
    noun = "text" if n_others == 1 else "texts"
    return (
        f"{found} and {n_others:,} other {noun}, such as {', '.join(map(repr, texts))},",
        "If the texts mark missing values, replace them by NaN, for instance with "
        f"{convert}, or use --missing {shlex.quote(texts[0])}",
    )
