"""`make boundscheck` reports an index out of bounds."""

import numba
import numpy as np
import pytest

from cafelearn._solver.kernels.assign import assign_chunk, make_geometry


@pytest.mark.skipif(
    not numba.config.BOUNDSCHECK, reason="compiled without bounds checks; see make boundscheck"
)
def test_rows_beyond_the_last_are_noticed():
    labels, nearest, X = np.zeros(10, dtype=np.int32), np.zeros(10), np.zeros((10, 3))
    centers = np.zeros((2, 3))
    geometry = make_geometry(2.0, X.dtype)
    with pytest.raises(IndexError, match="out of bounds"):
        assign_chunk(labels, nearest, X, 0, 12, centers, np.ones((2, 3)), geometry)
