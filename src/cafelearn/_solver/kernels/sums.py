"""Mergeable partial sums: what one pass over some rows returns, and how two are joined.

One chunk of rows fills one `Sums`; chunks are merged in their order. That is all the
descent ever learns about the data, so one thread, many threads and many machines run
the same algorithm and, chunk for chunk, get the same bits.
"""

from typing import NamedTuple

import numpy as np

from cafelearn._solver.kernels.compiling import EXACT, njit

# Rows of Sums.terms, each for one (cluster, feature) at the current centre z and scale s;
# all but the neighbours are sums over the members x of sample_weight times
# (s is a scale near 1 / range; for p <= 2 the two sides are summed into the first of a pair)
PULL_DOWN = 0  # (s (z - x))^(p-1) where x < z; for p <= 2 minus the same where x > z
PULL_UP = 1  #   (s (x - z))^(p-1) where x > z
CURVE_DOWN = 2  # (s (z - x))^(p-2) where x < z; for p < 2 for all x != z
CURVE_UP = 3  #  (s (x - z))^(p-2) where x > z
SPREAD = 4  #    |s (x - z)|^p
BELOW = 5  #     the largest x <= z (p < 2 only, as the next three)
ABOVE = 6  #     the smallest x > z
AT_BELOW = 7  #  sample weight of the members at BELOW
AT_ABOVE = 8  #  sample weight of the members at ABOVE
N_TERMS = 9
# A look at an anchor (p < 2) counts the values inside its window here; inf if some of them
# could not be kept.
COUNT = CURVE_UP

# Rows of Sums.far, of the members x farther than a window from an anchor a (p < 2 only), with
# t = s (x - a): the sum of |t|^p, and those of sign(t) |t|^(p-1) (window / t)^j, j = 0, 1, ..
FAR_TERMS = 12


class Sums(NamedTuple):
    """Partial sums of one pass over a set of rows."""

    mass: np.ndarray  # (k,) sample weight per cluster
    fingerprint: np.ndarray  # (k,) hash of the set of members, independent of their order
    low: np.ndarray  # (k, m) smallest member
    high: np.ndarray  # (k, m) largest member
    terms: np.ndarray  # (k, N_TERMS, m)
    far: np.ndarray  # (k, FAR_TERMS or 0, m)
    changed: np.ndarray  # (2,) rows whose label changed, and rows that may be the farthest
    farthest: np.ndarray  # (1,) largest distance of a row to its own centre
    farthest_row: np.ndarray  # (m,) that row


def room_for_sums(n_clusters, n_features, n_far=0, before=()):
    """Sums whose numbers are yet to be set, with so many rows of `far`, and with these
    dimensions before those of each field.
    """
    shape = (*before, n_clusters, n_features)
    return Sums(
        np.empty((*before, n_clusters)),
        np.empty((*before, n_clusters), dtype=np.uint64),
        np.empty(shape),
        np.empty(shape),
        np.empty((*before, n_clusters, N_TERMS, n_features)),
        np.empty((*before, n_clusters, n_far, n_features)),
        np.empty((*before, 2), dtype=np.int64),
        np.empty((*before, 1)),
        np.empty((*before, n_features)),
    )


def empty_sums(n_clusters, n_features, n_far=0):
    """Sums over no rows."""
    sums = room_for_sums(n_clusters, n_features, n_far)
    clear(sums)
    return sums


@njit(**EXACT)
def clear(sums):
    """Reset to sums over no rows."""
    n_clusters, n_features = sums.low.shape
    sums.changed[:] = 0
    sums.farthest[0] = 0
    sums.farthest_row[:] = 0
    sums.far[:] = 0
    for l in range(n_clusters):
        sums.mass[l] = 0
        sums.fingerprint[l] = 0
        for v in range(n_features):
            sums.low[l, v], sums.high[l, v] = np.inf, -np.inf
        for term in range(N_TERMS):
            nothing = -np.inf if term == BELOW else np.inf if term == ABOVE else 0.0
            for v in range(n_features):
                sums.terms[l, term, v] = nothing


@njit(**EXACT)
def merge(total, part):
    """Add `part` to `total`."""
    n_clusters, n_features = total.low.shape
    total.changed[0] += part.changed[0]
    total.changed[1] += part.changed[1]
    if part.farthest[0] > total.farthest[0]:
        total.farthest[0] = part.farthest[0]
        for v in range(n_features):
            total.farthest_row[v] = part.farthest_row[v]
    for l in range(n_clusters):
        if part.mass[l] == 0:
            continue
        total.mass[l] += part.mass[l]
        total.fingerprint[l] += part.fingerprint[l]
        into, of = total.terms[l], part.terms[l]
        for v in range(n_features):
            total.low[l, v] = min(total.low[l, v], part.low[l, v])
            total.high[l, v] = max(total.high[l, v], part.high[l, v])
        for term in range(BELOW):
            for v in range(n_features):
                into[term, v] += of[term, v]
        for term in range(total.far.shape[1]):
            for v in range(n_features):
                total.far[l, term, v] += part.far[l, term, v]
        for v in range(n_features):
            into[BELOW, v], into[AT_BELOW, v] = join_neighbours(
                into[BELOW, v], into[AT_BELOW, v], of[BELOW, v], of[AT_BELOW, v], 1.0
            )
            into[ABOVE, v], into[AT_ABOVE, v] = join_neighbours(
                into[ABOVE, v], into[AT_ABOVE, v], of[ABOVE, v], of[AT_ABOVE, v], -1.0
            )


@njit(**EXACT)
def join_neighbours(value, weight, other, other_weight, sign):
    """The larger (sign 1) or smaller (sign -1) of two values and the weight found at it."""
    if other * sign > value * sign:
        return other, other_weight
    if other == value:
        return value, weight + other_weight
    return value, weight
