"""The estimator MinkowskiWeightedKMeans."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import (
    _fit_context,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from cafelearn.base.typing import MatrixLike, Seed, VectorLike
from cafelearn.base.warning import warn_caller
from cafelearn.choice.chosen import fit_with_number
from cafelearn.choice.diagnosis import warn_of
from cafelearn.data.validation import (
    N_JOBS,
    check_given_number,
)
from cafelearn.estimators.mwkmeans_fitted import FittedKMeans
from cafelearn.estimators.opening import open_rows
from cafelearn.kmeans.kernels.weights import WEIGHTINGS
from cafelearn.kmeans.seeding import INITS
from cafelearn.kmeans.starts import prepare, run_starts

__all__ = ["MinkowskiWeightedKMeans"]


class MinkowskiWeightedKMeans(FittedKMeans):
    """Minkowski weighted k-means, with a weight for each feature in each cluster.

    The objective is the sum of ``w[l, v]**p * abs(x[i, v] - z[l, v])**p`` over the clusters l,
    the rows i of each cluster and the features v. The algorithm minimises it alternately over
    the labels, the centres z and the weights w, which sum to 1 in each cluster. A feature on
    which a cluster is compact gets a high weight in that cluster; a feature that is noise
    there gets a low one.

    Parameters
    ----------
    n_clusters : int, "auto" or sequence of int, default=8
        Number of clusters. Of several numbers, the one whose mixture has the highest criterion
        is chosen; "auto" means the numbers from 1 to 10 (:doc:`/guide/clusters`).
    p : float, default=2.0
        Minkowski exponent, above 1. It also sets the contrast of the weights: for `p` close
        to 1, only the most compact features of a cluster have a noticeable weight; for large
        `p`, all weights are nearly equal.
    weighting : {"cluster", "feature", "uniform"}, default="cluster"
        Rule that computes the weights.

        - "cluster": one weight per cluster and feature, computed from the dispersions as in
          the paper [1]_.
        - "feature": one weight per feature, the same in all clusters, computed from the sums
          of the dispersions over the clusters.
        - "uniform": all weights equal. This is Minkowski k-means without weights; with
          ``p=2`` it is ordinary k-means. `dispersion_offset` has no effect.
    dispersion_offset : {"mean", "fixed"} or float, default="mean"
        Offset added to every dispersion before the weights are computed, so that a feature
        that happens to be constant in a cluster does not get all the weight of the cluster.

        - 0 is the paper's formula as printed. If a cluster has features of zero dispersion,
          they share its weight equally.
        - "mean" adds the mean of all dispersions, recomputed at each update, as the method's
          authors do. The objective may rise and the labels may cycle.
        - "fixed" adds a constant: a tenth of the mean (over features) of the dispersions of
          the whole data, divided by `n_clusters`. The objective that includes this constant
          never rises.
        - A positive float is added as it is, in the units of the dispersions.
    feature_groups : array-like of shape (n_features,), "auto" or None, default=None
        One label per feature. Features with the same label, such as the columns of a one-hot
        encoding, are one variable: they share one weight per cluster, computed from the sum
        of their dispersions. Weights sum to 1 over variables, and offsets are added to the
        dispersions of variables (:doc:`/guide/variables`). "auto" uses the part of each
        column name before the first "=", as in the names of
        :class:`~cafelearn.TableEncoder`. With None, every feature is a variable.
    init : {"random", "k-means++", "anomalous"}, callable or array-like of shape \
            (n_clusters, n_features), default="random"
        Initial centres.

        - "random": distinct rows drawn at random.
        - "k-means++": rows drawn at random, with a preference for rows at a large Minkowski
          distance from those already drawn.
        - "anomalous": centres of the `n_clusters` largest anomalous clusters. These are grown
          one after the other, each around the remaining row that is farthest from the centre
          of the data [2]_. The result is deterministic, so there is only one start.
        - An array of centres, for one start.
        - A callable that takes ``X, n_clusters, random_state`` and returns such an array.
    n_init : int, default=10
        Number of starts. The start with the lowest objective (``inertia_``) is kept. If the
        objectives of several starts agree to a relative difference of 1e-9, the first of these
        starts is kept. `n_init` is ignored if `init` is an array or "anomalous".
    subsample : int or None, default=10_000
        If `X` has at least twice this many rows, the starts run on a weighted random sample
        of this many distinct rows. The best clustering of the sample is then refined on all
        rows, and so are up to two others with nearly the same objective. The refinement of
        these two ends early if they are not expected to become better than the first. If `X`
        has at least 40, 60 or 80 times as many rows as the sample, 2, 3 or 4 times `n_init`
        starts run on the sample. With ``None``, or with an array or a callable as `init`,
        every start runs on all rows.
    max_iter : int, default=300
        Largest number of iterations of one start.
    tol : float, default=0.0
        Stop when the objective changes by less than this fraction in an iteration. With 0, a
        start runs until the labels no longer change.
    early_stopping : bool, default=False
        End a start if its objective, extrapolated from its last iterations, does not fall
        below the lowest objective of the first five starts. With many starts, this saves a
        third to three quarters of the iterations, but it may end the start that would have
        been best.
    n_jobs : int, default=None
        Number of threads. Starts run in parallel; if there are few starts and many rows, the
        rows of each start are divided among the threads. The result is bitwise the same for
        any number of threads. ``None`` means 1 unless in a :obj:`joblib.parallel_config`
        context, -1 means all cores.
    verbose : int, default=0
        1 shows the progress on standard error: a bar on a terminal and in a notebook,
        occasional lines elsewhere. 2 reports each start instead.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. Each start has its own stream of random numbers.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row; the same as ``predict`` on the training data.
    n_clusters_ : int
        The number of clusters, given or chosen.
    n_clusters_table_ : pandas.DataFrame or None
        One row for each number of clusters tried, with the columns ``gain``, ``counts``,
        ``tied`` and ``chosen``; see :class:`CAFE` and :doc:`/guide/clusters`. None if a single
        number was given.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Minkowski centres.
    feature_weights_ : ndarray of shape (n_clusters, n_features)
        Weight of each feature in each cluster; each row sums to 1. With `feature_groups`,
        each entry is the weight of the feature's variable, and the sum over variables is 1.
    feature_groups_ : ndarray of str of shape (n_features,) or None
        Name of the variable of each feature; None without `feature_groups`.
    dispersions_ : ndarray of shape (n_clusters, n_features)
        Sum of ``abs(x - z)**p`` over the members of each cluster, for each feature. A missing
        value counts as the mean over the members with observed values.
    inertia_ : float
        The objective, the sum of ``feature_weights_**p * dispersions_``.
    objective_path_ : ndarray of shape (n_iter_,)
        The objective after each iteration. With a constant offset c, it is the sum of
        ``w**p * (D + c)``, where D are the dispersions. With ``dispersion_offset="mean"``, it
        is the sum of ``w**p * D``.
    init_objectives_ : ndarray of shape (n_starts,)
        ``inertia_`` of every start, after its last iteration. If the starts ran on a sample,
        these are estimates.
    n_iter_ : int
        Iterations of the start that was kept.
    stop_reason_ : {"converged", "cycle", "max_iter"}
        Reason for stopping. "cycle" means that earlier labels recurred. This is possible with
        ``dispersion_offset="mean"`` and with missing values. Otherwise it is possible only
        between labels whose objectives are equal up to rounding, as on tied data with p near
        1.
    diagnosis_ : list of Finding
        Problems found with the fit; see :class:`cafelearn.diagnosis.Finding`. Severe findings
        are also issued as warnings.
    n_features_in_ : int
        Number of features seen during :meth:`fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during :meth:`fit`. Defined only when `X` has feature names
        that are all strings.

    See Also
    --------
    sklearn.cluster.KMeans : The same as ``weighting="uniform"`` with p = 2.

    Notes
    -----
    Centres are accurate to about 1e-10 of the range of their members (float64; see
    :doc:`/guarantees` for exceptions).

    If a cluster becomes empty, its centre is moved to the row with the largest distance to its
    nearest centre. If there are fewer distinct rows than clusters, some clusters stay empty,
    and ``fit`` issues a :class:`~sklearn.exceptions.ConvergenceWarning`.

    Features should be on comparable scales; see :class:`cafelearn.RangeScaler`. If they are
    not, ``fit`` warns, and `diagnosis_` contains the finding "scales".

    References
    ----------
    .. [1] R. C. de Amorim and V. Makarenkov, "Cluster-Adaptive Feature Extraction and its
       Theoretical Foundation with Minkowski Weighted k-Means".
    .. [2] R. C. de Amorim and B. Mirkin, "Minkowski metric, feature weighting and anomalous
       cluster initializing in K-Means clustering", Pattern Recognition 45 (2012).

    Examples
    --------
    There are two clusters. In one of them, the second feature is noise.

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
        "n_clusters": [
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"auto"}),
            "array-like",
        ],
        "p": [Interval(Real, 1, None, closed="neither")],
        "weighting": [StrOptions(set(WEIGHTINGS))],
        "dispersion_offset": [
            StrOptions({"mean", "fixed"}),
            Interval(Real, 0, None, closed="left"),
        ],
        "feature_groups": ["array-like", StrOptions({"auto"}), None],
        "init": [StrOptions(set(INITS)), callable, "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "subsample": [Interval(Integral, 1, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "early_stopping": ["boolean"],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int | str | Sequence[int] = 8,
        *,
        p: float = 2.0,
        weighting: str = "cluster",
        dispersion_offset: str | float = "mean",
        feature_groups: Any = None,
        init: Any = "random",
        n_init: int = 10,
        subsample: int | None = 10_000,
        max_iter: int = 300,
        tol: float = 0.0,
        early_stopping: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Seed = None,
    ):
        self.n_clusters = n_clusters
        self.p = p
        self.weighting = weighting
        self.dispersion_offset = dispersion_offset
        self.feature_groups = feature_groups
        self.init = init
        self.n_init = n_init
        self.subsample = subsample
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    # Number of rows of positive weight in each cluster; None without sample weights.
    _members: np.ndarray | None = None

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: MatrixLike, y: object = None, sample_weight: VectorLike | None = None
    ) -> Self:
        """Cluster the rows of `X`.

        Parameters
        ----------
        X : array-like, Dask array or Dask dataframe of shape (n_samples, n_features)
            The data: dense and numeric; NaN is a missing value (:doc:`/guide/missing`).
            float32 data is fitted in single precision. If its values are too far from zero or
            its ranges too different for single precision, the fit and the centres are float64.
            A Dask collection is fitted block by block (:doc:`/guide/large_data`), and
            ``labels_`` is a lazy Dask array.
        y : None
            Ignored; present by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row in centres, dispersions, offset and objective. If `n_clusters`
            is a number, an integer weight is equivalent to repeating the row.

        Returns
        -------
        self : MinkowskiWeightedKMeans
            The fitted estimator.
        """
        check_given_number(self)
        return fit_with_number(self, X, sample_weight)

    _open = open_rows

    def _fit(self, source):
        """Fit with the number of clusters that was given or chosen."""
        self._members = None
        (job,) = prepare([self], source.ordinary(self.p))
        run_starts([job], self.n_jobs, self.verbose)
        n_found = job.best.n_found
        if source.weighted:
            placed = source.labelled(source.portable(self)._assign, self.labels_)
            self._members = placed.reduce(count_members, sum, self.n_clusters)
        self.labels_ = source.labels(self, self.labels_)
        if n_found < self.n_clusters:
            warn_caller(
                f"Number of distinct clusters ({n_found}) found smaller than "
                f"n_clusters ({self.n_clusters}). Possibly due to duplicate points in X"
                f"{' or to sample weights of zero' if source.weighted else ''}.",
                ConvergenceWarning,
            )
        warn_of(self.diagnosis_, type(self).__name__)
        return self


def count_members(part, n_clusters):
    """Count the rows of positive weight of each cluster."""
    labels = part.labels[part.sample_weight > 0]
    return np.bincount(labels, minlength=n_clusters).astype(np.float64)
