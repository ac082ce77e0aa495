"""Ranks, winners and required scores of the comparison study.

A configuration is a data set under a regime of noise.
"""

import numpy as np
import pandas as pd

from cafelearn import datasets
from reproduction.ranking import Ranking, rank_methods
from reproduction.study.answers import (
    ASIDE,
    CONFIGURATION,
    configuration_means,
)
from reproduction.study.plan import (
    STUDY_DATASETS,
    STUDY_METHODS,
    count_versions,
)
from reproduction.study.regimes import BUNDLED, PUBLIC, REGIMES, STUDY_PAIRS


def rank_answers(results: pd.DataFrame, task: str = "labels") -> Ranking | None:
    """Rank the methods over the configurations.

    "trivial", which does not cluster, is left out.
    """
    means = configuration_means(results, task).drop(columns=ASIDE, errors="ignore").dropna()
    return rank_methods(means) if means.size else None


def winners(results: pd.DataFrame, task: str = "labels") -> pd.DataFrame:
    """Find the best method of each configuration, and how far CAFE is behind it.

    "trivial", which does not cluster, is left out.
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

    Each row has a description of the quantity (`what`), its `value`, the smallest value allowed
    (`bar`), and whether the requirement is met (`holds`). Requirements for which runs are
    missing are left out.
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

    nine = datasets.names()
    real = (*nine, *BUNDLED, *PUBLIC)
    # mclust fails on some data, so it has no mean over all sets.
    rivals = (
        "kmeans-range",
        "kmeans-standard",
        "ward",
        "gmm-diag",
        "gmm-full",
        "gmm-bic",
        "stepmix",
    )
    raw = ("raw-range", "raw-standard", "pca")
    rows = [
        *(
            (
                f"ARI minus that of the best rival, real sets, {name}",
                lead("labels", rivals, regimes, real),
                bar,
            )
            for name, regimes, bar in (
                ("clean", ["clean"], 0.02),
                ("noise pairs", ["pairs 0.4/1"], 0.05),
                ("columns", ["columns"], 0.02),
                ("outliers", ["outliers"], 0.05),
                ("resampled", ["resampled"], 0.0),
            )
        ),
        *(
            (
                f"ARI minus that of the mixture by BIC, {name}",
                lead("labels", ["gmm-bic"], ["generated"], [name]),
                -0.01,
            )
            for name in ("correlated 0.9", "spreads 8", "tails 3", "sizes 0.03", "wide")
        ),
        (
            "ARI minus that of the paper's settings, the nine sets, noise pairs",
            lead("labels", ["paper"], STUDY_PAIRS, nine),
            0.0,
        ),
        ("ARI on digits, clean", mean("labels", "cafe", ["clean"], ["digits"]), 0.6),
        *(
            (
                f"accuracy minus that of the best of raw, standardised and PCA, {regime}",
                lead("features", raw, [regime], STUDY_DATASETS),
                0.0,
            )
            for regime in REGIMES
            if regime not in STUDY_PAIRS
        ),
        (
            "accuracy minus that of the best of raw, standardised and PCA, noise pairs",
            lead("features", raw, STUDY_PAIRS, STUDY_DATASETS),
            0.12,
        ),
    ]
    table = pd.DataFrame(rows, columns=["what", "value", "bar"]).dropna(ignore_index=True)
    return table.assign(holds=table["value"] >= table["bar"])
