"""Chunks of rows with missing values (NaN): labels, distances and mergeable sums.

A missing value (a gap) of feature v counts as a value at the typical distance r from the centre
of cluster l, where r^p is the mean of |x - z|^p over the members with an observed value. A gap
therefore adds as much to the distance of a row as an average member's value. Sums over observed
values are scaled up to all members.

The kernels are plain loops over rows, features and clusters. They are neither compiled nor run
for complete data.
"""

import numpy as np

from cafelearn.kmeans.kernels.assign import hash_of
from cafelearn.kmeans.kernels.cells import CENTER, OPEN, SCALE, SCALED_WEIGHT
from cafelearn.kmeans.kernels.compiling import ENTRY, EXACT, njit
from cafelearn.kmeans.kernels.neighbours import EQUAL, EQUAL_SINGLE
from cafelearn.kmeans.kernels.sums import (
    ABOVE,
    AT_ABOVE,
    AT_BELOW,
    BELOW,
    CHANGED,
    CURVATURE_ABOVE,
    CURVATURE_BELOW,
    FARTHEST,
    FARTHEST_ROW,
    GRADIENT_ABOVE,
    GRADIENT_BELOW,
    HIGH,
    LOW,
    MASS,
    MASS_OF_ALL,
    N_SUMMED,
    SPREAD,
    add_member,
    add_neighbour,
)

# Sums of powers between these bounds are accurate: nothing has overflowed or underflowed.
SMALL, LARGE = 1e-250, 1e250


@njit(**EXACT)
def _power(base, p):
    """Compute base^p for base >= 0."""
    if p == 2:
        return base * base
    if p == 3:
        return base * base * base
    return base**p


@njit(**EXACT)
def _term(row, v, cells, typical):
    x = np.float64(row[v])
    away = typical[v] if np.isnan(x) else abs(x - cells[CENTER, v])
    return cells[SCALED_WEIGHT, v] * away


@njit(**EXACT)
def _sum_of_powers(row, cells, typical, p, unit):
    total = 0.0
    for v in range(len(row)):
        total += _power(_term(row, v, cells, typical) / unit, p)
    return total


@njit(**EXACT)
def _distance(row, cells, typical, p):
    """Compute the distance (the p-th root of Eq. 2) of a row to the centre of these cells."""
    total = _sum_of_powers(row, cells, typical, p, 1.0)
    if SMALL < total < LARGE:
        return np.sqrt(total) if p == 2 else total ** (1 / p)
    # Powers overflow or underflow, or almost do: divide the terms by the largest one.
    peak = 0.0
    for v in range(len(row)):
        peak = max(peak, _term(row, v, cells, typical))
    if peak == 0:
        return 0.0
    return peak * _sum_of_powers(row, cells, typical, p, peak) ** (1 / p)


@njit(**ENTRY)
def gapped_distances(out, X, cells, typical, p):
    """Compute the distances of rows to each centre.

    IN  cells (k, SCALED_WEIGHT + 1 or more, m); typical (k, m): the typical distances
    OUT out (n, k)
    """
    for i in range(len(X)):
        for l in range(len(cells)):
            out[i, l] = _distance(X[i], cells[l], typical[l], p)


@njit(**ENTRY)
def gapped_assign_chunk(sums, labels, X, sample_weight, first_row, cells, typical, geometry):
    """Assign the rows of a chunk, and sum them about the old centres.

    IN  first_row: the index of the first row in the data; typical as in `gapped_distances`
    OUT sums; labels
    """
    common, farthest = sums[len(cells)], -1
    for i in range(len(X)):
        label, best = 0, np.inf
        for l in range(len(cells)):
            away = _distance(X[i], cells[l], typical[l], geometry.p)
            if away < best:
                label, best = l, away
        old, labels[i] = labels[i], label
        if sample_weight[i] == 0:
            continue
        common[CHANGED, 0] += label != old
        add_member(sums, label, hash_of(np.uint64(first_row + i)))
        if best > common[FARTHEST, 0]:
            common[FARTHEST, 0], farthest = best, i
        _add_row(sums[label], X[i], sample_weight[i], cells[label], geometry, True)
    if farthest >= 0:
        for v in range(X.shape[1]):
            x = np.float64(X[farthest, v])
            center = cells[labels[farthest], CENTER, v]
            common[FARTHEST_ROW, v] = center if np.isnan(x) else x


@njit(**ENTRY)
def gapped_member_chunk(sums, labels, X, sample_weight, cells, geometry, everything):
    """Sum the rows of a chunk about the centres of their clusters.

    If `everything`, sum all features and update the members' extrema; else sum only the
    features whose centre has not converged.
    """
    for i in range(len(X)):
        if sample_weight[i] > 0:
            l = labels[i]
            _add_row(sums[l], X[i], sample_weight[i], cells[l], geometry, everything)


@njit(**EXACT)
def _add_row(terms, row, weight, cells, geometry, everything):
    """Add the observed values of a row to the sums of its cluster."""
    p, equal = geometry.p, EQUAL_SINGLE if geometry.single else EQUAL
    terms[MASS_OF_ALL, 0] += weight
    for v in range(len(row)):
        x = np.float64(row[v])
        if np.isnan(x):
            continue
        terms[MASS, v] += weight
        if everything:
            terms[LOW, v], terms[HIGH, v] = min(terms[LOW, v], x), max(terms[HIGH, v], x)
        elif cells[OPEN, v] == 0:
            continue
        center = cells[CENTER, v]
        t = (x - center) * cells[SCALE, v]
        if p == 2:
            terms[GRADIENT_BELOW, v] -= weight * t
            terms[SPREAD, v] += weight * (t * t)
        elif p > 2:
            _add_sides(terms, v, t, weight, p)
        else:
            if abs(t) > equal:
                curve = weight * abs(t) ** (p - 2)
                terms[GRADIENT_BELOW, v] -= curve * t
                terms[CURVATURE_BELOW, v] += curve
                terms[SPREAD, v] += curve * (t * t)
            if x <= center:
                add_neighbour(terms, v, BELOW, AT_BELOW, x, weight)
            else:
                add_neighbour(terms, v, ABOVE, AT_ABOVE, x, weight)


@njit(**EXACT)
def _add_sides(terms, v, t, weight, p):
    """Add one value to the gradients, curvatures and spread for p > 2."""
    size = abs(t)
    curve = weight * (size if p == 3 else size ** (p - 2))
    if t > 0:
        terms[GRADIENT_ABOVE, v] += curve * size
        terms[CURVATURE_ABOVE, v] += curve
    elif t < 0:
        terms[GRADIENT_BELOW, v] += curve * size
        terms[CURVATURE_BELOW, v] += curve
    terms[SPREAD, v] += curve * (t * t)


@njit(**ENTRY)
def stand_for_all(sums, cells, typical, p):
    """Scale the sums over observed values up to all members, by cluster and feature.

    The factor is the sample weight of all members divided by that of the members with an
    observed value. If no value is observed, members count as placed symmetrically about the
    centre, at the mean typical distance of the other clusters; the centre then does not move.

    IN  typical (k, m)
    OUT sums
    """
    for v in range(sums.shape[2]):
        usual = _mean_of_powers(sums, typical, v, p)
        for l in range(len(cells)):
            terms, mass, observed = sums[l], sums[l, MASS_OF_ALL, 0], sums[l, MASS, v]
            if mass == 0:
                continue
            if observed > 0:
                factor = mass / observed
                for row in range(N_SUMMED):
                    terms[row, v] *= factor
                terms[MASS, v] = mass
                terms[AT_BELOW, v] *= factor
                terms[AT_ABOVE, v] *= factor
            else:
                center, scale = cells[l, CENTER, v], cells[l, SCALE, v]
                terms[LOW, v], terms[HIGH, v] = center - usual, center + usual
                terms[MASS, v] = mass
                terms[SPREAD, v] = mass * _power(usual * scale, p)


@njit(**EXACT)
def _mean_of_powers(sums, typical, v, p):
    """Compute the power mean of typical distances, weighted by the mass of observed values."""
    peak, total, count = 0.0, 0.0, 0.0
    for l in range(len(typical)):
        if sums[l, MASS, v] > 0:
            peak = max(peak, typical[l, v])
    if peak == 0:
        return 0.0
    for l in range(len(typical)):
        total += sums[l, MASS, v] * _power(typical[l, v] / peak, p)
        count += sums[l, MASS, v]
    return peak * (total / count) ** (1 / p)
