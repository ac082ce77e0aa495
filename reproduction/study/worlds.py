"""Generators of the comparison study.

The density of each class of a "world" is known, and hence the ideal labels: each row gets the
class with the highest posterior probability. The classes are moved as close to each other as
possible such that the ideal labels have an adjusted Rand index of `IDEAL`. The first world of
each series is easy for k-means, the last one is not.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import OneHotEncoder

# Smallest adjusted Rand index of the ideal labels of a world.
IDEAL = 0.93
# Rows of a world.
N_ROWS = 600


class Labelled(NamedTuple):
    """Rows and their classes.

    Class -1 marks rows that belong to no class; they do not count in the scores.
    """

    X: np.ndarray
    y: np.ndarray


class World(NamedTuple):
    """Rows, their classes and their ideal labels."""

    X: np.ndarray
    y: np.ndarray
    ideal: np.ndarray


def make_correlated(rng: np.random.Generator, correlation: float) -> World:
    """Generate Gaussian clusters with correlated features.

    Within a cluster, any two features have this correlation or its negative. The signs differ
    by cluster in half of the worlds.
    """
    k, m = int(rng.integers(3, 6)), int(rng.integers(4, 9))
    y = _even_classes(rng, k)
    signs = rng.choice([-1.0, 1.0], (k, m))
    if rng.random() < 0.5:
        signs[:] = signs[0]
    common = rng.normal(size=(N_ROWS, 1)) * signs[y]
    own = rng.normal(size=(N_ROWS, m))
    noise = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own

    def log_density(deviations, l):
        # The inverse of (1 - c) I + c s s' by the formula of Sherman and Morrison.
        along = (deviations @ signs[l]) ** 2 * correlation / (1 + (m - 1) * correlation)
        return -0.5 * ((deviations**2).sum(axis=1) - along) / (1 - correlation)

    return _place(rng.normal(size=(k, m)), y, noise, log_density)


def make_spreads(rng: np.random.Generator, ratio: float) -> World:
    """Generate round Gaussian clusters; `ratio` is that of the largest and smallest spread."""
    k, m = int(rng.integers(3, 6)), int(rng.integers(4, 9))
    y = _even_classes(rng, k)
    spread = ratio ** np.linspace(0, 1, k)
    noise = spread[y, None] * rng.normal(size=(N_ROWS, m))

    def log_density(deviations, l):
        return -0.5 * (deviations**2).sum(axis=1) / spread[l] ** 2 - m * np.log(spread[l])

    return _place(rng.normal(size=(k, m)), y, noise, log_density)


def make_tails(rng: np.random.Generator, degrees: float) -> World:
    """Generate round clusters with heavy tails, from Student's t distribution.

    In half of the worlds each value has its own tail; in the others, rows as a whole are far
    from their centre (the multivariate t distribution).
    """
    k, m = int(rng.integers(3, 6)), int(rng.integers(4, 9))
    y = _even_classes(rng, k)
    whole_rows = rng.random() < 0.5
    scale = rng.chisquare(degrees, (N_ROWS, 1) if whole_rows else (N_ROWS, m)) / degrees
    noise = rng.normal(size=(N_ROWS, m)) / np.sqrt(scale)

    def log_density(deviations, l):
        if whole_rows:
            squares = (deviations**2).sum(axis=1)
            return -0.5 * (degrees + m) * np.log1p(squares / degrees)
        return -0.5 * (degrees + 1) * np.log1p(deviations**2 / degrees).sum(axis=1)

    return _place(rng.normal(size=(k, m)), y, noise, log_density)


def make_sizes(rng: np.random.Generator, share: float) -> World:
    """Generate round Gaussian clusters, one of which has this share of the rows."""
    k, m = 3, int(rng.integers(4, 9))
    small = round(share * N_ROWS)
    y = np.append(np.zeros(small, dtype=np.int64), 1 + np.arange(N_ROWS - small) % (k - 1))
    sizes = np.log(np.bincount(y))
    noise = rng.normal(size=(N_ROWS, m))

    def log_density(deviations, l):
        return sizes[l] - 0.5 * (deviations**2).sum(axis=1)

    return _place(rng.normal(size=(k, m)), y, noise, log_density)


def make_wide(rng: np.random.Generator) -> World:
    """Generate 200 rows with 100 features, 10 of which differ between 2 to 4 clusters."""
    k, n = int(rng.integers(2, 5)), 200
    y = rng.permutation(np.arange(n) % k)
    centers = np.zeros((k, 100))
    centers[:, rng.permutation(100)[:10]] = rng.normal(size=(k, 10))

    def log_density(deviations, l):
        return -0.5 * (deviations**2).sum(axis=1)

    return _place(centers, y, rng.normal(size=(n, 100)), log_density)


def _even_classes(rng, k):
    """Draw the classes of the rows of a world; expected sizes differ by a factor of up to 2."""
    shares = rng.uniform(1, 2, k)
    return rng.choice(k, N_ROWS, p=shares / shares.sum())


def _place(directions, y, noise, log_density):
    """Move the centres apart until the ideal labels agree well enough with the classes.

    The centres are `directions` times a distance, which is found by bisection on a log scale.
    `log_density` gives, up to a constant, the log density (or joint density) of deviations from
    the centre of cluster `l`.
    """
    k = len(directions)

    def at(distance):
        centers = distance * directions
        X = centers[y] + noise
        scores = np.column_stack([log_density(X - centers[l], l) for l in range(k)])
        return World(X, y, scores.argmax(axis=1))

    low, high = 1e-2, 1e4
    for _ in range(20):
        middle = np.sqrt(low * high)
        world = at(middle)
        enough = adjusted_rand_score(y, world.ideal) >= IDEAL
        low, high = (low, middle) if enough else (middle, high)
    return at(high)


def make_subspaces(rng):
    """Generate Gaussian clusters, each compact in its own subset of the features."""
    k, m = int(rng.integers(2, 9)), int(rng.integers(5, 41))
    y = _draw_classes(rng, k)
    compact = rng.random((k, m)) < rng.uniform(0.3, 0.7)
    compact[np.arange(k), rng.integers(0, m, k)] = True
    centers = rng.normal(0, 2, (k, m))
    spread = np.where(compact, rng.uniform(0.3, 1, (k, m)), rng.uniform(2, 4, (k, m)))
    return Labelled(
        np.where(compact, centers, 0)[y] + spread[y] * rng.normal(size=(len(y), m)), y
    )


def make_counts(rng):
    """Generate log(1 + count) for overdispersed counts with excess zeros.

    Some of the means differ by class.
    """
    k, m = int(rng.integers(2, 9)), int(rng.integers(10, 61))
    y = _draw_classes(rng, k)
    mean = rng.gamma(2, 2, m) * np.exp(rng.normal(0, 1, (k, m)) * (rng.random((k, m)) < 0.4))
    shape = rng.uniform(0.5, 3, m)
    counts = rng.poisson(rng.gamma(shape, mean[y] / shape))
    counts[rng.random(counts.shape) < rng.uniform(0.1, 0.5, (k, m))[y]] = 0
    return Labelled(np.log1p(counts), y)


def make_categories(rng):
    """Generate one-hot columns of categorical variables; some distributions differ by class."""
    k, m = int(rng.integers(2, 7)), int(rng.integers(5, 16))
    y = _draw_classes(rng, k)
    columns = []
    for _ in range(m):
        size = int(rng.integers(2, 8))
        common = rng.dirichlet(np.full(size, 2.0))
        separates = rng.random(k) < 0.6
        shares = np.where(separates[:, None], rng.dirichlet(np.full(size, 0.5), k), common)
        columns.append((shares.cumsum(axis=1)[y] < rng.random(len(y))[:, None]).sum(axis=1))
    codes = np.minimum(np.column_stack(columns), 7)
    return Labelled(OneHotEncoder(sparse_output=False).fit_transform(codes), y)


def _draw_classes(rng, k):
    """Draw the classes of 200 to 1,200 rows; expected sizes differ by a factor of up to 4."""
    shares = rng.uniform(1, 4, k)
    y = rng.choice(k, int(rng.integers(200, 1201)), p=shares / shares.sum())
    y[:k] = np.arange(k)
    return y


# Generators of rows and classes, by the name of the data set.
GENERATORS: dict[str, Callable] = {
    "categories": make_categories,
    "counts": make_counts,
    "subspaces": make_subspaces,
}
WORLDS: dict[str, Callable] = {
    **{
        f"correlated {c:g}": partial(make_correlated, correlation=c) for c in (0, 0.3, 0.6, 0.9)
    },
    **{f"spreads {ratio}": partial(make_spreads, ratio=ratio) for ratio in (1, 2, 4, 8)},
    **{f"tails {degrees}": partial(make_tails, degrees=degrees) for degrees in (5, 3, 2)},
    **{f"sizes {share:g}": partial(make_sizes, share=share) for share in (0.33, 0.1, 0.03)},
    "wide": make_wide,
}
