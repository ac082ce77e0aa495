"""The rows of a Dask collection as a source; see `cafelearn.data.source`."""

from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cafelearn.data.gaps import fill_columns
from cafelearn.data.source import draw_positions, fill_empty, scale_rows
from cafelearn.data.validation import weight_exponent
from cafelearn.distributed.descending import Descent, descend
from cafelearn.distributed.drawing import draw_rows
from cafelearn.distributed.extents import measure, measure_scaled
from cafelearn.distributed.inputs import make_blocks
from cafelearn.distributed.lazy import blockwise, detached
from cafelearn.kmeans import draws, seeding
from cafelearn.kmeans.descent import Seed, one_cluster_problem
from cafelearn.kmeans.rows import InMemory
from cafelearn.kmeans.scales import NO_UNITS, Units, data_scale, exceeds_single, extreme_unit
from cafelearn.kmeans.starts import is_sampled

# Collections of at most FEW_ROWS rows are fetched, unless their starts run on a sample. With
# subsample=None, starts need all rows, so larger collections raise an error.
FEW_ROWS = 20_000
# Number of rows shown to a callable that makes initial centres.
SHOWN_ROWS = 100_000


def open_rows(estimator, X, sample_weight=None):
    """Check all rows of a collection, and return their source; few rows are fetched."""
    blocks = make_blocks(estimator, X, sample_weight)
    rows = Rows(blocks, measure(estimator, blocks))
    if not hasattr(estimator, "init"):
        return rows
    n_rows, named = len(rows), isinstance(estimator.init, str)
    if named and estimator.subsample is None and n_rows > FEW_ROWS:
        owner = type(estimator).__name__
        raise ValueError(
            f"{owner}(subsample=None) needs the rows in memory, because initial centres are "
            f"then drawn from all of them. For a Dask collection of {n_rows:,} rows set "
            "subsample, the number of rows that the starts run on, or give an array of centres "
            "as init."
        )
    if is_sampled(estimator, n_rows) or not (named or n_rows <= FEW_ROWS):
        return rows
    X, weight = rows.reduce(fetch, concatenate, None)
    return InMemory(X, weight if rows.weighted else None, rows.lazy_labels)


class Change(NamedTuple):
    """Scale rows, convert them to a type and multiply them by a power of two."""

    scaler: Any = None
    dtype: np.dtype | None = None
    unit: float = 1.0

    def __call__(self, X):
        X = scale_rows(self.scaler, X)
        X = X if self.dtype is None else X.astype(self.dtype, copy=False)
        return X if self.unit == 1 else X * X.dtype.type(self.unit)


class Rows:
    """Blocks whose rows are changed when they are read.

    Parameters
    ----------
    blocks : Blocks
        The blocks of the collection.
    extents : Extents
        Their statistics, after the change.
    """

    in_memory = False
    # The change of the rows, the function that makes their labels, and their units.
    change: Change | None = None
    place: Callable | None = None
    units = NO_UNITS
    placed = None

    def __init__(self, blocks, extents):
        self.blocks, self.extents = blocks, extents
        self.low, self.high, self.gaps = extents.low, extents.high, extents.gaps

    def _with(self, **attributes):
        other = copy(self)
        vars(other).update(attributes)
        return other

    def __len__(self):
        return len(self.blocks)

    n_counted = property(__len__)

    @property
    def shape(self):
        return self.blocks.shape

    @property
    def dtype(self):
        changed = None if self.change is None else self.change.dtype
        return self.blocks.dtype if changed is None else changed

    @property
    def weighted(self):
        return self.blocks.weights is not None

    @property
    def scaler(self):
        return None if self.change is None else self.change.scaler

    def reduce(self, run, combine, request):
        """Make one pass over the blocks."""
        return self.blocks.reduce(run, combine, request, change=self.change, place=self.place)

    def sample(self, seed, at_most):
        """Draw rows without replacement; return rows and weights."""
        first = np.cumsum([0, *self.blocks.lengths])
        request = draw_positions(len(self), at_most, seed), first
        rows, weight = self.reduce(take_rows, concatenate, request)
        return fill_empty(rows, self.low), weight

    def scaled(self, scalers, estimator):
        """Return the source scaled by each scaler; all are measured in one pass."""
        changes = [None if scaler is None else Change(scaler) for scaler in scalers]
        needed = [change for change in changes if change is not None]
        found = iter(measure_scaled(estimator, self.blocks, needed) if needed else ())
        return [
            self if change is None else self._scaled(change, next(found)) for change in changes
        ]

    def _scaled(self, change, extents):
        ends = {"low": extents.low, "high": extents.high, "gaps": extents.gaps}
        return self._with(change=change, extents=extents, **ends)

    def labelled(self, place, known=None):
        """Return the source with labels, which are made in each pass."""
        return self._with(place=place)

    def labels(self, estimator, known):
        """Return lazy labels of all rows."""
        return self.lazy_labels(estimator, self.scaler)

    def lazy_labels(self, estimator, scaler):
        """Return the lazy labels of rows by an estimator of scaled rows."""
        array, dtype = self.blocks.known_array(), self.blocks.dtype
        if scaler is not None:
            array = array.map_blocks(partial(_scale, scaler, dtype), dtype=dtype)
        return blockwise(estimator, "predict", array, dtype)

    def portable(self, estimator):
        return detached(estimator)

    # mwk-means; see `cafelearn.kmeans.rows`

    def ordinary(self, p):
        """Return the rows and weights in an ordinary range, for a fit with exponent p."""
        extents, blocks, dtype = self.extents, self.blocks, self.dtype
        if dtype == np.float32 and exceeds_single(self.low, self.high, p):
            dtype = np.dtype(np.float64)
        exponent = 0
        if self.weighted:
            exponent = weight_exponent(extents.heaviest)
            blocks = blocks.with_weights(exponent, extents.heaviest)
            # Negligible weights have become 0, and rows of weight 0 must not affect extents.
            (extents,) = measure_scaled(None, blocks, [self.change])
        unit = extreme_unit(data_scale(extents.low, extents.high)[0], dtype)
        if dtype == self.dtype and unit == 1 and blocks is self.blocks:
            return self
        change = Change(self.scaler, dtype, unit)
        low, high, row = map(
            change._replace(scaler=None), (extents.low, extents.high, extents.row)
        )
        extents = extents._replace(low=low, high=high, row=row)
        other = self._scaled(change, extents)
        return other._with(blocks=blocks, units=Units(unit, exponent))

    def one_clusters(self, exponents, feature_scale):
        """Fit all rows as one cluster for each p."""
        if not exponents:
            return {}
        descents = []
        for p in exponents:
            typical = np.zeros((1, self.shape[1])) if self.gaps else None
            seed = Seed(self.extents.row[None, :], typical=typical)
            problem = one_cluster_problem(self, p)
            descents.append(Descent(seed, feature_scale, problem, self.change))
        found = zip(exponents, descend(self.blocks, descents), strict=True)
        return {
            p: (
                result.centers[0],
                result.log_dispersions[0],
                result.typical[0] if self.gaps else None,
            )
            for p, result in found
        }

    def draw(self, rngs, size, middle):
        """Draw a sample of distinct rows with each generator; return [(rows, weights), ...]."""
        salts, found = [draws.new_salt(rng) for rng in rngs], []
        for rows, times, mass in draw_rows(self, middle, salts, size + 1):
            kept, mass = draws.sample_weights(times, mass, size)
            found.append((np.ascontiguousarray(rows[:kept]), mass))
        return found

    def make_start(self, estimator, offset, middle, seeds):
        """Return a function from a seed to a start from centres that the user gives."""
        rows = seeding.StartRows(self, None, self.low, self.high, offset)
        shown, unit = None, self.units.data
        if callable(estimator.init):
            shown, _ = self.sample(seeds[0], SHOWN_ROWS)
            shown = shown if middle is None else fill_columns(shown, middle)
            shown = shown if unit == 1 else shown / shown.dtype.type(unit)
        return seeding.make_start(estimator, rows, (shown, unit))

    def run_tasks(self, tasks):
        """Run starts on all rows, given as (job, seed); yield (job, result) of each."""
        descents = [
            Descent(job.make_seed(seed), job.feature_scale, job.problem, job.rows.change)
            for job, seed in tasks
        ]
        jobs = [job for job, _ in tasks]
        yield from zip(jobs, descend(self.blocks, descents), strict=True)

    def place_idle(self, estimator):
        """Do nothing: labels are made when they are asked for."""


def fetch(part, request):
    """Return the rows of a block and their weights."""
    return part.X, part.sample_weight


def concatenate(parts):
    """Concatenate the rows of several blocks, and their weights."""
    return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))


def take_rows(part, request):
    """Return the rows of a sample that are in this block; `request` is (positions, firsts)."""
    positions, first = request
    begin, end = np.searchsorted(positions, first[[part.number, part.number + 1]])
    own = positions[begin:end] - first[part.number]
    return part.X[own], part.sample_weight[own]


def _scale(scaler, dtype, block):
    return scale_rows(scaler, np.ascontiguousarray(block, dtype=dtype))
