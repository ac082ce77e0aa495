"""What blocks send of their sums: packed, merged in any division, unpacked."""

from itertools import pairwise

import numpy as np
import pytest

from cafelearn._dask.merging import (
    NodeSums,
    combine,
    join_values,
    near_values,
    nodes,
    pack_stack,
    totals,
)
from cafelearn._solver.kernels.lists import Values
from cafelearn._solver.kernels.sums import FAR_TERMS, clear
from cafelearn._solver.kernels.tree import empty_stack, settle, stacked, total_of

K, M, N_CHUNKS = 3, 4, 13


def chunk_sums(sums, seed, busy):
    """Sums of a chunk in which only some clusters and features have something to say."""
    rng = np.random.default_rng(seed)
    clear(sums)
    if not busy:
        return
    l, v = rng.integers(K), rng.integers(M)
    sums.mass[l] = rng.uniform(1, 9)
    sums.fingerprint[l] = rng.integers(2**63)
    sums.low[l], sums.high[l] = -rng.random(M), rng.random(M)
    sums.terms[l, :, v] = rng.normal(size=9)
    sums.far[l, :, v] = rng.normal(size=sums.far.shape[1])
    sums.changed[0] = rng.integers(5)
    sums.farthest[0] = rng.random()
    sums.farthest_row[:] = rng.random(M)


def block(first, last, n_far, busy=True):
    stack, depth = empty_stack(N_CHUNKS, K, M, n_far), 0
    for chunk in range(first, last):
        chunk_sums(stacked(stack, depth), chunk, busy)
        depth = settle(stack, depth + 1, chunk + 1, first)
    packed = pack_stack(stack, len(nodes(first, last)))
    return NodeSums(first, last, [packed], np.ones((1, K), dtype=bool), [[]])


@pytest.mark.parametrize("n_far", [0, FAR_TERMS])
@pytest.mark.parametrize("ends", [[0, 13], [0, 5, 13], [0, 1, 2, 8, 9, 13], range(14)])
def test_any_division_has_the_bits_of_one(ends, n_far):
    stack, depth = empty_stack(N_CHUNKS, K, M, n_far), 0
    for chunk in range(N_CHUNKS):
        chunk_sums(stacked(stack, depth), chunk, True)
        depth = settle(stack, depth + 1, chunk + 1, 0)
    expected = total_of(stack, depth)
    blocks = [block(*pair, n_far) for pair in pairwise(ends)]
    (found,) = totals(combine(blocks, K, M), K, M)
    for name in expected._fields:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)


def test_sums_without_rows_are_not_sent():
    silent, busy = block(0, 8, FAR_TERMS, busy=False), block(0, 8, FAR_TERMS)
    assert silent.numbers[0].numbers.size == 0
    assert 0 < busy.numbers[0].numbers.size < busy.numbers[0].width
    (found,) = totals(silent, K, M)
    assert (found.low == np.inf).all()
    assert found.mass.sum() == 0


@pytest.mark.parametrize("weighted", [False, True])
def test_values_of_blocks_are_joined_in_their_order(weighted):
    rng = np.random.default_rng(0)
    wanted = np.array([[True, False, True, True], [False] * 4, [True] * 4])
    pairs, sent, expected = np.argwhere(wanted), [], {}
    for _ in range(5):
        begin = np.zeros((K, M), dtype=np.int64)
        # Room for more values than there are, as blocks do not know how many they have.
        begin[wanted] = 6 * np.arange(len(pairs))
        end = begin.copy()
        end[wanted] += rng.integers(0, 6, len(pairs))
        values = rng.normal(size=6 * len(pairs))
        weights = rng.uniform(1, 2, len(values)) if weighted else np.ones(len(values))
        sent.append(near_values(Values(begin, end, values, weights), wanted))
        for l, v in pairs:
            place = slice(begin[l, v], end[l, v])
            expected.setdefault((l, v), []).append((values[place], weights[place]))
    assert all(len(one.weights) == (len(one.values) if weighted else 0) for one in sent)
    found = join_values(sent, wanted, np.float64)
    for (l, v), parts in expected.items():
        place = slice(found.begin[l, v], found.end[l, v])
        values, weights = zip(*parts, strict=True)
        np.testing.assert_array_equal(found.values[place], np.concatenate(values))
        np.testing.assert_array_equal(found.weights[place], np.concatenate(weights))
    assert (found.begin == found.end)[~wanted].all()
