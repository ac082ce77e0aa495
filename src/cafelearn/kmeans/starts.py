"""The starts of mwk-means: prepare them, run them, and keep the best result."""

import sys
from functools import partial
from threading import Event
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from cafelearn.base import progress as _progress
from cafelearn.base.seeds import seed_sequence
from cafelearn.data.variables import set_variables, used_columns, variable_codes
from cafelearn.kmeans import seeding
from cafelearn.kmeans.attributes import quiet_exp, set_attributes, typical_distances
from cafelearn.kmeans.compiling_note import note_compiling
from cafelearn.kmeans.descent import Seed, descend
from cafelearn.kmeans.iteration import make_problem
from cafelearn.kmeans.kernels.geometry import chunk_rows
from cafelearn.kmeans.kernels.weights import (
    WEIGHTINGS,
    cells_of,
    log_mean_dispersion,
    make_groups,
)
from cafelearn.kmeans.rows import filled
from cafelearn.kmeans.scales import NO_UNITS, Units, data_scale

# Log objectives that differ by less are ties. Starts often end in the same clustering, and
# rounding must not affect the choice between them.
TIE = 1e-9
# With early_stopping, this many starts run to their end. The others are abandoned if they are
# not expected to beat the best of these.
PILOTS = 5


# At most REFINED of the clusterings found on a sample are refined on all rows: the best, and
# others whose log objective exceeds that of the best by at most CLOSE.
REFINED, CLOSE = 3, 0.02
# If there are many more rows than in the sample, a start on the sample is cheap compared with a
# pass over all rows. `n_init` is then multiplied by n_rows // (PAYS * subsample), at most by
# MOST_TIMES, to find lower objectives.
PAYS, MOST_TIMES = 20, 4


class Job:
    """All starts of one estimator, and the best result so far."""

    def __init__(self, estimator, rows, feature_scale, problem, seeds):
        self.estimator, self.rows = estimator, rows
        self.on_sample = None  # the Job of the starts on a sample, see `sample_job`
        self.finalists = []  # the best results, at most REFINED
        self.refining = False  # whether the starts are clusterings found on the sample
        self.typical = None  # (m,) initial distances for missing values; None: complete rows
        self.feature_scale, self.problem = feature_scale, problem
        self.start, self.seeds = None, seeds
        self.best, self.log_objectives = None, []
        self.to_beat, self.interrupted = np.inf, Event()

    @property
    def log_unit(self):
        """Contribution of the units to the logarithm of a dispersion."""
        return self.rows.units.log_dispersion(self.estimator.p)

    @property
    def n_pilots(self):
        """Number of starts that always run to their end."""
        if self.refining:
            return 1
        return PILOTS if self.estimator.early_stopping else len(self.seeds)

    def refine(self):
        """Replace the starts by the best clusterings found on the sample."""
        limit = self.on_sample.best.log_inertia + CLOSE
        found = [result for result in self.on_sample.finalists if result.log_inertia <= limit]
        self.seeds = [
            (result.centers, result.weights, typical_distances(result, self.estimator.p))
            for result in found
        ]
        self.start, self.refining = _as_it_is, True

    def make_seed(self, seed):
        """Return the initial state of the descent from one of the seeds."""
        centers, weights, typical = self.start(seed)
        if self.typical is None:
            typical = None  # complete rows
        elif typical is None:
            typical = np.tile(self.typical, (len(centers), 1))
        return Seed(centers, weights, typical)

    def run(self, seed, n_threads):
        """Run the descent from the start with this seed."""
        return descend(
            self.rows.X,
            self.rows.sample_weight,
            self.make_seed(seed),
            self.feature_scale,
            self.problem,
            n_threads,
            self.interrupted,
        )

    def end_pilots(self):
        """Let later starts be abandoned if they are not expected to beat the best so far."""
        if self.refining or self.estimator.early_stopping:
            self.problem = self.problem._replace(to_beat=self.to_beat)

    def take(self, result):
        """Keep a result if it is the best so far; of equal results, keep the first."""
        self.log_objectives.append(result.log_inertia)
        if result.stop_reason == "abandoned":
            return
        self.to_beat = min(self.to_beat, result.log_path[-1])
        if self.best is None or result.log_inertia < self.best.log_inertia - TIE:
            self.best = result
        values = [other.log_inertia for other in self.finalists]
        if all(abs(result.log_inertia - value) > TIE for value in values):
            self.finalists.append(result)
            self.finalists.sort(key=lambda result: result.log_inertia)
            del self.finalists[REFINED:]


def _as_it_is(start):
    return start


def is_sampled(estimator, n_rows):
    """Check whether the starts of an estimator run on a sample of data with `n_rows` rows."""
    size = estimator.subsample
    named = isinstance(estimator.init, str)
    return size is not None and named and n_rows >= 2 * size


class Sample(NamedTuple):
    """Rows and weights that represent all rows."""

    X: np.ndarray
    sample_weight: np.ndarray
    units: Units


def sample_job(job, X, mass, offset, middle, filled_starts):
    """Make the Job of the same starts on a sample, weighted to represent all rows.

    Missing values are filled with `middle` to draw initial centres. If `filled_starts` is true,
    they remain filled throughout the starts.
    """
    estimator, complete, ends = job.estimator, filled(X, middle), (job.rows.low, job.rows.high)
    X = complete if filled_starts else X
    problem = problem_of(estimator, X, job.problem.scale, offset, job.problem.groups)
    rows = Sample(X, mass, job.rows.units)
    sampled = Job(estimator, rows, job.feature_scale, problem, job.seeds)
    start_rows = seeding.StartRows(complete, mass, *ends, offset)
    sampled.start = seeding.make_start(estimator, start_rows)
    sampled.typical = None if filled_starts else job.typical
    return sampled


def sample_seed(seeds):
    """Return the seed of the sample on which the starts with these seeds run."""
    return seeds[0].spawn(1)[0]


class Prepared(NamedTuple):
    """A Job, and the values needed to make its starts."""

    job: Job
    offset: float | str  # see log_offset
    middle: np.ndarray | None  # centre of all rows, to fill missing values; None: complete rows


def prepare(models, rows, filled_starts=False):
    """Make the Jobs of models on the same ordinary rows; see `cafelearn.kmeans.rows`.

    With `filled_starts` missing values are filled for the starts, and the best clusterings
    found are refined on the rows with missing values.
    """
    scale, feature_scale = data_scale(rows.low, rows.high)
    exponents = [model.p for model in models if rows.gaps or _uses_dispersions(model)]
    whole = rows.one_clusters(list(dict.fromkeys(exponents)), feature_scale)
    prepared = []
    for model in models:
        set_variables(model)
        center, log_dispersions, typical = whole.get(model.p, (None, None, None))
        offset = log_offset(model, log_dispersions, rows.units)
        groups = seeding.groups_of(model, rows.low, rows.high)
        problem = problem_of(model, rows, scale, offset, groups)
        job = Job(model, rows, feature_scale, problem, start_seeds(model, len(rows)))
        job.typical = typical if rows.gaps else None
        prepared.append(Prepared(job, offset, center if rows.gaps else None))
    if is_sampled(models[0], len(rows)):
        _sample_starts(prepared, rows, filled_starts)
    else:
        for job, offset, middle in prepared:
            if filled_starts and middle is not None and isinstance(job.estimator.init, str):
                job.on_sample = sample_job(
                    job, rows.X, rows.sample_weight, offset, middle, True
                )
            else:
                job.start = rows.make_start(job.estimator, offset, middle, job.seeds)
    return [job for job, _, _ in prepared]


def _uses_dispersions(model):
    return uses_offset(model) and model.dispersion_offset == "fixed"


def _sample_starts(prepared, rows, filled_starts):
    """Draw the sample on which the starts of each job run."""
    # Missing values are filled with values that depend on p, so each p needs its own draw.
    exponents = [job.estimator.p if rows.gaps else None for job, _, _ in prepared]
    for p in dict.fromkeys(exponents):
        some = [each for each, own in zip(prepared, exponents, strict=True) if own == p]
        rngs = [np.random.default_rng(sample_seed(job.seeds)) for job, _, _ in some]
        samples = rows.draw(rngs, some[0].job.estimator.subsample, some[0].middle)
        for (job, offset, middle), (X, mass) in zip(some, samples, strict=True):
            filled = filled_starts and middle is not None
            job.on_sample = sample_job(job, X, mass, offset, middle, filled)


def problem_of(estimator, X, scale, offset, groups):
    """Make the Problem of an estimator on these rows."""
    return make_problem(
        X,
        estimator.p,
        scale,
        offset,
        estimator.max_iter,
        estimator.tol,
        estimator.weighting,
        groups,
    )


def run_starts(jobs, n_jobs, verbose=0):
    """Run all starts of all jobs in one pool of workers; set the attributes of the estimators.

    Many starts run in parallel; few starts run one by one, each on several threads. If the rows
    are not in memory, they run the starts on all rows: `run_tasks` takes a list of (job, seed)
    and yields (job, result) for each.
    """
    run_here = partial(_run_tasks, n_jobs=n_jobs)
    on_all_rows = jobs[0].rows.run_tasks or run_here
    sampled = [job for job in jobs if job.on_sample is not None]
    first = [job.on_sample or job for job in jobs]
    n_starts = sum(len(job.seeds) for job in first)
    run_first = run_here if sampled else on_all_rows
    _run_round(first, run_first, verbose, 0, n_starts + len(sampled))
    for job in sampled:
        job.refine()
    n_refined = sum(len(job.seeds) for job in sampled)
    _run_round(sampled, on_all_rows, verbose, n_starts, n_starts + n_refined)
    for job in jobs:
        set_attributes(job)
        job.rows.place_idle(job.estimator)


def _run_round(jobs, run_tasks, verbose, done, total):
    """Run the starts of jobs; `done` of all `total` starts have already ended."""
    note_compiling()
    pilots = [(job, seed) for job in jobs for seed in job.seeds[: job.n_pilots]]
    others = [(job, seed) for job in jobs for seed in job.seeds[job.n_pilots :]]
    try:
        # Pilots end before others begin, so that the objective to beat is always the same.
        for tasks in (pilots, others):
            for job, result in run_tasks(tasks):
                done += 1
                job.take(result)
                _report_start(job, result, done, total, verbose)
            for job in jobs:
                job.end_pilots()
    except BaseException:
        # Stop the starts on other threads; their results are no longer needed.
        for job in jobs:
            job.interrupted.set()
        raise


def _run_tasks(tasks, n_jobs):
    """Run starts in parallel, or one by one on several threads; yield (job, result) of each."""
    if not tasks:
        return
    n_threads = effective_n_jobs(n_jobs)
    X = tasks[0][0].rows.X
    n_chunks = -(-len(X) // chunk_rows(X.shape[1]))
    # Refinements differ in length. In parallel, the longest would finally run alone, on
    # one thread.
    few = len(tasks) < 2 * n_threads or tasks[0][0].refining
    by_rows = few and n_chunks >= 2 * n_threads
    # Batches reduce the overhead of many short fits.
    batch = max(1, len(tasks) // (16 * n_threads))
    batches = [tasks[i : i + batch] for i in range(0, len(tasks), batch)]

    def run(tasks):
        return [job.run(seed, n_threads if by_rows else 1) for job, seed in tasks]

    if n_threads == 1 or by_rows:
        results = map(run, batches)
    else:
        workers = Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator")
        results = workers(delayed(run)(tasks) for tasks in batches)
    for tasks_done, results_done in zip(batches, results, strict=True):
        for (job, _), result in zip(tasks_done, results_done, strict=True):
            yield job, result


def _report_start(job, result, done, n_starts, verbose):
    """Report that a start has ended: as progress, and with verbose=2 as a line."""
    _progress.report(done, n_starts)
    if verbose > 1:
        sys.stderr.write(
            f"start {done}/{n_starts} (p={job.estimator.p:g}): objective "
            f"{quiet_exp(result.log_inertia - job.log_unit):.6g}, {result.n_iter} iterations, "
            f"{result.stop_reason}\n"
        )


def start_seeds(estimator, n_rows):
    """Return one SeedSequence for each start."""
    init, count = estimator.init, estimator.n_init
    many = seeding.INITS[init].random if isinstance(init, str) else callable(init)
    if is_sampled(estimator, n_rows):
        count *= min(max(n_rows // (PAYS * estimator.subsample), 1), MOST_TIMES)
    return seed_sequence(estimator.random_state).spawn(count if many else 1)


def uses_offset(estimator):
    """Check whether `dispersion_offset` affects the weights of this estimator."""
    return WEIGHTINGS[estimator.weighting].uses_offset


def log_offset(estimator, log_dispersions, units=NO_UNITS):
    """Return the log of the constant added to the dispersions, or the word "mean".

    `log_dispersions` are those of all rows about one centre, needed for the offset "fixed".
    """
    offset = estimator.dispersion_offset
    if not uses_offset(estimator):
        return -np.inf
    if isinstance(offset, str) and offset == "mean":
        return offset
    if isinstance(offset, str):
        log_dispersions = np.atleast_2d(log_dispersions)
        used = used_columns(np.isfinite(log_dispersions[0]), variable_codes(estimator))
        groups = make_groups(log_dispersions.shape[1], variable_codes(estimator), used)
        mean = log_mean_dispersion.from_python(cells_of(log_dispersions), groups)
        return mean + np.log(0.1 / estimator.n_clusters)
    return np.log(offset) + units.log_dispersion(estimator.p) if offset > 0 else -np.inf
