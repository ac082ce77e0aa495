"""Large data: distances in columns that have only two values, without powers.

|w (x - z)|^p takes two values there, and is a line between them: it is
least + rise |x - near| / |x1 - x2|, where `near` is the value whose power is the least.
"""

from typing import NamedTuple

import numpy as np

from cafelearn._solver.kernels.blocks import padded
from cafelearn._solver.kernels.compiling import EXACT, MAKES, ONE, PART, ZERO, njit
from cafelearn._solver.kernels.pairs import LESS, MORE, is_pair
from cafelearn._solver.kernels.power import add_powers

# Rows of Chords.names and places in Chords.counts: the features with a chord, and the others.
PAIRED, OTHER = 0, 1
# Values nearer to each other than this, relative to the way to a centre, are hard to tell
# apart in single precision; powers larger than this might overflow.
CLOSE, LARGE = 1e-5, 1e18


class Chords(NamedTuple):
    """The lines between the powers of two values, for every centre."""

    values: np.ndarray  # (2, m) of the type of the data
    powers: np.ndarray  # (2, k, m) of both values
    floors: np.ndarray  # (k,) the sum of the least ones
    names: np.ndarray  # (2, m)
    counts: np.ndarray  # (2,)


@njit(**MAKES)
def no_chords(X, n_clusters):
    """Room for chords, where there are none yet."""
    n_features = X.shape[1]
    names = np.empty((2, n_features), dtype=np.int64)
    names[OTHER] = np.arange(n_features)
    return Chords(
        np.empty((2, n_features), dtype=X.dtype),
        np.empty((2, n_clusters, n_features), dtype=np.float32),
        np.zeros(n_clusters, dtype=np.float32),
        names,
        np.array([0, n_features]),
    )


@njit(**PART)
def with_chords(screen):
    """The features that have chords."""
    return screen.chords.names[PAIRED, : screen.chords.counts[PAIRED]]


@njit(**PART)
def without_chords(screen):
    """The features that have none."""
    return screen.chords.names[OTHER, : screen.chords.counts[OTHER]]


@njit(**EXACT)
def set_powers(screen, features, size, plan):
    """Raise the bases of a screen."""
    for v in features:
        for b in range(size):
            screen.powers[v, b] = 0
    add_powers(
        screen.powers, -ONE, screen.bases, features, screen.zeros, screen.ones, ZERO, size, plan
    )


@njit(**EXACT)
def draw_chords(screen, pair, state, geometry):
    """Draw the chords of the columns whose values in this chunk are `pair`."""
    chords, n_clusters = screen.chords, len(state.centers)
    _choose_columns(chords, pair, state, geometry.p)
    paired, block = with_chords(screen), len(screen.labels)
    for side in (LESS, MORE):
        for first in range(0, n_clusters if len(paired) > 0 else 0, block):
            size = min(block, n_clusters - first)
            for v in paired:
                x = chords.values[side, v]
                for b in range(padded(size)):
                    l = min(first + b, n_clusters - 1)
                    screen.bases[v, b] = state.scaled_weights[l, v] * (x - state.centers[l, v])
            set_powers(screen, paired, padded(size), geometry.coarse)
            for v in paired:
                for b in range(size):
                    chords.powers[side, first + b, v] = screen.powers[v, b]
    for l in range(n_clusters):
        floor = np.float32(0)
        for v in paired:
            floor += min(chords.powers[LESS, l, v], chords.powers[MORE, l, v])
        chords.floors[l] = floor


@njit(**EXACT)
def _choose_columns(chords, pair, state, p):
    """List the columns that get chords, and the others."""
    names, counts = chords.names, chords.counts
    counts[:] = 0
    for v in range(pair.shape[1]):
        kind = OTHER
        if is_pair(pair, v) and _is_sound(pair, v, state.centers, state.scaled_weights, p):
            kind = PAIRED
            chords.values[LESS, v], chords.values[MORE, v] = pair[LESS, v], pair[MORE, v]
        names[kind, counts[kind]] = v
        counts[kind] += 1


@njit(**EXACT)
def _is_sound(pair, v, centers, weights, p):
    """Whether single precision can tell the values apart, and raise them."""
    less, more = np.float64(pair[LESS, v]), np.float64(pair[MORE, v])
    way, most = 0.0, 0.0
    for l in range(len(centers)):
        reach = max(abs(less - centers[l, v]), abs(more - centers[l, v]))
        way, most = max(way, reach), max(most, reach * weights[l, v])
    return (less == more or more - less > CLOSE * way) and most < LARGE ** (1 / p)


@njit(**EXACT)
def place_chords(screen):
    """The chords as they are seen from the origin of the screen."""
    chords, origin = screen.chords, screen.origin
    powers, values = chords.powers, chords.values
    for v in with_chords(screen):
        less = np.float32(values[LESS, v] - origin[v])
        more = np.float32(values[MORE, v] - origin[v])
        for l in range(len(screen.centers)):
            rise = powers[MORE, l, v] - powers[LESS, l, v]
            screen.origins[l, v] = less if rise >= 0 else more
            screen.slopes[l, v] = abs(rise) / (more - less) if more > less else np.float32(0)
