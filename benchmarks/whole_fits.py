"""Compare single with double precision, and early stopping with complete starts.

The measurements are part of the table of ``make bench``.
"""

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from benchmarks.descent import in_turns
from cafelearn import MinkowskiWeightedKMeans, RangeScaler

STARTS = 3


def noisy_blobs(n=100_000, m=50, k=10, n_noise=20, seed=0):
    """Generate Gaussian clusters, some of which overlap, and features of uniform noise.

    Return the range-scaled rows and their clusters.
    """
    rng = np.random.default_rng(seed)
    X, y = make_blobs(n, m - n_noise, centers=k, center_box=(-2, 2), random_state=seed)
    return RangeScaler().fit_transform(np.hstack([X, rng.uniform(size=(n, n_noise))])), y


def draw(X, k, seed):
    """Draw k rows at random as initial centres."""
    return X[np.random.default_rng(seed).choice(len(X), k, replace=False)]


def single_precision(report):
    """Compare the time per iteration in float64 with that in float32."""
    X, y = noisy_blobs()
    single = X.astype(np.float32)
    for p in (1.1, 1.5, 2.0, 3.0):
        models = {}

        def fit(name, data, p=p, models=models):
            models[name] = [
                MinkowskiWeightedKMeans(10, p=p, init=draw(data, 10, seed)).fit(data)
                for seed in range(STARTS)
            ]

        runs = {
            "double": lambda fit=fit: fit("double", X),
            "single": lambda fit=fit: fit("single", single),
        }
        for one in runs.values():
            one()  # compile
        best = in_turns(runs, 3)
        each = {
            name: best[name] / sum(model.n_iter_ for model in models[name]) for name in best
        }
        scores = {
            name: np.mean([adjusted_rand_score(y, model.labels_) for model in models[name]])
            for name in models
        }
        report(
            f"one iteration at p = {p:g}, float64 over float32 (n=100,000, m=50, k=10; ARI "
            f"{scores['double']:.3f} and {scores['single']:.3f})",
            each["double"] / each["single"],
            ">= 1.6",
        )


def early_stopping(report):
    """Compare the time of 40 starts without early stopping with that of 40 starts with it."""
    X, _ = noisy_blobs(n=10_000, m=20, k=8, n_noise=8)
    for p in (1.1, 3.0):
        model = MinkowskiWeightedKMeans(8, p=p, n_init=40, random_state=0)
        short = MinkowskiWeightedKMeans(8, p=p, n_init=40, early_stopping=True, random_state=0)
        best = in_turns({"all": lambda m=model: m.fit(X), "some": lambda m=short: m.fit(X)}, 3)
        report(
            f"40 starts at p = {p:g} without early_stopping over 40 starts with it (n=10,000, "
            "m=20, k=8; early stopping changes the objective by "
            f"{short.inertia_ / model.inertia_ - 1:+.1%})",
            best["all"] / best["some"],
            ">= 1.3",
        )
