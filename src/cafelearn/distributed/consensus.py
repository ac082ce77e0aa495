"""CAFE's choice of the exponent, from tables that are summed over blocks."""

import numpy as np

from cafelearn.consensus import Consensus
from cafelearn.placing import assign, make_model
from cafelearn.theory import normalized_objective


def count_pairs(rows, models):
    """tables[i, j, a, b]: rows of label a by model i and of label b by model j < i."""
    labels = [assign(rows.X, model)[0] for model in models]
    k = len(models[0].centers)
    tables = np.zeros((len(labels), len(labels), k, k), dtype=np.int64)
    for i, ours in enumerate(labels):
        for j in range(i):
            counts = np.bincount(ours * np.int64(k) + labels[j], minlength=k * k)
            tables[i, j] = counts.reshape(k, k)
    return tables


def add_tables(parts):
    """Tables of all blocks."""
    return np.sum(parts, axis=0)


def adjusted_rand_index(table):
    """The adjusted Rand index of two clusterings, from the table of their labels."""
    # Python's integers, because products of numbers of rows exceed 64 bits.
    table = table.astype(object)
    n_rows, squares = table.sum(), (table * table).sum()
    rows, columns = (table.sum(axis=1) ** 2).sum(), (table.sum(axis=0) ** 2).sum()
    together = squares - n_rows
    only_first, only_second = rows - squares, columns - squares
    apart = n_rows**2 - only_first - only_second - squares
    if only_first == 0 and only_second == 0:
        return 1.0
    return (
        2.0
        * (together * apart - only_first * only_second)
        / (
            (together + only_first) * (only_first + apart)
            + (together + only_second) * (only_second + apart)
        )
    )


def agreement(models, blocks):
    """The matrix of adjusted Rand indices between the clusterings of fitted models."""
    placed = [
        make_model(m.cluster_centers_, m.feature_weights_, m.p, m._scale, blocks.dtype)
        for m in models
    ]
    tables = blocks.reduce(count_pairs, add_tables, placed)
    matrix = np.eye(len(models))
    for i in range(len(models)):
        for j in range(i):
            matrix[i, j] = matrix[j, i] = adjusted_rand_index(tables[i, j])
    return matrix


def choose(models, blocks):
    """`cafelearn.consensus.choose` without the labels."""
    matrix = agreement(models, blocks)
    total = matrix.sum(axis=1) - 1

    def rank(i):
        position = normalized_objective(models[i].dispersions_, models[i].p)
        return -round(total[i], 12), round(position, 12), models[i].p

    best = min(range(len(models)), key=rank)
    return Consensus(float(models[best].p), matrix)
