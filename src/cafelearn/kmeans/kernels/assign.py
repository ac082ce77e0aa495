"""One chunk of rows: distances to every centre (Eq. 2), labels, and mergeable sums.

Rows are transposed block by block, so that the innermost loops run over rows and vectorise for
any number of features. No array of size n x k or n x m is allocated here.
"""

import numpy as np

from cafelearn.kmeans.kernels.blocks import block_rows, padded, sort_by_label, transpose
from cafelearn.kmeans.kernels.cells import CENTER, OPEN, SCALED_WEIGHT
from cafelearn.kmeans.kernels.compiling import ENTRY, EXACT, SUMS, callable_from_python, njit
from cafelearn.kmeans.kernels.gradients import (
    FARTHEST_NUMBER,
    FARTHEST_SINGLE,
    add_extrema,
    add_gradients,
)
from cafelearn.kmeans.kernels.power import (
    BRANCH,
    CUBE,
    SQUARE,
    add_powers,
    add_products,
    add_relative_powers,
    find_peaks,
)
from cafelearn.kmeans.kernels.sums import CHANGED, FARTHEST, FARTHEST_ROW, MASS, add_member
from cafelearn.kmeans.kernels.vectors import larger, minimum, prefer_wide_vectors

# Not a literal, because Numba compiles a function again for every literal argument.
ZERO = np.int64(0)
# Number of features to sum before testing again whether a centre is too far from a whole block.
STEP = 16


@njit(**EXACT)
def _add_distances(out, columns, features, center, weight, size, plan):
    """Add |weight (x - center)|^p of these features to out[0, b]; for `plan` see `power`."""
    if plan[BRANCH] == SQUARE or plan[BRANCH] == CUBE:
        add_products(out, columns, features, center, weight, size, plan[BRANCH] == CUBE)
    else:
        add_powers(out, ZERO, columns, features, center, weight, size, plan)


@njit(**EXACT)
def _measure(out, columns, features, center, weight, size, geometry):
    """Compute the distances of a block to one centre (Eq. 2, or its root if geometry.rooted).

    OUT out[0]; out[1] is scratch
    """
    for b in range(size):
        out[0, b] = 0
    if not geometry.rooted:
        _add_distances(out, columns, features, center, weight, size, geometry.distances)
        return
    peaks = out[1]
    find_peaks(peaks, columns, center, weight, size)
    for b in range(size):
        peaks[b] = 1 / peaks[b] if peaks[b] > 0 else 1
    add_relative_powers(out, columns, center, weight, peaks, size, geometry.distances)
    for b in range(size):
        out[0, b] = out[0, b] ** (1 / geometry.p) / peaks[b]


@njit(**ENTRY)
def distance_chunk(out, X, centers, weights, geometry, scratch):
    """Compute the distances of rows to each centre (Eq. 2, or its root if geometry.rooted).

    OUT out (n, k)
    """
    columns, distances, features = scratch.columns, scratch.distances, scratch.features
    for first in range(0, len(X), block_rows(X)):
        rows = scratch.order[: minimum(block_rows(X), len(X) - first)]
        for b in range(len(rows)):
            rows[b] = first + b
        transpose(columns, X, rows, features)
        size = padded(len(rows))
        for l in range(len(centers)):
            _measure(distances, columns, features, centers[l], weights[l], size, geometry)
            for b in range(len(rows)):
                out[first + b, l] = distances[0, b]


@njit(**SUMS)
def _all_beyond(distances, nearest, size):
    """Check whether every row is farther from a centre than from its nearest centre so far."""
    prefer_wide_vectors()
    closest = nearest[0] - distances[0]
    for b in range(size):
        closest = larger(closest, nearest[b] - distances[b])
    return closest < 0


@njit(**SUMS)
def _take_nearer(labels, nearest, distances, l, size):
    """Assign to centre l all rows that are nearer to it than to their nearest centre so far.

    Ties go to the centre with the lower index.
    """
    prefer_wide_vectors()
    for b in range(size):
        tie = (distances[b] == nearest[b]) & (l < labels[b])
        closer = (distances[b] < nearest[b]) | tie
        labels[b] = l if closer else labels[b]
        nearest[b] = distances[b] if closer else nearest[b]


@njit(**EXACT)
def _assign_block(guess, cells, size, geometry, scratch):
    """Find the nearest centre of each row of a transposed block.

    `guess` is the old label of all rows, or -1 if they had none. Its centre comes first.
    Distances are sums of terms >= 0, so another centre is ruled out once its partial sums
    exceed, for every row, the distance from the nearest centre so far. This does not change
    the labels. Distances can be infinite only for rows of weight 0. `nearest` is kept finite,
    because the difference of two infinities is NaN.

    OUT scratch.block_labels, scratch.nearest
    """
    columns, distances, features = scratch.columns, scratch.distances, scratch.features
    labels, nearest, plan = scratch.block_labels, scratch.nearest, geometry.distances
    for b in range(size):
        labels[b] = 0
        nearest[b] = FARTHEST_NUMBER if columns.itemsize == 8 else FARTHEST_SINGLE
    for turn in range(-1, len(cells)):
        l = guess if turn < 0 else turn
        if l < 0 or turn == guess:
            continue
        center, weight = cells[l, CENTER], cells[l, SCALED_WEIGHT]
        if turn < 0 or guess < 0 or geometry.rooted:
            _measure(distances, columns, features, center, weight, size, geometry)
            _take_nearer(labels, nearest, distances[0], l, size)
            continue
        for b in range(size):
            distances[0, b] = 0
        beyond = False
        for first in range(0, len(features), STEP):
            some = features[first : first + STEP]
            _add_distances(distances, columns, some, center, weight, size, plan)
            if _all_beyond(distances[0], nearest, size):
                beyond = True
                break
        if not beyond:
            _take_nearer(labels, nearest, distances[0], l, size)


@callable_from_python
@njit(**EXACT)
def hash_of(number):
    """Hash a 64-bit number (the finaliser of SplitMix64)."""
    mixed = number + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@njit(**EXACT)
def assign_chunk(sums, labels, X, sample_weight, first_row, cells, geometry, scratch):
    """Assign the rows of a chunk, and sum them about the old centres.

    Rows are grouped by their old label. Rows that keep it are summed here, from the transposed
    block; rows that move are left to `add_members`.

    IN  first_row: the index of the first row in the data
    OUT sums; labels; scratch.members: the new labels of the rows that move, -1 for the others
    """
    n_clusters, n_features = len(cells), cells.shape[2]
    features, columns, movers = scratch.features, scratch.columns, scratch.members
    order, begin, row_weights = scratch.order, scratch.begin, scratch.weights
    block_labels, nearest = scratch.block_labels, scratch.nearest
    common = sums[n_clusters]
    farthest, way = np.int64(-1), 0.0
    sort_by_label(labels, order, begin, scratch.filled)
    for old in range(-1, n_clusters):
        for first in range(begin[old + 1], begin[old + 2], block_rows(X)):
            rows = order[first : minimum(first + block_rows(X), begin[old + 2])]
            size, stayer = padded(len(rows)), np.int64(-1)
            transpose(columns, X, rows, features)
            _assign_block(old, cells, size, geometry, scratch)
            # Sum in local variables, because adding to memory is slow.
            mass, members = sums[old, MASS, 0] if old >= 0 else 0.0, np.uint64(0)
            for b in range(size):
                row_weights[b] = 0
            for b in range(len(rows)):
                i, label = rows[b], block_labels[b]
                labels[i], movers[i] = label, -1
                if sample_weight[i] == 0:
                    continue
                # Find the row farthest from its centre; ties go to the first row.
                if nearest[b] > way or (nearest[b] == way and i < farthest):
                    way, farthest = np.float64(nearest[b]), i
                code = hash_of(np.uint64(first_row + i))
                if label == old:
                    stayer = b
                    row_weights[b] = sample_weight[i]
                    mass += sample_weight[i]
                    members += code
                else:
                    common[CHANGED, 0] += 1
                    add_member(sums, label, code)
                    movers[i] = label
            if stayer >= 0:
                sums[old, MASS, 0] = mass
                add_member(sums, old, members)
                _copy_over_others(columns, row_weights, stayer, size)
                add_extrema(sums[old], features, columns, size)
                add_gradients(sums[old], features, cells[old], size, geometry, scratch)
    common[FARTHEST, 0] = way
    if farthest >= 0:
        for v in range(n_features):
            common[FARTHEST_ROW, v] = X[farthest, v]


@njit(**EXACT)
def _copy_over_others(columns, row_weights, kept, size):
    """Overwrite rows of weight 0 with the row `kept`, because `add_extrema` ignores weights."""
    for b in range(size):
        if row_weights[b] == 0:
            for v in range(columns.shape[0]):
                columns[v, b] = columns[v, kept]


@njit(**EXACT)
def add_members(sums, X, sample_weight, cells, geometry, everything, scratch):
    """Add each row of a chunk to the sums of the cluster in scratch.members (none if -1).

    If `everything`, sum all features and update the members' extrema; else sum only the
    features whose centre has not converged.
    """
    order, begin, row_weights = scratch.order, scratch.begin, scratch.weights
    sort_by_label(scratch.members[: len(X)], order, begin, scratch.filled)
    for l in range(len(cells)):
        features = scratch.features
        if not everything:
            count = 0
            for v in range(cells.shape[2]):
                scratch.open[count] = v
                count += cells[l, OPEN, v] > 0
            features = scratch.open[:count]
        if len(features) == 0:
            continue
        for first in range(begin[l + 1], begin[l + 2], block_rows(X)):
            rows = order[first : minimum(first + block_rows(X), begin[l + 2])]
            size, mass = padded(len(rows)), sums[l, MASS, 0]
            for b in range(size):
                row_weights[b] = 0
            for b in range(len(rows)):
                row_weights[b] = sample_weight[rows[b]]
                mass += sample_weight[rows[b]]
            sums[l, MASS, 0] = mass
            transpose(scratch.columns, X, rows, features)
            if everything:
                add_extrema(sums[l], features, scratch.columns, size)
            add_gradients(sums[l], features, cells[l], size, geometry, scratch)


@njit(**EXACT)
def fill_mass(sums):
    """Copy the mass of each cluster to all of its features."""
    for l in range(len(sums) - 1):
        for v in range(1, sums.shape[2]):
            sums[l, MASS, v] = sums[l, MASS, 0]
