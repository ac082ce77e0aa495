"""The first pass over the data: lengths of the blocks, weights and extrema."""

from typing import NamedTuple

import numpy as np

from cafelearn.data.gaps import has_gaps, refuse_empty_rows
from cafelearn.data.source import check_rows
from cafelearn.data.validation import check_enough_rows, check_span, refuse_empty_columns


class Extents(NamedTuple):
    """Statistics of the rows that the other passes need."""

    lengths: tuple  # number of rows of each block
    mass: float  # sum of all weights; may overflow before they are normalised
    heaviest: float  # the largest weight
    low: np.ndarray  # (m,) smallest values of the rows of positive weight
    high: np.ndarray  # (m,) largest values of these rows
    row: np.ndarray | None  # first row of positive weight; `measure` fills its missing values
    observed: np.ndarray  # (m,) whether any row has a value
    empty: np.ndarray  # indices of the rows without any value
    gaps: bool  # whether any value is missing


def find_extents(part, request):
    """Compute the Extents of one block after each change.

    `request` is (changes, owner, names).
    """
    changes, owner, names = request
    found = []
    for change in changes:
        X = part.X if change is None else change(part.X)
        if change is not None:
            check_rows(X, part.X.shape[1], owner, names)
        found.append(_extents_of(X, part.sample_weight))
    return found


def _extents_of(X, weight):
    counted = weight > 0
    used = X if counted.all() else X[counted]
    low, high = used.min(axis=0, initial=np.inf), used.max(axis=0, initial=-np.inf)
    observed, empty, gaps = np.full(X.shape[1], len(X) > 0), np.arange(0), has_gaps(X)
    if gaps:
        low = np.fmin.reduce(used, axis=0, initial=np.inf)
        high = np.fmax.reduce(used, axis=0, initial=-np.inf)
        missing = np.isnan(X)
        observed, empty = ~missing.all(axis=0), np.flatnonzero(missing.all(axis=1))
    with np.errstate(over="ignore"):
        mass = float(weight.sum())
    return Extents(
        (len(X),),
        mass,
        float(weight.max(initial=0.0)),
        low,
        high,
        used[0].copy() if len(used) else None,
        observed,
        empty,
        gaps,
    )


def combine_extents(parts):
    """Combine the Extents of several blocks, for each change."""
    return [_combine(found) for found in zip(*parts, strict=True)]


def _combine(parts):
    first = np.cumsum([0, *(sum(part.lengths) for part in parts[:-1])])
    return Extents(
        tuple(length for part in parts for length in part.lengths),
        sum(part.mass for part in parts),
        max(part.heaviest for part in parts),
        np.min([part.low for part in parts], axis=0),
        np.max([part.high for part in parts], axis=0),
        next((part.row for part in parts if part.row is not None), None),
        np.any([part.observed for part in parts], axis=0),
        np.concatenate([part.empty + n for part, n in zip(parts, first, strict=True)]),
        any(part.gaps for part in parts),
    )


def measure(estimator, blocks):
    """Check every row, compute the Extents of all blocks and set the lengths of the blocks."""
    owner = type(estimator).__name__
    request = [None], owner, blocks.names
    (found,) = blocks.reduce(find_extents, combine_extents, request, check=True)
    blocks.set_lengths(found.lengths)
    if len(blocks) == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape={blocks.shape}) while a minimum of 1 is "
            f"required by {owner}."
        )
    if found.row is None:
        raise ValueError(
            f"{owner} needs at least one positive sample weight, but all are zero."
        )
    refuse_empty_rows(found.empty, owner)
    refuse_empty_columns(~found.observed, estimator)
    if hasattr(estimator, "n_clusters"):
        check_enough_rows(estimator, blocks)
    found = _without_gaps(found)
    check_span(found.low, found.high, estimator)
    return found


def measure_scaled(estimator, blocks, changes):
    """Compute the Extents of all blocks after each change, in one pass."""
    request = changes, type(estimator).__name__, blocks.names
    found = [
        _without_gaps(each) for each in blocks.reduce(find_extents, combine_extents, request)
    ]
    for each in found:
        check_span(each.low, each.high, estimator)
    return found


def _without_gaps(found):
    # A column with values only in rows of weight 0 counts as constant.
    low, high = (np.where(np.isinf(ends), 0, ends) for ends in (found.low, found.high))
    row = np.where(np.isnan(found.row), low, found.row)
    return found._replace(low=low, high=high, row=row)
