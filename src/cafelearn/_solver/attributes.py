"""Write the best result of a fit to the attributes of its estimator."""

import numpy as np

# The sum of the fitted masses stays below 2 to this power.
LARGEST_MASS = 1020


def typical_distances(result, p):
    """Return the p-th root of the mean p-th power of distances, by cluster and feature."""
    if result.typical is not None:
        return result.typical
    mass = np.where(result.mass > 0, result.mass, 1.0)
    return np.exp((result.log_dispersions - np.log(mass)[:, None]) / p)


def to_units(log_values):
    """Compute exp without warnings: p = 50 on data of 1e100 exceeds the range of floats."""
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(log_values)


def set_attributes(job):
    """Set the fitted attributes of the estimator of a job whose starts have all ended."""
    estimator, result, shift = job.estimator, job.best, job.log_unit
    centers, unit = result.centers, job.units.data
    estimator.labels_ = result.labels
    estimator.cluster_centers_ = centers if unit == 1 else centers / centers.dtype.type(unit)
    estimator.feature_weights_ = result.weights
    estimator.dispersions_ = to_units(result.log_dispersions - shift)
    estimator.inertia_ = float(to_units(result.log_inertia - shift))
    estimator.objective_path_ = to_units(result.log_path - shift)
    objectives = (job.on_sample or job).log_objectives
    estimator.init_objectives_ = to_units(np.asarray(objectives) - shift)
    estimator.n_iter_ = result.n_iter
    estimator.stop_reason_ = result.stop_reason
    estimator._scale = job.problem.scale * unit
    estimator._mass = np.ldexp(result.mass, _mass_exponent(result, job.units))
    estimator._ranges = job.ranges.astype(np.float64)
    # None if masses and dispersions determine these distances: complete data, no overflow.
    estimator._typical = None
    if result.typical is not None or not np.isfinite(estimator.dispersions_).all():
        with np.errstate(over="ignore"):
            estimator._typical = typical_distances(result, estimator.p) / unit


def _mass_exponent(result, units):
    """Return the exponent of the power of two that converts masses to the user's weights.

    If the sum of these weights exceeds the largest float, the exponent is smaller.
    """
    return min(-units.weight_exponent, LARGEST_MASS - int(np.frexp(result.mass.sum())[1]))
