"""Means, variances and covariances from sums over parts of the rows."""

from typing import NamedTuple

import numpy as np

from cafelearn.data.gaps import has_gaps, observed_moments


class Moments(NamedTuple):
    """Mass, mean and sums of squares about the mean of observed values, in float64."""

    mass: float | np.ndarray  # (m,) if values are missing
    mean: np.ndarray  # (m,)
    scatter: np.ndarray  # (m,) or, with products, (m, m)


def moments_of(X, weight=None, products=False, units=None):
    """Compute the Moments of rows times `units`; weights are ignored if values are missing."""
    m = X.shape[1]
    if not len(X):
        return Moments(0, np.zeros(m), np.zeros((m, m) if products else m))
    X = X.astype(np.float64) if units is None else X * units
    if has_gaps(X):
        mass = (~np.isnan(X)).sum(axis=0)
        mean, variance = observed_moments(X)
        return Moments(mass, mean, variance * mass)
    mass = len(X) if weight is None else weight.sum()
    mean = X.mean(axis=0) if weight is None else np.average(X, axis=0, weights=weight)
    X -= mean
    if products:
        return Moments(mass, mean, (X if weight is None else X * weight[:, None]).T @ X)
    squares = X * X
    squares = squares if weight is None else squares * weight[:, None]
    return Moments(mass, mean, squares.sum(axis=0))


def combine_moments(parts):
    """Combine Moments by the formula of Chan, Golub and LeVeque (1979)."""
    total = parts[0]
    for part in parts[1:]:
        if np.all(part.mass == 0):
            continue
        mass = total.mass + part.mass
        divisor = np.maximum(mass, 1)
        step = part.mean - total.mean
        shift = np.outer(step, step) if total.scatter.ndim == 2 else step * step
        total = Moments(
            mass,
            total.mean + step * (part.mass / divisor),
            total.scatter + part.scatter + shift * (total.mass * part.mass / divisor),
        )
    return total


def sum_moments(part, request):
    """Compute the Moments of one part; `request` is (change or None, weighted, options).

    `change` is applied to the part and returns the rows.
    """
    change, weighted, options = request
    X = part.X if change is None else change(part)
    return moments_of(X, part.sample_weight if weighted else None, **options)
