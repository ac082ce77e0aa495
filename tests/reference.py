"""Plain reference implementations of the paper's algorithms, from its text alone.

Plain NumPy and SciPy; nothing of the package is imported here.
"""

import mpmath
import numpy as np
from scipy.optimize import brentq


def distances(X, centers, weights, p):
    """Eq. 2 for every row and centre."""
    return (weights[None] ** p * np.abs(X[:, None, :] - centers[None]) ** p).sum(axis=2)


def assign(X, centers, weights, p):
    return distances(X, centers, weights, p).argmin(axis=1)


def gradient(x, z, p, weights):
    """Derivative of Eq. 5 in z, up to the factor p."""
    return float(np.sum(weights * np.sign(z - x) * np.abs(z - x) ** (p - 1)))


def center(x, p, weights=None):
    """Root of the derivative of Eq. 5, between the extremes of x."""
    x = np.asarray(x, dtype=float)
    weights = np.ones(len(x)) if weights is None else np.asarray(weights, float)
    x, weights = x[weights > 0], weights[weights > 0]
    low, high = x.min(), x.max()
    if low == high:
        return low
    # Scaled to [0, 1], so that no power leaves the range of floats.
    y = (x - low) / (high - low)
    root = brentq(gradient_at(y, p, weights), 0.0, 1.0, xtol=1e-15, rtol=1e-15, maxiter=500)
    return low + root * (high - low)


def gradient_at(x, p, weights):
    return lambda z: gradient(x, z, p, weights)


def precise_center(x, p, digits=60):
    """Eq. 5 by bisection in high precision."""
    with mpmath.workdps(digits):
        x = [mpmath.mpf(float(value)) for value in x]
        low, high = min(x), max(x)
        for _ in range(200):
            middle = (low + high) / 2
            slope = mpmath.fsum(
                mpmath.sign(middle - value) * abs(middle - value) ** (mpmath.mpf(p) - 1)
                for value in x
            )
            low, high = (low, middle) if slope > 0 else (middle, high)
        return (low + high) / 2


def centers(X, labels, k, p, weights=None, old=None):
    weights = np.ones(len(X)) if weights is None else weights
    out = np.zeros((k, X.shape[1])) if old is None else old.copy()
    for l in range(k):
        members = (labels == l) & (weights > 0)
        for v in range(X.shape[1]):
            if members.any():
                out[l, v] = center(X[members, v], p, weights[members])
    return out


def dispersions(X, labels, Z, p, weights=None):
    weights = np.ones(len(X)) if weights is None else weights
    D = np.zeros_like(Z)
    for i in range(len(X)):
        D[labels[i]] += weights[i] * np.abs(X[i] - Z[labels[i]]) ** p
    return D


def feature_weights(D, p):
    """Compute Eq. 4 as printed, with the limit for dispersions of 0."""
    w = np.zeros_like(D)
    for l in range(len(D)):
        zero = D[l] == 0
        if zero.any():
            w[l, zero] = 1 / zero.sum()
            continue
        for v in range(D.shape[1]):
            w[l, v] = 1 / np.sum((D[l, v] / D[l]) ** (1 / (p - 1)))
    return w


def objective(D, w, p):
    """Eq. 3."""
    return float(np.sum(w**p * D))


def gap_means(D, observed, before):
    """Mean dispersion of an observed member; where there is none, that of all before."""
    pooled = (observed * before).sum(axis=0) / observed.sum(axis=0)
    return np.where(observed > 0, D / np.where(observed > 0, observed, 1), pooled[None])


def gapped_distances(X, centers, weights, p, means):
    """Eq. 2, in which a gap adds what a member of the cluster adds on average."""
    out = np.zeros((len(X), len(centers)))
    for i in range(len(X)):
        for l in range(len(centers)):
            for v in range(X.shape[1]):
                missing = np.isnan(X[i, v])
                away = means[l, v] if missing else abs(X[i, v] - centers[l, v]) ** p
                out[i, l] += weights[l, v] ** p * away
    return out


def gapped_mwk_means(X, Z, p, offset=0.0, max_iter=300):
    """`mwk_means` on rows with missing values (NaN); centres and weights of the last update."""
    k, m = Z.shape
    w, Z = np.full((k, m), 1 / m), Z.copy()
    there = [~np.isnan(X[:, v]) for v in range(m)]
    middle = [center(X[there[v], v], p) for v in range(m)]
    means = np.array([np.mean(np.abs(X[there[v], v] - middle[v]) ** p) for v in range(m)])
    means, labels, path = np.tile(means, (k, 1)), None, []
    for _ in range(max_iter):
        new = gapped_distances(X, Z, w, p, means).argmin(axis=1)
        assert len(np.unique(new)) == k, "an empty cluster: choose another start"
        if labels is not None and (new == labels).all():
            break
        labels, D, observed = new, np.zeros((k, m)), np.zeros((k, m))
        for l in range(k):
            for v in range(m):
                x = X[(labels == l) & there[v], v]
                observed[l, v] = len(x)
                if len(x):
                    Z[l, v] = center(x, p)
                    D[l, v] = np.sum(np.abs(x - Z[l, v]) ** p)
        masses = np.bincount(labels, minlength=k)
        means = gap_means(D, observed, means)
        full = means * masses[:, None]
        constant = full.mean() if isinstance(offset, str) else offset
        w = feature_weights(full + constant, p)
        path.append(objective(full + (0 if isinstance(offset, str) else constant), w, p))
    return labels, Z, w, full, path


def mwk_means(X, Z, p, offset=0.0, weights=None, max_iter=300):
    """Algorithm 1 from the given centres; `offset` is a number or "mean".

    Empty clusters are not handled: the caller chooses starts that do not make any.
    """
    k, m = Z.shape
    w = np.full((k, m), 1 / m)
    labels, path = None, []
    for _ in range(max_iter):
        new = assign(X, Z, w, p)
        assert len(np.unique(new)) == k, "an empty cluster: choose another start"
        if labels is not None and (new == labels).all():
            break
        labels = new
        Z = centers(X, labels, k, p, weights)
        D = dispersions(X, labels, Z, p, weights)
        constant = D.mean() if isinstance(offset, str) else offset
        w = feature_weights(D + constant, p)
        path.append(objective(D + (0 if isinstance(offset, str) else constant), w, p))
    return labels, Z, w, D, path
