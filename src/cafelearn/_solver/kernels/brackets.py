"""Where the search for each centre stands: the state that kernels.centers changes."""

from typing import NamedTuple

import numpy as np

from cafelearn._solver.kernels.compiling import EXACT, njit

# Brackets.open: nothing to do; the next look is at all members, or at those near the anchor;
# or those are so few that they are wanted one by one.
CLOSED, ALL, NEAR, EACH = range(4)

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
FROM = 16  # the place from which the centre was predicted, and the gradient there
PULL = 17
PULL_SLOPE = 18  # slope of the gradient on the way from there to the root
HELD = 19  # the mass of the members it was found for
NEARBY_COUNT = 20  # of the values near the anchor
APART = 21  # the distance between the neighbours of the place visited last (p < 2)
N_VALUES = 22


@njit(**EXACT)
def list_open(features, states, wanted):
    """List the features whose centre is in the state; returns how many there are."""
    count = 0
    for v in range(len(states)):
        if states[v] == wanted:
            features[count] = v
            count += 1
    return count


class Brackets(NamedTuple):
    """Where the search for each centre stands."""

    open: np.ndarray  # (k, m) CLOSED, or what is to be looked at next
    scale: np.ndarray  # (k, m) the power of two that brings s (x - z) near 1
    log_dispersion: np.ndarray  # (k, m) log D at the centre, the result
    values: np.ndarray  # (N_VALUES, k, m)
    anchor: np.ndarray  # (k, m) see kernels.anchors
    window: np.ndarray  # (k, m) scaled; 0 where there is no anchor
    far: np.ndarray  # (k, FAR_TERMS, m) the sums of the look at the anchor


def empty_brackets(scale, n_clusters, dtype=np.float64, n_far=0):
    """Brackets before the first pass, for per-feature scales."""
    shape = (n_clusters, len(scale))
    return Brackets(
        np.full(shape, ALL, dtype=np.int8),
        np.tile(scale, (n_clusters, 1)),
        np.full(shape, -np.inf),
        np.zeros((N_VALUES, *shape)),
        np.zeros(shape, dtype=dtype),
        np.zeros(shape),
        np.zeros((n_clusters, n_far, len(scale))),
    )
