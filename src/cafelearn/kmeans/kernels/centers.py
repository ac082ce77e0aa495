"""Minkowski centres (Eq. 5): argmin over z of sum |x - z|^p, from mergeable sums.

The derivative of this sum increases with z, so its root is bracketed and then refined. Each
refinement is one pass over the members: `gradients.add_gradients` sums blocks of rows, and
`refine` moves the centre according to the merged sums. There are three cases:

* p = 2: the mean, in one step.
* p > 2: Newton's method on G-^(1/q) - G+^(1/q), where q = p - 1, and G- and G+ are the sums of
  |x - z|^q over the members below and above z. This function is almost linear in z for every p
  (exactly for p = 2 and in the limit of large p); the derivative itself behaves like z^(p-1).
* p < 2: the derivative has a vertical tangent at every data value, which defeats Newton's
  method and the secant method. Between two neighbouring data values, however, it is the sum of
  two singular terms and a smooth rest (see `neighbours`). A few passes suffice even for centres
  within 1e-10 of a data value, which are common for p close to 1 and for tied data.

Gradient, curvature and spread are the sums defined in the module `sums`. The arguments `cell`
and `sums` belong to one cluster and feature (see the modules `cells` and `sums`).
"""

import numpy as np

from cafelearn.kmeans.kernels.cells import (
    CENTER,
    HIGH,
    LAST,
    LEAST,
    LOG_DISPERSION,
    LOW,
    MOST,
    OPEN,
    PASSES,
    SCALE,
    SIDE,
    SLOPE,
    SPAN,
    START,
    VALUE_HIGH,
    VALUE_LAST,
    VALUE_LOW,
    VALUE_START,
)
from cafelearn.kmeans.kernels.compiling import EXACT, njit
from cafelearn.kmeans.kernels.neighbours import between_neighbours
from cafelearn.kmeans.kernels.sums import (
    ABOVE,
    BELOW,
    CURVATURE_ABOVE,
    CURVATURE_BELOW,
    GRADIENT_ABOVE,
    GRADIENT_BELOW,
    MASS,
    SPREAD,
)
from cafelearn.kmeans.kernels.sums import HIGH as LARGEST
from cafelearn.kmeans.kernels.sums import LOW as SMALLEST
from cafelearn.kmeans.kernels.vectors import maximum, minimum, rounded

# After this many passes the search bisects the bracket; after twice as many it ends. Searches
# seldom need ten passes; the limits bound the work on data made to defeat the interpolation.
PATIENCE = 40
# At p > 2 the search ends only if two other estimates of the error, from the ratio of the last
# two steps and from members at the point, are at most this many times the accepted error.
BENT = 10
# Largest accepted relative increase of a dispersion due to the error of its centre, in units of
# `geometry.tolerance`.
FELT = 30
# For larger exponents every move of the search sets the scale again, to bring the members'
# largest distance exactly to 1 (see `fitting_scale`).
HUGE = 25
# Members whose range is below this count as equal, because the scale that brings the range near
# 1 would overflow.
SMALLEST_SPAN, SMALLEST_SPAN_SINGLE = 2.0**-1020, 2.0**-124


@njit(**EXACT)
def smallest_span(single):
    """Return the smallest range of members that does not count as 0."""
    return SMALLEST_SPAN_SINGLE if single else SMALLEST_SPAN


@njit(**EXACT)
def begin(cell, sums, p, single):
    """Start the search for one centre.

    Return whether the sums about the current centre can be used for the first step.
    """
    low, high = sums[SMALLEST], sums[LARGEST]
    span = high - low
    if span < smallest_span(single):
        cell[CENTER], cell[LOG_DISPERSION], cell[OPEN] = low, -np.inf, 0
        return False
    cell[OPEN], cell[PASSES], cell[SIDE], cell[SPAN] = 1, 0, 0, span
    # The bracket is slightly wider than the range, so that the search can visit the extrema.
    cell[LOW], cell[HIGH] = low - 1e-3 * span, high + 1e-3 * span
    cell[LEAST], cell[MOST] = low, high
    z = cell[CENTER]
    usable = fits(cell[SCALE], maximum(high - z, z - low), p)
    if not usable:
        if not low <= z <= high:
            cell[CENTER] = rounded(low + 0.5 * span, single)
        cell[SCALE] = fitting_scale(low, high, cell[CENTER], p)
    half = 0.5 * span
    guess = sums[MASS] * (half * cell[SCALE]) ** (p - 1) if p < 2 else half
    cell[VALUE_LOW], cell[VALUE_HIGH] = -guess, guess
    return usable


@njit(**EXACT)
def fits(scale, reach, p):
    """Check whether powers of scale * reach stay well inside the range of floats."""
    return reach > 0 and abs(np.log2(scale * reach)) * maximum(p, 2.0) < 60


@njit(**EXACT)
def fitting_scale(low, high, center, p):
    """Return a scale that brings the members' largest distance from the centre near 1.

    The scale is a power of two, so that scaling does not round, and the scaled distance is in
    [1, 2). If p > HUGE, powers of such numbers may be too large, so the distance is brought
    exactly to 1 instead.
    """
    reach = maximum(high - center, center - low)
    return 1 / reach if p > HUGE else 2.0 ** -np.floor(np.log2(reach))


@njit(**EXACT)
def refine(cell, sums, geometry):
    """Move a centre according to the sums about it; end its search if it is accurate enough.

    `geometry.tolerance` is the accepted error in units of the members' range.
    """
    p, single = geometry.p, geometry.single
    z, scale, spread = cell[CENTER], cell[SCALE], sums[SPREAD]
    cell[PASSES] += 1
    if p == 2:
        step = -sums[GRADIENT_BELOW] / sums[MASS]
        correction = sums[MASS] * step * step
        target = rounded(z + step / scale, single)
        # If almost all digits cancel in spread - correction, sum again about the mean.
        if correction < 0.999 * spread or cell[PASSES] > 2:
            cell[CENTER] = target
            _close(cell, spread - correction, p)
        else:
            _move(cell, target, p)
        return
    gradient = sums[GRADIENT_BELOW] - sums[GRADIENT_ABOVE]
    if gradient == 0:
        _close(cell, spread, p)
        return
    span = cell[SPAN]
    reach = geometry.tolerance * span
    # Reduce the accepted error (`reach`) if it would affect the objective: from z to the root,
    # the spread falls by at most p times the gradient at z times the distance.
    fall = p * abs(gradient) * scale * span
    if fall > FELT * spread:
        reach *= FELT * spread / fall
    if p > 2:
        value, step = _newton(sums, p)
        value, step = value / scale, step / scale
        target = z + step
        # A Newton step leaves an error of order step^2, or step^(p - 1) for p < 3.
        exact = (abs(target - z) / span) ** minimum(p - 1, 2.0) * span <= reach
        if exact and cell[PASSES] > 1:
            # The error is larger if the gradient bends within a small part of the range.
            last = abs(z - cell[LAST])
            exact = abs(step) * (step / last) ** 2 <= BENT * reach
        # Integrate the gradient from z to the target, where it is 0, as a linear function.
        way = (target - z) * scale
        change = 0.5 * p * gradient * way
        # The curvature shows whether the gradient is linear enough for that.
        curvature = (p - 1) * (sums[CURVATURE_BELOW] + sums[CURVATURE_ABOVE])
        bent = abs(way * (gradient + curvature * way)) > geometry.tolerance * spread
        # Members at z do not affect the curvature at z, but do affect the gradient elsewhere.
        bent |= sums[MASS] * abs(way) ** (p - 1) > BENT * reach * scale * curvature
        exact &= not bent or rounded(target, single) == z
    else:
        value = gradient
        target, exact, change = between_neighbours(cell, sums, p - 1, reach, single)
    _narrow(cell, z, value)
    if exact:
        cell[CENTER] = rounded(target, single)
        _remember_slope(cell, target)
        _close(cell, spread + change, p)
        return
    target = _next_place(cell, sums, value, target, p, single)
    cell[LAST], cell[VALUE_LAST] = z, value
    if np.isnan(target) or cell[HIGH] - cell[LOW] <= reach:
        _remember_slope(cell, z)
        _close(cell, spread, p)
    else:
        _move(cell, target, p)


@njit(**EXACT)
def _move(cell, place, p):
    """Move the search to another point, with a scale that fits there.

    If the search began far away, its scale may be too small for distances within the members'
    range. For p < 2 the scale is kept, because exponents below 2 cause no underflow.
    """
    cell[CENTER] = place
    reach = maximum(cell[MOST] - place, place - cell[LEAST])
    if p > HUGE or (p >= 2 and not fits(cell[SCALE], reach, p)):
        cell[SCALE] = fitting_scale(cell[LEAST], cell[MOST], place, p)


@njit(**EXACT)
def _remember_slope(cell, root):
    way = cell[START] - root
    if way != 0:
        cell[SLOPE] = cell[VALUE_START] / way


@njit(**EXACT)
def _close(cell, spread, p):
    cell[OPEN] = 0
    # The rounding error of the last change can make a tiny spread negative.
    cell[LOG_DISPERSION] = np.log(spread) - p * np.log(cell[SCALE]) if spread > 0 else -np.inf


@njit(**EXACT)
def _newton(sums, p):
    """Return G-^(1/q) - G+^(1/q) and the Newton step, in scaled units."""
    q = p - 1
    value, slope = 0.0, 0.0
    if sums[GRADIENT_BELOW] > 0:
        root = sums[GRADIENT_BELOW] ** (1 / q)
        value += root
        slope += sums[CURVATURE_BELOW] * root / sums[GRADIENT_BELOW]
    if sums[GRADIENT_ABOVE] > 0:
        root = sums[GRADIENT_ABOVE] ** (1 / q)
        value -= root
        slope += sums[CURVATURE_ABOVE] * root / sums[GRADIENT_ABOVE]
    return value, -value / slope


@njit(**EXACT)
def _narrow(cell, z, value):
    """Move one end of the bracket to z.

    If the same end moves twice in a row, reduce the value at the other end (Anderson-Bjorck).
    """
    if cell[PASSES] == 1:
        cell[START], cell[VALUE_START] = z, value
    if value > 0:
        if cell[SIDE] == 1:
            factor = 1 - value / cell[VALUE_HIGH]
            cell[VALUE_LOW] *= factor if factor > 0 else 0.5
        cell[HIGH], cell[VALUE_HIGH], cell[SIDE] = z, value, 1
    else:
        if cell[SIDE] == -1:
            factor = 1 - value / cell[VALUE_LOW]
            cell[VALUE_HIGH] *= factor if factor > 0 else 0.5
        cell[LOW], cell[VALUE_LOW], cell[SIDE] = z, value, -1


@njit(**EXACT)
def _next_place(cell, sums, value, root, p, single):
    """Return the next point of the search, or NaN if the search ends.

    The first of these points that lies inside the bracket is returned: the estimated root; a
    step with the slope of the previous search or of the last two points; the secant of the
    bracket; its middle. The search ends if there is no number inside the bracket, or after too
    many passes.
    """
    z, low, high = cell[CENTER], cell[LOW], cell[HIGH]
    root = rounded(root, single)
    if cell[PASSES] <= PATIENCE:
        if low < root < high:
            return root
        if cell[PASSES] == 1:
            slope = cell[SLOPE]
        else:
            slope = (value - cell[VALUE_LAST]) / (z - cell[LAST])
        target = z - value / slope if slope > 0 else np.nan
        if not low < target < high:
            rise = cell[VALUE_HIGH] - cell[VALUE_LOW]
            target = low - cell[VALUE_LOW] * (high - low) / rise
        if p < 2 and value > 0 and sums[BELOW] > low:
            target = minimum(target, sums[BELOW])
        elif p < 2 and value < 0 and sums[ABOVE] < high:
            target = maximum(target, sums[ABOVE])
        target = rounded(target, single)
        if low < target < high:
            return target
    target = rounded(low + 0.5 * (high - low), single)
    if low < target < high:
        return target if cell[PASSES] <= 2 * PATIENCE else np.nan
    # No number is left inside the bracket. If the root is the member next to z, go there: most
    # of the spread at z may be due to that member.
    member = sums[BELOW] if value > 0 else sums[ABOVE]
    return member if p < 2 and root == member != z and low <= member <= high else np.nan
