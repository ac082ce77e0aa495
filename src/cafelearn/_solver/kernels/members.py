"""Small data, gathered by cluster once per iteration for all looks at the centres."""

from typing import NamedTuple

import numpy as np

from cafelearn._solver.kernels.blocks import block_rows, buffer, padded, sort_members, transpose
from cafelearn._solver.kernels.brackets import ALL, list_open
from cafelearn._solver.kernels.compiling import EXACT, MAKES, njit
from cafelearn._solver.kernels.pulls import add_members


class Members(NamedTuple):
    """The rows of small data, gathered and transposed once for all looks at the centres."""

    columns: np.ndarray  # (n_blocks, m, a block + a cache line)
    weights: np.ndarray  # (n_blocks, a block + a cache line), 0 for padding
    cluster: np.ndarray  # (n_blocks,)
    size: np.ndarray  # (n_blocks,) rows in the block
    first: np.ndarray  # (n_chunks + 1,) the first block of each chunk
    features: np.ndarray  # (m,) room for the features a look is about
    powers: np.ndarray  # and for their powers


# Data of more numbers than this is gathered anew for each look.
SMALL = 2**21


def empty_members(X, n_clusters, rows_per_chunk, p):
    """Room for the members of these rows, or for none if they are too many."""
    n_rows, n_features = X.shape
    n_chunks = -(-n_rows // rows_per_chunk)
    n_blocks = n_rows // block_rows(X) + n_chunks * n_clusters
    if n_blocks * block_rows(X) * n_features > SMALL:
        n_blocks = n_chunks = 0
    columns = buffer(n_blocks * n_features, X)
    width = columns.shape[1]
    return Members(
        columns.reshape(n_blocks, n_features, width),
        np.zeros((n_blocks, width), dtype=X.dtype),
        np.zeros(n_blocks, dtype=np.int64),
        np.zeros(n_blocks, dtype=np.int64),
        np.zeros(n_chunks + 1, dtype=np.int64),
        np.zeros(n_features, dtype=np.int64),
        buffer(n_features if p > 2 else 1, X),
    )


@njit(**MAKES)
def gather_members(members, labels, X, sample_weight, rows_per_chunk, n_clusters):
    """Fill `members` with the blocks that member_chunk would make of each chunk."""
    features = np.arange(X.shape[1])
    block, at_most = 0, block_rows(X)
    for chunk in range(len(members.first) - 1):
        start = chunk * rows_per_chunk
        stop = min(start + rows_per_chunk, len(X))
        rows_by_cluster, begin = sort_members(labels, sample_weight, start, stop, n_clusters)
        for l in range(n_clusters):
            for first in range(begin[l + 1], begin[l + 2], at_most):
                size = min(at_most, begin[l + 2] - first)
                rows = rows_by_cluster[first : first + size]
                transpose(members.columns[block], X, rows, size, features)
                for b in range(padded(size)):
                    members.weights[block, b] = sample_weight[rows[b]] if b < size else 0
                members.cluster[block], members.size[block] = l, size
                block += 1
        members.first[chunk + 1] = block


@njit(**EXACT)
def gathered_chunk(sums, members, chunk, centers, brackets, geometry):
    """member_chunk, without ranges, for a chunk that has been gathered."""
    cluster, count = np.int64(-1), 0
    for block in range(members.first[chunk], members.first[chunk + 1]):
        if members.cluster[block] != cluster:
            cluster = members.cluster[block]
            count = list_open(members.features, brackets.open[cluster], ALL)
        if count == 0:
            continue
        row_weights = members.weights[block]
        for b in range(members.size[block]):
            sums.mass[cluster] += row_weights[b]
        add_members(
            sums.terms,
            cluster,
            members.features[:count],
            members.columns[block],
            row_weights,
            members.powers,
            centers,
            brackets.scale,
            padded(members.size[block]),
            geometry,
        )
