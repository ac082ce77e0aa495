"""Fit Minkowski weighted k-means to the blocks of a Dask collection."""

from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from cafelearn._dask.descending import Descent, descend
from cafelearn._dask.extents import combine_extents, find_extents
from cafelearn._dask.inputs import check_rows, make_blocks
from cafelearn._dask.lazy import blockwise
from cafelearn._dask.sampling import sample
from cafelearn._dask.starts import check_init, draw_samples, initial_centers
from cafelearn._solver.descent import one_cluster_problem
from cafelearn._solver.kernels.cells import LOG_DISPERSION
from cafelearn._solver.scales import data_scale, exceeds_single, extreme_unit, half_span
from cafelearn._solver.seeding import groups_of
from cafelearn._solver.starts import (
    NO_UNITS,
    Job,
    Units,
    is_sampled,
    log_offset,
    problem_of,
    report_start,
    run_round,
    set_attributes,
    start_seeds,
    uses_offset,
)
from cafelearn._validation import check_enough_rows, check_span, weight_exponent
from cafelearn._variables import set_variables


def fit_mwkmeans(estimator, X, sample_weight=None):
    """Fit an estimator to a Dask collection.

    Parameters
    ----------
    estimator : MinkowskiWeightedKMeans
        Its parameters have been checked.
    X : dask.array.Array or dask.dataframe.DataFrame
        The rows.
    sample_weight : array-like, dask.array.Array, dask.dataframe.Series or None
        Their weights.

    Returns
    -------
    n_found : int
        Number of clusters that have rows.
    """
    blocks = make_blocks(estimator, X, sample_weight)
    extents = measure(estimator, blocks)
    before = blocks.dtype
    if before == np.float32 and exceeds_single(extents.low, extents.high, estimator.p):
        blocks.widen()
    exponent = 0
    if blocks.weights is not None:
        exponent = weight_exponent(extents.heaviest)
        blocks.normalise_weights(exponent, extents.heaviest)
    if blocks.weights is not None or blocks.dtype != before:
        # Rows of negligible weight do not count.
        extents = blocks.reduce(find_extents, combine_extents, None)
    scale, _ = data_scale(extents.low, extents.high)
    units, seen = Units(extreme_unit(scale, blocks.dtype), exponent), (blocks, extents)
    if units.data != 1:
        near = blocks.scaled(Multiplied(units.data))
        seen = near, near.reduce(find_extents, combine_extents, None)
    (n_found,) = fit_models([estimator], blocks, [seen], estimator.verbose, units)
    array = known_lengths(blocks)
    estimator.labels_ = blockwise(estimator, "predict", array, blocks.dtype)
    return n_found


class Multiplied(NamedTuple):
    """A scaler that multiplies rows by one number."""

    factor: float

    def transform(self, X):
        """Multiply rows."""
        return X * X.dtype.type(self.factor)


def sample_rows(estimator, X, seed, at_most):
    """At most so many rows of a Dask collection, after checking all of them.

    Parameters
    ----------
    estimator : MinkowskiWeightedKMeans or CAFE
        In whose name to check.
    X : dask.array.Array or dask.dataframe.DataFrame
        The rows.
    seed : numpy.random.SeedSequence
        Source of the randomness.
    at_most : int
        Largest number of rows.

    Returns
    -------
    rows : ndarray of shape (n_rows, n_features)
        The sample.
    """
    blocks = make_blocks(estimator, X)
    measure(estimator, blocks)
    return sample(blocks, seed, at_most=at_most)


def measure(estimator, blocks):
    """The first pass, after which the lengths of the blocks are known."""
    extents = blocks.reduce(find_extents, combine_extents, None, check=True)
    blocks.set_lengths(extents.lengths)
    check_rows(estimator, *blocks.shape)
    if extents.row is None:
        raise ValueError(
            f"{type(estimator).__name__} needs at least one positive sample weight, "
            "but all are zero."
        )
    check_enough_rows(estimator, blocks)
    if hasattr(estimator, "init"):
        check_init(estimator, len(blocks))
    check_span(extents.low, extents.high, estimator)
    return extents


def known_lengths(blocks):
    """The Dask array of the rows with the lengths that the first pass has found."""
    array = blocks.array.copy()
    array._chunks = (tuple(int(length) for length in blocks.lengths), array.chunks[1])
    return array


def fit_models(models, blocks, seen, verbose=0, units=NO_UNITS):
    """Fit models, all their starts in the same passes over the data.

    `seen` are, for each model, the blocks as its scaling shows them and their extents; models
    of the same scaling have the same and follow each other. Returns the numbers of clusters
    that each has found. `labels_` is left to the caller.
    """
    try:
        return _fit_models(models, blocks, seen, verbose, units)
    finally:
        for scaled in {id(scaled): scaled for scaled, _ in seen}.values():
            scaled.forget()


def _fit_models(models, blocks, seen, verbose, units):
    jobs, started, sampled = [], [], []
    for (scaled, extents), together in groupby(
        zip(models, seen, strict=True), key=itemgetter(1)
    ):
        these, offsets = _prepare([model for model, _ in together], scaled, extents, units)
        jobs += these
        if is_sampled(these[0].estimator, len(blocks)):
            draw_samples(these, scaled, extents, offsets)
            sampled += [(job, scaled.view) for job in these]
            continue
        take_sample = partial(sample, scaled, these[0].seeds[0])
        starts = iter(initial_centers(these, scaled, extents, offsets, take_sample))
        started += [
            (job, i < job.n_pilots, (next(starts), None), scaled.view)
            for job in these
            for i, _ in enumerate(job.seeds)
        ]
    if sampled:
        started += _run_on_samples(sampled, verbose)
    _descend_all(jobs, started, blocks, verbose)
    for job in jobs:
        set_attributes(job)
        job.estimator.n_features_in_ = blocks.shape[1]
    return [job.best.n_found for job in jobs]


def _run_on_samples(sampled, verbose):
    """Run the starts of jobs on their samples, here; returns the starts that are refined."""
    first = [job.on_sample for job, _ in sampled]
    n_starts = sum(len(job.seeds) for job in first)
    run_round(first, first[0].estimator.n_jobs, verbose, 0, n_starts + len(sampled))
    for job, _ in sampled:
        job.refine()
    return [(job, True, start, view) for job, view in sampled for start in job.seeds]


def _descend_all(jobs, started, blocks, verbose):
    """Descend from all starts; those that are no pilots have to beat those that are."""
    done = 0
    for pilot in (True, False):
        chosen = [(job, start, view) for job, first, start, view in started if first is pilot]
        descents = [
            Descent(done + number, centers, job.feature_scale, job.problem, view, weights)
            for number, (job, (centers, weights, *_), view) in enumerate(chosen)
        ]
        results = [None] * len(chosen)
        before = done
        for descent in descend(blocks, descents) if descents else ():
            done += 1
            number = descent.number - before
            results[number] = descent.result()
            report_start(chosen[number][0], results[number], done, len(started), verbose)
        for (job, _, _), result in zip(chosen, results, strict=True):
            job.take(result)
        for job in jobs:
            job.end_pilots()


def _prepare(models, blocks, extents, units):
    """The Jobs of models of one scaling, and their offsets."""
    scale, feature_scale = data_scale(extents.low, extents.high)
    for model in models:
        model.n_features_in_ = blocks.shape[1]
        set_variables(model)
    jobs = []
    offsets = _log_offsets(models, blocks, extents, feature_scale, units)
    for model, offset in zip(models, offsets, strict=True):
        groups = groups_of(model, extents.low, extents.high)
        problem = problem_of(model, blocks, scale, offset, groups)
        jobs.append(Job(model, None, None, feature_scale, problem, None, start_seeds(model)))
        jobs[-1].units, jobs[-1].ranges = units, half_span(extents.low, extents.high)
    return jobs, offsets


def _log_offsets(models, blocks, extents, feature_scale, units):
    """`starts.log_offset` of each model; what they need of the data is found together."""
    whole = {}
    # Seen as they are: these blocks are scaled already.
    view = blocks.view._replace(scaler=None)
    descents = [
        Descent(
            -1 - i,
            extents.row[None, :],
            feature_scale,
            one_cluster_problem(blocks, model.p),
            view,
        )
        for i, model in enumerate(models)
        if uses_offset(model) and model.dispersion_offset == "fixed"
    ]
    for descent in descend(blocks, descents) if descents else ():
        whole[-1 - descent.number] = descent.state.cells[0, LOG_DISPERSION].copy()
    return [log_offset(model, partial(whole.get, i), units) for i, model in enumerate(models)]
