"""Fit CAFE to a Dask collection."""

from functools import partial

import numpy as np
from sklearn import config_context

from cafelearn.base.seeds import seed_integer, seed_sequence
from cafelearn.choice.answer import best_starts, fit_mixture
from cafelearn.choice.diagnosis import warn_of
from cafelearn.choice.selection import MIXTURE, add_tables, contingency_tables
from cafelearn.data.validation import check_unscaled, ordinary_units
from cafelearn.data.variables import (
    largest_sums,
    set_variables,
    several_columns,
    variable_codes,
)
from cafelearn.distributed.blocks import scaled_by_each
from cafelearn.distributed.extents import measure
from cafelearn.distributed.fitting import fit_models, known_lengths
from cafelearn.distributed.inputs import make_blocks
from cafelearn.distributed.lazy import blockwise, detached, input_width
from cafelearn.distributed.moments import (
    combine_moments,
    find_moments,
    fit_pca,
    fit_scaler,
    fits_from_moments,
    moments_of,
)
from cafelearn.distributed.sampling import sample
from cafelearn.estimators.candidates import make_candidates, make_scaler
from cafelearn.estimators.scaling import scale_rows
from cafelearn.estimators.variable_scaling import scale_as_one, scaling_key
from cafelearn.extraction.fitting import extractor_of, fit_extractor, width_of
from cafelearn.extraction.rescaling import spread_sums, weights_of
from cafelearn.kmeans.placing import assign, make_model
from cafelearn.mixture.em import add_sums
from cafelearn.mixture.model import prepare, sum_batches
from cafelearn.mixture.settings import LIMITS


def fit_cafe(estimator, X):
    """Fit a CAFE to a Dask collection."""
    candidates = make_candidates(estimator)
    blocks = make_blocks(estimator, X)
    extents = measure(estimator, blocks)
    seeds = seed_sequence(estimator.random_state).spawn(4)
    for_models, for_extractor, for_search, for_answer = seeds
    extractor = extractor_of(estimator, blocks, seed_integer(for_extractor))
    if any(candidate.scaling is None for candidate in candidates):
        check_unscaled(extents.low, extents.high, estimator)
    units = ordinary_units(extents.low, extents.high)
    moments = blocks.reduce(find_moments, combine_moments, units)
    set_variables(estimator)
    codes, sums = variable_codes(estimator), None
    if several_columns(codes).any():
        request = extents.low, extents.high, codes
        sums = blocks.reduce(find_largest_sums, _largest_of_all, request)
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
    rows = sample(blocks, for_search, at_most=LIMITS.search_rows)
    # Columns without any value in the sample become constant.
    rows = np.where(np.isnan(rows).all(axis=0), extents.low, rows)
    prepared = prepare(rows, np.ones(len(rows)), estimator._column_groups())
    places = {}

    def fit(models, filled):
        places.update(zip(map(id, models), (scaled.scaler for scaled, _ in seen), strict=True))
        return fit_models(models, blocks, seen, estimator.verbose, filled_starts=filled)

    def label(models):
        return [model.predict(scale_rows(places[id(model)], rows)) for model in models]

    models, found, scores = estimator._fit_candidates(
        candidates, for_models, fit, label, prepared, extents.gaps
    )
    placed = [
        (_model(m, blocks.dtype, extents.gaps), scaled.scaler)
        for m, (scaled, _) in zip(models, seen, strict=True)
    ]
    tables = blocks.reduce(count_pairs, add_tables, placed)
    chosen = estimator._choose(candidates, models, found, scores, tables)
    scaled, scaled_extents = seen[chosen]
    estimator.scaler_ = scaled.scaler
    if estimator.selection == MIXTURE:
        starts = label([models[i] for i in best_starts(scores)])
        _fit_mixture(estimator, blocks, prepared, starts, for_answer)
        _weigh(estimator, blocks, scaled_extents, codes)
    else:
        estimator._judge(prepared, label([models[chosen]])[0], for_answer)
    if estimator._input == "distances":
        _balance_parts(estimator, blocks)
    _fit_extractor(estimator, extractor, blocks, for_extractor)
    _set_labels(estimator, blocks, [each.scaler for each, _ in seen])
    warn_of(estimator.diagnosis_, type(estimator).__name__)
    return estimator


def _fit_mixture(estimator, blocks, prepared, starts, seed):
    """Fit the mixture: the search runs on a sample, the last iterations on all rows."""

    def total(run, request):
        return blocks.reduce(sum_block, add_sums, (run, request))

    refine = len(prepared.weight) < len(blocks)
    estimator._set_mixture(fit_mixture(estimator, prepared, starts, seed, total, refine))


def sum_block(rows, order):
    """Add up the results of a function for the rows of one block; `order` is (run, request)."""
    return sum_batches(rows.X, rows.sample_weight, *order)


def _weigh(estimator, blocks, extents, codes):
    """Set the weights and sizes of the clusters; `extents` are those of the scaled rows."""
    low, high = extents.low, extents.high
    order = detached(estimator), low / 2 + high / 2
    sums = blocks.reduce(sum_spreads, add_sums, order)
    estimator.feature_weights_ = weights_of(sums, high - low, codes)
    estimator._mass, estimator._members = sums.mass, None


def sum_spreads(rows, order):
    """Compute the SpreadSums of one block; `order` is (estimator, centre of scaled rows)."""
    estimator, center = order
    labels, k = estimator._assign(rows.X), estimator.n_clusters
    return spread_sums(estimator._scale(rows.X), labels, k, rows.sample_weight, center)


def _model(model, dtype, gaps):
    """Make a Model that assigns rows as a fitted MinkowskiWeightedKMeans does."""
    centers, weights = model.cluster_centers_, model.feature_weights_
    typical = detached(model)._gap_distances if gaps else None
    return make_model(centers, weights, model.p, model._scale, dtype, typical)


def count_pairs(rows, placed):
    """Compute the contingency tables of one block; `placed` is [(Model, scaler), ...]."""
    models, scalers = zip(*placed, strict=True)
    copies = scaled_by_each(scalers, rows.X)
    labellings = [assign(X, model)[0] for X, model in zip(copies, models, strict=True)]
    return contingency_tables(labellings, [len(model.centers) for model in models])


def find_largest_sums(rows, request):
    """Compute the `largest_sums` of a block; `request` is (low, high, codes)."""
    return largest_sums(rows.X, *request)


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
    """Compute the inputs of the extractor of a fitted CAFE."""

    def __init__(self, estimator):
        self.estimator = estimator

    def __call__(self, X):
        if not len(X):
            return np.empty((0, input_width(self.estimator)), X.dtype)
        with config_context(assume_finite=True):
            return self.estimator._rescaled(X)


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
    if estimator.selection == MIXTURE:
        estimator.labels_ = blockwise(estimator, "predict", array, dtype)


def _scale(scaler, dtype, block):
    return scale_rows(scaler, np.ascontiguousarray(block, dtype=dtype))
