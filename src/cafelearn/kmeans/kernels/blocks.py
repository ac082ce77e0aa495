"""Blocks of rows: size, scratch buffers, transposition, and sorting by label."""

from typing import NamedTuple

import numpy as np

from cafelearn.kmeans.kernels.compiling import EXACT, VECTOR, njit
from cafelearn.kmeans.kernels.vectors import LANES, prefer_wide_vectors, transpose_tile

# A block has BLOCK rows, or LONG_BLOCK rows for float32, because a vector holds twice as many
# float32 numbers. With more than NARROW features all blocks have BLOCK rows: in long blocks the
# features are farther apart in memory, which is slower.
BLOCK, LONG_BLOCK = 128, 256
NARROW = 64
# Blocks are padded to a multiple of this, because the vector loops are unrolled, and the
# remainder of an unrolled loop runs one number at a time.
PAD = 32
# Number of rows transposed together if tiles are not used.
ROWS = 8


@njit(**EXACT)
def block_rows(X):
    """Return the number of rows of a block of X."""
    return LONG_BLOCK if X.itemsize == 4 and X.shape[1] <= NARROW else BLOCK


@njit(**EXACT)
def padded(size):
    """Return the size of a block with its padding."""
    return (size + PAD - 1) // PAD * PAD


class Scratch(NamedTuple):
    """Buffers for the kernels, allocated in Python, because allocations are slow to compile.

    `width` is the length of a block, with a margin (see `_aligned_empty`).
    """

    columns: np.ndarray  # (m, width) a transposed block
    powers: np.ndarray  # (m, width), (1, width) for p <= 2
    distances: np.ndarray  # (2, width) distances to one centre, and scratch
    nearest: np.ndarray  # (width,) distance to the nearest centre
    weights: np.ndarray  # (width,) sample weights of the rows, 0 for padding
    block_labels: np.ndarray  # (width,)
    members: np.ndarray  # (rows of a chunk,) cluster to whose sums a row is added, or -1
    order: np.ndarray  # (rows of a chunk,) this and the next two: see sort_by_label
    begin: np.ndarray  # (k + 2,)
    filled: np.ndarray  # (2, k + 1)
    features: np.ndarray  # (m,) all features
    open: np.ndarray  # (m,) buffer for the features whose centre has not converged


def make_scratch(X, n_clusters, n_rows, p):
    """Allocate the Scratch for chunks of `n_rows` rows like those of X."""
    n_features = X.shape[1]
    rows = _aligned_empty(4, X)
    return Scratch(
        _aligned_empty(n_features, X),
        _aligned_empty(n_features if p > 2 else 1, X),
        rows[:2],
        rows[2],
        rows[3],
        np.empty(rows.shape[1], dtype=np.int32),
        np.empty(n_rows, dtype=np.int32),
        np.empty(n_rows, dtype=np.int64),
        np.empty(n_clusters + 2, dtype=np.int64),
        np.empty((2, n_clusters + 1), dtype=np.int64),
        np.arange(n_features),
        np.empty(n_features, dtype=np.int64),
    )


def _aligned_empty(n_rows, X):
    """Return an array of `n_rows` rows, each one cache line longer than a block of X.

    The array is aligned to cache lines, because loading a vector that straddles two lines takes
    twice as long. The additional line places the features in different cache sets.
    """
    line = 64 // X.itemsize
    long = X.itemsize == 4 and X.shape[1] <= NARROW
    width = (LONG_BLOCK if long else BLOCK) + line
    size = n_rows * width
    memory = np.empty(size + line, dtype=X.dtype)
    skip = (-memory.ctypes.data % 64) // X.itemsize
    return memory[skip : skip + size].reshape((n_rows, width))


@njit(**VECTOR)
def transpose(columns, X, rows, features):
    """Set columns[v, b] = X[rows[b], v] for these features; pad with copies of the first row.

    Other features of `columns` may be overwritten: if at least half of the features are needed,
    all are transposed, which takes no longer.
    """
    prefer_wide_vectors()
    size, n_features = len(rows), X.shape[1]
    if 2 * len(features) >= n_features >= LANES:
        whole = size - size % LANES
        for first in range(0, whole, LANES):
            for v in range(0, n_features - LANES + 1, LANES):
                transpose_tile(columns, X, rows, first, v)
            if n_features % LANES > 0:
                # The last tile overlaps the one before it.
                transpose_tile(columns, X, rows, first, n_features - LANES)
    else:
        whole = size - size % ROWS
        for first in range(0, whole, ROWS):
            # Transpose a few rows at a time, which stay in the cache for all features.
            for j in range(len(features)):
                v = features[j]
                for b in range(first, first + ROWS):
                    columns[v, b] = X[rows[b], v]
    for j in range(len(features)):
        v = features[j]
        for b in range(whole, size):
            columns[v, b] = X[rows[b], v]
        for b in range(size, padded(size)):
            columns[v, b] = columns[v, 0]


@njit(**EXACT)
def sort_by_label(labels, rows, begin, filled):
    """Sort rows by their label (-1 or more), then by their index, with a counting sort.

    Both halves of the rows are counted in one loop, with separate counts, because consecutive
    increments of the same count have to wait for each other.

    OUT rows: the sorted indices; begin (k + 2,): where the rows of each of the k + 1 labels
        begin, and the end; filled is scratch
    """
    size, half, n_clusters = len(labels), len(labels) // 2, len(begin) - 2
    begin[0] = 0
    filled[:] = 0
    for i in range(half):
        filled[0, labels[i] + 1] += 1
        filled[1, labels[half + i] + 1] += 1
    if size > 2 * half:
        filled[1, labels[size - 1] + 1] += 1
    for group in range(n_clusters + 1):
        in_first, in_second = filled[0, group], filled[1, group]
        filled[0, group] = begin[group]
        filled[1, group] = begin[group] + in_first
        begin[group + 1] = begin[group] + in_first + in_second
    for i in range(half):
        group, other = labels[i] + 1, labels[half + i] + 1
        rows[filled[0, group]] = i
        filled[0, group] += 1
        rows[filled[1, other]] = half + i
        filled[1, other] += 1
    if size > 2 * half:
        rows[filled[1, labels[size - 1] + 1]] = size - 1
