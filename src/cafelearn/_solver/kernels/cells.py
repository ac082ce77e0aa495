"""The numbers that a descent keeps for each cluster and feature, as rows of one array.

An array of shape (k, N_CELLS, m), float64; in a fit of float32 the centres and weights in it
are float32 numbers. It is one array, because every argument of a compiled function adds
to the time it takes to compile, and float64, so that functions without rows are compiled once.
"""

import numpy as np

# NumPy's integers for the reason given in kernels.sums.
CENTER = np.int64(0)
WEIGHT = np.int64(1)
SCALED_WEIGHT = np.int64(2)  # times the scale of the data
SCALE = np.int64(3)  # power of two that brings s (x - z) near 1
LOG_DISPERSION = np.int64(4)  # log D at the centre
MASS = np.int64(5)  # sample weight of the members at the last centre update
MEMBERS = np.int64(6)  # in its first place the bits of the hash of these members
# The search for the centre.
OPEN = np.int64(7)  # 1 while it goes on
LOW = np.int64(8)  # the bracket
HIGH = np.int64(9)
VALUE_LOW = np.int64(10)  # the function at low and high (an estimate before the first visit)
VALUE_HIGH = np.int64(11)
SPAN = np.int64(12)  # range of the members
START = np.int64(13)  # the first place visited, and the function there
VALUE_START = np.int64(14)
LAST = np.int64(15)  # the place visited before this one, and the function there
VALUE_LAST = np.int64(16)
GAP = np.int64(17)  # the data value below that place, and the slope of the rest there (p < 2)
REST_SLOPE = np.int64(18)
SLOPE = np.int64(19)  # mean slope from the first place to the root of the last search
SIDE = np.int64(20)  # which end moved last: -1, 1, or 0 for none
PASSES = np.int64(21)
LEAST = np.int64(22)  # the members' extrema
MOST = np.int64(23)
N_CELLS = np.int64(24)


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
