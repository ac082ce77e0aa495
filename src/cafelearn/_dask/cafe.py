"""Fit CAFE to a Dask collection."""

from functools import partial

import numpy as np
from sklearn import config_context

from cafelearn._candidates import make_candidates, make_scaler
from cafelearn._dask.blocks import scaled_by_each
from cafelearn._dask.extents import measure
from cafelearn._dask.fitting import fit_models, known_lengths
from cafelearn._dask.inputs import make_blocks
from cafelearn._dask.lazy import blockwise, detached
from cafelearn._dask.moments import (
    combine_moments,
    find_moments,
    fit_pca,
    fit_scaler,
    fits_from_moments,
    moments_of,
)
from cafelearn._dask.sampling import sample
from cafelearn._scaling import scale_rows
from cafelearn._seeds import seed_integer, seed_sequence
from cafelearn._solver.placing import assign, make_model
from cafelearn._structure import ROWS
from cafelearn._validation import check_unscaled, ordinary_units
from cafelearn._variable_scaling import scale_as_one, scaling_key
from cafelearn._variables import largest_sums, set_variables, several_columns, variable_codes
from cafelearn.extraction.fitting import extractor_of, fit_extractor, width_of
from cafelearn.selection import add_tallies, count_extremes, gaps_differ, make_frame, tally


def fit_cafe(estimator, X):
    """Fit a CAFE to a Dask collection."""
    candidates = make_candidates(estimator)
    blocks = make_blocks(estimator, X)
    extents = measure(estimator, blocks)
    seeds = seed_sequence(estimator.random_state).spawn(3)
    for_models, for_extractor, for_test = seeds
    extractor = extractor_of(estimator, blocks, seed_integer(for_extractor))
    if any(candidate.scaling is None for candidate in candidates):
        check_unscaled(extents.low, extents.high, estimator)
    units = ordinary_units(extents.low, extents.high)
    moments = blocks.reduce(find_moments, combine_moments, units)
    set_variables(estimator)
    codes, sums, one_hot = variable_codes(estimator), None, None
    if several_columns(codes).any():
        request = extents.low, extents.high, codes
        sums, differ = blocks.reduce(find_largest_sums, _largest_of_all, request)
        one_hot = np.where(differ > 0, np.inf, sums)
    scalers, scalings = {}, {}
    for key, candidate in {scaling_key(c, codes): c for c in candidates}.items():
        scaler = make_scaler(candidate.scaling)
        scalers[key] = _fit_scaler(scaler, moments, extents, units, blocks, for_extractor)
        if sums is not None:
            scale_as_one(scaler, candidate, codes, extents.low, extents.high, sums)
        scalings[key] = blocks, extents
        if scalers[key] is not None:
            scaled = blocks.scaled(scalers[key])
            scalings[key] = scaled, measure(estimator, scaled)
    seen = [scalings[scaling_key(c, codes)] for c in candidates]
    variance = moments.scatter / moments.count
    shares = blocks.reduce(find_extremes, sum, (extents.low, extents.high)) / moments.count
    low, high = extents.low, extents.high
    frame = make_frame(moments.mean, variance, low, high, shares, codes, one_hot, units)

    def fit(models, filled):
        return fit_models(models, blocks, seen, estimator.verbose, filled_starts=filled)

    def count(models):
        placed = [
            (_model(m, blocks.dtype, extents.gaps), scaled.scaler)
            for m, (scaled, _) in zip(models, seen, strict=True)
        ]
        return blocks.reduce(tally_block, add_tallies, (placed, frame))

    models, found, counts = estimator._fit_candidates(
        candidates, for_models, fit, count, frame, extents.gaps
    )
    chosen = estimator._choose(candidates, models, found, counts, frame)
    estimator.scaler_ = scalers[scaling_key(candidates[chosen], codes)]
    if estimator.rescaling == "distances":
        _balance_parts(estimator, seen[chosen][0])
    _fit_extractor(estimator, extractor, seen[chosen][0], for_extractor)
    _set_labels(estimator, blocks, [scalers[scaling_key(c, codes)] for c in candidates])
    few = sample(blocks, for_extractor, at_most=ROWS) if estimator.n_permutations > 0 else None
    estimator._diagnose(few, for_test)
    return estimator


def _model(model, dtype, gaps):
    """Make a Model that assigns rows as a fitted MinkowskiWeightedKMeans does."""
    centers, weights = model.cluster_centers_, model.feature_weights_
    typical = detached(model)._gap_distances if gaps else None
    return make_model(centers, weights, model.p, model._scale, dtype, typical)


def tally_block(rows, request):
    """Compute the Tally of one block; `request` is ([(Model, scaler), ...], Frame)."""
    placed, frame = request
    models, scalers = zip(*placed, strict=True)
    copies = scaled_by_each(scalers, rows.X)
    labellings = [assign(X, model)[0] for X, model in zip(copies, models, strict=True)]
    sizes = [len(model.centers) for model in models]
    return tally(rows.X, labellings, sizes, frame, rows.sample_weight)


def find_extremes(rows, extremes):
    """Compute the mass of the rows of one block at the two extremes of each feature."""
    return count_extremes(rows.X, rows.sample_weight, *extremes)


def find_largest_sums(rows, request):
    """Stack `largest_sums` and `gaps_differ` of a block; `request` is (low, high, codes)."""
    return np.stack([largest_sums(rows.X, *request), gaps_differ(rows.X, request[-1])])


def _largest_of_all(parts):
    return np.max(parts, axis=0)


def _balance_parts(estimator, blocks):
    rescale = Rescaling(detached(estimator))
    moments = blocks.reduce(find_rescaled_moments, combine_moments, (rescale, False))
    estimator._balance_parts(moments.scatter / moments.count)


def _fit_scaler(scaler, moments, extents, units, blocks, seed):
    if scaler is not None and not fit_scaler(scaler, moments, extents, units):
        scaler.fit(sample(blocks, seed))
    return scaler


def _fit_extractor(estimator, extractor, blocks, seed):
    """Fit the extractor from the moments of the rescaled rows if possible, else to a sample."""
    rescale = Rescaling(detached(estimator))
    if fits_from_moments(extractor):
        moments = blocks.reduce(find_rescaled_moments, combine_moments, (rescale, True))
        estimator.extractor_ = fit_pca(extractor, moments, blocks.dtype)
        estimator._n_features_out = extractor.n_components_
    else:
        rows = sample(blocks, seed, rescale, at_most=1 if extractor is None else None)
        estimator.extractor_ = fit_extractor(extractor, rows)
        estimator._n_features_out = width_of(estimator.extractor_, rows)


class Rescaling:
    """Rescale scaled rows as a fitted CAFE does."""

    def __init__(self, estimator):
        self.estimator = estimator

    def __call__(self, scaled):
        labels = None
        with config_context(assume_finite=True):
            if self.estimator.rescaling != "distances" and len(scaled):
                labels = self.estimator.model_.predict(scaled)
            elif self.estimator.rescaling != "distances":
                return scaled
            return self.estimator._rescale(scaled, labels)


def find_rescaled_moments(rows, order):
    """Compute the moments of the rescaled rows of a block; `order` is (rescale, products)."""
    rescale, products = order
    return moments_of(rescale(rows.X), products=products)


def _set_labels(estimator, blocks, scalers):
    """Set lazy labels on all models; the estimator gets those of the chosen model."""
    array, dtype = known_lengths(blocks), blocks.dtype
    for model, scaler in zip(estimator.models_, scalers, strict=True):
        scaled = array
        if scaler is not None:
            scaled = array.map_blocks(partial(_scale, scaler, dtype), dtype=dtype)
        model.labels_ = blockwise(model, "predict", scaled, dtype)
    estimator.labels_ = estimator.model_.labels_


def _scale(scaler, dtype, block):
    return scale_rows(scaler, np.ascontiguousarray(block, dtype=dtype))
