"""Fit estimators with the number of clusters that `cafelearn.choice.numbers` chooses."""

from copy import copy
from numbers import Integral

import numpy as np
import pandas as pd

from cafelearn.base.progress import phase, shown
from cafelearn.base.seeds import seed_sequence
from cafelearn.choice.numbers import choose_number
from cafelearn.data.gaps import informative_rows
from cafelearn.data.validation import check_enough_rows, countable_weights
from cafelearn.data.variables import columns_of_variables, set_variables

# "auto" tries at most MOST clusters, and fewer if there would be fewer than ROWS_PER_CLUSTER
# rows for each.
MOST, ROWS_PER_CLUSTER = 10, 10
# If there are more rows, a random sample of this size is used.
ROWS = 4_000
# Columns of `n_clusters_table_` that hold measurements.
MEASURED = ("gain", "counts", "tied")
# Spawn key of the seed of the choice. It is large, because the starts of the fit use the first
# children of the same seed.
CHILD = 2**31


def fit_with_number(estimator, X, sample_weight=None):
    """Fit an estimator with the number of clusters that is given or, if several are, chosen."""
    with shown(estimator.verbose):
        if not isinstance(estimator.n_clusters, Integral):
            return _fit_chosen(estimator, X, sample_weight)
        estimator._numbers = None
        return estimator._fit(estimator._open(X, sample_weight))


def _fit_chosen(estimator, X, sample_weight):
    """Choose the number of clusters of an estimator, and fit it with that number.

    The fit is the same as if `n_clusters` were the chosen number.
    """
    owner, given = type(estimator).__name__, estimator.n_clusters
    numbers = _listed_numbers(owner, given)
    if not (isinstance(estimator.init, str) or callable(estimator.init)):
        raise ValueError(
            f"{owner} needs init to be a name or a callable for n_clusters={given!r}; an array "
            "of centres fixes the number of clusters."
        )
    model = copy(estimator)
    model.n_clusters = 1 if numbers is None else min(numbers)
    seed = seed_sequence(estimator.random_state)
    seed = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, CHILD))
    source = model._open(X, sample_weight)
    rows, weight = _rows(source, seed)
    set_variables(model)
    numbers = _check_numbers(owner, given, numbers, len(rows))
    groups = columns_of_variables(model)
    with phase("number of clusters"):
        model._numbers = choose_number(rows, numbers, seed, weight, groups)
    model.n_clusters = chosen_number(model._numbers)
    check_enough_rows(model, source)
    model._fit(source)
    vars(estimator).update(vars(model) | {"n_clusters": given})
    return estimator


def chosen_number(numbers):
    """Return the chosen number from the result of `choose_number`."""
    table = numbers["table"]
    return int(table["n_clusters"][table["chosen"].index(True)])


def number_frame(numbers):
    """Return the result of `choose_number` as a data frame, one row for each number."""
    return pd.DataFrame(numbers["table"]).set_index("n_clusters")


def _listed_numbers(owner, given):
    """Return the numbers of clusters to try in ascending order; None for "auto"."""
    if isinstance(given, str):
        return None
    numbers = list(given)
    if not numbers:
        raise ValueError(f"{owner} needs at least one number of clusters, got {given!r}.")
    for number in numbers:
        is_integer = isinstance(number, Integral) and not isinstance(number, bool)
        if not is_integer or number < 1:
            raise ValueError(
                f"{owner} needs n_clusters to be an integer >= 1, 'auto' or several integers; "
                f"got {number!r} in {given!r}."
            )
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"{owner} needs distinct numbers of clusters, got {given!r}.")
    return sorted(int(number) for number in numbers)


def _check_numbers(owner, given, numbers, n_rows):
    """Return the numbers to try on `n_rows` rows; raise if there are too few rows."""
    if numbers is None:
        most = min(MOST, max(2, n_rows // ROWS_PER_CLUSTER))
        numbers = list(range(1, most + 1))
    if 2 * max(numbers) > n_rows and numbers != [1]:
        raise ValueError(
            f"{owner}(n_clusters={given!r}) needs at least {2 * max(numbers)} rows to choose "
            f"among up to {max(numbers)} clusters; got {n_rows}."
        )
    return numbers


def _rows(source, seed):
    """Draw at most ROWS rows and their weights, which are None if none were given."""
    (sampling,) = seed.spawn(1)
    rows, weight = source.sample(sampling, ROWS)
    used = informative_rows(rows) & (weight > 0)
    return rows[used], countable_weights(weight[used]) if source.weighted else None
