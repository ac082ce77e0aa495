"""Fit CAFE to a Dask collection."""

from functools import partial

import numpy as np
from sklearn import config_context

from cafelearn._seeds import seed_integer, seed_sequence
from cafelearn.cafe import check_exponents, check_found, extractor_of, scaler_of, width_of
from cafelearn.consensus import make_models
from cafelearn.distributed.consensus import choose
from cafelearn.distributed.fitting import fit_models, known_lengths, measure
from cafelearn.distributed.inputs import make_blocks
from cafelearn.distributed.lazy import blockwise, detached
from cafelearn.distributed.moments import (
    combine_moments,
    find_moments,
    fit_pca,
    fit_scaler,
    fits_from_moments,
    moments_of,
)
from cafelearn.distributed.sampling import sample
from cafelearn.distributed.starts import check_init


def fit_cafe(estimator, X):
    """Fit an estimator to a Dask collection.

    Parameters
    ----------
    estimator : CAFE
        Its parameters have been checked.
    X : dask.array.Array or dask.dataframe.DataFrame
        The rows.

    Returns
    -------
    estimator : CAFE
        The same, fitted.
    """
    exponents = check_exponents(estimator.p)
    check_init(estimator)
    blocks = make_blocks(estimator, X)
    extents = measure(estimator, blocks)
    for_models, for_extractor = seed_sequence(estimator.random_state).spawn(2)
    extractor = extractor_of(estimator, blocks, seed_integer(for_extractor))
    estimator.scaler_ = _fit_scaler(scaler_of(estimator.scaling), blocks, for_extractor)
    if estimator.scaler_ is not None:
        blocks = blocks.scaled(estimator.scaler_)
        extents = measure(estimator, blocks)
    models = make_models(exponents, for_models, **estimator._model_options())
    found = fit_models(models, blocks, extents, estimator.verbose)
    estimator.p_, estimator.agreement_ = choose(models, blocks)
    estimator.models_ = dict(zip(exponents, models, strict=True))
    check_found(estimator, found[exponents.index(estimator.p_)])
    model = estimator.models_[estimator.p_]
    estimator.feature_weights_, estimator.n_iter_ = model.feature_weights_, model.n_iter_
    _fit_extractor(estimator, extractor, blocks, for_extractor)
    _set_labels(estimator, blocks)
    return estimator


def _fit_scaler(scaler, blocks, seed):
    if scaler is None:
        return None
    moments = blocks.reduce(find_moments, combine_moments, None)
    if not fit_scaler(scaler, moments, blocks.dtype):
        scaler.fit(sample(blocks, seed))
    return scaler


def _fit_extractor(estimator, extractor, blocks, seed):
    """From the moments of the rescaled rows if that is possible, else from a sample."""
    rescale = Rescaling(detached(estimator))
    if fits_from_moments(extractor):
        moments = blocks.reduce(find_rescaled_moments, combine_moments, rescale)
        estimator.extractor_ = fit_pca(extractor, moments, blocks.dtype)
        estimator._n_features_out = extractor.n_components_
    else:
        rows = sample(blocks, seed, rescale)
        estimator.extractor_ = extractor.fit(rows)
        estimator._n_features_out = width_of(estimator.extractor_, rows)


class Rescaling:
    """Rescales scaled rows by the weights of their clusters."""

    def __init__(self, estimator):
        self.estimator = estimator

    def __call__(self, scaled):
        if len(scaled) == 0:
            return scaled
        with config_context(assume_finite=True):
            labels = self.estimator.models_[self.estimator.p_].predict(scaled)
        return self.estimator._rescale(scaled, labels)


def find_rescaled_moments(rows, rescale):
    """Moments of the rescaled rows of one block."""
    return moments_of(rescale(rows.X), products=True)


def _set_labels(estimator, blocks):
    """Lazy labels, of the model chosen and of all others."""
    array, dtype = known_lengths(blocks), blocks.dtype
    scaled = array
    if estimator.scaler_ is not None:
        scaled = array.map_blocks(partial(_scale, detached(estimator)), dtype=dtype)
    for model in estimator.models_.values():
        model.labels_ = blockwise(model, "predict", scaled, dtype)
    estimator.labels_ = estimator.models_[estimator.p_].labels_


def _scale(estimator, block):
    block = np.ascontiguousarray(block, dtype=estimator.feature_weights_.dtype)
    return estimator._scale(block) if len(block) else block
