"""Large data and p < 2: the values near the anchors, kept between two passes."""

from typing import NamedTuple

import numpy as np

from cafelearn._solver.kernels.brackets import EACH
from cafelearn._solver.kernels.compiling import EXACT, njit

# The collected values of one chunk take no more room than this part of the chunk.
ROOM = 1 / 20


class Lists(NamedTuple):
    """The collected values of each chunk, by cluster and feature."""

    values: np.ndarray  # (n_chunks, room)
    weights: np.ndarray  # the same, or (n_chunks, 0) if all rows weigh 1
    end: np.ndarray  # (n_chunks, k, m), where the values of each pair end
    mass: np.ndarray  # (n_chunks, k)
    complete: np.ndarray  # (n_chunks,) False if there was not enough room


def empty_lists(X, sample_weight, n_clusters, rows_per_chunk, needed):
    """Room for the values near the anchors, or for none."""
    n_rows, n_features = X.shape
    n_chunks = -(-n_rows // rows_per_chunk) if needed else 0
    room = int(ROOM * rows_per_chunk * n_features)
    weighted = needed and bool((sample_weight != 1).any())
    return Lists(
        np.empty((n_chunks, room), dtype=X.dtype),
        np.empty((n_chunks, room if weighted else 0), dtype=X.dtype),
        np.zeros((n_chunks, n_clusters, n_features), dtype=np.int32),
        np.zeros((n_chunks, n_clusters)),
        np.zeros(n_chunks, dtype=np.bool_),
    )


def trimmed(lists):
    """The same lists without the room that is not used."""
    used = int(lists.end[:, -1, -1].max(initial=0))
    return lists._replace(
        values=lists.values[:, :used].copy(), weights=lists.weights[:, :used].copy()
    )


@njit(**EXACT)
def was_kept(lists, chunk):
    """Whether the list of a chunk has all values near the anchors."""
    return len(lists.complete) > 0 and lists.complete[chunk]


@njit(**EXACT)
def keep(lists, chunk, l, used, near, near_weights, counts):
    """Pack the collected values of a cluster; returns how much room is in use."""
    for v in range(len(counts)):
        count = counts[v]
        if used + count > lists.values.shape[1]:
            lists.complete[chunk] = False
            return used
        for i in range(count):
            lists.values[chunk, used + i] = near[v, i]
        if lists.weights.shape[1] > 0:
            for i in range(count):
                lists.weights[chunk, used + i] = near_weights[v, i]
        used += count
        lists.end[chunk, l, v] = used
    return used


@njit(**EXACT)
def _begin_of(ends, l, v):
    """Where the values of a pair begin in the list of a chunk."""
    if v > 0:
        return ends[l, v - 1]
    return ends[l - 1, ends.shape[1] - 1] if l > 0 else ends.dtype.type(0)


@njit(**EXACT)
def copy_values(values, weights, counts, lists, chunk, l, features):
    """Copy the collected values of some features of a cluster, one after the other.

    OUT counts (m,), how many there are of each feature; returns how many there are of all
    """
    ends, weighted, at = lists.end[chunk], lists.weights.shape[1] > 0, 0
    for v in features:
        first, last = _begin_of(ends, l, v), ends[l, v]
        counts[v] = last - first
        for place in range(first, last):
            values[at] = lists.values[chunk, place]
            weights[at] = lists.weights[chunk, place] if weighted else 1
            at += 1
    return at


class Values(NamedTuple):
    """The values near some anchors, one by one."""

    begin: np.ndarray  # (k, m) where those of each pair begin
    end: np.ndarray  # and end, which is the same for pairs that are not wanted
    values: np.ndarray
    weights: np.ndarray


@njit(**EXACT)
def append_values(found, lists, chunk, brackets):
    """Append the collected values of a chunk to those found, where they are wanted."""
    n_clusters, n_features = found.begin.shape
    ends, weighted = lists.end[chunk], lists.weights.shape[1] > 0
    for l in range(n_clusters):
        for v in range(n_features):
            if brackets.open[l, v] != EACH:
                continue
            for place in range(_begin_of(ends, l, v), ends[l, v]):
                into = found.end[l, v]
                found.values[into] = lists.values[chunk, place]
                if weighted:
                    found.weights[into] = lists.weights[chunk, place]
                found.end[l, v] = into + 1
