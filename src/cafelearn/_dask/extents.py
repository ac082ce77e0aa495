"""The first pass over the data: is it sound, how much is there, where does it lie."""

from typing import NamedTuple

import numpy as np


class Extents(NamedTuple):
    """What must be known of the rows before anything else."""

    lengths: tuple  # rows of each block
    mass: float  # sum of all weights, which may overflow before they are normalised
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
    with np.errstate(over="ignore"):
        mass = float(rows.sample_weight.sum())
    return Extents(
        (len(rows.X),),
        mass,
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
