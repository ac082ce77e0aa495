"""Compare starts on a sample with starts on all rows: ``python -m benchmarks.starts``.

The script fits mwk-means to data sets that differ in size, overlap, noise and the sizes of
their clusters, once with 50 starts on a sample and once with 50 starts on all rows. For each
data set and p, it writes a row of docs/results/starts.csv: the objective of the first fit
divided by that of the second, and the times of both fits.
"""

import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.base import clone

from cafelearn import MinkowskiWeightedKMeans

RESULT = Path(__file__).parents[1] / "docs" / "results" / "starts.csv"
KINDS = ("clear", "overlapping", "rare", "noise pairs", "noise columns", "heavy tails")


def make(kind, n_rows, n_features=10, k=6, seed=0):
    """Generate a data set of one of KINDS."""
    rng = np.random.default_rng([KINDS.index(kind), n_rows, seed])
    shares = np.full(k, 1 / k)
    if kind == "rare":  # two clusters have 0.5% of the rows each
        shares = np.array([0.005, 0.005, *np.full(k - 2, 0.99 / (k - 2))])
    y = rng.choice(k, n_rows, p=shares)
    centers = rng.normal(scale=0.8 if kind == "overlapping" else 2.5, size=(k, n_features))
    X = centers[y] + rng.normal(size=(n_rows, n_features))
    if kind == "noise pairs":
        X += (rng.random((k, n_features)) < 0.3)[y] * rng.normal(scale=5, size=X.shape)
    elif kind == "noise columns":
        X = np.hstack([X, rng.uniform(-6, 6, X.shape)])
    elif kind == "heavy tails":
        X += rng.standard_t(2, size=X.shape)
    return X


def measure(model, X):
    """Fit a model; return its objective and the time in seconds."""
    start = time.perf_counter()
    objective = clone(model).fit(X).inertia_
    return objective, time.perf_counter() - start


def main():
    """Run all fits, print the results and write the table."""
    warnings.simplefilter("ignore")
    records = []
    for p in (1.5, 2.0, 3.0):  # compile before measuring
        model = MinkowskiWeightedKMeans(6, p=p, n_init=1, n_jobs=2, subsample=None)
        measure(model, make("clear", 25_000))
    for kind, (n_rows, p) in product(
        KINDS, ((25_000, 2.0), (50_000, 1.5), (50_000, 3.0), (100_000, 2.0))
    ):
        X = make(kind, n_rows)
        model = MinkowskiWeightedKMeans(6, p=p, n_init=50, n_jobs=2, random_state=0)
        sampled, seconds = measure(model, X)
        whole, whole_seconds = measure(model.set_params(subsample=None), X)
        records.append(
            {
                "data": kind,
                "n_rows": n_rows,
                "n_features": X.shape[1],
                "p": p,
                "objective_ratio": sampled / whole,
                "seconds_sample": seconds,
                "seconds_all": whole_seconds,
            }
        )
        print(records[-1], flush=True)
    pd.DataFrame(records).round(5).to_csv(RESULT, index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
