"""Plain reference implementation of mixture densities and of EM, from the formulas alone.

Plain NumPy and SciPy; nothing of the package is imported here. A mixture is described by a
dictionary:

``weights``
    Weights of the k components.
``background``
    Weight of the background; 0 if there is none.
``degrees``
    Degrees of freedom of the t distribution; None for normal distributions.
``discrete``
    List of variables. Each has ``events``, pairs of a column and a value, and
    ``probability`` of shape (k, events) or, with a background, (k + 1, events). The value
    ``"other"`` stands for values that are no atoms, ``"none"`` for a row without any category.
``continuous``
    List of columns. Each has a ``column``, its ``atoms``, a ``transformation`` (see
    `transformed`), a ``marginal`` (see `log_marginal`), the ``ratio`` of the density in each
    component to the marginal, by interval (see `log_ratio`), and whether each component has a
    density of its ``own`` instead.
``means``, ``covariances``
    Parameters of the densities that components have of their own; shapes (k, c), (k, c, c).
"""

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, multivariate_t, norm, yeojohnson


def log_joint(X, mixture):
    """Log of weight times density, for each row and component; the background comes last."""
    k = len(mixture["weights"])
    parts = [
        [log_component(x, mixture, l) + np.log(mixture["weights"][l]) for x in X]
        for l in range(k)
    ]
    if mixture["background"] > 0:
        parts.append([log_background(x, mixture) for x in X])
    return np.array(parts).T


def log_density(X, mixture):
    return logsumexp(log_joint(X, mixture), axis=1)


def responsibilities(X, mixture):
    """Probability of each component, the background aside."""
    joint = log_joint(X, mixture)[:, : len(mixture["weights"])]
    return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))


def log_component(x, mixture, l):
    total = sum(log_event(x, variable, l) for variable in mixture["discrete"])
    own, values = [], []
    for place, column in enumerate(mixture["continuous"]):
        if not is_continuous(x, column):
            continue
        y, log_slope = transformed(x[column["column"]], *column["transformation"])
        total += log_slope
        if column["own"][l]:
            own.append(place)
            values.append(y)
        else:
            total += log_marginal(y, **column["marginal"]) + log_ratio(y, l, **column["ratio"])
    if not own:
        return total
    mean = mixture["means"][l][own]
    covariance = mixture["covariances"][l][np.ix_(own, own)]
    if mixture["degrees"] is None:
        return total + multivariate_normal(mean, covariance).logpdf(values)
    # One scale for all values of a row makes them a multivariate t distribution.
    return total + multivariate_t(mean, covariance, df=mixture["degrees"]).logpdf(values)


def log_background(x, mixture):
    total = np.log(mixture["background"])
    total += sum(log_event(x, variable, -1) for variable in mixture["discrete"])
    for column in mixture["continuous"]:
        if is_continuous(x, column):
            y, log_slope = transformed(x[column["column"]], *column["transformation"])
            low, high = column["marginal"]["low"], column["marginal"]["high"]
            total += log_slope - np.log(high - low) if low <= y <= high else -np.inf
    return total


def is_continuous(x, column):
    value = x[column["column"]]
    return not np.isnan(value) and value not in column["atoms"]


def log_event(x, variable, l):
    """Log probability of what a row shows of a discrete variable; 0 if it is missing."""
    events = variable["events"]
    if any(np.isnan(x[column]) for column, _ in events):
        return 0.0
    named = [number for number, (column, value) in enumerate(events) if x[column] == value]
    if not named:
        named = [number for number, (_, value) in enumerate(events) if isinstance(value, str)]
    return float(np.log(variable["probability"][l][named[0]]))


def transformed(x, side, edge, width, exponent, center, scale):
    """Transformed value, and the log of the absolute derivative."""
    t = side * (x - edge) / width
    y = float(yeojohnson(np.array([t]), exponent)[0])
    log_slope = (exponent - 1) * np.sign(t) * np.log1p(abs(t)) - np.log(width * scale)
    return (y - center) / scale, log_slope


def log_marginal(y, weight, mean, deviation, low, high, fall):
    """Mixture of normal densities, or (without weights) uniform with exponential ends."""
    if np.sum(weight) > 0:
        return float(logsumexp(norm.logpdf(y, mean, deviation), b=weight))
    width = high - low
    beyond = max(low - y, y - high, 0.0)
    return -np.log(width * (1 + 2 / fall)) - fall * beyond / width


def log_ratio(y, l, cuts, modes, ratios):
    """Log ratio of a component's density to the marginal: constant between the cuts."""
    return float(ratios[l][modes[int(np.sum(np.asarray(cuts) < y))]])


def em_step(X, row_weight, weights, means, covariances, prior, *, diagonal, degrees=None):
    """One step of EM: new weights, means and covariances.

    The prior is that of one more row in each component, for the weights, and of `prior` rows
    with the identity as their covariance.
    """
    k, m = means.shape
    log_parts, distance = np.empty((len(X), k)), np.empty((len(X), k))
    for l in range(k):
        away = X - means[l]
        distance[:, l] = np.sum(away @ np.linalg.inv(covariances[l]) * away, axis=1)
        density = (
            multivariate_normal(means[l], covariances[l])
            if degrees is None
            else multivariate_t(means[l], covariances[l], df=degrees)
        )
        log_parts[:, l] = np.log(weights[l]) + density.logpdf(X)
    share = np.exp(log_parts - logsumexp(log_parts, axis=1, keepdims=True))
    members = share * row_weight[:, None]
    scale = 1.0 if degrees is None else (degrees + m) / (degrees + distance)
    scaled = members * scale
    mass = members.sum(axis=0)
    new_means = scaled.T @ X / scaled.sum(axis=0)[:, None]
    new_covariances = np.empty((k, m, m))
    for l in range(k):
        away = X - new_means[l]
        scatter = (away * scaled[:, [l]]).T @ away
        if diagonal:
            scatter = np.diag(np.diag(scatter))
        new_covariances[l] = (scatter + prior * np.eye(m)) / (mass[l] + prior)
    return (mass + 1) / (mass.sum() + k), new_means, new_covariances
