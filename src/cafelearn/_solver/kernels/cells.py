"""The numbers that a descent keeps for each cluster and feature, as rows of one array.

An array of shape (k, N_CELLS, m), float64; in a fit of float32 the centres and weights in it
are float32 numbers. It is one array, because every argument of a compiled function adds
to the time it takes to compile, and float64, so that functions without rows are compiled once.
"""

import numpy as np

CENTER = 0
WEIGHT = 1
SCALED_WEIGHT = 2  # times the scale of the data
SCALE = 3  # power of two that brings s (x - z) near 1
LOG_DISPERSION = 4  # log D at the centre
MASS = 5  # sample weight of the members at the last centre update
MEMBERS = 6  # in its first place the bits of the hash of these members
# The search for the centre.
OPEN = 7  # 1 until it has converged
LOW = 8  # the bracket
HIGH = 9
VALUE_LOW = 10  # the function at low and high (an estimate before the first pass there)
VALUE_HIGH = 11
SPAN = 12  # range of the members
START = 13  # the first point of the search, and the function there
VALUE_START = 14
LAST = 15  # the previous point of the search, and the function there
VALUE_LAST = 16
GAP = 17  # the data value below that point, and the slope of the rest there (p < 2)
REST_SLOPE = 18
SLOPE = 19  # mean slope from the first point to the root of the last search
SIDE = 20  # which end moved last: -1, 1, or 0 for none
PASSES = 21
LEAST = 22  # the members' extrema
MOST = 23
N_CELLS = 24


def make_cells(centers, weights, scale, feature_scale):
    """The cells before the first pass; `centers` are of the type of the data."""
    cells = np.zeros((len(centers), N_CELLS, centers.shape[1]))
    cells[:, CENTER] = centers
    cells[:, WEIGHT] = weights
    cells[:, SCALED_WEIGHT] = weights * centers.dtype.type(scale)
    cells[:, SCALE] = feature_scale
    cells[:, LOG_DISPERSION] = -np.inf
    cells[:, OPEN] = 1
    return cells
