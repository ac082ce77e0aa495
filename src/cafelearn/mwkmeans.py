"""MinkowskiWeightedKMeans: validate, run the descents, set the attributes."""

import sys
import warnings
from contextvars import ContextVar
from numbers import Integral, Real

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from cafelearn import seeding
from cafelearn._validation import (
    check_data,
    check_enough_rows,
    check_weights,
    distributed,
    is_dask,
    lazy_on_dask,
)
from cafelearn.descent import descend, one_cluster
from cafelearn.kernels.assign import chunk_rows
from cafelearn.kernels.weights import log_mean
from cafelearn.machine import data_scale, make_problem
from cafelearn.placing import assign, distances, make_model

# Starts often end in the same clustering; rounding must not decide between them.
TIE = 1e-9
# With early_stopping, so many starts run to their end, and the others against the best of them.
PILOTS = 5
# Called by run_starts with the numbers of starts done and to do, from the caller's thread.
# A program that shows progress sets it, whatever estimator it is that fits.
PROGRESS = ContextVar("progress", default=None)


class MinkowskiWeightedKMeans(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """Minkowski weighted k-means: every cluster learns which features matter to it.

    The algorithm minimises the sum over clusters, rows and features of
    ``w[l, v]**p * abs(x[i, v] - z[l, v])**p``, by turns over the labels, the centres z (the
    Minkowski centres of the clusters) and the weights w, which sum to 1 in each cluster. A
    feature on which a cluster is compact gets a high weight in that cluster; a feature
    that is noise there gets a low one.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    p : float, default=2.0
        Minkowski exponent, above 1. It shapes the distance and, at the same time, the
        contrast of the weights: close to 1 only the most compact features of a cluster
        count, for large `p` all count alike.
    dispersion_offset : {"mean", "fixed"} or float, default="mean"
        What is added to every dispersion before the weights are computed, so that a
        feature that happens to be constant in a cluster does not take all of its weight.

        - 0 is the formula of the paper to the letter. Features of no dispersion share the
          weight of their cluster equally.
        - "mean" adds the mean of all dispersions, anew at each update, as the method's
          authors do. The objective may rise and the labels may cycle.
        - "fixed" adds one constant: a tenth of the mean over features of the dispersion of
          the whole data, divided by `n_clusters`. The objective with this constant never
          rises.
        - A positive float is a constant of your own, in the units of the dispersions.
    init : {"random", "k-means++", "anomalous"}, callable or array-like of shape \
            (n_clusters, n_features), default="random"
        Where to start.

        - "random": distinct rows drawn at random.
        - "k-means++": rows drawn far from each other in the Minkowski distance.
        - "anomalous": centres of the `n_clusters` largest anomalous clusters, grown one
          after the other around the row farthest from the centre of the data [2]_.
          Deterministic, and so run once.
        - An array holds the centres; run once.
        - A callable takes ``X, n_clusters, random_state`` and returns such an array.
    n_init : int, default=10
        Number of starts; the one with the lowest objective (``inertia_``) is kept, the
        first of them if several agree to 1e-9. An array or "anomalous" as `init` is run
        once, whatever `n_init`.
    max_iter : int, default=300
        Largest number of iterations of one start.
    tol : float, default=0.0
        Stop when the objective changes by less than this fraction in an iteration. With 0
        the algorithm runs until the labels no longer change.
    early_stopping : bool, default=False
        Give up a start whose objective will, by its last steps, not get below the best of
        the first five starts. Saves a third to three quarters of the iterations of many
        starts, but a start that would have come first in the end may be among them.
    n_jobs : int, default=None
        Number of threads. Starts run in parallel, or, when there are few starts and many
        rows, the rows of each start do. The result has the same bits for any number.
        ``None`` means 1 unless in a :obj:`joblib.parallel_config` context, -1 all cores.
    verbose : int, default=0
        1 reports each start on standard error.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. Each start has its own stream of random numbers.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row; the same as ``predict`` on the training data.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Minkowski centres.
    feature_weights_ : ndarray of shape (n_clusters, n_features)
        Weight of each feature in each cluster; rows sum to 1.
    dispersions_ : ndarray of shape (n_clusters, n_features)
        Sum of ``abs(x - z)**p`` over the members of each cluster, for each feature.
    inertia_ : float
        The objective, the sum of ``feature_weights_**p * dispersions_``.
    objective_path_ : ndarray of shape (n_iter_,)
        The objective after each iteration. A constant offset c is part of what is
        minimised, and so of these numbers: they are sums of ``w**p * (D + c)``. With "mean",
        whose offset moves, they are sums of ``w**p * D``.
    init_objectives_ : ndarray of shape (n_init,)
        ``inertia_`` of every start; for one that was given up, where it was then.
    n_iter_ : int
        Iterations of the start that was kept.
    stop_reason_ : {"converged", "cycle", "max_iter"}
        Why it stopped. A cycle, labels that come back after other labels, is possible only
        with ``dispersion_offset="mean"``.
    n_features_in_ : int
        Number of features seen during :meth:`fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during :meth:`fit`. Defined only when `X` has feature names
        that are all strings.

    See Also
    --------
    sklearn.cluster.KMeans : The same with p = 2 and weights that are all equal.

    Notes
    -----
    Centres are found to about 1e-10 of the range of their members. On more than 5,000 rows
    work is avoided that cannot change a label: distances of rows that must have stayed in
    their cluster, and looks at members far from a centre.

    A cluster that loses all its rows is given the row farthest from its own centre. If that
    is impossible because there are fewer distinct rows than clusters, a
    :class:`~sklearn.exceptions.ConvergenceWarning` says so.

    Features should be on comparable scales; see :class:`cafelearn.RangeScaler`.

    References
    ----------
    .. [1] R. C. de Amorim and V. Makarenkov, "Cluster-Adaptive Feature Extraction and its
       Theoretical Foundation with Minkowski Weighted k-Means".
    .. [2] R. C. de Amorim and B. Mirkin, "Minkowski metric, feature weighting and anomalous
       cluster initializing in K-Means clustering", Pattern Recognition 45 (2012).

    Examples
    --------
    Two clusters; in one of them the second feature is noise.

    >>> import numpy as np
    >>> from cafelearn import MinkowskiWeightedKMeans
    >>> X = np.array([[0.0, 7.0], [0.1, -6.0], [0.2, 0.5], [9.0, 1.0], [9.3, 1.2], [9.1, 1.1]])
    >>> model = MinkowskiWeightedKMeans(n_clusters=2, p=1.5, random_state=0).fit(X)
    >>> model.labels_
    array([1, 1, 1, 0, 0, 0], dtype=int32)
    >>> model.feature_weights_.round(2)
    array([[0.5 , 0.5 ],
           [0.96, 0.04]])
    >>> model.predict([[0.0, -3.0]])
    array([1], dtype=int32)
    """

    _parameter_constraints = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "p": [Interval(Real, 1, None, closed="neither")],
        "dispersion_offset": [
            StrOptions({"mean", "fixed"}),
            Interval(Real, 0, None, closed="left"),
        ],
        "init": [StrOptions({"random", "k-means++", "anomalous"}), callable, "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "early_stopping": ["boolean"],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        p=2.0,
        dispersion_offset="mean",
        init="random",
        n_init=10,
        max_iter=300,
        tol=0.0,
        early_stopping=False,
        n_jobs=None,
        verbose=0,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.p = p
        self.dispersion_offset = dispersion_offset
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Cluster the rows of `X`.

        Parameters
        ----------
        X : array-like, Dask array or Dask dataframe of shape (n_samples, n_features)
            The data: dense, numeric and without missing values. float32 stays float32.
            A Dask collection is fitted where it lies, see ``cafelearn.distributed``;
            ``labels_`` is then a lazy Dask array.
        y : None
            Ignored; present by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, in centres, dispersions, offset and objective. An integer
            weight is the same as repeating the row.

        Returns
        -------
        self : MinkowskiWeightedKMeans
            The fitted estimator.
        """
        if is_dask(X):
            n_found = distributed().fit_mwkmeans(self, X, sample_weight)
        else:
            job = prepare(self, X, sample_weight)
            run_starts([job], self.n_jobs, self.verbose)
            n_found = job.best.n_found
        if n_found < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({n_found}) found smaller than "
                f"n_clusters ({self.n_clusters}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    @lazy_on_dask
    def predict(self, X):
        """Find the nearest centre of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Index of the centre with the smallest weighted distance.
        """
        return assign(*self._placed(X))[0]

    @lazy_on_dask
    def transform(self, X):
        """Distance of each row to each centre.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            Weighted Minkowski distances, the p-th roots of the sums that the objective
            adds up.
        """
        return distances(*self._placed(X))

    def score(self, X, y=None, sample_weight=None):
        """The negative objective of `X` with the fitted centres and weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.
        y : None
            Ignored; present by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row.

        Returns
        -------
        score : float
            Minus the sum of the p-th powers of the distances to the nearest centres.
        """
        if is_dask(X):
            return distributed().score(self, X, sample_weight)
        X, model, n_threads = self._placed(X)
        sample_weight = check_weights(sample_weight, X, self)
        _, nearest = assign(X, model, n_threads)
        return -float(sample_weight @ nearest.astype(np.float64) ** self.p)

    def _placed(self, X):
        """What `assign` and `distances` need: the checked rows, the model and the threads."""
        check_is_fitted(self)
        X = check_data(self, X, reset=False)
        model = make_model(
            self.cluster_centers_, self.feature_weights_, self.p, self._scale, X.dtype
        )
        return X, model, effective_n_jobs(self.n_jobs)

    @property
    def _n_features_out(self):
        return self.cluster_centers_.shape[0]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def seed_sequence(random_state):
    """The SeedSequence of a scikit-learn style `random_state`."""
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, Integral):
        return np.random.SeedSequence(int(random_state))
    return np.random.SeedSequence(random_state.randint(2**31, size=4).tolist())


def seed_integer(seed):
    """An integer that stands for a SeedSequence where only integers are taken."""
    return int(seed.generate_state(1)[0] >> 1)


class Job:
    """All starts of one estimator: what to run, and the best result so far."""

    def __init__(self, estimator, X, sample_weight, feature_scale, problem, start, seeds):
        self.estimator, self.X, self.sample_weight = estimator, X, sample_weight
        self.feature_scale, self.problem = feature_scale, problem
        self.start, self.seeds = start, seeds
        self.best, self.log_objectives = None, []
        self.to_beat = np.inf

    @property
    def n_pilots(self):
        """How many starts run to their end whatever happens."""
        return PILOTS if self.estimator.early_stopping else len(self.seeds)

    def run(self, seed, n_threads):
        return descend(
            self.X,
            self.sample_weight,
            self.start(seed),
            self.feature_scale,
            self.problem,
            n_threads,
        )

    def end_pilots(self):
        """From now on a start has to be better than those taken so far."""
        if self.estimator.early_stopping:
            self.problem = self.problem._replace(to_beat=self.to_beat)

    def take(self, result):
        """Keep a result if it is the best; the first of several that agree."""
        self.log_objectives.append(result.log_inertia)
        if result.stop_reason == "abandoned":
            return
        self.to_beat = min(self.to_beat, result.log_path[-1])
        if self.best is None or result.log_inertia < self.best.log_inertia - TIE:
            self.best = result


def prepare(estimator, X, sample_weight=None):
    """Validate the data for a MinkowskiWeightedKMeans and make the Job of its starts."""
    X = check_data(estimator, X)
    sample_weight = check_weights(sample_weight, X, estimator)
    check_enough_rows(estimator, X)
    # Rows without weight must not count, not even for the scale.
    weighed = X if (sample_weight > 0).all() else X[sample_weight > 0]
    low, high = weighed.min(axis=0), weighed.max(axis=0)
    warn_of_constant_features(estimator, low == high)
    scale, feature_scale = data_scale(low, high)
    offset = log_offset(
        estimator, lambda: one_cluster(X, sample_weight, feature_scale, estimator.p)[1]
    )
    problem = make_problem(X, estimator.p, scale, offset, estimator.max_iter, estimator.tol)
    start = seeding.make_start(estimator, X, sample_weight, low, high, offset)
    seeds = start_seeds(estimator)
    return Job(estimator, X, sample_weight, feature_scale, problem, start, seeds)


def run_starts(jobs, n_jobs, verbose=0):
    """Run all starts of all jobs in one pool of workers, and fit their estimators.

    Starts run in parallel if they are many, else the rows of each do.
    """
    pilots = [(job, seed) for job in jobs for seed in job.seeds[: job.n_pilots]]
    others = [(job, seed) for job in jobs for seed in job.seeds[job.n_pilots :]]
    n_starts = len(pilots) + len(others)
    done = 0
    # In two rounds, so that what a start has to beat does not depend on who comes first.
    for tasks in (pilots, others):
        for job, result in _run_tasks(tasks, n_jobs):
            done += 1
            job.take(result)
            report_start(job, result, done, n_starts, verbose)
        for job in jobs:
            job.end_pilots()
    for job in jobs:
        set_attributes(job)


def _run_tasks(tasks, n_jobs):
    """Run starts in parallel, or the rows of each; yields the job and result of each."""
    if not tasks:
        return
    n_threads = effective_n_jobs(n_jobs)
    X = tasks[0][0].X
    n_chunks = -(-len(X) // chunk_rows(X.shape[1]))
    by_rows = len(tasks) < 2 * n_threads and n_chunks >= 2 * n_threads
    # Short fits go to the workers several at a time.
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


def report_start(job, result, done, n_starts, verbose):
    """Tell whoever wants to know that a start has ended."""
    if (progress := PROGRESS.get()) is not None:
        progress(done, n_starts)
    if verbose:
        sys.stderr.write(
            f"start {done}/{n_starts} (p={job.estimator.p:g}): objective "
            f"{to_units(result.log_inertia):.6g}, {result.n_iter} iterations, "
            f"{result.stop_reason}\n"
        )


def to_units(log_values):
    """exp, which may honestly leave the range of a float (p = 50 on data of 1e100)."""
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(log_values)


def warn_of_constant_features(estimator, constant):
    if isinstance(estimator.dispersion_offset, str) or estimator.dispersion_offset > 0:
        return
    if constant.any() and not constant.all():
        names = getattr(estimator, "feature_names_in_", np.arange(len(constant)))[constant]
        shown = ", ".join(repr(name) for name in names[:5].tolist())
        warnings.warn(
            f"{type(estimator).__name__}(dispersion_offset=0) gives all weight to features "
            f"that do not vary, and {len(names)} of X are constant ({shown}"
            f"{', ...' if len(names) > 5 else ''}). Drop them or use an offset.",
            UserWarning,
            stacklevel=5,
        )


def start_seeds(estimator):
    """One SeedSequence for each start."""
    many = callable(estimator.init) or isinstance(estimator.init, str)
    many = many and not _is(estimator.init, "anomalous")
    return seed_sequence(estimator.random_state).spawn(estimator.n_init if many else 1)


def _is(value, name):
    return isinstance(value, str) and value == name


def log_offset(estimator, one_cluster_dispersions):
    """Log of the constant that is added to the dispersions, or the word "mean"."""
    offset = estimator.dispersion_offset
    if _is(offset, "mean"):
        return "mean"
    if _is(offset, "fixed"):
        return log_mean(one_cluster_dispersions()) + np.log(0.1 / estimator.n_clusters)
    return np.log(offset) if offset > 0 else -np.inf


def set_attributes(job):
    """Fit the estimator of a job whose starts have all ended."""
    estimator, result = job.estimator, job.best
    estimator.labels_ = result.labels
    estimator.cluster_centers_ = result.centers
    estimator.feature_weights_ = result.weights
    estimator.dispersions_ = to_units(result.log_dispersions)
    estimator.inertia_ = float(to_units(result.log_inertia))
    estimator.objective_path_ = to_units(result.log_path)
    estimator.init_objectives_ = to_units(np.asarray(job.log_objectives))
    estimator.n_iter_ = result.n_iter
    estimator.stop_reason_ = result.stop_reason
    estimator._scale = job.problem.scale
