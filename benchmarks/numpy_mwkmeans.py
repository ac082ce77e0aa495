"""A straightforward implementation of mwk-means in NumPy, as a baseline for speed."""

import numpy as np


def fit(X, Z, p, max_iter):
    """Run Algorithm 1 of the paper; return the labels and the number of iterations."""
    (k, m), labels = Z.shape, None
    w = np.full((k, m), 1 / m)
    for iteration in range(max_iter):
        distances = (w**p * np.abs(X[:, None, :] - Z[None]) ** p).sum(axis=2)
        new = distances.argmin(axis=1)
        if labels is not None and (new == labels).all():
            return labels, iteration
        labels = new
        Z = np.stack(
            [center(X[labels == l], p) if (labels == l).any() else Z[l] for l in range(k)]
        )
        D = np.stack([(np.abs(X[labels == l] - Z[l]) ** p).sum(axis=0) for l in range(k)])
        powers = (D + D.mean()) ** (-1 / (p - 1))
        w = powers / powers.sum(axis=1, keepdims=True)
    return labels, max_iter


def center(x, p, steps=32):
    """Compute the Minkowski centre of each column by bisection, to 2^-32 of its range."""
    if p == 2:
        return x.mean(axis=0)
    low, high = x.min(axis=0), x.max(axis=0)
    for _ in range(steps):
        z = (low + high) / 2
        up = (np.sign(z - x) * np.abs(z - x) ** (p - 1)).sum(axis=0) > 0
        low, high = np.where(up, low, z), np.where(up, z, high)
    return (low + high) / 2
