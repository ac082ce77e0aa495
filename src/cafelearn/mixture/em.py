"""EM for one mixture: memberships from parameters, sums, parameters from sums.

Rows are used only through sums over rows (`Sums`), which are added over disjoint parts. So the
same code serves rows in memory, a sample and the blocks of a Dask collection.

All likelihoods are relative to the density that does not depend on the cluster (``Rows.base``).
A column that is irrelevant in a cluster then contributes nothing to that cluster.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from cafelearn.mixture.covariances import COVARIANCES
from cafelearn.mixture.marginals import LOG_2PI
from cafelearn.mixture.settings import SETTINGS, TINY


class Family(NamedTuple):
    """A kind of mixture."""

    covariance: str = "independent"  # or a name in COVARIANCES
    tails: bool = False  # t distributions instead of normal ones
    background: bool = False  # a background component for isolated rows

    def __str__(self):
        words = [self.covariance, "t" * self.tails, "background" * self.background]
        return ", ".join(filter(None, words))

    @property
    def structure(self):
        """The entry of COVARIANCES; None for independent columns."""
        return COVARIANCES.get(self.covariance)


class Parameters(NamedTuple):
    """Parameters of k components and, after them, of the background if the family has one.

    The columns of the block depend on each other within clusters, the others do not. A column
    of the block is not `used`.
    """

    log_weight: np.ndarray  # (k,) or (k + 1,)
    log_ratio: np.ndarray  # (k or k + 1, d + e) log of probability over share; 0 if irrelevant
    used: np.ndarray  # (k, c) 1 where the column has a density of the cluster's own
    mean: np.ndarray  # (k, c)
    variance: np.ndarray  # (k, c)
    kind: np.ndarray  # (c,) 0: irrelevant in all clusters, 1: one variance, 2: own variances
    block: np.ndarray  # (b,) continuous columns
    block_mean: np.ndarray  # (k, b)
    covariance: np.ndarray  # (k, b, b)
    n_parameters: float
    log_prior: float


class Sums(NamedTuple):
    """Sums over rows, additive over disjoint rows."""

    log_likelihood: float
    total: float  # weight of the rows
    mass: np.ndarray  # (k or k + 1,) sum of memberships
    events: np.ndarray  # (k or k + 1, d + e)
    present: np.ndarray  # (k, c)
    log_marginal: np.ndarray  # (k, c)
    scaled: np.ndarray  # (k, c) `present` times the scales of the t distribution
    log_scale: np.ndarray  # (k, c) `present` times the expected log scales
    first: np.ndarray  # (k, c) values times scales
    second: np.ndarray  # (k, c) squares times scales
    scaled_mass: np.ndarray  # (k,)
    products: np.ndarray  # (k or 1, p, p) of the complete columns; (0, 0, 0) if not needed

    def __add__(self, other):
        return Sums(*(a + b for a, b in zip(self, other, strict=True)))


def add_sums(parts):
    """Add sums in order."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def log_joint(rows, parameters, columns, family):
    """Compute log(weight x density) of each component, relative to ``rows.base``.

    Returns
    -------
    joint : ndarray of shape (n, k) or (n, k + 1)
        The last column belongs to the background, if there is one.
    scale, log_scale : ndarray of shape (n, k), or None
        Expected scales of the t distribution and their expected logarithms; None for normal
        distributions.
    """
    k = len(parameters.mean)
    used, block = parameters.used, parameters.block
    precision = used / parameters.variance
    center = precision * parameters.mean
    log_variance = used * np.log(parameters.variance)
    # All terms that are linear in the table: log ratios, densities and the normalisation.
    fixed = 0.5 * (log_variance if family.tails else log_variance + LOG_2PI * used)
    square = np.hstack([center * parameters.mean, -2 * center, precision])
    slope = np.hstack(
        [parameters.log_ratio[:k], -used, -fixed, np.zeros((k, 2 * used.shape[1]))]
    )
    if not family.tails:
        slope[:, slope.shape[1] - square.shape[1] :] -= 0.5 * square
    joint = rows.table @ slope.T
    distance = np.zeros_like(joint)
    size, log_det = 0.0, 0.0
    if family.tails:
        distance += rows.moments @ square.T
        size = rows.present @ used.T
    if len(block):
        joint -= rows.log_marginal[:, block].sum(axis=1)[:, None]
        there = rows.present[:, block] > 0
        in_block = there.sum(axis=1)[:, None]
        size = size + in_block
        log_det = np.zeros_like(joint)
        for some, seen in _patterns(there):
            values = rows.values[some][:, block[seen]]
            whiteners, log_det[some] = _whiteners(parameters.covariance[:, seen][:, :, seen])
            for cluster in range(k):
                t = (values - parameters.block_mean[cluster, seen]) @ whiteners[cluster]
                distance[some, cluster] += np.einsum("ij,ij->i", t, t)
    scale = log_scale = None
    if family.tails:
        np.maximum(distance, 0.0, out=distance)
        nu = SETTINGS.degrees
        half = (nu + size) / 2
        joint += gammaln(half) - gammaln(nu / 2) - 0.5 * size * np.log(nu * np.pi)
        joint -= 0.5 * log_det + half * np.log1p(distance / nu)
        scale = 2 * half / (nu + distance)
        log_scale = digamma(half) - np.log((nu + distance) / 2)
    elif len(block):
        joint -= 0.5 * (in_block * LOG_2PI + log_det + distance)
    joint += parameters.log_weight[:k]
    if family.background:
        joint = np.column_stack([joint, _log_background(rows, parameters, columns)])
    return joint, scale, log_scale


def _log_background(rows, parameters, columns):
    """Compute log(weight x density) of the background: uniform, and events of its own."""
    low, high = columns.marginals.low, columns.marginals.high
    uniform = -np.log(np.maximum(high - low, TINY))
    density = rows.present @ uniform - rows.log_marginal.sum(axis=1)
    inside = ((rows.values >= low) & (rows.values <= high)) | (rows.present == 0)
    density = np.where(inside.all(axis=1), density, -np.inf)
    return rows.events @ parameters.log_ratio[-1] + density + parameters.log_weight[-1]


def _patterns(there):
    """Yield the rows with the same observed columns, and these columns.

    Rows that were fitted are complete in the block, but new rows may have gaps.
    """
    if there.all():
        yield slice(None), slice(None)
        return
    patterns, which = np.unique(there, axis=0, return_inverse=True)
    for number, seen in enumerate(patterns):
        yield np.flatnonzero(which.ravel() == number), seen


def _whiteners(covariance):
    """Return matrices that whiten the block in each cluster, and the log determinants."""
    roots = np.linalg.cholesky(covariance)
    log_dets = 2 * np.log(np.einsum("lii->li", roots)).sum(axis=1)
    return np.linalg.inv(roots).transpose(0, 2, 1), log_dets


def memberships_of(joint):
    """Return the membership probabilities and the log densities of rows."""
    largest = joint.max(axis=1, keepdims=True)
    share = np.exp(joint - largest)
    total = share.sum(axis=1, keepdims=True)
    return share / total, (largest + np.log(total))[:, 0]


def sum_rows(rows, weight, memberships, columns, family, scales=None, log_density=None):
    """Compute the `Sums` of rows with given memberships of shape (n, k) or (n, k + 1)."""
    k = memberships.shape[1] - family.background
    c = rows.n_continuous
    members = memberships * weight[:, None]
    own = members[:, :k]
    sums = members.T @ rows.table
    events, sums = np.split(sums, [sums.shape[1] - 4 * c], axis=1)
    log_marginal, present, first, second = np.split(sums[:k], 4, axis=1)
    scaled, log_scale, scaled_members = present, np.zeros_like(present), own
    if scales is not None:
        scaled_members = own * scales[0]
        scaled, first, second = np.split(scaled_members.T @ rows.moments, 3, axis=1)
        log_scale = (own * scales[1]).T @ rows.present
    products = np.zeros((0, 0, 0))
    if family.structure is not None:
        complete = rows.values[:, columns.complete]
        products = _products(complete, scaled_members, family.structure.pooled)
    return Sums(
        0.0 if log_density is None else float(weight @ log_density),
        float(weight.sum()),
        members.sum(axis=0),
        events,
        present,
        log_marginal,
        scaled,
        log_scale,
        first,
        second,
        scaled_members.sum(axis=0),
        products,
    )


def _products(values, members, pooled):
    """Return the weighted sums of the products of columns, by cluster or of all clusters."""
    if pooled:
        members = members.sum(axis=1, keepdims=True)
    return np.stack([(values * column[:, None]).T @ values for column in members.T])


def e_step(rows, weight, parameters, columns, family):
    """Compute the memberships of rows and their `Sums`."""
    joint, *scales = log_joint(rows, parameters, columns, family)
    memberships, log_density = memberships_of(joint)
    scales = None if scales[0] is None else scales
    sums = sum_rows(rows, weight, memberships, columns, family, scales, log_density)
    return memberships, sums
