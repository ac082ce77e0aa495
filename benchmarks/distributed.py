"""Measure the speed and the memory of fits to Dask collections, on two worker processes.

``python -m benchmarks.distributed speed`` compares the times of fits on two workers, which hold
the rows in memory, and on two threads of this process. ``python -m benchmarks.distributed
memory`` fits models to a file larger than the memory of the workers, and measures the memory of
all processes. ``--help`` after ``speed`` or ``memory`` lists options for smaller runs.
"""

import argparse
import os
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import psutil
from distributed import Client, LocalCluster, wait
from sklearn.base import clone

from benchmarks.descent import blobs, in_turns
from cafelearn import CAFE, MinkowskiWeightedKMeans
from cafelearn.distributed import from_npy

MEGABYTE = 1e6


@contextmanager
def two_workers(**options):
    """Start a Dask cluster of two processes with one thread each and yield its client."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", **options
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def speed(report, n_rows=2_000_000, n_features=50, n_init=2, max_iter=20, rounds=3):
    """Compare fits on two workers with fits on two threads, and check that they are equal."""
    X = blobs(n_rows, n_features, 10)
    with tempfile.TemporaryDirectory() as folder, two_workers():
        path = Path(folder) / "rows.npy"
        np.save(path, X)
        spread = from_npy(path).persist()
        wait(spread)
        for p in (1.5, 2.0):
            model = MinkowskiWeightedKMeans(
                10, p=p, n_init=n_init, max_iter=max_iter, n_jobs=2, random_state=0
            )
            fitted = {}

            def fit(name, data, model=model, fitted=fitted):
                fitted[name] = clone(model).fit(data)

            runs = {
                "cluster": lambda: fit("cluster", spread),
                "threads": lambda: fit("threads", X),
            }
            for run in runs.values():
                run()  # compile
            best = in_turns(runs, rounds)
            assert fitted["cluster"].inertia_ == fitted["threads"].inertia_
            report(
                f"fit on two workers over fit on two threads ({best['threads']:.1f} s; "
                f"n={n_rows:,}, m={n_features}, k=10, p={p:g}, {n_init} starts)",
                best["cluster"] / best["threads"],
                "<= 1.5",
            )


class Watch:
    """Record the peak memory of some processes, sampled every 20 milliseconds."""

    def __init__(self, **processes):
        self.processes = {name: psutil.Process(pid) for name, pid in processes.items()}
        self.peak, self._over = dict.fromkeys(processes, 0), threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self):
        while not self._over.wait(0.02):
            for name, process in self.processes.items():
                with suppress(psutil.NoSuchProcess):  # the process has ended
                    self.peak[name] = max(self.peak[name], process.memory_info().rss)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._over.set()
        self._thread.join()


def write_rows(path, gigabytes, n_features, seed=0):
    """Write a file of Gaussian clusters, 50,000 rows at a time; return the number of rows."""
    n_rows = int(gigabytes * 1e9 / (8 * n_features))
    rng = np.random.default_rng(seed)
    centers = rng.normal(scale=2, size=(10, n_features))
    header = {"descr": "<f8", "fortran_order": False, "shape": (n_rows, n_features)}
    with open(path, "wb") as file:
        np.lib.format.write_array_header_2_0(file, header)
        for first in range(0, n_rows, 50_000):
            size = min(50_000, n_rows - first)
            rows = rng.normal(size=(size, n_features)) + centers[rng.integers(10, size=size)]
            rows.tofile(file)
    return n_rows


def memory(report, gigabytes=10.0, n_features=50, n_init=2, max_iter=5, folder=None):
    """Measure the peak memory of the client and of the workers during fits to a large file."""
    models = {
        "mwk-means": MinkowskiWeightedKMeans(
            10, p=1.5, n_init=n_init, max_iter=max_iter, random_state=0
        ),
        "CAFE": CAFE(10, p=(1.5, 2.0), n_init=1, max_iter=max_iter, random_state=0),
    }
    with tempfile.TemporaryDirectory(dir=folder) as place:
        path = Path(place) / "rows.npy"
        n_rows = write_rows(path, gigabytes, n_features)
        for name, model in models.items():
            with two_workers(memory_limit="1GB") as client:
                pids = client.run(os.getpid)
                workers = {f"worker {i}": pid for i, pid in enumerate(pids.values())}
                begin = time.perf_counter()
                with Watch(client=os.getpid(), **workers) as watch:
                    model.fit(from_npy(path))
                seconds = time.perf_counter() - begin
                assert client.run(os.getpid) == pids, "a worker has been restarted"
            what = f"{name} of {n_rows:,} x {n_features} ({gigabytes:g} GB, {seconds:.0f} s)"
            report(
                f"peak memory of the client in MB, {what}",
                watch.peak.pop("client") / MEGABYTE,
                "<= 500",
            )
            report(
                f"peak memory of a worker in MB, {what}",
                max(watch.peak.values()) / MEGABYTE,
                "<= 1000",
            )


def show(what, measured, bar):
    """Print one measurement."""
    met = measured <= float(bar.removeprefix("<= "))
    print(f"{measured:8.2f}  ({bar}, {'met' if met else 'NOT MET'})  {what}", flush=True)


def main():
    """Parse the arguments and run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.distributed")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("speed", help="compare two workers with two threads")
    command.add_argument("--rows", type=int, default=2_000_000)
    command.add_argument(
        "--rounds", type=int, default=3, help="fits of each kind; the best time counts"
    )
    command = commands.add_parser("memory", help="fit a file larger than the workers' memory")
    command.add_argument("--gigabytes", type=float, default=10.0, help="size of the file")
    command.add_argument("--folder", help="directory for the temporary file")
    for command in commands.choices.values():
        command.add_argument("--features", type=int, default=50)
        command.add_argument("--starts", type=int, default=2)
    options = parser.parse_args()
    if options.command == "speed":
        speed(
            show,
            options.rows,
            options.features,
            n_init=options.starts,
            rounds=options.rounds,
        )
    else:
        memory(
            show,
            options.gigabytes,
            options.features,
            n_init=options.starts,
            folder=options.folder,
        )


if __name__ == "__main__":
    main()
