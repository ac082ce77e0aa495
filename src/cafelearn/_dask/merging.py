"""Merge the sums of blocks in the order of their chunks, on workers and on the client.

A block covers the chunks first <= i < last of all chunks. Its sums come as one row of
numbers for each node of the tree of `descent.settle` that lies inside it, so that any
division into blocks of whole chunks gives the same bits as one thread does. Numbers that are
as if there were no rows, such as the sums of centres that have been found, are not sent.
"""

from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from cafelearn._solver.kernels.compiling import EXACT, MAKES, njit
from cafelearn._solver.kernels.lists import Values
from cafelearn._solver.kernels.sums import FAR_TERMS, N_TERMS, Sums, clear, merge
from cafelearn._solver.kernels.tree import empty_stack, stacked


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


class Packed(NamedTuple):
    """Rows of numbers without those that are the same as over no rows."""

    width: int  # of a row
    kept: np.ndarray  # one bit for each number of a row
    numbers: np.ndarray  # (n_nodes, numbers kept)


class NearValues(NamedTuple):
    """The values of a block that centres want one by one."""

    counts: np.ndarray  # for each centre that does
    values: np.ndarray
    weights: np.ndarray  # or none, if all are 1


class NodeSums(NamedTuple):
    """The sums of some descents over the chunks first <= i < last."""

    first: int
    last: int
    numbers: list  # Packed, for each descent; a row for each node
    present: np.ndarray  # (n_descents, k) clusters that have a row, of any weight
    near: list  # for each descent a list of NearValues, one for each block


@njit(**EXACT)
def width(n_clusters, n_features, n_far=0):
    """How many numbers a Sums of this shape holds."""
    return 2 * n_clusters + (2 + N_TERMS + n_far) * n_clusters * n_features + 3 + n_features


@njit(**MAKES)
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


@njit(**MAKES)
def _add(total, part, n_clusters, n_features):
    """Merge one row of numbers into another."""
    merge(sums_in(total, n_clusters, n_features), sums_in(part, n_clusters, n_features))


@njit(**MAKES)
def _write(rows, stack):
    """Copy the Sums that are lowest on a stack into rows of numbers."""
    n_clusters, n_features = stack.low.shape[1:]
    for place in range(len(rows)):
        into, sums = sums_in(rows[place], n_clusters, n_features), stacked(stack, place)
        into.mass[:] = sums.mass
        into.fingerprint[:] = sums.fingerprint
        into.low[:] = sums.low
        into.high[:] = sums.high
        into.terms[:] = sums.terms
        into.far[:] = sums.far
        into.changed[:] = sums.changed
        into.farthest[:] = sums.farthest
        into.farthest_row[:] = sums.farthest_row


@lru_cache(maxsize=16)
def _nothing(n_numbers, n_clusters, n_features):
    """The numbers of a Sums over no rows."""
    n_far = FAR_TERMS if n_numbers > width(n_clusters, n_features) else 0
    stack = empty_stack(1, n_clusters, n_features, n_far)
    clear(stacked(stack, 0))
    rows = np.empty((1, n_numbers))
    _write(rows, stack)
    return rows[0]


def pack_stack(stack, n_nodes):
    """The sums of so many nodes, which are lowest on a stack, packed."""
    n_clusters, n_far, n_features = stack.far.shape[1:]
    rows = np.empty((n_nodes, width(n_clusters, n_features, n_far)))
    _write(rows, stack)
    return _pack(rows, n_clusters, n_features)


def _pack(rows, n_clusters, n_features):
    n_numbers = rows.shape[1]
    kept = (rows != _nothing(n_numbers, n_clusters, n_features)).any(axis=0)
    return Packed(n_numbers, np.packbits(kept), rows[:, kept])


def _unpack(packed, n_clusters, n_features):
    """The rows of numbers that were packed."""
    rows = np.empty((len(packed.numbers), packed.width))
    _fill(rows, packed.kept, packed.numbers, _nothing(packed.width, n_clusters, n_features))
    return rows


@njit(**MAKES)
def _fill(rows, kept, numbers, nothing):
    at = 0
    for j in range(rows.shape[1]):
        if (kept[j // 8] >> (7 - j % 8)) & 1:
            rows[:, j] = numbers[:, at]
            at += 1
        else:
            rows[:, j] = nothing[j]


def combine(parts, n_clusters, n_features):
    """The NodeSums of blocks that follow each other, as those of one block."""
    found = []
    for descent in range(len(parts[0].numbers)):
        stack = []
        for part in parts:
            rows = _unpack(part.numbers[descent], n_clusters, n_features)
            for (begin, size), numbers in zip(nodes(part.first, part.last), rows, strict=True):
                stack.append((begin, size, numbers))
                _settle(stack, n_clusters, n_features)
        found.append(_pack(np.stack([row for _, _, row in stack]), n_clusters, n_features))
    present = np.any([part.present for part in parts], axis=0)
    near = [list(chain(*blocks)) for blocks in zip(*(part.near for part in parts), strict=True)]
    return NodeSums(parts[0].first, parts[-1].last, found, present, near)


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
    for packed in part.numbers:
        *others, total = _unpack(packed, n_clusters, n_features)
        for left in reversed(others):
            _add(left, total, n_clusters, n_features)
            total = left
        found.append(sums_in(total, n_clusters, n_features))
    return found


def _places(begin, counts):
    """The places begin <= i < begin + count of each pair, one pair after the other."""
    return np.arange(counts.sum()) + np.repeat(begin - (np.cumsum(counts) - counts), counts)


def near_values(found, wanted):
    """The Values that a block has for the centres that want them, to be sent."""
    begin, end = found.begin[wanted], found.end[wanted]
    counts = end - begin
    places = _places(begin, counts)
    weights = found.weights[places]
    if (weights == 1).all():
        weights = weights[:0]
    return NearValues(counts, found.values[places], weights)


def join_values(blocks, wanted, dtype):
    """The Values of all blocks, those of each centre in the order of the blocks."""
    total = sum((block.counts for block in blocks), np.zeros(wanted.sum(), dtype=np.int64))
    begin, end = np.zeros((2, *wanted.shape), dtype=np.int64)
    end[wanted] = np.cumsum(total)
    begin[wanted] = end[wanted] - total
    values = np.empty(total.sum(), dtype=dtype)
    weights = np.ones_like(values)
    filled = begin[wanted]
    for block in blocks:
        places = _places(filled, block.counts)
        values[places] = block.values
        if len(block.weights):
            weights[places] = block.weights
        filled += block.counts
    return Values(begin, end, values, weights)
