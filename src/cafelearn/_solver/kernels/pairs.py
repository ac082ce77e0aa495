"""Large data: columns of which a chunk of rows has no more than two values, as one-hot ones.

What a member says to its centre in such a column is one of two things, so it is enough to
count who says which. And a power of such a column is one of two numbers, so that it is a line:
|w (x - z)|^p = least + slope |x - near|, where `near` is the value nearer to z.
"""

import numpy as np

from cafelearn._solver.kernels.blocks import BLOCK
from cafelearn._solver.kernels.compiling import EXACT, MAKES, SUMS, VECTOR, njit
from cafelearn._solver.kernels.sums import (
    ABOVE,
    AT_ABOVE,
    AT_BELOW,
    BELOW,
    CURVE_DOWN,
    CURVE_UP,
    PULL_DOWN,
    PULL_UP,
    SPREAD,
    join_neighbours,
)
from cafelearn._solver.kernels.vectors import prefer_wide_vectors

# The rows of the values of a pair, which are NaN where there are more values than two.
LESS, MORE = 0, 1
# Fewer members than this are summed as others are: two powers of what was counted cost more.
WORTH_COUNTING = 64
FIRST_ROWS = 8


@njit(**MAKES)
def find_pairs(X, rows_per_chunk):
    """The values that each column takes in each chunk, if they are one or two.

    Returns an array (n_chunks, 2, m), see LESS.
    """
    n_rows, n_features = X.shape
    n_chunks = -(-n_rows // rows_per_chunk)
    pairs = np.empty((n_chunks, 2, n_features), dtype=X.dtype)
    odd = np.empty(n_features, dtype=np.int32)
    for chunk in range(n_chunks):
        start = chunk * rows_per_chunk
        stop = min(start + rows_per_chunk, n_rows)
        _find_values(pairs[chunk], odd, X, start, stop)
    return pairs


@njit(**EXACT)
def _find_values(values, odd, X, start, stop):
    """The values of one chunk. Most columns have many, which few rows tell."""
    n_features = X.shape[1]
    for v in range(n_features):
        values[LESS, v] = values[MORE, v] = X[start, v]
    left, first = n_features, start
    while first < stop:
        # Most values come in the first few rows, which are then looked at one by one.
        last = min(first + (FIRST_ROWS if first == start else BLOCK), stop)
        _mark_odd(odd, values, X, first, last)
        for v in range(n_features):
            if odd[v] == 0 or not is_pair(values, v):
                continue
            for i in range(first, last):
                x, less, more = X[i, v], values[LESS, v], values[MORE, v]
                if x in (less, more):
                    continue
                if less < more:
                    values[LESS, v] = values[MORE, v] = np.nan
                    left -= 1
                    break
                values[LESS, v], values[MORE, v] = min(less, x), max(more, x)
        if left == 0:
            return
        first = last


@njit(**EXACT)
def is_pair(values, v):
    """Whether a column takes one or two values."""
    return not np.isnan(values[LESS, v])


@njit(**VECTOR)
def _mark_odd(odd, values, X, first, last):
    """Mark the features of which some rows have other values."""
    prefer_wide_vectors()
    for v in range(X.shape[1]):
        odd[v] = 0
    for i in range(first, last):
        for v in range(X.shape[1]):
            odd[v] |= (X[i, v] != values[LESS, v]) & (X[i, v] != values[MORE, v])


@njit(**SUMS)
def count_pairs(counts, features, columns, weights, values, size):
    """Add the sample weights of a block of rows to those at each value of their pairs."""
    prefer_wide_vectors()
    zero = columns.dtype.type(0)
    for v in features:
        less, more = values[LESS, v], values[MORE, v]
        at_less, at_more = zero, zero
        for b in range(size):
            at_less += weights[b] if columns[v, b] == less else zero
            at_more += weights[b] if columns[v, b] == more else zero
        counts[LESS, v] += at_less
        counts[MORE, v] += at_more if less < more else zero


@njit(**EXACT)
def add_counted(sums, l, features, counts, values, centers, scales, p):
    """Add the members of cluster l that were counted to its terms and extrema."""
    for v in features:
        for side in (LESS, MORE):
            weight, x = counts[side, v], np.float64(values[side, v])
            if weight > 0:
                sums.low[l, v] = min(sums.low[l, v], x)
                sums.high[l, v] = max(sums.high[l, v], x)
                _add_members_at(sums.terms[l], v, x, weight, centers[l, v], scales[l, v], p)


@njit(**EXACT)
def _add_members_at(terms, v, x, weight, center, scale, p):
    """Add members that have all the same value, see kernels.sums."""
    t = (x - center) * scale
    power = weight * abs(t) ** (p - 2) if t != 0 else 0.0
    terms[SPREAD, v] += power * (t * t)
    if p < 2 or t < 0:
        terms[CURVE_DOWN, v] += power
        terms[PULL_DOWN, v] -= power * t
    else:
        terms[CURVE_UP, v] += power
        terms[PULL_UP, v] += power * t
    if x <= center:
        terms[BELOW, v], terms[AT_BELOW, v] = join_neighbours(
            terms[BELOW, v], terms[AT_BELOW, v], x, weight, 1.0
        )
    else:
        terms[ABOVE, v], terms[AT_ABOVE, v] = join_neighbours(
            terms[ABOVE, v], terms[AT_ABOVE, v], x, weight, -1.0
        )
