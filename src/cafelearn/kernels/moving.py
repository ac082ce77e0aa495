"""Large data: which rows change their cluster, and how they pull at the centres.

Almost all rows of a large data set keep their cluster in almost all iterations, and this
file avoids looking at them. Three facts are used, none of which changes a label:

* Bounds. With d = ||w (x - z)||_p the triangle inequality tells how far the distances of a
  row can have changed since they were last looked at, for moved centres and for changed
  weights. A row whose own centre must still be the nearest is left alone.
* Tangents. t^p is convex, so for any base it is at least its tangent there. The sum of the
  tangents needs no powers and puts most centres out of question; only the rest are measured.
* Pulls. The members of a cluster hold its centre in balance, so that the rows which join and
  leave tell in which direction it will go, and roughly how far.
"""

from typing import NamedTuple

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
from cafelearn.kernels.power import CUBE, EXACT, FOURTH, LINEAR, SQUARE, SUMS, add_powers
from cafelearn.kernels.pulls import add_members, add_moments
from cafelearn.kernels.vectors import prefer_wide_vectors, smaller

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
# Sums of tangents are trusted up to this relative error, which exceeds that of the powers.
SLACK, SLACK_SINGLE = 1e-9, 1e-4
# If they leave more of the rows of a block open than this, the whole block is measured.
MANY = 0.3


class Scratch(NamedTuple):
    """Room for the work on one block of rows."""

    distances: np.ndarray  # (k, block)
    columns: np.ndarray  # (m, block)
    peaks: np.ndarray  # (k, block)
    nearest: np.ndarray  # (block,)
    second: np.ndarray
    labels: np.ndarray
    doubt: np.ndarray
    slopes: np.ndarray  # (k, m) of the tangents
    offsets: np.ndarray  # (k,)
    bases: np.ndarray  # (m, block) where they touch
    powers: np.ndarray


@njit(**EXACT)
def _make_scratch(X, n_clusters):
    n_features = X.shape[1]
    return Scratch(
        buffer(n_clusters, X),
        buffer(n_features, X),
        buffer(n_clusters, X),
        buffer(np.int64(1), X)[0],
        buffer(np.int64(1), X)[0],
        np.empty(BLOCK, dtype=np.int32),
        np.empty(BLOCK, dtype=np.int32),
        np.empty((n_clusters, n_features), dtype=X.dtype),
        np.empty(n_clusters, dtype=X.dtype),
        buffer(n_features, X),
        buffer(n_features, X),
    )


@njit(**EXACT)
def _is_cheap(plan):
    """Whether powers cost no more than tangents."""
    branch = plan.branch
    return (branch == SQUARE) | (branch == CUBE) | (branch == FOURTH) | (branch == LINEAR)


@njit(**EXACT)
def move_chunk(sums, labels, bounds, X, sample_weight, start, stop, state, geometry):
    """Assign the rows of a chunk, and sum the pulls of those that move.

    IN  labels of the whole data and bounds (2, n or 0), float32, updated in place; state.drift
        (k, 4) and state.typical (k, m), the distance of a member from its centre
    OUT sums.mass, fingerprint, changed, farthest (of the rows that were looked at); in terms
        the pulls of the rows that join a cluster minus those of the rows that leave it, or,
        for rows that had no cluster, their moments
    """
    n_clusters = len(state.centers)
    bounded = bounds.shape[1] > 0
    rows, begin = sort_by_label(labels[start:stop], start, n_clusters)
    found = labels[start:stop].copy()
    # Distance to the nearest centre, and a lower bound of those to all others.
    nearest = np.empty(stop - start, dtype=X.dtype)
    second = np.empty(stop - start, dtype=X.dtype)
    seen = np.zeros(stop - start, dtype=np.bool_)
    pending_row = np.empty((stop - start) * n_clusters, dtype=np.int32)
    pending_cluster = np.empty((stop - start) * n_clusters, dtype=np.int32)
    n_pending = 0
    scratch = _make_scratch(X, n_clusters)
    cheap = _is_cheap(geometry.distances)
    for group in range(n_clusters + 1):
        old, first = group - 1, begin[group]
        if bounded and old >= 0:
            first = _sure_first(rows, first, begin[group + 1], bounds, state.drift[old])
        if first == begin[group + 1]:
            continue
        if old >= 0 and not cheap:
            _tangents(scratch, old, state, geometry)
        while first < begin[group + 1]:
            size = min(BLOCK, begin[group + 1] - first)
            n_pending = _assign_rows(
                found,
                nearest,
                second,
                pending_row,
                pending_cluster,
                n_pending,
                rows[first : first + size],
                start,
                old,
                X,
                state,
                scratch,
                geometry,
            )
            for i in rows[first : first + size]:
                seen[i - start] = True
            first += size
    _settle_pending(
        found,
        nearest,
        second,
        pending_row[:n_pending],
        pending_cluster[:n_pending],
        start,
        X,
        state,
        scratch,
        geometry,
    )
    _report(
        sums, labels, bounds, found, nearest, second, seen, X, sample_weight, start, geometry
    )
    _add_movers(sums, labels, found, X, sample_weight, start, state, geometry)
    labels[start:stop] = found


@njit(**EXACT)
def _sure_first(rows, begin, end, bounds, drift):
    """Move the bounds of rows of one label, and put those first that must have kept it.

    Returns where the others begin.
    """
    others = np.empty(end - begin, dtype=np.int64)
    doubtful, n_others = begin, 0
    for position in range(begin, end):
        i = rows[position]
        upper = drift[GROWTH] * (bounds[UPPER, i] + drift[SHIFT])
        lower = drift[SHRINKAGE] * (bounds[LOWER, i] - drift[SLIDE])
        bounds[UPPER, i], bounds[LOWER, i] = upper * WIDER, lower * NARROWER
        if upper < lower:
            rows[doubtful] = i
            doubtful += 1
        else:
            others[n_others] = i
            n_others += 1
    for position in range(n_others):
        rows[doubtful + position] = others[position]
    return doubtful


@njit(**EXACT)
def _tangents(scratch, old, state, geometry):
    """Lines below the powers of the distances from members of `old` to every centre.

    slope |x - z| - offset, summed over the features, is at most the distance. The lines touch
    where a member of the cluster usually is.
    """
    centers, weights, p = state.centers, state.scaled_weights, geometry.p
    bases, powers = scratch.bases, scratch.powers
    n_clusters, n_features = centers.shape
    number = centers.dtype.type
    origin = np.zeros((1, n_features), dtype=centers.dtype)
    unit = np.ones((1, n_features), dtype=centers.dtype)
    features = np.arange(n_features)
    for first in range(0, n_clusters, BLOCK):
        size = min(BLOCK, n_clusters - first)
        for v in range(n_features):
            usual = number(state.typical[old, v]) ** 2
            for b in range(padded(size)):
                l = min(first + b, n_clusters - 1)
                gap = centers[old, v] - centers[l, v]
                bases[v, b] = weights[l, v] * np.sqrt(gap * gap + usual)
                powers[v, b] = 0
        add_powers(
            powers,
            -n_features,
            bases,
            features,
            origin,
            unit,
            0,
            padded(size),
            geometry.distances,
        )
        for b in range(size):
            l, total = first + b, number(0)
            for v in range(n_features):
                power = powers[v, b]
                scratch.slopes[l, v] = (
                    number(p) * power / bases[v, b] * weights[l, v] if power > 0 else number(0)
                )
                total += number(p - 1) * power
            scratch.offsets[l] = total


@njit(**EXACT)
def _add_lines(out, columns, centers, slopes, l, size):
    """out[l, b] = the sum of slope |x - z| over the features."""
    prefer_wide_vectors()
    count = centers.shape[1]
    for b in range(size):
        out[l, b] = 0
    for v in range(0, count - 3, 4):
        z0, z1, z2, z3 = centers[l, v], centers[l, v + 1], centers[l, v + 2], centers[l, v + 3]
        s0, s1, s2, s3 = slopes[l, v], slopes[l, v + 1], slopes[l, v + 2], slopes[l, v + 3]
        for b in range(size):
            t0 = abs(columns[v, b] - z0) * s0
            t1 = abs(columns[v + 1, b] - z1) * s1
            t2 = abs(columns[v + 2, b] - z2) * s2
            t3 = abs(columns[v + 3, b] - z3) * s3
            out[l, b] += (t0 + t1) + (t2 + t3)
    for v in range(count - count % 4, count):
        center, slope = centers[l, v], slopes[l, v]
        for b in range(size):
            out[l, b] += abs(columns[v, b] - center) * slope


@njit(**SUMS)
def _compare_lines(doubt, second, lines, nearest, l, offset, factor, size):
    """Mark the rows that may be nearer to centre l; bound the distance of the others."""
    prefer_wide_vectors()
    beyond = second.dtype.type(np.inf)
    count = 0
    for b in range(size):
        near = lines[l, b] <= (nearest[b] + offset) * factor
        doubt[b] = near
        second[b] = smaller(second[b], beyond if near else lines[l, b] - offset)
        count += near
    return count


@njit(**EXACT)
def _assign_rows(
    found,
    nearest,
    second,
    pending_row,
    pending_cluster,
    n_pending,
    rows,
    start,
    old,
    X,
    state,
    scratch,
    geometry,
):
    """Nearest centres of up to BLOCK rows of one old label, as far as tangents tell.

    Pairs of a row and a centre that they leave open are added to the pending ones.
    """
    distances, columns, peaks = scratch.distances, scratch.columns, scratch.peaks
    labels, closest, other = scratch.labels, scratch.nearest, scratch.second
    centers, weights = state.centers, state.scaled_weights
    n_clusters, n_features = centers.shape
    size, features = len(rows), np.arange(n_features)
    width = padded(size)
    transpose(columns, X, rows, size, features)
    for b in range(width):
        labels[b], closest[b], other[b] = n_clusters, np.inf, np.inf
    cheap = _is_cheap(geometry.distances)
    factor = X.dtype.type(1 + (SLACK if X.itemsize == 8 else SLACK_SINGLE))
    cheap |= old < 0
    for j in range(n_clusters):
        # The old centre comes first.
        l = j
        if old >= 0 and j <= old:
            l = old if j == 0 else j - 1
        if not cheap and j > 0:
            _add_lines(distances, columns, centers, scratch.slopes, l, width)
            offset = scratch.offsets[l]
            count = _compare_lines(
                scratch.doubt, other, distances, closest, l, offset, factor, width
            )
        if cheap or j == 0 or count > MANY * width:
            distances_to(
                distances, l, columns, peaks, features, centers, weights, width, geometry
            )
            take_nearer(labels, closest, other, distances, l, width)
        elif count > 0:
            for b in range(size):
                if scratch.doubt[b]:
                    pending_row[n_pending] = rows[b] - start
                    pending_cluster[n_pending] = l
                    n_pending += 1
    for b in range(size):
        i = rows[b] - start
        found[i], nearest[i], second[i] = labels[b], closest[b], other[b]
    return n_pending


@njit(**EXACT)
def _settle_pending(
    found, nearest, second, pending_row, pending_cluster, start, X, state, scratch, geometry
):
    """Measure the distances that the tangents left open."""
    distances, columns, peaks = scratch.distances, scratch.columns, scratch.peaks
    n_clusters, n_features = state.centers.shape
    features = np.arange(n_features)
    order, begin = sort_by_label(pending_cluster, 0, n_clusters)
    for l in range(n_clusters):
        for first in range(begin[l + 1], begin[l + 2], BLOCK):
            size = min(BLOCK, begin[l + 2] - first)
            rows = order[first : first + size]
            for b in range(size):
                rows[b] = start + pending_row[rows[b]]
            transpose(columns, X, rows, size, features)
            distances_to(
                distances,
                l,
                columns,
                peaks,
                features,
                state.centers,
                state.scaled_weights,
                padded(size),
                geometry,
            )
            for b in range(size):
                i, distance = rows[b] - start, distances[l, b]
                if distance < nearest[i] or (distance == nearest[i] and l < found[i]):
                    second[i] = min(second[i], nearest[i])
                    found[i], nearest[i] = l, distance
                else:
                    second[i] = min(second[i], distance)


@njit(**EXACT)
def _report(
    sums, labels, bounds, found, nearest, second, seen, X, sample_weight, start, geometry
):
    """What all rows have to say, and the bounds of those that were looked at."""
    bounded = bounds.shape[1] > 0
    farthest = np.int64(-1)
    for j in range(len(found)):
        i = start + j
        sums.changed[1] += not seen[j]
        if seen[j] and bounded:
            bounds[UPPER, i] = WIDER * nearest[j] ** (1 / geometry.p)
            bounds[LOWER, i] = NARROWER * second[j] ** (1 / geometry.p)
        if sample_weight[i] == 0:
            continue
        sums.mass[found[j]] += sample_weight[i]
        sums.fingerprint[found[j]] += hash_of(np.uint64(i))
        sums.changed[0] += found[j] != labels[i]
        if seen[j] and nearest[j] > sums.farthest[0]:
            sums.farthest[0] = nearest[j]
            farthest = i
    if farthest >= 0:
        for v in range(X.shape[1]):
            sums.farthest_row[v] = X[farthest, v]


@njit(**EXACT)
def _add_movers(sums, labels, found, X, sample_weight, start, state, geometry):
    """Add the pulls of rows at the centres they join, subtract them at those they leave."""
    if sums.changed[0] == 0:
        return
    moving = np.full(len(found), -1, dtype=np.int32)
    for sign in (1, -1):
        for j in range(len(found)):
            old = labels[start + j]
            moves = found[j] != old and sample_weight[start + j] > 0
            moving[j] = (found[j] if sign == 1 else old) if moves else -1
        _add_pulls_of(sums, moving, sign, X, sample_weight, start, labels, state, geometry)


@njit(**EXACT)
def _add_pulls_of(sums, moving, sign, X, sample_weight, start, labels, state, geometry):
    n_clusters, n_features = state.centers.shape
    columns = buffer(n_features, X)
    powers = buffer(n_features if geometry.p > 2 else np.int64(1), X)
    row_weights = buffer(np.int64(1), X)[0]
    features = np.arange(n_features)
    order, begin = sort_by_label(moving, start, n_clusters)
    for l in range(n_clusters):
        for first in range(begin[l + 1], begin[l + 2], BLOCK):
            size = min(BLOCK, begin[l + 2] - first)
            rows = order[first : first + size]
            for b in range(padded(size)):
                row_weights[b] = sign * sample_weight[rows[b]] if b < size else 0
            transpose(columns, X, rows, size, features)
            scales = state.brackets.scale
            if labels[rows[0]] < 0:
                add_moments(
                    sums.terms,
                    l,
                    features,
                    columns,
                    row_weights,
                    state.centers,
                    scales,
                    padded(size),
                )
            else:
                add_members(
                    sums.terms,
                    l,
                    features,
                    columns,
                    row_weights,
                    powers,
                    state.centers,
                    scales,
                    padded(size),
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
