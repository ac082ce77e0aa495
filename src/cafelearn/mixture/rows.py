"""Rows for mixtures: a sample that is prepared for the search, and sums over all rows."""

from contextlib import contextmanager
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import gen_batches
from threadpoolctl import threadpool_limits

from cafelearn.data.source import draw_positions
from cafelearn.mixture.columns import Columns, fit_columns, geometry, read_rows
from cafelearn.mixture.em import Family, Parameters, add_sums, e_step, log_joint, memberships_of
from cafelearn.mixture.settings import LIMITS
from cafelearn.mixture.starts import find_isolated, power_labels

# Rows per batch.
ROWS = 8_192


class Fitted(NamedTuple):
    """A fitted mixture."""

    columns: Columns
    parameters: Parameters
    family: Family


class MemberSums(NamedTuple):
    """Sums over the members of each component."""

    mass: np.ndarray  # (k,)
    first: np.ndarray  # (k, m)
    second: np.ndarray  # (m,) of all rows
    observed: np.ndarray  # (k, m)

    def __add__(self, other):
        return MemberSums(*(a + b for a, b in zip(self, other, strict=True)))


def place(rows, fitted):
    """Place rows that were read, see `Rows`.

    Returns
    -------
    shares : ndarray of shape (n_samples, k)
        Membership probabilities of the components, the background aside.
    densities : ndarray of shape (n_samples, k)
        Log density of each component, relative to that without clusters.
    log_density : ndarray of shape (n_samples,)
        Log density of the mixture.
    """
    columns, parameters, family = fitted
    k = len(parameters.mean)
    joint, *_ = log_joint(rows, parameters, columns, family)
    _, log_density = memberships_of(joint)
    joint = joint[:, :k]
    shares, _ = memberships_of(joint)
    return shares, joint - parameters.log_weight[:k], log_density + rows.base


def memberships(X, fitted):
    """Read and `place` rows."""
    return place(read_rows(X, fitted.columns), fitted)


def in_batches(X, fitted):
    """Compute the `memberships` of rows, batch by batch; there may be no rows."""
    k = len(fitted.parameters.mean)
    parts = [(np.empty((0, k)), np.empty((0, k)), np.empty(0))]
    with one_thread():
        for rows in gen_batches(len(X), ROWS) if len(X) else ():
            parts.append(memberships(X[rows], fitted))
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def sum_batches(X, weight, run, request):
    """Add up ``run(X, weight, request)`` over batches of rows; there may be no rows."""
    batches = gen_batches(len(X), ROWS) if len(X) else [slice(0)]
    return add_sums([run(X[rows], weight[rows], request) for rows in batches])


def em_sums(X, weight, fitted):
    """Compute the `Sums` of rows for the M-step."""
    columns, parameters, family = fitted
    return e_step(read_rows(X, columns), weight, parameters, columns, family)[1]


def member_sums(X, weight, fitted):
    """Compute the `MemberSums` of rows."""
    members = (memberships(X, fitted)[0] * weight[:, None]).T
    there = ~np.isnan(X)
    X = np.where(there, X * fitted.columns.units - fitted.columns.low, 0.0)
    return MemberSums(members.sum(axis=1), members @ X, weight @ (X * X), members @ there)


LIMIT = {"lock": Lock(), "users": 0, "limits": None}


@contextmanager
def one_thread():
    """Limit BLAS and OpenMP to one thread.

    For small matrices, more threads only wait for each other, above all on a busy machine.
    The limits are those of the process, so of several users the last one lifts them.
    """
    with LIMIT["lock"]:
        LIMIT["users"] += 1
        if LIMIT["users"] == 1:
            LIMIT["limits"] = threadpool_limits(1)
    try:
        yield
    finally:
        with LIMIT["lock"]:
            LIMIT["users"] -= 1
            if LIMIT["users"] == 0:
                LIMIT["limits"].restore_original_limits()


class Prepared(NamedTuple):
    """Rows that are ready for the search."""

    X: np.ndarray
    columns: Columns
    rows: Any
    weight: np.ndarray
    points: np.ndarray
    isolated: np.ndarray

    def take(self, rows):
        """Return some of the rows."""
        X, columns, read, *others = self
        return Prepared(X[rows], columns, read.take(rows), *(field[rows] for field in others))


def prepare(X, weight, groups=None):
    """Find the kinds of the columns, and read the rows."""
    with one_thread():
        columns = fit_columns(X, weight, power_labels, groups)
        rows = read_rows(X, columns)
        points = geometry(X, columns, weight)
        return Prepared(X, columns, rows, weight, points, find_isolated(points))


def search_sample(weight, seed):
    """Return the positions of the rows that the search uses; rows of weight 0 are left out."""
    used = np.flatnonzero(weight > 0)
    return used[draw_positions(len(used), LIMITS.search_rows, seed)]


def counting_unit(weight):
    """Return the divisor that makes weights numbers of rows.

    It is the mean of the positive weights, but at most 1.
    """
    return min(weight.sum() / np.count_nonzero(weight), 1.0)
