"""Blocks of rows: which rows make one, room for them, and how they are transposed."""

import numpy as np

from cafelearn._solver.kernels.compiling import EXACT, MAKES, VECTOR, njit
from cafelearn._solver.kernels.vectors import LANES, prefer_wide_vectors, transpose_tile

# Rows of a block. Vectors hold twice as many numbers of half the size, and so do blocks of few
# features; the features of longer blocks are farther apart, which is slower if they are many.
BLOCK, LONG_BLOCK = 128, 256
NARROW = 64
# Blocks are padded to a multiple of this: the vector loops are unrolled, and what is left
# over from an unrolled loop runs one number at a time.
PAD = 32
# Rows of some features transposed at a time.
ROWS = 8


@njit(**EXACT)
def block_rows(X):
    """Rows of a block of these data."""
    return LONG_BLOCK if X.itemsize == 4 and X.shape[1] <= NARROW else BLOCK


@njit(**EXACT)
def padded(size):
    return (size + PAD - 1) // PAD * PAD


@njit(**MAKES)
def buffer(n_rows, X):
    """A scratch array of n_rows rows, each for a block of these data."""
    return room(n_rows, block_rows(X), X)


@njit(**MAKES)
def room(n_rows, block, like):
    """A scratch array of n_rows rows, each for a block and one cache line longer.

    It begins at a cache line: a vector that straddles two lines costs two accesses and
    halves the speed. The longer rows keep the features out of each other's cache sets.
    """
    line = 64 // like.itemsize
    width = block + line
    size = n_rows * width
    memory = np.empty(size + line, dtype=like.dtype)
    skip = (-memory.ctypes.data % 64) // like.itemsize
    return memory[skip : skip + size].reshape((n_rows, width))


@njit(**EXACT)
def transpose(columns, X, rows, size, features):
    """columns[v, b] = X[rows[b], v] for these features, padded with copies of the first row.

    The other features of `columns` may be overwritten: half of them cost as much as all.
    """
    if 2 * len(features) >= X.shape[1] >= LANES:
        transpose_all(columns, X, rows, size, None)
        return
    whole = size - size % ROWS
    for first in range(0, whole, ROWS):
        # A few rows at a time: they stay in the cache, and each feature's are written at once.
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


@njit(**VECTOR)
def transpose_all(columns, X, rows, size, origin):
    """The same for all features, less those of an origin if there is one, and rounded."""
    prefer_wide_vectors()
    n_features = X.shape[1]
    whole = size - size % LANES if n_features >= LANES else 0
    for first in range(0, whole, LANES):
        for v in range(0, n_features - LANES + 1, LANES):
            transpose_tile(columns, X, rows, origin, first, v)
        if n_features % LANES > 0:
            # Some of these features come twice.
            transpose_tile(columns, X, rows, origin, first, n_features - LANES)
    for v in range(n_features):
        for b in range(whole, size):
            if origin is None:
                columns[v, b] = X[rows[b], v]
            else:
                columns[v, b] = X[rows[b], v] - origin[v]
        for b in range(size, padded(size)):
            columns[v, b] = columns[v, 0]


@njit(**MAKES)
def sort_by_label(labels, start, n_clusters):
    """Counting sort of rows by their label, from -1 on, in the order of their index.

    Returns the indices (the first is `start`) and where each of the k + 1 groups begins.
    The halves of the rows are counted side by side: equal labels in a row make one wait for
    the count of the one before.
    """
    size, half = len(labels), len(labels) // 2
    begin = np.zeros(n_clusters + 2, dtype=np.int64)
    filled = np.zeros((2, n_clusters + 1), dtype=np.int64)
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
    rows = np.empty(size, dtype=np.int64)
    for i in range(half):
        group, other = labels[i] + 1, labels[half + i] + 1
        rows[filled[0, group]] = start + i
        filled[0, group] += 1
        rows[filled[1, other]] = start + half + i
        filled[1, other] += 1
    if size > 2 * half:
        rows[filled[1, labels[size - 1] + 1]] = start + size - 1
    return rows, begin


@njit(**MAKES)
def sort_members(labels, sample_weight, start, stop, n_clusters):
    """sort_by_label of the rows start <= i < stop, those without weight as if unlabelled."""
    members = np.empty(stop - start, dtype=np.int32)
    for i in range(start, stop):
        members[i - start] = labels[i] if sample_weight[i] > 0 else -1
    return sort_by_label(members, start, n_clusters)
