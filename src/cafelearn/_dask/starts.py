"""Initial centres on blocks of rows: the same rows that `cafelearn._solver.seeding` draws.

Few rows are fetched, and the starts made of them here. Else a draw takes the distinct
rows whose waiting times (`seeding.coded_times`) are shortest.
The weight of a distinct row may be spread over many blocks, so this is a search for the
top of a sum over blocks, made as in the three-phase uniform threshold algorithm (Cao and
Wang, 2004). A row whose time is at most x must have a part, in one of C blocks, that is at
most C x on its own; so each block names those (first pass), the parts of all that were
named are summed (second pass), and the rows drawn are fetched (third pass).
"""

from typing import NamedTuple

import numpy as np

from cafelearn._dask.cache import CACHE
from cafelearn._solver import seeding
from cafelearn._solver.starts import sample_job, sample_seed

# What workers remember during the draws, see the cache.
STARTS = "starts"
# Draws made together; each sends the client as many numbers as there are blocks, some 40
# times.
TOGETHER = 64


class Query(NamedTuple):
    """One draw in one start."""

    start: int
    salt: np.uint64
    bound: float  # waiting times up to this are asked for
    centers: np.ndarray  # (l, m) those found before; rows are drawn far from them
    by_mass: bool  # or by their weight alone
    p: float
    codes: np.ndarray | None = None  # the rows meant, in the second and third pass


class Frame(NamedTuple):
    """What all draws have in common; see `seeding.coded_draw`."""

    low: np.ndarray
    spans: np.ndarray
    scale: float
    queries: list


def _draw(rows, frame):
    key = (rows.fit, STARTS, rows.number)
    stored = CACHE.get(key, 0)
    if stored is not None:
        return seeding.Draw(*stored)
    draw = seeding.coded_draw(rows.X, rows.sample_weight, frame.spans, frame.low)
    CACHE.put(key, 0, tuple(draw))
    return draw


def _nearest(rows, query, scale):
    """d^p of each row to the nearest of the centres found before."""
    key, count = (rows.fit, STARTS, rows.number, query.start), len(query.centers)
    stored = CACHE.get(key, count)
    if stored is not None:
        return stored[0]
    known, nearest = CACHE.get(key, count - 1), None
    if known is not None:
        nearest, known = known[0], count - 1
    for center in query.centers[known or 0 :]:
        reached = seeding.powers(rows.X, center[None, :], query.p, scale)[:, 0]
        nearest = reached if nearest is None else np.minimum(nearest, reached)
    CACHE.put(key, count, (nearest,))
    return nearest


def _pull(rows, query, draw, scale):
    if query.by_mass or len(query.centers) == 0:
        return draw.mass
    return seeding.pull_of(draw, rows.sample_weight * _nearest(rows, query, scale))


def name_candidates(rows, frame):
    """For each query the codes of rows that may be drawn, and whether these are all."""
    draw, found = _draw(rows, frame), []
    for query in frame.queries:
        pull = _pull(rows, query, draw, frame.scale)
        times = seeding.coded_times(draw.codes, query.salt, pull)
        named = times <= query.bound
        found.append((draw.codes[named], bool((named | np.isinf(times)).all())))
    return found


def combine_candidates(parts):
    return [
        (np.unique(np.concatenate([codes for codes, _ in named])), all(a for _, a in named))
        for named in zip(*parts, strict=True)
    ]


def sum_pulls(rows, frame):
    """For each query the pull of its codes in this block."""
    draw, found = _draw(rows, frame), []
    for query in frame.queries:
        pull = np.append(_pull(rows, query, draw, frame.scale), 0.0)
        found.append(pull[_positions(draw.codes, query.codes)])
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


def sum_distances(rows, frame):
    """For each query the sum of d^p that each candidate, its last centres, would leave."""
    found = []
    for query, candidates in frame.queries:
        reached = seeding.powers(rows.X, candidates, query.p, frame.scale)
        if len(query.centers):
            nearest = _nearest(rows, query, frame.scale)
            np.minimum(reached, nearest[:, None], out=reached)
        found.append(rows.sample_weight @ reached)
    return found


def _positions(codes, wanted):
    """Where `wanted` stand among the rising `codes`; len(codes) for those that do not."""
    places = np.searchsorted(codes, wanted)
    inside = places < len(codes)
    places[inside] = np.where(
        codes[places[inside]] == wanted[inside], places[inside], len(codes)
    )
    return places


class Drawing:
    """The draws of starts on some blocks, many at a time."""

    def __init__(self, blocks, extents, scale):
        self.blocks, self.mass, self.scale = blocks, extents.mass, scale
        self.spans = seeding.positive_spans(extents.low, extents.high)
        self.low = extents.low.astype(np.float64)

    def _frame(self, queries):
        return Frame(self.low, self.spans, self.scale, queries)

    def draw(self, queries, pulls, count):
        """The `count` first rows of each query, their times and their pulls.

        `pulls` are the sums of all rows' pulls.
        """
        drawn, open_ = [None] * len(queries), list(range(len(queries)))
        # Some more are expected below the bound, so it seldom rises.
        bounds = [(count + 8 * np.sqrt(count) + 20) / pull for pull in pulls]
        while open_:
            asked = [queries[i]._replace(bound=bounds[i] * self.blocks.n_blocks) for i in open_]
            named = self.blocks.reduce(name_candidates, combine_candidates, self._frame(asked))
            asked = [
                query._replace(codes=codes)
                for query, (codes, _) in zip(asked, named, strict=True)
            ]
            summed = self.blocks.reduce(sum_pulls, add_up, self._frame(asked))
            again = []
            for i, query, pull, (_, complete) in zip(open_, asked, summed, named, strict=True):
                times = seeding.coded_times(query.codes, query.salt, pull)
                chosen = seeding.first_to_come(times, count)
                if complete or (times <= bounds[i]).sum() >= count:
                    drawn[i] = query.codes[chosen], times[chosen], pull[chosen]
                else:
                    bounds[i] *= 16
                    again.append(i)
            open_ = again
        asked = [
            query._replace(codes=codes)
            for query, (codes, _, _) in zip(queries, drawn, strict=True)
        ]
        fetched = self.blocks.reduce(fetch_rows, combine_rows, self._frame(asked))
        return [(rows, *found[1:]) for (_, rows), found in zip(fetched, drawn, strict=True)]

    def samples(self, size, rngs):
        """The rows and weights of `seeding.draw_sample` for each generator."""
        found = []
        for rows, times, mass in self._by_mass(rngs, size + 1):
            kept, mass = seeding.sample_weights(times, mass, size)
            found.append((np.ascontiguousarray(rows[:kept]), mass))
        return found

    def _by_mass(self, rngs, count):
        nothing = np.empty((0, self.blocks.shape[1]), dtype=self.blocks.dtype)
        queries = [
            Query(start, seeding.new_salt(rng), np.inf, nothing, True, 2.0)
            for start, rng in enumerate(rngs)
        ]
        return self.draw(queries, [self.mass] * len(queries), count)

    def random(self, exponents, n_clusters, rngs):
        """The centres of `seeding.random_rows` for each generator."""
        found = self._by_mass(rngs, n_clusters)
        return [rows[np.resize(np.arange(len(rows)), n_clusters)] for rows, _, _ in found]

    def kmeans_plusplus(self, exponents, n_clusters, rngs):
        """The centres of `seeding.kmeans_plusplus` for each generator."""
        n_features, dtype = self.blocks.shape[1], self.blocks.dtype
        centers = [np.empty((0, n_features), dtype=dtype) for _ in rngs]
        left = [self.mass] * len(rngs)
        for l in range(n_clusters):
            queries = [
                Query(start, seeding.new_salt(rng), np.inf, found, l == 0 or pull == 0, p)
                for start, (rng, found, pull, p) in enumerate(
                    zip(rngs, centers, left, exponents, strict=True)
                )
            ]
            pulls = [pull or self.mass for pull in left]
            count = seeding.n_trials(n_clusters) if l else 1
            candidates = [rows for rows, _, _ in self.draw(queries, pulls, count)]
            request = self._frame(list(zip(queries, candidates, strict=True)))
            sums = self.blocks.reduce(sum_distances, add_up, request)
            for start, distances in enumerate(sums):
                best = seeding.first_smallest(distances)
                left[start] = float(distances[best])
                centers[start] = np.vstack([centers[start], candidates[start][best]])
        return centers


def check_init(estimator):
    """Raise if the starts of an estimator cannot be made from blocks."""
    if isinstance(estimator.init, str) and estimator.init == "anomalous":
        raise ValueError(
            f"{type(estimator).__name__}(init='anomalous') needs the rows in memory, because "
            "it takes out one cluster after the other. For a Dask collection use 'random', "
            "'k-means++' or an array of centres, for instance those of a fit to a sample."
        )


def draw_samples(jobs, blocks, extents, offsets):
    """Give jobs of one scaling the samples that their starts run on; see `starts.prepare`."""
    drawing = Drawing(blocks, extents, jobs[0].problem.scale)
    rngs = [np.random.default_rng(sample_seed(job.seeds)) for job in jobs]
    samples = drawing.samples(jobs[0].estimator.subsample, rngs)
    blocks.forget(STARTS)
    for job, (rows, mass), offset in zip(jobs, samples, offsets, strict=True):
        job.on_sample = sample_job(job, rows, mass, extents.low, extents.high, offset)


def initial_centers(jobs, blocks, extents, scale, take_sample):
    """The centres of every start of every job, in their order."""
    starts = [(job, seed) for job in jobs for seed in job.seeds]
    init, n_clusters = jobs[0].estimator.init, jobs[0].estimator.n_clusters
    if not isinstance(init, str):
        shown = take_sample() if callable(init) else None
        return [
            seeding.given_centers(init, shown, blocks, n_clusters, seed) for _, seed in starts
        ]
    few = max(seeding.RANKED_ROWS, 2 * (jobs[0].estimator.subsample or 0))
    if len(blocks) <= few:
        X, weights = blocks.reduce(fetch_all, combine_all, None)
        makers = {
            job: seeding.make_start(job.estimator, X, weights, extents.low, extents.high, None)
            for job in jobs
        }
        return [makers[job](seed)[0] for job, seed in starts]
    drawing = Drawing(blocks, extents, scale)
    draw = drawing.random if init == "random" else drawing.kmeans_plusplus
    found = []
    for i in range(0, len(starts), TOGETHER):
        some = starts[i : i + TOGETHER]
        rngs = [np.random.default_rng(seed) for _, seed in some]
        found += draw([job.estimator.p for job, _ in some], n_clusters, rngs)
        # The starts of the next draws have the same numbers.
        blocks.forget(STARTS)
    return found


def fetch_all(rows, request):
    """The rows of a block and their weights."""
    return rows.X, rows.sample_weight


def combine_all(parts):
    return tuple(np.concatenate(arrays) for arrays in zip(*parts, strict=True))
