"""The first pass over the data: lengths of the blocks, weights and extrema."""

from typing import NamedTuple

import numpy as np


class Extents(NamedTuple):
    """Statistics of the rows that the other passes need."""

    lengths: tuple  # rows of each block
    mass: float  # sum of all weights
    heaviest: float  # the largest of them
    low: np.ndarray  # (m,) smallest values of the rows of positive weight
    high: np.ndarray  # (m,) largest values
    row: np.ndarray | None  # the first row of positive weight


def find_extents(rows, request):
    """Extents of one block."""
    X = rows.X[rows.sample_weight > 0] if (rows.sample_weight <= 0).any() else rows.X
    n_features = X.shape[1]
    if len(X) == 0:
        empty = np.full(n_features, np.inf, dtype=X.dtype)
        return Extents((len(rows.X),), 0.0, 0.0, empty, -empty, None)
    return Extents(
        (len(rows.X),),
        float(rows.sample_weight.sum()),
        float(rows.sample_weight.max()),
        X.min(axis=0),
        X.max(axis=0),
        X[0].copy(),
    )


def combine_extents(parts):
    """Extents of several blocks."""
    return Extents(
        tuple(length for part in parts for length in part.lengths),
        sum(part.mass for part in parts),
        max(part.heaviest for part in parts),
        np.min([part.low for part in parts], axis=0),
        np.max([part.high for part in parts], axis=0),
        next((part.row for part in parts if part.row is not None), None),
    )
