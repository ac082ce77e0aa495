"""Large data: which centre a row is nearest to, in single precision as far as that can tell.

Twice as many numbers fit into a vector, and their powers need shorter polynomials. Rows are
seen from a place near them, so that little is lost when they are rounded; what is lost is
bounded, and rows for which it could matter are left to others. Where powers are dear, most
centres are put out of question without any: t^p is convex, so for any base it is at least its
tangent there, and the sum of the tangents is a bound of the distance. Columns that have only
two values need no powers at all (kernels.chords).
"""

from typing import NamedTuple

import numpy as np

from cafelearn._solver.kernels.assign import add_features, take_nearer
from cafelearn._solver.kernels.blocks import BLOCK, padded, room, sort_by_label, transpose_all
from cafelearn._solver.kernels.chords import (
    Chords,
    no_chords,
    place_chords,
    set_powers,
    with_chords,
    without_chords,
)
from cafelearn._solver.kernels.compiling import EXACT, MAKES, ONE, SUMS, VECTOR, ZERO, njit
from cafelearn._solver.kernels.power import (
    CUBE,
    FOURTH,
    LARGEST_DIRECT,
    LINEAR,
    SQUARE,
    add_powers,
)
from cafelearn._solver.kernels.vectors import prefer_wide_vectors, smaller

# If tangents leave more of the rows of a block open than this, the whole block is measured.
MANY = 0.3
# Relative error of a sum of powers: of the powers, of those with large exponents, and for
# each number added.
OF_POWER, OF_LARGE_POWER, OF_SUM = 1e-5, 2e-4, 2e-7
# Error of a rounded difference between a row and a centre, relative to the distance of the
# places they are seen from; the largest power that may vanish; and the largest difference of
# which the weight may (the ranges are no wider than machine.WIDEST_RANGE).
OF_PLACE, VANISHING, WEIGHTLESS = 2.5e-7, 1e-37, 1e-25
# The bounds of each row: the first is on the distance to the own centre, those that follow are
# on the distances to all other centres of a group.
UPPER, LOWER = 0, 1


class Screen(NamedTuple):
    """Room for the work on one block of rows, and the centres as it sees them."""

    distances: np.ndarray  # (k, block)
    columns: np.ndarray  # (m, block)
    nearest: np.ndarray  # (1, block)
    before: np.ndarray  # (1, block) the same before the last centre was looked at
    roots: np.ndarray  # (1, block)
    labels: np.ndarray  # (block,)
    marked: np.ndarray  # (block,)
    lower: np.ndarray  # (groups, block) bounds of the distances to the other centres
    examined: np.ndarray  # (groups,)
    group: np.ndarray  # (k,) the group of each centre
    origin: np.ndarray  # (m,) where it looks from, of the type of the data
    centers: np.ndarray  # (k, m) seen from there
    weights: np.ndarray  # (k, m)
    origins: np.ndarray  # (k, m) where the lines below the powers, if not moved, are zero
    slopes: np.ndarray  # (k, m)
    offsets: np.ndarray  # (k,) by how much they are moved down
    chords: Chords
    bases: np.ndarray  # (m, block) numbers, and their powers
    powers: np.ndarray
    features: np.ndarray  # (m,) their numbers
    zeros: np.ndarray  # (k, m)
    ones: np.ndarray  # (1, m)


class Found(NamedTuple):
    """What is known of the rows of a chunk."""

    labels: np.ndarray  # nearest centre
    nearest: np.ndarray  # its distance
    bounds: np.ndarray  # (rows, 1 + groups) of the roots of the distances, see UPPER
    error: np.ndarray  # of roots, beside their relative error
    seen: np.ndarray  # whether the row was looked at


def n_groups(n_clusters, bytes_per_row):
    """How many lower bounds are kept for each row: one for each 100 bytes that it has."""
    return int(min(n_clusters, max(1, bytes_per_row // 100)))


@njit(**EXACT)
def group_of(l, n_clusters, n_groups):
    """The group of a centre."""
    return l * n_groups // n_clusters


@njit(**MAKES)
def make_screen(X, n_clusters, n_groups):
    n_features = X.shape[1]
    single = np.empty(0, dtype=np.float32)
    return Screen(
        room(n_clusters, BLOCK, single),
        room(n_features, BLOCK, single),
        room(ONE, BLOCK, single),
        room(ONE, BLOCK, single),
        room(ONE, BLOCK, single),
        np.empty(BLOCK, dtype=np.int32),
        np.empty(BLOCK, dtype=np.int32),
        room(n_groups, BLOCK, single),
        np.empty(n_groups, dtype=np.bool_),
        np.array([group_of(l, n_clusters, n_groups) for l in range(n_clusters)]),
        np.empty(n_features, dtype=X.dtype),
        np.empty((n_clusters, n_features), dtype=np.float32),
        np.empty((n_clusters, n_features), dtype=np.float32),
        np.empty((n_clusters, n_features), dtype=np.float32),
        np.empty((n_clusters, n_features), dtype=np.float32),
        np.empty(n_clusters, dtype=np.float32),
        no_chords(X, n_clusters),
        room(n_features, BLOCK, single),
        room(n_features, BLOCK, single),
        np.arange(n_features),
        np.zeros((n_clusters, n_features), dtype=np.float32),
        np.ones((1, n_features), dtype=np.float32),
    )


@njit(**EXACT)
def relative_error(n_features, p):
    """Bound of the relative error of a distance."""
    of_power = OF_POWER if p <= LARGEST_DIRECT_SINGLE else OF_LARGE_POWER
    return of_power + OF_SUM * n_features


LARGEST_DIRECT_SINGLE = LARGEST_DIRECT[np.dtype(np.float32)]


@njit(**EXACT)
def _is_cheap(plan):
    """Whether powers cost no more than tangents."""
    branch = plan.branch
    return (branch == SQUARE) | (branch == CUBE) | (branch == FOURTH) | (branch == LINEAR)


@njit(**EXACT)
def look_from(screen, old, state, geometry):
    """Look at the centres from the one of cluster `old`, or from the first one if it is -1.

    Returns a bound of the error that rounding adds to the root of any distance.
    """
    centers, weights = state.centers, state.scaled_weights
    n_clusters, n_features = centers.shape
    here, error = max(old, 0), 0.0
    for v in range(n_features):
        screen.origin[v] = centers[here, v]
    for l in range(n_clusters):
        way = 0.0
        for v in range(n_features):
            gap = centers[l, v] - centers[here, v]
            screen.centers[l, v] = screen.origins[l, v] = gap
            screen.weights[l, v] = weights[l, v]
            way += abs(weights[l, v] * gap)
        error = max(error, way)
    if old >= 0 and not _is_cheap(geometry.coarse):
        _draw_tangents(screen, old, state, geometry)
    place_chords(screen)
    vanishing = (VANISHING * n_features) ** (1 / geometry.p) + WEIGHTLESS * n_features
    return OF_PLACE * error + vanishing


@njit(**EXACT)
def _draw_tangents(screen, old, state, geometry):
    """Lines below the powers of the distances from members of `old` to every centre.

    slope |x - z| - offset, summed over the features, is at most the distance. The lines touch
    where a member of the cluster usually is.
    """
    centers, weights, p = screen.centers, screen.weights, geometry.p
    bases, powers = screen.bases, screen.powers
    n_clusters, features, number = len(centers), without_chords(screen), np.float32
    block = len(screen.labels)
    for first in range(0, n_clusters, block):
        size = min(block, n_clusters - first)
        for v in features:
            usual = number(state.typical[old, v]) ** 2
            for b in range(padded(size)):
                l = min(first + b, n_clusters - 1)
                gap = centers[l, v]
                bases[v, b] = weights[l, v] * np.sqrt(gap * gap + usual)
        set_powers(screen, features, padded(size), geometry.coarse)
        for b in range(size):
            l, total = first + b, number(0)
            for v in features:
                power = powers[v, b]
                screen.slopes[l, v] = (
                    number(p) * power / bases[v, b] * weights[l, v] if power > 0 else number(0)
                )
                total += number(p - 1) * power
            screen.offsets[l] = total


@njit(**VECTOR)
def _add_lines(out, l, columns, features, origins, slopes, size):
    """out[l, b] += the sum of slope |x - origin| over these features."""
    prefer_wide_vectors()
    whole = len(features) - len(features) % 4
    for j in range(0, whole, 4):
        v0, v1, v2, v3 = features[j], features[j + 1], features[j + 2], features[j + 3]
        z0, z1, z2, z3 = origins[l, v0], origins[l, v1], origins[l, v2], origins[l, v3]
        s0, s1, s2, s3 = slopes[l, v0], slopes[l, v1], slopes[l, v2], slopes[l, v3]
        for b in range(size):
            t0 = abs(columns[v0, b] - z0) * s0
            t1 = abs(columns[v1, b] - z1) * s1
            t2 = abs(columns[v2, b] - z2) * s2
            t3 = abs(columns[v3, b] - z3) * s3
            out[l, b] += (t0 + t1) + (t2 + t3)
    for j in range(whole, len(features)):
        v = features[j]
        origin, slope = origins[l, v], slopes[l, v]
        for b in range(size):
            out[l, b] += abs(columns[v, b] - origin) * slope


@njit(**SUMS)
def _compare_lines(marked, lower, lines, nearest, l, offset, error, size):
    """Mark the rows that may be nearer to centre l; bound the distance of the others."""
    prefer_wide_vectors()
    one = np.float32(1)
    beyond, safe = np.float32(np.inf), one + 4 * error
    less, more = one - error, offset * (one + error)
    count = 0
    for b in range(size):
        near = lines[l, b] <= (nearest[0, b] + offset) * safe
        marked[b] = near
        lower[b] = smaller(lower[b], beyond if near else lines[l, b] * less - more)
        count += near
    return count


@njit(**SUMS)
def _take_nearer(marked, lower, nearest, before, distances, l, size):
    """Mark and count the rows that are nearer to centre l; bound the distance of the others."""
    prefer_wide_vectors()
    beyond, count = np.float32(np.inf), 0
    for b in range(size):
        closer = distances[l, b] < nearest[0, b]
        marked[b] = closer
        lower[b] = smaller(lower[b], beyond if closer else distances[l, b])
        before[0, b] = nearest[0, b]
        nearest[0, b] = smaller(nearest[0, b], distances[l, b])
        count += closer
    return count


@njit(**EXACT)
def _draw_lines(screen, l, features, size):
    """Sum the lines of these features for centre l."""
    for b in range(size):
        screen.distances[l, b] = screen.chords.floors[l]
    columns, origins, slopes = screen.columns, screen.origins, screen.slopes
    _add_lines(screen.distances, l, columns, features, origins, slopes, size)


@njit(**EXACT)
def _measure(screen, l, size, plan):
    """Distances of the block to centre l."""
    _draw_lines(screen, l, with_chords(screen), size)
    add_features(
        screen.distances,
        l,
        screen.columns,
        without_chords(screen),
        screen.centers,
        screen.weights,
        size,
        plan,
    )


@njit(**EXACT)
def _take_roots(screen, numbers, row, size, geometry):
    """Roots of a row of numbers."""
    largest = np.finfo(np.float32).max
    for b in range(size):
        numbers[row, b] = min(numbers[row, b], largest)
        screen.roots[0, b] = 0
    add_powers(
        screen.roots,
        ZERO,
        numbers[row : row + 1],
        screen.features[:1],
        screen.zeros,
        screen.ones,
        ZERO,
        size,
        geometry.coarse_root,
    )


@njit(**EXACT)
def _choose_groups(screen, found, rows, start, old, error, slack):
    """Groups of centres to be examined: where the bound of a row does not tell enough.

    That of the old centre is, because the row may leave it.
    """
    screen.examined[:] = False
    for b in range(len(rows)):
        bounds = found.bounds[rows[b] - start]
        upper = screen.roots[0, b] * (1 + slack) + error
        for group in range(len(screen.examined)):
            screen.examined[group] |= not upper < bounds[LOWER + group]
    screen.examined[screen.group[old]] = True


@njit(**EXACT)
def screen_rows(found, pending, n_pending, rows, start, old, X, screen, error, geometry):
    """Nearest centres of the rows of a block of one old label, seen from its centre.

    Pairs of a row and a centre that tangents leave open are added to the pending ones, of
    which there are `n_pending`; returns how many there are now.
    """
    distances, nearest, labels = screen.distances, screen.nearest, screen.labels
    n_clusters, n_features = screen.centers.shape
    size, width = len(rows), padded(len(rows))
    cheap = _is_cheap(geometry.coarse) or len(without_chords(screen)) == 0
    relative = np.float32(relative_error(n_features, geometry.p))
    slack, error = 2 * relative, np.float32(error)
    transpose_all(screen.columns, X, rows, size, screen.origin)
    labels[:] = old
    screen.lower[:] = np.inf
    _measure(screen, old, width, geometry.coarse)
    for b in range(width):
        nearest[0, b] = distances[old, b]
    _take_roots(screen, nearest, ZERO, width, geometry)
    _choose_groups(screen, found, rows, start, old, error, slack)
    for l in range(n_clusters):
        lower = screen.lower[screen.group[l]]
        if l == old or not screen.examined[screen.group[l]]:
            continue
        count = width
        if not cheap:
            _draw_lines(screen, l, screen.features, width)
            offset = screen.offsets[l]
            count = _compare_lines(
                screen.marked, lower, distances, nearest, l, offset, relative, width
            )
        if count > MANY * width:
            _measure(screen, l, width, geometry.coarse)
            count = _take_nearer(
                screen.marked, lower, nearest, screen.before, distances, l, width
            )
            for b in range(size if count > 0 else 0):
                if screen.marked[b]:
                    left = screen.lower[screen.group[labels[b]]]
                    left[b] = min(left[b], screen.before[0, b])
                    labels[b] = l
        elif count > 0:
            for b in range(size):
                if screen.marked[b]:
                    pending[0, n_pending] = rows[b] - start
                    pending[1, n_pending] = l
                    n_pending += 1
    for b in range(size):
        i = rows[b] - start
        found.labels[i], found.nearest[i] = labels[b], nearest[0, b]
        found.error[i], found.seen[i] = error, True
    for group in range(len(screen.examined)):
        if screen.examined[group]:
            _take_roots(screen, screen.lower, group, width, geometry)
            for b in range(size):
                low = screen.roots[0, b] * (1 - slack) - error
                found.bounds[rows[b] - start, LOWER + group] = low
    return n_pending


@njit(**EXACT)
def place_rows(found, rows, start, X, screen, error, geometry):
    """Nearest centres of a block of rows without labels, with one bound for all others."""
    nearest, second, labels = screen.nearest, screen.lower, screen.labels
    size, width = len(rows), padded(len(rows))
    slack, error = np.float32(2 * relative_error(X.shape[1], geometry.p)), np.float32(error)
    transpose_all(screen.columns, X, rows, size, screen.origin)
    labels[:] = 0
    nearest[:] = np.inf
    second[0] = np.inf
    for l in range(len(screen.centers)):
        _measure(screen, l, width, geometry.coarse)
        take_nearer(labels, nearest[0], second[0], screen.distances, l, width)
    _take_roots(screen, second, ZERO, width, geometry)
    for b in range(size):
        i = rows[b] - start
        found.labels[i], found.nearest[i] = labels[b], nearest[0, b]
        found.error[i], found.seen[i] = error, True
        found.bounds[i, LOWER:] = screen.roots[0, b] * (1 - slack) - error


@njit(**MAKES)
def settle_pending(found, pending, start, X, centers, screen, geometry):
    """Measure the distances that the tangents left open."""
    n_clusters, n_features = centers.shape
    block = len(screen.labels)
    slack = np.float32(2 * relative_error(n_features, geometry.p))
    order, begin = sort_by_label(pending[1], ZERO, n_clusters)
    for l in range(n_clusters):
        for first in range(begin[l + 1], begin[l + 2], block):
            rows = order[first : min(first + block, begin[l + 2])]
            for b in range(len(rows)):
                rows[b] = start + pending[0, rows[b]]
            _settle_rows(found, rows, start, l, X, centers, screen, slack, geometry)


@njit(**EXACT)
def _settle_rows(found, rows, start, l, X, centers, screen, slack, geometry):
    """Measure the distances of the rows of a block to centre l."""
    size, width = len(rows), padded(len(rows))
    transpose_all(screen.columns, X, rows, size, centers[l])
    for b in range(width):
        screen.distances[l, b] = 0
    add_features(
        screen.distances,
        l,
        screen.columns,
        screen.features,
        screen.zeros,
        screen.weights,
        width,
        geometry.coarse,
    )
    for b in range(size):
        i, into = rows[b] - start, l
        screen.before[0, b] = max(screen.distances[l, b], found.nearest[i])
        if screen.distances[l, b] < found.nearest[i]:
            into = found.labels[i]
            found.labels[i], found.nearest[i] = l, screen.distances[l, b]
        screen.marked[b] = LOWER + screen.group[into]
    _take_roots(screen, screen.before, ZERO, size, geometry)
    for b in range(size):
        i, column = rows[b] - start, screen.marked[b]
        low = screen.roots[0, b] * (1 - slack) - found.error[i]
        found.bounds[i, column] = min(found.bounds[i, column], low)


@njit(**MAKES)
def bounds_of(found, n_features, geometry):
    """Bounds of the roots of the distances to the nearest centre, from below and above."""
    size, seen, nearest, error = len(found.labels), found.seen, found.nearest, found.error
    numbers = np.zeros((1, padded(size)), dtype=np.float32)
    roots = np.zeros_like(numbers)
    for i in range(size):
        if seen[i]:
            numbers[0, i] = nearest[i]
    zero, one = np.zeros((1, 1), dtype=np.float32), np.ones((1, 1), dtype=np.float32)
    add_powers(
        roots, ZERO, numbers, np.arange(1), zero, one, ZERO, padded(size), geometry.coarse_root
    )
    slack = np.float32(2 * relative_error(n_features, geometry.p))
    out = np.empty((2, size), dtype=np.float32)
    for i in range(size):
        out[0, i] = roots[0, i] * (1 - slack) - error[i]
        out[1, i] = roots[0, i] * (1 + slack) + error[i]
    return out
