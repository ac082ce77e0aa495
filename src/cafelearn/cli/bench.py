"""cafe bench: time an iteration of mwk-means and of k-means on this machine."""

import time
from typing import Annotated

import typer

from cafelearn.cli import options
from cafelearn.cli.session import session
from cafelearn.cli.tables import make_table

EXPONENTS = (2.0, 1.1, 1.5, 3.0)
ROUNDS = 3
# Largest number of iterations of a timed fit of k-means (LLOYD) and of mwk-means (OURS): enough
# to measure the time, and few enough that most fits do not converge earlier.
LLOYD = 31
OURS = 9


def register(app):
    """Add the command."""
    app.command("bench")(bench)


def bench(
    rows: Annotated[int, typer.Option(help="Number of rows.", min=100)] = 50_000,
    features: Annotated[int, typer.Option(help="Number of features.", min=1)] = 50,
    clusters: Annotated[int, typer.Option(help="Number of clusters.", min=1)] = 10,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
):
    """Compare the time of one iteration of mwk-means and of scikit-learn's KMeans.

    Both run on one thread.
    """
    with session("bench", quiet, as_json, debug) as run:
        if clusters > rows:
            raise ValueError(
                f"--clusters {clusters} needs at least {clusters} --rows, got {rows}."
            )
        from cafelearn._compiling_note import note_compiling

        note_compiling(run.note)
        run.note(f"Measuring the best time of {ROUNDS} rounds.")
        best = _measure(rows, features, clusters)
        lloyd = best.pop("lloyd")
        run.facts |= {
            "rows": rows,
            "features": features,
            "clusters": clusters,
            "lloyd_seconds": lloyd,
            "mwk_means": [
                {"p": p, "seconds": seconds, "ratio": seconds / lloyd}
                for p, seconds in best.items()
            ],
        }
        _show(run)


def _measure(rows, features, clusters):
    """Return the seconds per iteration of Lloyd's algorithm, and of mwk-means for each p."""
    import warnings

    import numpy as np
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    from cafelearn._mwkmeans import MinkowskiWeightedKMeans

    warnings.simplefilter("ignore", ConvergenceWarning)
    rng = np.random.default_rng(0)
    # Data without clusters, so that labels change for many iterations, as on large data.
    X = rng.normal(size=(rows, features))
    init = X[rng.choice(rows, clusters, replace=False)]

    def kmeans(max_iter):
        return KMeans(
            clusters, init=init, n_init=1, max_iter=max_iter, tol=0, algorithm="lloyd"
        )

    def ours(p):
        return lambda max_iter: MinkowskiWeightedKMeans(
            clusters, p=p, init=init, max_iter=max_iter
        )

    runs = {"lloyd": (kmeans, LLOYD)} | {p: (ours(p), OURS) for p in EXPONENTS}
    with threadpool_limits(1):
        return per_iteration(runs, X)


def per_iteration(runs, X, rounds=ROUNDS):
    """Measure seconds per iteration, excluding set-up and the first iteration.

    `runs` maps each name to a pair: a function that makes an estimator from `max_iter`, and the
    largest `max_iter` to time.
    """
    for make, last in runs.values():
        # Warm up on all rows, because kernels for many rows are compiled separately.
        make(min(2, last)).fit(X)
    best = {name: {} for name in runs}
    for _ in range(rounds):
        # The methods alternate, so that other load on the machine affects all of them alike.
        for name, (make, last) in runs.items():
            for max_iter in (1, last):
                model = make(max_iter)
                begin = time.perf_counter()
                model.fit(X)
                seconds = time.perf_counter() - begin
                before = best[name].get(model.n_iter_, seconds)
                best[name][model.n_iter_] = min(before, seconds)
    return {name: _slope(times) for name, times in best.items()}


def _slope(times):
    """Compute the seconds per additional iteration.

    `times` maps each number of iterations to its shortest time.
    """
    few, many = min(times), max(times)
    if many > few and times[many] > times[few]:
        return (times[many] - times[few]) / (many - few)
    return times[many] / many


def _show(run):
    facts = run.facts
    table = make_table("method", ">ms", ">ratio to k-means")
    table.add_row("scikit-learn KMeans", f"{facts['lloyd_seconds'] * 1e3:.2f}", "1.0")
    for found in facts["mwk_means"]:
        table.add_row(
            f"mwk-means, p = {found['p']:g}",
            f"{found['seconds'] * 1e3:.2f}",
            f"{found['ratio']:.1f}",
        )
    run.show(
        f"One iteration on {facts['rows']:,} rows x {facts['features']:,} features, "
        f"{facts['clusters']:,} clusters, one thread",
        table,
    )
