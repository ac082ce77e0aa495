"""Scaled conjugate gradients from many starts at once (Møller 1993)."""

import numpy as np

from cafelearn.extraction._components import dot

# Length of the step for estimating the curvature by a difference of gradients.
SIGMA = 5e-5
# Initial damping: a multiple of the identity that is added to the Hessian.
DAMPING = 5e-7
SMALLEST_GAIN = np.finfo(float).eps
TINY = 1e-100


def minimize_all(function, starts, n_epochs):
    """Take `n_epochs` scaled conjugate gradient steps from each row of `starts`.

    Parameters
    ----------
    function : callable
        Takes points of shape (n_starts, n_parameters); returns their values, of shape
        (n_starts,), and gradients, of shape (n_starts, n_parameters). The results of a point
        must not depend on the other points.
    starts : ndarray of shape (n_starts, n_parameters)
        Initial points.
    n_epochs : int
        Number of steps to try. A step that would raise the value is rejected, and the next step
        is shorter.

    Returns
    -------
    points : ndarray of shape (n_starts, n_parameters)
        The last point of each start.
    values : ndarray of shape (n_starts,)
        The values at these points.
    """
    points = np.array(starts, dtype=np.float64)
    n_starts, n_parameters = points.shape
    values, slopes = function(points)
    directions = -slopes
    taken = np.ones(n_starts, dtype=bool)
    curvature = np.zeros(n_starts)
    damping = np.full(n_starts, DAMPING)
    included = np.zeros(n_starts)  # damping already included in the curvature
    arrived = np.zeros(n_starts, dtype=bool)

    for epoch in range(1, n_epochs + 1):
        squared = dot(directions, directions)
        distance = _ratio(SIGMA, np.sqrt(squared))
        _, ahead = function(points + distance[:, None] * directions)
        measured = _ratio(dot(directions, ahead - slopes), distance)
        curvature = np.where(taken, measured, curvature) + (damping - included) * squared
        upward = (curvature <= 0) & ~arrived
        raised = 2 * (damping - _ratio(curvature, squared))
        curvature = np.where(upward, damping * squared - curvature, curvature)
        damping = np.where(upward, raised, damping)

        descent = -dot(directions, slopes)
        length = _ratio(descent, curvature)
        # Decreases as small as this are within the rounding errors of the values.
        arrived |= descent * length <= SMALLEST_GAIN * np.abs(values) + TINY
        new_points = points + length[:, None] * directions
        new_values, new_slopes = function(new_points)
        # The ratio of the actual decrease to the decrease predicted by the quadratic model.
        agreement = _ratio(2 * curvature * (values - new_values), descent**2)
        taken = agreement >= 0

        included = np.where(taken, 0.0, damping)
        damping = np.where(agreement >= 0.75, damping / 4, damping)
        damping += np.where(agreement < 0.25, _ratio(curvature * (1 - agreement), squared), 0)

        bend = _ratio(dot(new_slopes, new_slopes - slopes), descent)
        if epoch % n_parameters == 0:
            bend[:] = 0
        new_directions = bend[:, None] * directions - new_slopes
        new_directions[arrived] = 0
        points = np.where(taken[:, None], new_points, points)
        slopes = np.where(taken[:, None], new_slopes, slopes)
        values = np.where(taken, new_values, values)
        directions = np.where((taken | arrived)[:, None], new_directions, directions)
    return points, values


def _ratio(above, below):
    """Compute ``above / below``; return 0 for starts with a zero denominator."""
    below = np.asarray(below)
    return np.divide(above, below, out=np.zeros_like(below), where=below != 0)
