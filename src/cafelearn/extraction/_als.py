"""Alternating least squares for non-negative factors, from many starts at once.

X, of shape (n_samples, n_features), is approximated by W @ H. The transpose of W is stored, so
that one matrix product multiplies X by the factors of all starts.
"""

from typing import NamedTuple

import numpy as np

# The inverse of a Gram matrix with a larger condition number has hardly any correct digits.
WORST_CONDITION = 1e12
# A component this small, relative to the largest, is treated as rounding error.
SMALLEST_COMPONENT = 1e-12
ROOT_EPSILON = np.sqrt(np.finfo(float).eps)


class Factors(NamedTuple):
    """The results of all starts."""

    loadings: np.ndarray  # H of each start, (n_starts, n_components, n_features)
    errors: np.ndarray  # root mean square of X - W @ H, (n_starts,)
    n_iter: np.ndarray  # (n_starts,)


def factorize_all(X, starts, max_iter, tol):
    """Alternate between least squares solutions for H and W, with negative entries set to 0.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Non-negative data, with values of the order of 1.
    starts : ndarray of shape (n_starts, n_components, n_samples)
        The transpose of the initial W of each start.
    max_iter : int
        Largest number of iterations.
    tol : float
        A start stops when an iteration lowers the norm of the residual by no more than this
        fraction. It also stops when an iteration changes no entry of W or H by more than this
        fraction of the largest entry of the same factor.

    Returns
    -------
    factors : Factors
        H of each start, its reconstruction error with ``clipped_scores(X, H)`` as W, and its
        number of iterations.
    """
    n_starts, n_components, _ = starts.shape
    found = Factors(
        np.zeros((n_starts, n_components, X.shape[1])),
        np.zeros(n_starts),
        np.zeros(n_starts, dtype=int),
    )
    norm = np.vdot(X, X)
    moving = np.arange(n_starts)
    W, H = starts, found.loadings
    errors = np.full(n_starts, np.inf)
    cross, gram = _times(W, X), W @ W.transpose(0, 2, 1)
    for number in range(max_iter):
        new_H = solve_gram(gram, cross)
        np.maximum(new_H, 0, out=new_H)
        new_W = _times(_dual(new_H), X.T)
        np.maximum(new_W, 0, out=new_W)
        cross, gram = _times(new_W, X), new_W @ new_W.transpose(0, 2, 1)
        new_errors = _residual_norms(norm, new_H, cross, gram)

        stopped = errors - new_errors <= tol * errors
        stopped |= (_change(W, new_W) <= tol) & (_change(H, new_H) <= tol)
        if number == 0:
            stopped[:] = False
        if number + 1 == max_iter:
            stopped[:] = True
        found.loadings[moving[stopped]] = new_H[stopped]
        found.n_iter[moving[stopped]] = number + 1
        W, H, errors = new_W, new_H, new_errors
        if stopped.any():
            going = ~stopped
            moving, W, H, errors = moving[going], W[going], H[going], errors[going]
            cross, gram = cross[going], gram[going]
        if not len(moving):
            break
    found.loadings[~_alive(np.linalg.norm(found.loadings, axis=2))] = 0
    for k, loadings in enumerate(found.loadings):
        residual = X - clipped_scores(X, loadings) @ loadings
        found.errors[k] = np.sqrt(np.mean(residual**2))
    return found


def clipped_scores(X, loadings):
    """Compute the least squares solution for W given H, with negative entries set to 0."""
    return np.maximum(X @ _dual(loadings[None])[0].T.astype(X.dtype), 0)


def solve_gram(grams, right):
    """Solve ``gram @ x = right`` for each Gram matrix.

    If a Gram matrix is nearly singular, its pseudo-inverse is used. Rows of x that belong to
    components of the size of rounding errors are 0.
    """
    lengths = np.sqrt(np.einsum("kii->ki", grams))
    alive = _alive(lengths)
    inverse_lengths = np.divide(1, lengths, out=np.zeros_like(lengths), where=alive)
    cosines = grams * inverse_lengths[:, :, None] * inverse_lengths[:, None, :]
    np.einsum("kii->ki", cosines)[~alive] = 1
    scaled = right * inverse_lengths[:, :, None]
    return (_inverse(cosines) @ scaled) * inverse_lengths[:, :, None]


def _alive(lengths):
    """Return a mask of the components of each start that are larger than rounding errors."""
    return lengths > SMALLEST_COMPONENT * lengths.max(axis=1, keepdims=True)


def _inverse(grams):
    """Invert each matrix; use the pseudo-inverse if it is nearly singular."""
    try:
        inverses = np.linalg.inv(grams)
    except np.linalg.LinAlgError:
        return _pseudo_inverse(grams)
    condition = _largest_row_sum(grams) * _largest_row_sum(inverses)
    bad = ~(condition < WORST_CONDITION)
    if bad.any():
        inverses[bad] = _pseudo_inverse(grams[bad])
    return inverses


def _pseudo_inverse(grams):
    return np.linalg.pinv(grams, rcond=1 / WORST_CONDITION, hermitian=True)


def _largest_row_sum(matrices):
    return np.abs(matrices).sum(axis=2).max(axis=1)


def _dual(loadings):
    """Compute the transpose of the pseudo-inverse of each H."""
    return solve_gram(loadings @ loadings.transpose(0, 2, 1), loadings)


def _times(stack, matrix):
    """Compute ``stack @ matrix`` as one product of two matrices."""
    n_starts, n_components, _ = stack.shape
    flat = stack.reshape(n_starts * n_components, -1) @ matrix
    return flat.reshape(n_starts, n_components, -1)


def _residual_norms(norm, H, cross, gram):
    """Compute the norms of X - W H from ``||X||**2``, ``W.T X`` and ``W.T W``."""
    mixed = np.einsum("kij,kij->k", H, cross)
    fitted = np.einsum("kij,kij->k", gram, H @ H.transpose(0, 2, 1))
    return np.sqrt(np.maximum(norm - 2 * mixed + fitted, 0))


def _change(old, new):
    """Compute, for each start, the largest change of an entry relative to the largest entry."""
    change = np.subtract(new, old)
    np.abs(change, out=change)
    return change.max(axis=(1, 2)) / (ROOT_EPSILON + old.max(axis=(1, 2)))
