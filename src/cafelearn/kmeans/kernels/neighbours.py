"""The gradient between the two data values next to a centre, and its root, for p < 2.

Between two neighbouring data values a < z < b the derivative of Eq. 5 is proportional to
c_a (z - a)^q - c_b (b - z)^q plus a smooth rest, where q = p - 1, and c_a and c_b are the
weights of the members at a and b. The model of the gradient replaces the rest by its tangent
at z; the root of the model is computed exactly. The bend is the second derivative of the rest.
"""

import numpy as np

from cafelearn.kmeans.kernels.cells import CENTER, LAST, LAST_BELOW, PASSES, REST_SLOPE, SCALE
from cafelearn.kmeans.kernels.compiling import EXACT, njit
from cafelearn.kmeans.kernels.power import NEAREST
from cafelearn.kmeans.kernels.sums import (
    ABOVE,
    AT_ABOVE,
    AT_BELOW,
    BELOW,
    CURVATURE_BELOW,
    GRADIENT_BELOW,
)
from cafelearn.kmeans.kernels.vectors import maximum, minimum, rounded

# Safety factor for errors that are only estimated.
SAFETY = 8
# The bend measured between two points may be too small by up to `hidden`, which is computed in
# `between_neighbours`. The bend is therefore taken to be at least hidden / HIDDEN. With SAFETY,
# this rules out errors above ten times the accepted one.
HIDDEN = 160
# Values closer to a centre than this, in scaled units, count as equal to it.
EQUAL, EQUAL_SINGLE = NEAREST[np.dtype(np.float64)], NEAREST[np.dtype(np.float32)]


@njit(**EXACT)
def _scaled_way(way, scale, single):
    """Convert a distance from z to the units of the sums; 0 if it is negligible."""
    way = rounded(way, single) * scale
    return way if way >= (EQUAL_SINGLE if single else EQUAL) else 0.0


@njit(**EXACT)
def between_neighbours(cell, sums, q, reach, single):
    """Find the root of the model of the gradient between the data values next to z.

    Return the next point, whether the search can end there, and if so the change of the spread
    (see `sums`) between z and that point, which is p times the integral of the model. The point
    is the root of the model, or NaN if the root is not between the data values. If the root is
    close to z but uncertain, the point is another one close to z.

    `reach` is the accepted error of the root.
    """
    z, scale = cell[CENTER], cell[SCALE]
    below, above = sums[BELOW], sums[ABOVE]
    if np.isinf(below) or np.isinf(above):
        return np.nan, False, 0.0
    at_below, at_above = sums[AT_BELOW], sums[AT_ABOVE]
    left, right = _scaled_way(z - below, scale, single), _scaled_way(above - z, scale, single)
    width = left + right
    # Value and slope of the rest at z: the sums without the terms of the two data values.
    rest, slope = sums[GRADIENT_BELOW], sums[CURVATURE_BELOW]
    if right > 0:
        rest += at_above * right**q
        slope -= at_above * right ** (q - 1)
    if left > 0:
        rest -= at_below * left**q
        slope -= at_below * left ** (q - 1)
    slope = maximum(q * slope, 0.0)
    last, bend = cell[LAST], np.inf
    if cell[PASSES] > 1 and cell[LAST_BELOW] == below:
        # The last point is in the same interval, so the slopes at both points show the bend.
        bend = abs(slope - cell[REST_SLOPE]) / (abs(z - last) * scale)
    cell[LAST_BELOW], cell[REST_SLOPE] = below, slope
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
    # The error of the root is half the bend times the square of the step, divided by the slope
    # of the gradient. The bend measured between this point and the last is valid if the ends of
    # the interval are farther away than the points are apart. Otherwise the distance to the
    # nearer end (`clearance`) bounds the error.
    clearance = minimum(minimum(z, root) - below, above - maximum(z, root))
    error = step * (step / clearance) if step < clearance else np.inf
    room = minimum(minimum(clearance, last - below), above - last)
    if maximum(abs(z - last), step) <= room:
        # The measured bend is a mean, close to 0 if the slope has a minimum between the points.
        # The bend at z differs from it by at most `hidden`, usually by far less.
        hidden = 0.5 * (1 - q) * (2 - q) * slope * abs(z - last) / (room * room * scale)
        bend = maximum(bend, hidden / HIDDEN)
        error = minimum(error, step * (step * scale * bend / growth))
    if SAFETY * error <= reach:
        return root, True, change
    if step <= reach and not _is_straight(slope, minimum(at_below, at_above), step * scale, q):
        # Another data value may be hidden close to z. Move by half the accepted error; the next
        # pass shows on which side the root is.
        return z + np.copysign(0.5 * reach, root - z), False, 0.0
    return root, step <= reach, change


@njit(**EXACT)
def _is_straight(slope, weight, step, q):
    """Check whether the rest of the gradient is nearly a straight line along a step.

    A data value of weight c at distance d adds q c d^(q-1) to the slope of the rest. Since this
    is at most `slope`, d has a lower bound for all values whose weight is at least `weight`.
    """
    return slope == 0 or SAFETY * step <= (q * weight / slope) ** (1 / (1 - q))


@njit(**EXACT)
def _singular_root(near, far, width, rest, slope, origin, q):
    """Solve near y^q - far (width - y)^q + rest + slope (y - origin) = 0 for y <= width / 2.

    The left side is a smooth function of u = y^q near 0, so Newton's method is applied to u,
    inside a bracket. Return y, and the derivative of the left side with respect to y.
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
