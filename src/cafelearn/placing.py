"""Place rows among fitted centres: labels and distances, some rows at a time."""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from cafelearn.kernels.assign import (
    Geometry,
    assign_chunk,
    chunk_rows,
    distance_chunk,
    make_geometry,
)


def _in_chunks(function, n_rows, rows_per_chunk, n_threads):
    """Call function(first, last) for every chunk of rows, on one thread or several."""
    chunks = [
        (first, min(first + rows_per_chunk, n_rows))
        for first in range(0, n_rows, rows_per_chunk)
    ]
    if n_threads > 1 and len(chunks) > 1:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(lambda chunk: function(*chunk), chunks))
    else:
        for chunk in chunks:
            function(*chunk)


class Model(NamedTuple):
    """What is needed to place new rows: a fit without its history."""

    centers: np.ndarray
    scaled_weights: np.ndarray
    geometry: Geometry
    scale: float


def make_model(centers, weights, p, scale, dtype):
    """A Model for rows of `dtype`, with the very numbers that the descent ends with."""
    centers = np.ascontiguousarray(centers, dtype=dtype)
    weights = np.ascontiguousarray(weights, dtype=dtype)
    scaled = weights * centers.dtype.type(scale)
    return Model(centers, scaled, make_geometry(p, dtype), float(scale))


def assign(X, model, n_threads=1):
    """Nearest centre of each row, and the distance (Eq. 2 without its power) to it."""
    labels = np.empty(len(X), dtype=np.int32)
    nearest = np.empty(len(X), dtype=X.dtype)

    def run(first, last):
        assign_chunk(
            labels[first:last],
            nearest[first:last],
            X,
            first,
            last,
            model.centers,
            model.scaled_weights,
            model.geometry,
        )

    _in_chunks(run, len(X), chunk_rows(X.shape[1]), n_threads)
    return labels, _proper(nearest, model)


def distances(X, model, n_threads=1):
    """Distance (Eq. 2 without its power) of each row to each centre."""
    out = np.empty((len(X), len(model.centers)), dtype=X.dtype)

    def run(first, last):
        distance_chunk(
            out[first:last],
            X,
            first,
            last,
            model.centers,
            model.scaled_weights,
            model.geometry,
        )

    _in_chunks(run, len(X), chunk_rows(X.shape[1]), n_threads)
    return _proper(out, model)


def _proper(distance, model):
    """Undo the power and the scale, in place."""
    if not model.geometry.rooted:
        np.power(distance, 1 / model.geometry.p, out=distance)
    distance /= distance.dtype.type(model.scale)
    return distance
