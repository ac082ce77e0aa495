"""Write the best result of a fit to the attributes of its estimator."""

import numpy as np

from cafelearn.kmeans.scales import half_span

# The mass of a cluster is the sum of its members' sample weights. The sum of all masses, in
# the units of the user's weights, is kept below 2 to this power.
MASS_EXPONENT_LIMIT = 1020


def typical_distances(result, p):
    """Return the power mean (exponent p) of |x - centre|, by cluster and feature."""
    if result.typical is not None:
        return result.typical
    mass = np.where(result.mass > 0, result.mass, 1.0)
    return np.exp((result.log_dispersions - np.log(mass)[:, None]) / p)


def quiet_exp(log_values):
    """Compute exp without warnings, because results may exceed the range of floats."""
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(log_values)


def set_attributes(job):
    """Set the fitted attributes of a job's estimator after all of its starts have ended."""
    estimator, result, shift = job.estimator, job.best, job.log_unit
    centers, unit = result.centers, job.rows.units.data
    estimator.labels_ = result.labels
    estimator.cluster_centers_ = centers if unit == 1 else centers / centers.dtype.type(unit)
    estimator.feature_weights_ = result.weights
    estimator.dispersions_ = quiet_exp(result.log_dispersions - shift)
    estimator.inertia_ = float(quiet_exp(result.log_inertia - shift))
    estimator.objective_path_ = quiet_exp(result.log_path - shift)
    objectives = (job.on_sample or job).log_objectives
    estimator.init_objectives_ = quiet_exp(np.asarray(objectives) - shift)
    estimator.n_iter_ = result.n_iter
    estimator.stop_reason_ = result.stop_reason
    estimator._scale = job.problem.scale * unit
    estimator._mass = np.ldexp(result.mass, _mass_exponent(result, job.rows.units))
    estimator._ranges = half_span(job.rows.low, job.rows.high).astype(np.float64)
    # These distances are substituted for missing values. They are stored only if they do not
    # follow from masses and dispersions: if values are missing or dispersions overflow.
    estimator._typical = None
    if result.typical is not None or not np.isfinite(estimator.dispersions_).all():
        with np.errstate(over="ignore"):
            estimator._typical = typical_distances(result, estimator.p) / unit


def _mass_exponent(result, units):
    """Return e such that mass * 2^e is in the units of the user's sample weights.

    If the sum of all masses would then overflow, return a smaller exponent.
    """
    largest = MASS_EXPONENT_LIMIT - int(np.frexp(result.mass.sum())[1])
    return min(-units.weight_exponent, largest)
