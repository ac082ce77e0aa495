"""Types of the public API."""

from typing import Any, TypeAlias

import numpy as np

# Dask collections, and everything that scikit-learn accepts as an array except sparse matrices.
# The type is Any, because type stubs for these libraries may not be installed.
MatrixLike: TypeAlias = Any
VectorLike: TypeAlias = Any
# Objects with the methods of a scikit-learn estimator, for which scikit-learn has no types.
Transformer: TypeAlias = Any
Estimator: TypeAlias = Any

Seed: TypeAlias = (
    int
    | np.integer
    | np.random.RandomState
    | np.random.Generator
    | np.random.SeedSequence
    | None
)
