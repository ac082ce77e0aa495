"""Options that several commands share."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the result as one JSON object, nothing else.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]


def check_jobs(jobs: int) -> int:
    """Raise if a number of threads or processes is 0."""
    if jobs == 0:
        raise typer.BadParameter("needs a number >= 1, or -1 for all processors; got 0.")
    return jobs


Jobs = Annotated[
    int,
    typer.Option(
        "--jobs",
        "-j",
        help="Number of threads; -1 for all processors.",
        callback=check_jobs,
    ),
]
Data = Annotated[
    Path, typer.Argument(help="CSV, TSV or JSON lines (also .gz), Parquet or Feather.")
]
LargeData = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV or JSON lines (also .gz), Parquet or Feather; for data larger than "
        "memory, a directory of Parquet files, a Zarr array or a .npy file."
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        help="Address of a Dask scheduler whose workers process the data; only for a "
        "directory or an array."
    ),
]
REPEATED = "Comma-separated or repeated."
OUT = (
    "Write the features to this file or, if the data is a directory or array, to this "
    "directory of Parquet files."
)
Model = Annotated[Path, typer.Argument(help="A model written by cafe fit --model.")]


def _reading(text, *names):
    return typer.Option(*names, help=text, rich_help_panel="Reading text files")


DECIMAL = """The decimal point, '.' or ','. By default, that of the fit if a fitted model is
applied; otherwise '.'."""
THOUSANDS = """The thousands separator, ',' or '.'. By default, that of the fit if a fitted
model is applied; otherwise it is detected. With 'none', numbers with separators are read as
text."""
MISSING = f"Text that marks missing values, such as '?'. {REPEATED}"
Delimiter = Annotated[str | None, _reading("Field separator; detected by default.")]
Decimal = Annotated[str | None, _reading(DECIMAL)]
Thousands = Annotated[str | None, _reading(THOUSANDS)]
Missing = Annotated[list[str] | None, _reading(MISSING)]
NoHeader = Annotated[bool, _reading("The first line is data.", "--no-header")]


class Reading(NamedTuple):
    """Options for reading a text file."""

    delimiter: str | None = None
    decimal: str = "."
    missing: tuple[str, ...] = ()
    header: bool = True
    thousands: str | None = None  # "none" for no separator, None to detect it
    row_id: str | None = None  # column of row names
    # Column names as given on the command line: columns that are not used, columns to treat as
    # categories, and columns to treat as numbers.
    unused: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    # Known from the fit when new rows are read: the columns in use (None for all) and, by
    # column, the texts that mean missing values, the formats of dates and the categories.
    used: tuple[str, ...] | None = None
    texts: Mapping[str, list[str]] = {}
    dates: Mapping[str, str] = {}
    categories: Mapping[str, list[str]] = {}


def make_reading(delimiter, decimal, missing, no_header, thousands=None):
    """Make a Reading from the options of a command."""
    decimal = decimal or "."
    if delimiter in ("\\t", "tab"):
        delimiter = "\t"
    if delimiter is not None and len(delimiter) != 1:
        raise ValueError(f"--delimiter needs one character, got {delimiter!r}.")
    if decimal not in (".", ","):
        raise ValueError(f"--decimal needs '.' or ',', got {decimal!r}.")
    if delimiter == decimal:
        raise ValueError(f"--delimiter and --decimal must differ, both are {decimal!r}.")
    if thousands not in (None, "none", ".", ","):
        raise ValueError(f"--thousands needs ',', '.' or none, got {thousands!r}.")
    if thousands == decimal:
        raise ValueError(f"--thousands and --decimal must differ, both are {decimal!r}.")
    words = tuple(split_commas(missing or ()))
    return Reading(delimiter, decimal, words, not no_header, thousands)


def reading_like_fit(estimator, delimiter, decimal, missing, no_header, thousands, row_id=None):
    """Make a Reading from the options of a command, and from the model for options not given.

    A model written by `cafe fit` contains the decimal point, the thousands separator and the
    texts for missing values of the fit. `row_id` is the column of row names; by default, that
    of the fit.
    """
    encoder, fit = estimator.encoder_, estimator._reading or {}
    decimal = decimal or fit.get("decimal", ".")
    if thousands is None and fit.get("thousands") != decimal:
        thousands = fit.get("thousands")
    reading = make_reading(delimiter, decimal, missing, no_header, thousands)
    return reading._replace(
        missing=reading.missing or tuple(fit.get("missing", ())),
        row_id=row_id or estimator.id_column,
        used=(*encoder.numbers_, *encoder.categories_),
        numeric=tuple(name for name in encoder.numbers_ if name not in encoder.dates_),
        texts=fit.get("texts", {}),
        dates=fit.get("dates", {}),
        categories=encoder.categories_,
    )


def for_new_rows(reading, found):
    """Return the options that a model stores, so that new rows are read like those of the fit.

    `found` is the entry "found" of the `trace` of `read_table`: what it detected in the file.
    """
    return {
        "decimal": reading.decimal,
        "missing": list(reading.missing),
        "thousands": reading.thousands or found.get("thousands"),
        "texts": found.get("texts", {}),
        "dates": found.get("dates", {}),
    }


def split_commas(texts, whole=()):
    """Split texts at commas, except texts in `whole` and texts with an empty part."""
    parts = []
    for text in texts:
        split = [part.strip() for part in text.split(",")]
        parts += [text] if text in whole or not all(split) else split
    return parts


def column_names(texts, columns):
    """Split comma-separated column names, but not names in `columns` that contain commas."""
    return list(dict.fromkeys(split_commas(texts, set(columns))))


def need(package, option, extra):
    """Raise if the package that an option needs is not installed."""
    if find_spec(package) is None:
        raise ImportError(
            f"{option} needs the package {package}: pip install 'cafelearn[{extra}]'."
        )
