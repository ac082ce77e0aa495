"""Initial centres on blocks of rows: the same rows that `cafelearn._solver.seeding` draws.

Few rows are fetched, and the starts are made of them here. Of more, a sample of distinct rows
is drawn, those whose waiting times (`seeding.coded_times`) are shortest. The weight of a
distinct row may be spread over many blocks, so this is a search for the top of a sum over
blocks, as in the three-phase uniform threshold algorithm (Cao and Wang, 2004). A row whose
time is at most x must have a part, in one of C blocks, that is at most C x on its own; so each
block names those (first pass), the parts of all that were named are summed (second pass), and
the rows drawn are fetched (third pass).
"""

from typing import NamedTuple

import numpy as np

from cafelearn._dask.cache import CACHE
from cafelearn._solver import seeding
from cafelearn._solver.starts import sample_job, sample_seed

# Kind of the draws in the cache.
STARTS = "starts"
# More rows than these, and than twice `subsample`, are not fetched.
FEW_ROWS = 20_000


class Query(NamedTuple):
    """One draw of distinct rows by their weight."""

    salt: np.uint64
    bound: float  # waiting times up to this are asked for
    codes: np.ndarray | None = None  # the rows meant, in the second and third pass


class Frame(NamedTuple):
    """What all draws have in common; see `seeding.coded_draw`."""

    low: np.ndarray
    spans: np.ndarray
    queries: list


def _draw(rows, frame):
    key = (rows.fit, STARTS, rows.number)
    stored = CACHE.get(key, 0)
    if stored is not None:
        return seeding.Draw(*stored)
    draw = seeding.coded_draw(rows.X, rows.sample_weight, frame.spans, frame.low)
    CACHE.put(key, 0, tuple(draw))
    return draw


def name_candidates(rows, frame):
    """For each query the codes of rows that may be drawn, and whether these are all."""
    draw, found = _draw(rows, frame), []
    for query in frame.queries:
        times = seeding.coded_times(draw.codes, query.salt, draw.mass)
        named = times <= query.bound
        found.append((draw.codes[named], bool((named | np.isinf(times)).all())))
    return found


def combine_candidates(parts):
    """Candidates of several blocks."""
    return [
        (np.unique(np.concatenate([codes for codes, _ in named])), all(a for _, a in named))
        for named in zip(*parts, strict=True)
    ]


def sum_masses(rows, frame):
    """For each query the weight of its codes in this block."""
    draw, found = _draw(rows, frame), []
    for query in frame.queries:
        mass = np.append(draw.mass, 0.0)
        found.append(mass[_positions(draw.codes, query.codes)])
    return found


def add_up(parts):
    """Sums of lists of arrays, in the order of the blocks."""
    total = [array.copy() for array in parts[0]]
    for part in parts[1:]:
        for into, array in zip(total, part, strict=True):
            into += array
    return total


def fetch_rows(rows, frame):
    """For each query the rows of its codes that are in this block, with their places."""
    draw, found = _draw(rows, frame), []
    for query in frame.queries:
        places = _positions(draw.codes, query.codes)
        here = np.flatnonzero(places < len(draw.codes))
        found.append((here, rows.X[draw.first[places[here]]]))
    return found


def combine_rows(parts):
    """Of rows with equal codes the one that comes first in the dictionary."""
    best = []
    for found in zip(*parts, strict=True):
        places = np.concatenate([places for places, _ in found])
        rows = np.concatenate([rows for _, rows in found])
        # The last key of a lexical sort is the first one to count.
        order = np.lexsort((*rows.T[::-1], places))
        places, rows = places[order], rows[order]
        first = np.flatnonzero(np.diff(places, prepend=-1))
        best.append((places[first], rows[first]))
    return best


def _positions(codes, wanted):
    """Where `wanted` stand among the rising `codes`; len(codes) for those that do not."""
    places = np.searchsorted(codes, wanted)
    inside = places < len(codes)
    places[inside] = np.where(
        codes[places[inside]] == wanted[inside], places[inside], len(codes)
    )
    return places


def _draw_rows(blocks, extents, queries, count):
    """The `count` first rows of each query, their times and their masses."""
    low, spans = (
        extents.low.astype(np.float64),
        seeding.positive_spans(extents.low, extents.high),
    )
    drawn, waiting = [None] * len(queries), list(range(len(queries)))
    # Some more are expected below the bound, so it seldom rises.
    bounds = [(count + 8 * np.sqrt(count) + 20) / extents.mass] * len(queries)
    while waiting:
        asked = [queries[i]._replace(bound=bounds[i] * blocks.n_blocks) for i in waiting]
        frame = Frame(low, spans, asked)
        named = blocks.reduce(name_candidates, combine_candidates, frame)
        asked = [
            query._replace(codes=codes) for query, (codes, _) in zip(asked, named, strict=True)
        ]
        summed = blocks.reduce(sum_masses, add_up, frame._replace(queries=asked))
        again = []
        for i, query, mass, (_, complete) in zip(waiting, asked, summed, named, strict=True):
            times = seeding.coded_times(query.codes, query.salt, mass)
            chosen = seeding.first_to_come(times, count)
            if complete or (times <= bounds[i]).sum() >= count:
                drawn[i] = query.codes[chosen], times[chosen], mass[chosen]
            else:
                bounds[i] *= 16
                again.append(i)
        waiting = again
    asked = [
        query._replace(codes=codes) for query, (codes, _, _) in zip(queries, drawn, strict=True)
    ]
    fetched = blocks.reduce(fetch_rows, combine_rows, Frame(low, spans, asked))
    return [(rows, *found[1:]) for (_, rows), found in zip(fetched, drawn, strict=True)]


def check_init(estimator, n_rows):
    """Raise if the starts of an estimator cannot be made from so many rows in blocks."""
    owner = type(estimator).__name__
    if isinstance(estimator.init, str) and estimator.subsample is None and n_rows > FEW_ROWS:
        raise ValueError(
            f"{owner}(subsample=None) needs the rows in memory, because starts on all rows "
            f"draw from all of them. For a Dask collection of {n_rows:,} rows set subsample, "
            "the number of rows that the starts run on, or give an array of centres as init."
        )


def draw_samples(jobs, blocks, extents, offsets):
    """Give jobs of one scaling the samples that their starts run on; see `starts.prepare`."""
    rngs = [np.random.default_rng(sample_seed(job.seeds)) for job in jobs]
    queries = [Query(seeding.new_salt(rng), np.inf) for rng in rngs]
    size = jobs[0].estimator.subsample
    samples = _draw_rows(blocks, extents, queries, size + 1)
    blocks.forget(STARTS)
    for job, (rows, times, mass), offset in zip(jobs, samples, offsets, strict=True):
        kept, mass = seeding.sample_weights(times, mass, size)
        rows = np.ascontiguousarray(rows[:kept])
        job.on_sample = sample_job(job, rows, mass, extents.low, extents.high, offset)


def initial_centers(jobs, blocks, extents, offsets, take_sample):
    """The centres of every start of every job, in their order."""
    starts = [(job, seed) for job in jobs for seed in job.seeds]
    init, n_clusters = jobs[0].estimator.init, jobs[0].estimator.n_clusters
    if not isinstance(init, str):
        unit = jobs[0].units.data
        shown = take_sample() if callable(init) else None
        if shown is not None and unit != 1:
            shown = shown / shown.dtype.type(unit)
        return [
            seeding.given_centers(init, shown, blocks, n_clusters, seed, unit)
            for _, seed in starts
        ]
    X, weights = blocks.reduce(fetch_all, combine_all, None)
    makers = {
        job: seeding.make_start(
            job.estimator, seeding.StartRows(X, weights, extents.low, extents.high, offset)
        )
        for job, offset in zip(jobs, offsets, strict=True)
    }
    return [makers[job](seed)[0] for job, seed in starts]


def fetch_all(rows, request):
    """The rows of a block and their weights."""
    return rows.X, rows.sample_weight


def combine_all(parts):
    return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))
