"""Draw initial centres from blocks of rows, as `cafelearn._solver.draws` does in memory.

Small collections are fetched whole. From larger ones a sample of distinct rows is drawn: those
with the shortest waiting times (`draws.coded_times`). The weight of a distinct row may be
spread over many blocks, so this is a top-k query on a sum over blocks, as in the three-phase
uniform threshold algorithm (Cao and Wang, 2004). If the time of a row is at most x, then in at
least one of the C blocks the time computed from its weight in that block alone is at most C x.
In the first pass each block lists the rows for which this holds; in the second pass the weights
of all listed rows are summed; in the third pass the rows drawn are fetched.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from cafelearn._dask.cache import CACHE
from cafelearn._gaps import fill_columns
from cafelearn._solver import draws, seeding
from cafelearn._solver.starts import gapped_sample_job, sample_job, sample_seed

# Kind of the cache entries made here.
STARTS = "starts"
# With subsample=None all rows are fetched, so collections of more rows are refused.
FEW_ROWS = 20_000


class Query(NamedTuple):
    """One draw of distinct rows by their weight."""

    salt: np.uint64
    bound: float  # largest waiting time of a candidate
    codes: np.ndarray | None = None  # codes of the rows, in the second and third pass


class Frame(NamedTuple):
    """All queries and their common settings; see `draws.coded_draw`."""

    low: np.ndarray
    spans: np.ndarray
    queries: list
    middle: np.ndarray | None  # values that fill gaps during a draw; None without gaps


def _filled(X, middle):
    return X if middle is None else fill_columns(X, middle)


def _draw(rows, frame):
    key = (rows.fit, STARTS, rows.number)
    stored = CACHE.get(key, 0)
    if stored is not None:
        return draws.Draw(*stored)
    X = _filled(rows.X, frame.middle)
    draw = draws.coded_draw(X, rows.sample_weight, frame.spans, frame.low)
    CACHE.put(key, 0, tuple(draw))
    return draw


def name_candidates(rows, frame):
    """Return for each query the codes of rows within its bound, and whether all rows are."""
    draw, found = _draw(rows, frame), []
    for query in frame.queries:
        times = draws.coded_times(draw.codes, query.salt, draw.mass)
        named = times <= query.bound
        found.append((draw.codes[named], bool((named | np.isinf(times)).all())))
    return found


def combine_candidates(parts):
    """Merge the candidates of several blocks."""
    return [
        (np.unique(np.concatenate([codes for codes, _ in named])), all(a for _, a in named))
        for named in zip(*parts, strict=True)
    ]


def sum_masses(rows, frame):
    """Return for each query the weight of each of its codes in this block."""
    draw, found = _draw(rows, frame), []
    for query in frame.queries:
        mass = np.append(draw.mass, 0.0)
        found.append(mass[_positions(draw.codes, query.codes)])
    return found


def add_up(parts):
    """Add lists of arrays in the order of the blocks."""
    total = [array.copy() for array in parts[0]]
    for part in parts[1:]:
        for into, array in zip(total, part, strict=True):
            into += array
    return total


def fetch_rows(rows, frame):
    """Return for each query the positions of its codes found in this block, and their rows."""
    draw, found = _draw(rows, frame), []
    for query in frame.queries:
        places = _positions(draw.codes, query.codes)
        here = np.flatnonzero(places < len(draw.codes))
        found.append((here, rows.X[draw.first[places[here]]]))
    return found


def combine_rows(middle, parts):
    """Keep the lexicographically first of rows with equal codes."""
    best = []
    for found in zip(*parts, strict=True):
        places = np.concatenate([places for places, _ in found])
        rows = np.concatenate([rows for _, rows in found])
        # The last key of np.lexsort is the primary one.
        order = np.lexsort((*_filled(rows, middle).T[::-1], places))
        places, rows = places[order], rows[order]
        first = np.flatnonzero(np.diff(places, prepend=-1))
        best.append((places[first], rows[first]))
    return best


def _positions(codes, wanted):
    """Return the positions of `wanted` in the sorted `codes`, len(codes) for missing ones."""
    places = np.searchsorted(codes, wanted)
    inside = places < len(codes)
    places[inside] = np.where(
        codes[places[inside]] == wanted[inside], places[inside], len(codes)
    )
    return places


def _draw_rows(blocks, extents, middle, queries, count):
    """Return for each query the `count` rows of shortest times, these times and the masses."""
    low, spans = (
        extents.low.astype(np.float64),
        draws.positive_spans(extents.low, extents.high),
    )
    drawn, waiting = [None] * len(queries), list(range(len(queries)))
    # Slightly more rows than needed are expected to have times below this bound, so it is
    # seldom raised.
    bounds = [(count + 8 * np.sqrt(count) + 20) / extents.mass] * len(queries)
    while waiting:
        asked = [queries[i]._replace(bound=bounds[i] * blocks.n_blocks) for i in waiting]
        frame = Frame(low, spans, asked, middle)
        named = blocks.reduce(name_candidates, combine_candidates, frame)
        asked = [
            query._replace(codes=codes) for query, (codes, _) in zip(asked, named, strict=True)
        ]
        summed = blocks.reduce(sum_masses, add_up, frame._replace(queries=asked))
        again = []
        for i, query, mass, (_, complete) in zip(waiting, asked, summed, named, strict=True):
            times = draws.coded_times(query.codes, query.salt, mass)
            chosen = draws.first_to_come(times, count)
            if complete or (times <= bounds[i]).sum() >= count:
                drawn[i] = query.codes[chosen], times[chosen], mass[chosen]
            else:
                bounds[i] *= 16
                again.append(i)
        waiting = again
    asked = [
        query._replace(codes=codes) for query, (codes, _, _) in zip(queries, drawn, strict=True)
    ]
    frame = Frame(low, spans, asked, middle)
    fetched = blocks.reduce(fetch_rows, partial(combine_rows, middle), frame)
    blocks.forget(STARTS)
    return [(rows, *found[1:]) for (_, rows), found in zip(fetched, drawn, strict=True)]


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


def draw_samples(jobs, blocks, extents, offsets, middles):
    """Give jobs of one scaling the samples that their starts run on; see `starts.prepare`.

    `middles` are the values that fill the gaps in each job's rows, None for complete rows.
    """
    rngs = [np.random.default_rng(sample_seed(job.seeds)) for job in jobs]
    queries = [Query(draws.new_salt(rng), np.inf) for rng in rngs]
    size, ends = jobs[0].estimator.subsample, (extents.low, extents.high)
    # Which rows are equal depends on the values in their gaps, and these depend on p.
    for p in dict.fromkeys(job.estimator.p if extents.gaps else None for job in jobs):
        some = [i for i, job in enumerate(jobs) if p in (None, job.estimator.p)]
        middle, asked = middles[some[0]], [queries[i] for i in some]
        samples = _draw_rows(blocks, extents, middle, asked, size + 1)
        for i, (rows, times, mass) in zip(some, samples, strict=True):
            kept, mass = draws.sample_weights(times, mass, size)
            rows, args = np.ascontiguousarray(rows[:kept]), (mass, *ends, offsets[i])
            jobs[i].on_sample = (
                sample_job(jobs[i], rows, *args)
                if middle is None
                else gapped_sample_job(jobs[i], rows, middle, *args)
            )


def make_starts(jobs, blocks, extents, offsets, middles, take_sample, filled_starts):
    """Make the starts of jobs whose rows are fetched, or whose centres are given.

    With `filled_starts`, drawn starts run on rows whose gaps are filled; see
    `starts.prepare`.
    """
    init, n_clusters = jobs[0].estimator.init, jobs[0].estimator.n_clusters
    unit = jobs[0].units.data
    if isinstance(init, str):
        X, weights = blocks.reduce(fetch_all, combine_all, None)
    else:
        X = take_sample() if callable(init) else None
    for job, offset, middle in zip(jobs, offsets, middles, strict=True):
        shown = X if X is None else _filled(X, middle)
        if not isinstance(init, str):
            if shown is not None and unit != 1:
                shown = shown / shown.dtype.type(unit)
            job.start = partial(_given, init, shown, blocks, n_clusters, unit)
        elif filled_starts:
            job.on_sample = sample_job(job, shown, weights, extents.low, extents.high, offset)
        else:
            rows = seeding.StartRows(shown, weights, extents.low, extents.high, offset)
            job.start = seeding.make_start(job.estimator, rows)


def _given(init, shown, blocks, n_clusters, unit, seed):
    return seeding.given_centers(init, shown, blocks, n_clusters, seed, unit), None, None


def fetch_all(rows, request):
    """Return the rows of a block and their weights."""
    return rows.X, rows.sample_weight


def combine_all(parts):
    return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))
