"""What the members far from a place contribute near it: sums of a Taylor series (p < 2)."""

from numba import njit

from cafelearn.kernels.power import EXACT, SUMS, negative_power, negative_terms, reciprocal
from cafelearn.kernels.sums import CURVE_DOWN, FAR_TERMS, PULL_DOWN, SPREAD
from cafelearn.kernels.vectors import prefer_wide_vectors


@njit(**SUMS)
def add_far(far, l, features, columns, weights, anchors, scales, windows, size, plan):
    """Coefficients of the series of the values outside the window."""
    prefer_wide_vectors()
    zero, one, middle = columns.dtype.type(0), columns.dtype.type(1), columns.dtype.type(1.5)
    table, mantissa = plan.table, negative_terms(plan.mantissa)
    for j in range(len(features)):
        v = features[j]
        anchor, scale = anchors[l, v], columns.dtype.type(scales[l, v])
        window = columns.dtype.type(windows[l, v])
        spread, s0, s1, s2, s3, s4 = zero, zero, zero, zero, zero, zero
        s5, s6, s7, s8, s9, s10 = zero, zero, zero, zero, zero, zero
        for b in range(size):
            t = (columns[v, b] - anchor) * scale
            outside = abs(t) > window
            t = t if outside else one
            pull = (
                (weights[b] if outside else zero)
                * negative_power(t, table, mantissa, middle)
                * t
            )
            ratio = window * reciprocal(t)
            spread += pull * t
            s0 += pull
            pull *= ratio
            s1 += pull
            pull *= ratio
            s2 += pull
            pull *= ratio
            s3 += pull
            pull *= ratio
            s4 += pull
            pull *= ratio
            s5 += pull
            pull *= ratio
            s6 += pull
            pull *= ratio
            s7 += pull
            pull *= ratio
            s8 += pull
            pull *= ratio
            s9 += pull
            pull *= ratio
            s10 += pull
        far[l, 0, v] += spread
        far[l, 1, v] += s0
        far[l, 2, v] += s1
        far[l, 3, v] += s2
        far[l, 4, v] += s3
        far[l, 5, v] += s4
        far[l, 6, v] += s5
        far[l, 7, v] += s6
        far[l, 8, v] += s7
        far[l, 9, v] += s8
        far[l, 10, v] += s9
        far[l, 11, v] += s10


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
