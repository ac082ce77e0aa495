"""What the passes of large data save, against the plain loop that looks at everything.

Whole fits to convergence: 100,000 rows in ten clusters, of which 30 features tell and 20 are
noise. Every shortcut has to give the labels of the plain loop.
"""

from functools import partial
from unittest import mock

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from benchmarks.descent import in_turns
from cafelearn import MinkowskiWeightedKMeans, RangeScaler
from cafelearn._solver.descent import descend
from cafelearn._solver.iteration import data_scale, make_problem
from cafelearn._solver.kernels.pairs import find_pairs

STARTS = 3


def noisy_blobs(n=100_000, m=50, k=10, n_noise=20, seed=0):
    """Gaussian clusters, some of them close, with uniform noise features, range scaled."""
    rng = np.random.default_rng(seed)
    X, y = make_blobs(n, m - n_noise, centers=k, center_box=(-2, 2), random_state=seed)
    return RangeScaler().fit_transform(np.hstack([X, rng.uniform(size=(n, n_noise))])), y


def draw(X, k, seed):
    return X[np.random.default_rng(seed).choice(len(X), k, replace=False)]


def whole_fits(report):
    """Fits to convergence over those of the plain loop, and over Lloyd's iterations."""
    X, _ = noisy_blobs()
    ones = np.ones(len(X))
    scale, feature_scale = data_scale(X.min(axis=0), X.max(axis=0))
    starts = [draw(X, 10, seed) for seed in range(STARTS)]

    def lloyd():
        model = KMeans(10, init=starts[0], n_init=1, max_iter=20, tol=0, algorithm="lloyd")
        return model.fit(X)

    for p in (1.1, 1.5, 3.0):
        problem = make_problem(X, p, scale, "mean", 300, 0.0)
        plain = problem._replace(swift=False, anchored=False)
        found = {}

        def run(name, problem, found=found):
            found[name] = [descend(X, ones, Z, feature_scale, problem) for Z in starts]

        runs = {
            "swift": lambda problem=problem, run=run: run("swift", problem),
            "plain": lambda plain=plain, run=run: run("plain", plain),
            "lloyd": lloyd,
        }
        for one in runs.values():
            one()  # compile
        best = in_turns(runs, 3)
        for swift, other in zip(found["swift"], found["plain"], strict=True):
            assert swift.n_iter == other.n_iter
            assert (swift.labels == other.labels).all()
        n_iter = sum(result.n_iter for result in found["swift"])
        what = f"{STARTS} whole fits at p = {p:g} ({n_iter} iterations, n=100,000, m=50, k=10)"
        report(
            f"{what}: plain loop over ours, same labels", best["plain"] / best["swift"], ">= 2"
        )
        each = best["swift"] / n_iter, best["lloyd"] / 20
        report(
            f"{what}: one iteration over one of Lloyd's ({each[1] * 1e3:.1f} ms)",
            each[0] / each[1],
            "<= 5",
        )


def single_precision(report):
    """float64 over float32: whole fits, and per iteration where their paths part."""
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


def single_plain_loop(report):
    """The same for the plain loop, which looks at all rows in the precision of the data."""
    X, _ = noisy_blobs()
    ones = np.ones(len(X))
    for p in (1.1, 1.5, 2.0, 3.0):
        runs, counts = {}, {}
        for data in (X, X.astype(np.float32)):
            scale, feature_scale = data_scale(data.min(axis=0), data.max(axis=0))
            problem = make_problem(data, p, scale, "mean", 12, 0.0)
            problem = problem._replace(swift=False, anchored=False)

            def run(data=data, problem=problem, feature_scale=feature_scale, counts=counts):
                found = descend(data, ones, draw(data, 10, 1), feature_scale, problem)
                counts[data.dtype.name] = found.n_iter

            runs[data.dtype.name] = run
            run()  # compile
        best = in_turns(runs, 3)
        each = {name: best[name] / counts[name] for name in best}
        report(
            f"one iteration of the plain loop at p = {p:g}, float64 over float32 (n=100,000, "
            "m=50, k=10)",
            each["float64"] / each["float32"],
            ">= 1.6",
        )


def truth_values(n=100_000, m=50, k=10, seed=0):
    """Rows of 0 and 1, with other odds in each of k clusters."""
    rng = np.random.default_rng(seed)
    odds = rng.random((k, m))
    return (rng.random((n, m)) < odds[rng.integers(k, size=n)]).astype(float)


def no_pairs(X, rows_per_chunk):
    """What would be found if no column had only two values."""
    return np.full((-(-len(X) // rows_per_chunk), 2, X.shape[1]), np.nan, dtype=X.dtype)


def two_values(report):
    """Columns of two values, taken for what they are and as if they had many."""
    truth = truth_values()
    mixed = np.hstack([noisy_blobs()[0][:, 20:45], truth[:, :25]])
    for name, X in (("50", truth), ("25 of 50", mixed)):
        for p in (1.1, 1.5, 3.0):
            report(
                f"{STARTS} whole fits at p = {p:g}, {name} columns of two values, as if they "
                "had many over as they are (n=100,000, k=10)",
                _gain_from_pairs(X, p),
                ">= 1",
            )


def _gain_from_pairs(X, p):
    """How many times as long fits take that do not know of columns of two values."""
    ones, found = np.ones(len(X)), {}
    scale, feature_scale = data_scale(X.min(axis=0), X.max(axis=0))
    problem = make_problem(X, p, scale, "mean", 300, 0.0)
    starts = [draw(X, 10, seed) for seed in range(STARTS)]

    def run(find):
        with mock.patch("cafelearn._solver.descent.find_pairs", find):
            found[find] = [descend(X, ones, Z, feature_scale, problem) for Z in starts]

    runs = {find: partial(run, find) for find in (find_pairs, no_pairs)}
    for one in runs.values():
        one()  # compile
    best = in_turns(runs, 3)
    for known, other in zip(found[find_pairs], found[no_pairs], strict=True):
        assert (known.labels == other.labels).all()
    return best[no_pairs] / best[find_pairs]


def early_stopping(report):
    """40 starts, all to their end over those that are given up."""
    X, _ = noisy_blobs(n=10_000, m=20, k=8, n_noise=8)
    for p in (1.1, 3.0):
        model = MinkowskiWeightedKMeans(8, p=p, n_init=40, random_state=0)
        short = MinkowskiWeightedKMeans(8, p=p, n_init=40, early_stopping=True, random_state=0)
        best = in_turns({"all": lambda m=model: m.fit(X), "some": lambda m=short: m.fit(X)}, 3)
        report(
            f"40 starts at p = {p:g}, all of them over early_stopping (n=10,000, m=20, k=8; "
            f"objective {short.inertia_ / model.inertia_ - 1:+.1%})",
            best["all"] / best["some"],
            ">= 1.3",
        )
