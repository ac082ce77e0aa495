"""Gradient, curvature and spread sums of a cluster's members about its centre (Eq. 5)."""

from cafelearn.kmeans.kernels.cells import CENTER, SCALE
from cafelearn.kmeans.kernels.compiling import EXACT, SUMS, njit
from cafelearn.kmeans.kernels.power import add_powers, negative_power, split_negative
from cafelearn.kmeans.kernels.sums import (
    ABOVE,
    AT_ABOVE,
    AT_BELOW,
    BELOW,
    CURVATURE_ABOVE,
    CURVATURE_BELOW,
    GRADIENT_ABOVE,
    GRADIENT_BELOW,
    HIGH,
    LOW,
    SPREAD,
    add_neighbour,
)
from cafelearn.kmeans.kernels.vectors import (
    larger,
    maximum,
    minimum,
    prefer_wide_vectors,
    smaller,
)

# Larger than any value of the data.
FARTHEST_NUMBER, FARTHEST_SINGLE = 1e308, 3e38


@njit(**EXACT)
def add_gradients(terms, features, cells, size, geometry, scratch):
    """Add a transposed block of members of one cluster to its sums.

    IN  features: indices; cells (N_CELLS, m); scratch.columns; scratch.weights
    OUT terms (N_ROWS, m)
    """
    columns, weights, powers = scratch.columns, scratch.weights, scratch.powers
    if geometry.p == 2:
        _add_moments(terms, features, columns, weights, cells, size)
    elif geometry.p < 2:
        plan = geometry.curvature
        _add_with_neighbours(terms, features, columns, weights, cells, size, plan)
    elif geometry.p == 3:
        _add_cubic(terms, features, columns, weights, cells, size)
    else:
        for v in features:
            for b in range(size):
                powers[v, b] = 0
        each = -len(features)  # negative: `add_powers` stores each feature in its own row
        center, scale, plan = cells[CENTER], cells[SCALE], geometry.curvature
        add_powers(powers, each, columns, features, center, scale, size, plan)
        _add_from_powers(terms, features, columns, weights, powers, cells, size)


@njit(**SUMS)
def add_extrema(terms, features, columns, size):
    """Update the smallest and the largest value of each of the features."""
    prefer_wide_vectors()
    for j in range(len(features)):
        v = features[j]
        low, high = columns[v, 0], columns[v, 0]
        for b in range(size):
            low = smaller(low, columns[v, b])
            high = larger(high, columns[v, b])
        terms[LOW, v] = minimum(terms[LOW, v], low)
        terms[HIGH, v] = maximum(terms[HIGH, v], high)


@njit(**SUMS)
def _add_moments(terms, features, columns, weights, cells, size):
    """Add the sums for p = 2: w s (z - x) and w (s (z - x))^2."""
    prefer_wide_vectors()
    number = columns.dtype.type
    for j in range(len(features)):
        v = features[j]
        center, scale = number(cells[CENTER, v]), number(cells[SCALE, v])
        first, second = number(0), number(0)
        for b in range(size):
            t = (columns[v, b] - center) * scale
            first -= weights[b] * t
            second += weights[b] * (t * t)
        terms[GRADIENT_BELOW, v] += first
        terms[SPREAD, v] += second


@njit(**SUMS)
def _add_from_powers(terms, features, columns, weights, powers, cells, size):
    """Add gradients, curvatures and spread for p > 2, from powers[v, b] = |s (x - z)|^(p-2)."""
    prefer_wide_vectors()
    number = columns.dtype.type
    zero = number(0)
    for j in range(len(features)):
        v = features[j]
        center, scale = number(cells[CENTER, v]), number(cells[SCALE, v])
        below, above, curve_below, curve_above, spread = zero, zero, zero, zero, zero
        for b in range(size):
            t = (columns[v, b] - center) * scale
            up = larger(t, zero)
            power = weights[b] * powers[v, b]
            above += power * up
            below += power * (up - t)
            spread += power * (t * t)
            curve_above += power if t > zero else zero
            curve_below += power if t < zero else zero
        terms[GRADIENT_BELOW, v] += below
        terms[GRADIENT_ABOVE, v] += above
        terms[CURVATURE_BELOW, v] += curve_below
        terms[CURVATURE_ABOVE, v] += curve_above
        terms[SPREAD, v] += spread


@njit(**SUMS)
def _add_cubic(terms, features, columns, weights, cells, size):
    """Add gradients, curvatures and spread for p = 3."""
    prefer_wide_vectors()
    number = columns.dtype.type
    zero = number(0)
    for j in range(len(features)):
        v = features[j]
        center, scale = number(cells[CENTER, v]), number(cells[SCALE, v])
        below, above, curve_below, curve_above, spread = zero, zero, zero, zero, zero
        for b in range(size):
            t = (columns[v, b] - center) * scale
            up = larger(t, zero)
            down = up - t
            heavy_up, heavy_down = weights[b] * up, weights[b] * down
            curve_above += heavy_up
            curve_below += heavy_down
            above += heavy_up * up
            below += heavy_down * down
            spread += (heavy_up + heavy_down) * (t * t)
        terms[GRADIENT_BELOW, v] += below
        terms[GRADIENT_ABOVE, v] += above
        terms[CURVATURE_BELOW, v] += curve_below
        terms[CURVATURE_ABOVE, v] += curve_above
        terms[SPREAD, v] += spread


@njit(**SUMS)
def _add_with_neighbours(terms, features, columns, weights, cells, size, plan):
    """Add gradient, curvature and spread for p < 2; find the data values next to the centre."""
    prefer_wide_vectors()
    number = columns.dtype.type
    zero, middle = number(0), number(1.5)
    table, mantissa = split_negative(plan)
    # Values on the other side of the centre are moved out of reach by adding a large number. A
    # choice between x and infinity would be compiled to a branch.
    beyond = number(FARTHEST_NUMBER if columns.itemsize == 8 else FARTHEST_SINGLE)
    limit = number(0.5) * beyond
    for j in range(len(features)):
        v = features[j]
        center, scale = number(cells[CENTER, v]), number(cells[SCALE, v])
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
        terms[GRADIENT_BELOW, v] += gradient
        terms[CURVATURE_BELOW, v] += curve
        terms[SPREAD, v] += spread
        if below > -limit and below >= terms[BELOW, v]:
            weight = _weight_at(columns[v], weights, below, size)
            add_neighbour(terms, v, BELOW, AT_BELOW, below, weight)
        if above < limit and above <= terms[ABOVE, v]:
            weight = _weight_at(columns[v], weights, above, size)
            add_neighbour(terms, v, ABOVE, AT_ABOVE, above, weight)


@njit(**SUMS)
def _weight_at(values, weights, place, size):
    """Sum the sample weights of the members with exactly this value."""
    prefer_wide_vectors()
    zero = values.dtype.type(0)
    total = zero
    for b in range(size):
        total += weights[b] if values[b] == place else zero
    return total
