"""The paper's tables as data, and the deviation of results from them.

The numbers are those of Tables 1 and 2 of R. C. de Amorim and V. Makarenkov,
"Cluster-Adaptive Feature Extraction and its Theoretical Foundation with Minkowski Weighted
k-Means": mean and standard deviation of the adjusted Rand index (ARI) over 20 noisy versions.
"""

from functools import cache
from importlib.resources import files

import numpy as np
import pandas as pd
from scipy import stats

__all__ = [
    "against_published",
    "agreement",
    "cell_means",
    "check_results",
    "name_group",
    "paper_methods",
    "published",
]

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
    """Return the 432 cells of the paper's Tables 1 and 2.

    Returns
    -------
    cells : DataFrame
        One row per cell, in the order of the tables, with the columns `dataset`,
        `noise_level`, `noise_scale`, `method`, `mean_ari` (rounded to three decimals) and
        `std_ari` (rounded to two).

    Examples
    --------
    >>> from reproduction.paper.published import published
    >>> cells = published()
    >>> len(cells)
    432
    >>> cells.query("dataset == 'iris' and noise_level == 0.4 and noise_scale == 1").iloc[3]
    dataset            iris
    noise_level         0.4
    noise_scale         1.0
    method         cafe+pca
    mean_ari          0.649
    std_ari             0.2
    Name: 387, dtype: object
    """
    return _published().copy()


@cache
def _published():
    path = files("reproduction.paper") / "published_tables.csv"
    with path.open("r", encoding="utf-8") as file:
        return pd.read_csv(file).astype({"noise_scale": np.float64})


@cache
def paper_methods() -> tuple[str, ...]:
    """Return the eight methods of the paper, in the order of the columns of its tables.

    Returns
    -------
    methods : tuple of str
        Their names.

    Examples
    --------
    >>> from reproduction.paper.published import paper_methods
    >>> paper_methods()[2:4]
    ('pca', 'cafe+pca')
    """
    return tuple(_published()["method"].unique())


def check_results(results: pd.DataFrame, caller: str, need_done: bool = False) -> pd.DataFrame:
    """Validate results and convert their types.

    Parameters
    ----------
    results : DataFrame
        One row per run, with the columns `dataset`, `noise_level`, `noise_scale`, `version`,
        `method`, `status` ("done" or "failed") and `ari`; `nmi` and `seconds` are optional.
    caller : str
        Name of the caller for error messages.
    need_done : bool, default=False
        Whether to raise if no run is done and has an `ari`.

    Returns
    -------
    results : DataFrame
        A copy with these nine columns, in which failed runs have no `ari` and no `nmi`.

    Examples
    --------
    >>> from reproduction.paper.published import check_results, published
    >>> runs = published().assign(version=0, status="done")
    >>> check_results(runs.rename(columns={"mean_ari": "ari"}), "example").shape
    (432, 9)
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

    Parameters
    ----------
    results : DataFrame
        One row per run, see :func:`check_results`.

    Returns
    -------
    cells : DataFrame
        One row per data set, noise level, noise scale and method, with the columns `mean_ari`,
        `std_ari` (missing for a single version), `n` (number of versions with an ARI),
        `failed` (number of versions without an ARI), `mean_nmi` and `mean_seconds`.

    Examples
    --------
    >>> import pandas as pd
    >>> from reproduction.paper.published import cell_means
    >>> results = pd.DataFrame({
    ...     "dataset": "iris", "noise_level": 0.2, "noise_scale": 1, "version": [0, 1, 2],
    ...     "method": "pca", "status": ["done", "done", "failed"], "ari": [0.5, 0.7, None]})
    >>> cell_means(results)[["method", "mean_ari", "std_ari", "n", "failed"]].round(3)
      method  mean_ari  std_ari  n  failed
    0    pca       0.6    0.141  2       1
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
    """Compare each cell with the published value.

    Parameters
    ----------
    results : DataFrame
        One row per run, see :func:`check_results`.

    Returns
    -------
    cells : DataFrame
        One row per cell that is also in the paper, in the paper's order. `ours` and `ours_std`
        are the mean and the standard deviation of the results, `published` and `published_std`
        those of the paper; `n` and `failed` are as in :func:`cell_means`; `z` and
        `degrees_of_freedom` are explained below.

    Notes
    -----
    z is the difference of the means divided by its standard error, the square root of
    ``ours_std**2 / n + (published_std**2 + 0.01**2 / 12) / 20 + 0.001**2 / 12``. The terms
    with 12 are the variances of the rounding errors of the published standard deviation and
    mean. With a single version, z is missing.

    If both means estimate the same number, z approximately follows Student's t distribution
    with Welch's `degrees_of_freedom`. With few versions, this distribution differs noticeably
    from the normal distribution.

    Examples
    --------
    >>> import pandas as pd
    >>> from reproduction.paper.published import against_published, published
    >>> cell = published().head(1).assign(status="done")
    >>> results = pd.concat(cell.assign(version=v, ari=0.1 * v) for v in range(3))
    >>> against_published(results)[["ours", "n", "published", "z"]].round(3)
       ours  n  published      z
    0   0.1  3      0.032  1.068
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

    Parameters
    ----------
    cells : DataFrame
        Result of :func:`against_published`.

    Returns
    -------
    table : DataFrame
        One row for all cells, then one for each method, each data set, each noise level and
        each noise scale. Cells without a z are left out. The columns are:

        - `by`, `group` : the column that defines the groups, and its value in this group;
          `by` is "all" in the first row;
        - `cells` : the number of cells;
        - `within_2` : the share of cells with ``abs(z) <= 2``;
        - `expected` : the share expected of a repetition of the paper's experiment;
        - `rms_z` : the root mean square of z, slightly above 1 for such a repetition;
        - `mean_difference` : the mean of `ours` minus `published`.

    Examples
    --------
    >>> import pandas as pd
    >>> from reproduction.paper.published import (
    ...     against_published, agreement, published)
    >>> cells = published().assign(status="done")
    >>> results = pd.concat(
    ...     cells.assign(version=v, ari=cells["mean_ari"] + shift)
    ...     for v, shift in enumerate([-0.1, 0.1]))
    >>> agreement(against_published(results)).round(2).iloc[:2, :5]
           by        group  cells  within_2  expected
    0     all                 432       1.0      0.73
    1  method  autoencoder     54       1.0      0.72
    """
    measured = cells[cells["z"].notna()]
    rows = [{"by": "all", "group": "", **_agreement(measured)}]
    for by in ("method", *CONFIGURATION):
        for group, some in measured.groupby(by, sort=False):
            rows.append({"by": by, "group": name_group(group), **_agreement(some)})
    return pd.DataFrame(rows)


def name_group(value: object) -> str:
    """Format a data set, method, noise level or noise scale as text.

    Parameters
    ----------
    value : str or float
        The value.

    Returns
    -------
    name : str
        The text; numbers have no trailing zeros.

    Examples
    --------
    >>> from reproduction.paper.published import name_group
    >>> name_group(5.0), name_group("iris")
    ('5', 'iris')
    """
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
