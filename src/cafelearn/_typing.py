"""Types of the public API."""

from typing import Any, TypeAlias

import numpy as np

# What scikit-learn calls array-like, apart from its sparse matrices, and Dask collections:
# libraries of which the type checker may know nothing.
MatrixLike: TypeAlias = Any
VectorLike: TypeAlias = Any
# Anything with the methods of a scikit-learn transformer or estimator, which has no types.
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
