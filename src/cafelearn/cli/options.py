"""Options that several commands share."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the result as one JSON object, nothing else.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
Jobs = Annotated[
    int, typer.Option("--jobs", "-j", help="Number of threads; -1 for all processors.")
]
Data = Annotated[
    Path, typer.Argument(help="CSV, TSV, Parquet, Feather or JSON lines (.gz for text).")
]
LargeData = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV, Parquet, Feather or JSON lines (.gz for text); or, if it need not fit "
        "into memory, a directory of Parquet files, a Zarr array or a .npy file."
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        help="Address of a Dask scheduler, to use its cluster for a directory or array."
    ),
]
REPEATED = "Comma-separated or repeated."
OUT = (
    "Write the features to this table, or those of a directory or array to this directory of "
    "Parquet files."
)
Model = Annotated[Path, typer.Argument(help="A model that cafe fit --model has written.")]

READING = "Reading text files"
Delimiter = Annotated[
    str | None,
    typer.Option(
        help="What separates the fields; found out if left out.", rich_help_panel=READING
    ),
]
Decimal = Annotated[
    str, typer.Option(help="The decimal point, '.' or ','.", rich_help_panel=READING)
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        help=f"Words for a missing value, such as '?'. {REPEATED}",
        rich_help_panel=READING,
    ),
]
NoHeader = Annotated[
    bool,
    typer.Option("--no-header", help="The first line is data.", rich_help_panel=READING),
]


class Reading(NamedTuple):
    """How a text file is to be read."""

    delimiter: str | None = None
    decimal: str = "."
    missing: tuple[str, ...] = ()
    header: bool = True


def make_reading(delimiter, decimal, missing, no_header):
    """A Reading from the options of a command."""
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
    """The parts of texts between commas; those that are in `whole` are left whole."""
    parts = []
    for text in texts:
        split = [part.strip() for part in text.split(",")]
        parts += [text] if text in whole or not all(split) else split
    return parts


def column_names(texts, columns):
    """Names of columns, repeated or separated by commas; a name may have a comma itself."""
    return list(dict.fromkeys(split_commas(texts, set(columns))))


def need(package, option, extra):
    """Raise if the package that an option takes is not installed."""
    if find_spec(package) is None:
        raise ImportError(
            f"{option} needs the package {package}: pip install 'cafelearn[{extra}]'."
        )
