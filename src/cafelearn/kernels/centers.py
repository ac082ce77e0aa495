"""Minkowski centres (Eq. 5): argmin over z of sum |x - z|^p, from mergeable sums.

The derivative is increasing in z, so its root is bracketed and refined; each refinement
is one pass over the members. `add_members` is that pass for a block of rows, and
`refine` reads the merged sums and moves the centre. Three regimes:

* p = 2: the mean, in one step.
* p > 2: Newton's method on G-^(1/q) - G+^(1/q), with q = p - 1 and G-, G+ the pulls from
  both sides. The difference is almost linear in z for every p (exactly so for p = 2 and
  p to infinity), where the derivative itself behaves like z^(p-1).
* p < 2: the derivative has a vertical tangent at every data value, which defeats Newton
  and the secant alike. Between two neighbouring data values a < z < b, though, it is
  c_a (z - a)^q - c_b (b - z)^q plus a smooth rest. The rest is linearised and the whole
  solved exactly, which finds centres that lie within 1e-10 of a data value, as they do
  for p close to 1 and for tied data, in a few passes.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from cafelearn.kernels.power import (
    EXACT,
    SUMS,
    add_powers,
    larger,
    negative_power,
    negative_terms,
    prefer_wide_vectors,
    smaller,
)
from cafelearn.kernels.sums import (
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

# Past this many passes the bracket is halved, past twice as many it is taken as it is.
# Ten is usual; the limits only bound the work on data made to defeat the interpolation.
PATIENCE = 40
BEYOND, BEYOND_SINGLE = 1e308, 3e38
# Beyond this exponent the scale follows the centre.
HUGE = 25


# Rows of Brackets.values, each of shape (k, m). One array, because every array that a
# compiled function takes adds to the time it takes to compile.
LOW = 0  # the bracket
HIGH = 1
VALUE_LOW = 2  # the function at low and high (an estimate before the first visit)
VALUE_HIGH = 3
SPAN = 4  # range of the members
START = 5  # the first place visited, and the function there
VALUE_START = 6
LAST = 7  # the place visited before this one, and the function there
VALUE_LAST = 8
GAP = 9  # the data value below that place, and the slope of the rest there (p < 2)
REST_SLOPE = 10
SLOPE = 11  # mean slope from the first place to the root of the last search
SIDE = 12  # which end moved last: -1, 1, or 0 for none
PASSES = 13
LEAST = 14  # the members' extrema
MOST = 15
N_VALUES = 16


class Brackets(NamedTuple):
    """Where the search for each centre stands."""

    open: np.ndarray  # (k, m) still searching
    scale: np.ndarray  # (k, m) the power of two that brings s (x - z) near 1
    log_dispersion: np.ndarray  # (k, m) log D at the centre, the result
    values: np.ndarray  # (N_VALUES, k, m)


def empty_brackets(scale, n_clusters):
    """Brackets before the first pass, for per-feature scales."""
    shape = (n_clusters, len(scale))
    return Brackets(
        np.ones(shape, dtype=np.bool_),
        np.tile(scale, (n_clusters, 1)),
        np.full(shape, -np.inf),
        np.zeros((N_VALUES, *shape)),
    )


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
def _add_moments(terms, l, features, columns, weights, centers, scales, size):
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


@njit(**EXACT)
def add_members(terms, l, features, columns, weights, powers, centers, scales, size, geometry):
    """Add a block of rows of cluster l to its terms.

    IN  columns (m, >= size) these features of the rows; weights (size,) of the rows;
        centers, scales (k, m)
    OUT terms (k, N_TERMS, m), for these features; powers, shaped as columns, is scratch
    """
    if geometry.p == 2:
        _add_moments(terms, l, features, columns, weights, centers, scales, size)
    elif geometry.p < 2:
        _add_near_pulls(
            terms, l, features, columns, weights, centers, scales, size, geometry.negative
        )
    else:
        for v in features:
            for b in range(size):
                powers[v, b] = 0
        own_rows = -len(features)
        add_powers(
            powers, own_rows, columns, features, centers, scales, l, size, geometry.positive
        )
        _add_pulls(terms, l, features, columns, weights, powers, centers, scales, size)


@njit(**EXACT)
def begin(brackets, centers, l, v, low, high, mass, p):
    """Open the search for one centre of members within [low, high].

    Returns whether the sums already taken at the present centre are of use.
    """
    values = brackets.values
    if low == high:
        centers[l, v] = low
        brackets.log_dispersion[l, v] = -np.inf
        brackets.open[l, v] = False
        return False
    span = high - low
    brackets.open[l, v] = True
    values[PASSES, l, v] = 0
    values[SIDE, l, v] = 0
    values[SPAN, l, v] = span
    # Wider by a little: the ends themselves may be visited.
    values[LOW, l, v], values[HIGH, l, v] = low - 1e-3 * span, high + 1e-3 * span
    values[LEAST, l, v], values[MOST, l, v] = low, high
    usable = fits(brackets.scale[l, v], max(high - centers[l, v], centers[l, v] - low), p)
    if not usable:
        if not low <= centers[l, v] <= high:
            centers[l, v] = low + 0.5 * span
        brackets.scale[l, v] = fitting_scale(low, high, np.float64(centers[l, v]), p)
    half = 0.5 * span
    guess = mass * (half * brackets.scale[l, v]) ** (p - 1) if p < 2 else half
    values[VALUE_LOW, l, v], values[VALUE_HIGH, l, v] = -guess, guess
    return usable


@njit(**EXACT)
def fits(scale, reach, p):
    """Whether powers of numbers up to scale * reach stay well inside the format."""
    return reach > 0 and abs(np.log2(scale * reach)) * max(p, 2.0) < 60


@njit(**EXACT)
def fitting_scale(low, high, center, p):
    """A scale that brings the members near 1 as seen from the centre.

    A power of two, which rounds nothing, except for exponents so large that even the
    powers of 1/2 vanish.
    """
    reach = max(high - center, center - low)
    return 1 / reach if p > HUGE else 2.0 ** -np.floor(np.log2(reach))


@njit(**EXACT)
def refine(brackets, centers, l, v, terms, mass, p, tolerance, haste):
    """Move one open centre by what the pass at it has found; close it when it is exact.

    `tolerance` is the accepted error in units of the members' range; `haste` is an error
    accepted instead, in units of the way from the first place visited.
    """
    values = brackets.values
    z, scale = np.float64(centers[l, v]), brackets.scale[l, v]
    spread = terms[SPREAD, v]
    values[PASSES, l, v] += 1
    if p == 2:
        step = -terms[PULL_DOWN, v] / mass
        correction = mass * step * step
        centers[l, v] = z + step / scale
        # The shifted formula loses digits when the shift dominates; look again from there.
        if correction < 0.999 * spread or values[PASSES, l, v] > 2:
            _close(brackets, l, v, spread - correction, p)
        return
    gradient = terms[PULL_DOWN, v] - terms[PULL_UP, v]
    if gradient == 0:
        _close(brackets, l, v, spread, p)
        return
    span = values[SPAN, l, v]
    reach = tolerance * span
    if haste > 0 and values[PASSES, l, v] > 1:
        reach = max(reach, haste * abs(z - values[START, l, v]))
    if p > 2:
        value, step = _newton(terms, v, p)
        value, step = value / scale, step / scale
        target = z + step
        # A Newton step leaves an error of the step's square, or less than that for p < 3.
        exact = (abs(target - z) / span) ** min(p - 1, 2.0) * span <= reach
        # The gradient falls from here to 0 at the target; the spread falls by its integral.
        change = 0.5 * p * gradient * (target - z) * scale
    else:
        value = gradient
        target, exact, change = _between_neighbours(
            brackets, l, v, terms, z, gradient, p - 1, reach
        )
    _narrow(brackets, l, v, z, value)
    if exact:
        centers[l, v] = target
        _remember_slope(brackets, l, v, target)
        _close(brackets, l, v, spread + change, p)
        return
    target = _next_place(brackets, centers, l, v, terms, z, value, target, p)
    values[LAST, l, v], values[VALUE_LAST, l, v] = z, value
    hurried = haste > 0 and abs(target - z) <= reach
    if np.isnan(target) or hurried or values[HIGH, l, v] - values[LOW, l, v] <= reach:
        _remember_slope(brackets, l, v, z)
        _close(brackets, l, v, spread, p)
    else:
        centers[l, v] = target
        if p > HUGE:
            low, high = values[LEAST, l, v], values[MOST, l, v]
            brackets.scale[l, v] = fitting_scale(low, high, target, p)


@njit(**EXACT)
def _remember_slope(brackets, l, v, root):
    values = brackets.values
    way = values[START, l, v] - root
    if way != 0:
        values[SLOPE, l, v] = values[VALUE_START, l, v] / way


@njit(**EXACT)
def _close(brackets, l, v, spread, p):
    brackets.open[l, v] = False
    # The last correction can round a spread of almost nothing below zero.
    brackets.log_dispersion[l, v] = (
        np.log(spread) - p * np.log(brackets.scale[l, v]) if spread > 0 else -np.inf
    )


@njit(**EXACT)
def _newton(terms, v, p):
    """G-^(1/q) - G+^(1/q) with q = p - 1, and the Newton step, in scaled units."""
    q = p - 1
    value, slope = 0.0, 0.0
    if terms[PULL_DOWN, v] > 0:
        root = terms[PULL_DOWN, v] ** (1 / q)
        value += root
        slope += terms[CURVE_DOWN, v] * root / terms[PULL_DOWN, v]
    if terms[PULL_UP, v] > 0:
        root = terms[PULL_UP, v] ** (1 / q)
        value -= root
        slope += terms[CURVE_UP, v] * root / terms[PULL_UP, v]
    return value, -value / slope


@njit(**EXACT)
def _narrow(brackets, l, v, z, value):
    """Put z into the bracket; an end that stays again counts for less (Anderson-Bjorck)."""
    values = brackets.values
    if values[PASSES, l, v] == 1:
        values[START, l, v], values[VALUE_START, l, v] = z, value
    if value > 0:
        if values[SIDE, l, v] == 1:
            factor = 1 - value / values[VALUE_HIGH, l, v]
            values[VALUE_LOW, l, v] *= factor if factor > 0 else 0.5
        values[HIGH, l, v], values[VALUE_HIGH, l, v] = z, value
        values[SIDE, l, v] = 1
    else:
        if values[SIDE, l, v] == -1:
            factor = 1 - value / values[VALUE_LOW, l, v]
            values[VALUE_HIGH, l, v] *= factor if factor > 0 else 0.5
        values[LOW, l, v], values[VALUE_LOW, l, v] = z, value
        values[SIDE, l, v] = -1


@njit(**EXACT)
def _next_place(brackets, centers, l, v, terms, z, value, target, p):
    """Where to look next, or NaN if no place is left between the ends of the bracket.

    First choice is the target, then a step with the slope of the last search or of the last
    two places, then the secant of the bracket, then its middle.
    """
    values = brackets.values
    number = centers.dtype.type
    low, high = values[LOW, l, v], values[HIGH, l, v]
    if values[PASSES, l, v] <= PATIENCE:
        target = np.float64(number(target))
        if low < target < high:
            return target
        if values[PASSES, l, v] == 1:
            slope = values[SLOPE, l, v]
        else:
            slope = (value - values[VALUE_LAST, l, v]) / (z - values[LAST, l, v])
        target = z - value / slope if slope > 0 else np.nan
        if not low < target < high:
            value_low, value_high = values[VALUE_LOW, l, v], values[VALUE_HIGH, l, v]
            target = low - value_low * (high - low) / (value_high - value_low)
        if p < 2 and value > 0 and terms[BELOW, v] > low:
            target = min(target, terms[BELOW, v])
        elif p < 2 and value < 0 and terms[ABOVE, v] < high:
            target = max(target, terms[ABOVE, v])
        target = np.float64(number(target))
        if low < target < high:
            return target
    target = np.float64(number(low + 0.5 * (high - low)))
    return target if low < target < high and values[PASSES, l, v] <= 2 * PATIENCE else np.nan


@njit(**EXACT)
def _between_neighbours(brackets, l, v, terms, z, gradient, q, reach):
    """Root of the model of the gradient between the data values next to z, if it lies there.

    Returns the root, or NaN, whether the model is exact enough to stop at it, and by how
    much the spread changes on the way there, which is p times the integral of the model.
    """
    values = brackets.values
    below, above = terms[BELOW, v], terms[ABOVE, v]
    if np.isinf(below) or np.isinf(above):
        return np.nan, False, 0.0
    scale = brackets.scale[l, v]
    at_below, at_above = terms[AT_BELOW, v], terms[AT_ABOVE, v]
    left, right = (z - below) * scale, (above - z) * scale
    width = left + right
    # The rest: constant and slope at z, once the two neighbours' own parts are taken off.
    rest = gradient + at_above * right**q
    slope = terms[CURVE_DOWN, v] - at_above * right ** (q - 1)
    if left > 0:
        rest -= at_below * left**q
        slope -= at_below * left ** (q - 1)
    slope = max(q * slope, 0.0)
    last, bend = values[LAST, l, v], np.inf
    if values[PASSES, l, v] > 1 and values[GAP, l, v] == below:
        # Two visits to this gap tell how far the rest is from a straight line.
        bend = abs(slope - values[REST_SLOPE, l, v]) / (abs(z - last) * scale)
    values[GAP, l, v], values[REST_SLOPE, l, v] = below, slope
    if rest - slope * left - at_above * width**q >= 0:
        return np.nan, False, 0.0
    if rest + slope * right + at_below * width**q <= 0:
        return np.nan, False, 0.0
    half = 0.5 * width
    at_half = (at_below - at_above) * half**q + rest + slope * (half - left)
    if at_half > 0:
        y, growth = _singular_root(at_below, at_above, width, rest, slope, left, q)
        root = below + y / scale
        from_below, from_above = y, width - y
    else:
        y, growth = _singular_root(at_above, at_below, width, -rest, slope, right, q)
        root = above - y / scale
        from_below, from_above = width - y, y
    way = from_below - left
    change = (q + 1) * (rest * way + 0.5 * slope * way * way)
    change += at_below * (from_below ** (q + 1) - left ** (q + 1))
    change += at_above * (from_above ** (q + 1) - right ** (q + 1))
    step = abs(root - z)
    # The model errs by half its bend times the square of the step, over the growth of the
    # gradient. The bend is measured between this visit and the last, which tells of the
    # places in between, and no more than the ends of the gap allow if they are not near.
    clearance = min(min(z, root) - below, above - max(z, root))
    error = step * step / clearance if clearance > 0 else np.inf
    if max(abs(z - last), step) <= min(clearance, last - below, above - last):
        error = min(error, step * step * bend * scale / growth)
    return root, step <= reach or error <= reach, change


@njit(**EXACT)
def _singular_root(near, far, width, rest, slope, origin, q):
    """The y <= width / 2 with near y^q - far (width - y)^q + rest + slope (y - origin) = 0.

    Newton in u = y^q, in which the left side is smooth near 0, kept inside a bracket.
    Returns y and the derivative there.
    """
    low, high = 0.0, (0.5 * width) ** q
    u = min(max((far * width**q - rest + slope * origin) / near, 0.0), high)
    y = u ** (1 / q)
    for _ in range(60):
        value = near * u - far * (width - y) ** q + rest + slope * (y - origin)
        if value > 0:
            high = u
        else:
            low = u
        growth = (far * q * (width - y) ** (q - 1) + slope) / q
        derivative = near + (growth * y ** (1 - q) if y > 0 else 0.0)
        new = u - value / derivative
        if not low <= new <= high:
            new = 0.5 * (low + high)
        done = abs(new - u) <= 1e-15 * high
        u = new
        y = u ** (1 / q)
        if done:
            break
    slope += far * q * (width - y) ** (q - 1)
    return y, slope + near * q * y ** (q - 1) if y > 0 else np.inf
