"""Objective and gradient of reconstruction ICA, for many starts at once."""

from typing import NamedTuple

import numpy as np

from cafelearn.extraction._components import dot


class Problem(NamedTuple):
    """The data divided by its largest absolute value, and precomputed quantities."""

    rows: np.ndarray  # (n_samples, n_features)
    columns: np.ndarray  # the transpose of `rows`, as a contiguous copy
    moments: np.ndarray  # rows.T @ rows / n_samples
    spread: float  # the trace of `moments`
    scale: float  # the divisor of the data
    bound: float  # upper bound of the features' absolute values, in the units of the data
    weight: float  # weight of the reconstruction error
    contrast: bool  # whether the objective includes the contrast


def make_problem(X, weight, contrast):
    """Prepare `X` for :func:`objective`."""
    X = X.astype(np.float64)
    scale = np.max(np.abs(X))
    rows = X / scale if scale > 0 else X
    # Below this limit, the contrast is quadratic to the last bit, so the scale is irrelevant.
    scale = max(float(scale), 1e-100)
    moments = rows.T @ rows / len(rows)
    bound = scale * np.sqrt(np.max(np.einsum("ij,ij->i", rows, rows)))
    columns = np.ascontiguousarray(rows.T)
    return Problem(rows, columns, moments, np.trace(moments), scale, bound, weight, contrast)


def objective(directions, problem, workspace=None):
    """Compute the objective of reconstruction ICA, divided by ``scale**2``, and its gradient.

    Parameters
    ----------
    directions : ndarray of shape (n_starts, n_components, n_features)
        One component per row; its length is irrelevant.
    problem : Problem
        The data.
    workspace : ndarray of shape (2, >= n_starts * n_components, n_samples), default=None
        Memory to reuse, because allocating fresh pages would cost more than the arithmetic.

    Returns
    -------
    values : ndarray of shape (n_starts,)
        The objective of each start.
    slopes : ndarray of shape (n_starts, n_components, n_features)
        The gradient of each start.
    """
    lengths = np.sqrt(dot(directions, directions))[..., None]
    components = directions / lengths
    values, slopes = _reconstruction(components, problem)
    if problem.contrast:
        more_values, more_slopes = _contrast(components, problem, workspace)
        values += more_values
        slopes += more_slopes
    # The length of a direction is irrelevant, so the gradient is orthogonal to the direction.
    slopes -= components * dot(slopes, components)[..., None]
    slopes /= lengths
    return values, slopes


def _reconstruction(components, problem):
    """Compute the mean of ``||W W.T x - x||**2``, times its weight, from the second moments."""
    moved = components @ problem.moments
    transposed = components.transpose(0, 2, 1)
    moments = moved @ transposed
    overlap = components @ transposed
    errors = problem.spread + np.sum(dot(moments, overlap) - 2 * dot(moved, components), -1)
    slopes = overlap @ moved
    slopes += moments @ components
    slopes -= 2 * moved
    slopes *= 2 * problem.weight
    return problem.weight * errors, slopes


def _contrast(components, problem, workspace=None):
    """Compute the mean over rows of the sum of ``log(cosh(2 z)) / 2`` over features z.

    The equal form ``log(1 + 2 sinh(z)**2) / 2`` keeps all digits for small z. The function is
    linear to the last bit for absolute values of z above 20.
    """
    n_starts, n_components, n_features = components.shape
    if workspace is None:
        workspace = np.empty((2, n_starts * n_components, len(problem.rows)))
    features, tanh = workspace[:, : n_starts * n_components]
    flat = components.reshape(-1, n_features)
    np.matmul(problem.scale * flat, problem.columns, out=features)
    np.tanh(np.multiply(features, 2, out=tanh), out=tanh)
    share = 1 / (len(problem.rows) * problem.scale)
    slopes = (tanh @ problem.rows) * share

    values = np.zeros(n_starts)
    if problem.bound > 20:
        beyond = np.maximum(np.abs(features) - 20, 0)
        values += beyond.reshape(n_starts, -1).sum(axis=1)
        np.clip(features, -20, 20, out=features)
    square = np.square(np.sinh(features, out=features), out=features)
    square *= 2
    values += np.log1p(square, out=square).reshape(n_starts, -1).sum(axis=1) / 2
    return values * share / problem.scale, slopes.reshape(components.shape)
