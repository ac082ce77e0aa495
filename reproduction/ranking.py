"""Compare methods over many blocks: average ranks, critical difference and paired tests.

A block is a configuration of an experiment, such as a data set at one noise level and one noise
scale (see `Plan`). The statistical procedures are those of J. Demšar, "Statistical comparisons
of classifiers over multiple data sets", Journal of Machine Learning Research 7, 2006.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

__all__ = [
    "Outcome",
    "Ranking",
    "average_ranks",
    "cliques",
    "critical_difference",
    "friedman",
    "holm",
    "paired_tests",
    "rank_methods",
    "signed_rank",
]


class Outcome(NamedTuple):
    """A test statistic and its p-value."""

    statistic: float
    p_value: float


class Ranking(NamedTuple):
    """Average ranks of methods, and the groups of methods without significant differences.

    Parameters
    ----------
    ranks : Series
        Average rank of each method, best first.
    n_blocks : int
        Number of blocks that the ranks are averaged over.
    difference : float
        Critical difference of Nemenyi's test; NaN for a single method.
    groups : list of tuple of str
        Groups of methods without significant differences, see :func:`cliques`.
    friedman : Outcome
        Friedman's test of equal ranks; NaN for fewer than three methods.

    Examples
    --------
    >>> import pandas as pd
    >>> from reproduction.ranking import rank_methods
    >>> scores = pd.DataFrame({"a": [0.9, 0.8, 0.7], "b": [0.1, 0.2, 0.3]})
    >>> rank_methods(scores).groups
    [('a', 'b')]
    """

    ranks: pd.Series
    n_blocks: int
    difference: float
    groups: list[tuple[str, ...]]
    friedman: Outcome


def average_ranks(scores: pd.DataFrame) -> pd.Series:
    """Compute the average rank of each method; the best score of a block has rank 1.

    Parameters
    ----------
    scores : DataFrame of shape (n_blocks, n_methods)
        Scores; higher is better. Equal scores get the mean of their ranks.

    Returns
    -------
    ranks : Series
        Average rank of each method, ascending.

    Examples
    --------
    >>> import pandas as pd
    >>> from reproduction.ranking import average_ranks
    >>> scores = pd.DataFrame({"a": [0.1, 0.3], "b": [0.5, 0.3], "c": [0.4, 0.6]})
    >>> average_ranks(scores).to_dict()
    {'c': 1.5, 'b': 1.75, 'a': 2.75}
    """
    scores = _complete("average_ranks", scores)
    ranks = scores.rank(axis=1, ascending=False).mean()
    return ranks.sort_values(kind="stable").rename("average_rank")


def critical_difference(n_methods: int, n_blocks: int, alpha: float = 0.05) -> float:
    """Compute the smallest significant difference of average ranks in Nemenyi's test.

    Parameters
    ----------
    n_methods : int
        Number of methods, at least 2.
    n_blocks : int
        Number of blocks, at least 1.
    alpha : float, default=0.05
        Significance level of the test, for all pairs of methods together.

    Returns
    -------
    difference : float
        ``q * sqrt(k * (k + 1) / (6 * n))`` for k methods and n blocks. q is the quantile of
        the studentized range for k methods at 1 - `alpha`, divided by the square root of 2.

    Examples
    --------
    >>> from reproduction.ranking import critical_difference
    >>> round(critical_difference(8, 54), 3)
    1.429
    """
    if n_methods < 2 or n_blocks < 1 or not 0 < alpha < 1:
        raise ValueError(
            "critical_difference needs n_methods >= 2, n_blocks >= 1 and 0 < alpha < 1, got "
            f"{n_methods!r}, {n_blocks!r} and {alpha!r}."
        )
    quantile = stats.studentized_range.ppf(1 - alpha, n_methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(n_methods * (n_methods + 1) / (6 * n_blocks)))


def cliques(ranks: pd.Series, difference: float) -> list[tuple[str, ...]]:
    """Find the groups of methods without significant differences.

    Parameters
    ----------
    ranks : Series
        Average rank of each method, in any order.
    difference : float
        Critical difference.

    Returns
    -------
    groups : list of tuple of str
        All maximal groups of two or more methods whose ranks differ by less than
        `difference`. Groups and the methods in them are sorted by rank, the best first.

    Examples
    --------
    >>> import pandas as pd
    >>> from reproduction.ranking import cliques
    >>> cliques(pd.Series({"a": 1.0, "b": 1.5, "c": 2.2, "d": 4.0}), difference=1.0)
    [('a', 'b'), ('b', 'c')]
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


def friedman(scores: pd.DataFrame) -> Outcome:
    """Run Friedman's test of the hypothesis that all methods have the same ranks.

    Parameters
    ----------
    scores : DataFrame of shape (n_blocks, n_methods)
        Scores of at least three methods.

    Returns
    -------
    test : Outcome
        The `statistic` (chi-squared, corrected for ties) and the `p_value`.

    Examples
    --------
    >>> import pandas as pd
    >>> from reproduction.ranking import friedman
    >>> scores = pd.DataFrame({"a": [1, 2, 3], "b": [4, 5, 6], "c": [7, 8, 9]})
    >>> test = friedman(scores)
    >>> round(test.statistic, 1), round(test.p_value, 4)
    (6.0, 0.0498)
    """
    scores = _complete("friedman", scores)
    if scores.shape[1] < 3:
        raise ValueError(f"friedman needs at least 3 methods, got {scores.shape[1]}.")
    if (scores.nunique(axis=1) == 1).all():
        return Outcome(0.0, 1.0)
    found = stats.friedmanchisquare(*(scores[name] for name in scores))
    return Outcome(float(found.statistic), float(found.pvalue))


def rank_methods(scores: pd.DataFrame, alpha: float = 0.05) -> Ranking:
    """Rank methods and find the groups without significant differences.

    Parameters
    ----------
    scores : DataFrame of shape (n_blocks, n_methods)
        Scores; higher is better.
    alpha : float, default=0.05
        Significance level of Nemenyi's test.

    Returns
    -------
    ranking : Ranking
        Ranks, critical difference, groups and Friedman's test.

    Notes
    -----
    The tests assume independent blocks, but the configurations of one data set are dependent.
    For conclusions about new data sets, the p-values are therefore too small, and so are the
    groups without significant differences.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from reproduction.ranking import rank_methods
    >>> rng = np.random.default_rng(0)
    >>> scores = pd.DataFrame(rng.normal([0, 0, 2], size=(30, 3)), columns=["a", "b", "c"])
    >>> ranking = rank_methods(scores)
    >>> ranking.ranks.index[0], ranking.groups
    ('c', [('b', 'a')])
    """
    ranks = average_ranks(scores)
    n_blocks, n_methods = scores.shape
    if n_methods < 2:
        return Ranking(ranks, n_blocks, np.nan, [], Outcome(np.nan, np.nan))
    difference = critical_difference(n_methods, n_blocks, alpha)
    test = friedman(scores) if n_methods > 2 else Outcome(np.nan, np.nan)
    return Ranking(ranks, n_blocks, difference, cliques(ranks, difference), test)


def signed_rank(differences: Iterable[float]) -> Outcome:
    """Run Wilcoxon's two-sided signed-rank test on paired differences.

    Parameters
    ----------
    differences : array-like of shape (n_blocks,)
        Difference of two methods in each block; zeros are left out.

    Returns
    -------
    test : Outcome
        The `statistic`, which is the smaller of the rank sums of positive and of negative
        differences, and the `p_value`, which is 1 if all differences are zero.

    Examples
    --------
    >>> from reproduction.ranking import signed_rank
    >>> signed_rank([0.1, 0.2, 0.3, 0.4, 0.5, -0.05]).p_value
    0.0625
    """
    values = np.asarray(list(differences), dtype=np.float64)
    values = values[values != 0]
    if not values.size:
        return Outcome(0.0, 1.0)
    found = stats.wilcoxon(values)
    return Outcome(float(found.statistic), float(found.pvalue))


def holm(p_values: Iterable[float]) -> np.ndarray:
    """Adjust p-values for several tests by Holm's step-down rule.

    Parameters
    ----------
    p_values : array-like of shape (n_tests,)
        P-values, none of them missing.

    Returns
    -------
    adjusted : ndarray of shape (n_tests,)
        Adjusted p-values, in the given order. A hypothesis is rejected if its adjusted p-value
        is at most the significance level.

    Examples
    --------
    >>> from reproduction.ranking import holm
    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    p_values = np.asarray(list(p_values), dtype=np.float64)
    if not np.all((p_values >= 0) & (p_values <= 1)):
        raise ValueError(f"holm needs p-values between 0 and 1, got {p_values.tolist()}.")
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * p_values[order]), 1)
    return adjusted


def paired_tests(differences: Mapping[tuple[str, str], pd.Series]) -> pd.DataFrame:
    """Run Wilcoxon's signed-rank test on several pairs of methods, with Holm's correction.

    Parameters
    ----------
    differences : dict of (str, str) to Series
        For each pair (method, other), the score of the first minus that of the second in each
        block. Pairs without blocks are left out.

    Returns
    -------
    tests : DataFrame
        One row per pair, with the columns `method` and `other`; `configurations`, the number of
        blocks; `wins` and `loses`, the numbers of blocks in which `method` has the higher and
        the lower score; `mean_difference` and `median_difference`; and the `statistic`, the
        two-sided `p_value` and the adjusted p-value, `p_holm`.

    Notes
    -----
    The test assumes independent blocks, but the configurations of one data set are dependent,
    so the p-values do not generalise beyond these data sets.

    Examples
    --------
    >>> import pandas as pd
    >>> from reproduction.ranking import paired_tests
    >>> gains = pd.Series([0.1, 0.2, 0.3, 0.4, 0.5, -0.05])
    >>> paired_tests({("new", "old"): gains, ("new", "other"): -gains})[
    ...     ["method", "other", "wins", "loses", "p_value", "p_holm"]]
      method  other  wins  loses  p_value  p_holm
    0    new    old     5      1   0.0625   0.125
    1    new  other     1      5   0.0625   0.125
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
