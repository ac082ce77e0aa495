"""The paper's definitions, lemmas, theorems and corollaries as functions of dispersions.

The dispersion D[l, v] of feature v in cluster l is the sum of ``abs(x - z)**p`` over the values
x of the members, where z is their Minkowski centre. The last axis of an array of dispersions
runs over the features. Powers of dispersions are computed in log space, because they would
overflow for p near 1. :func:`cafelearn.theory.certificate` checks the claims on a fit.
"""

import numpy as np
from scipy.special import logsumexp

from cafelearn.base.typing import MatrixLike, VectorLike
from cafelearn.kmeans.descent import one_cluster
from cafelearn.kmeans.scales import data_scale


def check_p(p):
    """Return an exponent as a float; raise unless it is a number above 1."""
    if not (np.isscalar(p) and np.isreal(p) and 1 < p < np.inf):
        raise ValueError(f"p must be a number above 1, got {p!r}.")
    return float(p)


def log_dispersions(D):
    """Return the logarithms of dispersions; raise unless they are numbers >= 0."""
    D = np.asarray(D, dtype=np.float64)
    if D.ndim == 0 or not np.all(D >= 0):
        raise ValueError(
            "Dispersions must be an array of numbers >= 0 with the features on its last axis."
        )
    with np.errstate(divide="ignore"):
        return np.log(D)


def log_means(log_D, p):
    """Compute the log of the power mean of order -1 / (p - 1) over the last axis."""
    r = -1 / (p - 1)
    zero = np.isneginf(log_D).any(axis=-1)
    safe = np.where(np.isneginf(log_D), 0.0, log_D)
    means = (logsumexp(r * safe, axis=-1) - np.log(log_D.shape[-1])) / r
    return np.where(zero, -np.inf, means)


def minkowski_center(x: MatrixLike, p: float) -> float | np.ndarray:
    """Compute the unique z that minimises ``sum(abs(x - z)**p)`` (Eq. 5 and Proposition 1).

    Parameters
    ----------
    x : array-like of shape (n_samples,) or (n_samples, n_features)
        Values; the centre of each column is computed separately.
    p : float
        Minkowski exponent, above 1.

    Returns
    -------
    center : float or ndarray of shape (n_features,)
        The centre. For p = 2 it is the mean. It tends to a median as p approaches 1, and to
        the midpoint of the smallest and the largest value as p grows.

    Examples
    --------
    >>> from cafelearn.theory import minkowski_center
    >>> [round(float(minkowski_center([0.0, 0.0, 3.0], p)), 4) for p in (1.1, 2, 50)]
    [0.0029, 1.0, 1.4894]
    """
    p = check_p(p)
    x = np.asarray(x, dtype=np.float64)
    if not x.size or not np.isfinite(x).all():
        raise ValueError("minkowski_center needs at least one value and only finite values.")
    columns = np.ascontiguousarray(x.reshape(len(x), -1))
    _, scale = data_scale(columns.min(axis=0), columns.max(axis=0))
    center, _ = one_cluster(columns, np.ones(len(x)), scale, p)
    return float(center[0]) if x.ndim == 1 else center


def dispersions(
    X: MatrixLike,
    labels: VectorLike,
    centers: MatrixLike,
    p: float,
    sample_weight: VectorLike | None = None,
) -> np.ndarray:
    """Compute the within-cluster dispersions, the D of Eq. 4.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The data.
    labels : array-like of shape (n_samples,)
        Cluster of each row, from 0 to n_clusters - 1.
    centers : array-like of shape (n_clusters, n_features)
        Centre of each cluster.
    p : float
        Minkowski exponent, above 1.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row.

    Returns
    -------
    D : ndarray of shape (n_clusters, n_features)
        Weighted sum of ``abs(x - z)**p`` over the members of each cluster.

    Examples
    --------
    >>> from cafelearn.theory import dispersions
    >>> dispersions([[0.0, 1.0], [2.0, 1.0], [9.0, 9.0]], [0, 0, 1], [[1, 1], [9, 9]], p=2)
    array([[2., 0.],
           [0., 0.]])
    """
    p = check_p(p)
    X, labels = np.asarray(X, dtype=np.float64), np.asarray(labels)
    centers = np.asarray(centers, dtype=np.float64)
    weights = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, float)
    D = np.zeros(centers.shape)
    for rows in np.array_split(np.arange(len(X)), max(1, len(X) // 4096)):
        away = weights[rows, None] * np.abs(X[rows] - centers[labels[rows]]) ** p
        np.add.at(D, labels[rows], away)
    return D


def feature_weights(D: MatrixLike, p: float, offset: float = 0.0) -> np.ndarray:
    """Compute feature weights from dispersions (Eq. 4 and Proposition 2).

    Parameters
    ----------
    D : array-like of shape (..., n_features)
        Dispersions.
    p : float
        Minkowski exponent, above 1.
    offset : float, default=0.0
        Constant added to every dispersion.

    Returns
    -------
    w : ndarray, shaped as D
        Weights proportional to ``(D + offset)**(-1 / (p - 1))``, with a sum of 1. If
        ``D + offset`` is 0 for some features, these features share the weight equally.

    Examples
    --------
    >>> from cafelearn.theory import feature_weights
    >>> feature_weights([1.0, 2.0, 4.0], p=2).round(3)
    array([0.571, 0.286, 0.143])
    """
    p = check_p(p)
    log_D = log_dispersions(np.asarray(D, dtype=np.float64) + offset)
    smallest = log_D.min(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        relative = np.where(log_D == smallest, 0.0, (smallest - log_D) / (p - 1))
    w = np.exp(relative)
    return w / w.sum(axis=-1, keepdims=True)


def selective_limit(D: MatrixLike) -> np.ndarray:
    """Compute the limit of the weights as p approaches 1 (Corollary 2).

    Parameters
    ----------
    D : array-like of shape (..., n_features)
        Dispersions.

    Returns
    -------
    w : ndarray, shaped as D
        Equal weights for the features of smallest dispersion, 0 for the others.

    Examples
    --------
    >>> from cafelearn.theory import selective_limit
    >>> selective_limit([2.0, 1.0, 1.0])
    array([0. , 0.5, 0.5])
    """
    log_D = log_dispersions(D)
    smallest = log_D == log_D.min(axis=-1, keepdims=True)
    return smallest / smallest.sum(axis=-1, keepdims=True)


def weight_ratio(D_u: MatrixLike, D_v: MatrixLike, p: float) -> float | np.ndarray:
    """Compute w_u / w_v, the ratio of two weights of one cluster (Proposition 2).

    For fixed dispersions, the ratio is monotone in p and tends to 1 as p grows (Corollary 3).

    Parameters
    ----------
    D_u, D_v : float or array-like
        Dispersions, above 0.
    p : float
        Minkowski exponent, above 1.

    Returns
    -------
    ratio : float or ndarray
        ``(D_v / D_u)**(1 / (p - 1))``.

    Examples
    --------
    >>> from cafelearn.theory import weight_ratio
    >>> [round(float(weight_ratio(4.0, 1.0, p)), 4) for p in (1.5, 2, 3, 100)]
    [0.0625, 0.25, 0.5, 0.9861]
    """
    p = check_p(p)
    with np.errstate(under="ignore", over="ignore"):
        return np.exp((np.log(D_v) - np.log(D_u)) / (p - 1))


def weight_ratio_bound(C: MatrixLike, p: float) -> float | np.ndarray:
    """Compute the upper bound of w_u / w_v if D_u >= C D_v (Theorem 3).

    Parameters
    ----------
    C : float or array-like
        Lower bound of D_u / D_v, above 1.
    p : float
        Minkowski exponent, above 1.

    Returns
    -------
    bound : float or ndarray
        ``C**(-1 / (p - 1))``.

    Examples
    --------
    >>> from cafelearn.theory import weight_ratio_bound
    >>> float(weight_ratio_bound(4.0, p=2))
    0.25
    """
    return weight_ratio(C, 1.0, p)


def power_mean(D: MatrixLike, r: float) -> float | np.ndarray:
    """Compute the power mean of order r over features (Definition 1).

    Parameters
    ----------
    D : array-like of shape (..., n_features)
        Dispersions.
    r : float
        Order; 0 gives the geometric mean, -inf the minimum and inf the maximum.

    Returns
    -------
    mean : float or ndarray of shape (...)
        The mean. If a dispersion is 0 and r <= 0, the mean is 0.

    Examples
    --------
    >>> from cafelearn.theory import power_mean
    >>> [round(float(power_mean([1.0, 4.0], r)), 12) for r in (-1, 0, 1)]
    [1.6, 2.0, 2.5]
    """
    log_D = log_dispersions(D)
    if r == -np.inf:
        return np.exp(log_D.min(axis=-1))
    if r == np.inf:
        return np.exp(log_D.max(axis=-1))
    if r == 0:
        return np.exp(log_D.mean(axis=-1))
    if r < 0:
        return np.exp(log_means(log_D, 1 - 1 / r))
    return np.exp((logsumexp(r * log_D, axis=-1) - np.log(log_D.shape[-1])) / r)


def objective(D: MatrixLike, p: float) -> float:
    """Compute the mwk-means objective from dispersions alone (Lemma 1).

    Parameters
    ----------
    D : array-like of shape (n_clusters, n_features)
        Dispersions.
    p : float
        Minkowski exponent, above 1.

    Returns
    -------
    W : float
        ``sum_l (sum_v D[l, v]**(-1 / (p - 1)))**(1 - p)``.

    Examples
    --------
    >>> from cafelearn.theory import feature_weights, objective
    >>> D = [[1.0, 3.0], [2.0, 2.0]]
    >>> objective(D, p=2)
    1.75
    >>> float((feature_weights(D, p=2) ** 2 * D).sum())
    1.75
    """
    p = check_p(p)
    log_D = log_dispersions(D)
    zero = np.isneginf(log_D).any(axis=-1)
    safe = np.where(np.isneginf(log_D), 0.0, log_D)
    each = np.exp((1 - p) * logsumexp(-safe / (p - 1), axis=-1))
    return float(np.where(zero, 0.0, each).sum())


def power_mean_objective(D: MatrixLike, p: float) -> float:
    """Compute the objective as a sum of power means of dispersions (Lemma 2).

    Minimising the objective is equivalent to minimising this sum (Corollary 1).

    Parameters
    ----------
    D : array-like of shape (n_clusters, n_features)
        Dispersions.
    p : float
        Minkowski exponent, above 1.

    Returns
    -------
    W : float
        ``m**(1 - p) * sum_l power_mean(D[l], -1 / (p - 1))``.

    Examples
    --------
    >>> from cafelearn.theory import power_mean_objective
    >>> power_mean_objective([[1.0, 3.0], [2.0, 2.0]], p=2)
    1.75
    """
    p = check_p(p)
    log_D = log_dispersions(D)
    return float(np.exp(log_means(log_D, p) + (1 - p) * np.log(log_D.shape[-1])).sum())


def objective_bounds(D: MatrixLike, p: float) -> tuple[float, float]:
    """Compute the lower and upper bounds of the objective (Theorem 2).

    Parameters
    ----------
    D : array-like of shape (n_clusters, n_features)
        Dispersions.
    p : float
        Minkowski exponent, above 1.

    Returns
    -------
    lower, upper : float
        ``m**(1 - p)`` times the sum over clusters of the smallest dispersion (for `lower`) or
        of the geometric mean of the dispersions (for `upper`). For fixed dispersions, the
        ratio of the objective to `lower` tends to 1 as p approaches 1, and the ratio of the
        objective to `upper` tends to 1 as p grows.

    Examples
    --------
    >>> from cafelearn.theory import objective, objective_bounds
    >>> D = [[1.0, 4.0], [2.0, 2.0]]
    >>> objective_bounds(D, p=2)
    (1.5, 2.0)
    >>> round(objective(D, p=2), 12)
    1.8
    """
    p = check_p(p)
    log_D = log_dispersions(D)
    factor = (1 - p) * np.log(log_D.shape[-1])
    lower = np.exp(log_D.min(axis=-1) + factor).sum()
    upper = np.exp(log_D.mean(axis=-1) + factor).sum()
    return float(lower), float(upper)


def normalized_objective(D: MatrixLike, p: float) -> float:
    """Compute the position of the objective between its bounds, from 0 to 1 (Figure 2).

    Parameters
    ----------
    D : array-like of shape (n_clusters, n_features)
        Dispersions.
    p : float
        Minkowski exponent, above 1.

    Returns
    -------
    position : float
        0 at the lower bound and 1 at the upper. If the bounds are equal to within a relative
        difference of 1e-9, the position is 0.

    Examples
    --------
    >>> from cafelearn.theory import normalized_objective
    >>> round(normalized_objective([[1.0, 4.0], [2.0, 2.0]], p=2), 6)
    0.6
    """
    p = check_p(p)
    log_D = log_dispersions(D)
    # To avoid overflow, all values are divided by the largest geometric mean, and the common
    # factor m**(1 - p) is left out.
    logs = log_D.min(axis=-1), log_means(log_D, p), log_D.mean(axis=-1)
    peak = np.max(logs[2])
    if np.isneginf(peak):
        return 0.0
    lower, value, upper = (np.exp(log - peak).sum() for log in logs)
    if upper - lower <= 1e-9 * upper:
        return 0.0
    position = float((value - lower) / (upper - lower))
    # If the bounds are close to each other, rounding can move the position out of [0, 1].
    return min(max(position, 0.0), 1.0) if -1e-6 < position < 1 + 1e-6 else position
