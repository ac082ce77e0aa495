"""The paper's theory as functions, and a check of its claims on a fit."""

from cafelearn.theory.certificate import Certificate, certificate
from cafelearn.theory.formulas import (
    dispersions,
    feature_weights,
    minkowski_center,
    normalized_objective,
    objective,
    objective_bounds,
    power_mean,
    power_mean_objective,
    selective_limit,
    weight_ratio,
    weight_ratio_bound,
)
from cafelearn.theory.noise import (
    dominance,
    noise_pairs,
    noise_suppression_bound,
    rescaled_dispersions,
    suppression_bound,
)

__all__ = [
    "Certificate",
    "certificate",
    "dispersions",
    "dominance",
    "feature_weights",
    "minkowski_center",
    "noise_pairs",
    "noise_suppression_bound",
    "normalized_objective",
    "objective",
    "objective_bounds",
    "power_mean",
    "power_mean_objective",
    "rescaled_dispersions",
    "selective_limit",
    "suppression_bound",
    "weight_ratio",
    "weight_ratio_bound",
]
