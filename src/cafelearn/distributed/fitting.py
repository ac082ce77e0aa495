"""Fit Minkowski weighted k-means to the blocks of a Dask collection."""

from functools import partial

from cafelearn._validation import check_enough_rows
from cafelearn.descent import one_cluster_problem
from cafelearn.distributed.cache import LIMIT
from cafelearn.distributed.descending import Descent, descend
from cafelearn.distributed.extents import combine_extents, find_extents
from cafelearn.distributed.inputs import check_rows, make_blocks
from cafelearn.distributed.lazy import blockwise
from cafelearn.distributed.sampling import sample
from cafelearn.distributed.starts import check_init, initial_centers
from cafelearn.machine import data_scale, make_problem
from cafelearn.starts import (
    Job,
    log_offset,
    report_start,
    set_attributes,
    start_seeds,
    warn_of_constant_features,
)

# The part of the members' values that is usually near a centre.
LISTED = 0.04
# As many starts are reckoned with, of those that run together.
MANY_STARTS = 8


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
    check_init(estimator)
    blocks = make_blocks(estimator, X, sample_weight)
    extents = measure(estimator, blocks)
    (n_found,) = fit_models([estimator], blocks, extents, estimator.verbose)
    array = known_lengths(blocks)
    estimator.labels_ = blockwise(estimator, "predict", array, blocks.dtype)
    return n_found


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
    return extents


def known_lengths(blocks):
    """The Dask array of the rows with the lengths that the first pass has found."""
    array = blocks.array.copy()
    array._chunks = (tuple(int(length) for length in blocks.lengths), array.chunks[1])
    return array


def fit_models(models, blocks, extents, verbose=0):
    """Fit models that differ in p, all their starts in the same passes over the data.

    Returns the numbers of clusters that each has found. `labels_` is left to the caller.
    """
    try:
        return _fit_models(models, blocks, extents, verbose)
    finally:
        blocks.forget()


def _fit_models(models, blocks, extents, verbose):
    scale, feature_scale = data_scale(extents.low, extents.high)
    for model in models:
        warn_of_constant_features(model, extents.low == extents.high)
    offsets = _log_offsets(models, blocks, extents, feature_scale)
    jobs = []
    for model, offset in zip(models, offsets, strict=True):
        problem = make_problem(blocks, model.p, scale, offset, model.max_iter, model.tol)
        if problem.anchored and not _can_remember_lists(models, blocks):
            problem = problem._replace(anchored=False)
        jobs.append(Job(model, None, None, feature_scale, problem, None, start_seeds(model)))
    take_sample = partial(sample, blocks, jobs[0].seeds[0])
    centers = initial_centers(jobs, blocks, extents, scale, take_sample)
    starts = iter(centers)
    started = [
        (job, i < job.n_pilots, next(starts)) for job in jobs for i, _ in enumerate(job.seeds)
    ]
    done = 0
    for pilot in (True, False):
        chosen = [(job, center) for job, first, center in started if first is pilot]
        descents = [
            Descent(done + number, center, feature_scale, job.problem)
            for number, (job, center) in enumerate(chosen)
        ]
        results = [None] * len(chosen)
        before = done
        for descent in descend(blocks, descents) if descents else ():
            done += 1
            number = descent.number - before
            results[number] = descent.result()
            report_start(chosen[number][0], results[number], done, len(started), verbose)
        for (job, _), result in zip(chosen, results, strict=True):
            job.take(result)
        for job in jobs:
            job.end_pilots()
    for job in jobs:
        set_attributes(job)
        job.estimator.n_features_in_ = blocks.shape[1]
    return [job.best.n_found for job in jobs]


def _can_remember_lists(models, blocks):
    """Whether the workers have room for the members near the centres of all starts.

    If not, each look at them would read all rows again, and looks at all members are better.
    """
    n_rows, n_features = blocks.shape
    together = min(sum(len(start_seeds(model)) for model in models), MANY_STARTS)
    values = LISTED * n_rows * n_features * together
    return values * blocks.dtype.itemsize <= blocks.n_processes() * LIMIT


def _log_offsets(models, blocks, extents, feature_scale):
    """`mwkmeans.log_offset` of each model; what they need of the data is found together."""
    whole = {}
    if models[0].dispersion_offset == "fixed":
        descents = [
            Descent(
                -1 - i,
                extents.row[None, :],
                feature_scale,
                one_cluster_problem(blocks, model.p),
            )
            for i, model in enumerate(models)
        ]
        for descent in descend(blocks, descents):
            whole[-1 - descent.number] = descent.state.brackets.log_dispersion[0]
    return [log_offset(model, partial(whole.get, i)) for i, model in enumerate(models)]
