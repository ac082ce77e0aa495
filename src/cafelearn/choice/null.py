"""The null: one cloud of rows, with correlations, skewness and bounds but without clusters.

Its columns have free-form densities, joined by one normal or t copula; or it is one normal or t
cluster. The dependence of discrete columns has no simple likelihood; for them, copies of the
cloud are drawn.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import gammaln, ndtr, ndtri
from scipy.stats import t as student

from cafelearn.mixture.descent import begin
from cafelearn.mixture.em import Family
from cafelearn.mixture.settings import LIMITS, SETTINGS, TINY

# Degrees of freedom of the copulas, and numbers of factors of their correlations.
DEGREES = (3.0, 5.0, 10.0, np.inf)
FACTORS = (0, 1, 2, 3, 5)
# Columns with fewer distinct values than this share of the rows count as discrete.
DISTINCT = 0.5
# Rows drawn to correct correlations for ties, and steps of the correction.
DRAWN, STEPS = 4_000, 2
# Smallest eigenvalue of a correlation matrix.
LEAST = 0.01


class Null(NamedTuple):
    """One cloud, fitted to rows."""

    value: float  # criterion, relative to independent columns
    independent: float  # what t densities of the columns gain over the free-form ones
    degrees: float  # of the copula
    numbers: np.ndarray  # columns of X that are numbers
    ranks: np.ndarray  # (n, p) ranks of their values, between 0 and 1; 0.5 if missing
    discrete: np.ndarray  # (p,) whether many rows share a value
    groups: list  # columns of each one-hot variable


def fit_null(prepared):
    """Fit the `Null` to prepared rows."""
    X, columns, weight = prepared.X, prepared.columns, prepared.weight
    one_hot = _one_hot_columns(columns)
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    numbers = np.flatnonzero(
        (low < high) & ~np.isin(np.arange(X.shape[1]), np.concatenate([[-1], *one_hot]))
    )
    ranks = np.full((len(X), len(numbers)), 0.5)
    discrete = np.zeros(len(numbers), dtype=bool)
    for place, v in enumerate(numbers):
        there = ~np.isnan(X[:, v])
        ranks[there, place], n_distinct = mid_ranks(X[there, v], weight[there])
        discrete[place] = n_distinct < DISTINCT * there.sum()
    complete = ~discrete & ~np.isnan(X[:, numbers]).any(axis=0)
    copula, degrees = _best_copula(ranks[:, complete], weight)
    independent = _gain_of_t(prepared)
    value = max(0.0, _one_cluster(prepared), independent + copula)
    return Null(value, independent, degrees, numbers, ranks, discrete, one_hot)


def _one_hot_columns(columns):
    found = []
    for variable in range(columns.n_variables):
        places = np.unique(columns.event_place[columns.event_variable == variable])
        if len(places) > 1:
            found.append(places.tolist())
    return found


def _one_cluster(prepared):
    """Return the best criterion of one normal or t cluster."""
    labels = np.zeros(len(prepared.weight), dtype=np.int64)
    found = [0.0]
    if prepared.columns.may_depend:
        for tails in (False, True):
            found.append(begin(prepared, labels, 1, Family("full", tails), 20).objective)
    return max(found)


def _gain_of_t(prepared):
    """Return what t densities gain over the free-form densities of the complete columns."""
    rows, columns, weight = prepared.rows, prepared.columns, prepared.weight
    total = 0.0
    for v in np.flatnonzero(columns.complete):
        values, best = rows.values[:, v], -np.inf
        for degrees in DEGREES[:-1]:
            quartile = student.ppf(0.75, degrees)
            center = np.median(values)
            width = np.subtract(*np.quantile(values, (0.75, 0.25))) / (2 * quartile)
            width = max(width, TINY)
            for _ in range(10):
                scale = (degrees + 1) / (degrees + ((values - center) / width) ** 2) * weight
                center = scale @ values / scale.sum()
                width = np.sqrt(scale @ (values - center) ** 2 / weight.sum() + TINY)
            best = max(best, weight @ student.logpdf(values, degrees, center, width))
        total += max(0.0, best - weight @ rows.log_marginal[:, v])
    return float(total)


def mid_ranks(values, weight):
    """Return the middle of each value's step of the distribution function, and their number."""
    distinct, inverse = np.unique(values, return_inverse=True)
    mass = np.bincount(inverse, weight)
    top = np.cumsum(mass)
    return ((top - mass / 2) / top[-1])[inverse], len(distinct)


def _best_copula(ranks, weight):
    """Return the highest criterion of a normal or t copula, at least 0, and its degrees."""
    m = ranks.shape[1]
    best = 0.0, np.inf
    if not 2 <= m <= LIMITS.dependent_columns:
        return best
    total = weight.sum()
    scores = ndtri(ranks)
    found = _structures(_correlations(scores, weight), total)
    options = [(*np.linalg.eigh(matrix), count) for matrix, count in found]
    for degrees in DEGREES:
        is_normal = np.isinf(degrees)
        values = scores if is_normal else student.ppf(ranks, degrees)
        for variances, vectors, count in options:
            distance = ((values @ vectors) ** 2 / variances).sum(axis=1)
            log_det = np.log(variances).sum()
            if is_normal:
                density = -0.5 * (log_det + distance - (values**2).sum(axis=1))
            else:
                density = _t_copula(values, distance, log_det, degrees)
            fit = weight @ density - 0.5 * np.log(total) * (count + (not is_normal))
            best = max(best, (float(fit), degrees))
    return best


def _t_copula(values, distance, log_det, degrees):
    """Compute the log densities of a t copula."""
    m, half = values.shape[1], degrees / 2
    fixed = gammaln(half + m / 2) + (m - 1) * gammaln(half) - m * gammaln(half + 0.5)
    joint = (half + m / 2) * np.log1p(distance / degrees)
    single = (half + 0.5) * np.log1p(values**2 / degrees).sum(axis=1)
    return fixed - 0.5 * log_det - joint + single


def _correlations(scores, weight):
    scatter = (scores * weight[:, None]).T @ scores
    spread = np.sqrt(np.maximum(np.diag(scatter), TINY))
    return _positive(scatter / np.outer(spread, spread))


def _positive(matrix, least=LEAST):
    """Return the correlation matrix next to a symmetric matrix."""
    values, vectors = np.linalg.eigh(matrix)
    matrix = (vectors * np.maximum(values, least)) @ vectors.T
    spread = np.sqrt(np.diag(matrix))
    return matrix / np.outer(spread, spread)


def _structures(matrix, total):
    """Yield correlation matrices of few factors, and the free one if there are rows enough."""
    p = len(matrix)
    free = p * (p - 1) / 2
    for factors in FACTORS:
        count = factors * p - factors * (factors - 1) / 2
        if factors == 0 or count < free:
            yield (_factor_model(matrix, factors) if factors else np.eye(p)), count
    if 0 < free < total * p / 3:
        yield _positive(matrix), free


def _factor_model(matrix, factors, steps=15):
    """Return the correlations of a factor model, by principal factors of scaled columns."""
    unique = 1 / np.maximum(np.diag(np.linalg.inv(_positive(matrix, 0.05))), 1.0)
    for _ in range(steps):
        root = np.sqrt(unique)
        values, vectors = np.linalg.eigh(matrix / np.outer(root, root))
        common = np.sqrt(np.maximum(values[-factors:] - 1, 0.0))
        loadings = root[:, None] * vectors[:, -factors:] * common
        unique = np.clip(1 - (loadings**2).sum(axis=1), 0.02, 1.0)
    return _positive(loadings @ loadings.T + np.diag(unique), 0.0)


def prepare_copies(null, prepared):
    """Return what `draw_copy` needs: quantile functions and the root of the correlations."""
    X, weight = prepared.X, prepared.weight
    quantiles = [_unimodal_quantiles(X[~np.isnan(X[:, v]), v]) for v in null.numbers]
    if len(quantiles) > LIMITS.dependent_columns:
        return quantiles, np.eye(len(quantiles))
    target = _correlations(ndtri(null.ranks), weight)
    found = target
    noise = np.random.default_rng(0).normal(size=(DRAWN, len(target)))
    ones = np.ones(DRAWN)
    for _ in range(STEPS if null.discrete.any() else 0):
        latent = noise @ np.linalg.cholesky(_positive(found)).T
        seen = latent.copy()
        for place in np.flatnonzero(null.discrete):
            drawn = quantiles[place](ndtr(latent[:, place]))
            seen[:, place] = ndtri(mid_ranks(drawn, ones)[0])
        got = _correlations(seen, ones)
        large = np.abs(got) > 0.02
        factor = np.clip(target / np.where(large, got, 1.0), 0.5, 2.0)
        found = np.clip(np.where(large, found * factor, found + target - got), -0.99, 0.99)
        np.fill_diagonal(found, 1.0)
    found = _positive(found)
    total, best = weight.sum(), (-np.inf, np.eye(len(found)))
    for matrix, count in _structures(found, total):
        trace = np.trace(np.linalg.solve(matrix, found))
        fit = -0.5 * total * (np.linalg.slogdet(matrix)[1] + trace)
        best = max(best, (fit - 0.5 * np.log(total) * count, matrix), key=lambda pair: pair[0])
    return quantiles, np.linalg.cholesky(_positive(best[1]))


def draw_copy(null, prepared, quantiles, root, rng):
    """Draw rows of the cloud: unimodal versions of the columns, with the same dependence."""
    X, n = prepared.X.copy(), len(prepared.X)
    values = rng.normal(size=null.ranks.shape) @ root.T
    if np.isfinite(null.degrees):
        scale = np.sqrt(rng.chisquare(null.degrees, (n, 1)) / null.degrees)
        ranks = student.cdf(values / scale, null.degrees)
    else:
        ranks = ndtr(values)
    ranks = np.clip(ranks, 0.5 / n, 1 - 0.5 / n)
    for place, v in enumerate(null.numbers):
        X[:, v] = np.where(np.isnan(X[:, v]), np.nan, quantiles[place](ranks[:, place]))
    for group in null.groups:
        X[:, group] = prepared.X[rng.permutation(n)][:, group]
    return X


def _unimodal_quantiles(values):
    """Return the quantile function of the unimodal distribution next to that of values."""
    distinct, counts = np.unique(values, return_counts=True)
    n = len(values)
    if len(distinct) <= 12 or counts.max() > SETTINGS.atom * n:
        share = counts / n
        share = _unimodal(share) if 2 < len(distinct) <= 30 else share
        top = np.cumsum(share / share.sum())
        return lambda ranks: distinct[
            np.minimum(np.searchsorted(top, ranks), len(distinct) - 1)
        ]
    # The tails stay as they are.
    low, high = np.quantile(values, (0.01, 0.99))
    edges = np.linspace(low, high, int(np.clip(round(2 * n ** (1 / 3)), 10, 30)) + 1)
    heights = np.maximum(_unimodal(np.histogram(values, edges)[0].astype(float)), 1e-6)
    inner = 0.01 + 0.98 * np.append(0, np.cumsum(heights) / heights.sum())
    places = np.concatenate([np.linspace(0, 0.01, 9)[:-1], inner, np.linspace(0.99, 1, 9)[1:]])
    ends = np.concatenate(
        [
            np.quantile(values, np.linspace(0, 0.01, 9)[:-1]),
            edges,
            np.quantile(values, np.linspace(0.99, 1, 9)[1:]),
        ]
    )
    return lambda ranks: np.interp(ranks, places, ends)


def _unimodal(heights):
    """Return the unimodal sequence of the smallest squared distance."""

    def with_peak(j):
        up = isotonic_regression(heights[: j + 1]).x
        down = isotonic_regression(heights[j:], increasing=False).x
        return np.concatenate([up[:-1], [max(up[-1], down[0])], down[1:]])

    trials = [with_peak(j) for j in range(len(heights))]
    return min(trials, key=lambda trial: ((trial - heights) ** 2).sum())
