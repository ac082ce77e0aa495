"""Draw the sample of rows that the starts run on, as `cafelearn.kmeans.draws` does in memory.

Small collections are fetched whole. From larger ones the distinct rows with the shortest
waiting times (`draws.coded_times`) are drawn. The waiting time of a distinct row is inversely
proportional to its weight, the sum of the weights of its copies, which may be in many blocks.
The draw is therefore a top-k query on sums over blocks, made in three passes by the uniform
threshold algorithm (Cao and Wang, 2004). The bound x is chosen so that slightly more rows than
needed are expected to have times of at most x. If the time of a row is at most x, then in at
least one of the C blocks the time computed from the row's weight in that block alone is at most
C x.

1. Each block lists the rows whose time, computed from their weight there, is at most C x.
2. The weights of all listed rows are summed over the blocks. If too few rows have times of at
   most x, and not all rows are listed, passes 1 and 2 are repeated with a larger x.
3. The rows with the shortest times are fetched.

With many blocks, C x is a weak bound. In that case, an additional first pass sums the weights
of all rows by bucket; the last bits of a row's code determine its bucket. A row weighs at most
as much as its bucket.
"""

from functools import partial
from typing import NamedTuple
from uuid import uuid4

import numpy as np
import pandas as pd

from cafelearn.data.gaps import fill_columns
from cafelearn.distributed.cache import CACHE
from cafelearn.distributed.sampling import sample
from cafelearn.kmeans import draws, seeding
from cafelearn.kmeans.starts import Job, sample_job, sample_seed

# With subsample=None all rows are fetched; collections with more rows than this raise an error.
FEW_ROWS = 20_000
# With more than FEW_BLOCKS blocks, weights are summed in BUCKETS buckets.
FEW_BLOCKS, BUCKETS = 16, 2**19
# Larger than the relative rounding error of the sums of buckets, which are float32.
ROUNDING = 1e-3


class Prepared(NamedTuple):
    """A Job whose starts are not made yet, and the values needed to make them."""

    job: Job
    offset: float | str  # see log_offset of kmeans.starts
    middle: np.ndarray | None  # centre of all rows, to fill missing values; None: complete rows


class Frame(NamedTuple):
    """Settings of all draws from the same rows; see `draws.coded_draw`."""

    key: str  # first part of the keys in the cache
    low: np.ndarray
    spans: np.ndarray
    middle: np.ndarray | None  # as in Prepared

    def distinct(self, rows):
        """Return codes and masses of the distinct rows, and the index of one copy of each."""
        found = CACHE.get((self.key, rows.number))
        if not found:
            X = _filled(rows.X, self.middle)
            draw = draws.coded_draw(X, rows.sample_weight, self.spans, self.low)
            found = {"codes": draw.codes, "mass": draw.mass, "first": draw.first}
            CACHE.put((self.key, rows.number), found)
        return found["codes"], found["mass"], found["first"]


def _filled(X, middle):
    return X if middle is None else fill_columns(X, middle)


def sum_buckets(rows, frame):
    """Return the weight of the rows of this block in each bucket of codes."""
    codes, mass, _ = frame.distinct(rows)
    return np.bincount(_buckets(codes), mass, BUCKETS).astype(np.float32)


def _buckets(codes):
    return (codes % np.uint64(BUCKETS)).astype(np.int64)


def name_candidates(rows, request):
    """Return, for each draw, the codes of the rows that this block lists.

    Also return whether these are all the rows of the block that can be drawn.
    """
    frame, salts, bound, n_blocks, buckets = request
    (codes, mass, _), found = frame.distinct(rows), []
    most = n_blocks * mass
    if buckets is not None:
        most = np.minimum(most, buckets[_buckets(codes)] * (1 + ROUNDING))
    for salt in salts:
        times = draws.coded_times(codes, salt, most)
        named = times <= bound
        found.append((codes[named], bool((named | np.isinf(times)).all())))
    return found


def combine_candidates(parts):
    """Merge the codes listed by several blocks."""
    return [
        (np.unique(np.concatenate([codes for codes, _ in named])), all(a for _, a in named))
        for named in zip(*parts, strict=True)
    ]


def sum_masses(rows, request):
    """Return, for each draw, which of its codes are in this block, and their weights."""
    frame, wanted = request
    known, mass, _ = frame.distinct(rows)
    return [(here, mass[places]) for here, places in _look_up(known, wanted)]


def _look_up(known, wanted):
    """Look up each array of codes in `known`; yield the positions of the codes found.

    Each item is a pair: the positions in the array, and those in `known`.
    """
    known = pd.Index(known)
    for codes in wanted:
        places = known.get_indexer(codes)
        here = np.flatnonzero(places >= 0)
        yield here, places[here]


def combine_masses(parts):
    """Concatenate positions and weights in the order of the blocks."""
    return [
        tuple(np.concatenate(arrays) for arrays in zip(*found, strict=True))
        for found in zip(*parts, strict=True)
    ]


def fetch_rows(rows, request):
    """Return, for each draw, which of its codes are in this block, and their rows."""
    frame, wanted = request
    known, _, first = frame.distinct(rows)
    return [(here, rows.X[first[places]]) for here, places in _look_up(known, wanted)]


def combine_rows(middle, parts):
    """Keep the lexicographically first of the rows with the same code."""
    best = []
    for found in zip(*parts, strict=True):
        places, rows = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        # The last key of np.lexsort is the primary one.
        order = np.lexsort((*_filled(rows, middle).T[::-1], places))
        places, rows = places[order], rows[order]
        first = np.flatnonzero(np.diff(places, prepend=-1))
        best.append((places[first], rows[first]))
    return best


def _draw_rows(blocks, extents, middle, salts, count):
    """Return, for each salt, the `count` rows with the shortest times, and times and masses."""
    spans = draws.positive_spans(extents.low, extents.high)
    frame = Frame(uuid4().hex, extents.low.astype(np.float64), spans, middle)
    drawn, waiting = {}, list(range(len(salts)))
    # Slightly more rows than needed are expected to have times below this bound, so that it
    # seldom has to be raised.
    bound = (count + 8 * np.sqrt(count) + 20) / extents.mass
    buckets = None
    if blocks.n_blocks > FEW_BLOCKS:
        buckets = blocks.reduce(sum_buckets, sum, frame)
    while waiting:
        request = frame, [salts[i] for i in waiting], bound, blocks.n_blocks, buckets
        named = blocks.reduce(name_candidates, combine_candidates, request)
        request = frame, [codes for codes, _ in named]
        found = blocks.reduce(sum_masses, combine_masses, request)
        for i, (codes, complete), (places, mass) in zip(waiting, named, found, strict=True):
            mass = np.bincount(places, mass, len(codes))
            times = draws.coded_times(codes, salts[i], mass)
            if complete or (times <= bound).sum() >= count:
                chosen = draws.first_to_come(times, count)
                drawn[i] = codes[chosen], times[chosen], mass[chosen]
        waiting = [i for i in waiting if i not in drawn]
        bound *= 16
    found = [drawn[i] for i in range(len(salts))]
    request = frame, [codes for codes, _, _ in found]
    fetched = blocks.reduce(fetch_rows, partial(combine_rows, middle), request)
    blocks.forget(frame.key)
    return [
        (rows, times, mass) for (_, rows), (_, times, mass) in zip(fetched, found, strict=True)
    ]


def check_init(estimator, n_rows):
    """Raise if the starts of an estimator cannot be made from `n_rows` rows in blocks."""
    owner = type(estimator).__name__
    if isinstance(estimator.init, str) and estimator.subsample is None and n_rows > FEW_ROWS:
        raise ValueError(
            f"{owner}(subsample=None) needs the rows in memory, because initial centres are "
            f"then drawn from all of them. For a Dask collection of {n_rows:,} rows set "
            "subsample, the number of rows that the starts run on, or give an array of centres "
            "as init."
        )


def draw_samples(prepared, blocks, extents, filled_starts):
    """Draw the sample of rows for the starts of each job; all jobs have the same scaling.

    For `filled_starts` see `prepare` in `kmeans.starts`.
    """
    # Missing values are filled with values that depend on p, so each p needs its own draw.
    exponents = [job.estimator.p if extents.gaps else None for job, _, _ in prepared]
    for p in dict.fromkeys(exponents):
        some = [each for each, own in zip(prepared, exponents, strict=True) if own == p]
        rngs = [np.random.default_rng(sample_seed(job.seeds)) for job, _, _ in some]
        salts, size = [draws.new_salt(rng) for rng in rngs], some[0].job.estimator.subsample
        samples = _draw_rows(blocks, extents, some[0].middle, salts, size + 1)
        for (job, offset, middle), (rows, times, mass) in zip(some, samples, strict=True):
            kept, mass = draws.sample_weights(times, mass, size)
            rows = np.ascontiguousarray(rows[:kept])
            args = mass, extents.low, extents.high, offset, middle, filled_starts
            job.on_sample = sample_job(job, rows, *args)


def make_starts(prepared, blocks, extents, filled_starts):
    """Make the starts of jobs that need no weighted sample.

    Either all rows are fetched, or the centres are given as an array or made by a callable.
    """
    first, ends = prepared[0].job, (extents.low, extents.high)
    init, unit = first.estimator.init, first.units.data
    X, weights = None, None
    if isinstance(init, str):
        X, weights = blocks.reduce(fetch_all, combine_all, None)
    elif callable(init):
        X = sample(blocks, first.seeds[0])
    for job, offset, middle in prepared:
        filled = None if X is None else _filled(X, middle)
        if isinstance(init, str) and filled_starts:
            job.on_sample = sample_job(job, X, weights, *ends, offset, middle, True)
        elif isinstance(init, str):
            rows = seeding.StartRows(filled, weights, *ends, offset)
            job.start = seeding.make_start(job.estimator, rows)
        else:
            shown = filled if filled is None or unit == 1 else filled / filled.dtype.type(unit)
            # For given centres, only the number of features and the type of the rows matter.
            rows = seeding.StartRows(blocks, None, *ends, offset)
            job.start = seeding.make_start(job.estimator, rows, (shown, unit))


def fetch_all(rows, request):
    """Return the rows of a block and their weights."""
    return rows.X, rows.sample_weight


def combine_all(parts):
    """Concatenate the rows of several blocks, and their weights."""
    return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))
