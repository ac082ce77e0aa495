"""Types of the public API."""

from typing import Any, TypeAlias

import numpy as np

# scikit-learn's array-likes except sparse matrices, and Dask collections. The type is Any,
# because type stubs for these libraries may not be installed.
MatrixLike: TypeAlias = Any
VectorLike: TypeAlias = Any
# Objects with the methods of a scikit-learn estimator; scikit-learn has no types for them.
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
