"""Clustering methods that the comparison study compares CAFE with; k is given.

Two of them are optional: "mclust" runs R's package mclust by Rscript, and "stepmix" needs the
Python package stepmix.
"""

import io
import os
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from cafelearn.data.variables import one_hot_groups
from cafelearn.estimators.scaling import RangeScaler
from reproduction.study.public_data import r_has
from reproduction.study.regimes import unique_patterns

# Added to the variances of Gaussian mixtures, in units of the standard-scaled features.
REG_COVAR = 1e-3
STRUCTURES = ("spherical", "diag", "tied", "full")
# Seconds after which mclust is stopped.
MCLUST_SECONDS = 60
# Mclust(scale(X), G = k), model by model: each is printed as soon as it is fitted, and those
# with a slow inner iteration come last.
MCLUST = """
suppressPackageStartupMessages(library(mclust))
k <- as.integer(commandArgs(TRUE)[1])
X <- scale(as.matrix(read.csv(file("stdin"), header = FALSE)))
models <- mclust.options("emModelNames")
if (nrow(X) <= ncol(X)) models <- c("EII", "VII", "EEI", "VEI", "EVI", "VVI")
slow <- models %in% c("VEE", "EVE", "VVE")
pairs <- hc(X, modelName = mclust.options("hcModelName"), use = mclust.options("hcUse"))
for (model in c(models[!slow], models[slow])) {
  fit <- suppressWarnings(Mclust(
    X, G = k, modelNames = model, initialization = list(hcPairs = pairs), verbose = FALSE
  ))
  if (is.null(fit)) cat(model, "-Inf\\n")
  else cat(model, fit$bic, fit$classification, "\\n")
  flush(stdout())
}
cat("all")
"""


class Found(NamedTuple):
    """Labels of the rows, and what the method chose."""

    labels: np.ndarray
    choice: str = ""


def missing_method(name: str) -> str:
    """Return how to install what an optional method needs; "" if nothing is missing."""
    if name == "stepmix" and find_spec("stepmix") is None:
        return "the package stepmix: pip install stepmix"
    if name == "mclust" and not r_has("mclust"):
        return "R (Rscript on the path) with the package mclust: install.packages('mclust')"
    return ""


def cluster(method: str, X: np.ndarray, k: int, seed: int, n_init: int | None = None) -> Found:
    """Cluster rows with one of the ``RIVALS``."""
    needed = missing_method(method)
    if needed:
        raise ImportError(f"The method {method} needs {needed}.")
    return RIVALS[method](X, k, seed, n_init)


def _kmeans(scaler, X, k, seed, n_init):
    model = KMeans(k, n_init=n_init or 20, random_state=seed)
    return Found(model.fit_predict(scaler().fit_transform(X)))


def _ward(X, k, seed, n_init):
    return Found(AgglomerativeClustering(k).fit_predict(StandardScaler().fit_transform(X)))


def _hdbscan(X, k, seed, n_init):
    """Cluster with the default settings; the noise points form one more cluster."""
    return Found(HDBSCAN(copy=True).fit_predict(StandardScaler().fit_transform(X)))


def _mixture(structures, X, k, seed, n_init):
    """Fit a Gaussian mixture of each covariance structure, and keep that of the lowest BIC.

    A structure that cannot be fitted is left out if there are others.
    """
    X = StandardScaler().fit_transform(X)
    fits, reasons = {}, []
    for structure in structures:
        model = GaussianMixture(
            k,
            covariance_type=structure,
            n_init=n_init or 5,
            reg_covar=REG_COVAR,
            random_state=seed,
        )
        try:
            fits[structure] = model.fit(X)
        except ValueError as error:
            reasons.append(error)
    if not fits:
        raise reasons[0]
    best = min(fits, key=lambda structure: fits[structure].bic(X))
    return Found(fits[best].predict(X), best if len(structures) > 1 else "")


def _mclust(X, k, seed, n_init):
    """Fit R's Mclust with its defaults to scaled rows; it has no random numbers.

    If the time is up, the best of the models that were fitted is used.
    """
    text = io.StringIO()
    np.savetxt(text, X[:, np.ptp(X, axis=0) > 0], fmt="%.17g", delimiter=",")
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    command = subprocess.Popen(
        ["Rscript", "-e", MCLUST, str(k)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **threads},
    )
    try:
        printed, errors = command.communicate(text.getvalue(), timeout=MCLUST_SECONDS)
    except subprocess.TimeoutExpired:
        command.kill()
        printed, errors = command.communicate()
        errors = f"no model was fitted within {MCLUST_SECONDS} seconds. {errors}"
    finally:
        command.kill()
    # A line that does not end was cut off.
    lines = [line.split() for line in printed.split("\n")[:-1]]
    fits = {model: (float(bic), labels) for model, bic, *labels in lines if labels}
    if not fits:
        raise RuntimeError(f"mclust failed: {errors.strip()}")
    best = max(fits, key=lambda model: fits[model][0])
    choice = best if printed.endswith("all") else f"{best} (best of the first {len(lines)})"
    return Found(np.array(fits[best][1], dtype=np.int64), choice)


def _stepmix(X, k, seed, n_init):
    """Fit a latent class model: Gaussian, binary and categorical variables, independent.

    Features with two values are binary; those that together code a category are one
    categorical variable.
    """
    from stepmix import StepMix

    X = X[:, np.ptp(X, axis=0) > 0]
    two_valued = np.array([len(np.unique(column)) == 2 for column in X.T])
    coded = np.where(two_valued, X.max(axis=0) == X, StandardScaler().fit_transform(X))
    kinds = {"continuous": [], "binary": [], "categorical": []}
    for group in one_hot_groups(coded):
        if len(group) > 1:
            kinds["categorical"].append(coded[:, group].argmax(axis=1))
        else:
            kinds["binary" if two_valued[group[0]] else "continuous"].append(coded[:, group[0]])
    measurement = {
        kind: {"model": kind, "n_columns": len(columns)}
        for kind, columns in kinds.items()
        if columns
    }
    rows = np.column_stack([column for columns in kinds.values() for column in columns])
    model = StepMix(
        k, measurement=measurement, n_init=n_init or 5, random_state=seed, progress_bar=0
    )
    return Found(model.fit(rows).predict(rows))


def _trivial(X, k, seed, n_init):
    return Found(unique_patterns(X))


# Functions of the rows, the number of clusters, a seed and the number of starts, by method.
RIVALS: dict[str, Callable] = {
    "trivial": _trivial,
    "kmeans-range": lambda *given: _kmeans(RangeScaler, *given),
    "kmeans-standard": lambda *given: _kmeans(StandardScaler, *given),
    "ward": _ward,
    "hdbscan": _hdbscan,
    "gmm-diag": lambda *given: _mixture(("diag",), *given),
    "gmm-full": lambda *given: _mixture(("full",), *given),
    "gmm-bic": lambda *given: _mixture(STRUCTURES, *given),
    "mclust": _mclust,
    "stepmix": _stepmix,
}
