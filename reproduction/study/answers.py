"""Mean scores of the comparison study by configuration.

A configuration is a data set under a regime of noise, see `reproduction.study.regimes`. It
has one or more versions, which differ in their random numbers. If a method failed on some
versions of a configuration, these versions are left out for all methods. All configurations
have the same weight, whatever their number of versions. Means over configurations are over
those that have a score of every method.
"""

import numpy as np
import pandas as pd

from reproduction.study.plan import STUDY_DATASETS, STUDY_METHODS
from reproduction.study.regimes import REGIMES
from reproduction.study.run import ACCURACIES

CONFIGURATION = ["dataset", "regime"]
VERSION = [*CONFIGURATION, "version"]
SCORES = {"labels": "ari", "features": "accuracy"}
# This method does not cluster, it measures what the noise leaks; it is excluded from ranks and
# wins.
ASIDE = "trivial"


def check_study(results: pd.DataFrame, caller: str) -> pd.DataFrame:
    """Validate the records of the study, one row per run, and convert their types.

    Failed runs get no scores or times. The additional column `accuracy` is the mean of the
    accuracies of the classifiers.
    """
    needed = [*CONFIGURATION, "version", "task", "method", "status"]
    absent = [name for name in needed if name not in results.columns]
    if absent:
        raise ValueError(
            f"{caller} needs results with the columns {', '.join(needed)}; "
            f"{', '.join(absent)} not found."
        )
    twice = int(results.duplicated(needed[:-1]).sum())
    if twice:
        raise ValueError(f"{caller} needs one row per run; {twice} are repeated.")
    numbers = ["ari", *ACCURACIES, "seconds"]
    results = results.reindex(columns=[*needed, *numbers, "choice", "findings"])
    results[numbers] = results[numbers].astype(np.float64)
    results.loc[results["status"] != "done", numbers] = np.nan
    for name in ("choice", "findings"):
        results[name] = results[name].astype(object).fillna("").astype(str)
    results["accuracy"] = results[list(ACCURACIES)].mean(axis=1, skipna=False)
    return results


def configuration_means(
    results: pd.DataFrame, task: str = "labels", score: str | None = None
) -> pd.DataFrame:
    """Compute the mean score of each method (column) in each configuration (row)."""
    results = check_study(results, "configuration_means")
    some = results[results["task"] == task]
    score = score or SCORES[task]
    by_method = [*CONFIGURATION, "method"]
    some = some[some.groupby(by_method)[score].transform("count") > 0]
    failed = some[score].isna().groupby([some[name] for name in VERSION]).transform("any")
    means = some[~failed].groupby(by_method)[score].mean().unstack("method")
    known = pd.MultiIndex.from_product([STUDY_DATASETS, REGIMES], names=CONFIGURATION)
    methods = [name for name in STUDY_METHODS[task] if name in means.columns]
    return means.loc[known[known.isin(means.index)], methods]


def by_regime(
    results: pd.DataFrame,
    task: str = "labels",
    score: str | None = None,
    sets: tuple[str, ...] | None = None,
) -> pd.DataFrame:
    """Average the scores of each method over the data sets, by regime."""
    return _grouped(configuration_means(results, task, score), "regime", sets)


def by_dataset(results: pd.DataFrame, task: str = "labels") -> pd.DataFrame:
    """Average the scores of each method over the regimes, by data set."""
    return _grouped(configuration_means(results, task), "dataset")


def _grouped(means, level, sets=None):
    if sets is not None:
        means = means[means.index.get_level_values("dataset").isin(sets)]
    groups = means.groupby(level=level, sort=False)
    # A method that failed on hard data must not have its mean over the easy data only. If it
    # was not run on any data of the group, it does not matter.
    ran = groups.transform("count") > 0
    complete = means[(means.notna() | ~ran).all(axis=1)]
    order = [name for name in (*REGIMES, *STUDY_DATASETS) if name in means.index.unique(level)]
    return complete.groupby(level=level, sort=False).mean().reindex(order)


def accuracies(results: pd.DataFrame) -> pd.DataFrame:
    """Tabulate the accuracies of the classifiers, and their mean, by regime and method."""
    names = [*ACCURACIES, "accuracy"]
    tables = {name: by_regime(results, "features", name).stack() for name in names}
    return pd.DataFrame(tables)[names]


def median_seconds(results: pd.DataFrame) -> pd.DataFrame:
    """Compute the median run time of each method for each task."""
    results = check_study(results, "median_seconds").dropna(subset="seconds")
    table = results.pivot_table("seconds", "method", "task", aggfunc="median")
    rows = dict.fromkeys(name for names in STUDY_METHODS.values() for name in names)
    return table.loc[
        [name for name in rows if name in table.index and name != ASIDE],
        [task for task in SCORES if task in table.columns],
    ]


def finding_shares(results: pd.DataFrame) -> pd.DataFrame:
    """Compute the share of CAFE's fits with each finding, by regime.

    Only the fits of the task "labels" are counted.
    """
    results = check_study(results, "finding_shares")
    fits = results.query("task == 'labels' and method == 'cafe' and status == 'done'")
    codes = fits["findings"].str.get_dummies(",").drop(columns="", errors="ignore")
    shares = codes.groupby(fits["regime"]).mean()
    return shares.loc[[regime for regime in REGIMES if regime in shares.index]]
