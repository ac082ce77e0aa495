"""Initial centres: random rows, k-means++ in the Minkowski geometry, anomalous clusters.

Centres are arrays of shape (k, m). Distances are unweighted, because feature weights are
uniform at the start of a descent; only `anomalous` uses feature weights.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_array

from cafelearn.data.variables import used_columns, variable_codes
from cafelearn.kmeans.descent import descend, one_cluster
from cafelearn.kmeans.draws import first_to_come, make_draw, waiting_times
from cafelearn.kmeans.iteration import make_problem
from cafelearn.kmeans.kernels.cells import WEIGHT
from cafelearn.kmeans.kernels.weights import (
    cells_of,
    log_mean_dispersion,
    make_groups,
    uniform_weights,
    update_weights,
)
from cafelearn.kmeans.placing import assign, distances, make_model
from cafelearn.kmeans.scales import data_scale, half_span

# Sums whose relative difference is below this are ties, because their rounding depends on the
# order of the rows.
TIE = 1e-9
# If all rates (see `waiting_times`) are below this, they are divided by it, because the waiting
# times would otherwise be infinite.
SMALLEST_RATE = 2.0**-900


def groups_of(estimator, low, high):
    """Return the Groups of an estimator's variables that vary in data with these extrema."""
    codes = variable_codes(estimator)
    return make_groups(len(low), codes, used_columns(half_span(low, high), codes))


class StartRows(NamedTuple):
    """The rows that initial centres are made from."""

    X: np.ndarray
    sample_weight: np.ndarray
    low: np.ndarray
    high: np.ndarray
    offset: float | str  # see starts.log_offset


class Init(NamedTuple):
    """One way to make initial centres."""

    make: Callable  # (estimator, StartRows) -> function of a seed that returns the centres
    random: bool  # whether the centres depend on the seed


def _random(estimator, rows):
    draw = make_draw(rows.X, rows.sample_weight, half_span(rows.low, rows.high), rows.low)
    return lambda seed: random_rows(
        rows.X, estimator.n_clusters, draw, np.random.default_rng(seed)
    )


def _plus_plus(estimator, rows):
    draw = make_draw(rows.X, rows.sample_weight, half_span(rows.low, rows.high), rows.low)
    k, p, scale = estimator.n_clusters, estimator.p, data_scale(rows.low, rows.high)[0]

    def centers_of(seed):
        rng = np.random.default_rng(seed)
        return kmeans_plusplus(rows.X, k, rows.sample_weight, draw, rng, p, scale)

    return centers_of


def _anomalous(estimator, rows):
    scale, feature_scale = data_scale(rows.low, rows.high)
    groups = groups_of(estimator, rows.low, rows.high)
    problem = make_problem(
        rows.X, estimator.p, scale, rows.offset, 1, 0.0, estimator.weighting, groups
    )
    return lambda seed: anomalous(
        rows.X, estimator.n_clusters, rows.sample_weight, feature_scale, problem
    )


# To add an init, add an entry here, a test, and a line to the docstrings of the estimators.
INITS = {
    "random": Init(_random, random=True),
    "k-means++": Init(_plus_plus, random=True),
    "anomalous": Init(_anomalous, random=False),
}


def make_start(estimator, rows, shown=None):
    """Return a function from a seed to the centres, weights and typical distances of a start.

    The weights and distances are None, which means the default. `shown` holds the rows in the
    user's units, and the factor by which they were multiplied.
    """
    init = estimator.init
    if isinstance(init, str):
        centers_of = INITS[init].make(estimator, rows)
    else:
        user_rows, unit = (rows.X, 1.0) if shown is None else shown

        def centers_of(seed):
            return given_centers(init, user_rows, rows.X, estimator.n_clusters, seed, unit)

    return lambda seed: (centers_of(seed), None, None)


def random_rows(X, n_clusters, draw, rng):
    """Draw k distinct rows without replacement, in proportion to their weight.

    If there are fewer distinct rows than clusters, rows are repeated.
    """
    times = waiting_times(draw, rng, draw.mass)
    chosen = first_to_come(times, n_clusters)
    return X[draw.first[np.resize(chosen, n_clusters)]]


def n_trials(n_clusters):
    """Return the number of rows tried for each centre of k-means++, as in scikit-learn."""
    return 2 + int(np.log(n_clusters))


def kmeans_plusplus(X, n_clusters, sample_weight, draw, rng, p, scale):
    """Choose centres by k-means++, with distances d^p (Eq. 2).

    For each centre a few rows are drawn, in proportion to their distances from the nearest
    centre so far. The row that leaves the smallest sum of distances becomes the centre.
    """
    centers = np.empty((n_clusters, X.shape[1]), dtype=X.dtype)
    nearest = None
    for l in range(n_clusters):
        rates = draw.mass if l == 0 else rates_of(draw, sample_weight * nearest)
        if not rates.any():  # every row equals a centre already
            rates = draw.mass
        elif rates.max() < SMALLEST_RATE:
            rates = rates / SMALLEST_RATE
        times = waiting_times(draw, rng, rates)
        chosen = first_to_come(times, n_trials(n_clusters) if l else 1)
        candidates = X[draw.first[chosen]]
        reached = powers(X, candidates, p, scale)
        if l:
            np.minimum(reached, nearest[:, None], out=reached)
        best = first_smallest(sample_weight @ reached)
        centers[l] = candidates[best]
        nearest = np.ascontiguousarray(reached[:, best])
    return centers


def first_smallest(totals):
    """Return the index of the smallest number; the first one if several tie up to rounding."""
    return int(np.argmax(totals <= totals.min() * (1 + TIE)))


def rates_of(draw, row_rates):
    """Sum the rates of equal rows, for each distinct row."""
    return np.bincount(draw.group, weights=row_rates[draw.rows], minlength=len(draw.mass))


def powers(X, centers, p, scale):
    """Compute (scale d)^p for the distances d of rows to centres, with all weights 1."""
    away = distances(X, make_model(centers, np.ones_like(centers), p, scale, X.dtype))
    with np.errstate(over="ignore"):
        out = (away * scale) ** p
    # Rows of weight 0 may be infinitely far away, and 0 times infinity is NaN.
    return np.minimum(out, np.finfo(out.dtype).max, out=out)


def given_centers(init, shown, X, n_clusters, seed, unit=1.0):
    """Return the centres given as `init`, or made by the callable `init` from rows `shown`."""
    if callable(init):
        state = np.random.RandomState(np.random.MT19937(seed))
        init = init(shown, n_clusters, random_state=state)
    centers = check_array(init, dtype=X.dtype, order="C", input_name="init")
    if centers.shape[0] != n_clusters:
        raise ValueError(
            f"The shape of the initial centers {centers.shape} does not match the number "
            f"of clusters {n_clusters}."
        )
    if centers.shape[1] != X.shape[1]:
        raise ValueError(
            f"The shape of the initial centers {centers.shape} does not match the number "
            f"of features of the data {X.shape[1]}."
        )
    return centers if unit == 1 else _times(centers, unit)


def _times(centers, unit):
    with np.errstate(over="ignore"):
        centers = centers * centers.dtype.type(unit)
    if not np.isfinite(centers).all():
        raise ValueError(
            "The initial centers are too far from the data: scaled like the data, they exceed "
            "the range of floats."
        )
    return centers


def anomalous(X, n_clusters, sample_weight, feature_scale, problem):
    """Return the centres of the k largest anomalous clusters (de Amorim and Mirkin, 2012).

    An anomalous cluster is fitted around the row farthest from the Minkowski centre of the
    data, together with a second cluster whose centre is fixed at that Minkowski centre. Both
    have feature weights. When the anomalous cluster is stable, its rows are removed, and the
    next one is fitted to the remaining rows, until no rows are left. If fewer than k clusters
    are found, the rows farthest from the centres become centres, too.
    """
    p, scale = problem.geometry.p, problem.scale
    middle, _ = one_cluster(X, sample_weight, feature_scale, p)
    left = np.flatnonzero(sample_weight > 0)
    found, sizes = [], []
    while len(left) and len(found) < len(X):
        rows, mass = np.ascontiguousarray(X[left]), sample_weight[left]
        members, center = _anomalous_cluster(rows, mass, middle, feature_scale, problem)
        found.append(center)
        sizes.append(mass[members].sum())
        left = left[~members]
    largest = np.argsort(-np.asarray(sizes), kind="stable")[:n_clusters]
    centers = np.asarray(found, dtype=X.dtype)[largest]
    while len(centers) < n_clusters:
        model = make_model(centers, np.ones_like(centers), p, scale, X.dtype)
        _, nearest = assign(X, model)
        farthest = np.argmax(np.where(sample_weight > 0, nearest, -1))
        centers = np.vstack([centers, X[farthest]])
    return centers


def _anomalous_cluster(X, sample_weight, middle, feature_scale, problem):
    """Find members and centre of the cluster around the row farthest from `middle`."""
    p, scale = problem.geometry.p, problem.scale
    weights = uniform_weights(problem.groups, 2, X.shape[1], X.dtype)
    _, away = assign(X, make_model(middle[None, :], weights[:1], p, scale, X.dtype))
    seed = np.argmax(away)
    center = X[seed]
    members, seen = None, set()
    while True:
        pair = np.stack([middle, center])
        labels, _ = assign(X, make_model(pair, weights, p, scale, X.dtype))
        inside = labels == 1
        # With these weights every row may be nearer to the middle; keep at least the seed.
        inside[seed] |= not inside.any()
        fingerprint = hash(inside.tobytes())
        if fingerprint in seen:
            return members, center
        seen.add(fingerprint)
        members = inside
        result = descend(
            X[members], sample_weight[members], center[None, :], feature_scale, problem
        )
        center, weights[1] = result.centers[0], result.weights[0]
        if not members.all():
            weights[0] = _weights_about(middle, X[~members], sample_weight[~members], problem)


def _weights_about(center, X, sample_weight, problem):
    """Compute the feature weights (Eq. 4) of one cluster with a given centre."""
    p, dispersions = problem.geometry.p, np.zeros(X.shape[1])
    for first in range(0, len(X), problem.chunk):
        rows = slice(first, first + problem.chunk)
        away = np.abs(X[rows] - center) * problem.scale
        dispersions += sample_weight[rows] @ away.astype(np.float64) ** p
    with np.errstate(divide="ignore"):
        log_dispersions = np.log(dispersions)[None, :] - p * np.log(problem.scale)
    offset, groups = problem.log_offset, problem.groups
    cells = cells_of(log_dispersions)
    if problem.moving_offset:
        offset = log_mean_dispersion.from_python(cells, groups)
    single = problem.geometry.single
    update_weights.from_python(cells, offset, p, problem.weighting, groups, single)
    return cells[0, WEIGHT]
