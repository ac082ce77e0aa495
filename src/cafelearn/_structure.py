"""Permutation test for cluster structure; the null hypothesis is independence of variables."""

from typing import NamedTuple

import numpy as np

from cafelearn._candidates import Candidate, fit_models, make_models
from cafelearn._gaps import has_gaps, observed_extremes
from cafelearn._scaling import scale_rows
from cafelearn._variable_scaling import fit_scalers
from cafelearn._variables import codes_of, one_hot_groups, several_columns
from cafelearn.selection import frame_of, likelihood_scores, tally

# If there are more rows, the test uses a random sample of this size.
ROWS = 2_000
# The quick candidates. They are fitted to the rows and to each permuted copy, with few starts.
QUICK = (
    Candidate("standard", "cluster", "fixed", 2.0),
    Candidate("standard", "cluster", "mean", 2.0),
    Candidate("standard", "uniform", None, 2.0),
)
STARTS, ITERATIONS = 4, 50
# Structure is found if the score is more than this many standard deviations above the mean
# score of the permuted copies.
THRESHOLD = 3.0


class Structure(NamedTuple):
    """Result of the test."""

    score: float  # score of the rows
    mean: float  # mean score of the permuted copies
    deviation: float  # standard deviation of the scores of the copies

    @property
    def z(self):
        """Number of standard deviations by which the score exceeds the mean of the copies."""
        return (self.score - self.mean) / self.deviation

    @property
    def found(self):
        """Whether the rows have more structure than rows of independent variables."""
        return self.z > THRESHOLD


def check_structure(X, n_clusters, n_permutations, seed, n_jobs=None, labels=None):
    """Compare the best score of quick fits to `X` with that of quick fits to permuted copies.

    In a copy, each variable is permuted independently of the others; the columns of a variable
    are permuted together. This keeps the distribution of each variable and removes all
    dependence between variables. `labels` contains the variable of each column; if no variable
    has several columns, one-hot encoded variables are detected. Return None if the test does
    not apply: if there is one cluster, if there are no more rows than clusters, or if all
    columns are constant.
    """
    sampling, *seeds = seed.spawn(2 + n_permutations)
    if len(X) > ROWS:
        chosen = np.random.default_rng(sampling).choice(len(X), ROWS, replace=False)
        X = X[np.sort(chosen)]
    X, labels = varying_columns(X[informative_rows(X)], labels)
    if n_clusters < 2 or len(X) <= n_clusters or X.shape[1] == 0:
        return None
    codes, scaler = None if labels is None else codes_of(labels), quick_scaler(X, labels)
    frame, groups = frame_of(X, codes=codes), permuted_groups(X, codes)
    copies = [X, *(permute(X, groups, np.random.default_rng(s)) for s in seeds[1:])]
    options = {"n_init": STARTS, "max_iter": ITERATIONS, "feature_groups": labels}
    models, rows, parts = [], [], []
    for copy, child in zip(copies, seeds, strict=True):
        models += make_models(QUICK, child, n_clusters=n_clusters, **options)
        scaled = scale_rows(scaler, copy)
        rows += [scaled] * len(QUICK)
        parts.append(slice(len(models) - len(QUICK), len(models)))
    fit_models(models, rows, n_jobs)
    scores = [
        likelihood_scores(
            tally(copy, [m.labels_ for m in models[part]], [n_clusters] * len(QUICK), frame),
            frame,
        ).max()
        for copy, part in zip(copies, parts, strict=True)
    ]
    copied = np.array(scores[1:])
    # If all copies have the same score, use the deviation that rounding errors would cause.
    least = 1e-9 * max(1.0, abs(copied.mean()))
    return Structure(scores[0], copied.mean(), max(copied.std(ddof=1), least))


def vary(X):
    """Return, for each column, whether its observed values differ."""
    varies = (X[:1] != X).any(axis=0)
    if has_gaps(X):
        low, high = observed_extremes(X)
        varies = low < high
    return varies


def varying_columns(X, labels=None):
    """Return the columns that vary and the labels of their variables."""
    varies = vary(X)
    return X[:, varies], None if labels is None else labels[varies]


def informative_rows(X):
    """Return, for each row, whether it has an observed value in a column that varies."""
    varies = vary(X)
    if not (has_gaps(X) and varies.any()):
        return np.ones(len(X), dtype=bool)
    return ~np.isnan(X[:, varies]).all(axis=1)


def quick_scaler(X, labels=None):
    """Fit the scaler of the quick candidates."""
    codes = None if labels is None else codes_of(labels)
    (scaler,) = fit_scalers(QUICK[:1], X, codes=codes).values()
    return scaler


def permuted_groups(X, codes=None):
    """Return the groups of columns to permute together, one group for each variable.

    If no variable has several columns, one-hot encoded variables are detected.
    """
    if not several_columns(codes).any():
        return one_hot_groups(X)
    return [np.flatnonzero(codes == g).tolist() for g in range(codes.max() + 1)]


def permute(X, groups, rng):
    """Return a copy of the rows in which each group of columns is permuted independently.

    Missing values stay in place, so every row keeps an observed value. If there is only one
    column, a permutation would change nothing. The copy is then uniform over the range of the
    column, as in the gap statistic (Tibshirani, Walther and Hastie, 2001).
    """
    copy = np.empty_like(X)
    if X.shape[1] == 1:
        low, high = observed_extremes(X)
        share = rng.random(X.shape)
        copy[:] = np.where(np.isnan(X), np.nan, low * (1 - share) + high * share)
        return copy
    for group in groups:
        order = rng.permutation(len(X))
        there = ~np.isnan(X[:, group]).any(axis=1)
        if there.all():
            copy[:, group] = X[np.ix_(order, group)]
        else:
            copy[:, group] = X[:, group]
            copy[np.ix_(there, group)] = X[np.ix_(order[there[order]], group)]
    return copy
