"""Damaged model files and tables: each is rejected with a one-line error, or read correctly."""

import io
import json
import random
import resource
import tempfile
import zipfile
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from cafelearn import CAFE, MinkowskiWeightedKMeans
from cafelearn._tabular import TabularCAFE
from cafelearn.cli.reading import read_table
from cafelearn.persistence import ModelFileError, _pack, load_model

ROWS = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("abc"))
TABLE = ROWS.assign(kind=np.where(np.arange(40) % 3, "x, y", 'quo"ted'), day="2024-01-05")
INSERTED = (b"\0", b"\xff\xfe", b'"', b"\n", b",,,", b"1e999", b"nan")
# Kilobytes of memory that one file may add.
MEMORY = 1 << 20


@lru_cache
def models():
    """Sound model files."""
    options = {"n_components": 2, "n_init": 1, "p": (1.5, 2.0), "random_state": 0}
    fitted = [
        MinkowskiWeightedKMeans(2, n_init=1, random_state=0).fit(ROWS),
        CAFE(2, **options).fit(ROWS),
        TabularCAFE(CAFE(2, **options)).fit(TABLE),
    ]
    return [_pack(model) for model in fitted]


@lru_cache
def tables():
    """Sound tables, as pairs of a suffix and the bytes of the file."""
    found = []
    with tempfile.TemporaryDirectory() as directory:
        for suffix in (".csv", ".tsv", ".csv.gz", ".jsonl", ".parquet", ".feather"):
            path = Path(directory) / f"table{suffix}"
            if suffix == ".parquet":
                TABLE.to_parquet(path)
            elif suffix == ".feather":
                TABLE.to_feather(path)
            elif suffix == ".jsonl":
                TABLE.to_json(path, orient="records", lines=True)
            else:
                TABLE.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
            found.append((suffix, path.read_bytes()))
    return found


def mutated(data, dice):
    """Bytes with some of them changed, removed, repeated or inserted."""
    data = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 8))):
        at = dice.randrange(len(data) + 1)
        length = dice.choice((1, 1, 4, 64, 1000))
        what = dice.randrange(6)
        if what == 0:
            data[at : at + 1] = bytes([dice.randrange(256)])
        elif what == 1:
            del data[at : at + length]
        elif what == 2:
            data[at:at] = data[at : at + length] * dice.choice((1, 2, 100))
        elif what == 3:
            data[at:at] = dice.choice(
                (b"\0", b"\xff\xfe", b'"', b"\n", b",,,", b"1e999", b"nan")
            )
        elif what == 4:
            data[at : at + length] = dice.randbytes(len(data[at : at + length]))
        elif data:
            data = data[: max(at, 1)]
        if not data:
            data = bytearray(b"\0")
    return bytes(data)


def damaged_model(case):
    """A model file, damaged in its bytes, in one member, or in the shape of an array."""
    data, dice = models()[case["file"] % len(models())], random.Random(case["seed"])
    if case["how"] == "bytes":
        return mutated(data, dice)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(out, "w") as copy:
        names = archive.namelist()
        arrays = [name for name in names if name.endswith(".npy")]
        chosen = dice.choice(arrays if case["how"] == "shape" else names)
        for name in names:
            content = archive.read(name)
            if name == chosen:
                content = (
                    reshaped(content, dice)
                    if case["how"] == "shape"
                    else mutated(content, dice)
                )
            copy.writestr(name, content)
    return out.getvalue()


def reshaped(content, dice):
    """An array of another shape or type, or with hostile numbers in it."""
    array = np.load(io.BytesIO(content), allow_pickle=False)
    what = dice.randrange(6)
    if what == 0:
        array = np.zeros(tuple(dice.choice((0, 1, 2, 3, 7, 1000)) for _ in array.shape))
    elif what == 1:
        array = array[None]
    elif what == 2:
        array = array.ravel()[: dice.randrange(array.size + 1)]
    elif what == 3:
        array = array.astype(dice.choice(("i4", "f4", "U3", "c16", "?")))
    elif what == 4 and array.size and array.dtype.kind in "fi":
        array = array.copy()
        numbers = (np.nan, np.inf, -1e300, 1e300, -1, 2**31 - 1, 0)
        value = dice.choice(numbers)
        if array.dtype.kind == "f" or abs(value) < 2**31:
            array.flat[dice.randrange(array.size)] = value
    else:
        array = np.asfortranarray(np.flip(array))
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def run_model(case):
    """Findings about one damaged model file."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.skops"
        path.write_bytes(damaged_model(case))
        try:
            model = load_model(path)
        except ModelFileError as error:
            yield from one_line(error)
        else:
            yield from use(model)
    yield from memory(before)


def use(model):
    """Check that a loaded model works or raises a one-line error."""
    rows = TABLE if isinstance(model, TabularCAFE) else ROWS
    try:
        with np.errstate(all="ignore"):
            labels = model.predict(rows)
            model.transform(rows)
    except (ValueError, KeyError) as error:
        yield from one_line(error)
    else:
        if len(labels) != len(rows) or not ((labels >= 0) & (labels < 2)).all():
            yield "a damaged model gives labels that are no clusters"


def run_table(case):
    """Findings about one damaged table."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    suffix, data = tables()[case["file"] % len(tables())]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"table{suffix}"
        path.write_bytes(mutated(data, random.Random(case["seed"])))
        try:
            frame = read_table(path)
        except (ValueError, ImportError) as error:
            yield from one_line(error)
        else:
            if not len(frame) or not len(frame.columns) or not frame.columns.is_unique:
                yield "a damaged table is read without rows or with equal names"
    yield from memory(before)


def one_line(error):
    """A finding unless the message is one line with words in it."""
    message = str(error)
    if "\n" in message or not message.strip():
        yield f"a message of several lines or none: {json.dumps(message[:100])}"


def memory(before):
    """A finding if the file took too much memory."""
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if more > MEMORY:
        yield f"memory: {more >> 10} MB"
