"""The choice of the number of clusters: quick mixtures with each number, and one criterion."""

from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from cafelearn.choice.null import fit_null
from cafelearn.choice.verdict import NONE, judge
from cafelearn.mixture.descent import Descent
from cafelearn.mixture.em import Family
from cafelearn.mixture.rows import counting_unit, one_thread, prepare, search_sample
from cafelearn.mixture.search import search
from cafelearn.mixture.settings import FEW, LIMITS, SETTINGS
from cafelearn.mixture.starts import nearest_centers, plain_start

# Columns are scales or counts if they have at least LEVELS values, but fewer than this share of
# the rows, none of which is that of more than MOST_EQUAL of the rows.
LEVELS, DISTINCT, MOST_EQUAL = 4, 0.1, 0.6


class Trial(NamedTuple):
    """The best mixture with a number of clusters."""

    k: int
    descent: Descent
    value: float
    counts: bool  # whether all clusters are large enough to count


def choose_number(X, numbers, seed, sample_weight=None, groups=None):
    """Choose one of several numbers of clusters.

    For each number, from the largest to the smallest, mixtures descend from cuts of a
    hierarchical clustering, from k-means, and from the mixture before with two clusters merged.
    Of the numbers without tiny clusters whose criterion is near the highest one, the smallest
    is chosen. If a single cloud describes the rows as well, 1 is chosen if it is among the
    numbers.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The rows.
    numbers : list of int
        The numbers to try, in ascending order.
    seed : SeedSequence
        Seed of the sample and the starts.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weight of each row.
    groups : list of list of int, default=None
        Columns of each variable.

    Returns
    -------
    numbers : dict
        "found": whether there is a structure; "table": the columns of `n_clusters_table_`.
    """
    several = [k for k in numbers if k > 1]
    sampling, searching, judging = seed.spawn(3)
    weight = np.ones(len(X))
    if sample_weight is not None:
        weight = sample_weight / counting_unit(sample_weight)
    chosen = search_sample(weight, sampling)
    X, weight = X[chosen], weight[chosen]
    varies = (np.nanmax(X, axis=0) > np.nanmin(X, axis=0)).any()
    if not several or not varies:
        return _records(numbers, {}, 0.0, numbers[0], found=not several)
    with one_thread():
        X = _dithered(X, np.random.default_rng(searching))
        prepared = prepare(X, weight, groups)
        null = fit_null(prepared)
        trials = _search_all(prepared, several, searching)
        best = _simplest(trials)
        verdict = judge(prepared, best.descent, judging, null)
    number = 1 if verdict.kind == NONE and 1 in numbers else best.k
    by_number = {trial.k: trial for trial in trials}
    return _records(numbers, by_number, null.value, number, found=verdict.kind != NONE)


def _simplest(trials):
    """Return the trial with the fewest clusters of those nearly as good as the best one.

    Trials with tiny clusters are not chosen if there are others.
    """
    sound = [trial for trial in trials if trial.counts] or trials
    least = max(trial.value for trial in sound) - SETTINGS.margin
    return min((trial for trial in sound if trial.value >= least), key=lambda trial: trial.k)


def _dithered(X, rng):
    """Spread the values of scales and counts over their steps.

    The clusters of such columns may depend on each other, which atoms cannot.
    """
    found = X.astype(np.float64)
    for column in found.T:
        there = ~np.isnan(column)
        distinct, counts = np.unique(column[there], return_counts=True)
        if len(distinct) < LEVELS or counts.max() > MOST_EQUAL * there.sum():
            continue
        if len(distinct) < DISTINCT * there.sum():
            step = np.diff(distinct).min()
            column[there] += step * rng.uniform(-0.5, 0.5, there.sum())
    return found


def _search_all(prepared, numbers, seed):
    """Return a Trial for each number, from the largest to the smallest."""
    points, isolated, weight = prepared.points, prepared.isolated, prepared.weight
    inside = np.flatnonzero(~isolated)
    tree = linkage(points[inside], "ward") if len(inside) > 1 else None
    families = [
        [Family("independent"), Family("independent", True)],
        [Family("tied", True), Family("tied")],
    ]
    if prepared.columns.complete.sum() <= LIMITS.full_columns:
        families.append([Family("full", True), Family("full")])
    if not prepared.columns.may_depend:
        families = families[:1]
    trials, before = [], None
    total = weight.sum()
    for k in reversed(numbers):
        labellings = [plain_start(points, k, weight, isolated, seed)]
        if tree is not None and len(inside) >= k:
            labels = np.minimum(fcluster(tree, k, "maxclust") - 1, k - 1)
            labellings.append(nearest_centers(points, points[inside], labels, k))
        if before is not None:
            labellings += [_merged(before, k), _dropped(before, k)]
        found = search(prepared, k, labellings, families, finished=2)
        before = found[0].memberships
        best, sizes = found[0], np.bincount(found[0].labels, weight, k)
        value = best.objective - SETTINGS.entropy * (best.objective - best.criterion)
        value -= np.log(2) * (k - 1) * _count_relevant(best.parameters, prepared.columns)
        counts = sizes.min() >= max(FEW, SETTINGS.smallest * total)
        trials.append(Trial(k, best, value, counts))
    return trials


def _count_relevant(parameters, columns):
    """Count the columns and discrete variables that are relevant in any cluster.

    In each cluster, each of them is relevant or not. This choice costs log 2, as if both were
    equally likely.
    """
    matters = (parameters.log_ratio != 0).any(axis=0)
    variables = np.unique(columns.variable[matters])
    of_events = variables < columns.n_variables
    continuous = np.zeros(len(columns.place), dtype=bool)
    continuous[variables[~of_events] - columns.n_variables] = True
    continuous |= parameters.kind > 0
    return int(of_events.sum() + continuous.sum())


def _merged(memberships, k):
    """Return labels of k clusters: merge those that share most of their rows."""
    share = memberships.copy()
    while share.shape[1] > k:
        overlap = share.T @ share
        size = np.sqrt(np.maximum(np.diag(overlap), 1e-12))
        overlap /= np.outer(size, size)
        np.fill_diagonal(overlap, -1.0)
        a, b = np.unravel_index(overlap.argmax(), overlap.shape)
        share[:, a] += share[:, b]
        share = np.delete(share, b, axis=1)
    return share.argmax(axis=1)


def _dropped(memberships, k):
    """Return labels of k clusters: leave out the smallest."""
    kept = np.sort(np.argsort(-memberships.sum(axis=0), kind="stable")[:k])
    return memberships[:, kept].argmax(axis=1)


def _records(numbers, trials, null, chosen, found):
    """Return the result of `choose_number`."""
    gains = {k: float(trial.value - null) for k, trial in trials.items()}
    sound = [k for k, trial in trials.items() if trial.counts and k != chosen]
    best = 0.0 if chosen == 1 else max((gains[k] for k in [*sound, chosen]), default=0.0)
    table = {
        "n_clusters": list(numbers),
        "gain": [gains.get(k, 0.0) for k in numbers],
        "counts": [k not in trials or bool(trials[k].counts) for k in numbers],
        "tied": [k in sound and gains[k] >= best - SETTINGS.margin for k in numbers],
        "chosen": [k == chosen for k in numbers],
    }
    return {"found": bool(found), "table": table}
