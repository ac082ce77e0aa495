"""Ranks, winners and required scores of the comparison study.

A configuration is a data set under a regime of noise.
"""

import numpy as np
import pandas as pd

from cafelearn import datasets
from cafelearn.experiments.answers import (
    ASIDE,
    CONFIGURATION,
    check_study,
    configuration_means,
)
from cafelearn.experiments.ranking import Ranking, rank_methods
from cafelearn.experiments.regimes import BUNDLED, PUBLIC, REGIMES, STUDY_PAIRS
from cafelearn.experiments.study_plan import (
    STUDY_DATASETS,
    STUDY_METHODS,
    SYNTHETIC,
    count_versions,
)


def rank_answers(results: pd.DataFrame, task: str = "labels") -> Ranking | None:
    """Rank the methods over the configurations.

    "trivial", which does not cluster, is left out.

    Parameters
    ----------
    results : DataFrame
        One row per run, see :func:`~cafelearn.experiments.read_study`.
    task : {"labels", "features"}, default="labels"
        Task of the runs.

    Returns
    -------
    ranking : Ranking or None
        Average ranks and critical difference; None if no configuration has scores of all
        methods.

    Examples
    --------
    >>> import pandas as pd
    >>> from cafelearn.experiments.verdicts import rank_answers
    >>> results = pd.DataFrame({
    ...     "dataset": "iris", "regime": "clean", "version": 0, "task": "labels",
    ...     "method": ["paper", "cafe"], "status": "done", "ari": [0.2, 0.6]})
    >>> rank_answers(results).ranks.to_dict()
    {'cafe': 1.0, 'paper': 2.0}
    """
    means = configuration_means(results, task).drop(columns=ASIDE, errors="ignore").dropna()
    return rank_methods(means) if means.size else None


def winners(results: pd.DataFrame, task: str = "labels") -> pd.DataFrame:
    """Find the best method of each configuration, and how far CAFE is behind it.

    "trivial", which does not cluster, is left out.

    Parameters
    ----------
    results : DataFrame
        One row per run, see :func:`~cafelearn.experiments.read_study`.
    task : {"labels", "features"}, default="labels"
        Task of the runs.

    Returns
    -------
    table : DataFrame
        One row per configuration: `dataset`, `regime`, the `best` method (of tied methods, the
        first in ``STUDY_METHODS``), its `score`, the score of CAFE (`cafe`), and the
        difference of the two scores (`behind`).

    Examples
    --------
    >>> import pandas as pd
    >>> from cafelearn.experiments.verdicts import winners
    >>> results = pd.DataFrame({
    ...     "dataset": "iris", "regime": "clean", "version": 0, "task": "labels",
    ...     "method": ["gmm-full", "cafe"], "status": "done", "ari": [0.9, 0.75]})
    >>> winners(results).round(3)
      dataset regime      best  score  cafe  behind
    0    iris  clean  gmm-full    0.9  0.75    0.15
    """
    means = configuration_means(results, task).drop(columns=ASIDE, errors="ignore")
    if not means.size:
        return pd.DataFrame(columns=[*CONFIGURATION, "best", "score", "cafe", "behind"])
    table = pd.DataFrame({"best": means.idxmax(axis=1), "score": means.max(axis=1)})
    table["cafe"] = means.get("cafe", np.nan)
    table["behind"] = table["score"] - table["cafe"]
    return table.reset_index()


def must_hold(results: pd.DataFrame) -> pd.DataFrame:
    """Compare the scores of CAFE's defaults with required values.

    Parameters
    ----------
    results : DataFrame
        One row per run, see :func:`~cafelearn.experiments.read_study`.

    Returns
    -------
    table : DataFrame
        One row per requirement: a description of the quantity (`what`), its `value`, the
        smallest value allowed (`bar`), and whether the requirement is met (`holds`).
        Requirements for which runs are missing are left out.

    Examples
    --------
    >>> import pandas as pd
    >>> from cafelearn.experiments.verdicts import must_hold
    >>> results = pd.DataFrame({
    ...     "dataset": "digits", "regime": "clean", "version": 0, "task": "labels",
    ...     "method": ["cafe"], "status": "done", "ari": 0.6})
    >>> must_hold(results)[["what", "value", "bar", "holds"]]
                        what  value  bar  holds
    0  ARI on digits, clean    0.6  0.4   True
    """
    means = {task: configuration_means(results, task) for task in STUDY_METHODS}

    def mean(task, method, regimes, sets=STUDY_DATASETS):
        """Average the scores over the configurations of the study; NaN if one is missing."""
        wanted = [
            (dataset, regime)
            for dataset in sets
            for regime in regimes
            if count_versions(dataset, regime, task)
        ]
        scores = means[task].get(method, pd.Series(dtype=float))
        return scores.reindex(wanted).mean(skipna=False)

    def lead(task, others, regimes, sets):
        """Return the mean score of CAFE minus the best of the mean scores of `others`."""
        best = np.max([mean(task, other, regimes, sets) for other in others])
        return mean(task, "cafe", regimes, sets) - best

    nine, kmeans = datasets.names(), ("kmeans-range", "kmeans-standard")
    groups = {
        "clean": ["clean"],
        "noise pairs": STUDY_PAIRS,
        "resampled": ["resampled"],
        "columns": ["columns"],
        "outliers": ["outliers"],
    }
    others = {
        "clean": ["clean"],
        "noise pairs": ["pairs 0.4/1"],
        **{name: groups[name] for name in ("resampled", "columns", "outliers")},
    }
    rows = [
        *(
            (
                f"ARI minus that of the mixture by BIC, {where}, {name}",
                lead("labels", ["gmm-bic"], regimes, sets),
                0.0,
            )
            for where, sets, named in (
                ("the nine sets", nine, groups),
                ("other real sets", (*BUNDLED, *PUBLIC), others),
                ("generators", SYNTHETIC, {"generated": ["generated"]}),
            )
            for name, regimes in named.items()
        ),
        (
            "ARI minus that of the better k-means, the nine sets, clean",
            lead("labels", kmeans, ["clean"], nine),
            -0.02,
        ),
        (
            "ARI minus that of the better k-means, the nine sets, columns",
            lead("labels", kmeans, ["columns"], nine),
            -0.01,
        ),
        (
            "ARI minus that of the paper's settings, the nine sets, noise pairs",
            lead("labels", ["paper"], STUDY_PAIRS, nine),
            0.0,
        ),
        ("ARI on digits, clean", mean("labels", "cafe", ["clean"], ["digits"]), 0.4),
        (
            "share of fits to the nine sets without 'no-structure'",
            _with_structure(results),
            0.95,
        ),
        *(
            (
                f"accuracy minus PCA's, {regime}",
                lead("features", ["pca"], [regime], STUDY_DATASETS),
                -0.01,
            )
            for regime in REGIMES
        ),
        (
            "accuracy minus that of the better raw features, clean",
            lead("features", ["raw-range", "raw-standard"], ["clean"], STUDY_DATASETS),
            -0.01,
        ),
        (
            "accuracy minus PCA's, all noise pairs",
            lead("features", ["pca"], STUDY_PAIRS, STUDY_DATASETS),
            0.05,
        ),
    ]
    table = pd.DataFrame(rows, columns=["what", "value", "bar"]).dropna(ignore_index=True)
    return table.assign(holds=table["value"] >= table["bar"])


def _with_structure(results):
    """Return the share of CAFE's fits to the nine sets that lack the finding "no-structure"."""
    fits = check_study(results, "must_hold").query(
        "task == 'labels' and method == 'cafe' and status == 'done'"
    )
    codes = fits.loc[fits["dataset"].isin(datasets.names()), "findings"].str.split(",")
    return 1 - codes.map(lambda some: "no-structure" in some).astype(float).mean()
