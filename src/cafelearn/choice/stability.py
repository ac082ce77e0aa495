"""How sure the labels are: the same search on random halves of the rows."""

from typing import NamedTuple

import numpy as np

from cafelearn.choice.selection import adjusted_rand_index, contingency_tables
from cafelearn.mixture.em import log_joint, memberships_of
from cafelearn.mixture.search import search
from cafelearn.mixture.settings import LIMITS
from cafelearn.mixture.starts import first_starts


class Stability(NamedTuple):
    """Agreement of the labels with those of mixtures fitted to random halves of the rows."""

    overall: float  # mean adjusted Rand index
    clusters: np.ndarray  # (k,) mean Jaccard index of each cluster with the most similar one


def measure_stability(prepared, best, seed):
    """Fit mixtures to random halves of the rows and compare their labels with the best ones.

    Parameters
    ----------
    prepared : Prepared
        The rows.
    best : Descent
        The mixture whose labels are compared.
    seed : SeedSequence
        Seed of the halves and of their starts.

    Returns
    -------
    stability : Stability
        The agreement.
    """
    k, n = len(best.parameters.mean), len(prepared.weight)
    labels = best.labels
    if k == 1:
        return Stability(1.0, np.ones(1))
    agreements, similar = [], []
    for child in seed.spawn(LIMITS.halves):
        rng = np.random.default_rng(child)
        half = np.sort(rng.permutation(n)[: (n + 1) // 2])
        if half.size <= 2 * k:
            return Stability(0.0, np.zeros(k))
        again = _labels_from(prepared, half, k, best.family, child)
        table = contingency_tables([labels, again], [k, k])[1, 0].T
        agreements.append(adjusted_rand_index(table))
        union = table.sum(axis=1)[:, None] + table.sum(axis=0) - table
        similar.append((table / np.maximum(union, 1)).max(axis=1))
    return Stability(float(np.mean(agreements)), np.mean(similar, axis=0))


def _labels_from(prepared, half, k, family, seed):
    """Return the labels of all rows by a mixture fitted to some of them."""
    some = prepared.take(half)
    labellings = first_starts(some.points, k, some.weight, some.isolated, seed)
    found = search(some, k, labellings, [[family]], finished=1)
    joint, *_ = log_joint(prepared.rows, found[0].parameters, prepared.columns, found[0].family)
    return memberships_of(joint[:, :k])[0].argmax(axis=1)
