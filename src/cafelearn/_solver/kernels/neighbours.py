"""The gradient between the two data values next to a centre, and its root, for p < 2.

Between two neighbouring data values a < z < b the derivative of Eq. 5 is c_a (z - a)^q -
c_b (b - z)^q plus a smooth rest, where q = p - 1. The rest is linearised, and the resulting
equation is solved exactly.
"""

import numpy as np

from cafelearn._solver.kernels.cells import CENTER, GAP, LAST, PASSES, REST_SLOPE, SCALE
from cafelearn._solver.kernels.compiling import EXACT, njit
from cafelearn._solver.kernels.power import NEAREST
from cafelearn._solver.kernels.sums import (
    ABOVE,
    AT_ABOVE,
    AT_BELOW,
    BELOW,
    CURVATURE_BELOW,
    GRADIENT_BELOW,
)
from cafelearn._solver.kernels.vectors import maximum, minimum, rounded

# Safety factor of errors that are only estimated.
SAFETY = 8
# Divisor of the largest bend that two points may not reveal. With SAFETY, errors above ten
# times the accepted one are ruled out.
HIDDEN = 160
# Values closer to a centre than this, in scaled units, count as equal to it.
EQUAL, EQUAL_SINGLE = NEAREST[np.dtype(np.float64)], NEAREST[np.dtype(np.float32)]


@njit(**EXACT)
def _scaled_way(way, scale, single):
    """Convert the distance of a neighbour to the units of the sums; 0 if it counts as equal."""
    way = rounded(way, single) * scale
    return way if way >= (EQUAL_SINGLE if single else EQUAL) else 0.0


@njit(**EXACT)
def between_neighbours(cell, sums, q, reach, single):
    """Find the root of the model of the gradient between the data values next to z.

    Returns the root (NaN if it lies elsewhere), whether the model is accurate enough to stop
    there, and the change of the spread from z to the root, which is p times the integral of the
    model.
    """
    z, scale = cell[CENTER], cell[SCALE]
    below, above = sums[BELOW], sums[ABOVE]
    if np.isinf(below) or np.isinf(above):
        return np.nan, False, 0.0
    at_below, at_above = sums[AT_BELOW], sums[AT_ABOVE]
    left, right = _scaled_way(z - below, scale, single), _scaled_way(above - z, scale, single)
    width = left + right
    # Value and slope of the rest at z, without the terms of the two neighbours.
    rest, slope = sums[GRADIENT_BELOW], sums[CURVATURE_BELOW]
    if right > 0:
        rest += at_above * right**q
        slope -= at_above * right ** (q - 1)
    if left > 0:
        rest -= at_below * left**q
        slope -= at_below * left ** (q - 1)
    slope = maximum(q * slope, 0.0)
    last, bend = cell[LAST], np.inf
    if cell[PASSES] > 1 and cell[GAP] == below:
        # Two points in this interval show how far the rest is from a straight line.
        bend = abs(slope - cell[REST_SLOPE]) / (abs(z - last) * scale)
    cell[GAP], cell[REST_SLOPE] = below, slope
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
    # The error of the model is half its bend times the square of the step, over the slope of
    # the gradient. The bend measured between this point and the last is valid if the ends of
    # the interval are farther away than the points are apart; otherwise the clearance from the
    # ends bounds the error.
    clearance = minimum(minimum(z, root) - below, above - maximum(z, root))
    error = step * (step / clearance) if step < clearance else np.inf
    room = minimum(minimum(clearance, last - below), above - last)
    if maximum(abs(z - last), step) <= room:
        # The bend is a mean, close to 0 if the slope is smallest between the points. The bend
        # at z differs from it by at most `hidden`, usually by far less.
        hidden = 0.5 * (1 - q) * (2 - q) * slope * abs(z - last) / (room * room * scale)
        bend = maximum(bend, hidden / HIDDEN)
        error = minimum(error, step * (step * scale * bend / growth))
    if SAFETY * error <= reach:
        return root, True, change
    if step <= reach and not _is_straight(slope, minimum(at_below, at_above), step * scale, q):
        # Move by half the accepted error; the next pass shows on which side the root is.
        return z + np.copysign(0.5 * reach, root - z), False, 0.0
    return root, step <= reach, change


@njit(**EXACT)
def _is_straight(slope, weight, step, q):
    """Check whether the rest of the gradient is nearly a straight line along a step.

    Each data value in the rest adds q weight distance^(q-1) to the slope. Its part is at most
    the whole slope. This bounds its distance from below, unless its weight is unusually small.
    """
    return slope == 0 or SAFETY * step <= (q * weight / slope) ** (1 / (1 - q))


@njit(**EXACT)
def _singular_root(near, far, width, rest, slope, origin, q):
    """Solve near y^q - far (width - y)^q + rest + slope (y - origin) = 0 for y <= width / 2.

    Newton's method in u = y^q, in which the left side is smooth near 0, kept inside a bracket.
    Returns y and the derivative with respect to y there.
    """
    low, high = 0.0, (0.5 * width) ** q
    u = minimum(maximum((far * width**q - rest + slope * origin) / near, 0.0), high)
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
