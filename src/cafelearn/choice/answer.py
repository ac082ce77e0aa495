"""The answer of CAFE: a clustering, whether it is a structure, and how sure that is."""

from typing import NamedTuple

import numpy as np

from cafelearn.base.seeds import seed_integer, seed_sequence
from cafelearn.choice.selection import highest
from cafelearn.choice.stability import measure_stability
from cafelearn.choice.verdict import NONE, STRUCTURE, Verdict, judge
from cafelearn.mixture.model import Mixture
from cafelearn.mixture.rows import one_thread
from cafelearn.mixture.search import families_of, search
from cafelearn.mixture.settings import SETTINGS


class Answer(NamedTuple):
    """What is known about a fitted mixture, beside its parameters."""

    verdict: str
    gain: float  # criterion of the mixture minus that of a single cloud
    stability: float
    clusters: list  # stability of each cluster
    isolated: float  # share of isolated rows


def best_starts(scores):
    """Return the places of the candidates from which the mixture starts, the best one first."""
    scores, order = np.array(scores), []
    for _ in range(min(SETTINGS.candidates, len(scores))):
        order.append(highest(scores))  # not a sort, which rounding errors would decide
        scores[order[-1]] = -np.inf
    return order


def fit_mixture(cafe, prepared, starts, seed, total, refine):
    """Fit the mixture of a CAFE to rows of positive weight, and judge it.

    Parameters
    ----------
    cafe : CAFE
        Gives the number of clusters and the variables.
    prepared : Prepared
        The rows of the search.
    starts : list of ndarray
        Starting labels of these rows.
    seed : SeedSequence
        Seed of the starts, of the halves and of the copies.
    total : callable
        ``total(run, request)`` adds up ``run(X, weight, request)`` over all rows.
    refine : bool
        Whether the rows of the search are only a part of all rows.

    Returns
    -------
    mixture : Mixture
        The fitted mixture.
    answer : Answer
        What is known about it.
    """
    fitting, halving, judging = seed.spawn(3)
    mixture = Mixture(cafe.n_clusters, random_state=seed_integer(fitting))
    mixture.n_features_in_ = prepared.X.shape[1]
    mixture.feature_groups_ = cafe.feature_groups_
    _, searching = seed_sequence(mixture.random_state).spawn(2)  # as in Mixture.fit
    found = mixture._fit(prepared, starts, searching, total, refine)
    return mixture, judge_descents(prepared, found, halving, judging)


def judge_descents(prepared, found, halving, judging):
    """Make the `Answer` of a search."""
    with one_thread():
        stability = measure_stability(prepared, found[0], halving)
        verdict = judge(prepared, found[0], judging)
    return Answer(
        verdict.kind,
        float(verdict.gain),
        stability.overall,
        stability.clusters.tolist(),
        float(prepared.isolated.mean()),
    )


def judge_labels(prepared, labels, k, seed):
    """Judge k given clusters by the best mixture that descends from them."""
    if k == 1:
        return Verdict(NONE, 0.0)
    with one_thread():
        families = families_of("auto", "auto", False, prepared.columns)
        found = search(prepared, k, [labels], families, finished=1)
        return judge(prepared, found[0], seed)


def confidence_of(stability, verdict):
    """Return "high", "medium" or "low"."""
    if verdict != STRUCTURE or stability < SETTINGS.low_stability:
        return "low"
    return "high" if stability >= SETTINGS.high_stability else "medium"
