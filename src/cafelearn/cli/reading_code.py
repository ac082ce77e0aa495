"""Write the pandas or Dask code that reads a table, for the report."""

from cafelearn.cli.writing import kind_of
from cafelearn.tables.texts import MARKERS


def text_code(path, delimiter, reading, encoding, *, header, frame, spaces, texts, found):
    """Write code that reads a text file as `read_table` did, with as few options as possible.

    `header` contains the original column names, `frame` is the table, `spaces` tells whether
    spaces follow delimiters, `texts` are columns that pandas would not read as text, and
    `found` is the result of `tidy`.
    """
    names = frame.columns
    options = [] if delimiter == "," else [f"sep={delimiter!r}"]
    if not reading.header or list(names) != list(header):
        header = 0 if reading.header else None
        options += [f"names={list(names)!r}", f"header={header}", "index_col=False"]
    if reading.decimal != ".":
        options.append(f"decimal={reading.decimal!r}")
    if found.get("thousands"):
        options.append(f"thousands={found['thousands']!r}")
    options += _missing_options(frame, reading, found)
    if texts:
        options.append(f"dtype={dict.fromkeys(texts, 'str')!r}")
    if encoding != "utf-8-sig":
        options.append(f"encoding={encoding!r}")
    if spaces:
        options.append("skipinitialspace=True")
    code = f"pd.read_csv({', '.join([repr(str(path)), *options])})"
    for name, form in found["dates"].items():
        dates = f"lambda t: pd.to_datetime(t[{name!r}], format={form!r})"
        code += f".assign(**{{{name!r}: {dates}}})"
    return code


def _missing_options(frame, reading, found):
    """Write the options for missing values.

    By default, pandas reads texts such as NA as missing values.
    """
    given = list(reading.missing)
    # Only text columns can contain texts that pandas would read as missing values.
    texts = [name for name, dtype in frame.dtypes.items() if dtype.kind not in "biuf"]
    kept = [name for name in texts if frame[name].isin(MARKERS).any()]
    if not kept and not found["texts"]:
        return [f"na_values={given!r}"] if given else []
    usual = sorted(MARKERS)
    values = {
        name: ["", *given] if name in kept else [*usual, *given, *found["texts"].get(name, ())]
        for name in frame.columns
    }
    return [f"na_values={values!r}", "keep_default_na=False"]


def other_code(path, given, names, *, has_index):
    """Write code that reads Parquet, Feather or JSON lines and renames `given` to `names`."""
    kind = kind_of(path)[0]
    if kind == "jsonl":
        code = f"pd.read_json({str(path)!r}, lines=True, dtype=False, precise_float=True)"
    else:
        code = f"pd.read_{kind}({str(path)!r})"
    if has_index:
        code += ".reset_index()"
    if list(given) != list(names):
        code += f".set_axis({list(names)!r}, axis=1)"
    return code


def large_code(path, n_columns):
    """Write code that opens a directory of Parquet files, a Zarr array or a .npy file."""
    from cafelearn.cli.large import is_zarr

    if path.is_dir() and not is_zarr(path):
        return f"dd.read_parquet({str(path)!r})"
    opened = "da.from_zarr" if path.is_dir() else "from_npy"
    array = f"{opened}({str(path)!r})"
    names = f'[f"x{{v}}" for v in range({n_columns})]'
    return f"dd.from_dask_array({array}, columns={names})"
