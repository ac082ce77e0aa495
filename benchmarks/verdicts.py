"""Measure the answers of CAFE: the number of clusters, the verdict, the findings and the time.

    python -m benchmarks.verdicts [parts ...] [--versions N] [--jobs J] [--out file]

"worlds" (clusters) and "clouds" (single populations) measure the number of clusters, "wide" the
effect of 90 unrelated columns, "true" findings about well separated clusters, "same" whether
the verdict remains if the chosen number is given, and "seeds" labels of real tables relative
to those of the first seed. `--time [rows]` measures only the processor time, relative to
mixtures. `--fit module:function` measures another function like `fit`.
"""

import argparse
import time
import warnings
from collections import Counter
from functools import partial
from importlib import import_module
from itertools import chain, product
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import adjusted_rand_score, recall_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from cafelearn import CAFE
from cafelearn.datasets import load
from reproduction.markdown import markdown_table
from reproduction.study.worlds import World

IDEAL = 0.93, 0.97  # range of the required adjusted Rand index (ARI) of ideal labels
TRUE, OVERLAPPING = 0.99, 0.7  # the same for the part "true" and for times
SIZES = ((1_000, 20), (2_000, 56), (10_000, 20), (100_000, 20))  # rows and columns to time
TABLES = {name: partial(load, name) for name in ("iris", "glass", "ecoli", "australian_credit")}
TABLES |= {"wine": load_wine, "wdbc": load_breast_cancer}


class Answer(NamedTuple):
    """The answer of a fit; `severe` and `notes` are the codes of its findings."""

    n_clusters: int
    labels: np.ndarray
    verdict: str
    severe: tuple = ()
    notes: tuple = ()


def fit(X, k, seed):
    """Fit CAFE with `k` clusters, a number or "auto"."""
    cafe = CAFE(k, random_state=seed, n_jobs=1).fit(X)
    severe = tuple(found.code for found in cafe.diagnosis_ if found.severity == "severe")
    notes = tuple(found.code for found in cafe.diagnosis_ if found.severity != "severe")
    return Answer(int(cafe.n_clusters_), cafe.labels_, cafe.verdict_, severe, notes)


def bic_mixture(X, k, seed):
    """Fit mixtures and choose by BIC; the verdict is "none" if a single normal one wins."""
    X = StandardScaler().fit_transform(X)
    numbers = range(1, 10) if k == "auto" else {1, k}
    found = {number: best_mixture(X, number, seed) for number in numbers}
    lowest = min(found, key=lambda number: found[number].bic(X))
    chosen = lowest if k == "auto" else k
    return Answer(chosen, found[chosen].predict(X), "none" if lowest == 1 else "structure")


def best_mixture(X, k, seed, n_init=2):
    """Fit mixtures with four structures of the covariance; return that of the lowest BIC."""
    settings = {"n_init": n_init, "reg_covar": 1e-3, "random_state": seed}
    types = ("full", "tied", "diag", "spherical")
    models = [GaussianMixture(k, covariance_type=each, **settings) for each in types]
    return min((model.fit(X) for model in models), key=lambda model: model.bic(X))


def separate(directions, y, noise, ideal, log_density=None, observe=None):
    """Move clusters apart until their ideal labels agree well enough with the classes.

    No recall may be low either, or a small class could hide in another. `log_density` is that
    of deviations from centre `l`; by default clusters are round and normal. If `observe`
    transforms the rows, the ideal labels are those of a linear discriminant analysis.
    """
    log_sizes = np.log(np.bincount(y))
    log_density = log_density or (lambda rows, l: -0.5 * (rows**2).sum(axis=1))

    def at(distance):
        X, centers = distance * directions[y] + noise, enumerate(distance * directions)
        if observe:
            X, oracle = observe(X), LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.01)
            return World(X, y, oracle.fit(X, y).predict(X))
        scores = [log_sizes[l] + log_density(X - center, l) for l, center in centers]
        return World(X, y, np.argmax(scores, axis=0))

    low, high = 1e-2, 1e3
    for _ in range(20):
        middle = np.sqrt(low * high)
        labels = at(middle).ideal
        recall = recall_score(y, labels, average=None, zero_division=0).min()
        enough = adjusted_rand_score(y, labels) >= ideal and recall >= ideal - 0.1
        low, high = (low, middle) if enough else (middle, high)
    return at(high)


def draw_classes(rng, k, m, ratio=2.0, n=None):
    """Draw the classes of 300 to 1,500 rows; the largest is `ratio` times the smallest."""
    shares = ratio ** np.linspace(0, 1, k)
    least = int(np.clip(max(12 * k * m, 25 * shares.sum()), 300, 1_500))
    n = rng.integers(least, 1_501) if n is None else n
    ends = np.round(n * shares.cumsum() / shares.sum()).astype(int)
    return rng.permutation(np.repeat(np.arange(k), np.diff(ends, prepend=0)))


def mixing(rng, m, width):
    """Draw a matrix that makes noise correlated; `width` is that of the log spreads."""
    rotation = np.linalg.qr(rng.normal(size=(m, m)))[0]
    return np.exp(rng.uniform(-width, width, (m, 1))) * rotation


def elliptic(rng, k, ideal, *, m=None, n=None, tied=0.8, own=0.0, degrees=1e9, ratio=(1, 2)):
    """Draw normal or t-distributed clusters; log spreads have widths `tied` and `own`."""
    m = int(rng.integers(3, 16)) if m is None else m
    y = draw_classes(rng, k, m, rng.uniform(*ratio), n)
    common = mixing(rng, m, tied) if tied else np.eye(m)
    # With many columns and wide spreads, the covariances alone would separate the clusters.
    maps = [mixing(rng, m, own / np.sqrt(m)) @ common if own else common for _ in range(k)]
    inverses, log_volumes = np.linalg.inv(maps), np.linalg.slogdet(maps)[1]
    noise = rng.normal(size=(len(y), m))
    noise /= np.sqrt(rng.chisquare(degrees, (len(y), 1)) / degrees)
    for l in range(k):
        noise[y == l] = noise[y == l] @ maps[l]

    def log_density(deviations, l):
        squares = ((deviations @ inverses[l]) ** 2).sum(axis=1)
        return -0.5 * (degrees + m) * np.log1p(squares / degrees) - log_volumes[l]

    return separate(rng.normal(size=(k, m)), y, noise, ideal, log_density)


def independent(rng, k, ideal, law):
    """Draw clusters of independent columns with the same distribution."""
    m = int(rng.integers(3, 16))
    y, directions = draw_classes(rng, k, m), rng.normal(size=(k, m))
    noise = law.rvs((len(y), m), random_state=rng)
    return separate(directions, y, noise, ideal, lambda rows, l: law.logpdf(rows).sum(axis=1))


def skewed(rng, k, ideal):
    """Draw clusters with lognormal noise, or transform the columns of normal clusters."""
    if rng.random() < 0.5:
        return independent(rng, k, ideal, stats.lognorm(rng.uniform(0.3, 0.7)))
    world = elliptic(rng, k, ideal)
    m = world.X.shape[1]
    Z = StandardScaler().fit_transform(world.X) * rng.uniform(0.4, 0.9, m)
    return world._replace(X=np.where(rng.random(m) < 0.5, np.exp(Z), np.logaddexp(0, 3 * Z)))


def extra_columns(rng, k, ideal):
    """Add as many unrelated columns (normal, uniform or lognormal) to clusters as they have."""
    m = int(rng.integers(3, 8))
    world = elliptic(rng, k, ideal, m=m, tied=rng.choice([0, 0.8]), own=rng.choice([0, 1.5]))
    kinds = [f(size=world.X.shape) for f in (rng.normal, rng.uniform, rng.lognormal)]
    X = np.hstack([world.X, np.choose(rng.integers(3, size=m), kinds)])
    return world._replace(X=rng.permutation(X, axis=1))


def answers(X, points, shift=0.0):
    """Standardise columns, shift them and round them to a scale from 1."""
    latent = (X - X.mean(axis=0)) / X.std(axis=0) + shift
    return np.clip(np.round((points + 1) / 2 + points / 4.5 * latent), 1, points)


def survey(rng, k, ideal):
    """Draw normal clusters, rounded to scales of 5 or 7 points."""
    m, points = int(rng.integers(6, 16)), rng.choice([5, 7])
    y, directions = draw_classes(rng, k, m), rng.normal(size=(k, m))
    noise = rng.normal(size=(len(y), m)) @ mixing(rng, m, 0.5)
    return separate(directions, y, noise, ideal, observe=partial(answers, points=points))


def grid(rng, k, ideal):
    """Draw clusters at points of a grid: boxes with gaps between them, or round clusters."""
    m = int(rng.integers(3, 7))
    y = draw_classes(rng, k, m)
    points = np.transpose(np.unravel_index(rng.choice(3**m, k, replace=False), (3,) * m))
    if rng.random() < 0.5:
        return separate(points, y, rng.normal(size=(len(y), m)), ideal)
    return World(rng.uniform(1.2, 1.6) * points[y] + rng.random((len(y), m)), y, y)


def mixed(rng, k, ideal):
    """Add one-hot variables to normal clusters; the ideal labels do not use them."""
    world = elliptic(rng, k, ideal, m=int(rng.integers(3, 7)))
    shape = len(world.y), int(rng.integers(2, 4))
    frequent = rng.integers(3, size=(k, shape[1]))[world.y]
    codes = np.where(rng.random(shape) < 0.55, frequent, rng.integers(3, size=shape))
    return world._replace(X=np.hstack([world.X, *np.eye(3)[codes.T]]))


def subspaces(rng, k, ideal):
    """Draw clusters, each of which is compact on its own columns and wide on the others."""
    m = int(rng.integers(5, 16))
    y, compact = draw_classes(rng, k, m), rng.random((k, m)) < 0.5
    compact[np.arange(k), rng.integers(m, size=k)] = True
    spread = np.where(compact, 1.0, rng.uniform(1.5, 3, (k, m)))
    directions = np.where(compact, rng.normal(size=(k, m)), 0)

    def log_density(deviations, l):
        return stats.norm.logpdf(deviations, scale=spread[l]).sum(axis=1)

    return separate(directions, y, spread[y] * rng.normal(size=(len(y), m)), ideal, log_density)


WORLDS = {
    "full": partial(elliptic, own=1.5),
    "tied": elliptic,
    "equal": partial(elliptic, tied=0.0, ratio=(1, 1)),
    "t": partial(independent, law=stats.t(4)),
    "elliptic t": partial(elliptic, own=1.5, degrees=4),
    "extra columns": extra_columns,
    "skewed": skewed,
    "survey": survey,
    "grid": grid,
    "unequal": partial(elliptic, ratio=(5, 15)),
    "mixed": mixed,
    "subspaces": subspaces,
}


def normal(rng, n, m, share=None, most=3, degrees=1e9):
    """Draw normal or t-distributed rows; a `share` of the variance has few common causes."""
    share = rng.choice([0, 0.5, 0.95]) if share is None else share
    factors = rng.normal(size=(n, rng.integers(1, min(m - 1, most) + 1)))
    common = factors @ stats.uniform_direction(factors.shape[1]).rvs(m, random_state=rng).T
    X = np.sqrt(share) * common + np.sqrt(1 - share) * rng.normal(size=(n, m))
    return X / np.sqrt(rng.chisquare(degrees, (n, 1)) / degrees)


CLOUDS = {
    "normal 0": partial(normal, share=0),
    "normal 0.5": partial(normal, share=0.5),
    "normal 0.95": partial(normal, share=0.95),
    "t 3": lambda rng, n, m: rng.standard_t(3, (n, m)),
    "t 5": lambda rng, n, m: rng.standard_t(5, (n, m)),
    "elliptic t 3": partial(normal, degrees=3),
    "elliptic t 5": partial(normal, degrees=5),
    "lognormal": lambda rng, n, m: rng.lognormal(0, rng.uniform(0.3, 1, m), (n, m)),
    "gamma": lambda rng, n, m: rng.gamma(rng.uniform(0.5, 4, m), size=(n, m)),
    "exp of normal": lambda rng, n, m: np.exp(rng.uniform(0.3, 1, m) * normal(rng, n, m, 0.5)),
    "box": lambda rng, n, m: rng.random((n, m)),
    "beta": lambda rng, n, m: rng.beta(*rng.uniform(1, 4, (2, m)), (n, m)),
    "ball": lambda rng, n, m: stats.uniform_direction(m + 2).rvs(n, random_state=rng)[:, :m],
    "copula": lambda rng, n, m: stats.norm.cdf(normal(rng, n, m, 0.8)),
    "counts": lambda rng, n, m: rng.poisson(rng.uniform(0.5, 10, m), (n, m)),
    "ordinal 5": lambda rng, n, m: answers(normal(rng, n, m, 0.5), 5, rng.normal(0, 0.4, m)),
    "ordinal 7": lambda rng, n, m: answers(normal(rng, n, m, 0.5), 7, rng.normal(0, 0.4, m)),
    "binary": lambda rng, n, m: normal(rng, n, m, 0.4, 1) > rng.uniform(-0.8, 0.8, m),
}


def draw(part, kind, version):
    """Draw rows and classes; eight versions of a world in a row have all numbers of classes."""
    rng = np.random.default_rng(list(f"{part}/{kind}/{version}".encode()))
    if part == "seeds":
        world = World(*(TABLES[kind]()[key] for key in ("data", "target", "target")))
    elif part == "wide":  # the first ten columns differ by cluster
        y, directions = rng.permutation(np.arange(200) % kind), np.zeros((kind, 100))
        directions[:, :10] = rng.normal(size=(kind, 10))
        world = separate(directions, y, rng.normal(size=(200, 100)), IDEAL[0])
    elif kind in CLOUDS:
        n, m = int(200 * 10 ** rng.random()), int(rng.choice([*range(2, 9), 10, 10, 30, 30]))
        world = World(CLOUDS[kind](rng, n, m).astype(float), *np.zeros((2, n)))
    else:
        k = 2 + (3 * version + list(WORLDS).index(kind)) % 8
        world = WORLDS[kind](rng, k, TRUE if part == "true" else rng.uniform(*IDEAL))
    if part == "same":
        some = rng.choice(len(world.y), rng.integers(120, 181), replace=False)
        world = World(*(values[some] for values in world))
    return world


def ask(fit, X, k, seed):
    """Fit with one thread and without warnings; return the answer and the processor time."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.process_time()
        return fit(X, k, seed), time.process_time() - begin


def run(part, kind, version, fit):
    """Run the fits of a case; return a row of the table for each."""
    X, y, ideal = draw(part, kind, version)
    k, rows = len(np.unique(y)), []
    for way in PARTS[part][1]:
        used = X[:, :10] if way == "ten columns" else X
        answer, seconds = ask(fit, used, "auto" if way == "auto" else k, version)
        found = answer.n_clusters
        row = {"part": part, "kind": kind, "version": version, "way": way, "n": len(X)}
        row |= {"m": X.shape[1], "k": k, "error": found - k, "alarm": len(answer.severe) > 0}
        row |= {"right": found == k, "within 1": abs(found - k) <= 1, "seconds": seconds}
        row["one or continuum"] = found == 1 or answer.verdict in ("none", "continuum")
        row["ideal ARI"] = adjusted_rand_score(y, ideal)
        row["ARI"] = adjusted_rand_score(y, answer.labels)
        if part == "same" and rows:
            row["same labels"] = adjusted_rand_score(rows[0]["labels"], answer.labels) == 1
            row["and verdict"] = row["same labels"] and answer.verdict == rows[0]["verdict"]
        rows.append(row | answer._asdict())
        k = found if part == "same" else k
    return rows


def count(values):
    """Return each value and its number of occurrences as text."""
    return ", ".join(f"{value}: {number}" for value, number in Counter(values).most_common())


# Functions of the rows of a group for the printed tables. The other columns are averaged.
MEASURES = {
    "median error": lambda rows: rows["error"].median(),
    "smallest ARI": lambda rows: min(
        adjusted_rand_score(rows["labels"].iloc[0], labels) for labels in rows["labels"]
    ),
    "verdicts": lambda rows: count(rows["verdict"]),
    "numbers": lambda rows: count(rows["n_clusters"]),
    "findings": lambda rows: count((rows["severe"] + rows["notes"]).sum()),
}
CHOICE = ("right", "within 1", "median error", "ideal ARI", "ARI", "verdicts", "seconds")
ONE = ("one or continuum", "right", "numbers", "verdicts", "seconds")
TRUTH = ("ideal ARI", "ARI", "alarm", "verdicts", "findings")
SAME = ("same labels", "and verdict")
SEEDS = ("smallest ARI", "ARI", "numbers", "verdicts", "findings")
SEPARATED = ("full", "equal", "t", "unequal", "mixed")
# Kinds, ways to fit, the groups of each table, and measures of each part.
PARTS = {
    "worlds": (WORLDS, ("auto",), (["kind"], ["k"], ["part"]), CHOICE),
    "clouds": (CLOUDS, ("auto",), (["kind"], ["m"], ["part"]), ONE),
    "wide": ((2, 3, 4), ("auto", "k given", "ten columns"), (["kind", "way"],), CHOICE),
    "true": (SEPARATED, ("k given",), (["kind"], ["part"]), TRUTH),
    "same": ((*WORLDS, *CLOUDS), ("auto", "k given"), (["kind"], ["part"]), SAME),
    "seeds": (TABLES, ("k given", "auto"), (["kind", "way"],), SEEDS),
}


def summarise(table, by, measures):
    """Return a Markdown table of the measures in each group of rows."""
    lines = []
    for name, rows in table.groupby(by, sort="kind" not in by):
        values = (MEASURES[f](rows) if f in MEASURES else rows[f].mean() for f in measures)
        values = [value if isinstance(value, str) else f"{value:.2f}" for value in values]
        lines.append([", ".join(map(str, name)), str(len(rows)), *values])
    return markdown_table([", ".join(by), "fits", *measures], lines)


def time_fits(fit, largest):
    """Return the times of fits relative to mixtures with four structures, as Markdown."""
    lines = []
    for n, m in (size for size in SIZES if size[0] <= largest):
        rng = np.random.default_rng([n, m])
        X = StandardScaler().fit_transform(elliptic(rng, 5, OVERLAPPING, n=n, m=m).X)
        for rows in X[:500], X:  # the first fits compile
            rival = ask(partial(best_mixture, n_init=5), rows, 5, 0)[1]
            ratios = [f"{ask(fit, rows, k, 0)[1] / rival:.3f}" for k in (5, "auto")]
        lines.append([f"{n:,} x {m}", f"{rival:.1f}", *ratios])
    return markdown_table(("size", "mixtures, seconds", "k given, ratio", "auto, ratio"), lines)


def main():
    """Run the parts and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--fit", default=f"{__name__}:fit", help="module:function")
    parser.add_argument("--versions", type=int, default=10, help="of each kind of data")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", help="CSV file of all fits")
    parser.add_argument("--time", type=int, nargs="?", const=10**6, help="largest size to time")
    options = parser.parse_args()
    module, name = options.fit.split(":")
    function = getattr(import_module(module), name)
    if options.time:
        print(time_fits(function, options.time))
        return
    rows = []
    for part in options.parts or PARTS:
        kinds, _, groups, measures = PARTS[part]
        cases = product([part], kinds, range(options.versions), [function])
        found = Parallel(options.jobs)(delayed(run)(*case) for case in cases)
        table = pd.DataFrame(chain.from_iterable(found))
        for by in groups:
            print(f"\n### {part}\n\n{summarise(table, by, measures)}", flush=True)
        rows.append(table.drop(columns="labels"))
        if options.out:  # keep the results if the run is interrupted
            pd.concat(rows).to_csv(options.out, index=False)


if __name__ == "__main__":
    main()
