"""Loss and gradient of an autoencoder with one hidden layer, for many starts at once."""

from typing import NamedTuple

import numpy as np


class Problem(NamedTuple):
    """The scaled data, with a column of ones for the offsets, and the penalties."""

    rows: np.ndarray  # (n_samples, n_features + 1)
    columns: np.ndarray  # the transpose of `rows`, as a contiguous copy
    n_components: int
    l2: float
    sparsity_weight: float
    sparsity: float


class Workspace(NamedTuple):
    """Memory to reuse, because allocating fresh pages would cost more than the arithmetic."""

    hidden: np.ndarray  # (n_starts, n_components + 1, n_samples); the last unit is always 1
    back: np.ndarray  # (n_starts, n_components, n_samples)
    output: np.ndarray  # (n_starts, n_features, n_samples)
    delta: np.ndarray  # (n_starts, n_features, n_samples)


def make_problem(scaled, n_components, l2, sparsity_weight, sparsity):
    """Prepare data that is scaled to [0, 1] for :func:`loss`."""
    rows = np.column_stack([scaled.astype(np.float64), np.ones(len(scaled))])
    columns = np.ascontiguousarray(rows.T)
    return Problem(rows, columns, n_components, l2, sparsity_weight, sparsity)


def initial_point(seed, problem, scale):
    """Draw the parameters of one start: small weights, zero offsets."""
    rng = np.random.default_rng(seed)
    n_features = problem.rows.shape[1] - 1
    limit = scale * np.sqrt(6 / (n_features + problem.n_components))
    point = np.zeros(
        (1, 2 * n_features * problem.n_components + n_features + problem.n_components)
    )
    for layer in layers(point, problem):
        layer[0, :, :-1] = rng.uniform(-limit, limit, size=layer[0, :, :-1].shape)
    return point[0]


def layers(points, problem):
    """Return views of the two layers in `points`, with the offsets in the last columns."""
    n_features = problem.rows.shape[1] - 1
    seam = problem.n_components * (n_features + 1)
    return (
        points[:, :seam].reshape(-1, problem.n_components, n_features + 1),
        points[:, seam:].reshape(-1, n_features, problem.n_components + 1),
    )


def make_workspace(n_starts, problem):
    """Allocate memory for :func:`loss` to process up to `n_starts` starts at a time."""
    n_samples, n_columns = problem.rows.shape
    hidden = np.ones((n_starts, problem.n_components + 1, n_samples))
    output = np.empty((n_starts, n_columns - 1, n_samples))
    return Workspace(hidden, np.empty_like(hidden[:, :-1]), output, np.empty_like(output))


def loss(points, problem, workspace):
    """Compute the loss of each start and its gradient.

    Parameters
    ----------
    points : ndarray of shape (n_starts, n_parameters)
        The parameters of each start; see :func:`layers`.
    problem : Problem
        The data and the penalties.
    workspace : Workspace
        Memory to reuse; starts are processed in batches that fit into it.

    Returns
    -------
    values : ndarray of shape (n_starts,)
        The loss of each start.
    slopes : ndarray of shape (n_starts, n_parameters)
        The gradient of the loss of each start.
    errors : ndarray of shape (n_starts,)
        The mean squared error of each start, over all entries of the scaled data.
    """
    slopes = np.empty_like(points)
    values, errors = np.empty(len(points)), np.empty(len(points))
    size = len(workspace.hidden)
    for first in range(0, len(points), size):
        block = slice(first, first + size)
        part = Workspace(*(array[: len(points[block])] for array in workspace))
        errors[block], penalty = _propagate(points[block], slopes[block], problem, part)
        values[block] = errors[block] * (problem.rows.shape[1] - 1) + penalty
    for layer, slope in zip(layers(points, problem), layers(slopes, problem), strict=True):
        weights = layer[:, :, :-1]
        slope[:, :, :-1] += problem.l2 * weights
        values += problem.l2 / 2 * np.einsum("kij,kij->k", weights, weights)
    return values, slopes, errors


def _propagate(points, slopes, problem, workspace):
    """Compute the loss and its gradient without the l2 penalty.

    Write the gradient into `slopes`; return the mean squared errors and sparsity penalties.
    """
    hidden, back, output, delta = workspace
    encoder, decoder = layers(points, problem)
    encoder_slope, decoder_slope = layers(slopes, problem)
    units = hidden[:, :-1]

    _logistic(np.matmul(-encoder, problem.columns, out=units))
    _logistic(np.matmul(-decoder, hidden, out=output))
    penalty, slope = _sparsity(units.mean(axis=2), problem)

    np.subtract(output, problem.columns[:-1], out=delta)
    errors = np.einsum("kij,kij->k", delta, delta) / delta[0].size
    # Propagate half of the derivative of the sum of squared errors. The factor 2 / n_samples is
    # applied at the end.
    delta *= output
    np.subtract(1, output, out=output)
    delta *= output
    np.matmul(delta, hidden.transpose(0, 2, 1), out=decoder_slope)

    np.matmul(decoder[:, :, :-1].transpose(0, 2, 1), delta, out=back)
    back += slope[:, :, None] / 2
    back *= units
    np.subtract(1, units, out=units)
    back *= units
    np.matmul(back, problem.rows, out=encoder_slope)
    slopes *= 2 / len(problem.rows)
    return errors, penalty


def _logistic(negative):
    """Compute ``1 / (1 + exp(negative))`` in place; where exp overflows, the result is 0."""
    with np.errstate(over="ignore"):
        np.exp(negative, out=negative)
    negative += 1
    np.divide(1, negative, out=negative)


def _sparsity(activation, problem):
    """Compute the sparsity penalty of the mean activations, and its derivatives."""
    wanted = problem.sparsity
    activation = np.clip(activation, 1e-12, 1 - 1e-12)
    divergence = wanted * np.log(wanted / activation)
    divergence += (1 - wanted) * np.log((1 - wanted) / (1 - activation))
    slope = (1 - wanted) / (1 - activation) - wanted / activation
    return problem.sparsity_weight * divergence.sum(axis=1), problem.sparsity_weight * slope
