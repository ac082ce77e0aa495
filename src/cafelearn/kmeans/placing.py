"""Labels, distances and margins of rows for fitted centres."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from cafelearn.data.gaps import has_gaps
from cafelearn.kmeans.kernels.assign import distance_chunk
from cafelearn.kmeans.kernels.blocks import make_scratch
from cafelearn.kmeans.kernels.gaps import gapped_distances
from cafelearn.kmeans.kernels.geometry import Geometry, chunk_rows, make_geometry
from cafelearn.kmeans.scales import extreme_unit


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
    """The parts of a fit needed to assign new rows."""

    centers: np.ndarray  # times `unit`
    scaled_weights: np.ndarray  # times `scale`
    geometry: Geometry
    scale: float
    unit: float  # power of two that rows are multiplied by first; 1 unless the data is extreme
    typical: Callable | None  # returns the distances substituted where values are missing


def make_model(centers, weights, p, scale, dtype, typical=None):
    """Make a Model that assigns rows of `dtype` exactly as the last pass of a descent does.

    `typical` is needed only if values are missing. It is a function that returns the distances
    substituted for them, by cluster and feature.

    The other arguments are checked, because fitted attributes may come from a file or be set by
    hand, and compiled code does not check its arguments.
    """
    centers = _checked(centers, "cluster centres", dtype)
    weights = _checked(weights, "feature weights", dtype)
    if weights.shape != centers.shape:
        raise ValueError(
            f"cluster centres of shape {centers.shape} need feature weights of the same "
            f"shape, got {weights.shape}."
        )
    if (weights < 0).any():
        raise ValueError("feature weights must not be negative.")
    if not (1 < p < np.inf and 0 < scale < np.inf):
        raise ValueError(f"the exponent p={p!r} or the scale {scale!r} is out of range.")
    unit = extreme_unit(scale, dtype)
    scaled = weights * centers.dtype.type(scale / unit)
    if unit != 1:
        with np.errstate(over="ignore"):
            centers = _checked(centers * centers.dtype.type(unit), "cluster centres", dtype)
    return Model(centers, scaled, make_geometry(p, dtype), float(scale / unit), unit, typical)


def _checked(numbers, name, dtype):
    """Convert to a non-empty matrix of finite numbers, or raise."""
    try:
        with np.errstate(over="ignore"):
            numbers = np.ascontiguousarray(numbers, dtype=dtype)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers.") from None
    if numbers.ndim != 2 or numbers.size == 0:
        raise ValueError(f"{name} must be a matrix, got an array of shape {numbers.shape}.")
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be finite numbers in {np.dtype(dtype).name}.")
    return numbers


def assign(X, model, n_threads=1):
    """Find the nearest centre of each row and the distance (the p-th root of Eq. 2) to it."""
    check_width(X, model)
    labels = np.empty(len(X), dtype=np.int32)
    nearest = np.empty(len(X), dtype=X.dtype)

    def run(first, last):
        rows = _rows(X[first:last], model)
        if model.typical is not None and has_gaps(rows):
            away = _gapped_distances_of(rows, model)
            labels[first:last], nearest[first:last] = away.argmin(axis=1), away.min(axis=1)
            return
        labels[first:last], nearest[first:last] = nearest_centers(
            rows, model.centers, model.scaled_weights, model.geometry
        )
        far = first + _far_rows(rows, nearest[first:last, None], model)
        _proper(nearest[first:last], model)
        if len(far):
            away, unit = _far_distances(X[far], model)
            labels[far] = np.argmin(away, axis=1)
            nearest[far] = _in_units(away.min(axis=1), unit[:, 0], X.dtype)

    _in_chunks(run, len(X), chunk_rows(X.shape[1]), n_threads)
    return labels, nearest


def distances(X, model, n_threads=1):
    """Compute the distance (the p-th root of Eq. 2) of each row to each centre."""
    check_width(X, model)
    out = np.empty((len(X), len(model.centers)), dtype=X.dtype)

    def run(first, last):
        rows = _rows(X[first:last], model)
        if model.typical is not None and has_gaps(rows):
            out[first:last] = _gapped_distances_of(rows, model)
            return
        out[first:last] = _distances_of(
            rows, model.centers, model.scaled_weights, model.geometry
        )
        far = first + _far_rows(rows, out[first:last], model)
        _proper(out[first:last], model)
        if len(far):
            out[far] = _in_units(*_far_distances(X[far], model), X.dtype)

    _in_chunks(run, len(X), chunk_rows(X.shape[1]), n_threads)
    return out


def check_width(X, model):
    """Raise unless rows and centres have the same number of features."""
    if X.shape[1] != model.centers.shape[1]:
        raise ValueError(
            f"rows of {X.shape[1]} features cannot be placed among cluster centres of "
            f"{model.centers.shape[1]} features."
        )


def _rows(X, model):
    """Convert rows to the unit of the model."""
    if model.unit == 1:
        return X
    with np.errstate(over="ignore", under="ignore"):
        return X * X.dtype.type(model.unit)


def _distances_of(X, centers, weights, geometry):
    """Compute distances of rows to each centre (Eq. 2, or its p-th root if geometry.rooted)."""
    out = np.empty((len(X), len(centers)), dtype=X.dtype)
    centers, weights = centers.astype(np.float64), weights.astype(np.float64)
    scratch = make_scratch(X, 1, len(X), geometry.p)
    distance_chunk(out, X, centers, weights, geometry, scratch)
    return out


def _gapped_distances_of(X, model):
    """Compute the distances of rows with missing values to each centre, in float64."""
    typical = model.typical() * model.unit
    typical = _checked(typical, "distances substituted for missing values", np.float64)
    if typical.shape != model.centers.shape or (typical < 0).any():
        raise ValueError(
            "distances substituted for missing values must not be negative and must have the "
            f"shape of the cluster centres, {model.centers.shape}; got {typical.shape}."
        )
    out = distances_with_gaps(X, model.centers, model.scaled_weights, typical, model.geometry.p)
    return out / (model.scale * model.unit)


def distances_with_gaps(X, centers, weights, typical, p):
    """Compute distances of rows with missing values to each centre, in float64.

    `typical` has the distances substituted for missing values, by cluster and feature.
    """
    cells = np.stack([centers, weights, weights], axis=1).astype(np.float64)
    out = np.empty((len(X), len(cells)))
    gapped_distances(out, X, cells, typical, p)
    return out


def nearest_centers(X, centers, weights, geometry):
    """Find the nearest centre of each row (the first of ties) and the distance to it.

    The distance is Eq. 2, or its p-th root if geometry.rooted.
    """
    found = _distances_of(X, centers, weights, geometry)
    labels = found.argmin(axis=1).astype(np.int32)
    return labels, found[np.arange(len(X)), labels]


def _proper(distance, model):
    """Convert scaled p-th powers of distances, or scaled distances, to distances, in place."""
    if not model.geometry.rooted:
        np.power(distance, 1 / model.geometry.p, out=distance)
    with np.errstate(over="ignore"):
        distance /= distance.dtype.type(model.scale)
        if model.unit != 1:
            distance /= distance.dtype.type(model.unit)


def _far_rows(rows, found, model):
    """Return the positions of the rows whose distances to the power p have overflowed."""
    limit = np.finfo(rows.dtype).max / 4
    # A power that would overflow is either cut off near this limit or infinite.
    far = ~(found < limit / 4).all(axis=1)
    # Differences overflow only if the centres themselves are near the largest float.
    if np.abs(model.centers).max() > limit / 2**60:
        far |= (np.abs(rows) > limit).any(axis=1)
    elif model.unit != 1:
        far |= ~np.isfinite(rows).all(axis=1)
    return np.flatnonzero(far)


def _far_distances(X, model):
    """Compute the distances of rows to each centre, times a power of two for each row.

    Each term is divided by the largest one of its sum, so that powers do not overflow. Return
    the distances in float64, and the powers of two.
    """
    X, centers = X.astype(np.float64), model.centers.astype(np.float64) / model.unit
    weights = model.scaled_weights.astype(np.float64) / model.scale
    largest = np.maximum(np.abs(X).max(axis=1, keepdims=True), np.abs(centers).max())
    unit = np.ldexp(1.0, -1 - np.frexp(np.maximum(largest, np.finfo(np.float64).tiny))[1])
    out = np.empty((len(X), len(centers)))
    X = X * unit
    for l in range(len(centers)):
        terms = weights[l] * np.abs(X - centers[l] * unit)
        peak = terms.max(axis=1, keepdims=True)
        terms /= np.where(peak > 0, peak, 1.0)
        out[:, l] = (terms**model.geometry.p).sum(axis=1) ** (1 / model.geometry.p)
        out[:, l] *= peak[:, 0]
    return out, unit


def _in_units(away, unit, dtype):
    """Divide distances by their powers of two; those that overflow become infinite."""
    with np.errstate(over="ignore"):
        return (away / unit).astype(dtype)


def margins(distances):
    """Compute 1 - a / b for the distances a <= b to the nearest two centres."""
    if distances.shape[1] == 1:
        return np.ones(len(distances), dtype=distances.dtype)
    two = np.partition(distances, 1, axis=1)
    second = np.where(two[:, 1] > 0, two[:, 1], 1)
    return 1 - np.where(two[:, 1] > 0, two[:, 0], 1) / second
