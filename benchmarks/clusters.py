"""Measure how often the chosen number of clusters is the number of classes.

    python -m benchmarks.clusters [versions]

The script chooses k in two ways: from 1 to 10 as `CAFE("auto")` does, and from 2 to 10 by the
silhouette of k-means. The data are three data sets of scikit-learn and four generated families
with 2 to 8 clusters, clean and with the noise of the paper (scale 1) at two levels. In
addition, there are 50 sets of uniform noise, for which 1 is right. All sets are used twice:
complete, and with a fifth of the values removed at random. The results are written to
docs/results/clusters.csv. The script then measures how much longer a fit takes if it chooses
k from 2 to 8. It takes about forty minutes in total. `versions` is the number of versions of
each set: at most 5, the default.
"""

import sys
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.impute import SimpleImputer
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.preprocessing import StandardScaler

from cafelearn import CAFE, RangeScaler
from cafelearn._n_clusters import choose_number, chosen_number
from cafelearn.datasets import corrupt

OUT = Path(__file__).parent.parent / "docs" / "results" / "clusters.csv"
REAL = {"wine": load_wine, "iris": load_iris, "breast cancer": load_breast_cancer}
LEVELS = (0.0, 0.2, 0.4)
# Numbers of clusters of the generated sets in each version. Each number occurs twice.
NUMBERS = ((2, 5, 8), (3, 6), (4, 7), (2, 5, 8), (3, 4, 6, 7))
TRIED = range(1, 11)  # numbers of clusters to choose from
UNIFORM = 50  # number of sets of uniform noise
GAPS = (0.0, 0.2)  # shares of the values that are removed
# Approximate number of rows of a generated set, and the smallest size of a cluster.
ROWS, SMALLEST = 600, 30


def sizes(rng, k):
    """Draw unequal sizes for k clusters."""
    return np.maximum((rng.dirichlet(np.full(k, 5.0)) * ROWS).astype(int), SMALLEST)


def apart(rng, k, m, gap):
    """Draw centres that are at least `gap` apart, each within 1.4 `gap` of an earlier one."""
    centers = [np.zeros(m)]
    while len(centers) < k:
        step = rng.normal(size=m)
        step *= gap * rng.uniform(1.0, 1.4) / np.linalg.norm(step)
        new = centers[rng.integers(len(centers))] + step
        if min(np.linalg.norm(new - center) for center in centers) >= gap:
            centers.append(new)
    return np.array(centers)


def blobs(rng, k):
    """Draw spherical Gaussian clusters of unequal sizes and spreads, on 6 features."""
    y, centers = np.repeat(np.arange(k), sizes(rng, k)), apart(rng, k, 6, 6.0)
    spread = rng.uniform(0.7, 1.3, size=(k, 1))
    return centers[y] + spread[y] * rng.normal(size=(len(y), 6)), y


def local(rng, k):
    """Draw clusters on 10 features; each is compact on 6 of them and uniform on the others."""
    y, centers = np.repeat(np.arange(k), sizes(rng, k)), rng.uniform(size=(k, 10))
    X = rng.uniform(size=(len(y), 10))
    for l in range(k):
        own = rng.permutation(10)[:6]
        rows = np.ix_(y == l, own)
        X[rows] = centers[l, own] + 0.06 * rng.normal(size=X[rows].shape)
    return X, y


def correlated(rng, k):
    """Draw Gaussian clusters on 8 correlated features of very different scales."""
    y, centers = np.repeat(np.arange(k), sizes(rng, k)), apart(rng, k, 8, 7.0)
    mix = np.eye(8) + 0.5 * rng.normal(size=(8, 8)) / np.sqrt(8)
    X = (centers[y] + rng.normal(size=(len(y), 8))) @ mix
    return X * np.exp(2 * rng.normal(size=8)), y


def categories(rng, k):
    """Draw 8 one-hot variables of 3 categories; one category of each dominates in a cluster."""
    y = np.repeat(np.arange(k), sizes(rng, k))
    while True:
        preferred = rng.integers(3, size=(k, 8))
        differ = (preferred[:, None] != preferred[None]).sum(axis=2)
        if (differ + 8 * np.eye(k) >= 4).all():
            break
    shape = len(y), 8
    values = np.where(rng.random(shape) < 0.85, preferred[y], rng.integers(3, size=shape))
    return np.hstack([np.eye(3)[values[:, v]] for v in range(8)]), y


FAMILIES = {f.__name__: f for f in (blobs, local, correlated, categories)}


def make(name, k, level, version):
    """Return a data set and its classes. All versions of a real set without noise are equal."""
    which = [*REAL, *FAMILIES].index(name)
    rng = np.random.default_rng([which, k, version])
    if name in REAL:
        X, y = REAL[name](return_X_y=True)
    else:
        X, y = FAMILIES[name](rng, k)
    if level > 0:
        X, _ = corrupt(RangeScaler().fit_transform(X), y, level, 1.0, random_state=rng)
    return X, y


def remove(X, share, seed, width):
    """Remove values at random; every row keeps at least one.

    A variable consists of `width` consecutive columns, whose values in a row are removed
    together.
    """
    rng = np.random.default_rng([7, seed])
    gaps = rng.random((len(X), X.shape[1] // width)) < share
    gaps[gaps.all(axis=1), 0] = False
    return np.where(np.repeat(gaps, width, axis=1), np.nan, X)


def by_silhouette(X, seed):
    """Return the number of clusters with the highest silhouette of k-means.

    Missing values are replaced by medians.
    """
    X = StandardScaler().fit_transform(SimpleImputer(strategy="median").fit_transform(X))
    found = {
        k: silhouette_score(X, KMeans(k, n_init=3, random_state=seed).fit_predict(X))
        for k in TRIED
        if k > 1
    }
    return max(found, key=found.get)


def by_choice(X, seed):
    """Return the number of clusters that CAFE("auto") chooses."""
    numbers = choose_number(X, list(TRIED), None, np.random.SeedSequence(seed))
    return chosen_number(numbers)


def cases(versions):
    """Yield all cases version by version, first those without missing values."""
    for share, version in product(GAPS, range(versions)):
        for level in LEVELS:
            for name, load in REAL.items():
                yield name, len(load().target_names), level, version, share
            for name in FAMILIES:
                yield from ((name, k, level, version, share) for k in NUMBERS[version])
        uniform = range(version, UNIFORM, len(NUMBERS))
        yield from (("uniform", 1, 0.0, i, share) for i in uniform)


def run(name, k, level, version, share):
    """Run one case and return a row of the table."""
    ari = np.nan
    if name == "uniform":
        rng = np.random.default_rng([99, version])
        X = rng.uniform(size=(rng.choice([100, 300, 600]), rng.choice([2, 3, 5, 10, 20])))
    else:
        X, y = make(name, k, level, version)
    if share > 0:
        X = remove(X, share, version, 3 if name == "categories" else 1)
    if name != "uniform":
        cafe = CAFE(k, p=2.0, n_init=5, n_permutations=0, random_state=version).fit(X)
        ari = adjusted_rand_score(y, cafe.labels_)
    chosen, silhouette = by_choice(X, version), by_silhouette(X, version)
    return {
        "set": name,
        "level": level,
        "version": version,
        "gaps": share,
        "n": len(X),
        "m": X.shape[1],
        "k": k,
        "chosen": chosen,
        "silhouette": silhouette,
        "ari": round(ari, 3),  # agreement of CAFE with the classes if k is given
    }


def summary(table):
    """Summarise both methods by share of missing values and by data set."""
    return pd.concat({share: _summary(part) for share, part in table.groupby("gaps")})


def _summary(table):
    """Compute the share of right choices and the median error of both methods by data set."""
    classes = table[table["set"] != "uniform"]
    parts = dict(list(table.groupby("set", sort=False)))
    parts |= {f"level {level:g}": part for level, part in classes.groupby("level")}
    parts |= {
        "all with classes": classes,
        "of these, ari >= 0.8": classes[classes["ari"] >= 0.8],
    }
    rows = {}
    for name, part in parts.items():
        rows[name] = {"sets": len(part)}
        for way in ("chosen", "silhouette"):
            rows[name][f"{way} right"] = (part[way] == part["k"]).mean()
            rows[name][f"{way} median error"] = (part[way] - part["k"]).median()
    return pd.DataFrame(rows).T


def time_ratio(n, m, repeats=3):
    """Return the time of a fit that chooses k from 2 to 8, relative to a fit with k = 8."""
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=n)
    X = apart(rng, 5, m, 6.0)[y] + rng.normal(size=(n, m))

    def seconds(n_clusters):
        times = []
        for _ in range(repeats):
            begin = time.perf_counter()
            CAFE(n_clusters, random_state=0).fit(X)
            times.append(time.perf_counter() - begin)
        return min(times)

    seconds(8)  # compile
    return seconds(range(2, 9)) / seconds(8)


def main():
    """Run all cases, write the table and print a summary and the ratios of times."""
    warnings.simplefilter("ignore")
    versions = int(sys.argv[1]) if len(sys.argv) > 1 else len(NUMBERS)
    rows = []
    for case in cases(versions):
        rows.append(run(*case))
        if len(rows) % 10 == 0:  # keep the results if the run is interrupted
            pd.DataFrame(rows).to_csv(OUT, index=False, lineterminator="\n")
    table = pd.DataFrame(rows)
    table.to_csv(OUT, index=False, lineterminator="\n")
    print(summary(table).round(2).to_string())
    for shape in ((300, 6), (2_000, 10), (10_000, 20)):
        print(shape, round(time_ratio(*shape), 1))


if __name__ == "__main__":
    main()
