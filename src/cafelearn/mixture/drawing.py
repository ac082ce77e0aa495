"""Random rows from a fitted mixture."""

import numpy as np

from cafelearn.mixture.marginals import FALL
from cafelearn.mixture.settings import SETTINGS, TINY

# Largest number of draws of a value until it is accepted.
ROUNDS = 10_000


def draw_rows(fitted, n, rng):
    """Draw n rows and their components; the component -1 is the background."""
    columns, parameters, family = fitted
    k = len(parameters.mean)
    weight = np.exp(parameters.log_weight)
    labels = rng.choice(len(weight), n, p=weight / weight.sum())
    X = np.tile(columns.low, (n, 1))
    values = _draw_marginals(columns.marginals, n, rng)
    for cluster in np.unique(labels):
        rows = np.flatnonzero(labels == cluster)
        if cluster == k:
            low, high = columns.marginals.low, columns.marginals.high
            values[rows] = rng.uniform(low, high, (len(rows), len(low)))
            continue
        _draw_modes(values, rows, columns, parameters.log_ratio[cluster], rng)
        scale = np.ones((len(rows), 1))
        if family.tails:
            scale = np.sqrt(rng.chisquare(SETTINGS.degrees, (len(rows), 1)) / SETTINGS.degrees)
        used = np.flatnonzero(parameters.used[cluster])
        deviation = np.sqrt(parameters.variance[cluster, used])
        noise = rng.normal(size=(len(rows), len(used))) * deviation / scale
        values[np.ix_(rows, used)] = parameters.mean[cluster, used] + noise
        block = parameters.block
        if len(block):
            root = np.linalg.cholesky(parameters.covariance[cluster])
            noise = rng.normal(size=(len(rows), len(block))) @ root.T / scale
            values[np.ix_(rows, block)] = parameters.block_mean[cluster] + noise
    X[:, columns.place] = columns.powers.inverse(values)
    _draw_events(X, columns, parameters.log_ratio, labels, rng)
    return X / columns.units, np.where(labels == k, -1, labels)


def _draw_marginals(marginals, n, rng):
    """Draw values of each column that do not depend on the cluster; shape (n, c)."""
    values = np.empty((n, len(marginals.low)))
    for v, weight in enumerate(marginals.weight):
        if weight.sum() == 0:
            values[:, v] = _draw_uniform(marginals.low[v], marginals.high[v], n, rng)
            continue
        part = rng.choice(len(weight), n, p=weight / weight.sum())
        values[:, v] = rng.normal(marginals.mean[v, part], marginals.deviation[v, part])
    return values


def _draw_uniform(low, high, n, rng):
    """Draw from a uniform density that falls off beyond its range; see `Marginals`."""
    values = rng.uniform(low, high, n)
    beyond = rng.random(n) < 2 / (FALL + 2)
    away = rng.exponential((high - low) / FALL, n)
    outside = np.where(rng.random(n) < 0.5, low - away, high + away)
    return np.where(beyond, outside, values)


def _draw_modes(values, rows, columns, log_ratio, rng):
    """Draw the columns again whose modes have other probabilities in this cluster."""
    marginals = columns.marginals
    ratio = np.exp(log_ratio[len(columns.event_share) :])
    for v in np.unique(marginals.mode_column):
        places = np.flatnonzero(marginals.mode_column == v)
        if (log_ratio[len(columns.event_share) + places] == 0).all():
            continue
        one = marginals._replace(
            weight=marginals.weight[[v]],
            mean=marginals.mean[[v]],
            deviation=marginals.deviation[[v]],
            low=marginals.low[[v]],
            high=marginals.high[[v]],
        )
        left = rows
        for _ in range(ROUNDS):  # rejection sampling
            drawn = _draw_marginals(one, len(left), rng)[:, 0]
            mode = marginals.modes[v][np.searchsorted(marginals.cuts[v], drawn)]
            place = places[np.searchsorted(marginals.mode_number[places], mode)]
            accepted = rng.random(len(left)) < ratio[place] / ratio[places].max()
            values[left, v] = drawn  # those not accepted are drawn again
            left = left[~accepted]
            if not len(left):
                break


def _draw_events(X, columns, log_ratio, labels, rng):
    """Draw the discrete variables and write atoms and categories into the rows."""
    for variable in range(columns.n_variables):
        events = np.flatnonzero(columns.event_variable == variable)
        log_share = np.log(np.maximum(columns.event_share[events], TINY))
        share = np.exp(log_share + log_ratio[labels][:, events])
        share = np.cumsum(share / share.sum(axis=1, keepdims=True), axis=1)
        drawn = (rng.random((len(X), 1)) > share[:, :-1]).sum(axis=1)
        places = columns.event_place[events]
        if len(set(places.tolist())) > 1:  # one-hot
            X[:, places] = columns.low[places]
        for number, event in enumerate(events):
            rows, value = drawn == number, columns.event_value[event]
            if np.isfinite(value):
                X[rows, columns.event_place[event]] = value
