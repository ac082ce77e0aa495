"""L-BFGS from many starts at once, with array operations over all starts.

SciPy's L-BFGS-B runs one start at a time. On small problems, the Python interpreter then takes
as long as the array operations, and threads do not help, because they wait for the interpreter
lock. The tests compare the minima with those of SciPy.
"""

from typing import NamedTuple

import numpy as np

from cafelearn.extraction._components import dot

MEMORY = 10  # steps in the history
SUFFICIENT_DECREASE = 1e-4
SHORTEST_STEP = 1e-12


class Minima(NamedTuple):
    """The results of all starts."""

    points: np.ndarray  # (n_starts, n_parameters)
    values: np.ndarray  # (n_starts,)
    n_iter: np.ndarray  # (n_starts,)


class _State:
    """The points, gradients and histories of the starts that have not converged.

    The history of a start contains its last steps and the changes of the gradient. All starts
    write to the same position of their histories. If a step is rejected or has too little
    curvature, its inverse curvature is set to 0, so that it has no effect.
    """

    def __init__(self, points, values, slopes):
        n_starts, n_parameters = points.shape
        self.index = np.arange(n_starts)
        self.points, self.values, self.slopes = points, values, slopes
        self.steps = np.zeros((MEMORY, n_starts, n_parameters))
        self.changes = np.zeros((MEMORY, n_starts, n_parameters))
        self.inverse_curvature = np.zeros((MEMORY, n_starts))
        lengths = np.sqrt(dot(slopes, slopes))
        self.scale = 1 / np.maximum(lengths, np.finfo(float).tiny)
        self.directions = -slopes * self.scale[:, None]
        self.fraction = np.ones(n_starts)

    def keep(self, moving):
        """Keep only the starts selected by `moving`."""
        for name in ("steps", "changes", "inverse_curvature"):
            setattr(self, name, getattr(self, name)[:, moving])
        for name in (
            "index",
            "points",
            "values",
            "slopes",
            "scale",
            "directions",
            "fraction",
        ):
            setattr(self, name, getattr(self, name)[moving])


def minimize_all(function, starts, max_iter, tol):
    """Minimise a function of a vector from each row of `starts`.

    Parameters
    ----------
    function : callable
        Takes points of shape (n, n_parameters); returns their values, of shape (n,), and
        gradients, of shape (n, n_parameters). The results of a point must not depend on the
        other points.
    starts : ndarray of shape (n_starts, n_parameters)
        Initial points.
    max_iter : int
        Largest number of iterations. Each iteration tries one step of each start.
    tol : float
        A start has converged if a step lowers its value by at most `tol` times the absolute
        initial value, or if no entry of its gradient exceeds this limit. It also ends if its
        steps become too short.

    Returns
    -------
    minima : Minima
        The last point of each start, its value and its number of iterations.
    """
    points = np.array(starts, dtype=np.float64)
    values, slopes = function(points)
    found = Minima(points.copy(), values.copy(), np.zeros(len(points), dtype=int))
    allowed = tol * np.abs(values)
    state = _State(points, values, slopes)
    arrived = np.max(np.abs(slopes), axis=1) <= allowed
    for number in range(max_iter):
        if arrived.any():
            state.keep(~arrived)
            if not len(state.index):
                break
        arrived = _advance(state, function, number % MEMORY, allowed[state.index])
        ended = arrived if number + 1 < max_iter else slice(None)
        found.points[state.index[ended]] = state.points[ended]
        found.values[state.index[ended]] = state.values[ended]
        found.n_iter[state.index[ended]] = number + 1
    return found


def _advance(state, function, position, allowed):
    """Try one step of each start; return a mask of the starts that end."""
    steps = state.steps[position]
    np.multiply(state.directions, state.fraction[:, None], out=steps)
    points = state.points + steps
    values, slopes = function(points)
    changes = np.subtract(slopes, state.slopes, out=state.changes[position])
    expected = dot(state.slopes, steps)
    decrease = state.values - values
    accepted = decrease >= -SUFFICIENT_DECREASE * expected
    curvature = dot(steps, changes)
    # A step with little curvature would make the next one far too long.
    useful = accepted & (curvature > 1e-10 * np.abs(expected))
    state.inverse_curvature[position] = np.where(useful, 1 / np.where(useful, curvature, 1), 0)
    np.divide(curvature, dot(changes, changes), out=state.scale, where=useful)

    rejected = np.flatnonzero(~accepted)
    points[rejected] = state.points[rejected]
    slopes[rejected] = state.slopes[rejected]
    values[rejected] = state.values[rejected]
    state.points, state.slopes, state.values = points, slopes, values

    directions = _newton_directions(state, position)
    directions[rejected] = state.directions[rejected]
    state.directions = directions
    shorter = state.fraction * _shortening(expected, decrease)
    state.fraction = np.where(accepted, 1.0, shorter)
    small = np.max(np.abs(slopes), axis=1) <= allowed
    return np.where(accepted, (decrease <= allowed) | small, shorter < SHORTEST_STEP)


def _shortening(expected, decrease):
    """Return the factor, from 0.1 to 0.5, that shortens a rejected step.

    Within these limits, the shorter step leads to the minimum of the parabola that matches the
    values at both ends of the rejected step and the slope at its beginning.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = expected / (2 * (expected + decrease))
    return np.clip(np.nan_to_num(factor, nan=0.1), 0.1, 0.5)


def _newton_directions(state, position):
    """Multiply the gradients by minus the inverse Hessian, approximated from the history."""
    newest_first = [(position - age) % MEMORY for age in range(MEMORY)]
    directions = -state.slopes
    term = np.empty_like(directions)
    shares = np.empty_like(state.inverse_curvature)
    for k in newest_first:
        shares[k] = state.inverse_curvature[k] * dot(state.steps[k], directions)
        directions -= np.multiply(shares[k][:, None], state.changes[k], out=term)
    directions *= state.scale[:, None]
    for k in reversed(newest_first):
        shares[k] -= state.inverse_curvature[k] * dot(state.changes[k], directions)
        directions += np.multiply(shares[k][:, None], state.steps[k], out=term)
    return directions
