"""Merge the sums of blocks in the order of their chunks, on workers and on the client.

A block consists of consecutive chunks. Chunks are merged in the tree described in
`kernels.sums.merge_stack`, and the task of a block returns the sums of the largest nodes inside
the block. Any division into blocks of whole chunks therefore gives bitwise the same result as
one thread.
"""

from typing import NamedTuple

import numpy as np

from cafelearn.kmeans.kernels.sums import merge_stack


def nodes(first, last):
    """Return the largest nodes (begin, size) that make up the chunks first <= i < last."""
    found = []
    while first < last:
        size = first & -first or 1 << (last - first).bit_length()
        while first + size > last:
            size //= 2
        found.append((first, size))
        first += size
    return found


class NodeSums(NamedTuple):
    """The sums of some descents over the chunks first <= i < last."""

    first: int
    last: int
    sums: np.ndarray  # (n_nodes, n_descents, k + 1, N_ROWS, m)


def combine(parts):
    """Combine the NodeSums of consecutive blocks."""
    found = []
    for part in parts:
        places = nodes(part.first, part.last)
        for (begin, size), sums in zip(places, part.sums, strict=True):
            # Merge nodes of equal size if the left one begins at a multiple of twice that size.
            while found and found[-1][1] == size and found[-1][0] % (2 * size) == 0:
                begin, _, left = found.pop()
                sums, size = _total(np.stack([left, sums])), 2 * size
            found.append((begin, size, sums))
    sums = np.array([sums for _, _, sums in found]).reshape(-1, *parts[0].sums.shape[1:])
    return NodeSums(parts[0].first, parts[-1].last, sums)


def totals(part):
    """Return the sums over all chunks for each descent."""
    return _total(part.sums)


def _total(sums):
    """Merge the sums of consecutive nodes, from the last to the first, for each descent."""
    stacks = np.moveaxis(sums, 1, 0).copy()
    for stack in stacks:
        merge_stack.from_python(stack, len(stack), 0, 0)
    return stacks[:, 0]
