"""Free-form densities of single columns: mixtures of up to four normal densities, or uniform.

A column that tells nothing about the clusters has one density in all of them. If this density
had to be normal, the mixture would spend clusters on the shape of the column.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from cafelearn.mixture.settings import SETTINGS, TINY

# Number of quantiles that stand for the values of a column while its density is fitted.
POINTS = 100
ITERATIONS = 30
# A uniform density falls by a factor of e within this part of its width, beyond its ends.
FALL = 50.0
LOG_2PI = np.log(2 * np.pi)
# Smallest log density. Mixtures add log densities and subtract them again, which leaves
# rounding errors if they are large.
LEAST = -1e6


class Marginals(NamedTuple):
    """Densities of c columns, each a mixture of at most g normal densities or uniform.

    A uniform density has weight 0 for all components. The line is cut into intervals such that
    one component has the highest density in each interval; the mode of a value is the number of
    this component. Modes describe how clusters differ in columns of several peaks.
    """

    weight: np.ndarray  # (c, g)
    mean: np.ndarray  # (c, g)
    deviation: np.ndarray  # (c, g) standard deviations
    low: np.ndarray  # (c,) smallest value of the rows
    high: np.ndarray  # (c,) largest value
    n_parameters: np.ndarray  # (c,)
    cuts: np.ndarray  # (c, j) ends of the intervals, ascending; inf where there are fewer
    modes: np.ndarray  # (c, j + 1) mode of each interval
    mode_column: np.ndarray  # (e,) column of each mode, for columns of several modes
    mode_number: np.ndarray  # (e,) number of the mode within its column
    mode_share: np.ndarray  # (e,) probability of the mode

    def log_density(self, values, present):
        """Compute the log density of each value; 0 where `present` is 0. Shape (n, c)."""
        found = np.zeros_like(values)
        width = np.maximum(self.high - self.low, TINY)
        uniform = self.weight.sum(axis=1) == 0
        # Beyond the range, a uniform density falls off instead of being 0.
        beyond = np.maximum(self.low - values, 0) + np.maximum(values - self.high, 0)
        area = np.log(width * (1 + 2 / FALL))
        found[:, uniform] = (-area - FALL * beyond / width)[:, uniform]
        for v in np.flatnonzero(~uniform):
            found[:, v] = _log_mixture(
                values[:, v], self.weight[v], self.mean[v], self.deviation[v]
            )
        return np.maximum(found, LEAST) * present

    def mode_indicators(self, values, present):
        """Tell which mode each value belongs to; shape (n, e)."""
        found = np.empty((len(values), len(self.mode_column)))
        for v in np.unique(self.mode_column):
            interval = np.searchsorted(self.cuts[v], values[:, v])
            mode = self.modes[v][interval]
            for place in np.flatnonzero(self.mode_column == v):
                found[:, place] = (mode == self.mode_number[place]) * present[:, v]
        return found


def fit_marginals(values, present, weight, largest=None):
    """Fit a density to each column: the one of the lowest BIC.

    Parameters
    ----------
    values : ndarray of shape (n_samples, n_columns)
        The values.
    present : ndarray of shape (n_samples, n_columns)
        1 where the value counts, else 0.
    weight : ndarray of shape (n_samples,)
        Weight of each row.
    largest : int, default=None
        Largest number of normal densities of a column; ``None`` means that of the settings.

    Returns
    -------
    marginals : Marginals
        The densities.
    """
    n_columns, most = values.shape[1], SETTINGS.marginal_components
    mass = weight @ present
    points, low, high = _quantiles(values, present, weight)
    price = 0.5 * np.log(np.maximum(mass, 2.0))
    width = np.maximum(high - low, TINY)
    best = -np.log(width * (1 + 2 / FALL)) * mass - 2 * price
    fitted = [
        np.zeros((n_columns, most)),
        np.zeros((n_columns, most)),
        np.ones((n_columns, most)),
    ]
    n_parameters = np.full(n_columns, 2.0)
    for size in range(1, (largest or most) + 1):
        parts = _fit_size(points, size)
        score = mass / POINTS * _mixture_sums(points, *parts) - (3 * size - 1) * price
        better = score > best
        for whole, part in zip(fitted, parts, strict=True):
            whole[better] = np.where(np.arange(most) < size, 0.0, whole[better])
            whole[better, :size] = part[better]
        fitted[0][better, size:], fitted[2][better, size:] = 0.0, 1.0
        n_parameters[better], best[better] = 3 * size - 1, score[better]
    return Marginals(*fitted, low, high, n_parameters, *_modes(*fitted))


def _quantiles(values, present, weight):
    """Return POINTS quantiles of each column, and its extremes."""
    places = (np.arange(POINTS) + 0.5) / POINTS
    points = np.zeros((POINTS, values.shape[1]))
    low, high = points[0].copy(), points[0].copy()
    for v in range(values.shape[1]):
        used = (present[:, v] > 0) & (weight > 0)
        order = np.argsort(values[used, v], kind="stable")
        column, mass = values[used, v][order], weight[used][order]
        middle = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
        points[:, v] = np.interp(places, middle, column)
        low[v], high[v] = column[0], column[-1]
    return points, low, high


def _fit_size(points, size):
    """Fit a mixture of `size` normal densities to the points of each column by EM."""
    start = (np.arange(size) + 0.5) / size
    mean = np.quantile(points, start, axis=0).T
    spread = points.var(axis=0)[:, None] + TINY
    variance = np.repeat(spread / size**2, size, axis=1)
    weight = np.full_like(mean, 1 / size)
    if size == 1:
        return weight, points.mean(axis=0)[:, None], np.sqrt(spread)
    # A prior of a few points, of a small part of the variance, prevents densities of no width.
    prior, least = POINTS * 1e-3, 1e-5 * POINTS * spread
    for _ in range(ITERATIONS):
        t = (points[:, :, None] - mean) ** 2 / variance
        log_parts = np.log(weight) - 0.5 * (np.log(variance) + t)
        log_parts -= log_parts.max(axis=2, keepdims=True)
        share = np.exp(log_parts, out=log_parts)
        share /= share.sum(axis=2, keepdims=True)
        mass = share.sum(axis=0) + TINY
        mean = np.einsum("ncg,nc->cg", share, points) / mass
        squares = np.einsum("ncg,ncg->cg", share, (points[:, :, None] - mean) ** 2)
        variance = (squares + least) / (mass + prior)
        weight = mass / mass.sum(axis=1, keepdims=True)
    return weight, mean, np.sqrt(variance)


def _mixture_sums(points, weight, mean, deviation):
    """Compute the log-likelihood of the points of each column."""
    t = (points[:, :, None] - mean) / deviation
    log_parts = np.log(weight / deviation) - 0.5 * (t * t + LOG_2PI)
    largest = log_parts.max(axis=2)
    return (largest + np.log(np.exp(log_parts - largest[:, :, None]).sum(axis=2))).sum(axis=0)


def _log_mixture(values, weight, mean, deviation):
    """Compute the log density of values of one column."""
    used = weight > 0
    t = (values[:, None] - mean[used]) / deviation[used]
    log_parts = np.log(weight[used] / deviation[used]) - 0.5 * (t * t + LOG_2PI)
    largest = log_parts.max(axis=1)
    return largest + np.log(np.exp(log_parts - largest[:, None]).sum(axis=1))


def _modes(weight, mean, deviation):
    """Cut the line of each column into intervals by the component of the highest density."""
    n_columns = len(weight)
    cuts, modes = [np.empty(0)] * n_columns, [np.zeros(1, dtype=np.int64)] * n_columns
    column, number, share = [], [], []
    for v in range(n_columns):
        used = np.flatnonzero(weight[v] > 0)
        if len(used) < 2:
            continue
        cuts[v], modes[v] = _intervals(weight[v, used], mean[v, used], deviation[v, used])
        ends = np.concatenate([[-np.inf], cuts[v], [np.inf]])
        below = ndtr((ends[:, None] - mean[v, used]) / deviation[v, used]) @ weight[v, used]
        masses = np.bincount(modes[v], weights=np.diff(below), minlength=len(used))
        found = np.unique(modes[v])
        if len(found) > 1:
            column += [v] * len(found)
            number += found.tolist()
            share += (masses[found] / masses[found].sum()).tolist()
    longest = max(map(len, cuts), default=0)
    return (
        np.array([np.append(c, np.full(longest - len(c), np.inf)) for c in cuts]).reshape(
            n_columns, longest
        ),
        np.array(
            [np.append(m, np.full(longest + 1 - len(m), m[-1])) for m in modes], dtype=np.int64
        ).reshape(n_columns, longest + 1),
        np.array(column, dtype=np.int64),
        np.array(number, dtype=np.int64),
        np.array(share),
    )


def _intervals(weight, mean, deviation):
    """Return the ends of the intervals, and the component of each interval."""
    steps = np.linspace(-8, 8, 161)
    grid = np.unique((mean[:, None] + deviation[:, None] * steps).ravel())
    t = (grid[:, None] - mean) / deviation
    highest = (np.log(weight / deviation) - 0.5 * t * t).argmax(axis=1)
    changes = np.flatnonzero(np.diff(highest))
    return (grid[changes] + grid[changes + 1]) / 2, highest[np.append(changes, len(grid) - 1)]
