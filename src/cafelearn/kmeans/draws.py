"""Random draws of distinct rows, independent of row order and of units of measurement."""

from typing import NamedTuple

import numpy as np

from cafelearn.kmeans.kernels.assign import hash_of as mix
from cafelearn.kmeans.kernels.compiling import EXACT, MAKES, njit
from cafelearn.kmeans.scales import half_span

# Up to this many rows are sorted by their values. More rows, which may be spread over several
# processes, are sorted by their codes: hashes that depend on the values of one row only.
RANKED_ROWS = 5_000
# Codes use this many of the 52 bits of the mantissa. Data in other units of measurement, which
# is rounded differently, therefore gives the same draw.
KEPT_BITS = 24
# In codes, a value counts as equal to the smallest one if the two differ by less than this part
# of the range.
NOTHING = 2.0**-45


class Draw(NamedTuple):
    """The distinct rows of positive weight, in an order that depends only on their values.

    Random choices made in this order do not depend on the order of the rows, and a row of
    weight 2 is equivalent to two equal rows.
    """

    rows: np.ndarray  # indices of all rows of positive weight, equal rows next to each other
    group: np.ndarray  # for each of `rows`, the index of its distinct row, ascending
    mass: np.ndarray  # for each distinct row, the sum of the weights of its copies
    first: np.ndarray  # for each distinct row, the index of one copy
    codes: np.ndarray | None  # for each distinct row, its code; None if sorted by values


def make_draw(X, sample_weight, spans, low=None):
    """Find and order the distinct rows.

    `spans` are the ranges of the features, up to a common factor, and `low` their smallest
    values, by default zeros. If `low` is given, the draw does not depend on the units or
    origins of the features.
    """
    spans = np.where(spans > 0, spans, 1.0).astype(np.float64)
    if len(X) > RANKED_ROWS:
        low = np.zeros(X.shape[1]) if low is None else low.astype(np.float64)
        return coded_draw(X, sample_weight, spans, low)
    # Distinct rows hardly ever have the same projection on this direction.
    direction = (1 + np.sqrt(2 + np.arange(X.shape[1])) % 1) / spans
    along = (X * direction).sum(axis=1)
    rows = np.argsort(along, kind="stable")
    rows = rows[sample_weight[rows] > 0]
    new = _steps(along[rows])
    # Nevertheless, compare rows with the same projection.
    doubtful = np.flatnonzero(~new)
    new[doubtful] = (X[rows[doubtful]] != X[rows[doubtful - 1]]).any(axis=1)
    group = np.cumsum(new) - 1
    mass = np.bincount(group, weights=sample_weight[rows])
    return Draw(rows, group, mass, rows[new], None)


def coded_draw(X, sample_weight, spans, low):
    """Make a Draw in the order of codes, each of which depends on one row only."""
    codes = _row_codes(X, low, spans)
    rows = np.argsort(codes, kind="stable")
    rows = rows[sample_weight[rows] > 0]
    codes = codes[rows]
    new = _steps(codes)
    group = np.cumsum(new) - 1
    mass = np.bincount(group, weights=sample_weight[rows])
    first = _smallest_of_each(X, rows, group, len(mass))
    return Draw(rows, group, mass, first, codes[new])


def _steps(rising):
    """Return for each number whether it differs from the one before; True for the first."""
    new = np.ones(len(rising), dtype=bool)
    new[1:] = rising[1:] != rising[:-1]
    return new


@njit(**MAKES)
def _row_codes(X, low, spans):
    """Compute a 64-bit code for each row, equal for equal rows."""
    codes = np.empty(len(X), dtype=np.uint64)
    rest = np.uint64(52 - KEPT_BITS)
    half = np.uint64(1) << (rest - np.uint64(1))
    for i in range(len(X)):
        code = np.uint64(0)
        for v in range(X.shape[1]):
            # Halve first, because the difference of huge numbers could overflow.
            t = (0.5 * np.float64(X[i, v]) - 0.5 * low[v]) / spans[v]
            bits = np.float64(t if abs(t) >= NOTHING else 0.0).view(np.uint64)
            # Add the hashes of the values: the compiler can vectorise a sum.
            code += mix(((bits + half) >> rest) + (np.uint64(v) << np.uint64(KEPT_BITS + 12)))
        codes[i] = code
    return codes


@njit(**MAKES)
def _smallest_of_each(X, rows, group, n_groups):
    """Return the index of the lexicographically first row of each group."""
    first = np.full(n_groups, -1, dtype=np.int64)
    for j in range(len(rows)):
        i, best = rows[j], first[group[j]]
        if best < 0 or _comes_before(X[i], X[best]):
            first[group[j]] = i
    return first


@njit(**EXACT)
def _comes_before(row, other):
    for v in range(len(row)):
        if row[v] != other[v]:
            return row[v] < other[v]
    return False


def waiting_times(draw, rng, rates):
    """Draw an exponentially distributed waiting time with the given rate for each distinct row.

    The rows with the shortest times are a sample without replacement, drawn in proportion to
    the rates. If a rate is 0 or below about 2^-1020, the time is infinite.
    """
    if draw.codes is not None:
        return coded_times(draw.codes, new_salt(rng), rates)
    return _times(rng.exponential(size=len(rates)), rates)


def new_salt(rng):
    """Draw a salt; the same codes give different waiting times with different salts."""
    return rng.integers(2**64, dtype=np.uint64)


def coded_times(codes, salt, rates):
    """Compute the waiting times of distinct rows from their codes."""
    return _times(_exponentials(codes, salt), rates)


def _times(exponentials, rates):
    with np.errstate(divide="ignore", over="ignore"):
        return exponentials / rates


@njit(**MAKES)
def _exponentials(codes, salt):
    out = np.empty(len(codes))
    for g in range(len(codes)):
        bits = mix(codes[g] ^ salt) >> np.uint64(11)
        out[g] = -np.log((np.float64(bits) + 0.5) * 2.0**-53)
    return out


def first_to_come(times, count):
    """Return the positions of the shortest finite times, at most `count`, shortest first."""
    count = min(count, int(np.isfinite(times).sum()))
    chosen = np.argpartition(times, count - 1)[:count] if count < len(times) else None
    if chosen is None:
        return np.argsort(times, kind="stable")
    return chosen[np.argsort(times[chosen], kind="stable")]


def rows_to_draw(X, sample_weight, low, high):
    """Make a Draw in the order of codes, for rows with the extrema `low` and `high`."""
    return coded_draw(X, sample_weight, positive_spans(low, high), low.astype(np.float64))


def positive_spans(low, high):
    """Return half of the range of each feature; 1 if the feature is constant."""
    spans = half_span(low, high)
    return np.where(spans > 0, spans, 1.0).astype(np.float64)


def draw_sample(X, draw, size, rng):
    """Draw a sample of at most `size` distinct rows; return the rows and their weights."""
    times = waiting_times(draw, rng, draw.mass)
    chosen = first_to_come(times, size + 1)
    kept, mass = sample_weights(times[chosen], draw.mass[chosen], size)
    return np.ascontiguousarray(X[draw.first[chosen[:kept]]]), mass


def sample_weights(times, mass, size):
    """Return the number of rows in the sample, and weights with which they represent all rows.

    `times` and `mass` are those of the `size` + 1 rows with the shortest times. The shortest
    time not in the sample and the mass of a row determine the probability that the row is in
    the sample. Its weight is its mass divided by this probability (Horvitz and Thompson).
    """
    if len(times) <= size:
        return len(times), mass
    mass = mass[:size]
    return size, mass / -np.expm1(-mass * times[size])
