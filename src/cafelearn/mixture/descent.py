"""Descents of EM from starting labels to a maximum of the penalised likelihood."""

from typing import NamedTuple

import numpy as np

from cafelearn.mixture.em import Family, Parameters, e_step, log_joint, sum_rows
from cafelearn.mixture.maximise import m_step
from cafelearn.mixture.settings import LIMITS, TINY

# Columns enter and leave the block in these iterations only, so that EM converges.
BLOCK_ITERATIONS = (1, 2, 4, 7, 11)


class Descent(NamedTuple):
    """The end of a descent.

    `objective` is the log-likelihood relative to independent columns, plus the log prior, minus
    the price of the parameters. `criterion` is the objective minus the entropy of the
    memberships (ICL).
    """

    family: Family
    parameters: Parameters
    memberships: np.ndarray  # (n, k) or (n, k + 1)
    objective: float
    criterion: float
    n_iter: int

    @property
    def labels(self):
        """Most likely component of each row, other than the background."""
        return self.memberships[:, : len(self.parameters.mean)].argmax(axis=1)


def begin(prepared, labels, k, family, most):
    """Run at most `most` iterations of EM from given clusters; see `descend`."""
    memberships = np.eye(k)[labels]
    if family.background:
        background = np.where(prepared.isolated, 0.9, 0.01)[:, None]
        memberships = np.hstack([memberships * (1 - background), background])
    rows, weight, columns = prepared.rows, prepared.weight, prepared.columns
    sums = sum_rows(rows, weight, memberships, columns, family)
    return descend(prepared, m_step(sums, columns, family), family, most)


def descend(prepared, parameters, family, most, n_iter=0):
    """Run at most `most` iterations of EM; `n_iter` iterations have been run before."""
    rows, weight, columns = prepared.rows, prepared.weight, prepared.columns
    before = -np.inf
    for iteration in range(n_iter + 1, n_iter + most + 1):
        memberships, sums = e_step(rows, weight, parameters, columns, family)
        objective = objective_of(sums, parameters)
        gained = objective - before
        if iteration == n_iter + most or 0 <= gained < LIMITS.tolerance * sums.total:
            break
        before = objective
        free = iteration in BLOCK_ITERATIONS
        parameters = m_step(sums, columns, family, parameters, free)
    criterion = objective - entropy_of(memberships[:, : len(parameters.mean)], weight)
    return Descent(family, parameters, memberships, objective, criterion, iteration)


def score_labels(prepared, labels, k):
    """Score k given clusters by the penalised likelihood of the rows and their labels.

    The columns are independent within clusters, with normal or t distributions.
    """
    rows, weight, columns = prepared.rows, prepared.weight, prepared.columns
    scores = []
    for family in (Family("independent"), Family("independent", True)):
        sums = sum_rows(rows, weight, np.eye(k)[labels], columns, family)
        parameters = m_step(sums, columns, family)
        joint, *_ = log_joint(rows, parameters, columns, family)
        fit = weight @ joint[np.arange(len(labels)), labels]
        scores.append(_penalised(fit, sums.total, parameters))
    return float(max(scores))


def objective_of(sums, parameters):
    """Return the penalised log-likelihood."""
    return _penalised(sums.log_likelihood, sums.total, parameters)


def _penalised(log_likelihood, total, parameters):
    price = 0.5 * np.log(max(total, 2.0))
    return log_likelihood + parameters.log_prior - price * parameters.n_parameters


def entropy_of(memberships, weight):
    """Compute the entropy of the memberships of the components, the background aside."""
    inside = memberships / np.maximum(memberships.sum(axis=1, keepdims=True), TINY)
    return -float(weight @ (inside * np.log(np.maximum(inside, 1e-300))).sum(axis=1))
