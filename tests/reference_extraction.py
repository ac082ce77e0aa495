"""Plain reference implementations of the feature extractors, from their definitions.

Plain NumPy and SciPy; nothing of the package is imported here.
"""

import numpy as np
from scipy.optimize import minimize


def rica_objective(X, directions, weight=1.0, contrast=True):
    """Reconstruction ICA, row by row; `directions` are normalised first."""
    W = np.array([direction / np.sqrt(np.sum(direction**2)) for direction in directions]).T
    total = 0.0
    for x in X:
        total += weight * np.sum((W @ (W.T @ x) - x) ** 2)
        if contrast:
            for w in W.T:
                total += 0.5 * np.log(np.cosh(2 * (w @ x)))
    return total / len(X)


def rica_minimum(X, start, weight=1.0):
    """The smallest objective reached from `start`, without an analytic gradient."""
    unit = rica_objective(X, start, weight)
    found = minimize(
        lambda flat: rica_objective(X, flat.reshape(start.shape), weight) / unit,
        start.ravel(),
        method="BFGS",
        options={"gtol": 1e-7},
    )
    return found.fun * unit


def nmf_als(X, W, max_iter=100, tol=1e-4):
    """Alternating least squares with clipping; returns W, H and the number of iterations."""
    H, error = None, None
    for iteration in range(1, max_iter + 1):
        new_H = np.maximum(0, np.linalg.lstsq(W, X, rcond=None)[0])
        new_W = np.maximum(0, np.linalg.lstsq(new_H.T, X.T, rcond=None)[0].T)
        new_error = np.sqrt(np.mean((X - new_W @ new_H) ** 2))
        if iteration > 1:
            small = np.sqrt(np.finfo(float).eps)
            change = max(
                np.max(np.abs(new - old)) / (small + np.max(old))
                for new, old in ((new_W, W), (new_H, H))
            )
            if change <= tol or error - new_error <= tol * error:
                return new_W, new_H, iteration
        W, H, error = new_W, new_H, new_error
    return W, H, max_iter


def unit_rows(W, H):
    """The same product with rows of H of length 1, largest columns of W first."""
    lengths = np.sqrt((H**2).sum(axis=1))
    lengths[lengths == 0] = 1
    W, H = W * lengths, H / lengths[:, None]
    order = np.argsort(-np.sqrt((W**2).sum(axis=0)))
    return W[:, order], H[order]


def logistic(z):
    return 1 / (1 + np.exp(-z))


def autoencoder_loss(X, W1, b1, W2, b2, l2, sparsity_weight, sparsity):
    """The loss of an autoencoder of data in [0, 1], row by row."""
    squared, activation = 0.0, np.zeros(len(b1))
    for x in X:
        hidden = logistic(W1 @ x + b1)
        squared += np.sum((x - logistic(W2 @ hidden + b2)) ** 2)
        activation += hidden
    mean = activation / len(X)
    divergence = 0.0
    for rho in mean:
        divergence += sparsity * np.log(sparsity / rho)
        divergence += (1 - sparsity) * np.log((1 - sparsity) / (1 - rho))
    weights = np.sum(W1**2) + np.sum(W2**2)
    return squared / len(X) + l2 / 2 * weights + sparsity_weight * divergence


def scaled_conjugate_gradients(value, slope, w, n_epochs, sigma=5e-5, damping=5e-7):
    """Moller's algorithm for one start, step by step as in the article."""
    included, success = 0.0, True
    r = -slope(w)
    p = r
    for k in range(1, n_epochs + 1):
        squared = p @ p
        if success:
            ahead = sigma / np.sqrt(squared)
            delta = p @ (slope(w + ahead * p) - slope(w)) / ahead
        delta += (damping - included) * squared
        if delta <= 0:
            included = 2 * (damping - delta / squared)
            delta = -delta + damping * squared
            damping = included
        mu = p @ r
        alpha = mu / delta
        comparison = 2 * delta * (value(w) - value(w + alpha * p)) / mu**2
        success = comparison >= 0
        included = 0.0 if success else damping
        if comparison >= 0.75:
            damping /= 4
        if comparison < 0.25:
            damping += delta * (1 - comparison) / squared
        if success:
            w = w + alpha * p
            old, r = r, -slope(w)
            p = r if k % len(w) == 0 else r + (r @ r - r @ old) / mu * p
    return w
