"""Power transformations that make skewed columns symmetric within clusters.

The transformation of a value x is y(t) with t = side (x - edge) / width, where y is that of Yeo
and Johnson (2000) with an exponent from 0 (about a logarithm) to 1 (none). The edge is the
smallest value for columns with a long upper tail, and the largest for a long lower tail.
"""

from typing import NamedTuple

import numpy as np

from cafelearn.mixture.settings import SETTINGS, TINY

# Values farther from the edge than this many widths count as that far. The squares of their
# transforms are still within the range of floats.
FARTHEST = 1e60


class Powers(NamedTuple):
    """Transformations of c columns."""

    side: np.ndarray  # (c,) 1 or -1
    edge: np.ndarray  # (c,)
    width: np.ndarray  # (c,)
    exponent: np.ndarray  # (c,) 1 leaves the column as it is
    center: np.ndarray  # (c,) subtracted from the transformed values
    scale: np.ndarray  # (c,) divides the transformed values

    def transform(self, X):
        """Transform and standardise values; shape (n, c)."""
        t = np.clip(self.side * (X - self.edge) / self.width, -FARTHEST, FARTHEST)
        return (yeo_johnson(t, self.exponent) - self.center) / self.scale

    def log_slope(self, X):
        """Compute the log of the derivative of :meth:`transform` in absolute value."""
        t = self.side * (X - self.edge) / self.width
        slope = (self.exponent - 1) * np.sign(t) * np.log1p(np.abs(t))
        return slope - np.log(self.width * self.scale)

    def inverse(self, values):
        """Return the values whose transforms are given."""
        y = values * self.scale + self.center
        return self.side * self.width * inverse_yeo_johnson(y, self.exponent) + self.edge


def yeo_johnson(t, exponent):
    """Transform values by exponents between 0 and 1; exponents broadcast over rows."""
    size = np.log1p(np.abs(t))
    above = np.where(
        exponent > 0, np.expm1(exponent * size) / np.where(exponent > 0, exponent, 1), size
    )
    below = np.expm1((2 - exponent) * np.where(t < 0, size, 0.0)) / (2 - exponent)
    return np.where(t >= 0, above, -below)


def inverse_yeo_johnson(y, exponent):
    """Invert `yeo_johnson`."""
    size = np.abs(y)
    above = np.where(
        exponent > 0,
        np.log1p(size * exponent) / np.where(exponent > 0, exponent, 1),
        size,
    )
    below = np.log1p(size * (2 - exponent)) / (2 - exponent)
    return np.sign(y) * np.expm1(np.where(y >= 0, above, below))


# Interquartile range of the normal distribution; a standard deviation that is larger than FAR
# times that of a normal distribution with the same quartiles is due to a few far values.
NORMAL_QUARTILES, FAR = 1.349, 20.0
# A scale is at least this part of the standard deviation.
FARTHEST_SCALE = 1e4


def fit_powers(X, present, weight, labels):
    """Choose the transformation of each column.

    A column is transformed if that raises the likelihood of normal densities with a mean and a
    variance per cluster by more than the price of a parameter in BIC.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_columns)
        The values.
    present : ndarray of shape (n_samples, n_columns)
        1 where the value counts, else 0.
    weight : ndarray of shape (n_samples,)
        Weight of each row.
    labels : ndarray of int of shape (n_samples,)
        Clusters within which columns should be symmetric.

    Returns
    -------
    powers : Powers
        The transformations.
    """
    n_columns = X.shape[1]
    members = np.eye(labels.max() + 1)[labels] * weight[:, None]
    fitted = [np.ones(n_columns), np.zeros(n_columns), np.ones(n_columns), np.ones(n_columns)]
    for v in range(n_columns):
        used = present[:, v] > 0
        column, inside = X[used, v], members[used]
        price = 0.5 * np.log(max(inside.sum(), 2.0))
        unchanged = (1.0, _mean(column, inside), _deviation(column, inside), 1.0)
        best, chosen = _fit_of(column, inside, unchanged) + price, unchanged
        for side in (1.0, -1.0):
            edge = column.min() if side > 0 else column.max()
            width = float(np.median(side * (column - edge)))
            if width <= 0:
                continue
            for exponent, part in SETTINGS.powers:
                trial = (side, edge, part * width, exponent)
                score = _fit_of(column, inside, trial)
                if score > best:
                    best, chosen = score, trial
        for whole, value in zip(fitted, chosen, strict=True):
            whole[v] = value
    powers = Powers(*fitted, np.zeros(n_columns), np.ones(n_columns))
    transformed = powers.transform(X)
    mass = np.maximum(weight @ present, TINY)
    center = (weight @ (transformed * present)) / mass
    variance = (weight @ ((transformed - center) ** 2 * present)) / mass
    scale = np.sqrt(np.where(variance > 0, variance, 1.0))
    # A single far value must not hide the spread of all others, unless it is so far that
    # squares would lose all digits.
    inner = np.ones(n_columns)
    for v in range(n_columns):
        middle = transformed[present[:, v] > 0, v]
        inner[v] = np.subtract(*np.quantile(middle, (0.75, 0.25))) / NORMAL_QUARTILES
    hidden = (inner > 0) & (scale > FAR * inner)
    return powers._replace(
        center=center, scale=np.where(hidden, np.maximum(inner, scale / FARTHEST_SCALE), scale)
    )


def _fit_of(column, members, trial):
    """Compute the log-likelihood of a column under normal densities after a transformation."""
    side, edge, width, exponent = trial
    t = np.clip(side * (column - edge) / width, -FARTHEST, FARTHEST)
    y = yeo_johnson(t, np.float64(exponent))
    slope = (exponent - 1) * np.sign(t) * np.log1p(np.abs(t)) - np.log(width)
    mass = np.maximum(members.sum(axis=0), TINY)
    mean = (y @ members) / mass
    scatter = np.maximum((y * y) @ members - mass * mean**2, 0.0)
    total = mass.sum()
    overall = max(float(scatter.sum()) / total, TINY)
    variance = (scatter + overall) / (mass + 1)
    fit = -0.5 * (mass * np.log(variance) + scatter / variance).sum()
    return float(fit + slope @ members.sum(axis=1))


def _mean(column, members):
    mass = members.sum(axis=1)
    return float(mass @ column / mass.sum())


def _deviation(column, members):
    mass = members.sum(axis=1)
    variance = mass @ (column - _mean(column, members)) ** 2 / mass.sum()
    return float(np.sqrt(variance)) if variance > 0 else 1.0
