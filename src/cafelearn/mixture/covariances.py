"""Table of the covariance structures of the columns that depend on each other.

A structure computes covariance matrices from the scatter matrices of the clusters. To add one,
write a class with the methods of `Full` and add it to `COVARIANCES`.
"""

import numpy as np

from cafelearn.mixture.settings import SETTINGS


class Full:
    """Each cluster has its own covariance matrix."""

    own_spread = True
    pooled = False  # whether `estimate` needs only the sum of the scatter matrices

    def n_parameters(self, k, b):
        """Count the parameters of k covariance matrices of b columns."""
        return k * b * (b + 1) / 2

    def estimate(self, scatter, mass):
        """Compute the covariance matrices, shape (k, b, b), without constraints.

        `scatter` are the scatter matrices of the clusters, of the same shape, and `mass` the
        weights of their members.
        """
        return _with_prior(scatter, mass[:, None, None])


class Tied:
    """All clusters share one covariance matrix; `estimate` returns it once, shape (1, b, b)."""

    own_spread = False
    pooled = True

    def n_parameters(self, k, b):
        """Count the parameters."""
        return b * (b + 1) / 2

    def estimate(self, scatter, mass):
        """Compute the covariance matrices; see `Full`."""
        return _with_prior(scatter.sum(axis=0, keepdims=True), mass.sum())


class Proportional:
    """The covariance matrices are multiples of one matrix."""

    own_spread = True
    pooled = False

    def n_parameters(self, k, b):
        """Count the parameters."""
        return b * (b + 1) / 2 + k - 1

    def estimate(self, scatter, mass):
        """Compute the covariance matrices; see `Full`."""
        b, prior = scatter.shape[-1], SETTINGS.prior
        scatter, mass = scatter + prior * np.eye(b), mass + prior
        shape = scatter.sum(axis=0) / mass.sum()
        for _ in range(5):
            size = np.einsum("ij,lji->l", np.linalg.inv(shape), scatter) / (b * mass)
            shape = (scatter / size[:, None, None]).sum(axis=0) / mass.sum()
        return size[:, None, None] * shape


class Spherical:
    """Each cluster is round: its covariance matrix is a multiple of the identity."""

    own_spread = True
    pooled = False

    def n_parameters(self, k, b):
        """Count the parameters."""
        return k

    def estimate(self, scatter, mass):
        """Compute the covariance matrices; see `Full`."""
        b, prior = scatter.shape[-1], SETTINGS.prior
        squares = np.einsum("lii->l", scatter)
        variance = (squares + prior * b) / (b * (mass + prior))
        return variance[:, None, None] * np.eye(b)


class LowRank:
    """Each covariance matrix is diagonal but for a few factors (probabilistic PCA)."""

    own_spread = True
    pooled = False

    def __init__(self, factors=2):
        self.factors = factors

    def n_parameters(self, k, b):
        """Count the parameters."""
        q = min(self.factors, b - 1)
        return k * (b * q - q * (q - 1) / 2 + b)

    def estimate(self, scatter, mass):
        """Compute the covariance matrices; see `Full`."""
        found = Full().estimate(scatter, mass)
        q = min(self.factors, scatter.shape[-1] - 1)
        for cluster, matrix in enumerate(found):
            variance = np.diag(matrix)
            unique = variance.copy()
            for _ in range(5):  # principal factors of the matrix without the unique variances
                values, vectors = np.linalg.eigh(matrix - np.diag(unique))
                loadings = vectors[:, -q:] * np.sqrt(np.maximum(values[-q:], 0.0))
                common = (loadings**2).sum(axis=1)
                unique = np.maximum(variance - common, SETTINGS.least_variance * variance)
            found[cluster] = loadings @ loadings.T + np.diag(unique)
        return found


COVARIANCES = {
    "spherical": Spherical(),
    "tied": Tied(),
    "proportional": Proportional(),
    "full": Full(),
    "lowrank": LowRank(),
}


def _with_prior(scatter, mass):
    prior = SETTINGS.prior
    return (scatter + prior * np.eye(scatter.shape[-1])) / (mass + prior)


def bounded(covariances):
    """Raise the eigenvalues of covariance matrices to the least variance; shape (k, b, b)."""
    values, vectors = np.linalg.eigh(covariances)
    values = np.maximum(values, SETTINGS.least_variance)
    return np.einsum("lij,lj,lkj->lik", vectors, values, vectors)
