"""Measure the speed of CAFE and the extractors, for the table of ``make bench``."""

import numpy as np
from sklearn.cluster import KMeans

from benchmarks.descent import in_turns
from cafelearn import CAFE, RangeScaler
from cafelearn.datasets import corrupt, load
from cafelearn.extraction import Autoencoder, ReconstructionICA, ReplicatedNMF


def noisy(name):
    """Return the rows and the classes of a packaged data set.

    The rows are scaled and have noise in 40% of the (class, feature) pairs.
    """
    data = load(name)
    X, _ = corrupt(RangeScaler().fit_transform(data.data), data.target, 0.4, 1.0, 0)
    return RangeScaler().fit_transform(X), data.target


def cafe(report):
    """Compare the time of CAFE, which fits twelve candidates, with that of k-means."""
    X, _ = noisy("breast_cancer")
    best = in_turns(
        {
            "cafe": lambda: CAFE(2, n_jobs=2, random_state=0).fit_transform(X),
            "kmeans": lambda: KMeans(2, n_init=200, init="random", random_state=0).fit(X),
        }
    )
    report(
        "CAFE, 12 candidates x 10 starts, Breast Cancer with noise in 40% of the (class, "
        "feature) pairs (683 x 9, k=2), two threads, "
        f"over KMeans(n_init=200) ({best['kmeans'] * 1e3:.0f} ms)",
        best["cafe"] / best["kmeans"],
        "<= 4",
    )


def extractors(report):
    """Measure the time of the extractors."""
    X = RangeScaler().fit_transform(load("ionosphere").data)
    best = in_turns(
        {
            "ReconstructionICA": lambda: ReconstructionICA(16, n_jobs=2, random_state=0).fit(X),
            "ReplicatedNMF": lambda: ReplicatedNMF(16, n_jobs=2, random_state=0).fit(X),
            "Autoencoder": lambda: Autoencoder(16, n_jobs=2, random_state=0).fit(X),
        },
        rounds=3,
    )
    bars = {"ReconstructionICA": 5, "ReplicatedNMF": 0.5, "Autoencoder": 1.5}
    for name, bar in bars.items():
        what = f"{name}, 50 starts, Ionosphere (351 x 33, r=16), two threads, seconds"
        report(what, best[name], f"<= {bar}")


def unseen_rows(report):
    """Compare the time to transform new rows with the time to predict their clusters."""
    X = np.random.default_rng(0).normal(size=(1_000_000, 50))
    model = CAFE(10, n_init=1, max_iter=20, random_state=0).fit(X[:20_000])
    best = in_turns(
        {"transform": lambda: model.transform(X), "predict": lambda: model.predict(X)}, rounds=3
    )
    report(
        f"CAFE: transform of 1,000,000 unseen rows (m=50, k=10, p={model.p_:g}) over predict",
        best["transform"] / best["predict"],
        "<= 1.5",
    )
