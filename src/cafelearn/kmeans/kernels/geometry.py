"""Constants derived from the exponent p and the type of the data."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from cafelearn.kmeans.kernels.power import LARGEST_DIRECT, negative_plan, power_plan


class Geometry(NamedTuple):
    """Constants of the Minkowski geometry for one type of numbers."""

    p: float
    single: bool  # whether the data is float32
    rooted: bool  # whether distances are p-th roots, because Eq. 2 may exceed the float range
    tolerance: float  # accepted error of a centre, in units of its members' range
    distances: np.ndarray  # plan (see kernels.power) of |t|^p
    curvature: np.ndarray  # plan of |t|^(p-2), a `negative_plan` for p < 2; unused for p = 2, 3


def make_geometry(p, dtype):
    """Return the geometry of exponent `p` for data of `dtype`."""
    return _make_geometry(float(p), np.dtype(dtype))


@lru_cache(maxsize=64)
def _make_geometry(p, dtype):
    single = dtype == np.float32
    if p < 2:
        curvature = negative_plan(p - 2, dtype)
    else:
        curvature = power_plan(p - 2 if p > 2 else 1.0, dtype)
    return Geometry(
        p,
        bool(single),
        bool(p > LARGEST_DIRECT[dtype]),
        2e-7 if single else 1e-10,
        power_plan(p, dtype),
        curvature,
    )


def chunk_rows(n_features):
    """Return the number of rows of a chunk.

    A chunk has at most 8192 rows and 2 MB, to fit L2 caches, but at least 256 rows.
    """
    return int(min(max(2**18 // n_features, 256), 8192))
