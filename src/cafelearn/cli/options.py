"""Options that several commands share."""

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
Jobs = Annotated[
    int, typer.Option("--jobs", "-j", help="Number of threads; -1 for all processors.")
]
Data = Annotated[
    Path, typer.Argument(help="CSV, TSV, Parquet, Feather or JSON lines (.gz for text).")
]
LargeData = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV, Parquet, Feather or JSON lines (.gz for text); or, for data larger "
        "than memory, a directory of Parquet files, a Zarr array or a .npy file."
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        help="Address of a Dask scheduler whose cluster processes a directory or array."
    ),
]
REPEATED = "Comma-separated or repeated."
OUT = (
    "Write the features to this file or, if the data is a directory or array, to this "
    "directory of Parquet files."
)
Model = Annotated[Path, typer.Argument(help="A model written by cafe fit --model.")]

READING = "Reading text files"
Delimiter = Annotated[
    str | None,
    typer.Option(help="Field separator; detected by default.", rich_help_panel=READING),
]
Decimal = Annotated[
    str, typer.Option(help="The decimal point, '.' or ','.", rich_help_panel=READING)
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        help=f"Text that marks missing values, such as '?'. {REPEATED}",
        rich_help_panel=READING,
    ),
]
NoHeader = Annotated[
    bool,
    typer.Option("--no-header", help="The first line is data.", rich_help_panel=READING),
]


class Reading(NamedTuple):
    """Options for reading a text file."""

    delimiter: str | None = None
    decimal: str = "."
    missing: tuple[str, ...] = ()
    header: bool = True


def make_reading(delimiter, decimal, missing, no_header):
    """Make a Reading from the options of a command."""
    if delimiter in ("\\t", "tab"):
        delimiter = "\t"
    if delimiter is not None and len(delimiter) != 1:
        raise ValueError(f"--delimiter needs one character, got {delimiter!r}.")
    if decimal not in (".", ","):
        raise ValueError(f"--decimal needs '.' or ',', got {decimal!r}.")
    if delimiter == decimal:
        raise ValueError(f"--delimiter and --decimal must differ, both are {decimal!r}.")
    return Reading(delimiter, decimal, tuple(split_commas(missing or ())), not no_header)


def split_commas(texts, whole=()):
    """Split texts at commas, except those in `whole`."""
    parts = []
    for text in texts:
        split = [part.strip() for part in text.split(",")]
        parts += [text] if text in whole or not all(split) else split
    return parts


def column_names(texts, columns):
    """Split repeated or comma-separated column names; a name may contain commas."""
    return list(dict.fromkeys(split_commas(texts, set(columns))))


def need(package, option, extra):
    """Raise if the package that an option needs is not installed."""
    if find_spec(package) is None:
        raise ImportError(
            f"{option} needs the package {package}: pip install 'cafelearn[{extra}]'."
        )
