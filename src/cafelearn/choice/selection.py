"""Compare clusterings of the same rows: likelihood score, agreement, and choice of the best."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_array, column_or_1d

from cafelearn.base.typing import MatrixLike, VectorLike
from cafelearn.data.validation import countable_weights
from cafelearn.data.variables import check_groups, codes_of, columns_by_code, fitted_variables
from cafelearn.mixture.descent import score_labels
from cafelearn.mixture.rows import one_thread, prepare
from cafelearn.theory import normalized_objective

__all__ = ["likelihood_score"]

# Scores with a relative difference of at most TIE are ties.
TIE = 1e-9


def likelihood_score(
    X: MatrixLike,
    labels: VectorLike,
    *,
    sample_weight: VectorLike | None = None,
    feature_groups: object = None,
) -> float:
    """Score a clustering by a penalised classification likelihood; higher is better.

    The score compares clusterings of the same rows, made by any method. The clustering with
    the higher score describes the rows better. The score does not depend on the units of the
    features. Only differences between scores are meaningful. The score is meant for
    clusterings with the same number of clusters; do not use it to choose that number.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The data: dense and numeric. Missing values (NaN) are ignored.
    labels : array-like of shape (n_samples,)
        The cluster of each row: integers, strings or anything else that can be sorted.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row; an integer weight is equivalent to repeating the row.
    feature_groups : array-like of shape (n_features,), default=None
        One label per feature; features of one variable have the same label. The columns of a
        one-hot encoded variable are scored as one distribution over its categories. ``None``
        detects them.

    Returns
    -------
    score : float
        The penalised log-likelihood, relative to that of a single cluster of independent
        features.

    Notes
    -----
    The density is that of a :class:`cafelearn.mixture.Mixture` whose columns are independent
    within clusters. Its parameters are estimated from the clusters in one M-step, with normal
    and with t distributions; the higher score counts. The score is the sum of

    - the log-likelihood of the rows together with their labels, minus the log-likelihood of the
      rows in a single cluster;
    - the logarithm of the prior;
    - minus half of log n for each parameter, where n is the number of rows.

    A feature that is irrelevant in a cluster has the same free-form density there as in all
    rows. A value that a tenth of the rows share (an atom) has a probability of its own.
    Without atoms, a cluster in which a feature is always 0 would have a variance near 0, and
    the feature would dominate the score. Missing values add nothing.

    See Also
    --------
    sklearn.metrics.silhouette_score : A score based on distances.

    Examples
    --------
    >>> import numpy as np
    >>> from cafelearn.selection import likelihood_score
    >>> rng = np.random.default_rng(0)
    >>> X = np.r_[rng.normal(0, 1, (50, 3)), rng.normal(4, 1, (50, 3))]
    >>> halves, alternating = np.arange(100) // 50, np.arange(100) % 2
    >>> likelihood_score(X, halves) > likelihood_score(X, alternating)
    True
    """
    with np.errstate(invalid="ignore"):  # from scikit-learn's check for NaN
        X = check_array(
            X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan", input_name="X"
        )
    labels = column_or_1d(labels)
    _check_one_each("label", labels, X)
    weight = np.ones(len(X))
    if sample_weight is not None:
        weight = check_array(
            sample_weight,
            dtype=np.float64,
            ensure_2d=False,
            ensure_non_negative=True,
            input_name="sample_weight",
        )
        _check_one_each("sample weight", weight, X)
        weighed = weight > 0
        X, labels, weight = X[weighed], labels[weighed], weight[weighed]
        if len(X) == 0:
            raise ValueError("likelihood_score needs a row with a positive sample_weight.")
        weight = countable_weights(weight)
    names, codes = np.unique(labels, return_inverse=True)
    groups = None
    if feature_groups is not None:
        given = check_groups(feature_groups, X.shape[1], "likelihood_score")
        groups = columns_by_code(codes_of(given))
    with one_thread():
        return score_labels(prepare(X, weight, groups), codes, len(names))


def _check_one_each(what, values, X):
    """Raise unless the values are an array with one value for each row of X."""
    if values.shape != (len(X),):
        raise ValueError(
            f"likelihood_score needs one {what} for each of {len(X):,} rows, got an array of "
            f"shape {values.shape}."
        )


def contingency_tables(labellings, sizes):
    """Return the contingency table of clusterings i and j, for each (i, j) with j < i."""
    return {
        (i, j): np.bincount(
            labellings[i].astype(np.int64) * sizes[j] + labellings[j],
            minlength=sizes[i] * sizes[j],
        ).reshape(sizes[i], sizes[j])
        for i in range(len(sizes))
        for j in range(i)
    }


def add_tables(parts):
    """Add the contingency tables of disjoint parts of the rows."""
    return {pair: np.sum([part[pair] for part in parts], axis=0) for pair in parts[0]}


def adjusted_rand_index(table):
    """Compute the adjusted Rand index of two clusterings from their contingency table."""
    # Use Python's integers, because products of numbers of rows may exceed 64 bits.
    table = table.astype(object)
    n_rows, squares = int(table.sum()), int((table * table).sum())
    rows, columns = int((table.sum(axis=1) ** 2).sum()), int((table.sum(axis=0) ** 2).sum())
    together, only_first, only_second = squares - n_rows, rows - squares, columns - squares
    apart = n_rows**2 - only_first - only_second - squares
    if only_first == 0 and only_second == 0:
        return 1.0
    return (
        2.0
        * (together * apart - only_first * only_second)
        / (
            (together + only_first) * (only_first + apart)
            + (together + only_second) * (only_second + apart)
        )
    )


def agreement_matrix(tables, n_clusterings):
    """Compute the adjusted Rand indices between clusterings from `contingency_tables`."""
    matrix = np.eye(n_clusterings)
    for (i, j), table in tables.items():
        matrix[i, j] = matrix[j, i] = adjusted_rand_index(table)
    return matrix


def by_likelihood(models, scores, agreement):
    """Return the index of the clustering with the highest score; of ties, the first."""
    return highest(scores)


def highest(scores):
    """Return the index of the highest score; of ties, the first."""
    best = scores.max()
    return int(np.argmax(scores >= best - TIE * abs(best)))


def by_agreement(models, scores, agreement):
    """Return the index of the clustering that agrees most with the others (Algorithm 2).

    Ties go to the model whose objective is lower relative to its bounds (Theorem 2), then to
    the smaller exponent, then to the first. With two candidates there is always a tie.
    """
    total = agreement.sum(axis=1) - 1

    def rank(i):
        # Round, so that the choice does not depend on the order of summation.
        _, dispersions = fitted_variables(models[i])
        position = normalized_objective(dispersions, models[i].p)
        return -round(total[i], 12), round(position, 12), models[i].p, i

    return min(range(len(models)), key=rank)


class Selection(NamedTuple):
    """A rule by which CAFE chooses among candidates."""

    choose: Callable  # (models, scores, agreement) -> index
    text: str  # reason for the choice, in reports


# The selection that fits a mixture, which starts from the candidates.
MIXTURE = "mixture"
SELECTIONS = {
    MIXTURE: Selection(by_likelihood, "the highest likelihood score of the starts"),
    "likelihood": Selection(by_likelihood, "the highest likelihood score"),
    "agreement": Selection(by_agreement, "the highest total agreement with the others"),
}
