"""What the members far from a place contribute near it: sums of a Taylor series (p < 2)."""

from cafelearn._solver.kernels.compiling import EXACT, SUMS, njit
from cafelearn._solver.kernels.power import (
    negative_power,
    negative_terms,
    reciprocal,
    reciprocal_root,
)
from cafelearn._solver.kernels.sums import CURVE_DOWN, FAR_TERMS, PULL_DOWN, SPREAD
from cafelearn._solver.kernels.vectors import prefer_wide_vectors


@njit(**SUMS)
def add_far(far, l, features, columns, weights, anchors, scales, windows, size, plan):
    """Coefficients of the series of the values outside the window."""
    prefer_wide_vectors()
    zero, one, middle = columns.dtype.type(0), columns.dtype.type(1), columns.dtype.type(1.5)
    table, mantissa = plan.table, negative_terms(plan.mantissa)
    rooted = plan.exponent == -0.5
    for j in range(len(features)):
        v = features[j]
        anchor, scale = anchors[l, v], columns.dtype.type(scales[l, v])
        window = columns.dtype.type(windows[l, v])
        sums = (zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero)
        if rooted:
            for b in range(size):
                t = (columns[v, b] - anchor) * scale
                outside = abs(t) > window
                t = t if outside else one
                power = reciprocal_root(abs(t))
                pull = (weights[b] if outside else zero) * power * t
                ratio = window * power * (power if t > zero else -power)
                sums = _with_powers(sums, pull, t, ratio)
        else:
            for b in range(size):
                t = (columns[v, b] - anchor) * scale
                outside = abs(t) > window
                t = t if outside else one
                power = negative_power(t, table, mantissa, middle)
                pull = (weights[b] if outside else zero) * power * t
                sums = _with_powers(sums, pull, t, window * reciprocal(t))
        for term in range(FAR_TERMS):
            far[l, term, v] += sums[term]


@njit(**SUMS)
def _with_powers(sums, pull, t, ratio):
    """The sums with what one value adds: pull t, pull, pull ratio, pull ratio^2, ..."""
    square = ratio * ratio
    pull1, fourth = pull * ratio, square * square
    pull2, pull3 = pull * square, pull1 * square
    pull4, pull5 = pull * fourth, pull1 * fourth
    pull6, pull7 = pull2 * fourth, pull3 * fourth
    pull8, pull9 = pull4 * fourth, pull5 * fourth
    return (
        sums[0] + pull * t,
        sums[1] + pull,
        sums[2] + pull1,
        sums[3] + pull2,
        sums[4] + pull3,
        sums[5] + pull4,
        sums[6] + pull5,
        sums[7] + pull6,
        sums[8] + pull7,
        sums[9] + pull8,
        sums[10] + pull9,
        sums[11] + pull6 * fourth,
    )


@njit(**EXACT)
def add_series(terms, far, v, way, window, p):
    """Add what the values outside the window contribute at a place of the scaled way from the
    anchor to the terms of those inside.

    Returns a bound of what the gradient's series leaves out.
    """
    ratio = -way / window
    gradient, curve, spread = 0.0, 0.0, far[0, v]
    last = before_last = 0.0
    at_pull, at_curve, at_spread = 1.0, 1.0, p
    power, power_before = 1.0, 0.0
    for j in range(FAR_TERMS - 1):
        before_last, last = last, at_pull * power * far[j + 1, v]
        gradient -= last
        if j > 0:
            curve += at_curve * power_before * far[j + 1, v]
            at_curve *= (p - 1 - j) / j
        spread += at_spread * power * ratio * far[j + 1, v] * window
        at_pull *= (p - 1 - j) / (j + 1)
        at_spread *= (p - 1 - j) / (j + 2)
        power, power_before = power * ratio, power
    terms[PULL_DOWN, v] += gradient
    terms[CURVE_DOWN, v] += curve / window
    terms[SPREAD, v] += spread
    # Two terms, because members on both sides cancel each other in every other one.
    ratio = abs(ratio)
    return (abs(last) + abs(before_last) * ratio) * ratio / (1 - ratio)
