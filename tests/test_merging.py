"""What blocks send of their sums, merged in any division."""

from itertools import pairwise

import numpy as np
import pytest

from cafelearn.distributed.merging import NodeSums, combine, nodes, totals
from cafelearn.kmeans.kernels.sums import (
    CHANGED,
    FARTHEST,
    FARTHEST_ROW,
    HIGH,
    LOW,
    MASS,
    MEMBERS,
    empty_stack,
    merge_stack,
    no_sums,
)

K, M, N_CHUNKS = 3, 4, 13


def chunk_sums(seed, busy):
    """Sums of a chunk with members in one cluster, and terms for one of its features."""
    rng, sums = np.random.default_rng(seed), no_sums(K, M)
    if not busy:
        return sums
    l, v = rng.integers(K), rng.integers(M)
    sums[l, :LOW, v] = rng.normal(size=LOW)
    sums[l, HIGH + 1 : MEMBERS, v] = rng.normal(size=MEMBERS - HIGH - 1)
    sums[l, MASS] = rng.uniform(1, 9)
    sums[l, MEMBERS, 0] = rng.integers(2**63, dtype=np.uint64).view(np.float64)
    sums[l, LOW], sums[l, HIGH] = -rng.random(M), rng.random(M)
    sums[K, CHANGED, 0], sums[K, FARTHEST, 0] = rng.integers(5), rng.random()
    sums[K, FARTHEST_ROW] = rng.random(M)
    return sums


def merged(first, last, busy=True):
    stack, depth = empty_stack(N_CHUNKS, K, M), 0
    for chunk in range(first, last):
        stack[depth] = chunk_sums(chunk, busy)
        depth = merge_stack.from_python(stack, depth + 1, chunk + 1, first)
    return stack[:depth]


def block(first, last, busy=True):
    sums = merged(first, last, busy)
    assert len(sums) == len(nodes(first, last))
    return NodeSums(first, last, sums[:, None])


@pytest.mark.parametrize("ends", [[0, 13], [0, 5, 13], [0, 1, 2, 8, 9, 13], range(14)])
def test_any_division_has_the_bits_of_one(ends):
    expected = merged(0, N_CHUNKS)
    merge_stack.from_python(expected, len(expected), 0, 0)
    (found,) = totals(combine([block(*pair) for pair in pairwise(ends)]))
    np.testing.assert_array_equal(found.view(np.uint64), expected[0].view(np.uint64))


def test_several_descents_are_merged_each_on_its_own():
    parts = [block(0, 5), block(5, 8), block(8, 13)]
    silent = [block(*part[:2], busy=False).sums for part in parts]
    pairs = [
        part._replace(sums=np.concatenate([part.sums, none], axis=1))
        for part, none in zip(parts, silent, strict=True)
    ]
    one, other = totals(combine(pairs))
    np.testing.assert_array_equal(one, totals(combine(parts))[0])
    np.testing.assert_array_equal(other, no_sums(K, M))


def test_sums_without_rows():
    (found,) = totals(block(0, 8, busy=False))
    np.testing.assert_array_equal(found, no_sums(K, M))


def test_blocks_without_chunks():
    empty = NodeSums(0, 0, np.empty((0, 1, *no_sums(K, M).shape)))
    (found,) = totals(combine([combine([empty, empty]), block(0, 13)]))
    np.testing.assert_array_equal(found, totals(block(0, 13))[0])
