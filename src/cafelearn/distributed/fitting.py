"""Fit Minkowski weighted k-means to the blocks of a Dask collection."""

from itertools import groupby
from typing import NamedTuple

import numpy as np

from cafelearn.data.validation import weight_exponent
from cafelearn.data.variables import set_variables
from cafelearn.distributed.descending import Descent, descend
from cafelearn.distributed.extents import measure, measure_again
from cafelearn.distributed.inputs import make_blocks
from cafelearn.distributed.lazy import blockwise, detached
from cafelearn.distributed.sampling import sample
from cafelearn.distributed.starts import Prepared, draw_samples, make_starts
from cafelearn.kmeans.descent import Seed, one_cluster_problem
from cafelearn.kmeans.scales import data_scale, exceeds_single, extreme_unit, half_span
from cafelearn.kmeans.seeding import groups_of
from cafelearn.kmeans.starts import (
    NO_UNITS,
    Job,
    Units,
    is_sampled,
    log_offset,
    problem_of,
    run_starts,
    start_seeds,
    uses_offset,
)


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
        # Negligible weights have become 0, and rows of weight 0 must not affect the extents.
        extents = measure_again(blocks)
    scale, _ = data_scale(extents.low, extents.high)
    units, seen = Units(extreme_unit(scale, blocks.dtype), exponent), (blocks, extents)
    if units.data != 1:
        unit = Multiplied(units.data)
        low, high, row = map(unit.transform, (extents.low, extents.high, extents.row))
        seen = blocks.scaled(unit), extents._replace(low=low, high=high, row=row)
    (n_found,) = fit_models([estimator], blocks, [seen], estimator.verbose, units)
    if blocks.weights is not None:
        estimator._members = blocks.reduce(count_members, sum, detached(estimator))
    array = known_lengths(blocks)
    estimator.labels_ = blockwise(estimator, "predict", array, blocks.dtype)
    return n_found


def count_members(rows, estimator):
    """Count the rows of positive weight of one block, which may have none, by cluster."""
    used, k = rows.X[rows.sample_weight > 0], estimator.n_clusters
    labels = estimator.predict(used) if len(used) else np.empty(0, dtype=np.int32)
    return np.bincount(labels, minlength=k).astype(np.float64)


class Multiplied(NamedTuple):
    """A scaler that multiplies rows by one number."""

    factor: float

    def transform(self, X):
        """Multiply the rows by the factor."""
        return X * X.dtype.type(self.factor)


def sample_rows(estimator, X, seed, at_most):
    """Check all rows of a Dask collection, and draw at most `at_most` of them."""
    blocks = make_blocks(estimator, X)
    extents = measure(estimator, blocks)
    rows = sample(blocks, seed, at_most=at_most)
    # Columns without any value in the sample become constant.
    return np.where(np.isnan(rows).all(axis=0), extents.low, rows)


def known_lengths(blocks):
    """Return the Dask array of the rows, with the block lengths found by the first pass."""
    array = blocks.array.copy()
    array._chunks = (tuple(int(length) for length in blocks.lengths), array.chunks[1])
    return array


def fit_models(models, blocks, seen, verbose=0, units=NO_UNITS, filled_starts=False):
    """Fit models, with the starts of all models in the same passes over the data.

    `seen` has, for each model, the scaled blocks and their extents, shared by models with the
    same scaling. For `filled_starts` see `prepare` in `kmeans.starts`. Return, for each model,
    the number of clusters that have members. The caller sets `labels_`.
    """
    jobs, scalers = [], {}
    try:
        # Consecutive models with the same scaling are prepared together.
        for _, group in groupby(zip(models, seen, strict=True), key=lambda pair: id(pair[1])):
            together, ((scaled, extents), *_) = zip(*group, strict=True)
            prepared = _prepare(together, scaled, extents, units)
            if is_sampled(together[0], len(blocks)):
                draw_samples(prepared, scaled, extents, filled_starts)
            else:
                make_starts(prepared, scaled, extents, filled_starts)
            jobs += [job for job, _, _ in prepared]
            scalers |= {job: scaled.scaler for job, _, _ in prepared}

        def run_on_blocks(tasks):
            descents = [
                Descent(job.make_seed(seed), job.feature_scale, job.problem, scalers[job])
                for job, seed in tasks
            ]
            yield from zip((job for job, _ in tasks), descend(blocks, descents), strict=True)

        run_starts(jobs, models[0].n_jobs, verbose, run_on_blocks)
    finally:
        blocks.forget(blocks.fit)
    return [job.best.n_found for job in jobs]


def _prepare(models, blocks, extents, units):
    """Return the Prepared jobs of models with the same scaling."""
    scale, feature_scale = data_scale(extents.low, extents.high)
    for model in models:
        model.n_features_in_ = blocks.shape[1]
        set_variables(model)
    prepared, whole = [], _whole(models, blocks, extents, feature_scale)
    for model in models:
        found = whole.get(model.p)
        offset = log_offset(model, lambda found=found: found.log_dispersions[0], units)
        groups = groups_of(model, extents.low, extents.high)
        problem = problem_of(model, blocks, scale, offset, groups)
        seeds = start_seeds(model, len(blocks))
        job = Job(model, None, None, feature_scale, problem, None, seeds)
        job.units, job.ranges = units, half_span(extents.low, extents.high)
        job.typical = found.typical[0] if extents.gaps else None
        prepared.append(Prepared(job, offset, found.centers[0] if extents.gaps else None))
    return prepared


def _whole(models, blocks, extents, feature_scale):
    """Fit all rows as one cluster, for each p for which this is needed; return results by p."""
    exponents = list(
        dict.fromkeys(
            model.p
            for model in models
            if extents.gaps or (uses_offset(model) and model.dispersion_offset == "fixed")
        )
    )
    descents = []
    for p in exponents:
        typical = np.zeros((1, blocks.shape[1])) if extents.gaps else None
        seed = Seed(extents.row[None, :], typical=typical)
        # No scaler, because these blocks are already scaled.
        descents.append(Descent(seed, feature_scale, one_cluster_problem(blocks, p), None))
    return dict(zip(exponents, descend(blocks, descents), strict=True))
