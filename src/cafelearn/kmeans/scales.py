"""Powers of two that bring data near 1, and checks of the extrema of data."""

from typing import NamedTuple

import numpy as np

from cafelearn.kmeans.kernels.centers import SMALLEST_SPAN, SMALLEST_SPAN_SINGLE


def is_constant(low, high):
    """Return for each feature whether it counts as constant in a fit."""
    single = np.asarray(low).dtype == np.float32
    smallest = SMALLEST_SPAN_SINGLE if single else SMALLEST_SPAN
    return _half_span(low, high) < smallest / 2


def half_span(low, high):
    """Return half of the range of each feature in its own type; 0 if it counts as constant."""
    return np.where(is_constant(low, high), 0, high / 2 - low / 2)


def _half_span(low, high):
    """Return half of the range of each feature; the whole range may overflow."""
    return np.asarray(high, dtype=np.float64) / 2 - np.asarray(low, dtype=np.float64) / 2


def data_scale(low, high):
    """Return the power of two that brings the widest range near 1, and one for each range."""
    half = np.where(is_constant(low, high), 0.0, _half_span(low, high))

    def power_of_two(x):
        return np.ldexp(1.0, -1 - np.frexp(np.where(x > 0, x, 0.5))[1])

    return float(power_of_two(half.max())), power_of_two(half)


def extreme_unit(scale, dtype):
    """Return the power of two by which extreme data is multiplied; 1 for other data.

    It keeps weights times the scale of the data finite. Huge data is brought to about 2^400
    (float32: 2^40) instead of 1, so that features with smaller ranges do not underflow.
    """
    single = np.dtype(dtype) == np.float32
    farthest, large = (2.0**60, 2.0**40) if single else (2.0**500, 2.0**400)
    if 1 / farthest <= scale <= farthest:
        return 1.0
    return float(scale) if scale > 1 else float(scale) * large


# Data is fitted in float64 if a feature is farther from 0 than this many times its range.
FARTHEST_SINGLE = 2.0**8
# Data is also fitted in float64 if the p-th power of the ratio of two ranges exceeds this.
WIDEST_SINGLE = 2.0**60


def exceeds_single(low, high, p):
    """Check whether features with these extrema need float64, because float32 is too coarse.

    If a feature is far from 0, the rounding error of a centre is a large part of its members'
    range. If ranges differ widely, distances on the narrowest feature underflow.
    """
    varies = ~is_constant(low, high)
    if not varies.any():
        return False
    low, high = np.float64(low[varies]), np.float64(high[varies])
    span = high - low
    far = (np.maximum(np.abs(low), np.abs(high)) > FARTHEST_SINGLE * span).any()
    return bool(far or p * np.log2(span.max() / span.min()) > np.log2(WIDEST_SINGLE))


class Units(NamedTuple):
    """Powers of two that bring extreme data and weights into an ordinary range."""

    data: float = 1.0  # the rows were multiplied by this
    weight_exponent: int = 0  # the weights were multiplied by 2 to this power

    def log_dispersion(self, p):
        """Return the contribution of both units to the logarithm of a dispersion."""
        if self == NO_UNITS:
            return 0.0
        return p * np.log(self.data) + self.weight_exponent * np.log(2.0)


NO_UNITS = Units()
