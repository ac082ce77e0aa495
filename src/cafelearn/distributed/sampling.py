"""Draw a sample of the rows, for steps that need rows in memory."""

from typing import NamedTuple

import numpy as np

# Enough rows to fit an extractor, and few enough for the client's memory.
LARGEST_SAMPLE = 100_000


class Wanted(NamedTuple):
    """Number of rows to draw from each block, and a function to apply to them."""

    counts: np.ndarray
    seed: int
    change: object  # rows -> rows, or None


def sample(blocks, seed, change=None, at_most=None):
    """Draw at most `at_most` rows (None: LARGEST_SAMPLE) without replacement; keep their order.

    `change` is applied to the drawn rows of each block, on the worker. If there are at most
    `at_most` rows, all are returned.
    """
    at_most = LARGEST_SAMPLE if at_most is None else at_most
    lengths, counts = blocks.lengths, blocks.lengths
    (child,) = seed.spawn(1)
    if len(blocks) > at_most:
        rng = np.random.default_rng(child)
        counts = rng.multivariate_hypergeometric(lengths, at_most, method="marginals")
    wanted = Wanted(counts, int(child.generate_state(1, np.uint64)[0]), change)
    return blocks.reduce(take_rows, np.concatenate, wanted)


def take_rows(rows, wanted):
    """Return the rows of the sample that are in this block."""
    X, count = rows.X, int(wanted.counts[rows.number])
    if count < len(X):
        rng = np.random.default_rng([wanted.seed, rows.number])
        X = X[np.sort(rng.choice(len(X), count, replace=False))]
    return X if wanted.change is None else wanted.change(X)
