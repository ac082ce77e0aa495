"""Features that vary: constant ones are left out of a fit and get no weight."""

from typing import NamedTuple

import numpy as np

from cafelearn.machine import is_constant


class Varying(NamedTuple):
    """Which features vary, and a value of each."""

    mask: np.ndarray  # (m,)
    values: np.ndarray  # (m,)

    def narrow(self, numbers):
        """The columns of the features that vary."""
        return np.ascontiguousarray(numbers[..., self.mask])

    def widen(self, numbers, others=0.0):
        """The columns of all features; constant ones are filled with `others`."""
        wide = np.empty((*numbers.shape[:-1], len(self.mask)), dtype=numbers.dtype)
        wide[...] = others
        wide[..., self.mask] = numbers
        return wide


def find_varying(low, high):
    """Which features vary, or None if all do or none does."""
    constant = is_constant(low, high)
    return Varying(~constant, low) if constant.any() and not constant.all() else None


def weighed_features(model):
    """Which features had a part in the fit of a MinkowskiWeightedKMeans, (m,).

    A feature of no dispersion in any cluster has positive weights, unless it was left out. A
    weight may also underflow to 0, but only beside a dispersion.
    """
    weights, dispersions = model.feature_weights_, model.dispersions_
    if weights.shape != dispersions.shape:  # set by hand
        return np.ones(weights.shape[1], dtype=bool)
    return ~((weights == 0) & (dispersions == 0)).all(axis=0)


def fitted_columns(model):
    """Centres, weights and dispersions of the features that had a part in the fit."""
    arrays = model.cluster_centers_, model.feature_weights_, model.dispersions_
    used = weighed_features(model)
    return arrays if used.all() else tuple(a[:, used] for a in arrays)
