"""Initial centres: random rows, k-means++ in the Minkowski geometry, anomalous clusters.

Every function takes validated arrays and returns an array of shape (k, m). Weights are
uniform at the start of the algorithm, so distances here are plain Minkowski distances.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_array

from cafelearn._solver.descent import descend, one_cluster
from cafelearn._solver.iteration import make_problem
from cafelearn._solver.kernels.assign import hash_of as mix
from cafelearn._solver.kernels.assign import project_rows
from cafelearn._solver.kernels.cells import WEIGHT
from cafelearn._solver.kernels.compiling import EXACT, MAKES, njit
from cafelearn._solver.kernels.weights import (
    cells_of,
    log_mean_dispersion,
    make_groups,
    uniform_weights,
    update_weights,
)
from cafelearn._solver.placing import assign, distances, make_model
from cafelearn._solver.scales import data_scale, half_span
from cafelearn._variables import used_columns, variable_codes

# Up to this many rows, draws rank the rows by their values. With more rows, which may be spread
# over processes, draws use a code computed from each row.
RANKED_ROWS = 5_000
# Codes use this many of the 52 bits of the mantissa, so that another unit of measurement, which
# rounds differently, gives the same draw.
KEPT_BITS = 24
# Sums whose relative difference is below this are ties: rounding depends on the order of rows.
TIE = 1e-9
# Values closer to the smallest one than this fraction of the range count as equal to it.
NOTHING = 2.0**-45
# Waiting times for weaker pulls would be infinite.
SMALLEST_PULL = 2.0**-900


def groups_of(estimator, low, high):
    """The variables of an estimator that are not constant in data with these extrema."""
    codes = variable_codes(estimator)
    return make_groups(len(low), codes, used_columns(half_span(low, high), codes))


class StartRows(NamedTuple):
    """The rows that starts are made of."""

    X: np.ndarray
    sample_weight: np.ndarray
    low: np.ndarray
    high: np.ndarray
    offset: float | str  # see starts.log_offset


class Init(NamedTuple):
    """One way to make initial centres."""

    make: Callable  # (estimator, StartRows) -> function of a seed that returns the centres
    random: bool  # differs from seed to seed


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


# To add an init, add an entry, its test and a line to the docstring of the estimators.
INITS = {
    "random": Init(_random, random=True),
    "k-means++": Init(_plus_plus, random=True),
    "anomalous": Init(_anomalous, random=False),
}


def make_start(estimator, rows, shown=None):
    """A function that makes the initial centres of a start, without weights, from its seed.

    `shown` are the rows in the user's units, and the factor that was applied to them.
    """
    init = estimator.init
    if isinstance(init, str):
        centers_of = INITS[init].make(estimator, rows)
    else:
        user_rows, unit = (rows.X, 1.0) if shown is None else shown

        def centers_of(seed):
            return given_centers(init, user_rows, rows.X, estimator.n_clusters, seed, unit)

    return lambda seed: (centers_of(seed), None, None)


class Draw(NamedTuple):
    """The distinct rows of positive weight, in an order that depends only on their values.

    Random choices made in this order do not depend on the order of the rows, and a row of
    weight 2 is equivalent to two equal rows.
    """

    rows: np.ndarray  # indices of all rows, equal ones next to each other
    group: np.ndarray  # number of the distinct row of each of them, ascending
    mass: np.ndarray  # weight of each distinct row
    first: np.ndarray  # index of a row that has these values
    codes: np.ndarray | None  # code of each distinct row, if they are not ranked


def make_draw(X, sample_weight, spans, low=None):
    """Find and order the distinct rows.

    `spans` are the ranges of the features, or any one multiple of them, and `low` their
    smallest values, zeros if not given; with them the draw does not depend on units.
    """
    spans = np.where(spans > 0, spans, 1.0).astype(np.float64)
    if len(X) > RANKED_ROWS:
        low = np.zeros(X.shape[1]) if low is None else low.astype(np.float64)
        return coded_draw(X, sample_weight, spans, low)
    # Along a fixed direction, in which distinct rows hardly ever coincide.
    direction = (1 + np.sqrt(2 + np.arange(X.shape[1])) % 1) / spans
    along = project_rows(X, direction)
    rows = np.argsort(along, kind="stable")
    rows = rows[sample_weight[rows] > 0]
    new = _steps(along[rows])
    # Rows that coincide are compared, in case they are not equal after all.
    doubtful = np.flatnonzero(~new)
    new[doubtful] = (X[rows[doubtful]] != X[rows[doubtful - 1]]).any(axis=1)
    group = np.cumsum(new) - 1
    mass = np.bincount(group, weights=sample_weight[rows])
    return Draw(rows, group, mass, rows[new], None)


def coded_draw(X, sample_weight, spans, low):
    """Make a draw by codes, whose order can be computed from any part of the rows."""
    codes = _row_codes(X, low, spans)
    rows = np.argsort(codes, kind="stable")
    rows = rows[sample_weight[rows] > 0]
    codes = codes[rows]
    new = _steps(codes)
    group = np.cumsum(new) - 1
    mass = np.bincount(group, weights=sample_weight[rows])
    first = _smallest_of_each(X, rows, group, len(mass))
    return Draw(rows, group, mass, first, codes[new])


def _steps(rising):
    """Whether each number differs from the one before it."""
    new = np.ones(len(rising), dtype=bool)
    new[1:] = rising[1:] != rising[:-1]
    return new


@njit(**MAKES)
def _row_codes(X, low, spans):
    """A 64-bit code for each row, equal for equal rows."""
    codes = np.empty(len(X), dtype=np.uint64)
    rest = np.uint64(52 - KEPT_BITS)
    half = np.uint64(1) << (rest - np.uint64(1))
    for i in range(len(X)):
        code = np.uint64(0)
        for v in range(X.shape[1]):
            # Halves, because the plain difference of huge numbers overflows.
            t = (0.5 * np.float64(X[i, v]) - 0.5 * low[v]) / spans[v]
            bits = np.float64(t if abs(t) >= NOTHING else 0.0).view(np.uint64)
            # A sum, whose terms the compiler can work out side by side.
            code += mix(((bits + half) >> rest) + (np.uint64(v) << np.uint64(KEPT_BITS + 12)))
        codes[i] = code
    return codes


@njit(**MAKES)
def _smallest_of_each(X, rows, group, n_groups):
    """Index of the lexicographically first row of each group."""
    first = np.full(n_groups, -1, dtype=np.int64)
    for j in range(len(rows)):
        i, best = rows[j], first[group[j]]
        if best < 0 or _comes_before(X[i], X[best]):
            first[group[j]] = i
    return first


@njit(**EXACT)
def _comes_before(row, other):
    for v in range(len(row)):
        if row[v] != other[v]:
            return row[v] < other[v]
    return False


def waiting_times(draw, rng, pull):
    """Draw a waiting time for each distinct row: an exponential variable over `pull`.

    The rows with the shortest times are a sample without replacement, in proportion to
    `pull`. The time is infinite where `pull` is 0.
    """
    if draw.codes is not None:
        return coded_times(draw.codes, new_salt(rng), pull)
    with np.errstate(divide="ignore", over="ignore"):
        return rng.exponential(size=len(pull)) / pull


def new_salt(rng):
    """Draw a salt that distinguishes one draw by codes from the next."""
    return rng.integers(2**64, dtype=np.uint64)


def coded_times(codes, salt, pull):
    """The waiting times of rows that are known by their codes."""
    with np.errstate(divide="ignore"):
        return _exponentials(codes, salt) / pull


@njit(**MAKES)
def _exponentials(codes, salt):
    out = np.empty(len(codes))
    for g in range(len(codes)):
        bits = mix(codes[g] ^ salt) >> np.uint64(11)
        out[g] = -np.log((np.float64(bits) + 0.5) * 2.0**-53)
    return out


def first_to_come(times, count):
    """Positions of the `count` shortest finite times, in order; fewer if there are fewer."""
    count = min(count, int(np.isfinite(times).sum()))
    chosen = np.argpartition(times, count - 1)[:count] if count < len(times) else None
    if chosen is None:
        return np.argsort(times, kind="stable")
    return chosen[np.argsort(times[chosen], kind="stable")]


def random_rows(X, n_clusters, draw, rng):
    """k distinct rows drawn without replacement, in proportion to their weight.

    If there are fewer distinct rows than clusters, rows are repeated.
    """
    times = waiting_times(draw, rng, draw.mass)
    chosen = first_to_come(times, n_clusters)
    return X[draw.first[np.resize(chosen, n_clusters)]]


def rows_to_draw(X, sample_weight, low, high):
    """The distinct rows, in an order that can be computed from any part of the rows."""
    return coded_draw(X, sample_weight, positive_spans(low, high), low.astype(np.float64))


def positive_spans(low, high):
    """Half of the range of each feature, 1 for constant ones."""
    spans = half_span(low, high)
    return np.where(spans > 0, spans, 1.0).astype(np.float64)


def draw_sample(X, draw, size, rng):
    """Draw a sample of `size` distinct rows, weighted to represent all rows."""
    times = waiting_times(draw, rng, draw.mass)
    chosen = first_to_come(times, size + 1)
    kept, mass = sample_weights(times[chosen], draw.mass[chosen], size)
    return np.ascontiguousarray(X[draw.first[chosen[:kept]]]), mass


def sample_weights(times, mass, size):
    """Return the number of rows in the sample and their weights.

    The inclusion probability of a row follows from its mass and the shortest time left out;
    its weight is the mass over that probability (Horvitz and Thompson).
    """
    if len(times) <= size:
        return len(times), mass
    mass = mass[:size]
    return size, mass / -np.expm1(-mass * times[size])


def n_trials(n_clusters):
    """Candidates for each centre of k-means++, as in scikit-learn."""
    return 2 + int(np.log(n_clusters))


def kmeans_plusplus(X, n_clusters, sample_weight, draw, rng, p, scale):
    """k-means++ with the Minkowski distance: rows are drawn in proportion to d^p (Eq. 2).

    Each centre is the best of a few candidates, the one that leaves the smallest sum of
    distances.
    """
    centers = np.empty((n_clusters, X.shape[1]), dtype=X.dtype)
    nearest = None
    for l in range(n_clusters):
        pull = draw.mass if l == 0 else pull_of(draw, sample_weight * nearest)
        if not pull.any():  # every row is a centre already
            pull = draw.mass
        elif pull.max() < SMALLEST_PULL:
            pull = pull / SMALLEST_PULL
        times = waiting_times(draw, rng, pull)
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
    """Index of the smallest number; of numbers equal up to rounding, the first."""
    return int(np.argmax(totals <= totals.min() * (1 + TIE)))


def pull_of(draw, strengths):
    """The sum of the rows' strengths for each distinct row."""
    return np.bincount(draw.group, weights=strengths[draw.rows], minlength=len(draw.mass))


def powers(X, centers, p, scale):
    """d^p of each row to each centre for uniform weights, relative to the data's scale."""
    away = distances(X, make_model(centers, np.ones_like(centers), p, scale, X.dtype))
    with np.errstate(over="ignore"):
        out = (away * scale) ** p
    # Rows without weight may be infinitely far away, and 0 times infinity is NaN.
    return np.minimum(out, np.finfo(out.dtype).max, out=out)


def given_centers(init, shown, X, n_clusters, seed, unit=1.0):
    """Centres given by the user, or made by a callable from the rows `shown`."""
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
        raise ValueError("The initial centers are too far from the data for its format.")
    return centers


def anomalous(X, n_clusters, sample_weight, feature_scale, problem):
    """Centres of the k largest anomalous clusters (de Amorim and Mirkin, 2012).

    A cluster is fitted around the row farthest from the Minkowski centre of the data, with
    that centre as a fixed second one. When it is stable, its rows are removed, and the next
    cluster is fitted to the remaining rows, until none are left. Both clusters have feature
    weights. Missing centres are the rows farthest from the centres found.
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
    """Members and centre of the cluster around the row farthest from `middle`."""
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
        # Weights may assign every row to the middle; the cluster keeps at least its seed.
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
    """Feature weights (Eq. 4) of one cluster whose centre is given."""
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
