"""The state of a descent for each cluster and feature, in one array.

The array has shape (k, N_CELLS, m). The cell of cluster l and feature v is [l, :, v]; its
N_CELLS numbers have the indices listed below. There is only one array, because every argument
of a compiled function adds to its compilation time. Its type is always float64, so that
functions without data rows among their arguments are compiled only once. If the data is
float32, centres and weights are rounded to float32.
"""

import numpy as np

# NumPy integers, for the reason given in kernels.sums.
CENTER = np.int64(0)
WEIGHT = np.int64(1)
SCALED_WEIGHT = np.int64(2)  # WEIGHT times the scale of the data
SCALE = np.int64(3)  # factor s that brings s (x - z) near 1, for members x and the centre z
LOG_DISPERSION = np.int64(4)  # log of the dispersion about the centre
MASS = np.int64(5)  # sum of the members' sample weights at the last update of the centre
MEMBERS = np.int64(6)  # [l, MEMBERS, 0] has the bits of the hash of the members at that update
# The following numbers are used to search for the centre, which is the root of the function of
# z defined in `centers`. Each pass evaluates this function at one point.
OPEN = np.int64(7)  # 1 while the search goes on
LOW = np.int64(8)  # the bracket of the root: LOW and HIGH
HIGH = np.int64(9)
VALUE_LOW = np.int64(10)  # value of the function at LOW, a guess until LOW has moved
VALUE_HIGH = np.int64(11)  # the same for HIGH
SPAN = np.int64(12)  # range of the members
START = np.int64(13)  # first point of the search
VALUE_START = np.int64(14)  # value of the function at START
LAST = np.int64(15)  # previous point of the search
VALUE_LAST = np.int64(16)  # value of the function at LAST
LAST_BELOW = np.int64(17)  # largest data value up to LAST (p < 2)
REST_SLOPE = np.int64(18)  # slope at LAST of the rest defined in `neighbours` (p < 2)
SLOPE = np.int64(19)  # mean slope between START and the root, from the previous search
SIDE = np.int64(20)  # end of the bracket that moved last: -1 for LOW, 1 for HIGH, 0 for neither
PASSES = np.int64(21)  # number of passes of the search
LEAST = np.int64(22)  # smallest member
MOST = np.int64(23)  # largest member
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
