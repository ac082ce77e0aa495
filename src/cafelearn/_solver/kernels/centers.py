"""Minkowski centres (Eq. 5): argmin over z of sum |x - z|^p, from mergeable sums.

The derivative is increasing in z, so its root is bracketed and refined; each refinement
is one pass over the members. `pulls.add_members` is that pass for a block of rows, and
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

import numpy as np

from cafelearn._solver.kernels.brackets import (
    ALL,
    APART,
    CLOSED,
    FROM,
    GAP,
    HELD,
    HIGH,
    LAST,
    LEAST,
    LOW,
    MOST,
    PASSES,
    PULL,
    PULL_SLOPE,
    REST_SLOPE,
    SIDE,
    SLOPE,
    SPAN,
    START,
    VALUE_HIGH,
    VALUE_LAST,
    VALUE_LOW,
    VALUE_START,
)
from cafelearn._solver.kernels.compiling import EXACT, njit
from cafelearn._solver.kernels.power import NEAREST
from cafelearn._solver.kernels.series import add_series
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

# Past this many passes the bracket is halved, past twice as many it is taken as it is.
# Ten is usual; the limits only bound the work on data made to defeat the interpolation.
PATIENCE = 40
# The error of a root is only estimated.
SAFETY = 8
# Beyond this exponent the scale follows the centre.
HUGE = 25


# An anchor is set where a centre is known up to a step. The window is so many times that step,
# at least so many times the usual distance between two members' values and that between the
# last two neighbours, and no more than this part of the members' range: the values inside
# should be few.
PER_STEP, PER_GAP, PER_NEIGHBOURS, WIDEST = 1.0, 8.0, 3.0, 0.03
# Values near an anchor are wanted one by one if they are no more than this. The windows of
# clusters whose values are all together no more hold all of them (if the members weigh 1).
FEW_VALUES = 256
# Members whose range is below this count as equal: the scale that brings it near 1 would leave
# the format.
SMALLEST_SPAN, SMALLEST_SPAN_SINGLE = 2.0**-1020, 2.0**-124
# Values that are nearer to a centre, in scaled units, count as equal to it (p < 2).
EQUAL, EQUAL_SINGLE = NEAREST[np.dtype(np.float64)], NEAREST[np.dtype(np.float32)]
# Places where the series is used are at most this part of the window away from the anchor.
TRUSTED = 0.4


@njit(**EXACT)
def smallest_span(centers):
    """The smallest range of members of this type that is told from 0."""
    return SMALLEST_SPAN_SINGLE if centers.itemsize == 4 else SMALLEST_SPAN


@njit(**EXACT)
def begin(brackets, centers, l, v, low, high, mass, p):
    """Open the search for one centre of members within [low, high].

    Returns whether the sums already taken at the present centre are of use.
    """
    values = brackets.values
    if high - low < smallest_span(centers):
        centers[l, v] = low
        brackets.log_dispersion[l, v] = -np.inf
        brackets.open[l, v] = CLOSED
        return False
    span = high - low
    brackets.open[l, v] = ALL
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
def predict(brackets, centers, l, v, terms, mass, mean, p, anchored):
    """Move a centre to where its new members will pull it, as far as that can be told.

    From the gradient that the rows which came and went leave at the old centre; or, with
    `mean`, from the moments of all members about the old centre.
    """
    values = brackets.values
    z, scale = np.float64(centers[l, v]), brackets.scale[l, v]
    values[FROM, l, v], values[PULL, l, v] = z, 0.0
    brackets.window[l, v] = 0.0
    if mean:
        centers[l, v] = z - terms[PULL_DOWN, v] / mass / scale
        return
    pull, slope = terms[PULL_DOWN, v] - terms[PULL_UP, v], values[PULL_SLOPE, l, v]
    values[PULL, l, v] = pull
    if slope == 0 and z == values[MOST, l, v]:
        # From the larger of two values a look would not see both.
        centers[l, v] = 0.5 * (values[LEAST, l, v] + values[MOST, l, v])
        return
    if p > 2:
        slope += (p - 1) * (terms[CURVE_DOWN, v] + terms[CURVE_UP, v]) * scale
    elif values[HELD, l, v] > 0:
        slope *= mass / values[HELD, l, v]
    if slope > 0:
        target = z - pull / slope
        if values[LEAST, l, v] <= target <= values[MOST, l, v]:
            centers[l, v] = target
            if anchored:
                set_anchor(brackets, centers, l, v, centers[l, v] - z, mass)


@njit(**EXACT)
def set_anchor(brackets, centers, l, v, step, mass):
    """Prepare a look at all members where the centre is now, known up to a step."""
    span, apart = brackets.values[SPAN, l, v], brackets.values[APART, l, v]
    width = max(PER_STEP * abs(step), PER_GAP * span / mass, PER_NEIGHBOURS * apart)
    brackets.open[l, v] = ALL
    brackets.anchor[l, v] = centers[l, v]
    if 1 <= mass <= FEW_VALUES:
        width = 2 * span
    elif width > WIDEST * span:
        width = 0.0
    brackets.window[l, v] = width * brackets.scale[l, v]


@njit(**EXACT)
def refine_near(brackets, centers, l, v, terms, mass, p, tolerance):
    """`refine` from the sums of the members near the anchor alone."""
    scale, window = brackets.scale[l, v], brackets.window[l, v]
    z, anchor = np.float64(centers[l, v]), np.float64(brackets.anchor[l, v])
    if np.isinf(terms[BELOW, v]) or np.isinf(terms[ABOVE, v]):
        brackets.open[l, v], brackets.window[l, v] = ALL, 0.0
        return
    missing = add_series(terms, brackets.far[l], v, (z - anchor) * scale, window, p)
    refine(brackets, centers, l, v, terms, mass, p, tolerance)
    way = np.float64(centers[l, v]) - anchor
    if brackets.open[l, v] == CLOSED:
        # What the series leaves out must not matter.
        error = missing / ((p - 1) * terms[CURVE_DOWN, v] * scale)
        if error > tolerance * brackets.values[SPAN, l, v]:
            set_anchor(brackets, centers, l, v, 0.0, mass)
    elif abs(way) * scale > TRUSTED * window:
        set_anchor(brackets, centers, l, v, way, mass)


@njit(**EXACT)
def settle_pair(brackets, centers, l, v, terms, mass, p):
    """Close a search among members that have no other values than the two neighbours.

    Those of weights a and b at a distance w pull equally at a way y from the first if
    a y^q = b (w - y)^q. Returns whether it is so.
    """
    at_below, at_above = terms[AT_BELOW, v], terms[AT_ABOVE, v]
    if at_below <= 0 or at_above <= 0 or at_below + at_above != mass:
        return False
    below, above = terms[BELOW, v], terms[ABOVE, v]
    heavy, light = max(at_below, at_above), min(at_below, at_above)
    # From the heavier end, which it may be so close to that this is all that counts.
    way = (above - below) / (1 + (heavy / light) ** (1 / (p - 1)))
    centers[l, v] = below + way if at_below >= at_above else above - way
    brackets.values[PULL_SLOPE, l, v] = 0.0
    scale = brackets.scale[l, v]
    spread = heavy * (way * scale) ** p + light * ((above - below - way) * scale) ** p
    _close(brackets, l, v, spread, p)
    return True


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
def refine(brackets, centers, l, v, terms, mass, p, tolerance):
    """Move one open centre by what the pass at it has found; close it when it is exact.

    `tolerance` is the accepted error in units of the members' range.
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
    if p > 2:
        value, step = _newton(terms, v, p)
        values[PULL_SLOPE, l, v] = (p - 1) * (terms[CURVE_DOWN, v] + terms[CURVE_UP, v]) * scale
        value, step = value / scale, step / scale
        target = z + step
        # A Newton step leaves an error of the step's square, or less than that for p < 3.
        exact = (abs(target - z) / span) ** min(p - 1, 2.0) * span <= reach
        # The gradient falls from here to 0 at the target; the spread falls by its integral.
        change = 0.5 * p * gradient * (target - z) * scale
    else:
        value = gradient
        target, exact, change = _between_neighbours(
            brackets, centers, l, v, terms, z, gradient, p - 1, reach
        )
    _narrow(brackets, l, v, z, value)
    if exact:
        centers[l, v] = target
        _remember_slope(brackets, l, v, target, mass, p)
        _close(brackets, l, v, spread + change, p)
        return
    target = _next_place(brackets, centers, l, v, terms, z, value, target, p)
    values[LAST, l, v], values[VALUE_LAST, l, v] = z, value
    if np.isnan(target) or values[HIGH, l, v] - values[LOW, l, v] <= reach:
        _remember_slope(brackets, l, v, z, mass, p)
        _close(brackets, l, v, spread, p)
    else:
        centers[l, v] = target
        if p > HUGE:
            low, high = values[LEAST, l, v], values[MOST, l, v]
            brackets.scale[l, v] = fitting_scale(low, high, target, p)


@njit(**EXACT)
def _remember_slope(brackets, l, v, root, mass, p):
    values = brackets.values
    way = values[START, l, v] - root
    if way != 0:
        values[SLOPE, l, v] = values[VALUE_START, l, v] / way
    way = values[FROM, l, v] - root
    if p < 2:
        slope = values[PULL, l, v] / way if way != 0 else 0.0
        values[PULL_SLOPE, l, v] = slope if slope > 0 else values[SLOPE, l, v]
        values[HELD, l, v] = mass


@njit(**EXACT)
def _close(brackets, l, v, spread, p):
    brackets.open[l, v] = CLOSED
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
def _scaled_way(centers, way, scale):
    """A distance to a neighbour as the sums see it: 0 if that counts as equal."""
    way = np.float64(centers.dtype.type(way)) * scale
    return way if way >= (EQUAL_SINGLE if centers.itemsize == 4 else EQUAL) else 0.0


@njit(**EXACT)
def _between_neighbours(brackets, centers, l, v, terms, z, gradient, q, reach):
    """Root of the model of the gradient between the data values next to z, if it lies there.

    Returns the root, or NaN, whether the model is exact enough to stop at it, and by how
    much the spread changes on the way there, which is p times the integral of the model.
    """
    values = brackets.values
    below, above = terms[BELOW, v], terms[ABOVE, v]
    if np.isinf(below) or np.isinf(above):
        return np.nan, False, 0.0
    scale = brackets.scale[l, v]
    values[APART, l, v] = above - below
    at_below, at_above = terms[AT_BELOW, v], terms[AT_ABOVE, v]
    left, right = _scaled_way(centers, z - below, scale), _scaled_way(centers, above - z, scale)
    width = left + right
    # The rest: constant and slope at z, once the two neighbours' own parts are taken off.
    rest, slope = gradient, terms[CURVE_DOWN, v]
    if right > 0:
        rest += at_above * right**q
        slope -= at_above * right ** (q - 1)
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
    error = step * (step / clearance) if step < clearance else np.inf
    if max(abs(z - last), step) <= min(clearance, last - below, above - last):
        error = min(error, step * (step * scale * bend / growth))
    if SAFETY * error <= reach:
        return root, True, change
    if step <= reach and not _is_straight(slope, min(at_below, at_above), step * scale, q):
        # If the root is nearer than this place, the next look will tell.
        return z + np.copysign(0.5 * reach, root - z), False, 0.0
    return root, step <= reach, change


@njit(**EXACT)
def _is_straight(slope, weight, step, q):
    """Whether the rest of the gradient can be taken for a straight line along a step.

    One value has a slope of q weight distance^(q-1), and none can have more than all. So none
    is nearer than the distance at which it would, unless its weight is unusually small.
    """
    return slope == 0 or SAFETY * step <= (q * weight / slope) ** (1 / (1 - q))


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
