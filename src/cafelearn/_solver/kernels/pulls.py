"""What the members of a cluster tell about its centre: mergeable sums over blocks of rows."""

import numpy as np

from cafelearn._solver.kernels.compiling import EXACT, SUMS, njit
from cafelearn._solver.kernels.power import add_powers, negative_power, negative_terms
from cafelearn._solver.kernels.sums import (
    ABOVE,
    AT_ABOVE,
    AT_BELOW,
    BELOW,
    CURVE_DOWN,
    CURVE_UP,
    PULL_DOWN,
    PULL_UP,
    SPREAD,
)
from cafelearn._solver.kernels.vectors import larger, prefer_wide_vectors, smaller

BEYOND, BEYOND_SINGLE = 1e308, 3e38


@njit(**SUMS)
def add_extrema(lows, highs, l, features, columns, size):
    """Smallest and largest member of cluster l, for each of the features."""
    prefer_wide_vectors()
    for j in range(len(features)):
        v = features[j]
        low, high = columns[v, 0], columns[v, 0]
        for b in range(size):
            low = smaller(low, columns[v, b])
            high = larger(high, columns[v, b])
        lows[l, v] = min(lows[l, v], low)
        highs[l, v] = max(highs[l, v], high)


@njit(**SUMS)
def add_moments(terms, l, features, columns, weights, centers, scales, size):
    """Sums of w s (z - x) and w (s (z - x))^2."""
    prefer_wide_vectors()
    zero = columns.dtype.type(0)
    for j in range(len(features)):
        v = features[j]
        center, scale = centers[l, v], columns.dtype.type(scales[l, v])
        first, second = zero, zero
        for b in range(size):
            t = (columns[v, b] - center) * scale
            first -= weights[b] * t
            second += weights[b] * (t * t)
        terms[l, PULL_DOWN, v] += first
        terms[l, SPREAD, v] += second


@njit(**SUMS)
def _add_pulls(terms, l, features, columns, weights, powers, centers, scales, size):
    """The five sums of a centre, from powers[v, b] = |s (x - z)|^(p-2)."""
    prefer_wide_vectors()
    zero = columns.dtype.type(0)
    for j in range(len(features)):
        v = features[j]
        center, scale = centers[l, v], columns.dtype.type(scales[l, v])
        pull_down, pull_up, curve_down, curve_up, spread = zero, zero, zero, zero, zero
        for b in range(size):
            t = (columns[v, b] - center) * scale
            up = larger(t, zero)
            power = weights[b] * powers[v, b]
            pull_up += power * up
            pull_down += power * (up - t)
            spread += power * (t * t)
            curve_up += power if t > zero else zero
            curve_down += power if t < zero else zero
        terms[l, PULL_DOWN, v] += pull_down
        terms[l, PULL_UP, v] += pull_up
        terms[l, CURVE_DOWN, v] += curve_down
        terms[l, CURVE_UP, v] += curve_up
        terms[l, SPREAD, v] += spread


@njit(**SUMS)
def _add_near_pulls(terms, l, features, columns, weights, centers, scales, size, plan):
    """What the search needs for p < 2: gradient, curvature, spread and the neighbours."""
    prefer_wide_vectors()
    zero, middle = columns.dtype.type(0), columns.dtype.type(1.5)
    table, mantissa = plan.table, negative_terms(plan.mantissa)
    # Values on the other side are put out of reach by adding a number, not by a choice
    # between x and infinity: the compiler turns that choice into a branch.
    beyond = columns.dtype.type(BEYOND if columns.itemsize == 8 else BEYOND_SINGLE)
    limit = columns.dtype.type(0.5) * beyond
    for j in range(len(features)):
        v = features[j]
        center, scale = centers[l, v], columns.dtype.type(scales[l, v])
        gradient, curve, spread = zero, zero, zero
        below, above = -beyond, beyond
        for b in range(size):
            x = columns[v, b]
            t = (x - center) * scale
            power = weights[b] * negative_power(t, table, mantissa, middle)
            curve += power
            gradient -= power * t
            spread += power * (t * t)
            below = larger(below, x - (beyond if x > center else zero))
            above = smaller(above, x + (beyond if x <= center else zero))
        terms[l, PULL_DOWN, v] += gradient
        terms[l, CURVE_DOWN, v] += curve
        terms[l, SPREAD, v] += spread
        if below > -limit and below >= terms[l, BELOW, v]:
            if below > terms[l, BELOW, v]:
                terms[l, AT_BELOW, v] = 0
            terms[l, BELOW, v] = below
            terms[l, AT_BELOW, v] += _weight_at(columns, v, weights, below, size)
        if above < limit and above <= terms[l, ABOVE, v]:
            if above < terms[l, ABOVE, v]:
                terms[l, AT_ABOVE, v] = 0
            terms[l, ABOVE, v] = above
            terms[l, AT_ABOVE, v] += _weight_at(columns, v, weights, above, size)


@njit(**SUMS)
def _weight_at(columns, v, weights, place, size):
    """Sample weight of the rows that have this very value."""
    prefer_wide_vectors()
    zero = columns.dtype.type(0)
    total = zero
    for b in range(size):
        total += weights[b] if columns[v, b] == place else zero
    return total


@njit(**SUMS)
def sum_near(values, scaled, powers, weights, first, count, center):
    """The same sums of a few values, with their powers at hand."""
    prefer_wide_vectors()
    number = values.dtype.type
    zero = number(0)
    beyond = number(BEYOND if values.itemsize == 8 else BEYOND_SINGLE)
    gradient, curve, spread = zero, zero, zero
    below, above, at_below, at_above = -beyond, beyond, zero, zero
    for i in range(first, first + count):
        x, t, power = values[i], scaled[i], powers[i]
        pull = power * t
        curve += power
        gradient -= pull
        spread += pull * t
        below = larger(below, x - (beyond if x > center else zero))
        above = smaller(above, x + (beyond if x <= center else zero))
    for i in range(first, first + count):
        at_below += weights[i] if values[i] == below else zero
        at_above += weights[i] if values[i] == above else zero
    limit, nothing = number(0.5) * beyond, number(np.inf)
    below = below if below > -limit else -nothing
    above = above if above < limit else nothing
    return gradient, curve, spread, below, at_below, above, at_above


@njit(**SUMS)
def _add_cubic_pulls(terms, l, features, columns, weights, centers, scales, size):
    """The same sums for p = 3, where the powers are |s (x - z)| themselves."""
    prefer_wide_vectors()
    zero = columns.dtype.type(0)
    for j in range(len(features)):
        v = features[j]
        center, scale = centers[l, v], columns.dtype.type(scales[l, v])
        pull_down, pull_up, curve_down, curve_up, spread = zero, zero, zero, zero, zero
        for b in range(size):
            t = (columns[v, b] - center) * scale
            up = larger(t, zero)
            down = up - t
            heavy_up, heavy_down = weights[b] * up, weights[b] * down
            curve_up += heavy_up
            curve_down += heavy_down
            pull_up += heavy_up * up
            pull_down += heavy_down * down
            spread += (heavy_up + heavy_down) * (t * t)
        terms[l, PULL_DOWN, v] += pull_down
        terms[l, PULL_UP, v] += pull_up
        terms[l, CURVE_DOWN, v] += curve_down
        terms[l, CURVE_UP, v] += curve_up
        terms[l, SPREAD, v] += spread


@njit(**EXACT)
def add_members(terms, l, features, columns, weights, powers, centers, scales, size, geometry):
    """Add a block of rows of cluster l to its terms.

    IN  columns (m, >= size) these features of the rows; weights (size,) of the rows;
        centers, scales (k, m)
    OUT terms (k, N_TERMS, m), for these features; powers, shaped as columns, is scratch
    """
    if geometry.p == 2:
        add_moments(terms, l, features, columns, weights, centers, scales, size)
    elif geometry.p < 2:
        _add_near_pulls(
            terms, l, features, columns, weights, centers, scales, size, geometry.negative
        )
    elif geometry.p == 3:
        _add_cubic_pulls(terms, l, features, columns, weights, centers, scales, size)
    else:
        for v in features:
            for b in range(size):
                powers[v, b] = 0
        own_rows = -len(features)
        add_powers(
            powers, own_rows, columns, features, centers, scales, l, size, geometry.positive
        )
        _add_pulls(terms, l, features, columns, weights, powers, centers, scales, size)
