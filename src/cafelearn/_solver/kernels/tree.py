"""The tree in which the sums of chunks are merged, the same for any division of the work."""

from cafelearn._solver.kernels.compiling import EXACT, PART, njit
from cafelearn._solver.kernels.sums import Sums, merge, room_for_sums


def empty_stack(n_chunks, n_clusters, n_features, n_far=0):
    """Room for the sums of the chunks of one pass while they are being merged.

    Sums are merged like the numbers of a binary counter: of two neighbours of equal size,
    the left one beginning at a multiple of twice that size. This tree is the same however
    the chunks are divided among workers, and so are the bits of the total.
    """
    depth = int(n_chunks).bit_length() + 1
    return room_for_sums(n_clusters, n_features, n_far, before=(depth,))


@njit(**PART)
def stacked(stack, place):
    """The sums at one place of a stack."""
    return Sums(
        stack.mass[place],
        stack.fingerprint[place],
        stack.low[place],
        stack.high[place],
        stack.terms[place],
        stack.far[place],
        stack.changed[place],
        stack.farthest[place],
        stack.farthest_row[place],
    )


@njit(**EXACT)
def settle(stack, depth, done, first):
    """Merge what can be merged once the chunks first <= i < done are on the stack."""
    size = 1
    while done % (2 * size) == 0 and done - 2 * size >= first:
        merge(stacked(stack, depth - 2), stacked(stack, depth - 1))
        depth -= 1
        size *= 2
    return depth


@njit(**EXACT)
def _merge_all(stack, depth):
    while depth > 1:
        merge(stacked(stack, depth - 2), stacked(stack, depth - 1))
        depth -= 1


@njit(**PART)
def total_of(stack, depth):
    """The sums over all chunks, from what is left on the stack after the last one."""
    _merge_all(stack, depth)
    return stacked(stack, 0)
