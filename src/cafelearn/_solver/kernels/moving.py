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

from cafelearn._solver.kernels.assign import distances_to, hash_of, take_nearer
from cafelearn._solver.kernels.blocks import (
    block_rows,
    buffer,
    padded,
    sort_by_label,
    sort_members,
    transpose,
)
from cafelearn._solver.kernels.chords import draw_chords
from cafelearn._solver.kernels.compiling import EXACT, MAKES, ONE, PART, ZERO, njit
from cafelearn._solver.kernels.pulls import add_members, add_moments
from cafelearn._solver.kernels.screening import (
    LOWER,
    UPPER,
    Found,
    bounds_of,
    group_of,
    look_from,
    make_screen,
    n_groups,
    place_rows,
    screen_rows,
    settle_pending,
)
from cafelearn._solver.kernels.vectors import smaller

# Columns of the drift of each cluster since the last assignment: the distance to its centre
# has become at most GROWTH (distance + SHIFT), and at least SHRINKAGE (distance - SHIFT).
GROWTH, SHIFT, SHRINKAGE = range(3)
# Bounds on distances are widened by this, which is more than the rounding of a distance.
BOUND_SLACK, BOUND_SLACK_SINGLE = 1e-9, 2e-5
# They are kept as float32, and widened by more than that rounds.
WIDER, NARROWER = 1 + 3e-7, 1 - 3e-7
# A bound where there is nothing to be bounded.
BEYOND = 1e30
# So many rows of a chunk that were left alone may be measured to find the farthest.
FEW = 32


def empty_bounds(n_rows, n_clusters, bytes_per_row):
    """Room for the bounds of rows."""
    return np.zeros((n_rows, LOWER + n_groups(n_clusters, bytes_per_row)), dtype=np.float32)


@njit(**PART)
def move_chunk(
    sums, labels, bounds, pair, X, sample_weight, start, stop, state, geometry, survey
):
    """Assign the rows of a chunk, and sum the pulls of those that move.

    IN  labels of the whole data and bounds (n or 0, 1 + groups), float32, updated in place;
        state.drift (k, 3) and state.typical (k, m), the distance of a member from its centre
        pair (2, m), the values of the chunk in columns that have two, see kernels.pairs
        `survey` asks for the moments of all rows instead of the pulls of those that move
    OUT sums.mass, fingerprint, changed, farthest (but for the rows that changed[1] counts);
        in terms the pulls of the rows that join a cluster minus those of the rows that leave
        it, or the moments of the members
    """
    n_clusters, size = len(state.centers), stop - start
    unlabelled, known = labels[start] < 0, len(bounds) > 0
    found = Found(
        labels[start:stop].copy(),
        np.empty(size, dtype=np.float32),
        bounds[start:stop] if known else np.zeros((size, bounds.shape[1]), dtype=np.float32),
        np.empty(size, dtype=np.float32),
        np.zeros(size, dtype=np.bool_),
    )
    doubtful = found.labels
    if known and not unlabelled:
        doubtful = _doubtful(found.labels, found.bounds, state.drift)
    rows, begin = sort_by_label(doubtful, start, n_clusters)
    pending, n_pending = np.empty((2, size * n_clusters), dtype=np.int32), ZERO
    screen = make_screen(X, n_clusters, found.bounds.shape[1] - LOWER)
    draw_chords(screen, pair, state, geometry)
    for group in range(0 if unlabelled else 1, n_clusters + 1):
        old, first, last = group - 1, begin[group], begin[group + 1]
        if first == last:
            continue
        error = look_from(screen, old, state, geometry)
        for at in range(first, last, len(screen.labels)):
            block = rows[at : min(at + len(screen.labels), last)]
            if unlabelled:
                place_rows(found, block, start, X, screen, error, geometry)
                continue
            n_pending = screen_rows(
                found, pending, n_pending, block, start, old, X, screen, error, geometry
            )
    settle_pending(found, pending[:, :n_pending], start, X, state.centers, screen, geometry)
    roots = bounds_of(found, X.shape[1], geometry)
    _settle_close(found, roots, X, start, state, geometry)
    least = _report(sums, labels, found, roots, sample_weight, start)
    _find_farthest(sums, found, least, X, sample_weight, start, state, geometry)
    if not survey:
        _add_movers(sums, labels, found.labels, X, sample_weight, start, state, geometry)
    labels[start:stop] = found.labels
    if survey:
        members = sort_members(labels, sample_weight, start, stop, n_clusters)
        _add_rows(sums, members, ONE, X, sample_weight, state, geometry, survey)


@njit(**MAKES)
def _doubtful(labels, bounds, drift):
    """The labels of the rows that may have moved, and -1 for those that must have stayed.

    The bounds are moved.
    """
    if np.isnan(drift[:, SHIFT]).any():
        bounds[:] = 0
        return labels
    n_clusters, n_groups = len(drift), bounds.shape[1] - LOWER
    single, wider, narrower = np.float32, np.float32(WIDER), np.float32(NARROWER)
    growth, shift = np.empty(n_clusters, dtype=single), np.empty(n_clusters, dtype=single)
    shrinkage, slide = np.full(n_groups, single(BEYOND)), np.zeros(n_groups, dtype=single)
    for l in range(n_clusters):
        group = group_of(l, n_clusters, n_groups)
        growth[l], shift[l] = wider * drift[l, GROWTH], wider * drift[l, SHIFT]
        shrinkage[group] = min(shrinkage[group], single(narrower * drift[l, SHRINKAGE]))
        slide[group] = max(slide[group], shift[l])
    out = labels.copy()
    for j in range(len(labels)):
        l = labels[j]
        upper = growth[l] * (bounds[j, UPPER] + shift[l]) * wider
        bounds[j, UPPER], least = upper, single(BEYOND)
        for group in range(n_groups):
            lower = shrinkage[group] * (bounds[j, LOWER + group] - slide[group]) * narrower
            bounds[j, LOWER + group] = lower
            least = smaller(least, lower)
        out[j] = -1 if upper < least else l
    return out


@njit(**MAKES)
def _settle_close(found, roots, X, start, state, geometry):
    """Measure the distances of rows to every centre, where the bounds do not tell."""
    close = np.empty(len(found.labels), dtype=np.int64)
    count = _find_close(close, found, roots, start)
    if count == 0:
        return
    centers, weights = state.centers, state.scaled_weights
    n_clusters, n_features = centers.shape
    features, root = np.arange(n_features), 1 / geometry.p
    n_groups = found.bounds.shape[1] - LOWER
    columns, distances, peaks = buffer(n_features, X), buffer(n_clusters, X), buffer(ZERO, X)
    nearest, second = buffer(ONE, X)[0], buffer(ONE, X)[0]
    labels = np.empty(block_rows(X), dtype=np.int32)
    for first in range(0, count, block_rows(X)):
        rows = close[first : min(first + block_rows(X), count)]
        size, width = len(rows), padded(len(rows))
        transpose(columns, X, rows, size, features)
        for b in range(width):
            labels[b], nearest[b], second[b] = 0, np.inf, np.inf
        for l in range(n_clusters):
            distances_to(
                distances, l, columns, peaks, features, centers, weights, width, geometry
            )
            take_nearer(labels, nearest, second, distances, l, width)
        for b in range(size):
            j = rows[b] - start
            found.labels[j] = labels[b]
            distance = nearest[b] ** root
            roots[0, j], roots[1, j] = distance * NARROWER, distance * WIDER
            lower = found.bounds[j, LOWER:]
            lower[:] = BEYOND
            for l in range(n_clusters):
                if l != labels[b]:
                    group, low = group_of(l, n_clusters, n_groups), distances[l, b] ** root
                    lower[group] = min(lower[group], low * NARROWER)


@njit(**EXACT)
def _find_close(close, found, roots, start):
    """List the rows whose nearest centre the bounds do not tell; returns their number."""
    count = 0
    for j in range(len(found.labels)):
        if not found.seen[j]:
            continue
        least = np.float32(BEYOND)
        for column in range(LOWER, found.bounds.shape[1]):
            least = smaller(least, found.bounds[j, column])
        if not roots[1, j] < least:
            close[count] = start + j
            count += 1
    return count


@njit(**EXACT)
def _report(sums, labels, found, roots, sample_weight, start):
    """What all rows have to say, and the upper bounds of those that were looked at.

    Returns the largest lower bound of a row's distance from its centre.
    """
    least = np.float32(-1)
    for j in range(len(found.labels)):
        i, label = start + j, found.labels[j]
        if found.seen[j]:
            found.bounds[j, UPPER] = roots[1, j]
        if sample_weight[i] == 0:
            continue
        sums.mass[label] += sample_weight[i]
        sums.fingerprint[label] += hash_of(np.uint64(i))
        sums.changed[0] += label != labels[i]
        if found.seen[j]:
            least = max(least, roots[0, j])
    return least


@njit(**MAKES)
def _find_farthest(sums, found, least, X, sample_weight, start, state, geometry):
    """The row that is farthest from its centre.

    Rows that were left alone count if few of them can be it; else they are reported.
    """
    far = np.empty(len(found.labels), dtype=np.int64)
    count, alone = _find_far(far, found, least, start)
    sums.changed[1] += alone
    if count == 0:
        return
    n_features = X.shape[1]
    features = np.arange(n_features)
    columns, distances = buffer(n_features, X), buffer(len(state.centers), X)
    for j in range(count):
        i, l = far[j], np.int64(found.labels[far[j] - start])
        if sample_weight[i] == 0:
            continue
        transpose(columns, X, far[j : j + 1], ONE, features)
        distances_to(
            distances,
            l,
            columns,
            distances,
            features,
            state.centers,
            state.scaled_weights,
            padded(ONE),
            geometry,
        )
        if distances[l, 0] > sums.farthest[0]:
            sums.farthest[0] = distances[l, 0]
            sums.farthest_row[:] = X[i]


@njit(**EXACT)
def _find_far(far, found, least, start):
    """List the rows that can be the farthest and count; returns their number.

    Also the number of those that were left alone and do not count, because they are many.
    """
    alone = 0
    for j in range(len(found.labels)):
        alone += not (found.seen[j] or found.bounds[j, UPPER] < least)
    count = 0
    for j in range(len(found.labels)):
        if not found.bounds[j, UPPER] < least and (found.seen[j] or alone <= FEW):
            far[count] = start + j
            count += 1
    return count, alone if alone > FEW else 0


@njit(**MAKES)
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
        order, begin = sort_by_label(side, ZERO, len(state.centers))
        sorted_rows = movers[order], begin
        moments = np.bool_(False)
        _add_rows(sums, sorted_rows, sign, X, sample_weight, state, geometry, moments)


@njit(**MAKES)
def _add_rows(sums, sorted_rows, sign, X, sample_weight, state, geometry, moments):
    """Add the pulls, or the moments, of rows that come with where each cluster begins."""
    centers, scales = state.centers, state.brackets.scale
    n_clusters, n_features = centers.shape
    columns = buffer(n_features, X)
    powers = buffer(n_features if geometry.p > 2 else ONE, X)
    row_weights = buffer(ONE, X)[0]
    features = np.arange(n_features)
    order, begin = sorted_rows
    for l in range(n_clusters):
        for first in range(begin[l + 1], begin[l + 2], block_rows(X)):
            size = min(block_rows(X), begin[l + 2] - first)
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
        drift[l, SHRINKAGE] = shrinkage * (1 - slack)
        for v in range(n_features):
            placed[0, l, v] = state.centers[l, v]
            placed[1, l, v] = state.scaled_weights[l, v]
