"""The paper's claims about noise: how much it is suppressed by weights and by rescaling."""

import numpy as np

from cafelearn.base.typing import MatrixLike
from cafelearn.theory.formulas import check_p, feature_weights


def dominance(D: MatrixLike) -> tuple[np.ndarray, np.ndarray]:
    """Find the feature of largest dispersion in each cluster, and its ratio C (Theorem 4).

    Parameters
    ----------
    D : array-like of shape (n_clusters, n_features)
        Dispersions.

    Returns
    -------
    feature : ndarray of shape (n_clusters,)
        Index u of the feature with the largest dispersion.
    C : ndarray of shape (n_clusters,)
        Ratio of the largest dispersion to the second largest. It is the largest C such that
        ``D[l, u] >= C * D[l, v]`` for all v != u. The feature dominates if C is above 1.

    Examples
    --------
    >>> from cafelearn.theory import dominance
    >>> dominance([[1.0, 8.0, 2.0]])
    (array([1]), array([4.]))
    """
    D = np.asarray(D, dtype=np.float64)
    order = np.argsort(D, axis=-1)
    rows = np.arange(len(D))
    with np.errstate(divide="ignore", invalid="ignore"):
        C = D[rows, order[:, -1]] / D[rows, order[:, -2]] if D.shape[1] > 1 else np.ones(len(D))
    return order[:, -1], C


def suppression_bound(C: MatrixLike, n_features: int, p: float) -> float | np.ndarray:
    """Compute the upper bound of the weight of a dominating feature (Theorem 4).

    A feature dominates if its dispersion is larger than all others in the cluster.

    Parameters
    ----------
    C : float or array-like
        Ratio of the largest dispersion of the cluster to the second largest, above 1.
    n_features : int
        Number of features m.
    p : float
        Minkowski exponent, above 1.

    Returns
    -------
    bound : float or ndarray
        ``1 / (1 + (m - 1) * C**(1 / (p - 1)))``.

    Examples
    --------
    >>> from cafelearn.theory import feature_weights, suppression_bound
    >>> round(float(suppression_bound(4.0, n_features=3, p=2)), 6)
    0.111111
    >>> round(float(feature_weights([1.0, 1.0, 4.0], p=2)[2]), 6)
    0.111111
    """
    p = check_p(p)
    with np.errstate(under="ignore", divide="ignore"):
        log_odds = np.log(n_features - 1.0) + np.log(C) / (p - 1)
        return np.exp(-np.logaddexp(0.0, log_odds))


def noise_pairs(D: MatrixLike, D_clean: MatrixLike) -> np.ndarray:
    """Find the noise pairs of cluster and feature (Definition 2).

    Parameters
    ----------
    D : array-like of shape (n_clusters, n_features)
        Dispersions of the noisy data.
    D_clean : array-like of shape (n_clusters, n_features)
        Dispersions of the data without noise.

    Returns
    -------
    noisy : ndarray of bool, shaped as D
        True where `D` exceeds `D_clean`.

    Examples
    --------
    >>> from cafelearn.theory import noise_pairs
    >>> noise_pairs([[1.0, 5.0]], [[1.0, 2.0]])
    array([[False,  True]])
    """
    return np.asarray(D) > np.asarray(D_clean)


def rescaled_dispersions(D: MatrixLike, p: float) -> np.ndarray:
    """Compute the dispersions of data rescaled by the weights (Definition 3 and Lemma 3).

    Within a cluster, their order is the reverse of the order of `D`.

    Parameters
    ----------
    D : array-like of shape (n_clusters, n_features)
        Dispersions.
    p : float
        Minkowski exponent, above 1.

    Returns
    -------
    D_rescaled : ndarray, shaped as D
        ``w**p * D``.

    Examples
    --------
    >>> from cafelearn.theory import rescaled_dispersions
    >>> rescaled_dispersions([1.0, 2.0, 4.0], p=2).round(3)
    array([0.327, 0.163, 0.082])
    """
    w = feature_weights(D, p)
    return w ** check_p(p) * np.asarray(D, dtype=np.float64)


def noise_suppression_bound(
    D_u: MatrixLike, C: MatrixLike, n_features: int, p: float
) -> float | np.ndarray:
    """Compute the upper bound of a rescaled dispersion (Corollary 4).

    The bound is for a noise pair with the largest dispersion of its cluster. It decreases as C
    grows. The paper states that it also decreases as p grows, but this does not always hold:
    for 3 features and C = 2 it is D_u / 150 at p = 1.2, D_u / 25 at p = 2 and D_u / 56 at
    p = 3.

    Parameters
    ----------
    D_u : float or array-like
        Dispersion of the pair before the rescaling.
    C : float or array-like
        Ratio of D_u to the second largest dispersion of the cluster, above 1.
    n_features : int
        Number of features m.
    p : float
        Minkowski exponent, above 1.

    Returns
    -------
    bound : float or ndarray
        ``D_u / (1 + (m - 1) * C**(1 / (p - 1)))**p``.

    Examples
    --------
    >>> from cafelearn.theory import noise_suppression_bound
    >>> round(float(noise_suppression_bound(4.0, C=4.0, n_features=3, p=2)), 6)
    0.049383
    """
    return np.asarray(D_u) * suppression_bound(C, n_features, p) ** check_p(p)
