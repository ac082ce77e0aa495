"""Merge the sums of blocks in the order of their chunks, on workers and on the client.

A block covers the chunks first <= i < last of all chunks. Its sums come as one row of
numbers for each node of the tree of `descent.settle` that lies inside it, so that any
division into blocks of whole chunks gives the same bits as one thread does.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from cafelearn.kernels.power import EXACT
from cafelearn.kernels.sums import FAR_TERMS, N_TERMS, Sums, merge


def nodes(first, last):
    """The nodes (begin, size) of the tree that make up the chunks first <= i < last."""
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
    numbers: np.ndarray  # (n_descents, n_nodes, numbers in one Sums)
    present: np.ndarray  # (n_descents, k) clusters that have a row, of any weight


@njit(**EXACT)
def width(n_clusters, n_features, n_far=0):
    """How many numbers a Sums of this shape holds."""
    return 2 * n_clusters + (2 + N_TERMS + n_far) * n_clusters * n_features + 3 + n_features


@njit(**EXACT)
def sums_in(numbers, n_clusters, n_features):
    """A Sums whose arrays are parts of a row of numbers."""
    k, m = n_clusters, n_features
    size, n_far = k * m, FAR_TERMS if len(numbers) > width(k, m, 0) else 0
    terms = 2 * k + 2 * size
    far = terms + N_TERMS * size
    rest = far + n_far * size
    return Sums(
        numbers[:k],
        numbers[k : 2 * k].view(np.uint64),
        numbers[2 * k : 2 * k + size].reshape(k, m),
        numbers[2 * k + size : terms].reshape(k, m),
        numbers[terms:far].reshape(k, N_TERMS, m),
        numbers[far:rest].reshape(k, n_far, m),
        numbers[rest : rest + 2].view(np.int64),
        numbers[rest + 2 : rest + 3],
        numbers[rest + 3 :],
    )


@njit(**EXACT)
def _add(total, part, n_clusters, n_features):
    """Merge one row of numbers into another."""
    merge(sums_in(total, n_clusters, n_features), sums_in(part, n_clusters, n_features))


def write_sums(numbers, sums):
    """Copy a Sums into a row of numbers."""
    for into, field in zip(sums_in(numbers, *sums.low.shape), sums, strict=True):
        into[...] = field


def combine(parts, n_clusters, n_features):
    """The NodeSums of blocks that follow each other, as those of one block."""
    first, last = parts[0].first, parts[-1].last
    n_descents = len(parts[0].numbers)
    out = np.empty((n_descents, len(nodes(first, last)), parts[0].numbers.shape[2]))
    for descent in range(n_descents):
        stack = []
        for part in parts:
            for (begin, size), numbers in zip(
                nodes(part.first, part.last), part.numbers[descent], strict=True
            ):
                stack.append((begin, size, _writable(numbers)))
                _settle(stack, n_clusters, n_features)
        for into, (_, _, numbers) in zip(out[descent], stack, strict=True):
            into[:] = numbers
    present = np.any([part.present for part in parts], axis=0)
    return NodeSums(first, last, out, present)


def _settle(stack, n_clusters, n_features):
    while len(stack) > 1:
        (begin, size, left), (_, other, right) = stack[-2:]
        if size != other or begin % (2 * size):
            return
        _add(left, right, n_clusters, n_features)
        stack[-2:] = [(begin, 2 * size, left)]


def totals(part, n_clusters, n_features):
    """The sums over all chunks, one Sums for each descent."""
    found = []
    for numbers in part.numbers:
        right = _writable(numbers[-1])
        for left in numbers[-2::-1]:
            left = _writable(left)
            _add(left, right, n_clusters, n_features)
            right = left
        found.append(sums_in(right, n_clusters, n_features))
    return found


def _writable(numbers):
    """The same numbers in memory that may be written to: what comes by wire may not."""
    return numbers if numbers.flags.writeable else numbers.copy()
