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

from cafelearn.distributed.cache import CACHE
from cafelearn.kmeans import draws
from cafelearn.kmeans.rows import filled

# With more than FEW_BLOCKS blocks, weights are summed in BUCKETS buckets.
FEW_BLOCKS, BUCKETS = 16, 2**19
# Larger than the relative rounding error of the sums of buckets, which are float32.
ROUNDING = 1e-3


class Frame(NamedTuple):
    """Settings of all draws from the same rows; see `draws.coded_draw`."""

    key: str  # first part of the keys in the cache
    low: np.ndarray
    spans: np.ndarray
    middle: np.ndarray | None  # to fill missing values; None: complete rows

    def distinct(self, rows):
        """Return codes and masses of the distinct rows, and the index of one copy of each."""
        found = CACHE.get((self.key, rows.number))
        if not found:
            X = filled(rows.X, self.middle)
            draw = draws.coded_draw(X, rows.sample_weight, self.spans, self.low)
            found = {"codes": draw.codes, "mass": draw.mass, "first": draw.first}
            CACHE.put((self.key, rows.number), found)
        return found["codes"], found["mass"], found["first"]


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
        order = np.lexsort((*filled(rows, middle).T[::-1], places))
        places, rows = places[order], rows[order]
        first = np.flatnonzero(np.diff(places, prepend=-1))
        best.append((places[first], rows[first]))
    return best


def draw_rows(source, middle, salts, count):
    """Return, for each salt, the `count` rows with the shortest times, and times and masses."""
    blocks, spans = source.blocks, draws.positive_spans(source.low, source.high)
    frame = Frame(uuid4().hex, source.low.astype(np.float64), spans, middle)
    drawn, waiting = {}, list(range(len(salts)))
    # Slightly more rows than needed are expected to have times below this bound, so that it
    # seldom has to be raised.
    bound = (count + 8 * np.sqrt(count) + 20) / source.extents.mass
    buckets = None
    if blocks.n_blocks > FEW_BLOCKS:
        buckets = source.reduce(sum_buckets, sum, frame)
    while waiting:
        request = frame, [salts[i] for i in waiting], bound, blocks.n_blocks, buckets
        named = source.reduce(name_candidates, combine_candidates, request)
        request = frame, [codes for codes, _ in named]
        found = source.reduce(sum_masses, combine_masses, request)
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
    fetched = source.reduce(fetch_rows, partial(combine_rows, middle), request)
    blocks.forget(frame.key)
    return [
        (rows, times, mass) for (_, rows), (_, times, mass) in zip(fetched, found, strict=True)
    ]
