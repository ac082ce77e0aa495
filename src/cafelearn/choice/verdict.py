"""The verdict on a clustering: structure, none, inconclusive or continuum.

It depends on the fitted mixture and the rows only, not on how the number of clusters was found.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components

from cafelearn.choice.null import draw_copy, fit_null, prepare_copies
from cafelearn.mixture.em import Family
from cafelearn.mixture.rows import prepare
from cafelearn.mixture.search import search
from cafelearn.mixture.settings import LIMITS, SETTINGS
from cafelearn.mixture.starts import first_starts

STRUCTURE, NONE = "structure", "none"
INCONCLUSIVE, CONTINUUM = "inconclusive", "continuum"
VERDICTS = (STRUCTURE, NONE, INCONCLUSIVE, CONTINUUM)
# Number of standard deviations by which the rows must exceed copies of the null.
DEVIATIONS = 3.0


class Verdict(NamedTuple):
    """A verdict, and the criterion of the mixture minus that of a single cloud."""

    kind: str
    gain: float


def judge(prepared, descent, seed, null=None):
    """Judge a mixture.

    Parameters
    ----------
    prepared : Prepared
        The rows.
    descent : Descent
        The mixture.
    seed : SeedSequence
        Seed of the copies of a single cloud.
    null : Null, default=None
        The single cloud, if it was fitted before.

    Returns
    -------
    verdict : Verdict
        The kind is "none" if a single cloud describes the rows better; "continuum" if no gap
        separates the clusters, or if discrete columns depend on each other no more than those
        of a single cloud; "inconclusive" if the evidence is weak; and else "structure".
    """
    k = len(descent.parameters.mean)
    if k == 1:
        return Verdict(NONE, 0.0)
    null = fit_null(prepared) if null is None else null
    gain = descent.criterion - null.value
    if gain <= 0:
        unlike = descent.criterion > max(0.0, null.independent) + SETTINGS.margin
        return Verdict(CONTINUUM if unlike else NONE, gain)
    if count_groups(descent.memberships[:, :k]) == 1:
        return Verdict(CONTINUUM, gain)
    if null.discrete.sum() > 1:
        gains = _gains_of_copies(null, prepared, k, seed)
        if gain <= gains.mean() + DEVIATIONS * gains.std(ddof=1):
            return Verdict(CONTINUUM, gain)
    return Verdict(STRUCTURE if gain > SETTINGS.margin else INCONCLUSIVE, gain)


def _gains_of_copies(null, prepared, k, seed):
    """Return what quick mixtures gain over a single cloud, for rows of a single cloud."""
    quantiles, root = prepare_copies(null, prepared)
    gains = []
    for child in seed.spawn(LIMITS.copies):
        copy = draw_copy(null, prepared, quantiles, root, np.random.default_rng(child))
        other = prepare(copy, prepared.weight)
        labellings = first_starts(other.points, k, other.weight, other.isolated, child)
        families = [[Family("independent"), Family("independent", True)]]
        if other.columns.may_depend:
            families.append([Family("tied", True)])
        found = search(other, k, labellings, families)
        gains.append(found[0].criterion - fit_null(other).value)
    return np.array(gains)


def count_groups(memberships):
    """Count the groups of clusters if clusters without a gap between them are joined."""
    k = memberships.shape[1]
    labels = memberships.argmax(axis=1)
    logs = np.log(np.maximum(memberships, 1e-30))
    joined = np.zeros((k, k), dtype=bool)
    for a in range(k):
        for b in range(a):
            inside = (labels == a) | (labels == b)
            if not inside.any():
                continue
            pair = memberships[inside][:, [a, b]]
            doubt = pair.min(axis=1) / np.maximum(pair.sum(axis=1), 1e-12)
            if doubt.mean() > 1e-3:
                joined[a, b] = gap_ratio(logs[inside, a] - logs[inside, b]) > SETTINGS.gap
    return int(connected_components(joined, directed=False)[0])


def gap_ratio(log_odds):
    """Return the density of log odds near 0, relative to the lower one of the peaks beside it.

    The log odds are those of two clusters, for the rows of these clusters.
    """
    above, below = log_odds[log_odds > 0], log_odds[log_odds <= 0]
    if min(len(above), len(below)) < 2:
        return 1.0
    within = (above.var() * len(above) + below.var() * len(below)) / len(log_odds)
    spread = np.sqrt(within) + 1e-9
    grid = np.linspace(-6, 6, 61) * spread
    width = max(0.3, 0.81 * len(log_odds) ** -0.2) * spread
    near = log_odds[np.abs(log_odds) < 8 * spread]
    density = np.exp(-0.5 * ((grid[:, None] - near) / width) ** 2).sum(axis=1)
    lowest = density[np.abs(grid) <= 0.51 * spread].min()
    peaks = [density[side].max() for side in (grid > 0.2 * spread, grid < -0.2 * spread)]
    return float(lowest / max(min(peaks), 1e-12))
