"""`make boundscheck` reports an index out of bounds."""

import numba
import numpy as np
import pytest

from cafelearn.kmeans.kernels.assign import distance_chunk
from cafelearn.kmeans.kernels.blocks import make_scratch
from cafelearn.kmeans.kernels.geometry import make_geometry


@pytest.mark.skipif(
    not numba.config.BOUNDSCHECK, reason="compiled without bounds checks; see make boundscheck"
)
def test_rows_beyond_the_last_are_noticed():
    X, centers = np.zeros((12, 3)), np.zeros((2, 3))
    geometry, scratch = make_geometry(2.0, X.dtype), make_scratch(X, 2, 12, 2.0)
    with pytest.raises(IndexError, match="out of bounds"):
        distance_chunk(np.zeros((10, 2)), X, centers, np.ones((2, 3)), geometry, scratch)
