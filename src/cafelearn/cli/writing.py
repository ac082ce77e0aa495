"""Check output paths, and write tables in the format given by the suffix of the path."""

import json
from pathlib import Path

from cafelearn.files.atomic import atomic_path, check_output

KINDS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
# In spreadsheets, a cell that begins with one of these is a formula (OWASP, CSV injection).
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def kind_of(path):
    """Return the kind of a file, by its suffix, and whether it is compressed with gzip."""
    path = Path(path)
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    compressed = suffixes[-1:] == [".gz"]
    if compressed:
        suffixes.pop()
    kind = KINDS.get(suffixes[-1]) if suffixes else None
    if kind is None or (compressed and kind not in ("csv", "tsv", "jsonl")):
        raise ValueError(
            f"{path}: unsupported extension {''.join(path.suffixes[-2:])!r}; expected "
            f"{', '.join(KINDS)} (text files also with .gz)."
        )
    return kind, compressed


def check_outputs(paths, force, *inputs):
    """Raise unless all paths can be written, are distinct, and differ from the inputs.

    `paths` maps each option to its path, or to None if the option was not given.
    """
    seen = {Path(path).resolve(): "the input file" for path in inputs}
    for option, path in paths.items():
        if path is None:
            continue
        check_output(path, force)
        other = seen.setdefault(Path(path).resolve(), option)
        if other != option:
            raise ValueError(f"{option} {path} is the same file as {other}.")


def write_table(frame, path, force=False):
    """Write a data frame without its index."""
    kind, compressed = kind_of(path)
    compression = "gzip" if compressed else None
    with atomic_path(path, force) as temporary:
        if kind == "parquet":
            frame.to_parquet(temporary, index=False)
        elif kind == "feather":
            frame.to_feather(temporary)
        elif kind == "jsonl":
            _write_json_lines(frame, temporary, compressed)
        else:
            without_formulas(frame).to_csv(
                temporary,
                index=False,
                sep="\t" if kind == "tsv" else ",",
                compression=compression,
                encoding="utf-8",
            )
    return Path(path)


def without_formulas(frame):
    """Put an apostrophe before text that a spreadsheet would evaluate as a formula."""
    frame = frame.copy(deep=False)
    for name in frame.columns:
        if frame[name].dtype.kind not in "biuf":
            frame[name] = frame[name].astype(object).map(_quoted)
    return frame.rename(columns=_quoted)


def _quoted(value):
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def _write_json_lines(frame, path, compressed):
    import gzip

    import pandas as pd

    opener = gzip.open if compressed else open
    columns = [
        [None if value is pd.NA else value for value in frame[name].tolist()]
        for name in frame.columns
    ]
    with opener(path, "wt", encoding="utf-8", newline="\n") as file:
        for values in zip(*columns, strict=True):
            record = dict(zip(frame.columns, values, strict=True))
            file.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")
