"""Types of the public API."""

from typing import Any, TypeAlias

import numpy as np

# scikit-learn's array-like without sparse matrices, and Dask collections. Any, because the type
# checker may have no types for these libraries.
MatrixLike: TypeAlias = Any
VectorLike: TypeAlias = Any
# Any object with the methods of a scikit-learn estimator, for which there are no types.
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
