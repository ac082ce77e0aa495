"""Damaged model files and tables: each is rejected with a one-line error, or read correctly."""

import gzip
import io
import json
import random
import re
import resource
import tempfile
import zipfile
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from tests.fuzz.cases import MOST_CHANGES

from cafelearn import CAFE, MinkowskiWeightedKMeans
from cafelearn.cli.large import is_large, open_large
from cafelearn.cli.reading import read_table
from cafelearn.estimators.tabular import TabularCAFE
from cafelearn.files.models import SCHEMA, ModelFileError, _pack, load_model

ROWS = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=list("abc"))
TABLE = ROWS.assign(kind=np.where(np.arange(40) % 3, "x, y", 'quo"ted'), day="2024-01-05")
INSERTED = (b"\0", b"\xff\xfe", b'"', b"\n", b",,,", b"1e999", b"nan")
# What those say who could not get the memory that they asked for.
NO_MEMORY = re.compile("alloc|out of memory|MemoryError", re.IGNORECASE)
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
    numbers = np.arange(120.0).reshape(40, 3)
    found = [
        *(_written(suffix, TABLE.to_csv, index=False) for suffix in (".csv", ".csv.gz")),
        _written(".csv", TABLE.to_csv, index=False, encoding="utf-16"),
        _written(".tsv", TABLE.to_csv, index=False, sep="\t"),
        *(
            _written(suffix, TABLE.to_json, orient="records", lines=True)
            for suffix in (".jsonl", ".jsonl.gz")
        ),
        _written(".parquet", TABLE.to_parquet),
        _written(".parquet", TABLE.to_parquet, compression="zstd", data_page_version="2.0"),
        _written(".parquet", TABLE.to_parquet, compression=None, use_dictionary=False),
        _written(".feather", TABLE.to_feather),
        _written(".feather", TABLE.astype({"kind": "category"}).to_feather, compression="zstd"),
        _written(".feather", TABLE.to_feather, compression="uncompressed"),
        _written(".npy", lambda path: np.save(path, numbers)),
    ]
    return found


def _written(suffix, write, **options):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"table{suffix}"
        write(path, **options)
        return suffix, path.read_bytes()


def mutated(data, dice, without=()):
    """Bytes with some of them changed, removed, repeated or inserted.

    `without` are numbers of the changes that are left out.
    """
    data = bytearray(data)
    for number in range(dice.choice((1, 1, 2, MOST_CHANGES))):
        at = dice.randrange(len(data) + 1)
        length = dice.choice((1, 1, 4, 64, 1000))
        what = dice.randrange(6)
        if number in without:
            continue
        if what == 0:
            data[at : at + 1] = bytes([dice.randrange(256)])
        elif what == 1:
            del data[at : at + length]
        elif what == 2:
            data[at:at] = data[at : at + length] * dice.choice((1, 2, 100))
        elif what == 3:
            data[at:at] = dice.choice(INSERTED)
        elif what == 4:
            data[at : at + length] = dice.randbytes(len(data[at : at + length]))
        elif data:
            data = data[: max(at, 1)]
        if not data:
            data = bytearray(b"\0")
    return bytes(data)


def renumbered(data, dice, without=()):
    """Bytes in which integers are replaced by extreme ones: lengths, offsets and counts."""
    data = bytearray(data)
    for number in range(dice.choice((1, 2, 4))):
        size = dice.choice((1, 2, 4, 8))
        # Headers are at the ends.
        span = dice.choice((200, 1000, len(data)))
        at = dice.randrange(min(span, len(data)))
        at = len(data) - 1 - at if dice.randrange(2) else at
        bits = 8 * size
        value = dice.choice(
            (0, 1, 2**bits - 1, 2 ** (bits - 1) - 1, 2 ** (bits - 1), 2**bits - 8)
        )
        if number not in without:
            data[at : at + size] = value.to_bytes(size, "little")[: len(data) - at]
    return bytes(data)


def rescheduled(content, dice, without=()):
    """A description of a model in which some values are replaced by others."""
    schema = json.loads(content)
    for number in range(dice.choice((1, 1, 2, 4))):
        places = [*_places(schema)]
        owner, key = places[dice.randrange(len(places))]
        other, name = places[dice.randrange(len(places))]
        values = (None, -1, 2**31, 10**30, 1e300, True, "", "x" * 1000, [], {}, [[]] * 50)
        value = dice.choice((*values, other[name], other[name]))
        if number not in without:
            owner[key] = json.loads(json.dumps(value))
    return json.dumps(schema).encode()


def _places(node):
    """Every (container, key) of a JSON value."""
    todo = [node]
    while todo:
        owner = todo.pop()
        keys = range(len(owner)) if isinstance(owner, list) else list(owner)
        for key in keys:
            yield owner, key
            if isinstance(owner[key], list | dict):
                todo.append(owner[key])


def damaged_model(case):
    """A model file, damaged in its bytes, in one member, or in the shape of an array."""
    data, dice = models()[case["file"] % len(models())], random.Random(case["seed"])
    how, without = case["how"], case.get("without", ())
    if how in ("bytes", "numbers"):
        return (mutated if how == "bytes" else renumbered)(data, dice, without)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(out, "w") as copy:
        names = archive.namelist()
        arrays = [name for name in names if name.endswith(".npy")]
        chosen = {"shape": arrays, "schema": [SCHEMA], "member": names}[how]
        chosen = dice.choice(chosen)
        for name in names:
            content = archive.read(name)
            if name == chosen and how == "shape":
                content = reshaped(content, dice)
            elif name == chosen:
                change = rescheduled if how == "schema" else mutated
                content = change(content, dice, without)
            copy.writestr(name, content)
    return out.getvalue()


def damaged_table(case):
    """The suffix and the bytes of a damaged table."""
    suffix, data = tables()[case["file"] % len(tables())]
    dice, without = random.Random(case["seed"]), case.get("without", ())
    if case["how"] == "numbers":
        return suffix, renumbered(data, dice, without)
    if case["how"] == "inside" and suffix.endswith(".gz"):
        return suffix, gzip.compress(mutated(gzip.decompress(data), dice, without))
    return suffix, mutated(data, dice, without)


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
        to = dice.choice(("i4", "f4", "U3", "c16", "?"))
        array = array.astype(to if array.dtype.kind != "U" else "S9")
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
    """How one damaged model file ends, and findings about it."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome, findings = "loaded", []
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "model.skops"
        path.write_bytes(damaged_model(case))
        try:
            model = load_model(path)
        except ModelFileError as error:
            outcome, findings = "refused", [*one_line(error)]
        else:
            findings = [*use(model)]
    return outcome, [*findings, *memory(before)]


def use(model):
    """Check that a loaded model works or raises a one-line error."""
    rows = TABLE
    if not isinstance(model, TabularCAFE):
        # A change in the file may have renamed features.
        rows = ROWS.set_axis(getattr(model, "feature_names_in_", ROWS.columns), axis=1)
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
    """How one damaged table ends, and findings about it."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome, findings = "read", []
    suffix, data = damaged_table(case)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / f"table{suffix}"
        path.write_bytes(data)
        try:
            frame = open_large(path).frame.compute() if is_large(path) else read_table(path)
        except ValueError as error:
            outcome, findings = "refused", [*one_line(error)]
        else:
            if not len(frame) or not len(frame.columns) or not frame.columns.is_unique:
                findings.append("a damaged table is read without rows or with equal names")
            # Offsets that lead beyond the bytes of a column show when it is printed.
            frame.to_csv(io.StringIO())
    return outcome, [*findings, *memory(before)]


def one_line(error):
    """A finding unless the message is one line with words in it."""
    message = str(error)
    if "\n" in message or not message.strip():
        yield f"a message of several lines or none: {json.dumps(message[:100])}"
    if NO_MEMORY.search(message):
        yield f"memory: {json.dumps(message[:200])}"


def memory(before):
    """A finding if the file took too much memory."""
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if more > MEMORY:
        yield f"memory: {more >> 10} MB"
