"""The answer of CAFE: a mixture, whether its clusters are a structure, and how sure that is."""

from typing import NamedTuple

import numpy as np

from cafelearn._seeds import seed_integer
from cafelearn.choice.stability import measure_stability
from cafelearn.choice.verdict import STRUCTURE, judge
from cafelearn.mixture.model import Mixture, one_thread
from cafelearn.selection import highest, likelihood_scores

# Candidates of mwk-means that the mixture starts from.
STARTS = 2
# Stability from which the confidence is high, and medium.
HIGH, MEDIUM = 0.85, 0.6


class Answer(NamedTuple):
    """What is known about a fitted mixture, beside its parameters."""

    verdict: str
    gain: float  # criterion of the mixture minus that of a single cloud
    stability: float
    clusters: list  # stability of each cluster
    isolated: float  # share of isolated rows


def order_starts(counts, frame):
    """Return the places of the candidates from which the mixture starts, the best one first."""
    scores, order = np.array(likelihood_scores(counts, frame)), []
    for _ in range(min(STARTS, len(scores))):
        order.append(highest(scores))  # not a sort, which rounding errors would decide
        scores[order[-1]] = -np.inf
    return order


def fit_mixture(cafe, X, weight, starts, seed, total=None):
    """Fit the mixture of a CAFE to rows of positive weight, and judge it.

    Parameters
    ----------
    cafe : CAFE
        Gives the number of clusters and the variables.
    X : ndarray of shape (n_samples, n_features)
        The rows.
    weight : ndarray of shape (n_samples,)
        Weight of each row.
    starts : list of ndarray
        Starting labels of the rows.
    seed : SeedSequence
        Seed of the starts, of the halves and of the copies.
    total : callable, default=None
        If `X` is only a sample, ``total(run, request)`` adds up ``run(X, weight, request)``
        over all rows.

    Returns
    -------
    mixture : Mixture
        The fitted mixture.
    answer : Answer
        What is known about it.
    """
    fitting, halving, judging = seed.spawn(3)
    mixture = Mixture(cafe.n_clusters, random_state=seed_integer(fitting))
    mixture.n_features_in_ = X.shape[1]
    mixture.feature_groups_ = cafe.feature_groups_
    prepared, found = mixture._fit(X, weight, starts, total)
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


def confidence_of(stability, verdict):
    """Return "high", "medium" or "low"."""
    if verdict != STRUCTURE or stability < MEDIUM:
        return "low"
    return "high" if stability >= HIGH else "medium"
