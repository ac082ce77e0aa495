"""Measure the speed and the memory of mwk-means, for the table of ``make bench``.

Machines differ and timings are noisy, so most measurements are ratios of two times. The
functions to compare are called alternately, and the best time of each counts.
"""

import itertools
import subprocess
import sys
import time
import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from benchmarks import numpy_mwkmeans
from cafelearn import MinkowskiWeightedKMeans

warnings.simplefilter("ignore", ConvergenceWarning)


def blobs(n, m, k, seed=0, dtype=np.float64):
    """Generate rows with Gaussian clusters in half of the features and noise in the others."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(scale=2, size=(k, m))
    X = rng.normal(size=(n, m))
    X += centers[rng.integers(k, size=n)]
    X[:, m // 2 :] = rng.normal(scale=2, size=(n, m - m // 2))
    return X.astype(dtype)


def in_turns(functions, rounds=5):
    """Call the functions alternately and return the best time of each."""
    best = dict.fromkeys(functions, np.inf)
    for _ in range(rounds):
        for name, function in functions.items():
            begin = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - begin)
    return best


def per_iteration(make, X, last):
    """Return a function that measures the mean time of iterations 2 to `last` of a fit."""

    def run():
        times = []
        for max_iter in (1, last):
            model = make(max_iter)
            begin = time.perf_counter()
            model.fit(X)
            times.append((time.perf_counter() - begin, model.n_iter_))
        (a, m), (b, n) = times
        return (b - a) / (n - m)

    return run


def iterations(report):
    """Compare an iteration of mwk-means with one of scikit-learn's KMeans."""
    X = blobs(100_000, 50, 10)
    init = X[np.random.default_rng(0).choice(len(X), 10, replace=False)]

    def kmeans(max_iter):
        return KMeans(10, init=init, n_init=1, max_iter=max_iter, tol=0, algorithm="lloyd")

    def mwk(p):
        return lambda max_iter: MinkowskiWeightedKMeans(10, p=p, init=init, max_iter=max_iter)

    runs = {"lloyd": per_iteration(kmeans, X, 61)}
    runs |= {p: per_iteration(mwk(p), X, 13) for p in (2.0, 1.1, 1.5, 3.0)}
    best = dict.fromkeys(runs, np.inf)
    for run in runs.values():
        run()  # compile
    for _ in range(5):
        for name, run in runs.items():
            best[name] = min(best[name], run())
    for p, bar in ((2.0, 2.5), (1.1, 12), (1.5, 12), (3.0, 12)):
        report(
            f"one iteration at p = {p:g} (n=100,000, m=50, k=10, one thread) "
            f"over one Lloyd iteration of scikit-learn's KMeans ({best['lloyd'] * 1e3:.1f} ms)",
            best[p] / best["lloyd"],
            f"<= {bar}",
        )


def whole_fit(report):
    """Compare fits to convergence with those of an implementation in plain NumPy."""
    X = blobs(10_000, 20, 5)
    ours = numpy = n_iter = 0
    for seed in range(6):
        init = X[np.random.default_rng(seed).choice(len(X), 5, replace=False)]
        model = MinkowskiWeightedKMeans(5, p=1.1, init=init)
        ours += in_turns({"fit": lambda m=model: m.fit(X)}, rounds=3)["fit"]
        begin = time.perf_counter()
        numpy_mwkmeans.fit(X, init, 1.1, model.n_iter_)
        numpy += time.perf_counter() - begin
        n_iter += model.n_iter_
    report(
        f"six whole fits to convergence ({n_iter} iterations, n=10,000, m=20, k=5, p=1.1), "
        "NumPy broadcasting over cafelearn",
        numpy / ours,
        ">= 20",
    )


def threads(report):
    """Compare a fit on one thread with a fit on two."""
    X = blobs(10_000, 20, 5)
    models = {
        jobs: MinkowskiWeightedKMeans(5, p=1.1, n_init=50, n_jobs=jobs, random_state=0)
        for jobs in (1, 2)
    }
    best = in_turns(
        {jobs: lambda m=model: m.fit(X) for jobs, model in models.items()}, rounds=3
    )
    report(
        "50 starts on one thread over 50 starts on two (n=10,000, m=20, k=5)",
        best[1] / best[2],
        ">= 1.7",
    )


# The peak memory is read from /proc, because the value of getrusage includes the memory of the
# parent process.
MEMORY = """
import re
from pathlib import Path
import numpy as np
from cafelearn import MinkowskiWeightedKMeans
def peak():
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1])
rng = np.random.default_rng(0)
MinkowskiWeightedKMeans(2, p={p}, n_init=1).fit(rng.normal(size=(6_000, 3)))
X = np.empty((1_000_000, 50))
for rows in np.array_split(np.arange(len(X)), 100):
    X[rows] = rng.normal(size=(len(rows), 50)) + 3 * rng.integers(10, size=(len(rows), 1))
before = peak()
MinkowskiWeightedKMeans(10, p={p}, n_init=1, max_iter=5, random_state=0).fit(X)
print((peak() - before) / X.nbytes)
"""


def memory(report):
    """Measure the additional memory of a fit, relative to the size of its input."""
    for p in (1.1, 2.0):
        done = subprocess.run(
            [sys.executable, "-c", MEMORY.format(p=p)],
            capture_output=True,
            text=True,
            check=True,
        )
        report(
            f"memory beyond the input while fitting n=1,000,000, m=50, k=10, p={p:g}, over "
            "the size of the input",
            float(done.stdout),
            "<= 0.25",
        )


def growth(report):
    """Measure the factor by which the time grows when the number of rows is doubled."""
    X = blobs(800_000, 50, 10)
    init = X[:10]
    sizes = (100_000, 200_000, 400_000, 800_000)
    model = MinkowskiWeightedKMeans(10, p=1.5, init=init, max_iter=4)
    best = in_turns({n: lambda n=n: model.fit(X[:n]) for n in sizes}, rounds=5)
    for small, large in itertools.pairwise(sizes):
        report(
            f"four iterations at n = {large:,} over four at n = {small:,} (p=1.5)",
            best[large] / best[small],
            "<= 2.2",
        )


def start_up(report):
    """Measure the time of the import, and the delay of the first fit of a process."""

    def run(code):
        return lambda: subprocess.run([sys.executable, "-c", code], check=True)

    fit = (
        "import time, numpy as np, cafelearn\n"
        "X = np.random.default_rng(0).normal(size=(300, 4))\n"
        "model = cafelearn.MinkowskiWeightedKMeans(3, p=1.5, n_init=1)\n"
        "a = time.perf_counter(); model.fit(X); b = time.perf_counter(); model.fit(X)\n"
        "print(b - a - (time.perf_counter() - b))"
    )
    best = in_turns(
        {
            "python": run("pass"),
            "both": run("import sklearn.cluster, numba"),
            "ours": run("from cafelearn import CAFE, MinkowskiWeightedKMeans"),
        }
    )
    report(
        "import of the estimators over import of sklearn.cluster and numba",
        (best["ours"] - best["python"]) / (best["both"] - best["python"]),
        "<= 1.3",
    )
    seconds = min(
        float(
            subprocess.run([sys.executable, "-c", fit], capture_output=True, text=True).stdout
        )
        for _ in range(5)
    )
    report(
        "extra seconds of the first fit of a process, with compiled code in the cache, "
        "compared with the second fit",
        seconds,
        "< 0.3",
    )
