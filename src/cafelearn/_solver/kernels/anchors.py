"""Large data and p < 2: looks at a centre that need only the members near it.

For p < 2 the gradient has a vertical tangent at every data value, so that the search for a
centre takes several looks. But only values close by make it rough. Seen from an anchor a,
what the values farther away than a window contribute at a place z near a is a Taylor
series in z - a, whose coefficients one look can sum:

    -sum sign(t) |t|^q (1 - u/t)^q,  t = s (x - a) with |t| > window,  u = s (z - a).

A look at an anchor sums these coefficients and collects the values inside the window; the
looks that follow sum the collected values alone. They are a few in a hundred.
"""

import numpy as np

from cafelearn._solver.kernels.assign import weigh_rows
from cafelearn._solver.kernels.blocks import block_rows, buffer, padded, sort_members, transpose
from cafelearn._solver.kernels.brackets import ALL, EACH, NEAR, list_open
from cafelearn._solver.kernels.compiling import EXACT, MAKES, ONE, ZERO, njit
from cafelearn._solver.kernels.lists import Values, append_values, copy_values, keep, was_kept
from cafelearn._solver.kernels.pairs import WORTH_COUNTING, add_counted, count_pairs, is_pair
from cafelearn._solver.kernels.power import negative_powers
from cafelearn._solver.kernels.pulls import add_extrema, add_members, sum_near
from cafelearn._solver.kernels.series import add_far
from cafelearn._solver.kernels.sums import (
    ABOVE,
    AT_ABOVE,
    AT_BELOW,
    BELOW,
    COUNT,
    CURVE_DOWN,
    PULL_DOWN,
    SPREAD,
)
from cafelearn._solver.kernels.vectors import LANES, inside_window, lowest_bit


@njit(**MAKES)
def scratch_for(X, lists, brackets, n_rows):
    """Room for the values of up to n_rows while they are collected, and for their weights,
    or for none if no look collects any.

    Made once for many chunks: memory that is given back and asked for again is new each time
    where the allocator does not keep any, as in the workers of Dask.
    """
    n_features = X.shape[1]
    collecting = (brackets.window > 0).any()
    weighted = lists.weights.shape[1] > 0
    near = np.empty((n_features, n_rows if collecting else 0), dtype=X.dtype)
    size = n_rows if collecting and weighted else 0
    return near, np.empty((n_features, size), dtype=X.dtype)


@njit(**EXACT)
def _collect(near, near_weights, counts, l, features, columns, row_weights, size, brackets):
    """Append the values of a block that are inside the windows."""
    weighted = near_weights.shape[1] > 0
    for v in features:
        anchor = brackets.anchor[l, v]
        scale = columns.dtype.type(brackets.scale[l, v])
        window = columns.dtype.type(brackets.window[l, v])
        values, count = columns[v], counts[v]
        for first in range(0, size, LANES):
            inside = inside_window(values, first, anchor, scale, window)
            while inside != 0:
                b = first + np.int64(lowest_bit(inside))
                inside &= inside - np.uint64(1)
                if b < size:
                    near[v, count] = values[b]
                    if weighted:
                        near_weights[v, count] = row_weights[b]
                    count += 1
        counts[v] = count


@njit(**MAKES)
def look_chunk(
    sums,
    labels,
    lists,
    scratch,
    pair,
    chunk,
    X,
    sample_weight,
    start,
    stop,
    centers,
    brackets,
    geometry,
    ranges,
):
    """A look at all members, for the centres that ask for it.

    Those with a window get the coefficients of the series in sums.far, and the usual terms of
    the values inside, which are collected; the others get the terms of all members. With
    `ranges`, the members' extrema too. `scratch` is of scratch_for; `pair` (2, m) has the
    values of this chunk that kernels.pairs finds.
    OUT sums.mass, terms, far, low, high; lists of this chunk
    """
    n_clusters, n_features = centers.shape
    rows_by_cluster, begin = sort_members(labels, sample_weight, start, stop, n_clusters)
    columns = buffer(n_features, X)
    powers = buffer(n_features if geometry.p > 2 else ONE, X)
    row_weights = buffer(ONE, X)[0]
    near, near_weights = scratch
    mass, terms, far, low, high = sums.mass, sums.terms, sums.far, sums.low, sums.high
    scale, anchor, window = brackets.scale, brackets.anchor, brackets.window
    negative, keeping = geometry.negative, len(lists.complete) > 0
    names, counted = np.empty((4, n_features), dtype=np.int64), np.empty((2, n_features))
    if keeping:
        lists.complete[chunk] = True
    used = ZERO
    for l in range(n_clusters):
        first, last = begin[l + 1], begin[l + 2]
        n_all, n_plain, n_anchored, n_paired = _list_asked(
            names, brackets.open[l], window[l], pair, last - first >= WORTH_COUNTING
        )
        asked, plain = names[0][:n_all], names[1][:n_plain]
        anchored, paired = names[2][:n_anchored], names[3][:n_paired]
        if keeping:
            lists.mass[chunk, l] = 0
            lists.end[chunk, l] = used
        if len(asked) == 0:
            continue
        collecting = len(anchored) > 0
        counted[:] = 0
        counts = np.zeros(n_features, dtype=np.int64)
        for at in range(first, last, block_rows(X)):
            size = min(block_rows(X), last - at)
            rows = rows_by_cluster[at : at + size]
            weigh_rows(row_weights, mass, l, rows, sample_weight)
            transpose(columns, X, rows, size, asked)
            if len(paired) > 0:
                count_pairs(counted, paired, columns, row_weights, pair, padded(size))
            if ranges:
                add_extrema(low, high, l, plain, columns, padded(size))
                add_extrema(low, high, l, anchored, columns, padded(size))
            if len(plain) > 0:
                add_members(
                    terms,
                    l,
                    plain,
                    columns,
                    row_weights,
                    powers,
                    centers,
                    scale,
                    padded(size),
                    geometry,
                )
            if len(anchored) > 0:
                add_far(
                    far,
                    l,
                    anchored,
                    columns,
                    row_weights,
                    anchor,
                    scale,
                    window,
                    padded(size),
                    negative,
                )
            if collecting:
                _collect(
                    near,
                    near_weights,
                    counts,
                    l,
                    anchored,
                    columns,
                    row_weights,
                    size,
                    brackets,
                )
        add_counted(sums, l, paired, counted, pair, centers, scale, geometry.p)
        if keeping:
            lists.mass[chunk, l] = mass[l]
        if collecting:
            values, weights = _from_rows(near, near_weights, anchored, counts)
            add_near(
                terms[l], l, anchored, counts, values, weights, centers, brackets, geometry
            )
            for v in anchored:
                terms[l, COUNT, v] = counts[v]
        if keeping and collecting and lists.complete[chunk]:
            used = keep(lists, chunk, l, used, near, near_weights, counts)
    if keeping and not lists.complete[chunk]:
        for l in range(n_clusters):
            for v in range(n_features):
                if brackets.open[l, v] == ALL and window[l, v] > 0:
                    terms[l, COUNT, v] = np.inf


@njit(**EXACT)
def _list_asked(room, open, window, pair, counting):
    """List the features that ask for a look: all, those without and those with a window, and
    those without that have no more than two values, if these are to be counted.

    Returns how many there are of each.
    """
    n_asked = list_open(room[0], open, ALL)
    n_plain = n_anchored = n_paired = 0
    for v in room[0, :n_asked]:
        if window[v] > 0:
            room[2, n_anchored] = v
            n_anchored += 1
        elif counting and is_pair(pair, v):
            room[3, n_paired] = v
            n_paired += 1
        else:
            room[1, n_plain] = v
            n_plain += 1
    return n_asked, n_plain, n_anchored, n_paired


@njit(**MAKES)
def near_chunk(
    sums, labels, lists, chunk, X, sample_weight, start, stop, centers, brackets, geometry
):
    """A look at the values near the anchors, for the centres that ask for it.

    From the lists, or, where they were not kept, from the rows.
    OUT sums.mass, terms
    """
    n_clusters, n_features = centers.shape
    if was_kept(lists, chunk):
        size = lists.end[chunk, n_clusters - 1, n_features - 1]
        values, weights = np.empty(size, dtype=X.dtype), np.empty(size, dtype=X.dtype)
        scratch = np.empty_like(values), np.empty_like(values)
        names = np.empty(n_features, dtype=np.int64), np.empty(n_features, dtype=np.int64)
        _look_at_list(
            sums, lists, chunk, values, weights, scratch, names, centers, brackets, geometry
        )
        return
    members = sort_members(labels, sample_weight, start, stop, n_clusters)
    columns = buffer(n_features, X)
    for l in range(n_clusters):
        features = np.nonzero(brackets.open[l] == NEAR)[0]
        if len(features) == 0:
            continue
        counts = np.zeros(n_features, dtype=np.int64)
        values, weights = _near_values(
            sums.mass, members, columns, l, X, sample_weight, features, counts, brackets
        )
        add_near(
            sums.terms[l], l, features, counts, values, weights, centers, brackets, geometry
        )


@njit(**EXACT)
def _look_at_list(
    sums, lists, chunk, values, weights, scratch, names, centers, brackets, geometry
):
    """A look at the list of a chunk; `names` is room for features and their counts."""
    features, counts = names
    for l in range(len(centers)):
        wanted = features[: list_open(features, brackets.open[l], NEAR)]
        if len(wanted) == 0:
            continue
        sums.mass[l] = lists.mass[chunk, l]
        size = copy_values(values, weights, counts, lists, chunk, l, wanted)
        scaled, pulls = scratch
        sum_values(
            sums.terms[l],
            l,
            wanted,
            counts,
            values[:size],
            weights[:size],
            (scaled[:size], pulls[:size]),
            centers,
            brackets,
            geometry,
        )


@njit(**MAKES)
def _near_values(mass, members, columns, l, X, sample_weight, features, counts, brackets):
    """The values of some features of a cluster that are inside the windows, one feature after
    the other, and their weights, from the rows.

    OUT counts (m,), how many there are of each feature; mass of the cluster
    """
    rows_by_cluster, begin = members
    first, last = begin[l + 1], begin[l + 2]
    near = np.empty((X.shape[1], last - first), dtype=X.dtype)
    near_weights = np.empty_like(near)
    row_weights = buffer(ONE, X)[0]
    for at in range(first, last, block_rows(X)):
        size = min(block_rows(X), last - at)
        rows = rows_by_cluster[at : at + size]
        weigh_rows(row_weights, mass, l, rows, sample_weight)
        transpose(columns, X, rows, size, features)
        _collect(near, near_weights, counts, l, features, columns, row_weights, size, brackets)
    return _from_rows(near, near_weights, features, counts)


@njit(**MAKES)
def gather(labels, lists, X, sample_weight, rows_per_chunk, brackets, counts):
    """The values near the anchors whose centres want EACH of them, in the order of the rows.

    `counts` (k, m) tells how many there are at most.
    """
    n_clusters, n_features = counts.shape
    begin, total = np.zeros((n_clusters, n_features), dtype=np.int64), 0
    for l in range(n_clusters):
        for v in range(n_features):
            begin[l, v] = total
            if brackets.open[l, v] == EACH:
                total += np.int64(counts[l, v])
    found = Values(
        begin, begin.copy(), np.empty(total, dtype=X.dtype), np.ones(total, dtype=X.dtype)
    )
    if total > 0:
        for chunk in range(-(-len(X) // rows_per_chunk)):
            start = chunk * rows_per_chunk
            stop = min(start + rows_per_chunk, len(X))
            if was_kept(lists, chunk):
                append_values(found, lists, chunk, brackets)
            else:
                _append_rows(found, labels, X, sample_weight, start, stop, brackets)
    return found


@njit(**MAKES)
def _append_rows(found, labels, X, sample_weight, start, stop, brackets):
    n_clusters, n_features = found.begin.shape
    members = sort_members(labels, sample_weight, start, stop, n_clusters)
    mass, columns = np.zeros(n_clusters), buffer(n_features, X)
    for l in range(n_clusters):
        features = np.nonzero(brackets.open[l] == EACH)[0]
        if len(features) == 0:
            continue
        counts = np.zeros(n_features, dtype=np.int64)
        values, weights = _near_values(
            mass, members, columns, l, X, sample_weight, features, counts, brackets
        )
        at = 0
        for v in features:
            into = found.end[l, v]
            found.values[into : into + counts[v]] = values[at : at + counts[v]]
            found.weights[into : into + counts[v]] = weights[at : at + counts[v]]
            found.end[l, v] += counts[v]
            at += counts[v]


@njit(**MAKES)
def _from_rows(near, near_weights, features, counts):
    """What _collect has found, one feature after the other, and the weights."""
    total, weighted = counts.sum(), near_weights.shape[1] > 0
    values, weights = np.empty(total, dtype=near.dtype), np.ones(total, dtype=near.dtype)
    at = 0
    for v in features:
        for b in range(counts[v]):
            values[at] = near[v, b]
            if weighted:
                weights[at] = near_weights[v, b]
            at += 1
    return values, weights


@njit(**MAKES)
def add_near(terms, l, features, counts, values, weights, centers, brackets, geometry):
    """sum_values, which makes its own room."""
    scratch = np.empty_like(values), np.empty_like(values)
    sum_values(
        terms, l, features, counts, values, weights, scratch, centers, brackets, geometry
    )


@njit(**EXACT)
def sum_values(
    terms, l, features, counts, values, weights, scratch, centers, brackets, geometry
):
    """Set the terms of a cluster by the values of some features, one after the other.

    They are few for each feature, so the powers are taken of all together.
    """
    number = values.dtype.type
    scaled, pulls = scratch
    at = 0
    for v in features:
        center, scale = centers[l, v], number(brackets.scale[l, v])
        for i in range(at, at + counts[v]):
            scaled[i] = (values[i] - center) * scale
        at += counts[v]
    negative_powers(pulls, scaled, weights, geometry.negative, geometry.distances)
    at = ZERO
    for v in features:
        found = sum_near(values, scaled, pulls, weights, at, counts[v], centers[l, v])
        at += counts[v]
        terms[PULL_DOWN, v], terms[CURVE_DOWN, v], terms[SPREAD, v] = found[:3]
        terms[BELOW, v], terms[AT_BELOW, v], terms[ABOVE, v], terms[AT_ABOVE, v] = found[3:]
