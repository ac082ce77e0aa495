"""Sources of rows. Rows are in memory here, and in blocks of Dask in `cafelearn.distributed`.

A fit sees the rows only through these operations:

- ``reduce(run, combine, request)`` makes one pass: it calls ``run(part, request)`` on each
  `Part` of the rows of positive weight, and combines the results in order.
- ``sample(seed, at_most)`` draws rows of positive weight and their weights.
- ``scaled(scalers)`` returns one source for each scaler.
- ``labelled(place, known)`` returns a source whose parts have labels.
- ``labels(estimator, known)`` returns the labels of all rows, lazy on Dask.
- ``portable(estimator)`` returns the estimator in a form that requests may contain.
- ``ordinary(p)`` returns the rows for mwk-means; see `cafelearn.kmeans.rows`.

`low`, `high` and `gaps` are the extrema of the columns and whether any value is missing.
"""

from copy import copy
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context

from cafelearn.data.gaps import (
    extremes,
    has_gaps,
    is_sound,
    refuse_empty_rows,
    refuse_infinite_columns,
)
from cafelearn.data.validation import countable_weights, first_name


class Part(NamedTuple):
    """The rows of one call in a pass."""

    X: np.ndarray  # C-contiguous float32 or float64
    sample_weight: np.ndarray  # float64
    number: int = 0  # of the block
    first_chunk: int = 0  # number of its first chunk; chunks are numbered across all blocks
    labels: Any = None  # result of the function given to `labelled`


class InMemory:
    """Validated rows in memory. A pass reads all of them in one part.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The rows.
    sample_weight : ndarray of shape (n_samples,) or None
        Their weights, of which at least one is positive.
    lazy_labels : callable or None
        Makes the labels of an estimator from (estimator, scaler), for rows that were fetched
        from a Dask collection.
    scaler : transformer or None
        The scaler of the rows.
    """

    in_memory = True

    def __init__(self, X, sample_weight=None, lazy_labels=None, scaler=None):
        self.X, self.sample_weight = X, sample_weight
        self.shape, self.dtype = X.shape, X.dtype
        self.lazy_labels, self.scaler = lazy_labels, scaler
        self.weighted, self.kept, self.mass = sample_weight is not None, slice(None), None
        if self.weighted:
            self.kept, self.mass = sample_weight > 0, countable_weights(sample_weight)
        self.placed, self.gaps = None, has_gaps(X)

    def __len__(self):
        return len(self.X)

    @cached_property
    def counted(self):
        """The rows of positive weight."""
        return self.X[self.kept]

    @cached_property
    def weight(self):
        """Weights of these rows."""
        return np.ones(len(self.X)) if self.mass is None else self.mass[self.kept]

    n_counted = property(lambda self: len(self.counted))

    low = cached_property(lambda self: extremes(self.counted)[0])
    high = cached_property(lambda self: extremes(self.counted)[1])

    def reduce(self, run, combine, request):
        """Call run(part, request) on the rows of positive weight."""
        return combine([run(self.part(), request)])

    def part(self):
        """Return the rows of positive weight."""
        labels = self.placed
        if isinstance(labels, list):
            labels = [each[self.kept] for each in labels]
        elif labels is not None:
            labels = labels[self.kept]
        return Part(self.counted, self.weight, labels=labels)

    def sample(self, seed, at_most):
        """Draw rows of positive weight without replacement; return rows and weights."""
        chosen = draw_positions(self.n_counted, at_most, seed)
        return fill_empty(self.counted[chosen], self.low), self.weight[chosen]

    def scaled(self, scalers, estimator):
        """Return the source scaled by each scaler; `estimator` is for messages."""
        names, found = getattr(estimator, "feature_names_in_", None), []
        for scaler in scalers:
            X = scale_rows(scaler, self.X)
            check_rows(X, self.shape[1], type(estimator).__name__, names)
            found.append(type(self)(X, self.sample_weight, self.lazy_labels, scaler))
        return found

    def labelled(self, place, known=None):
        """Return the source with labels: place(rows), or the labels known already."""
        other = copy(self)
        other.placed = place(self.X) if known is None else known
        return other

    def labels(self, estimator, known):
        """Return the labels of all rows, which are known already."""
        return known if self.lazy_labels is None else self.lazy_labels(estimator, self.scaler)

    def portable(self, estimator):
        return estimator


def draw_positions(n_rows, at_most, seed):
    """Draw at most `at_most` of the positions of rows; return them in ascending order."""
    if n_rows <= at_most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, at_most, replace=False))


def fill_empty(rows, low):
    """Fill columns without any value in a sample, which become constant."""
    empty = np.isnan(rows).all(axis=0)
    return np.where(empty, low, rows) if empty.any() else rows


def check_rows(X, n_features, owner, names):
    """Raise if scaled rows are infinite, empty, or do not have `n_features` columns."""
    if X.shape[1:] != (n_features,):
        raise ValueError(
            f"{owner} needs scalers that return {n_features} features, got {X.shape[1]}."
        )
    if len(X) and not is_sound(X):
        refuse_infinite_columns(X, owner, names)
        refuse_empty_rows(np.flatnonzero(np.isnan(X).all(axis=1)), owner)


def scale_rows(scaler, X):
    """Scale validated rows with a fitted scaler; return them unchanged if it is None."""
    if scaler is None or len(X) == 0:
        return X
    spread = getattr(scaler, "scale_", None)
    if spread is not None and not np.isfinite(spread).all():
        name = first_name(scaler, ~np.isfinite(spread))
        raise ValueError(
            f"{type(scaler).__name__} cannot scale column {name}: its variance exceeds the "
            "largest float. Divide the column by a constant, or use scaling='range'."
        )
    with config_context(assume_finite=True):
        return np.ascontiguousarray(scaler.transform(X), dtype=X.dtype)
