"""Compare the time of an iteration of mwk-means, scikit-learn's KMeans and dask-ml's KMeans.

``python -m benchmarks.workers`` fits on two threads and on two Dask workers. It is the only
benchmark that needs dask-ml.
"""

import time

import numpy as np
from distributed import wait
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from benchmarks.descent import blobs
from benchmarks.distributed import two_workers
from cafelearn import MinkowskiWeightedKMeans

ROWS = 1_000_000
ITERATIONS = 10


def best(run, rounds=3):
    """Return the best time per iteration; `run` fits and returns its number of iterations."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        n_iter = run()
        times.append((time.perf_counter() - begin) / n_iter)
    return min(times)


def main():
    """Print the time per iteration of each method."""
    import dask.array as da
    from dask_ml.cluster import KMeans as DaskKMeans

    X = blobs(ROWS, 50, 10)
    Z = X[np.random.default_rng(0).choice(ROWS, 10, replace=False)]

    def ours(data, p=2.0, n_jobs=None):
        model = MinkowskiWeightedKMeans(10, p=p, init=Z, max_iter=ITERATIONS, n_jobs=n_jobs)
        return model.fit(data).n_iter_

    def sklearn():
        model = KMeans(10, init=Z, n_init=1, max_iter=ITERATIONS, tol=0, algorithm="lloyd")
        return model.fit(X).n_iter_

    def dask_ml(data):
        return DaskKMeans(10, init=Z, max_iter=ITERATIONS, tol=0).fit(data).n_iter_

    with two_workers(), threadpool_limits(2):
        spread = da.from_array(X, chunks=(125_000, 50)).persist()
        wait(spread)
        runs = {
            "scikit-learn KMeans, two threads": sklearn,
            "dask-ml KMeans, two workers": lambda: dask_ml(spread),
        }
        for p in (2.0, 1.5, 1.1, 3.0):
            runs[f"mwk-means, p = {p:g}, two threads"] = lambda p=p: ours(X, p, 2)
            runs[f"mwk-means, p = {p:g}, two workers"] = lambda p=p: ours(spread, p)
        for name, run in runs.items():
            run()
            print(f"{best(run) * 1e3:9.1f} ms per iteration  {name}", flush=True)


if __name__ == "__main__":
    main()
