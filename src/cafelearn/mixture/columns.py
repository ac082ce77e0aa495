"""The columns of a mixture: what is a category, what is an atom, and what is continuous.

A value that many rows share is an *atom* of its column. A column has a probability for each of
its atoms and, for the remaining values, a density. The columns of a one-hot encoded variable
are one discrete variable. A missing value adds nothing to the likelihood.
"""

from typing import NamedTuple

import numpy as np

from cafelearn.data.gaps import observed_extremes
from cafelearn.data.validation import ordinary_units
from cafelearn.data.variables import one_hot_groups
from cafelearn.mixture.marginals import Marginals, fit_marginals
from cafelearn.mixture.powers import Powers, fit_powers
from cafelearn.mixture.settings import LIMITS, SETTINGS, TINY

# Points of `geometry` are at most this far from the mean of a column of variance 1.
FARTHEST_POINT = 30.0


class Columns(NamedTuple):
    """Layout of the columns of X.

    A *variable* is discrete: it has two or more events, one of which occurs in each row. It is
    a one-hot group, or the atoms of a column and the event that the value is no atom. The modes
    of a continuous column (see `Marginals`) are kept beside the events.
    """

    units: np.ndarray  # (m,) factors by which X is multiplied first, powers of two
    low: np.ndarray  # (m,) smallest values, after this multiplication
    high: np.ndarray  # (m,) largest values, after this multiplication
    place: np.ndarray  # (c,) columns of X with continuous values
    complete: np.ndarray  # (c,) whether the column has neither atoms nor gaps
    powers: Powers
    marginals: Marginals
    event_place: np.ndarray  # (d,) column of X of each event
    event_value: np.ndarray  # (d,) the atom; NaN for "no atom"
    event_variable: np.ndarray  # (d,) variable of each event
    event_share: np.ndarray  # (d,) share of the rows

    @property
    def may_depend(self):
        """Whether columns may depend on each other: some can, and they are not too many."""
        return bool(0 < self.complete.sum() <= LIMITS.dependent_columns)

    @property
    def n_events(self):
        """Number of events and modes."""
        return len(self.event_share) + len(self.marginals.mode_share)

    @property
    def n_variables(self):
        """Number of discrete variables."""
        return int(self.event_variable.max(initial=-1)) + 1

    @property
    def variable(self):
        """Variable of each event and mode; the modes of column v belong to variable n + v."""
        return np.append(self.event_variable, self.n_variables + self.marginals.mode_column)

    @property
    def share(self):
        """Probability of each event and mode if it does not depend on the cluster."""
        return np.append(self.event_share, self.marginals.mode_share)

    @property
    def n_parameters(self):
        """Number of parameters of the densities that do not depend on the cluster."""
        transformed = 2.0 * (self.powers.exponent != 1).sum()
        events = len(self.event_share) - self.n_variables
        return float(self.marginals.n_parameters.sum() + transformed + events)


class Rows(NamedTuple):
    """What the mixture needs to know of some rows.

    The columns of `table` are the events and modes (1 where they occur, else 0) and then, for
    each continuous column: its log density if it does not depend on the cluster, whether there
    is a value, the transformed value and its square. All are 0 where there is no value.
    """

    table: np.ndarray  # (n, d + e + 4 c)
    base: np.ndarray  # (n,) log density of the row if no column depends on the cluster
    # Views of the table:
    events: np.ndarray  # (n, d + e) events and modes
    log_marginal: np.ndarray  # (n, c)
    present: np.ndarray  # (n, c)
    values: np.ndarray  # (n, c)
    moments: np.ndarray  # (n, 3 c) presence, values and squares

    @property
    def n_continuous(self):
        """Number of continuous columns."""
        return self.values.shape[1]

    def take(self, rows):
        """Return some of the rows."""
        return make_rows(self.table[rows], self.base[rows], self.n_continuous)


def make_rows(table, base, c):
    """Make the `Rows` of a table with c continuous columns."""
    first = table.shape[1] - 4 * c
    parts = (table[:, first + i * c : first + (i + 1) * c] for i in range(3))
    return Rows(table, base, table[:, :first], *parts, table[:, first + c :])


def fit_columns(X, weight, labels, groups=None):
    """Find the kinds and the densities of the columns.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The rows; NaN means missing.
    weight : ndarray of shape (n_samples,)
        Weight of each row.
    labels : ndarray of int of shape (n_samples,) or callable
        Clusters within which columns should be symmetric, or a function that computes them
        from standardised columns; see `fit_powers`.
    groups : list of list of int, default=None
        Columns of each variable; ``None`` means that one-hot variables are detected.

    Returns
    -------
    columns : Columns
        The layout.
    """
    low, high = observed_extremes(X)
    factors = ordinary_units(low, high)
    units = np.ones(X.shape[1]) if factors is None else factors
    X = X.astype(np.float64) * units
    place, atoms_of, events = [], [], []
    variable = 0
    for group in one_hot_groups(X) if groups is None else groups:
        if len(group) > 1 and _is_one_hot(X[:, group]):
            top = high[group] * units[group]
            events += [(v, value, variable) for v, value in zip(group, top, strict=True)]
            rest = (X[:, group] != top).all(axis=1) & ~np.isnan(X[:, group]).any(axis=1)
            if rest.any():
                events.append((group[0], -np.inf, variable))
            variable += 1
            continue
        for v in group:
            atoms, others = _atoms(X[:, v], weight)
            if others:
                place.append(v)
                atoms_of.append(atoms)
            if len(atoms) + others > 1:
                events += [(v, value, variable) for value in atoms]
                events += [(v, np.nan, variable)] * others
                variable += 1
    place = np.array(place, dtype=np.int64)
    values = X[:, place]
    present = _present(values, atoms_of)
    observed = ~np.isnan(values)
    complete = np.array([not len(atoms) for atoms in atoms_of], dtype=bool) & observed.all(
        axis=0
    )
    filled = np.where(present > 0, values, 0.0)
    table = np.array(events, dtype=np.float64).reshape(-1, 3)
    blank = Columns(
        units,
        low * units,
        high * units,
        place,
        complete,
        None,
        None,
        table[:, 0].astype(np.int64),
        table[:, 1],
        table[:, 2].astype(np.int64),
        np.ones(len(table)),
    )
    indicators = _indicators(X, blank)
    mass = weight @ indicators
    total = np.bincount(blank.event_variable, mass, blank.n_variables)
    share = mass / np.maximum(total, TINY)[blank.event_variable]
    if callable(labels):
        everything = ~np.isnan(X)
        numbers, variance = _centered(np.where(everything, X, 0.0), everything * 1.0, weight)
        labels = labels(numbers / np.sqrt(np.where(variance > 0, variance, 1.0)), weight)
    powers = fit_powers(filled, present, weight, labels)
    # The clusters of a single column can only be its shape.
    largest = 1 if len(place) == 1 and not len(table) else None
    marginals = fit_marginals(powers.transform(filled) * present, present, weight, largest)
    return blank._replace(powers=powers, marginals=marginals, event_share=share)


def read_rows(X, columns):
    """Compute the `Rows` of X."""
    X = X.astype(np.float64) * columns.units
    values = X[:, columns.place]
    events = _indicators(X, columns)
    present = np.where(np.isnan(values), 0.0, 1.0)
    has_atoms = columns.event_place[np.isnan(columns.event_value)]
    for v in np.flatnonzero(np.isin(columns.place, has_atoms)):
        rest = (columns.event_place == columns.place[v]) & np.isnan(columns.event_value)
        present[:, v] = events[:, np.flatnonzero(rest)[0]]
    values = np.where(present > 0, values, 0.0)
    transformed = columns.powers.transform(values) * present
    log_marginal = columns.marginals.log_density(transformed, present)
    modes = columns.marginals.mode_indicators(transformed, present)
    slopes = (columns.powers.log_slope(values) + np.log(columns.units[columns.place])) * present
    log_share = np.log(np.maximum(columns.event_share, TINY))
    base = (log_marginal + slopes).sum(axis=1) + events @ log_share
    base += np.log(TINY) * _count_unseen(X, events, columns)
    parts = [events, modes, log_marginal, present, transformed, transformed * transformed]
    return make_rows(np.ascontiguousarray(np.hstack(parts)), base, len(columns.place))


def _count_unseen(X, events, columns):
    """Count the discrete variables of each row that have a value never seen before."""
    if not columns.n_variables:
        return np.zeros(len(X))
    _, first = np.unique(columns.event_variable, return_index=True)
    there = ~np.isnan(X[:, columns.event_place[first]])
    known = events @ np.eye(columns.n_variables)[columns.event_variable]
    return (there & (known == 0)).sum(axis=1)


def geometry(X, columns, weight):
    """Return the rows as points for distances.

    Each column is a number with a variance of 1, transformed if it is skewed; the columns of a
    one-hot variable have a total variance of 1. Missing values are at the mean.
    """
    X = X.astype(np.float64) * columns.units
    points = X.copy()
    transformed = columns.powers.transform(X[:, columns.place])
    points[:, columns.place] = np.clip(transformed, -FARTHEST_POINT, FARTHEST_POINT)
    present = (~np.isnan(points)).astype(np.float64)
    points, variance = _centered(np.where(present > 0, points, 0.0), present, weight)
    total = variance.copy()
    for variable in range(columns.n_variables):
        places = np.unique(columns.event_place[columns.event_variable == variable])
        total[places] = variance[places].sum()
    varying = variance > 0
    varying[:1] |= not varying.any()  # at least one column
    return (points / np.sqrt(np.where(total > 0, total, 1.0)))[:, varying]


def _centered(values, present, weight):
    """Subtract the mean of each column; return the variances, too."""
    mass = np.maximum(weight @ present, TINY)
    centered = (values - (weight @ values) / mass) * present
    return centered, weight @ (centered * centered) / mass


def _atoms(column, weight):
    """Return the atoms of a column, and whether other values make up a continuous part."""
    there = ~np.isnan(column)
    if not there.any():
        return [], False
    distinct, inverse = np.unique(column[there], return_inverse=True)
    mass = np.bincount(inverse, weight[there], len(distinct))
    count = np.bincount(inverse, minlength=len(distinct))
    is_atom = (mass >= SETTINGS.atom * mass.sum()) & ((count > 1) | (mass > 1))
    # A single other value has no spread; it becomes an atom, too.
    if (~is_atom).sum() < 2:
        return distinct.tolist(), False
    return distinct[is_atom].tolist(), True


def _present(values, atoms_of):
    present = (~np.isnan(values)).astype(np.float64)
    for v, atoms in enumerate(atoms_of):
        if atoms:
            present[np.isin(values[:, v], atoms), v] = 0.0
    return present


def _is_one_hot(X):
    """Tell whether each column has two values, and at most one column its larger value."""
    low, high = observed_extremes(X)
    gaps = np.isnan(X)
    two = ((low == X) | (high == X) | gaps).all()
    return bool(two and ((high == X) & (low < high)).sum(axis=1).max() <= 1)


def _indicators(X, columns):
    """Tell which events occur in which rows; shape (n, d)."""
    found = (X[:, columns.event_place] == columns.event_value).astype(np.float64)
    for event in np.flatnonzero(~np.isfinite(columns.event_value)):
        of_variable = columns.event_variable == columns.event_variable[event]
        others = of_variable & np.isfinite(columns.event_value)
        none = found[:, others].sum(axis=1) == 0
        places = np.unique(columns.event_place[of_variable])
        found[:, event] = none & ~np.isnan(X[:, places]).any(axis=1)
    return found
