"""Measure what each constant of the mixture is worth: the answers without it, or with another.

    python -m benchmarks.ablation [--jobs J] [--version V]

Each line changes one constant of ``cafelearn.mixture.settings`` and gives the mean adjusted
Rand index of CAFE's labels by regime, with k given, on the smaller real data sets of the study.
The table is written to docs/results/mixture-ablation.csv and .md.
"""

import argparse
import sys
import warnings
from pathlib import Path

import pandas as pd
from joblib import Parallel, delayed
from sklearn.metrics import adjusted_rand_score

from cafelearn import CAFE, datasets
from cafelearn.mixture.settings import SETTINGS
from reproduction.markdown import markdown_table
from reproduction.study.public_data import available
from reproduction.study.regimes import Case, case_data

RESULTS = Path(__file__).parents[1] / "docs" / "results"
LARGE = {"satellite", "cells", "leaves", "vehicle"}
REGIMES = ("clean", "pairs 0.4/1", "resampled", "columns", "outliers")
CHANGES = {
    "as it is": {},
    "atoms from 5% of the rows": {"atom": 0.05},
    "atoms from 20% of the rows": {"atom": 0.2},
    "prior of 0.01 rows": {"prior": 0.01},
    "prior of 1 row": {"prior": 1.0},
    "least variance 0.001": {"least_variance": 0.001},
    "least variance 0.05": {"least_variance": 0.05},
    "t with 3 degrees of freedom": {"degrees": 3.0},
    "t with 8 degrees of freedom": {"degrees": 8.0},
    "background up to 5%": {"background": 0.05},
    "background up to 20%": {"background": 0.2},
    "free-form densities: normal or uniform": {"marginal_components": 1},
    "no transformation of skewed columns": {"powers": ()},
    "skewness within 1 cluster": {"power_clusters": 1},
    "no candidates of mwk-means": {"candidates": 0},
    "one candidate": {"candidates": 1},
    "all candidates": {"candidates": 12},
}


def set_constants(changes):
    """Replace constants in all modules that have imported them."""
    for name, module in list(sys.modules.items()):
        if name.startswith("cafelearn.") and hasattr(module, "SETTINGS"):
            module.SETTINGS = SETTINGS._replace(**changes)


def measure(case, changes):
    """Return the adjusted Rand index of the labels of one fit."""
    warnings.simplefilter("ignore")
    set_constants(changes)
    data = case_data(case)
    inside = data.y >= 0
    k = len(set(data.y[inside].tolist()))
    labels = CAFE(k, random_state=0, n_jobs=1).fit(data.X).labels_
    return adjusted_rand_score(data.y[inside], labels[inside])


def main():
    """Measure all changes and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--version", type=int, default=3, help="not used by the study")
    arguments = parser.parse_args()
    sets = [*datasets.names(), "wdbc", "wine", *(set(available()) - LARGE)]
    cases = [Case(name, regime, arguments.version) for name in sets for regime in REGIMES]
    rows = []
    for words, changes in CHANGES.items():
        scores = Parallel(arguments.jobs)(delayed(measure)(case, changes) for case in cases)
        table = pd.DataFrame({"regime": [case.regime for case in cases], "ari": scores})
        means = table.groupby("regime").ari.mean()
        rows.append([words, *(means[regime] for regime in REGIMES), means.mean()])
        print(rows[-1], flush=True)
    frame = pd.DataFrame(rows, columns=["constants", *REGIMES, "mean"]).round(3)
    frame.to_csv(RESULTS / "mixture-ablation.csv", index=False)
    lines = [[row[0], *(f"{value:.3f}" for value in row[1:])] for row in frame.to_numpy()]
    text = markdown_table(frame.columns, lines)
    (RESULTS / "mixture-ablation.md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
