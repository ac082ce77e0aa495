"""A sample of the rows, for what can only be fitted to rows in memory."""

from typing import NamedTuple

import numpy as np

# Enough for any extractor, little enough for any client.
LARGEST_SAMPLE = 100_000


class Wanted(NamedTuple):
    """How many rows of each block, and what is to be done with them."""

    counts: np.ndarray
    seed: int
    change: object  # rows -> rows, or None


def sample(blocks, seed, change=None, at_most=None):
    """At most `at_most` rows (None: LARGEST_SAMPLE), drawn without replacement, in order.

    `change` is applied to the rows of each block where they are. Where there are no more
    rows than that, the sample is all of them.
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
    """The rows of the sample that are in this block."""
    X, count = rows.X, int(wanted.counts[rows.number])
    if count < len(X):
        rng = np.random.default_rng([wanted.seed, rows.number])
        X = X[np.sort(rng.choice(len(X), count, replace=False))]
    return X if wanted.change is None else wanted.change(X)
