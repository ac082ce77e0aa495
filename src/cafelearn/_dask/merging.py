"""Merge the sums of blocks in the order of their chunks, on workers and on the client.

A block covers the chunks first <= i < last of all chunks. Its task returns the sums of the
largest nodes of the tree of `sums.merge_stack` inside the block, so that any division into
blocks of whole chunks gives the same bits as one thread. Entries equal to those of an empty
sum, such as those of centres already found, are not sent.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from cafelearn._solver.kernels.sums import merge_stack, no_sums


def nodes(first, last):
    """Return the nodes (begin, size) of the tree that make up the chunks first <= i < last."""
    found = []
    while first < last:
        size = first & -first or 1 << (last - first).bit_length()
        while first + size > last:
            size //= 2
        found.append((first, size))
        first += size
    return found


class Packed(NamedTuple):
    """Sums of some nodes without the entries equal to those of an empty sum."""

    shape: tuple  # of the sums of one node
    kept: np.ndarray  # one bit for each number: whether it is kept
    numbers: np.ndarray  # (n_nodes, numbers kept)


class NodeSums(NamedTuple):
    """The sums of some descents over the chunks first <= i < last."""

    first: int
    last: int
    packed: list  # Packed, for each descent


@lru_cache(maxsize=16)
def _nothing(n_clusters, n_features):
    """Return the bits of the sums of no rows."""
    return no_sums(n_clusters, n_features).ravel().view(np.uint64)


def pack(sums):
    """Pack the sums of some nodes, an array of shape (n_nodes, k + 1, N_ROWS, m)."""
    shape = sums.shape[1:]
    numbers = sums.reshape(len(sums), -1).view(np.uint64)
    kept = (numbers != _nothing(shape[0] - 1, shape[2])).any(axis=0)
    return Packed(shape, np.packbits(kept), numbers[:, kept])


def unpack(packed):
    """Return the sums that were packed."""
    nothing = _nothing(packed.shape[0] - 1, packed.shape[2])
    numbers = np.tile(nothing, (len(packed.numbers), 1))
    numbers[:, np.unpackbits(packed.kept, count=len(nothing)).astype(bool)] = packed.numbers
    return numbers.view(np.float64).reshape(-1, *packed.shape)


def combine(parts):
    """Combine the NodeSums of consecutive blocks."""
    found = [
        pack(_merged(parts, [unpack(part.packed[descent]) for part in parts]))
        for descent in range(len(parts[0].packed))
    ]
    return NodeSums(parts[0].first, parts[-1].last, found)


def _merged(parts, sums):
    """Merge the sums of the nodes of consecutive parts into those of the nodes of all."""
    stack = np.concatenate(sums)
    sizes, depth = [], 0
    places = [node for part in parts for node in nodes(part.first, part.last)]
    for place, (begin, size) in enumerate(places):
        stack[depth] = stack[place]
        sizes.append((begin, size))
        depth += 1
        while depth > 1 and sizes[-2][1] == size and sizes[-2][0] % (2 * size) == 0:
            merge_stack.from_python(stack[depth - 2 : depth], 2, 0, 0)
            sizes[-2:] = [(sizes[-2][0], 2 * size)]
            size, depth = 2 * size, depth - 1
    return stack[:depth]


def totals(part):
    """Return the sums over all chunks: for each descent, the first entry of an array."""
    found = []
    for packed in part.packed:
        sums = unpack(packed)
        merge_stack.from_python(sums, len(sums), 0, 0)
        found.append(sums)
    return found
