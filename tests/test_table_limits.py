"""Small files that describe huge tables, or that point beyond their own bytes, are refused."""

import gzip

import numpy as np
import pandas as pd
import pytest

from cafelearn.cli import arrow, limits
from cafelearn.cli.large import open_large
from cafelearn.cli.reading import read_table

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
ipc = pytest.importorskip("pyarrow.ipc")

TOO_LARGE = r"was not read: it (has .* bytes and )?would need (about|more than) .* GB"


def packed(path, head, unit, megabytes):
    with gzip.open(path, "wb") as file:
        file.write(head)
        for _ in range(megabytes):
            file.write(unit * ((1 << 20) // len(unit)))


def feather(path, column, **options):
    table = pa.table({"a": column})
    with ipc.new_file(str(path), table.schema, options=ipc.IpcWriteOptions(**options)) as file:
        file.write_table(table)


@pytest.mark.parametrize(
    ("name", "head", "unit"),
    [
        ("rows.csv.gz", b"a,b\n", b"1,2\n"),
        ("cells.csv.gz", b"a,b\n", b","),
        ("header.csv.gz", b"", b","),
        ("records.jsonl.gz", b"", b"{}\n"),
        ("lists.jsonl.gz", b"", b'{"a":[[],[],[],[]]}\n'),
    ],
)
def test_gzip_bombs(name, head, unit, tmp_path):
    packed(tmp_path / name, head, unit, 64)
    with pytest.raises(ValueError, match=TOO_LARGE + r".* decompress the file first"):
        read_table(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("short lines.csv", b"a," * 20_000 + b"b\n" + b"1\n" * 20_000),
        ("many columns.csv", b"," * 700_000 + b"\n1,2\n"),
        ("many keys.jsonl", b"".join(b'{"k%d":1}\n' % i for i in range(20_000))),
    ],
)
def test_cells_that_are_not_in_the_file(name, data, tmp_path):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=TOO_LARGE):
        read_table(tmp_path / name)


def long_list(values):
    return pa.ListArray.from_arrays([0, len(values)], values)


PARQUET = {
    "zeros": lambda: {f"c{v}": np.zeros(1_000_000) for v in range(60)},
    "nulls": lambda: {"a": pa.nulls(60_000_000), "b": pa.nulls(60_000_000)},
    "a long list": lambda: {"a": long_list(pa.nulls(60_000_000, pa.int64()))},
    "one long text": lambda: {"a": pa.array(["x" * 1_000_000] * 800)},
}


@pytest.mark.parametrize("columns", PARQUET.values(), ids=PARQUET)
def test_parquet_bombs(columns, tmp_path):
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table(columns()), path, compression="zstd")
    with pytest.raises(ValueError, match=TOO_LARGE + r".* in a directory"):
        read_table(path)


@pytest.mark.parametrize("columns", PARQUET.values(), ids=PARQUET)
def test_parquet_bombs_in_a_directory(columns, tmp_path):
    pytest.importorskip("dask")
    table = pa.table(columns())
    path = tmp_path / "t.parquet"
    parquet.write_table(table, path, compression="zstd", row_group_size=max(1, len(table)))
    with pytest.raises(ValueError, match=r"t\.parquet " + TOO_LARGE + r".* smaller row groups"):
        open_large(tmp_path).frame.compute(scheduler="sync")


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
    ("shape", "chunks"),
    [
        ((100_000_000, 2), (100_000_000, 2)),  # none of them written
        ((1_000, 1_000_000), (1_000, 10)),  # all columns of a row are read together
        ((10, 2), (100_000_000, 2)),  # chunks are unpacked whole
        ((10**12, 2), (10, 2)),  # as many tasks
    ],
)
def test_zarr_bombs(shape, chunks, zarr_format, tmp_path):
    zarr = pytest.importorskip("zarr")
    path = tmp_path / "t.zarr"
    options = {"shape": shape, "chunks": chunks, "dtype": "f8", "zarr_format": zarr_format}
    zarr.create_array(str(path), **options)
    with pytest.raises(ValueError, match=r"t\.zarr " + TOO_LARGE):
        open_large(path)


def test_a_damaged_page_in_a_directory(tmp_path):
    pytest.importorskip("dask")
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"a": np.arange(1000.0)}), path, use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[4:40] = b"\xff" * 36
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"t\.parquet cannot be read as parquet: ") as raised:
        open_large(tmp_path).frame.compute(scheduler="sync")
    assert "\n" not in str(raised.value)


def test_text_of_shared_prefixes(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table({"a": pa.array(["x" * 1_000_000] * 800)})
    options = {"use_dictionary": False, "column_encoding": {"a": "DELTA_BYTE_ARRAY"}}
    parquet.write_table(table, path, compression="zstd", **options)
    assert path.stat().st_size < 1000
    with pytest.raises(ValueError, match=TOO_LARGE):
        read_table(path)


def overlapping_views():
    """A thousand texts of a million bytes, which are the same bytes."""
    views = np.array([[1_000_000, 0x78787878, 0, 0]] * 1000, dtype="<i4")
    text = pa.py_buffer(b"x" * 1_000_000)
    return pa.Array.from_buffers(
        pa.string_view(), 1000, [None, pa.py_buffer(views.tobytes()), text]
    )


FEATHER = {
    "zeros": lambda: np.zeros(60_000_000),
    "nulls": lambda: pa.nulls(120_000_000),
    "views of the same text": overlapping_views,
    "a list of nulls": lambda: long_list(pa.nulls(120_000_000)),
}


@pytest.mark.parametrize("column", FEATHER.values(), ids=FEATHER)
def test_feather_bombs(column, tmp_path):
    feather(tmp_path / "t.feather", column(), compression="zstd")
    with pytest.raises(ValueError, match=TOO_LARGE):
        read_table(tmp_path / "t.feather")


def test_runs_of_values_are_refused(tmp_path):
    ends, values = pa.array([300_000_000], pa.int64()), pa.array([1.5])
    feather(tmp_path / "t.feather", pa.RunEndEncodedArray.from_arrays(ends, values))
    with pytest.raises(ValueError, match=TOO_LARGE):
        read_table(tmp_path / "t.feather")


def buffers(kind, *parts, length=3):
    parts = [None if part is None else pa.py_buffer(part) for part in parts]
    return pa.Array.from_buffers(kind, length, parts)


def test_offsets_beyond_the_text_are_refused(tmp_path):
    offsets = np.array([0, 2**30, 2, 3], dtype="<i4").tobytes()
    feather(tmp_path / "t.feather", buffers(pa.string(), None, offsets, b"abc"))
    with pytest.raises(ValueError, match=r"t.feather cannot be read as feather: .*[oO]ffset"):
        read_table(tmp_path / "t.feather")


def test_a_length_beyond_the_file_allocates_nothing(tmp_path):
    """Arrow would allocate the 2 GB that the length of the first message asks for."""
    path = tmp_path / "t.feather"
    feather(path, [1.0, 2.0])
    data = bytearray(path.read_bytes())
    assert data[8:12] == b"\xff" * 4  # before the length
    data[12:16] = (2**31 - 8).to_bytes(4, "little")
    path.write_bytes(data)
    before = pa.default_memory_pool().max_memory()
    assert read_table(path)["a"].tolist() == [1.0, 2.0]  # it is found by its footer
    assert pa.default_memory_pool().max_memory() - before < 2**20


def npy(shape, kind="<f8"):
    return b"{'descr': '%b', 'fortran_order': False, 'shape': (%b), }" % (kind.encode(), shape)


NPY = {
    "open brackets": b"{'descr': '<f8', ((((",
    "incomplete": b"{'descr': '<f8', 'shape': (9999999999, 3)}",
    "an open quote": b"'",
    "nested too deeply": b"-" * 5000 + b"1",
    "too long": npy(b"2, 4") + b" " * 20_000,
    "beyond the file": npy(b"9999999999, 4"),
    "beyond 64 bits": npy(b"9" * 30 + b", 4"),
    "negative": npy(b"-2, -4"),
    "no integers": npy(b"True, 8"),
    "objects": npy(b"2, 4", "|O"),
    "no bytes": npy(b"2, 4", "|V0"),
}


@pytest.mark.parametrize("header", NPY.values(), ids=NPY)
def test_damaged_headers_of_npy_files(header, tmp_path):
    pytest.importorskip("dask")
    from cafelearn.distributed import from_npy

    path = tmp_path / "t.npy"
    text = header + b"\n"
    path.write_bytes(b"\x93NUMPY\x02\x00" + len(text).to_bytes(4, "little") + text + bytes(64))
    for read in (open_large, from_npy):
        with pytest.raises(ValueError, match=r"t\.npy cannot be read as an array: ") as raised:
            read(path)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "data",
    [b"", b"\x93NUM", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{", b"\x93NUMPY\x09\x00", b"PK\3\4"],
)
def test_files_that_are_no_arrays(data, tmp_path):
    pytest.importorskip("dask")
    from cafelearn.distributed import from_npy

    (tmp_path / "t.npy").write_bytes(data)
    with pytest.raises(ValueError, match=r"t\.npy cannot be read as an array: it"):
        from_npy(tmp_path / "t.npy")


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_sound_feather_files_are_read(compression, tmp_path):
    table = pa.table(
        {
            "a": [1.5, None, 3.0],
            "b": ["x", "y", None],
            "c": pa.array(["u", "v", "a text that is too long for a view"], pa.string_view()),
            "d": pa.array(["p", "q", "p"]).dictionary_encode(),
            "e": [[1, 2], [], None],
            "f": [{"g": 1}, None, {"g": 2}],
        }
    )
    path = tmp_path / "t.feather"
    options = ipc.IpcWriteOptions(compression=compression)
    with ipc.new_file(str(path), table.schema, options=options) as file:
        file.write_table(table, max_chunksize=2)
    frame = read_table(path)
    assert frame["a"].fillna(0).tolist() == [1.5, 0, 3]
    assert frame["c"].tolist() == table["c"].to_pylist()
    assert frame["d"].tolist() == ["p", "q", "p"]
    assert [list(x) if x is not None else x for x in frame["e"]] == [[1, 2], [], None]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_sound_parquet_files_are_read(version, tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "t.parquet"
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=30_000),
            "b": [f"row {i}" for i in range(30_000)],
            "c": rng.choice(["x", "y"], 30_000),
            "d.e": rng.integers(0, 9, 30_000),
        }
    )
    frame.to_parquet(
        path, data_page_version=version, data_page_size=10_000, row_group_size=9_000
    )
    pd.testing.assert_frame_equal(read_table(path), frame)


def test_a_table_larger_than_memory(tmp_path, monkeypatch):
    pd.DataFrame({"a": np.zeros(20_000_000)}).to_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr(limits, "memory", lambda: 2**26)
    with pytest.raises(ValueError, match="more than this computer's memory"):
        read_table(tmp_path / "t.parquet")


def test_a_crash_is_an_error(tmp_path, monkeypatch):
    script = tmp_path / "trial.py"
    script.write_text("import os\nos.abort()\n")
    pd.DataFrame({"a": [1.0]}).to_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr(arrow, "TRIAL", script)
    with pytest.raises(ValueError, match=r"cannot be read as parquet: the file is damaged\."):
        read_table(tmp_path / "t.parquet")
    script.write_text("import nothing_of_the_kind\n")
    with pytest.raises(RuntimeError, match=r"cannot check .*No module named 'nothing_of"):
        read_table(tmp_path / "t.parquet")
