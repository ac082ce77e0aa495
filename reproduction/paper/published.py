"""The paper's tables as data, and the deviation of results from them.

The numbers are those of Tables 1 and 2 of R. C. de Amorim and V. Makarenkov,
"Cluster-Adaptive Feature Extraction and its Theoretical Foundation with Minkowski Weighted
k-Means": mean and standard deviation of the adjusted Rand index (ARI) over 20 noisy versions.
"""

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

# Columns that identify a configuration; the paper has 9 x 2 x 3 = 54 configurations.
CONFIGURATION = ["dataset", "noise_level", "noise_scale"]
# Columns that identify a cell of the tables.
CELL = [*CONFIGURATION, "method"]
PUBLISHED_VERSIONS = 20
# Variances of the rounding errors of the published means (three decimals) and standard
# deviations (two decimals).
MEAN_ROUNDING = 0.001**2 / 12
STD_ROUNDING = 0.01**2 / 12


def published() -> pd.DataFrame:
    """Return the 432 cells of the paper's Tables 1 and 2, in their order.

    `mean_ari` is rounded to three decimals and `std_ari` to two.
    """
    return _published().copy()


@cache
def _published():
    table = pd.read_csv(Path(__file__).with_name("published_tables.csv"))
    return table.astype({"noise_scale": np.float64})


@cache
def paper_methods() -> tuple[str, ...]:
    """Return the eight methods of the paper, in the order of the columns of its tables."""
    return tuple(_published()["method"].unique())


def check_results(results: pd.DataFrame, caller: str, need_done: bool = False) -> pd.DataFrame:
    """Validate results and convert their types.

    `results` has one row per run, with the columns `dataset`, `noise_level`, `noise_scale`,
    `version`, `method`, `status` ("done" or "failed") and `ari`; `nmi` and `seconds` are
    optional. Failed runs get no `ari` and no `nmi`. With `need_done`, raise if no run has an
    `ari`.
    """
    needed = [*CELL, "version", "status", "ari"]
    absent = [name for name in needed if name not in results.columns]
    if absent:
        raise ValueError(
            f"{caller} needs results with the columns {', '.join(needed)}; "
            f"{', '.join(absent)} not found."
        )
    results = results.reindex(columns=[*needed, "nmi", "seconds"])
    for name in ("dataset", "method", "status"):
        results[name] = results[name].astype(str)
    for name in ("noise_level", "noise_scale", "ari", "nmi", "seconds"):
        results[name] = results[name].astype(np.float64)
    twice = int(results.duplicated([*CELL, "version"]).sum())
    if twice:
        raise ValueError(f"{caller} needs one row per run; {twice} are repeated.")
    results.loc[results["status"] != "done", ["ari", "nmi"]] = np.nan
    if need_done and not results["ari"].notna().any():
        raise ValueError(
            f"{caller} needs at least one run that is done and has an ari, got none in "
            f"{len(results)} runs."
        )
    return results


def cell_means(results: pd.DataFrame) -> pd.DataFrame:
    """Compute the mean and the standard deviation of each cell over its noisy versions.

    `n` is the number of versions with an ARI, `failed` the number of versions without.
    """
    runs = check_results(results, "cell_means")
    return runs.groupby(CELL, sort=False, as_index=False).agg(
        mean_ari=("ari", "mean"),
        std_ari=("ari", "std"),
        n=("ari", "count"),
        failed=("ari", lambda ari: int(ari.isna().sum())),
        mean_nmi=("nmi", "mean"),
        mean_seconds=("seconds", "mean"),
    )


def against_published(results: pd.DataFrame) -> pd.DataFrame:
    """Compare each cell that is also in the paper with the published value, in its order.

    `ours` and `ours_std` are the mean and the standard deviation of the results, `published`
    and `published_std` those of the paper; `n` and `failed` are as in :func:`cell_means`.

    z is the difference of the means divided by its standard error, the square root of
    ``ours_std**2 / n + (published_std**2 + 0.01**2 / 12) / 20 + 0.001**2 / 12``. The terms
    with 12 are the variances of the rounding errors of the published standard deviation and
    mean. With a single version, z is missing.

    If both means estimate the same number, z approximately follows Student's t distribution
    with Welch's `degrees_of_freedom`. With few versions, this distribution differs noticeably
    from the normal distribution.
    """
    ours = cell_means(results).rename(columns={"mean_ari": "ours", "std_ari": "ours_std"})
    theirs = published().rename(columns={"mean_ari": "published", "std_ari": "published_std"})
    columns = [*CELL, "ours", "ours_std", "n", "failed"]
    cells = theirs.merge(ours[ours["n"] > 0][columns], on=CELL, how="inner")
    of_ours = cells["ours_std"] ** 2 / cells["n"]
    of_theirs = (cells["published_std"] ** 2 + STD_ROUNDING) / PUBLISHED_VERSIONS
    difference = cells["ours"] - cells["published"]
    cells["z"] = difference / np.sqrt(of_ours + of_theirs + MEAN_ROUNDING)
    # With n = 1, ours_std is missing, and so are z and the degrees of freedom.
    uncertainty = of_ours**2 / (cells["n"] - 1) + of_theirs**2 / (PUBLISHED_VERSIONS - 1)
    cells["degrees_of_freedom"] = (of_ours + of_theirs) ** 2 / uncertainty
    return cells[[*columns, "published", "published_std", "z", "degrees_of_freedom"]]


def agreement(cells: pd.DataFrame) -> pd.DataFrame:
    """Summarise the deviations from the published means, over all cells and by group.

    `cells` is the result of :func:`against_published`; cells without a z are left out. `by` is
    the column that defines the groups, and `group` its value; in the first row, `by` is "all".
    `within_2` is the share of cells with ``abs(z) <= 2``, and `expected` the share expected of
    a repetition of the paper's experiment, for which `rms_z`, the root mean square of z, would
    be slightly above 1. `mean_difference` is the mean of `ours` minus `published`.
    """
    measured = cells[cells["z"].notna()]
    rows = [{"by": "all", "group": "", **_agreement(measured)}]
    for by in ("method", *CONFIGURATION):
        for group, some in measured.groupby(by, sort=False):
            rows.append({"by": by, "group": name_group(group), **_agreement(some)})
    return pd.DataFrame(rows)


def name_group(value: object) -> str:
    """Format a data set, method, noise level or noise scale; numbers have no trailing zeros."""
    return value if isinstance(value, str) else f"{value:g}"


def _agreement(cells):
    z, freedom = cells["z"], cells["degrees_of_freedom"]
    return {
        "cells": len(cells),
        "within_2": (z.abs() <= 2).mean() if len(z) else np.nan,
        "expected": (1 - 2 * stats.t.sf(2, freedom)).mean() if len(z) else np.nan,
        "rms_z": np.sqrt((z**2).mean()),
        "mean_difference": (cells["ours"] - cells["published"]).mean(),
    }
