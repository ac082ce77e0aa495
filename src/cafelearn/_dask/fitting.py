"""Fit Minkowski weighted k-means to the blocks of a Dask collection."""

from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from cafelearn._dask.descending import Descent, descend
from cafelearn._dask.extents import measure, measure_again
from cafelearn._dask.inputs import make_blocks
from cafelearn._dask.lazy import blockwise
from cafelearn._dask.sampling import sample
from cafelearn._dask.starts import draw_samples, make_starts
from cafelearn._solver.attributes import set_attributes
from cafelearn._solver.descent import Seed, one_cluster_problem
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
    start_seeds,
    uses_offset,
)
from cafelearn._validation import weight_exponent
from cafelearn._variables import set_variables


def fit_mwkmeans(estimator, X, sample_weight=None):
    """Fit a MinkowskiWeightedKMeans; return the number of clusters that have members."""
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
        # Rows whose weight is now 0 must not count for the extents.
        extents = measure_again(blocks)
    scale, _ = data_scale(extents.low, extents.high)
    units, seen = Units(extreme_unit(scale, blocks.dtype), exponent), (blocks, extents)
    if units.data != 1:
        unit = Multiplied(units.data)
        low, high, row = map(unit.transform, (extents.low, extents.high, extents.row))
        seen = blocks.scaled(unit), extents._replace(low=low, high=high, row=row)
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
    """Draw at most `at_most` rows of a Dask collection, after checking all of them."""
    blocks = make_blocks(estimator, X)
    extents = measure(estimator, blocks)
    rows = sample(blocks, seed, at_most=at_most)
    # A column without values in the sample becomes constant.
    return np.where(np.isnan(rows).all(axis=0), extents.low, rows)


def known_lengths(blocks):
    """Return the Dask array of the rows with the block lengths found by the first pass."""
    array = blocks.array.copy()
    array._chunks = (tuple(int(length) for length in blocks.lengths), array.chunks[1])
    return array


def fit_models(models, blocks, seen, verbose=0, units=NO_UNITS, filled_starts=False):
    """Fit models, with the starts of all models in the same passes over the data.

    `seen` has, for each model, the scaled blocks and their extents; models of the same scaling
    share them and are consecutive. `filled_starts` is as in `prepare`. Return the number of
    clusters with members of each model. The caller sets `labels_`.
    """
    try:
        return _fit_models(models, blocks, seen, verbose, units, filled_starts)
    finally:
        for scaled in {id(scaled): scaled for scaled, _ in seen}.values():
            scaled.forget()


def _fit_models(models, blocks, seen, verbose, units, filled_starts):
    jobs, started, sampled = [], [], []
    for (scaled, extents), together in groupby(
        zip(models, seen, strict=True), key=itemgetter(1)
    ):
        these, *facts = _prepare([model for model, _ in together], scaled, extents, units)
        jobs += these
        if is_sampled(these[0].estimator, len(blocks)):
            draw_samples(these, scaled, extents, *facts)
        else:
            take_sample = partial(sample, scaled, these[0].seeds[0])
            make_starts(these, scaled, extents, *facts, take_sample, filled_starts)
        sampled += [(job, scaled.view) for job in these if job.on_sample is not None]
        started += [
            (job, i < job.n_pilots, seed, scaled.view)
            for job in these
            for i, seed in enumerate(job.seeds)
            if job.on_sample is None
        ]
    if sampled:
        started += _run_on_samples(sampled, verbose)
    _descend_all(jobs, started, blocks, verbose)
    for job in jobs:
        set_attributes(job)
        job.estimator.n_features_in_ = blocks.shape[1]
    return [job.best.n_found for job in jobs]


def _run_on_samples(sampled, verbose):
    """Run the starts of jobs on their samples in this process; return the starts to refine."""
    first = [job.on_sample for job, _ in sampled]
    n_starts = sum(len(job.seeds) for job in first)
    run_round(first, first[0].estimator.n_jobs, verbose, 0, n_starts + len(sampled))
    for job, _ in sampled:
        job.refine()
    return [
        (job, i < job.n_pilots, start, view)
        for job, view in sampled
        for i, start in enumerate(job.seeds)
    ]


def _descend_all(jobs, started, blocks, verbose):
    """Descend from all starts; with early stopping, the pilots first."""
    done = 0
    for pilot in (True, False):
        chosen = [(job, seed, view) for job, first, seed, view in started if first is pilot]
        descents = [
            Descent(done + number, job.make_seed(seed), job.feature_scale, job.problem, view)
            for number, (job, seed, view) in enumerate(chosen)
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
    """Return the Jobs of models of one scaling, their offsets and the fillings of gaps."""
    scale, feature_scale = data_scale(extents.low, extents.high)
    for model in models:
        model.n_features_in_ = blocks.shape[1]
        set_variables(model)
    jobs, offsets, middles = [], [], []
    whole = _whole(models, blocks, extents, feature_scale)
    for model in models:
        found = whole.get(model.p)
        offset = log_offset(model, lambda found=found: found.log_dispersions[0], units)
        groups = groups_of(model, extents.low, extents.high)
        problem = problem_of(model, blocks, scale, offset, groups)
        seeds = start_seeds(model, len(blocks))
        job = Job(model, None, None, feature_scale, problem, None, seeds)
        job.units, job.ranges = units, half_span(extents.low, extents.high)
        job.typical = found.typical[0] if extents.gaps else None
        jobs.append(job)
        offsets.append(offset)
        middles.append(found.centers[0] if extents.gaps else None)
    return jobs, offsets, middles


def _whole(models, blocks, extents, feature_scale):
    """Return, by p, all rows as one cluster, for models that need it; see `one_cluster`."""
    # Without a scaler: these blocks are already scaled.
    view, found = blocks.view._replace(scaler=None), {}
    typical = np.zeros((1, blocks.shape[1])) if extents.gaps else None
    exponents = {
        model.p: None
        for model in models
        if extents.gaps or (uses_offset(model) and model.dispersion_offset == "fixed")
    }
    descents = [
        Descent(
            -1 - i,
            Seed(extents.row[None, :], typical=None if typical is None else typical.copy()),
            feature_scale,
            one_cluster_problem(blocks, p),
            view,
        )
        for i, p in enumerate(exponents)
    ]
    for descent in descend(blocks, descents) if descents else ():
        found[descent.problem.geometry.p] = descent.result()
    return found
