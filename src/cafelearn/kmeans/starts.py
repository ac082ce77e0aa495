"""The starts of mwk-means: prepare them, run them, and keep the best result."""

import sys
from functools import cache, partial
from threading import Event
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from cafelearn.base import progress as _progress
from cafelearn.base.seeds import seed_sequence
from cafelearn.data.gaps import extremes, fill_columns
from cafelearn.data.validation import (
    check_data,
    check_enough_rows,
    check_weights,
    ordinary_weights,
    weight_exponent,
)
from cafelearn.data.variables import set_variables, used_columns, variable_codes
from cafelearn.kmeans import draws, seeding
from cafelearn.kmeans.attributes import quiet_exp, set_attributes, typical_distances
from cafelearn.kmeans.compiling_note import note_compiling
from cafelearn.kmeans.descent import Seed, descend, one_cluster
from cafelearn.kmeans.iteration import make_problem
from cafelearn.kmeans.kernels.geometry import chunk_rows
from cafelearn.kmeans.kernels.weights import (
    WEIGHTINGS,
    cells_of,
    log_mean_dispersion,
    make_groups,
)
from cafelearn.kmeans.placing import assign
from cafelearn.kmeans.scales import data_scale, exceeds_single, extreme_unit, half_span

# Log objectives that differ by less are ties. Starts often end in the same clustering, and
# rounding must not affect the choice between them.
TIE = 1e-9
# With early_stopping, this many starts run to their end. The others are abandoned if they are
# not expected to beat the best of these.
PILOTS = 5


class Units(NamedTuple):
    """Powers of two that bring extreme data and weights into an ordinary range."""

    data: float = 1.0  # the rows were multiplied by this
    weight_exponent: int = 0  # the weights were multiplied by 2 to this power

    def log_dispersion(self, p):
        """Return the contribution of both units to the logarithm of a dispersion."""
        if self == NO_UNITS:
            return 0.0
        return p * np.log(self.data) + self.weight_exponent * np.log(2.0)


NO_UNITS = Units()


# At most REFINED of the clusterings found on a sample are refined on all rows: the best, and
# others whose log objective exceeds that of the best by at most CLOSE.
REFINED, CLOSE = 3, 0.02
# If there are many more rows than in the sample, a start on the sample is cheap compared with a
# pass over all rows. `n_init` is then multiplied by n_rows // (PAYS * subsample), at most by
# MOST_TIMES, to find lower objectives.
PAYS, MOST_TIMES = 20, 4


class Job:
    """All starts of one estimator, and the best result so far."""

    def __init__(self, estimator, X, sample_weight, feature_scale, problem, start, seeds):
        self.estimator, self.X, self.sample_weight = estimator, X, sample_weight
        self.on_sample = None  # the Job of the starts on a sample, see `sample_job`
        self.finalists = []  # the best results, at most REFINED
        self.refining = False  # whether the starts are clusterings found on the sample
        self.idle = None  # rows of weight 0, in the user's units; assigned after the fit
        self.ranges = None  # half of the range of each feature
        self.typical = None  # (m,) initial distances for missing values; None: complete rows
        self.feature_scale, self.problem = feature_scale, problem
        self.start, self.seeds = start, seeds
        self.best, self.log_objectives = None, []
        self.to_beat = np.inf
        self.units, self.interrupted = NO_UNITS, Event()

    @property
    def log_unit(self):
        """Contribution of the units to the logarithm of a dispersion."""
        return self.units.log_dispersion(self.estimator.p)

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
            self.X,
            self.sample_weight,
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


def sample_job(job, rows, mass, low, high, offset, middle=None, filled_starts=False):
    """Make the Job of the same starts on a sample, weighted to represent all rows.

    Missing values are filled with `middle` to draw initial centres. If `filled_starts` is true,
    they remain filled throughout the starts.
    """
    estimator, filled = job.estimator, _filled(rows, middle)
    groups = seeding.groups_of(estimator, low, high)
    problem = problem_of(estimator, rows, job.problem.scale, offset, groups)
    start = seeding.make_start(estimator, seeding.StartRows(filled, mass, low, high, offset))
    rows = filled if filled_starts else rows
    sampled = Job(estimator, rows, mass, job.feature_scale, problem, start, job.seeds)
    sampled.units, sampled.typical = job.units, None if filled_starts else job.typical
    return sampled


def _filled(X, middle):
    return X if middle is None else fill_columns(X, middle)


def sample_seed(seeds):
    """Return the seed of the sample on which the starts with these seeds run."""
    return seeds[0].spawn(1)[0]


def prepare(estimator, X, sample_weight=None, shared=None, filled_starts=False):
    """Validate the data for a MinkowskiWeightedKMeans and make the Job of its starts.

    `shared` is a dictionary of results shared by the jobs on the same rows. With
    `filled_starts` missing values are filled for the starts, and the best clusterings found
    are refined on the rows with missing values.
    """
    X = check_data(estimator, X, gaps=True)
    set_variables(estimator)
    sample_weight = check_weights(sample_weight, X, estimator)
    check_enough_rows(estimator, X)
    low, high, gaps = extremes(X)
    if X.dtype == np.float32 and exceeds_single(low, high, estimator.p):
        X, low, high = (numbers.astype(np.float64) for numbers in (X, low, high))
    exponent = weight_exponent(sample_weight.max())
    sample_weight = ordinary_weights(sample_weight, exponent, sample_weight.max(), X.dtype)
    # Rows of weight 0 must not affect the result, not even through the scale.
    idle = sample_weight == 0
    if idle.any():
        low, high, _ = extremes(X[~idle])
    shown, scale = X, data_scale(low, high)[0]
    units = Units(extreme_unit(scale, X.dtype), exponent)
    if units.data != 1:
        X, low, high = (numbers * X.dtype.type(units.data) for numbers in (X, low, high))
    if idle.any():
        X = np.where(idle[:, None], low, X)  # their distances could overflow
    scale, feature_scale = data_scale(low, high)
    whole = partial(one_cluster, X, sample_weight, feature_scale, estimator.p, gaps)
    if gaps:
        whole = cache(whole)
    offset = log_offset(estimator, lambda: whole()[1], units)
    groups = seeding.groups_of(estimator, low, high)
    problem = problem_of(estimator, X, scale, offset, groups)
    seeds = start_seeds(estimator, len(X))
    job = Job(estimator, X, sample_weight, feature_scale, problem, None, seeds)
    job.units, job.ranges = units, half_span(low, high)
    if idle.any():
        job.idle = shown[idle]
    middle = None
    if gaps:
        middle, log_dispersions = whole()
        job.typical = np.exp((log_dispersions - np.log(sample_weight.sum())) / estimator.p)
    shared = {} if shared is None else shared
    _add_starts(job, middle, low, high, offset, shown, shared, filled_starts)
    return job


def _add_starts(job, middle, low, high, offset, shown, shared, filled_starts):
    """Add the starts to a Job; `middle` fills missing values, `shown` are the user's rows."""
    estimator, X, mass = job.estimator, job.X, job.sample_weight
    rows, filled, unit = X, _filled(X, middle), job.units.data
    sampled = is_sampled(estimator, len(X))
    if sampled:
        key = "draw", None if middle is None else estimator.p
        if key not in shared:
            shared[key] = draws.rows_to_draw(filled, mass, low, high)
        rng = np.random.default_rng(sample_seed(job.seeds))
        rows, mass = draws.draw_sample(X, shared[key], estimator.subsample, rng)
    filled_starts = filled_starts and middle is not None and isinstance(estimator.init, str)
    if sampled or filled_starts:
        args = rows, mass, low, high, offset, middle, filled_starts
        job.on_sample = sample_job(job, *args)
    else:
        shown = shown if middle is None else fill_columns(shown, middle / X.dtype.type(unit))
        rows = seeding.StartRows(filled, mass, low, high, offset)
        job.start = seeding.make_start(estimator, rows, (shown, unit))


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


def run_starts(jobs, n_jobs, verbose=0, run_elsewhere=None):
    """Run all starts of all jobs in one pool of workers; set the attributes of the estimators.

    Many starts run in parallel; few starts run one by one, each on several threads. If the rows
    are not in memory, `run_elsewhere` runs the starts on all rows: it takes a list of
    (job, seed) and yields (job, result) for each.
    """
    run_here = partial(_run_tasks, n_jobs=n_jobs)
    on_all_rows = run_elsewhere or run_here
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
        if job.idle is not None:
            model = job.estimator._placement(job.idle.dtype)
            job.estimator.labels_[job.sample_weight == 0] = assign(job.idle, model)[0]


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
    X = tasks[0][0].X
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


def log_offset(estimator, one_cluster_dispersions, units=NO_UNITS):
    """Return the log of the constant added to the dispersions, or the word "mean".

    `one_cluster_dispersions()` returns the log dispersions of all rows about one centre.
    """
    offset = estimator.dispersion_offset
    if not uses_offset(estimator):
        return -np.inf
    if isinstance(offset, str) and offset == "mean":
        return offset
    if isinstance(offset, str):
        log_dispersions = np.atleast_2d(one_cluster_dispersions())
        used = used_columns(np.isfinite(log_dispersions[0]), variable_codes(estimator))
        groups = make_groups(log_dispersions.shape[1], variable_codes(estimator), used)
        mean = log_mean_dispersion.from_python(cells_of(log_dispersions), groups)
        return mean + np.log(0.1 / estimator.n_clusters)
    return np.log(offset) + units.log_dispersion(estimator.p) if offset > 0 else -np.inf
