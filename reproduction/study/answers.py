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
    """Validate the records of the study and convert their types.

    Parameters
    ----------
    results : DataFrame
        One row per run, see :func:`~reproduction.study.run.read_study`.
    caller : str
        Name of the caller for error messages.

    Returns
    -------
    results : DataFrame
        A copy in which failed runs have no scores or times. Its additional column `accuracy`
        is the mean of `knn_5`, `knn_20`, `logistic_5` and `logistic_20`.

    Examples
    --------
    >>> import pandas as pd
    >>> from reproduction.study.answers import check_study
    >>> run = {"dataset": "iris", "regime": "clean", "version": 0, "task": "labels"}
    >>> run |= {"method": "paper", "status": "failed", "ari": 0.5}
    >>> check_study(pd.DataFrame([run]), "example")["ari"].isna().tolist()
    [True]
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
    """Compute the mean score of each method in each configuration.

    Parameters
    ----------
    results : DataFrame
        One row per run, see :func:`~reproduction.study.run.read_study`.
    task : {"labels", "features"}, default="labels"
        Task of the runs.
    score : str, default=None
        Column to average; ``None`` means "ari" for labels, and "accuracy" for features, see
        :func:`check_study`.

    Returns
    -------
    means : DataFrame
        One row per data set and regime, one column per method, in the order of the study. A
        method that has no score in a configuration has NaN there.

    Examples
    --------
    >>> import pandas as pd
    >>> from reproduction.study.answers import configuration_means
    >>> results = pd.DataFrame({
    ...     "dataset": "iris", "regime": "clean", "version": [0, 1, 0, 1], "task": "labels",
    ...     "method": ["paper", "paper", "cafe", "cafe"], "status": "done",
    ...     "ari": [0.2, 0.4, 0.6, 0.9]})
    >>> configuration_means(results).round(3)
    method          paper  cafe
    dataset regime
    iris    clean     0.3  0.75
    """
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
    """Average the scores of each method over the data sets, by regime.

    Parameters
    ----------
    results : DataFrame
        One row per run, see :func:`~reproduction.study.run.read_study`.
    task : {"labels", "features"}, default="labels"
        Task of the runs.
    score : str, default=None
        As for :func:`configuration_means`.
    sets : sequence of str, default=None
        Data sets to include; ``None`` means all.

    Returns
    -------
    means : DataFrame
        One row per regime, one column per method.

    Examples
    --------
    >>> import pandas as pd
    >>> from reproduction.study.answers import by_regime
    >>> results = pd.DataFrame({
    ...     "dataset": ["iris", "glass"], "regime": "clean", "version": 0, "task": "labels",
    ...     "method": "cafe", "status": "done", "ari": [0.75, 0.25]})
    >>> by_regime(results)
    method  cafe
    regime
    clean    0.5
    """
    return _grouped(configuration_means(results, task, score), "regime", sets)


def by_dataset(results: pd.DataFrame, task: str = "labels") -> pd.DataFrame:
    """Average the scores of each method over the regimes, by data set.

    Parameters
    ----------
    results : DataFrame
        One row per run, see :func:`~reproduction.study.run.read_study`.
    task : {"labels", "features"}, default="labels"
        Task of the runs.

    Returns
    -------
    means : DataFrame
        One row per data set, one column per method.

    Examples
    --------
    >>> import pandas as pd
    >>> from reproduction.study.answers import by_dataset
    >>> results = pd.DataFrame({
    ...     "dataset": "iris", "regime": ["clean", "columns"], "version": 0,
    ...     "task": "labels", "method": "cafe", "status": "done", "ari": [0.75, 0.25]})
    >>> by_dataset(results)
    method   cafe
    dataset
    iris      0.5
    """
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
    """Tabulate the accuracies of the classifiers, and their mean, by regime and method.

    Parameters
    ----------
    results : DataFrame
        One row per run, see :func:`~reproduction.study.run.read_study`.

    Returns
    -------
    table : DataFrame
        One row per regime and method, with the columns `knn_5`, `knn_20`, `logistic_5`,
        `logistic_20` and their mean, `accuracy`.

    Examples
    --------
    >>> import pandas as pd
    >>> from reproduction.study.answers import accuracies
    >>> results = pd.DataFrame({
    ...     "dataset": "iris", "regime": "clean", "version": 0, "task": "features",
    ...     "method": ["pca"], "status": "done", "knn_5": 0.5, "knn_20": 0.7,
    ...     "logistic_5": 0.6, "logistic_20": 0.8})
    >>> accuracies(results)
                   knn_5  knn_20  logistic_5  logistic_20  accuracy
    regime method
    clean  pca       0.5     0.7         0.6          0.8      0.65
    """
    names = [*ACCURACIES, "accuracy"]
    tables = {name: by_regime(results, "features", name).stack() for name in names}
    return pd.DataFrame(tables)[names]


def median_seconds(results: pd.DataFrame) -> pd.DataFrame:
    """Compute the median run time of each method for each task.

    Parameters
    ----------
    results : DataFrame
        One row per run, see :func:`~reproduction.study.run.read_study`.

    Returns
    -------
    seconds : DataFrame
        One row per method, one column per task. Failed runs and the method "trivial" are left
        out.

    Examples
    --------
    >>> import pandas as pd
    >>> from reproduction.study.answers import median_seconds
    >>> results = pd.DataFrame({
    ...     "dataset": "iris", "regime": "clean", "version": [0, 1, 2], "task": "labels",
    ...     "method": "cafe", "status": "done", "seconds": [0.2, 0.4, 0.3]})
    >>> median_seconds(results)
    task    labels
    method
    cafe       0.3
    """
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

    Parameters
    ----------
    results : DataFrame
        One row per run, see :func:`~reproduction.study.run.read_study`.

    Returns
    -------
    shares : DataFrame
        One row per regime, one column per code of a :class:`~cafelearn.diagnosis.Finding`.

    Examples
    --------
    >>> import pandas as pd
    >>> from reproduction.study.answers import finding_shares
    >>> results = pd.DataFrame({
    ...     "dataset": "iris", "regime": "clean", "version": [0, 1], "task": "labels",
    ...     "method": "cafe", "status": "done", "findings": ["", "uniform,collapsed"]})
    >>> finding_shares(results)
            collapsed  uniform
    regime
    clean         0.5      0.5
    """
    results = check_study(results, "finding_shares")
    fits = results.query("task == 'labels' and method == 'cafe' and status == 'done'")
    codes = fits["findings"].str.get_dummies(",").drop(columns="", errors="ignore")
    shares = codes.groupby(fits["regime"]).mean()
    return shares.loc[[regime for regime in REGIMES if regime in shares.index]]
