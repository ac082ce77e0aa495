"""One pass over some rows, and kernels that only compiled code calls."""

from functools import cache

import numba
import numpy as np

from cafelearn.kmeans.descent import Rows, Span, run_passes, scratch_for
from cafelearn.kmeans.iteration import make_problem, start
from cafelearn.kmeans.kernels.cells import SCALED_WEIGHT
from cafelearn.kmeans.kernels.sums import empty_stack

SCALE = 0.25


@cache
def from_python(kernel):
    """A kernel as a function that Python can call."""

    @numba.njit(error_model="numpy")
    def call(*arguments):
        return kernel(*arguments)

    return call


def sums_of(phase, X, sample_weight, labels, centers, weights, p, **span):
    """The sums of one pass about these centres; labels are updated in place."""
    problem = make_problem(X, p, 1.0, -np.inf, 5, 0.0)
    state = start(centers, np.full(X.shape[1], SCALE), problem)
    state.cells[:, SCALED_WEIGHT] = weights
    n_chunks = -(-len(X) // problem.chunk)
    stack = empty_stack(n_chunks, *centers.shape)
    rows = Rows(X, sample_weight, labels)
    scratch = scratch_for(X, len(centers), problem)
    run_passes(phase, state, stack, rows, problem, Span(0, n_chunks, **span), scratch)
    return stack[0]
