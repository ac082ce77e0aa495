"""Compare methods over many blocks: average ranks, critical difference and paired tests.

A block is a configuration of an experiment, such as a data set at one noise level and one noise
scale (see `Plan`). The statistical procedures are those of J. Demšar, "Statistical comparisons
of classifiers over multiple data sets", Journal of Machine Learning Research 7, 2006.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats


class Ranking(NamedTuple):
    """Average ranks of methods, and the groups of methods without significant differences."""

    ranks: pd.Series  # best first
    n_blocks: int
    difference: float  # critical difference of Nemenyi's test; NaN for a single method
    groups: list[tuple[str, ...]]


def average_ranks(scores):
    """Compute the average rank of each method; the best score of a block has rank 1."""
    scores = _complete("average_ranks", scores)
    ranks = scores.rank(axis=1, ascending=False).mean()
    return ranks.sort_values(kind="stable").rename("average_rank")


def critical_difference(n_methods, n_blocks, alpha=0.05):
    """Compute the smallest significant difference of average ranks in Nemenyi's test.

    It is ``q * sqrt(k * (k + 1) / (6 * n))`` for k methods and n blocks. q is the quantile of
    the studentized range for k methods at 1 - `alpha`, divided by the square root of 2.
    """
    if n_methods < 2 or n_blocks < 1 or not 0 < alpha < 1:
        raise ValueError(
            "critical_difference needs n_methods >= 2, n_blocks >= 1 and 0 < alpha < 1, got "
            f"{n_methods!r}, {n_blocks!r} and {alpha!r}."
        )
    quantile = stats.studentized_range.ppf(1 - alpha, n_methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(n_methods * (n_methods + 1) / (6 * n_blocks)))


def cliques(ranks, difference):
    """Find all maximal groups of two or more methods whose ranks differ by less than this.

    Groups and the methods in them are sorted by rank, the best first.
    """
    ranks = ranks.sort_values(kind="stable")
    values, names = ranks.to_numpy(), list(ranks.index)
    groups, reached = [], 0
    for first in range(len(values)):
        end = int(np.searchsorted(values, values[first] + difference, side="left"))
        # A group with the same end as an earlier group is contained in it.
        if end > reached and end - first > 1:
            groups.append(tuple(names[first:end]))
        reached = max(reached, end)
    return groups


def rank_methods(scores, alpha=0.05):
    """Rank methods and find the groups without significant differences.

    The tests assume independent blocks, but the configurations of one data set are dependent.
    For conclusions about new data sets, the p-values are therefore too small, and so are the
    groups without significant differences.
    """
    ranks = average_ranks(scores)
    n_blocks, n_methods = scores.shape
    if n_methods < 2:
        return Ranking(ranks, n_blocks, np.nan, [])
    difference = critical_difference(n_methods, n_blocks, alpha)
    return Ranking(ranks, n_blocks, difference, cliques(ranks, difference))


def signed_rank(differences):
    """Run Wilcoxon's two-sided signed-rank test; return the statistic and the p-value.

    Differences of zero are left out; if there are no others, the p-value is 1.
    """
    values = np.asarray(list(differences), dtype=np.float64)
    values = values[values != 0]
    if not values.size:
        return 0.0, 1.0
    found = stats.wilcoxon(values)
    return float(found.statistic), float(found.pvalue)


def holm(p_values):
    """Adjust p-values for several tests by Holm's step-down rule."""
    p_values = np.asarray(list(p_values), dtype=np.float64)
    if not np.all((p_values >= 0) & (p_values <= 1)):
        raise ValueError(f"holm needs p-values between 0 and 1, got {p_values.tolist()}.")
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * p_values[order]), 1)
    return adjusted


def paired_tests(differences):
    """Run Wilcoxon's signed-rank test on several pairs of methods, with Holm's correction.

    `differences` has, for each pair (method, other), the score of the first minus that of the
    second in each block. Pairs without blocks are left out.

    The test assumes independent blocks, but the configurations of one data set are dependent,
    so the p-values do not generalise beyond these data sets.
    """
    rows = [
        (
            *pair,
            len(values),
            int((values > 0).sum()),
            int((values < 0).sum()),
            values.mean(),
            values.median(),
            *signed_rank(values),
        )
        for pair, values in differences.items()
        if len(values)
    ]
    columns = ["method", "other", "configurations", "wins", "loses", "mean_difference"]
    columns += ["median_difference", "statistic", "p_value"]
    tests = pd.DataFrame(rows, columns=columns)
    return tests.assign(p_holm=holm(tests["p_value"]))


def _complete(caller, scores):
    scores = pd.DataFrame(scores)
    missing = int(scores.isna().to_numpy().sum())
    if scores.empty or missing:
        raise ValueError(
            f"{caller} needs a score of every method in every block, and at least one block; "
            f"got shape {scores.shape} with {missing} missing."
        )
    return scores
