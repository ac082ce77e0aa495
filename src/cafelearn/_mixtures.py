"""Mixtures with independent features, fitted by EM and merged from many components to few.

An atom of a feature is a value that many rows share. In each component, a feature has a
probability for each of its atoms and a Gaussian for its other values. The parameters of a
component are computed from sums of a few statistics of the rows, and its log density is linear
in these statistics. A gap (missing value, NaN) adds nothing to the log density of its row.
"""

from typing import NamedTuple

import numpy as np

# A value is an atom if at least this share of the rows, and at least two rows, have it.
ATOM = 0.2
# The prior adds PRIOR rows to each component. In the probabilities of a feature, these rows are
# divided between atoms and Gaussian values in the same proportions as all rows. In the variance
# of the Gaussian values, PRIOR is added to their number and SCATTER to the sum of their squared
# deviations.
PRIOR, SCATTER = 1.0, 0.3
# EM stops after ITERATIONS iterations, or when an iteration raises the log-likelihood by at
# most GAIN per row.
ITERATIONS, GAIN = 25, 3e-4


class Layout(NamedTuple):
    """Definition of the statistics of a row, see `row_statistics`.

    Gaussian values are the observed values that are not atoms; one-hot columns have none. Two
    kinds of events are counted: for each mixed feature, that its value is Gaussian; for each
    atom, that the value of its feature is this atom.
    """

    center: np.ndarray  # (m,) mean of the Gaussian values
    scale: np.ndarray  # (m,) standard deviation of the Gaussian values
    continuous: np.ndarray  # (m,) whether the feature has Gaussian values
    columns: np.ndarray  # (a,) the feature of each atom
    values: np.ndarray  # (a,) the value of each atom
    mixed: np.ndarray  # (b,) features with atoms or gaps
    gapped: np.ndarray  # (g,) features with gaps
    shares: np.ndarray  # (b + a,) share of the observed rows in which each event occurs


class Mixture(NamedTuple):
    """A mixture of components.

    For a row with the statistics s, log(mixing weight x density) of component l is
    offset_l + slope_l . s, up to a constant.
    """

    offset: np.ndarray  # (k,)
    slope: np.ndarray  # (k, q) for q statistics
    # (n, k) membership probabilities of the rows of the fit, times the weights of these rows
    memberships: np.ndarray
    likelihood: float  # log-likelihood of the rows of the fit

    def log_densities(self, statistics):
        """Compute log(mixing weight x density) of each component; shape (n, k)."""
        return statistics @ self.slope.T + self.offset


def make_layout(X, one_hot=None):
    """Make the Layout for these rows, which may have gaps.

    `one_hot[v]` is the index of the one-hot variable that column v belongs to, or -1.
    Only the larger value of a one-hot column is an atom, so that a row is at only one atom of
    the variable, that of its category.
    """
    m = X.shape[1]
    columns, values = [], []
    center, scale, continuous = np.zeros(m), np.ones(m), np.zeros(m, dtype=bool)
    gaps = np.isnan(X)
    for v in range(m):
        column = X[~gaps[:, v], v]
        distinct, counts = np.unique(column, return_counts=True)
        if one_hot is not None and one_hot[v] >= 0:
            columns.append(v)
            values.append(distinct[-1])
            continue
        is_atom = counts >= max(ATOM * len(column), 2)
        # If there is only one other value, it has no spread and becomes an atom, too.
        atoms = distinct if (~is_atom).sum() == 1 else distinct[is_atom]
        columns += [v] * len(atoms)
        values += atoms.tolist()
        rest = column[~np.isin(column, atoms)].astype(np.float64)
        if len(rest):
            center[v], scale[v], continuous[v] = rest.mean(), rest.std() or 1.0, True
    columns = np.array(columns, dtype=np.intp)
    values, gapped = np.array(values, dtype=X.dtype), np.flatnonzero(gaps.any(axis=0))
    mixed = np.union1d(columns, gapped)
    layout = Layout(center, scale, continuous, columns, values, mixed, gapped, np.empty(0))
    sums = row_statistics(X, layout).sum(axis=0, keepdims=True)
    observed = _observed(np.array([float(len(X))]), sums, layout)
    shares = (
        sums[0, 2 * m :][: len(mixed) + len(columns)] / observed[0, _event_features(layout)]
    )
    return layout._replace(shares=shares)


def row_statistics(X, layout):
    """Compute the statistics whose sums over the members determine a component.

    The result has the shape (n, 2m + b + a + g). Its columns are, in this order: the
    standardised values and their squares, both 0 unless the value is Gaussian; for each event
    of the Layout, whether it occurs; for each feature with gaps, whether the value is observed.
    """
    at_atom = X[:, layout.columns] == layout.values
    between = np.tile(layout.continuous.astype(np.float64), (len(X), 1))
    for atom, v in enumerate(layout.columns):
        between[at_atom[:, atom], v] = 0.0
    t = (X.astype(np.float64) - layout.center) / layout.scale
    gaps = np.isnan(X[:, layout.gapped])
    for place, v in enumerate(layout.gapped):
        between[gaps[:, place], v] = t[gaps[:, place], v] = 0.0
    t *= between
    return np.hstack([t, t * t, between[:, layout.mixed], at_atom, ~gaps])


def fit_mixture(statistics, memberships, layout, sample_weight=None):
    """Fit a Mixture by EM, starting from `memberships`, which include the sample weights."""
    weight = np.ones(len(statistics)) if sample_weight is None else sample_weight
    before = -np.inf
    for _ in range(ITERATIONS):
        offset, slope = _estimate(memberships.sum(axis=0), memberships.T @ statistics, layout)
        memberships = statistics @ slope.T + offset
        total = log_sum(memberships)
        memberships = np.exp(memberships - total[:, None]) * weight[:, None]
        likelihood = float(weight @ total)
        if likelihood - before <= GAIN * weight.sum():
            break
        before = likelihood
    return Mixture(offset, slope, memberships, likelihood)


def log_sum(values):
    """Compute log(sum(exp(values))) of each row."""
    largest = values.max(axis=1)
    return largest + np.log(np.exp(values - largest[:, None]).sum(axis=1))


def _estimate(mass, sums, layout, total=None, k=None):
    """Compute the offsets and slopes of components from their mass and sums of statistics.

    `mass` is the sum of the memberships of each component. `total` and `k` are the mass and the
    number of all components of the mixture; by default they are computed from `mass`, which
    then covers all components.
    """
    total, k = (mass.sum(), len(mass)) if total is None else (total, k)
    m, mixed = len(layout.center), layout.mixed
    first, second = sums[:, :m], sums[:, m : 2 * m]
    events = sums[:, 2 * m :][:, : len(layout.shares)]
    observed = _observed(mass, sums, layout)
    rows = observed.copy()
    rows[:, mixed] = events[:, : len(mixed)]
    mean = first / np.maximum(rows, 1e-9)
    precision = (rows + PRIOR) / (np.maximum(second - first * mean, 0.0) + SCATTER)
    constant = 0.5 * (np.log(precision) - mean * mean * precision)
    total_events = observed[:, _event_features(layout)] + PRIOR
    shares = (events + PRIOR * layout.shares) / total_events
    # An event that never occurs would give log(0); its term is set to 0.
    log_shares = np.log(np.where(layout.shares > 0, shares, 1.0))
    log_shares[:, : len(mixed)] += constant[:, mixed]
    constant[:, mixed] = 0.0
    offset = constant.sum(axis=1) + np.log((mass + 1) / (total + k))
    unused = np.zeros((len(mass), len(layout.gapped)))
    return offset, np.hstack([mean * precision, -0.5 * precision, log_shares, unused])


def _observed(mass, sums, layout):
    """Return the mass of the rows in which each feature is observed; shape (k, m)."""
    observed = np.repeat(mass[:, None], len(layout.center), axis=1)
    observed[:, layout.gapped] = sums[:, sums.shape[1] - len(layout.gapped) :]
    return observed


def _event_features(layout):
    """Return the feature of each event."""
    return np.concatenate([layout.mixed, layout.columns])


def merged_memberships(mixture, statistics, layout):
    """Merge the two components whose merger costs the least likelihood.

    Return the memberships after the merger.
    """
    memberships = mixture.memberships
    mass, sums = memberships.sum(axis=0), memberships.T @ statistics
    total, k = mass.sum(), len(mass)
    one, two = np.triu_indices(k, 1)

    def likelihood(mass, sums):
        offset, slope = _estimate(mass, sums, layout, total, k)
        return mass * offset + (sums * slope).sum(axis=1)

    alone = likelihood(mass, sums)
    both = likelihood(mass[one] + mass[two], sums[one] + sums[two])
    best = int(np.argmin(alone[one] + alone[two] - both))
    merged = memberships.copy()
    merged[:, one[best]] += merged[:, two[best]]
    return np.delete(merged, two[best], axis=1)
