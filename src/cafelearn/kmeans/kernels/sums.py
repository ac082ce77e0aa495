"""Mergeable partial sums of one pass over some rows, and the tree they are merged in.

The sums of a chunk are one array of shape (k + 1, N_ROWS, m). Each of the first k parts belongs
to a cluster and has the array rows listed below, with one number per feature. The last part
belongs to all clusters together. A descent uses the data only through these sums, so it is the
same algorithm on one thread, several threads or several machines. Chunks are always merged in
the same tree, so the results are bitwise identical, too.
"""

import numpy as np

from cafelearn.kmeans.kernels.compiling import EXACT, callable_from_python, njit
from cafelearn.kmeans.kernels.vectors import from_bits, maximum, minimum, to_bits

# The first six rows are sums, over the members x of a cluster, of sample_weight times the given
# expression, where z is the current centre and s a scale near 1 / range. For p <= 2,
# GRADIENT_ABOVE and CURVATURE_ABOVE are unused, and GRADIENT_BELOW has the gradient below minus
# the gradient above; for p < 2, CURVATURE_BELOW has the sum of both curvatures.
# NumPy integers, because Numba compiles indexing anew for each Python constant.
GRADIENT_BELOW = np.int64(0)  # (s (z - x))^(p-1) where x < z
GRADIENT_ABOVE = np.int64(1)  # (s (x - z))^(p-1) where x > z
CURVATURE_BELOW = np.int64(2)  # (s (z - x))^(p-2) where x < z; unused for p = 2
CURVATURE_ABOVE = np.int64(3)  # (s (x - z))^(p-2) where x > z
SPREAD = np.int64(4)  # |s (x - z)|^p
MASS = np.int64(5)  # 1: the sum of the sample weights
N_SUMMED = np.int64(6)  # number of rows that are added when sums are merged
LOW = np.int64(6)  # the smallest member
HIGH = np.int64(7)  # the largest member
BELOW = np.int64(8)  # the largest x <= z (this and the next three rows: only for p < 2)
ABOVE = np.int64(9)  # the smallest x > z
AT_BELOW = np.int64(10)  # sample weight of the members at BELOW
AT_ABOVE = np.int64(11)  # sample weight of the members at ABOVE
MEMBERS = np.int64(12)  # its first element has the bits of a hash of the set of members
# If values are missing, the first element is the mass of all members. MASS then has only the
# mass of those with an observed value, until `gaps.stand_for_all` sets it to this mass.
MASS_OF_ALL = np.int64(13)
N_ROWS = np.int64(14)
# Array rows of the last part.
CHANGED = np.int64(0)  # its first element is the number of rows whose label changed
FARTHEST = np.int64(1)  # its first element is the largest distance of a row from its centre
FARTHEST_ROW = np.int64(2)  # the values of that row, one per feature


def empty_sums(n_clusters, n_features, *before):
    """Allocate uninitialised sums, with the dimensions `before` in front."""
    return np.empty((*before, n_clusters + 1, N_ROWS, n_features))


def empty_stack(n_chunks, n_clusters, n_features):
    """Allocate a stack for `merge_stack` that is large enough for `n_chunks` chunks."""
    return empty_sums(n_clusters, n_features, int(n_chunks).bit_length() + 1)


def no_sums(n_clusters, n_features):
    """Return the sums over no rows."""
    sums = empty_sums(n_clusters, n_features)
    clear.from_python(sums)
    return sums


@callable_from_python
@njit(**EXACT)
def clear(sums):
    """Reset to the sums over no rows."""
    n_features = sums.shape[2]
    for l in range(len(sums)):
        for row in range(N_ROWS):
            nothing = 0.0
            if l < len(sums) - 1:
                if row in (LOW, ABOVE):
                    nothing = np.inf
                elif row in (HIGH, BELOW):
                    nothing = -np.inf
            for v in range(n_features):
                sums[l, row, v] = nothing


@njit(**EXACT)
def add_member(sums, l, code):
    """Add the hash of a row, or a sum of hashes, to the hash of the members of cluster l."""
    sums[l, MEMBERS, 0] = from_bits(to_bits(sums[l, MEMBERS, 0]) + code)


@njit(**EXACT)
def merge(total, part):
    """Add `part` to `total`."""
    n_clusters, n_features = len(total) - 1, total.shape[2]
    total[n_clusters, CHANGED, 0] += part[n_clusters, CHANGED, 0]
    if part[n_clusters, FARTHEST, 0] > total[n_clusters, FARTHEST, 0]:
        total[n_clusters, FARTHEST, 0] = part[n_clusters, FARTHEST, 0]
        for v in range(n_features):
            total[n_clusters, FARTHEST_ROW, v] = part[n_clusters, FARTHEST_ROW, v]
    for l in range(n_clusters):
        into, of = total[l], part[l]
        add_member(total, l, to_bits(of[MEMBERS, 0]))
        into[MASS_OF_ALL, 0] += of[MASS_OF_ALL, 0]
        for row in range(N_SUMMED):
            for v in range(n_features):
                into[row, v] += of[row, v]
        for v in range(n_features):
            into[LOW, v] = minimum(into[LOW, v], of[LOW, v])
            into[HIGH, v] = maximum(into[HIGH, v], of[HIGH, v])
            add_neighbour(into, v, BELOW, AT_BELOW, of[BELOW, v], of[AT_BELOW, v])
            add_neighbour(into, v, ABOVE, AT_ABOVE, of[ABOVE, v], of[AT_ABOVE, v])


@njit(**EXACT)
def add_neighbour(terms, v, place, at_place, value, weight):
    """Update the nearest data value on one side of the centre, and its sample weight.

    They are stored in the array rows `place` (BELOW or ABOVE) and `at_place`.
    """
    known = terms[place, v]
    if value == known:
        terms[at_place, v] += weight
    elif (value > known) == (place == BELOW):
        terms[place, v], terms[at_place, v] = value, weight


@callable_from_python
@njit(**EXACT)
def merge_stack(stack, depth, done, first):
    """Merge the top of a stack that holds the chunks first <= i < done; return its new depth.

    Two neighbouring nodes of equal size are merged if the left one begins at a multiple of
    twice that size, as carries propagate in a binary counter. This tree, and therefore the
    rounding, does not depend on how the chunks are divided among workers. With done = 0, after
    the last chunk, everything is merged into stack[0].
    """
    size = 1
    while depth > 1 and (done == 0 or (done % (2 * size) == 0 and done - 2 * size >= first)):
        merge(stack[depth - 2], stack[depth - 1])
        depth -= 1
        size *= 2
    return depth
