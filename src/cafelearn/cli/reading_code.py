"""Write the pandas or Dask code that reads a table, to be shown in the report."""

from cafelearn.cli.writing import kind_of


def text_code(path, delimiter, reading, encoding, *, first, header, names, spaces):
    """Write code that reads a text file as `read_table` did, with as few options as possible.

    `first` is the number of the header's last line, `header` the original names, `names` the
    repaired names, and `spaces` whether spaces follow delimiters.
    """
    options = [] if delimiter == "," else [f"sep={delimiter!r}"]
    if not reading.header or list(names) != list(header):
        options += [f"names={list(names)!r}", "header=None", "index_col=False"]
        options += [f"skiprows={first}"] if reading.header and first else []
    if reading.decimal != ".":
        options.append(f"decimal={reading.decimal!r}")
    if reading.missing:
        options.append(f"na_values={list(reading.missing)!r}")
    if encoding != "utf-8-sig":
        options.append(f"encoding={encoding!r}")
    if spaces:
        options.append("skipinitialspace=True")
    return f"pd.read_csv({', '.join([repr(str(path)), *options])})"


def other_code(path, given, names, *, has_index):
    """Write code for Parquet, Feather and JSON lines that renames `given` to `names`."""
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
    from cafelearn.cli.large_reading import is_zarr

    if path.is_dir() and not is_zarr(path):
        return f"dd.read_parquet({str(path)!r})"
    opened = "da.from_zarr" if path.is_dir() else "from_npy"
    array = f"{opened}({str(path)!r})"
    names = f'[f"x{{v}}" for v in range({n_columns})]'
    return f"dd.from_dask_array({array}, columns={names})"
