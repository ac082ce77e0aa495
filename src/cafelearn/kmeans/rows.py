"""Rows in memory for mwk-means, in ordinary units.

Blocks of Dask have the same operations; see `cafelearn.distributed.rows`.
"""

from functools import cached_property

import numpy as np

from cafelearn.data import source
from cafelearn.data.gaps import extremes, fill_columns
from cafelearn.data.validation import ordinary_weights, weight_exponent
from cafelearn.kmeans import draws, seeding
from cafelearn.kmeans.descent import one_cluster
from cafelearn.kmeans.placing import assign
from cafelearn.kmeans.scales import Units, data_scale, exceeds_single, extreme_unit


class InMemory(source.InMemory):
    """Validated rows in memory."""

    @cached_property
    def _ordinary(self):
        return {}

    def ordinary(self, p):
        """Return the Rows for a fit with exponent p; fits of the same type share them."""
        X = self.X
        if X.dtype == np.float32 and exceeds_single(*extremes(X)[:2], p):
            X = X.astype(np.float64)
        if X.dtype not in self._ordinary:
            self._ordinary[X.dtype] = Rows(X, self.sample_weight)
        return self._ordinary[X.dtype]


class Rows:
    """Rows and weights, multiplied by powers of two that bring them into an ordinary range.

    Attributes
    ----------
    shown : ndarray
        The rows in the user's units.
    idle : ndarray of bool
        Rows of weight 0. They must not affect the result, not even through the scale.
    """

    run_tasks = None  # starts on all rows run in this process

    def __init__(self, X, sample_weight):
        weight = np.ones(len(X)) if sample_weight is None else sample_weight
        exponent = weight_exponent(weight.max())
        self.sample_weight = ordinary_weights(weight, exponent, weight.max(), X.dtype)
        low, high, self.gaps = extremes(X)
        self.shown, self.idle = X, self.sample_weight == 0
        if self.idle.any():
            low, high, _ = extremes(X[~self.idle])
        self.units = Units(extreme_unit(data_scale(low, high)[0], X.dtype), exponent)
        if self.units.data != 1:
            X, low, high = (
                numbers * X.dtype.type(self.units.data) for numbers in (X, low, high)
            )
        if self.idle.any():
            X = np.where(self.idle[:, None], low, X)  # their distances could overflow
        self.X, self.low, self.high, self.shape, self.dtype = X, low, high, X.shape, X.dtype

    def __len__(self):
        return len(self.X)

    def one_clusters(self, exponents, feature_scale):
        """Fit all rows as one cluster for each p.

        Return a dict from p to (centre, log dispersions, typical distances).
        """
        found = {}
        for p in exponents:
            given = self.X, self.sample_weight, feature_scale, p, self.gaps
            center, log_dispersions = one_cluster(*given)
            mean = log_dispersions - np.log(self.sample_weight.sum())
            found[p] = center, log_dispersions, np.exp(mean / p)
        return found

    def draw(self, rngs, size, middle):
        """Draw a sample of distinct rows with each generator; return [(rows, weights), ...]."""
        given = filled(self.X, middle), self.sample_weight, self.low, self.high
        draw = draws.rows_to_draw(*given)
        return [draws.draw_sample(self.X, draw, size, rng) for rng in rngs]

    def make_start(self, estimator, offset, middle, seeds):
        """Return a function from a seed to a start; see `seeding.make_start`."""
        given = self.sample_weight, self.low, self.high, offset
        rows, unit = seeding.StartRows(filled(self.X, middle), *given), self.units.data
        inner = None if middle is None else middle / self.dtype.type(unit)
        return seeding.make_start(estimator, rows, (filled(self.shown, inner), unit))

    def place_idle(self, estimator):
        """Label the rows of weight 0 by a fitted estimator."""
        if self.idle.any():
            idle = self.shown[self.idle]
            estimator.labels_[self.idle] = assign(idle, estimator._placement(idle.dtype))[0]


def filled(X, middle):
    """Return rows with missing values filled; `middle` is None if there are none."""
    return X if middle is None else fill_columns(X, middle)
