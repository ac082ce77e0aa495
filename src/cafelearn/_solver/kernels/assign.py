"""One chunk of rows: distances to every centre (Eq. 2), labels, and mergeable sums.

Rows are taken in blocks and transposed, so that the innermost loops run over rows and
vectorise for any number of features. Nothing of size n x k or n x m is ever made.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from cafelearn._solver.kernels.blocks import (
    block_rows,
    buffer,
    padded,
    sort_by_label,
    sort_members,
    transpose,
)
from cafelearn._solver.kernels.compiling import EXACT, MAKES, ONE, SUMS, njit
from cafelearn._solver.kernels.power import (
    CUBE,
    LARGEST_DIRECT,
    SQUARE,
    NegativePlan,
    PowerPlan,
    add_cubes,
    add_powers,
    add_relative_powers,
    add_squares,
    find_peaks,
    negative_plan,
    power_plan,
)
from cafelearn._solver.kernels.pulls import add_extrema, add_members
from cafelearn._solver.kernels.vectors import larger, prefer_wide_vectors, smaller

# Features summed before looking whether a centre is already too far for a whole block.
STEP = 16


def chunk_rows(n_features):
    """Rows that make one chunk: as many as the second cache holds, whatever runs them."""
    return int(min(max(2**18 // n_features, 256), 8192))


class Geometry(NamedTuple):
    """The exponent and everything that follows from it and the data's type."""

    p: float
    distances: PowerPlan  # raises to p
    coarse: PowerPlan  # the same in single precision
    coarse_root: PowerPlan  # raises to 1/p in single precision
    positive: PowerPlan  # raises to p - 2, for p > 2
    negative: NegativePlan  # raises to p - 2, for p < 2
    rooted: bool  # distances are kept as their p-th root: p-th powers would overflow
    tolerance: float  # accepted error of a centre, in units of its members' range


def make_geometry(p, dtype):
    """The geometry of exponent `p` for data of `dtype`."""
    return _make_geometry(float(p), np.dtype(dtype))


@lru_cache(maxsize=64)
def _make_geometry(p, dtype):
    return Geometry(
        p,
        power_plan(p, dtype),
        power_plan(p, np.float32),
        power_plan(1 / p, np.float32),
        power_plan(max(p - 2, 0.0), dtype),
        negative_plan(p - 2 if p < 2 else -0.5, dtype),
        bool(p > LARGEST_DIRECT[dtype]),
        1e-10 if dtype == np.float64 else 2e-7,
    )


@njit(**EXACT)
def add_features(out, l, columns, features, centers, weights, size, plan):
    """out[l, b] += |weights (x - centers)|^p of these features, by the plan of p."""
    if plan.branch == SQUARE:
        add_squares(out, l, columns, features, centers, weights, size)
    elif plan.branch == CUBE:
        add_cubes(out, l, columns, features, centers, weights, size)
    else:
        add_powers(out, l, columns, features, centers, weights, l, size, plan)


@njit(**EXACT)
def distances_to(out, l, columns, peaks, features, centers, weights, size, geometry):
    """Distances (Eq. 2; its p-th root if geometry.rooted) of a transposed block to centre l."""
    for b in range(size):
        out[l, b] = 0
    if not geometry.rooted:
        add_features(out, l, columns, features, centers, weights, size, geometry.distances)
        return
    find_peaks(peaks, l, columns, centers, weights, size)
    for b in range(size):
        peaks[l, b] = 1 / peaks[l, b] if peaks[l, b] > 0 else 1
    add_relative_powers(out, l, columns, centers, weights, peaks, size, geometry.distances)
    for b in range(size):
        out[l, b] = out[l, b] ** (1 / geometry.p) / peaks[l, b]


@njit(**SUMS)
def _all_beyond(distances, l, nearest, size):
    """Whether every row is farther from centre l than from its nearest so far."""
    prefer_wide_vectors()
    closest = nearest[0] - distances[l, 0]
    for b in range(size):
        closest = larger(closest, nearest[b] - distances[l, b])
    return closest < 0


@njit(**SUMS)
def take_nearer(labels, nearest, second, distances, l, size):
    """Move the rows that are nearer to centre l; the lower index wins a tie.

    `second` keeps the distance to the next nearest.
    """
    prefer_wide_vectors()
    for b in range(size):
        tie = (distances[l, b] == nearest[b]) & (l < labels[b])
        closer = (distances[l, b] < nearest[b]) | tie
        labels[b] = l if closer else labels[b]
        other = nearest[b] if closer else distances[l, b]
        nearest[b] = distances[l, b] if closer else nearest[b]
        second[b] = smaller(second[b], other)


@njit(**EXACT)
def _assign_block(labels, nearest, guess, scratch, features, centers, weights, size, geometry):
    """Nearest centre of each row of a transposed block.

    All distances are sums of terms >= 0, so a centre is given up as soon as its partial sums
    exceed the best distance of every row. Blocks of rows that had the same label before
    (`guess`, or -1) begin with that centre, and most others are given up early; the labels
    are those of the full computation, bit for bit.
    """
    distances, columns, peaks, second = scratch
    n_clusters, n_features = centers.shape
    for b in range(size):
        labels[b] = 0
        nearest[b] = second[b] = np.inf
    if guess >= 0:
        distances_to(
            distances, guess, columns, peaks, features, centers, weights, size, geometry
        )
        take_nearer(labels, nearest, second, distances, guess, size)
    for l in range(n_clusters):
        if l == guess:
            continue
        if geometry.rooted:
            distances_to(
                distances, l, columns, peaks, features, centers, weights, size, geometry
            )
            take_nearer(labels, nearest, second, distances, l, size)
            continue
        for b in range(size):
            distances[l, b] = 0
        step = STEP if guess >= 0 else n_features
        for first in range(0, n_features, step):
            add_features(
                distances,
                l,
                columns,
                features[first : first + step],
                centers,
                weights,
                size,
                geometry.distances,
            )
            if guess >= 0 and _all_beyond(distances, l, nearest, size):
                break
        else:
            take_nearer(labels, nearest, second, distances, l, size)


@njit(**MAKES)
def _scratch(X, n_clusters):
    """Buffers for the distances, the transposed rows, their peaks and second distances."""
    columns, second = buffer(X.shape[1], X), buffer(ONE, X)[0]
    return buffer(n_clusters, X), columns, buffer(n_clusters, X), second


@njit(**MAKES)
def distance_chunk(out, X, start, stop, centers, weights, geometry):
    """Distances of the rows start <= i < stop to each centre; OUT out (stop - start, k)."""
    n_clusters, n_features = centers.shape
    distances, columns, peaks, _ = _scratch(X, n_clusters)
    features = np.arange(n_features)
    for first in range(start, stop, block_rows(X)):
        size = min(block_rows(X), stop - first)
        transpose(columns, X, np.arange(first, first + size), size, features)
        for l in range(n_clusters):
            distances_to(
                distances,
                l,
                columns,
                peaks,
                features,
                centers,
                weights,
                padded(size),
                geometry,
            )
            for b in range(size):
                out[first - start + b, l] = distances[l, b]


@njit(**MAKES)
def assign_chunk(labels, nearest, X, start, stop, centers, weights, geometry):
    """Labels and distances to the nearest centre of the rows start <= i < stop.

    OUT labels, nearest (stop - start,)
    """
    n_clusters, n_features = centers.shape
    scratch = _scratch(X, n_clusters)
    features = np.arange(n_features)
    block_labels = np.empty(block_rows(X), dtype=np.int32)
    block_nearest = buffer(ONE, X)[0]
    for first in range(start, stop, block_rows(X)):
        size = min(block_rows(X), stop - first)
        transpose(scratch[1], X, np.arange(first, first + size), size, features)
        _assign_block(
            block_labels,
            block_nearest,
            np.int64(-1),
            scratch,
            features,
            centers,
            weights,
            padded(size),
            geometry,
        )
        for b in range(size):
            labels[first - start + b] = block_labels[b]
            nearest[first - start + b] = block_nearest[b]


@njit(**MAKES)
def project_rows(X, direction):
    """The product of each row with `direction`, equal for equal rows wherever they stand."""
    out = np.empty(len(X))
    for i in range(len(X)):
        total = 0.0
        for v in range(X.shape[1]):
            total += X[i, v] * direction[v]
        out[i] = total
    return out


@njit(**EXACT)
def hash_of(number):
    """A well-mixed 64-bit number (the finaliser of SplitMix64)."""
    mixed = number + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@njit(**MAKES)
def relabel_chunk(
    sums, labels, X, sample_weight, start, stop, centers, weights, brackets, geometry
):
    """Assign the rows of a chunk, and sum them about the centres they were assigned by.

    Rows are taken by their old label. Those that keep it are summed from the block at hand;
    those that move are gathered once more, by their new label.

    IN  labels of the whole data, updated in place; weights are scaled
    OUT all of sums
    """
    n_clusters, n_features = centers.shape
    scratch = _scratch(X, n_clusters)
    columns = scratch[1]
    powers = buffer(n_features if geometry.p > 2 else ONE, X)
    features = np.arange(n_features)
    block_labels = np.empty(block_rows(X), dtype=np.int32)
    nearest, row_weights = buffer(ONE, X)[0], buffer(ONE, X)[0]
    movers = np.full(stop - start, -1, dtype=np.int32)
    farthest = np.int64(-1)
    rows_by_label, begin = sort_by_label(labels[start:stop], start, n_clusters)
    for group in range(n_clusters + 1):
        old = group - 1
        for first in range(begin[group], begin[group + 1], block_rows(X)):
            size = min(block_rows(X), begin[group + 1] - first)
            rows = rows_by_label[first : first + size]
            transpose(columns, X, rows, size, features)
            _assign_block(
                block_labels,
                nearest,
                old,
                scratch,
                features,
                centers,
                weights,
                padded(size),
                geometry,
            )
            stayer, farthest = _report(
                sums,
                labels,
                movers,
                row_weights,
                farthest,
                old,
                rows,
                start,
                block_labels,
                nearest,
                sample_weight,
            )
            if stayer >= 0:
                _hide_rows(columns, row_weights, stayer, padded(size))
                add_extrema(sums.low, sums.high, old, features, columns, padded(size))
                add_members(
                    sums.terms,
                    old,
                    features,
                    columns,
                    row_weights,
                    powers,
                    centers,
                    brackets.scale,
                    padded(size),
                    geometry,
                )
    if farthest >= 0:
        for v in range(n_features):
            sums.farthest_row[v] = X[farthest, v]
    if sums.changed[0] > 0:
        sorted_rows = sort_by_label(movers, start, n_clusters)
        yes = np.bool_(True)
        _add_rows(sums, sorted_rows, X, sample_weight, centers, brackets, geometry, yes, yes)


@njit(**EXACT)
def _report(
    sums,
    labels,
    movers,
    row_weights,
    farthest,
    old,
    rows,
    start,
    block_labels,
    nearest,
    sample_weight,
):
    """What the rows of a block have to say, and which of them move.

    Returns the last one that stays, and the index of the one that is the farthest so far (of
    equals the first); -1 if there is none.
    """
    stayer = np.int64(-1)
    # Of the rows that stay: a number that waits in memory is slow to be added to.
    way, mass, fingerprint = sums.farthest[0], 0.0, np.uint64(0)
    if old >= 0:
        mass = sums.mass[old]
    for b in range(padded(len(rows))):
        row_weights[b] = 0
    for b in range(len(rows)):
        i, label = rows[b], block_labels[b]
        labels[i] = label
        if sample_weight[i] == 0:
            continue
        if nearest[b] > way or (nearest[b] == way and i < farthest):
            way, farthest = np.float64(nearest[b]), i
        if label == old:
            stayer = b
            row_weights[b] = sample_weight[i]
            mass += sample_weight[i]
            fingerprint += hash_of(np.uint64(i))
        else:
            sums.changed[0] += 1
            sums.fingerprint[label] += hash_of(np.uint64(i))
            movers[i - start] = label
    sums.farthest[0] = way
    if old >= 0:
        sums.mass[old] = mass
        sums.fingerprint[old] += fingerprint
    return stayer, farthest


@njit(**EXACT)
def _hide_rows(columns, row_weights, shown, size):
    """Overwrite the rows of weight 0 with copies of one that counts."""
    for b in range(size):
        if row_weights[b] == 0:
            for v in range(columns.shape[0]):
                columns[v, b] = columns[v, shown]


@njit(**MAKES)
def member_chunk(
    sums,
    labels,
    X,
    sample_weight,
    start,
    stop,
    centers,
    brackets,
    geometry,
    everything,
    ranges,
):
    """Sums of the rows of a chunk about their own centres.

    For all features, or else for the open ones; with `ranges`, also the members' extrema.
    OUT sums.mass, terms, low, high
    """
    sorted_rows = sort_members(labels, sample_weight, start, stop, len(centers))
    _add_rows(
        sums, sorted_rows, X, sample_weight, centers, brackets, geometry, everything, ranges
    )


@njit(**EXACT)
def weigh_rows(row_weights, mass, l, rows, sample_weight):
    """Weights of a block of rows of cluster l, 0 for the padding; they add to its mass."""
    size, total = len(rows), mass[l]
    for b in range(padded(size)):
        row_weights[b] = 0
    for b in range(size):
        row_weights[b] = sample_weight[rows[b]]
        total += sample_weight[rows[b]]
    mass[l] = total


@njit(**MAKES)
def _add_rows(
    sums, sorted_rows, X, sample_weight, centers, brackets, geometry, everything, ranges
):
    """Sums over rows that come with where each cluster begins, see sort_by_label."""
    n_clusters, n_features = centers.shape
    rows_by_cluster, begin = sorted_rows
    columns = buffer(n_features, X)
    powers = buffer(n_features if geometry.p > 2 else ONE, X)
    row_weights = buffer(ONE, X)[0]
    for l in range(n_clusters):
        features = np.arange(n_features) if everything else np.nonzero(brackets.open[l])[0]
        if len(features) == 0:
            continue
        for first in range(begin[l + 1], begin[l + 2], block_rows(X)):
            size = min(block_rows(X), begin[l + 2] - first)
            rows = rows_by_cluster[first : first + size]
            weigh_rows(row_weights, sums.mass, l, rows, sample_weight)
            transpose(columns, X, rows, size, features)
            if ranges:
                add_extrema(sums.low, sums.high, l, features, columns, padded(size))
            add_members(
                sums.terms,
                l,
                features,
                columns,
                row_weights,
                powers,
                centers,
                brackets.scale,
                padded(size),
                geometry,
            )
