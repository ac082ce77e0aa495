"""Large data: which rows change their cluster, and how they pull at the centres.

Almost all rows of a large data set keep their cluster in almost all iterations, and this
file avoids looking at them. Three facts are used, none of which changes a label:

* Bounds. With d = ||w (x - z)||_p the triangle inequality tells how far the distances of a
  row can have changed since they were last looked at, for moved centres and for changed
  weights. A row whose own centre must still be the nearest is left alone.
* Screening. Rows that may have moved are looked at in single precision (kernels.screening);
  few are left for which that does not tell the nearest centre.
* Pulls. The members of a cluster hold its centre in balance, so that the rows which join and
  leave tell in which direction it will go, and roughly how far.
"""

import numpy as np
from numba import njit

from cafelearn.kernels.assign import (
    BLOCK,
    buffer,
    distances_to,
    hash_of,
    padded,
    sort_by_label,
    take_nearer,
    transpose,
)
from cafelearn.kernels.power import EXACT
from cafelearn.kernels.pulls import add_members, add_moments
from cafelearn.kernels.screening import (
    Found,
    bounds_of,
    look_from,
    make_screen,
    screen_rows,
    settle_pending,
)

# Rows of the bounds of each row of the data.
UPPER = 0  # on the distance to the own centre
LOWER = 1  # on the distance to every other centre
# Columns of the drift of each cluster since the last assignment: the distance to the own
# centre has become at most GROWTH (upper + SHIFT), those to all others are at least
# SHRINKAGE (lower - SLIDE).
GROWTH, SHIFT, SHRINKAGE, SLIDE = range(4)
# Bounds on distances are widened by this, which is more than the rounding of a distance.
BOUND_SLACK, BOUND_SLACK_SINGLE = 1e-9, 2e-5
# They are kept as float32, and widened by more than that rounds.
WIDER, NARROWER = 1 + 3e-7, 1 - 3e-7


@njit(**EXACT)
def move_chunk(sums, labels, bounds, X, sample_weight, start, stop, state, geometry, survey):
    """Assign the rows of a chunk, and sum the pulls of those that move.

    IN  labels of the whole data and bounds (2, n or 0), float32, updated in place; state.drift
        (k, 4) and state.typical (k, m), the distance of a member from its centre
        `survey` asks for the moments of all rows instead of the pulls of those that move
    OUT sums.mass, fingerprint, changed, farthest (of the rows that were looked at); in terms
        the pulls of the rows that join a cluster minus those of the rows that leave it, or
        the moments of the members
    """
    n_clusters, size = len(state.centers), stop - start
    doubtful = _doubtful(labels[start:stop], bounds[:, start:stop], state.drift)
    unlabelled = labels[start] < 0
    rows, begin = sort_by_label(doubtful, start, n_clusters)
    found = Found(
        labels[start:stop].copy(),
        np.empty(size, dtype=np.float32),
        np.empty(size, dtype=np.float32),
        np.empty(size, dtype=np.float32),
        np.zeros(size, dtype=np.bool_),
    )
    pending, n_pending = np.empty((2, size * n_clusters), dtype=np.int32), 0
    screen = make_screen(X, n_clusters)
    for group in range(0 if unlabelled else 1, n_clusters + 1):
        old, first, last = group - 1, begin[group], begin[group + 1]
        if first == last:
            continue
        error = look_from(screen, old, state, geometry)
        for at in range(first, last, BLOCK):
            block = rows[at : min(at + BLOCK, last)]
            n_pending = screen_rows(
                found, pending, n_pending, block, start, old, X, screen, geometry
            )
            for i in block:
                found.error[i - start] = error
    settle_pending(found, pending[:, :n_pending], start, X, state.centers, screen, geometry)
    roots = bounds_of(found, X.shape[1], geometry)
    _settle_close(found, roots, X, start, state, geometry)
    least = _report(sums, labels, bounds, found, roots, sample_weight, start)
    _find_farthest(sums, found, roots, least, X, sample_weight, start, state, geometry)
    if survey:
        _add_moments_of_all(sums, found.labels, X, sample_weight, start, state, geometry)
    else:
        _add_movers(sums, labels, found.labels, X, sample_weight, start, state, geometry)
    labels[start:stop] = found.labels


@njit(**EXACT)
def _doubtful(labels, bounds, drift):
    """The labels of the rows that may have moved, and -1 for those that must have stayed.

    The bounds are moved.
    """
    if bounds.shape[1] == 0 or labels[0] < 0:
        return labels
    out = labels.copy()
    for j in range(len(labels)):
        l = labels[j]
        upper = drift[l, GROWTH] * (bounds[UPPER, j] + drift[l, SHIFT])
        lower = drift[l, SHRINKAGE] * (bounds[LOWER, j] - drift[l, SLIDE])
        bounds[UPPER, j], bounds[LOWER, j] = upper * WIDER, lower * NARROWER
        out[j] = -1 if upper < lower else l
    return out


@njit(**EXACT)
def _settle_close(found, roots, X, start, state, geometry):
    """Measure the distances of rows to every centre, where the bounds do not tell."""
    close = np.empty(len(found.labels), dtype=np.int64)
    count = 0
    for j in range(len(found.labels)):
        if found.seen[j] and not roots[1, j] < roots[2, j]:
            close[count] = start + j
            count += 1
    if count == 0:
        return
    centers, weights = state.centers, state.scaled_weights
    n_clusters, n_features = centers.shape
    features, root = np.arange(n_features), 1 / geometry.p
    columns, distances, peaks = buffer(n_features, X), buffer(n_clusters, X), buffer(0, X)
    nearest, second = buffer(np.int64(1), X)[0], buffer(np.int64(1), X)[0]
    labels = np.empty(BLOCK, dtype=np.int32)
    for first in range(0, count, BLOCK):
        rows = close[first : min(first + BLOCK, count)]
        size, width = len(rows), padded(len(rows))
        transpose(columns, X, rows, size, features)
        for b in range(width):
            labels[b], nearest[b], second[b] = n_clusters, np.inf, np.inf
        for l in range(n_clusters):
            distances_to(
                distances, l, columns, peaks, features, centers, weights, width, geometry
            )
            take_nearer(labels, nearest, second, distances, l, width)
        for b in range(size):
            j = rows[b] - start
            found.labels[j] = labels[b]
            distance, other = nearest[b] ** root, second[b] ** root
            roots[0, j], roots[1, j] = distance * NARROWER, distance * WIDER
            roots[2, j] = other * NARROWER


@njit(**EXACT)
def _report(sums, labels, bounds, found, roots, sample_weight, start):
    """What all rows have to say, and the bounds of those that were looked at.

    Returns the largest lower bound of a row's distance from its centre.
    """
    bounded, least = bounds.shape[1] > 0, np.float32(-1)
    for j in range(len(found.labels)):
        i, label = start + j, found.labels[j]
        sums.changed[1] += not found.seen[j]
        if found.seen[j] and bounded:
            bounds[UPPER, i], bounds[LOWER, i] = roots[1, j], roots[2, j]
        if sample_weight[i] == 0:
            continue
        sums.mass[label] += sample_weight[i]
        sums.fingerprint[label] += hash_of(np.uint64(i))
        sums.changed[0] += label != labels[i]
        if found.seen[j]:
            least = max(least, roots[0, j])
    return least


@njit(**EXACT)
def _find_farthest(sums, found, roots, least, X, sample_weight, start, state, geometry):
    """The row that is farthest from its centre, of those that were looked at."""
    if least < 0:
        return
    n_features = X.shape[1]
    features = np.arange(n_features)
    columns, distances = buffer(n_features, X), buffer(len(state.centers), X)
    for j in range(len(found.labels)):
        i, l = start + j, found.labels[j]
        if roots[1, j] < least or not found.seen[j] or sample_weight[i] == 0:
            continue
        transpose(columns, X, np.full(1, i), 1, features)
        distances_to(
            distances,
            l,
            columns,
            distances,
            features,
            state.centers,
            state.scaled_weights,
            padded(1),
            geometry,
        )
        if distances[l, 0] > sums.farthest[0]:
            sums.farthest[0] = distances[l, 0]
            sums.farthest_row[:] = X[i]


@njit(**EXACT)
def _add_movers(sums, labels, found, X, sample_weight, start, state, geometry):
    """Add the pulls of rows at the centres they join, subtract them at those they leave."""
    movers = np.empty(sums.changed[0], dtype=np.int64)
    count = 0
    for j in range(len(found)):
        if found[j] != labels[start + j] and sample_weight[start + j] > 0:
            movers[count] = start + j
            count += 1
    if count == 0:
        return
    for sign in (1, -1):
        side = np.empty(count, dtype=np.int32)
        for j in range(count):
            side[j] = found[movers[j] - start] if sign == 1 else labels[movers[j]]
        _add_rows(sums, movers, side, sign, X, sample_weight, state, geometry, False)


@njit(**EXACT)
def _add_moments_of_all(sums, found, X, sample_weight, start, state, geometry):
    members = found.copy()
    for j in range(len(found)):
        members[j] = found[j] if sample_weight[start + j] > 0 else -1
    rows = np.arange(start, start + len(found))
    _add_rows(sums, rows, members, 1, X, sample_weight, state, geometry, True)


@njit(**EXACT)
def _add_rows(sums, chosen, labels, sign, X, sample_weight, state, geometry, moments):
    """Add the pulls, or the moments, of the chosen rows at the centres of these labels."""
    centers, scales = state.centers, state.brackets.scale
    n_clusters, n_features = centers.shape
    columns = buffer(n_features, X)
    powers = buffer(n_features if geometry.p > 2 else np.int64(1), X)
    row_weights = buffer(np.int64(1), X)[0]
    features = np.arange(n_features)
    order, begin = sort_by_label(labels, 0, n_clusters)
    order = chosen[order]
    for l in range(n_clusters):
        for first in range(begin[l + 1], begin[l + 2], BLOCK):
            size = min(BLOCK, begin[l + 2] - first)
            rows, width = order[first : first + size], padded(size)
            for b in range(width):
                row_weights[b] = sign * sample_weight[rows[b]] if b < size else 0
            transpose(columns, X, rows, size, features)
            if moments:
                add_moments(
                    sums.terms, l, features, columns, row_weights, centers, scales, width
                )
            else:
                add_members(
                    sums.terms,
                    l,
                    features,
                    columns,
                    row_weights,
                    powers,
                    centers,
                    scales,
                    width,
                    geometry,
                )


@njit(**EXACT)
def measure_drift(state, p):
    """How much distances can have changed since the last assignment.

    With distances d = ||w (x - z)||_p, new weights w' and a new centre z', the triangle
    inequality gives min(w'/w) (d - s) <= d' <= max(w'/w) (d + s), where s = ||w (z' - z)||_p.
    """
    n_clusters, n_features = state.centers.shape
    drift, placed = state.drift, state.placed
    slack = BOUND_SLACK if state.centers.itemsize == 8 else BOUND_SLACK_SINGLE
    smallest = np.empty(n_clusters)
    for l in range(n_clusters):
        growth, shrinkage, peak = 0.0, np.inf, 0.0
        for v in range(n_features):
            old, new = placed[1, l, v], np.float64(state.scaled_weights[l, v])
            if old > 0:
                growth, shrinkage = max(growth, new / old), min(shrinkage, new / old)
            elif new > 0:
                growth = np.inf
            peak = max(peak, old * abs(state.centers[l, v] - placed[0, l, v]))
        shift = 0.0
        if peak > 0:
            for v in range(n_features):
                step = placed[1, l, v] * abs(state.centers[l, v] - placed[0, l, v])
                shift += (step / peak) ** p
            shift = peak * shift ** (1 / p)
        drift[l, GROWTH], drift[l, SHIFT] = growth * (1 + slack), shift * (1 + slack)
        smallest[l] = shrinkage * (1 - slack)
        for v in range(n_features):
            placed[0, l, v] = state.centers[l, v]
            placed[1, l, v] = state.scaled_weights[l, v]
    for l in range(n_clusters):
        drift[l, SHRINKAGE], drift[l, SLIDE] = np.inf, 0.0
        for other in range(n_clusters):
            if other != l:
                drift[l, SHRINKAGE] = min(drift[l, SHRINKAGE], smallest[other])
                drift[l, SLIDE] = max(drift[l, SLIDE], drift[other, SHIFT])
