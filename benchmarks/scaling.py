"""Measure how the time per iteration depends on the size of the data and on p.

    python -m benchmarks.scaling

The script writes docs/results/scaling.csv and the figure docs/images/scaling.png. Each curve
varies the number of rows n, of features m or of clusters k, or the exponent p. The sizes that a
curve does not vary are n=100,000, m=50 and k=10. A fit runs for at most 8 iterations on one
thread; the time of an iteration is the mean over the fit, in the faster of two rounds. The
NumPy version is measured once, over two iterations. The last measurement compares one thread
with two, on 400,000 rows.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from benchmarks import numpy_mwkmeans
from benchmarks.whole_fits import draw, noisy_blobs
from cafelearn import MinkowskiWeightedKMeans

RESULTS = Path(__file__).parent.parent / "docs" / "results"
IMAGES = Path(__file__).parent.parent / "docs" / "images"
EXPONENTS = (1.1, 1.5, 2.0, 3.0)
CENTER = {"n": 100_000, "m": 50, "k": 10}
CURVES = {
    "n": (10_000, 30_000, 100_000, 300_000, 1_000_000),
    "m": (10, 20, 50, 100, 200),
    "k": (2, 5, 10, 20, 50),
}
P_CURVE = (1.01, 1.1, 1.3, 1.5, 1.7, 1.9, 2.0, 2.1, 2.5, 3.0, 4.0, 6.0, 10.0)


def per_iteration(model, X, rounds=2):
    """Return the time per iteration, the best of several rounds."""
    best = np.inf
    for _ in range(rounds):
        begin = time.perf_counter()
        model.fit(X)
        best = min(best, (time.perf_counter() - begin) / model.n_iter_)
    return best


def lloyd(X, Z, max_iter=8):
    return KMeans(len(Z), init=Z, n_init=1, max_iter=max_iter, tol=0, algorithm="lloyd")


def mwk(Z, p, max_iter=8, n_jobs=1):
    return MinkowskiWeightedKMeans(len(Z), p=p, init=Z, max_iter=max_iter, n_jobs=n_jobs)


def measure(note):
    """Measure all curves and return them as a table; `note` gets a line for each point."""
    rows = []

    def add(curve, value, what, seconds):
        rows.append({"curve": curve, "value": value, "what": what, "seconds": seconds})
        note(f"{curve}={value:g} {what}: {seconds * 1e3:.2f} ms")

    with threadpool_limits(1):
        for curve, values in CURVES.items():
            for value in values:
                size = CENTER | {curve: value}
                X, _ = noisy_blobs(**size, n_noise=size["m"] * 2 // 5)
                Z = draw(X, size["k"], 0)
                for p in EXPONENTS:
                    add(curve, value, f"p = {p:g}", per_iteration(mwk(Z, p), X))
                add(curve, value, "KMeans", per_iteration(lloyd(X, Z), X))
                if curve == "n" and value <= 100_000:
                    begin = time.perf_counter()
                    numpy_mwkmeans.fit(X, Z, 1.1, 2)
                    add(curve, value, "NumPy, p = 1.1", (time.perf_counter() - begin) / 2)
        X, _ = noisy_blobs()
        Z = draw(X, 10, 0)
        for p in P_CURVE:
            add("p", p, "ours", per_iteration(mwk(Z, p), X))
    X, _ = noisy_blobs(n=400_000)
    Z = draw(X, 10, 0)
    for cores in (1, 2):
        for p in EXPONENTS:
            add("cores", cores, f"p = {p:g}", per_iteration(mwk(Z, p, n_jobs=cores), X))
    return pd.DataFrame(rows)


def draw_figure(table, path):
    """Draw four panels: rows, features, clusters and the exponent."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter

    colours = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#000000", "#999999"]
    names = {"n": "rows", "m": "features", "k": "clusters", "p": "exponent p"}
    figure, axes = plt.subplots(1, 4, figsize=(14, 3.6), layout="constrained")
    for axis, curve in zip(axes, names, strict=True):
        part = table[table["curve"] == curve]
        for colour, (what, line) in zip(
            colours, part.groupby("what", sort=False), strict=False
        ):
            style = {"KMeans": "--", "NumPy, p = 1.1": ":"}.get(what, "-")
            axis.plot(
                line["value"],
                line["seconds"] * 1e3,
                style,
                marker="o",
                ms=3,
                color=colour,
                label=what,
            )
        axis.set(xlabel=names[curve], yscale="log", xscale="log")
        shown = (1, 1.5, 2, 3, 4, 6, 10) if curve == "p" else sorted(set(part["value"]))
        axis.set_xticks(shown, [f"{value:,g}" for value in shown])
        axis.xaxis.minorticks_off()
        if curve == "n":
            axis.set_xticks(shown, [f"{value / 1000:,g}k" for value in shown])
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_major_locator(LogLocator(subs=(1,) if curve == "n" else (1, 2, 5)))
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.grid(alpha=0.3, which="both", lw=0.4)
    axes[0].set_ylabel("milliseconds per iteration")
    axes[0].legend(fontsize=7)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main():
    """Measure, unless the stored times are to be used, and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draw", action="store_true", help="draw the stored measurements")
    path = RESULTS / "scaling.csv"
    if not parser.parse_args().draw:
        measure(lambda line: print(line, flush=True)).to_csv(path, index=False)
    draw_figure(pd.read_csv(path), IMAGES / "scaling.png")


if __name__ == "__main__":
    main()
