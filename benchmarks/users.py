"""Measure the time of a fit against the number of rows: ``python -m benchmarks.users``.

The script writes docs/results/users.csv, docs/images/users.png and the first table of
docs/benchmarks.md. Times are processor times on one thread, so that other load on the machine
has little effect. A run takes about ten minutes on an idle machine. A method is not run on more
rows if its extrapolated time exceeds `LIMIT` seconds.
"""

import argparse
import time
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from benchmarks.descent import blobs
from benchmarks.pages import DOCS, replace_part
from cafelearn import CAFE, MinkowskiWeightedKMeans
from reproduction.markdown import markdown_table

mpl.use("Agg")

ROWS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
FEATURES, CLUSTERS = 20, 5
LIMIT = 90  # seconds
# Every fit is repeated, because the first fit of a size may include compilation. If both fits
# together take less than this many seconds, a third follows.
SHORT = 2


def umap(X):
    """Fit UMAP without its warnings."""
    from umap import UMAP

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        UMAP(n_jobs=1).fit(X)


# All methods have their default parameters, except that KMeans also runs with ten starts.
METHODS = {
    "CAFE": lambda X: CAFE(CLUSTERS, random_state=0).fit(X),
    "MinkowskiWeightedKMeans": lambda X: MinkowskiWeightedKMeans(CLUSTERS, random_state=0).fit(
        X
    ),
    "KMeans": lambda X: KMeans(CLUSTERS, random_state=0).fit(X),
    "KMeans, 10 starts": lambda X: KMeans(CLUSTERS, n_init=10, random_state=0).fit(X),
    "GaussianMixture": lambda X: GaussianMixture(CLUSTERS, random_state=0).fit(X),
    "HDBSCAN": lambda X: HDBSCAN(copy=True).fit(X),
    "umap-learn": umap,
}
LOOKS = {
    "CAFE": {"color": "#0072B2", "lw": 2.6},
    "MinkowskiWeightedKMeans": {"color": "#56B4E9", "lw": 2.6},
    "KMeans": {"color": "#000000", "ls": "--"},
    "KMeans, 10 starts": {"color": "#777777", "ls": "--"},
    "GaussianMixture": {"color": "#009E73"},
    "HDBSCAN": {"color": "#D55E00"},
    "umap-learn": {"color": "#CC79A7"},
}


def time_fit(fit, X):
    """Return the best time of two or three fits to the same rows."""
    times = []
    while len(times) < 2 or (len(times) < 3 and sum(times) < SHORT):
        begin = time.process_time()
        fit(X)
        times.append(time.process_time() - begin)
    return min(times)


def expected(sizes, seconds, n_rows):
    """Extrapolate the time of a fit to `n_rows` rows from the last two sizes.

    The time is assumed to grow at least linearly and at most quadratically.
    """
    if not seconds:
        return 0.0
    growth = 1.0
    if len(seconds) > 1:
        measured = np.log(seconds[-1] / seconds[-2]) / np.log(sizes[-1] / sizes[-2])
        growth = min(max(measured, 1.0), 2.0)
    return seconds[-1] * (n_rows / sizes[-1]) ** growth


def measure(methods, rows, limit, note):
    """Measure the methods; return a table with one row per method and number of rows.

    `note` is called with a line of text for each measurement.
    """
    warnings.simplefilter("ignore")
    found = []
    for method in methods:
        fit = METHODS[method]
        fit(blobs(min(rows), FEATURES, CLUSTERS))
        sizes, seconds = [], []
        for n_rows in rows:
            guess = expected(sizes, seconds, n_rows)
            if guess > limit:
                note(f"{method}, {n_rows:,} rows: not run, would take about {guess:.0f} s")
                break
            sizes.append(n_rows)
            seconds.append(time_fit(fit, blobs(n_rows, FEATURES, CLUSTERS)))
            note(f"{method}, {n_rows:,} rows: {seconds[-1]:.3f} s")
        found += [
            {"method": method, "rows": n_rows, "seconds": round(spent, 4)}
            for n_rows, spent in zip(sizes, seconds, strict=True)
        ]
    return pd.DataFrame(found)


def spread(places, gap):
    """Shift sorted positions until neighbours are at least `gap` apart."""
    places = np.array(places, dtype=float)
    for _ in range(200):
        short = gap - np.diff(places)
        if (short <= 1e-9).all():
            break
        push = np.maximum(short, 0) / 2
        places[:-1] -= push
        places[1:] += push
    return places


def draw(table, path):
    """Draw the time against the number of rows, with the name of the method at each line."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8.2, 4.8), layout="constrained")
    ends = {}
    for method, line in table.groupby("method", sort=False):
        axes.plot("rows", "seconds", marker="o", ms=4, data=line, **LOOKS[method])
        ends[method] = line.iloc[-1]
    axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds for a fit")
    sizes = sorted(set(table["rows"]))
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.xaxis.minorticks_off()
    ticks = {0.001: "1 ms", 0.01: "10 ms", 0.1: "0.1 s", 1: "1 s", 10: "10 s", 60: "1 min"}
    shortest, longest = table["seconds"].min(), table["seconds"].max()
    shown = [tick for tick in ticks if shortest / 4 < tick < 2 * longest]
    axes.set_yticks(shown, [ticks[tick] for tick in shown])
    axes.yaxis.minorticks_off()
    axes.grid(alpha=0.3, lw=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    names = sorted(ends, key=lambda method: ends[method]["seconds"])
    heights = np.log10([ends[method]["seconds"] for method in names])
    gap = 0.055 * np.diff(np.log10(axes.get_ylim()))[0]
    for method, height in zip(names, spread(heights, gap), strict=True):
        end = ends[method]
        stopped = "" if end["rows"] == sizes[-1] else " (stopped)"
        axes.annotate(
            method + stopped,
            (end["rows"], end["seconds"]),
            (sizes[-1] * 1.25, 10**height),
            color=LOOKS[method]["color"],
            va="center",
            fontsize=9,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "lw": 0.5, "color": "#bbbbbb", "shrinkB": 4},
        )
    figure.savefig(path, dpi=130)
    plt.close(figure)


def words(seconds):
    """Format a time with two significant digits."""
    if np.isnan(seconds):
        return "-"
    if seconds < 0.1:
        return f"{seconds * 1e3:.2g} ms"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


def as_markdown(table):
    """Return the table as Markdown, with methods as rows and numbers of rows as columns."""
    wide = table.pivot(index="method", columns="rows", values="seconds")
    wide = wide.loc[table["method"].unique()]
    lines = zip(wide.index, wide.to_numpy(), strict=True)
    names = ["one fit", *(f"{size:,} rows" for size in wide)]
    return markdown_table(names, [[method, *map(words, line)] for method, line in lines])


def main():
    """Measure, unless the stored times are to be used; write the figure and the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draw", action="store_true", help="use the stored times")
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS, help="numbers of rows")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--limit", type=float, default=LIMIT, help="longest fit in seconds")
    options = parser.parse_args()
    path = DOCS / "results" / "users.csv"
    if not options.draw:
        with threadpool_limits(1):
            table = measure(
                options.methods,
                sorted(options.rows),
                options.limit,
                lambda line: print(line, flush=True),
            )
        if set(options.methods) < set(METHODS):
            kept = pd.read_csv(path).query("method not in @options.methods")
            table = pd.concat([kept, table])
        order = table["method"].map(list(METHODS).index)
        table = table.assign(order=order).sort_values(["order", "rows"]).drop(columns="order")
        table.to_csv(path, index=False)
    table = pd.read_csv(path)
    draw(table, DOCS / "images" / "users.png")
    replace_part("benchmarks.md", "python -m benchmarks.users", as_markdown(table))


if __name__ == "__main__":
    main()
