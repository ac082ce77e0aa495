"""The state of a descent for each cluster and feature, in one array.

The array has shape (k, N_CELLS, m) and type float64. If the data are float32, its centres and
weights are rounded to float32. It is one array, because every argument of a compiled function
adds to its compilation time, and always float64, so that functions that do not take data rows
are compiled only once.
"""

import numpy as np

# NumPy's integers for the reason given in kernels.sums.
CENTER = np.int64(0)
WEIGHT = np.int64(1)
SCALED_WEIGHT = np.int64(2)  # times the scale of the data
SCALE = np.int64(3)  # power of two that brings s (x - z) near 1
LOG_DISPERSION = np.int64(4)  # log D at the centre
MASS = np.int64(5)  # sample weight of the members at the last centre update
MEMBERS = np.int64(6)  # its first element has the bits of the hash of these members
# The search for the centre, which is the root in z of the function defined in `centers`. Each
# pass evaluates the function at one point.
OPEN = np.int64(7)  # 1 while the search goes on
LOW = np.int64(8)  # the bracket
HIGH = np.int64(9)
VALUE_LOW = np.int64(10)  # the function at LOW and HIGH (a guess until the end is moved)
VALUE_HIGH = np.int64(11)
SPAN = np.int64(12)  # range of the members
START = np.int64(13)  # the first point, and the function there
VALUE_START = np.int64(14)
LAST = np.int64(15)  # the previous point, and the function there
VALUE_LAST = np.int64(16)
GAP = np.int64(17)  # the data value below LAST, and the slope of the rest there (p < 2)
REST_SLOPE = np.int64(18)
SLOPE = np.int64(19)  # mean slope from START to the root in the last search
SIDE = np.int64(20)  # which end moved last: -1, 1, or 0 for none
PASSES = np.int64(21)
LEAST = np.int64(22)  # the members' extrema
MOST = np.int64(23)
N_CELLS = np.int64(24)


def make_cells(centers, weights, scale, feature_scale):
    """Make the cells for the first pass; `centers` have the type of the data."""
    cells = np.zeros((len(centers), N_CELLS, centers.shape[1]))
    cells[:, CENTER] = centers
    cells[:, WEIGHT] = weights
    cells[:, SCALED_WEIGHT] = weights * centers.dtype.type(scale)
    cells[:, SCALE] = feature_scale
    cells[:, LOG_DISPERSION] = -np.inf
    cells[:, OPEN] = 1
    return cells
