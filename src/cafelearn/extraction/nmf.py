"""ReplicatedNMF: non-negative factors of shifted data, from the best of many starts."""

import sys
import warnings
from numbers import Integral, Real
from typing import Self

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import nnls
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from cafelearn.base.seeds import seed_sequence
from cafelearn.base.typing import MatrixLike, Seed
from cafelearn.base.warning import warn_caller
from cafelearn.data.validation import N_JOBS, check_data
from cafelearn.extraction._als import Factors, clipped_scores, factorize_all
from cafelearn.extraction._components import (
    check_features,
    resolve_components,
    root_mean_square,
)

# Number of values that fit into the second-level cache of a core.
CACHE_ENTRIES = 2**18


class ReplicatedNMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Non-negative matrix factorisation of data of any sign, from many starts.

    Each feature is shifted so that its minimum over the training data is 0. The shifted data is
    approximated by ``W @ H`` with non-negative factors. The rows of H, the components, have
    length 1. The rows of W are the extracted features. Components are sorted by the length of
    their column of W, in descending order.

    Parameters
    ----------
    n_components : int, default=None
        Number of features to extract, at most the number of features of the data. ``None``
        means half of that number, rounded down, but at least 1.
    solver : {"als", "mu", "cd"}, default="als"
        The algorithm.

        - "als": alternating least squares [1]_. Each iteration solves for H, then for W, by
          unconstrained least squares, and sets negative entries to 0.
        - "mu": multiplicative updates of :class:`sklearn.decomposition.NMF`.
        - "cd": coordinate descent of :class:`sklearn.decomposition.NMF`.
    n_init : int, default=50
        Number of random starts; the start with the best reconstruction is kept.
    max_iter : int, default=100
        Largest number of iterations of one start.
    tol : float, default=1e-4
        With "als", a start stops when an iteration lowers the norm of the residual by no
        more than this fraction. It also stops when an iteration changes no entry of W or H by
        more than this fraction of the largest entry of the same factor. For the other solvers
        see :class:`sklearn.decomposition.NMF`.
    n_jobs : int, default=None
        Number of threads that share the starts. The result does not depend on the number of
        threads. ``None`` means 1 unless in a :obj:`joblib.parallel_config` context; -1 means
        all cores.
    verbose : int, default=0
        If 1, report each start on standard error.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. Each start has its own stream of random numbers.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The components, H. Unused components are 0.
    minimum_ : ndarray of shape (n_features,)
        Smallest value of each feature.
    reconstruction_error_ : float
        Root mean square of ``X - inverse_transform(transform(X))``.
    n_iter_ : int
        Number of iterations of the start that was kept.
    n_features_in_ : int
        Number of features seen during :meth:`fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during :meth:`fit`. Defined only when `X` has feature names
        that are all strings.

    See Also
    --------
    sklearn.decomposition.NMF : NMF of non-negative data from one start.

    Notes
    -----
    :meth:`transform` computes W for given components H. With "als", W is the least squares
    solution with negative entries set to 0, computed by one matrix product for all rows. With
    the other solvers, a non-negative least squares problem is solved for each row.

    With "als", setting negative entries to 0 may increase the residual. A start stops at the
    first increase.

    References
    ----------
    .. [1] M. W. Berry, M. Browne, A. N. Langville, V. P. Pauca and R. J. Plemmons,
       "Algorithms and applications for approximate nonnegative matrix factorization",
       Computational Statistics & Data Analysis 52 (2007).

    Examples
    --------
    Recover two components of data that is shifted by -7.

    >>> import numpy as np
    >>> from cafelearn.extraction import ReplicatedNMF
    >>> rng = np.random.default_rng(0)
    >>> parts = np.array([[0.0, 3.0, 4.0, 0.0], [0.6, 0.0, 0.0, 0.8]])
    >>> amounts = rng.uniform(size=(50, 2)) * (rng.uniform(size=(50, 2)) < 0.5)
    >>> model = ReplicatedNMF(n_components=2, random_state=0)
    >>> features = model.fit_transform(amounts @ parts - 7)
    >>> features.shape
    (50, 2)
    >>> model.components_.round(2) + 0.0
    array([[0. , 0.6, 0.8, 0. ],
           [0.6, 0. , 0. , 0.8]])
    >>> model.minimum_
    array([-7., -7., -7., -7.])
    """

    _parameter_constraints = {
        "n_components": [None, Interval(Integral, 1, None, closed="left")],
        "solver": [StrOptions({"als", "mu", "cd"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        solver: str = "als",
        n_init: int = 50,
        max_iter: int = 100,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.solver = solver
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Find the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data: dense, numeric and without missing values. float32 stays float32.
        y : None
            Ignored; present by convention.

        Returns
        -------
        self : ReplicatedNMF
            The fitted estimator.
        """
        X = check_data(self, X)
        n_components = resolve_components(self, X.shape[1])
        self.minimum_ = X.min(axis=0)
        shifted = X.astype(np.float64) - self.minimum_
        # Scale to a maximum of 1, so that the factors neither overflow nor underflow.
        peak = np.max(shifted)
        rows = shifted / peak if peak > 0 else shifted
        seeds = seed_sequence(self.random_state).spawn(self.n_init)
        components, self.n_iter_ = _run_starts(self, rows, n_components, seeds)
        lengths = np.linalg.norm(components, axis=1, keepdims=True)
        components = components / np.where(lengths > 0, lengths, 1)
        order = np.argsort(
            -np.linalg.norm(self._scores(rows, components), axis=0), kind="stable"
        )
        self.components_ = components[order].astype(X.dtype)
        features = self._scores(X - self.minimum_, self.components_)
        self.reconstruction_error_ = root_mean_square(X - self.inverse_transform(features))
        return self

    def transform(self, X: MatrixLike) -> np.ndarray:
        """Compute the extracted features of each row: the coefficients of the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data. Values below the minimum of their feature in :meth:`fit` are replaced by
            that minimum, with a warning.

        Returns
        -------
        features : ndarray of shape (n_samples, n_components)
            The extracted features; none are negative.
        """
        check_is_fitted(self)
        X = check_data(self, X, reset=False)
        shifted = X - self.minimum_.astype(X.dtype)
        if (shifted < 0).any():
            warn_caller(
                "ReplicatedNMF: values below the minimum of their feature in the training data "
                "are treated as this minimum."
            )
            np.maximum(shifted, 0, out=shifted)
        return self._scores(shifted, self.components_)

    def inverse_transform(self, X: MatrixLike) -> np.ndarray:
        """Reconstruct rows, in the units of the data, from extracted features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Extracted features.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            The reconstructed data, ``X @ components_ + minimum_``.
        """
        check_is_fitted(self)
        X = check_features(self, X)
        return X @ self.components_.astype(X.dtype) + self.minimum_.astype(X.dtype)

    def _scores(self, shifted, components):
        """Compute W for the components H."""
        components = components.astype(np.float64)
        if self.solver == "als":
            return clipped_scores(shifted, components)
        scores = np.empty((len(shifted), len(components)), dtype=shifted.dtype)
        for i, row in enumerate(shifted):
            scores[i], _ = nnls(components.T, row.astype(np.float64))
        return scores

    @property
    def _n_features_out(self):
        return self.components_.shape[0]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _run_starts(estimator, X, n_components, seeds):
    """Factorise from one start per seed.

    Return the components and the number of iterations of the start with the smallest error.
    """
    if estimator.solver == "als":
        # Batches are large enough for array operations and small enough for the cache.
        size = int(np.clip(CACHE_ENTRIES // (n_components * len(X)), 1, 13))
        run = _run_als
    else:
        size, run = 1, _run_scikit_learn
    blocks = [seeds[first : first + size] for first in range(0, len(seeds), size)]

    best, number = (np.inf, None, 0), 0
    # BLAS threads would compete with the threads that run the batches.
    with threadpool_limits(1, user_api="blas"), warnings.catch_warnings():
        # Most starts reach max_iter, so a warning would not be useful.
        warnings.simplefilter("ignore", ConvergenceWarning)
        workers = Parallel(estimator.n_jobs, require="sharedmem", return_as="generator")
        for found in workers(
            delayed(run)(estimator, X, n_components, block) for block in blocks
        ):
            for components, error, n_iter in zip(*found, strict=True):
                number += 1
                if error < best[0] or best[1] is None:
                    best = error, components, int(n_iter)
                if estimator.verbose:
                    sys.stderr.write(
                        f"start {number}/{len(seeds)}: relative reconstruction error "
                        f"{error:.6g}, {n_iter} iterations\n"
                    )
    return best[1:]


def _run_als(estimator, X, n_components, seeds):
    shape = n_components, len(X)
    starts = np.stack([np.random.default_rng(seed).uniform(size=shape) for seed in seeds])
    return factorize_all(X, starts, estimator.max_iter, estimator.tol)


def _run_scikit_learn(estimator, X, n_components, seeds):
    (seed,) = seeds
    model = NMF(
        n_components,
        init="random",
        solver=estimator.solver,
        max_iter=estimator.max_iter,
        tol=estimator.tol,
        random_state=np.random.RandomState(np.random.MT19937(seed)),
    )
    with np.errstate(invalid="ignore"):  # 0 / 0 if all features are constant
        model.fit(X)
    error = model.reconstruction_err_ / np.sqrt(X.size)
    return Factors(model.components_[None], np.array([error]), np.array([model.n_iter_]))
