"""ReconstructionICA: extract sparse features that reconstruct the data, without whitening."""

import sys
from numbers import Integral, Real
from typing import NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from cafelearn.base.seeds import seed_sequence
from cafelearn.base.typing import MatrixLike, Seed
from cafelearn.base.warning import warn_caller
from cafelearn.data.validation import N_JOBS, check_data
from cafelearn.extraction._components import (
    check_features,
    resolve_components,
    root_mean_square,
)
from cafelearn.extraction._lbfgs import minimize_all
from cafelearn.extraction._rica import make_problem, objective


class ReconstructionICA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Reconstruction independent component analysis.

    The extracted features of a row x are its inner products with unit vectors w_j, the
    components, which are the columns of a matrix W. The components minimise the mean over all
    rows of the weighted reconstruction error plus a contrast that favours sparse features [1]_:

    ``reconstruction_weight * ||W W.T x - x||**2 + sum_j log(cosh(2 w_j.T x)) / 2``

    The components need not be orthogonal. The data is neither centred nor whitened. The
    contrast depends on the scale of the data: it is nearly quadratic for features much smaller
    than 1.

    Parameters
    ----------
    n_components : int, default=None
        Number of features to extract, at most the number of features of the data. ``None``
        means half that number, rounded down, but at least 1.
    reconstruction_weight : float, default=1.0
        Weight of the reconstruction error relative to the contrast.
    contrast : {"logcosh"} or None, default="logcosh"
        The contrast. With ``None`` there is no contrast, and the components span the same space
        as the first principal components of the uncentred data.
    n_init : int, default=50
        Number of random starts; the start with the best reconstruction is kept.
    max_iter : int, default=1000
        Largest number of iterations of one start.
    tol : float, default=1e-8
        A start stops when an iteration lowers the objective by no more than `tol` times the
        initial objective, or when no entry of the gradient exceeds this product.
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
        The components, each of length 1.
    reconstruction_error_ : float
        Root mean square of ``X - inverse_transform(transform(X))``.
    objective_ : float
        The objective of the start that was kept.
    n_iter_ : int
        Number of iterations of the start that was kept.
    n_features_in_ : int
        Number of features seen during :meth:`fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during :meth:`fit`. Defined only when `X` has feature names
        that are all strings.

    See Also
    --------
    sklearn.decomposition.FastICA : Whitens the data and keeps the components orthogonal.

    Notes
    -----
    The components are found with L-BFGS, for many starts at a time. The reconstruction error is
    computed from the matrix of second moments; only the contrast needs the rows.

    If the data is much smaller than 1, the contrast of an extracted feature z is nearly
    ``z**2``. A component orthogonal to the others reduces the reconstruction error by just as
    much. With ``reconstruction_weight=1`` the two cancel, and the reconstruction is poor; a
    larger weight improves it.

    References
    ----------
    .. [1] Q. V. Le, A. Karpenko, J. Ngiam and A. Y. Ng, "ICA with Reconstruction Cost for
       Efficient Overcomplete Feature Learning", NIPS 2011.

    Examples
    --------
    Two sparse sources are mixed into three features.

    >>> import numpy as np
    >>> from cafelearn.extraction import ReconstructionICA
    >>> rng = np.random.default_rng(0)
    >>> sources = rng.laplace(size=(500, 2))
    >>> X = sources @ [[0.6, 0.0, 0.8], [0.0, 1.0, 0.0]]
    >>> model = ReconstructionICA(n_components=2, n_init=5, random_state=0).fit(X)
    >>> order = np.abs(model.components_).argmax(axis=1).argsort()
    >>> np.abs(model.components_[order]).round(1) + 0.0
    array([[0. , 1. , 0. ],
           [0.6, 0. , 0.8]])
    >>> bool(model.reconstruction_error_ < 0.02 * X.std())
    True
    """

    _parameter_constraints = {
        "n_components": [None, Interval(Integral, 1, None, closed="left")],
        "reconstruction_weight": [Interval(Real, 0, None, closed="neither")],
        "contrast": [StrOptions({"logcosh"}), None],
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
        reconstruction_weight: float = 1.0,
        contrast: str = "logcosh",
        n_init: int = 50,
        max_iter: int = 1000,
        tol: float = 1e-8,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.reconstruction_weight = reconstruction_weight
        self.contrast = contrast
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
        self : ReconstructionICA
            The fitted estimator.
        """
        X = check_data(self, X)
        n_components = resolve_components(self, X.shape[1])
        problem = make_problem(X, self.reconstruction_weight, self.contrast is not None)
        seeds = seed_sequence(self.random_state).spawn(self.n_init)
        best = _run_starts(self, problem, n_components, seeds)
        self.components_ = best.components.astype(X.dtype)
        self.reconstruction_error_ = root_mean_square(
            X - (X @ self.components_.T) @ self.components_
        )
        peak = float(np.max(np.abs(X)))
        self.objective_ = best.value * peak * peak
        self.n_iter_ = best.n_iter
        if best.n_iter >= self.max_iter:
            warn_caller(
                f"ReconstructionICA stopped after max_iter={self.max_iter} iterations without "
                f"convergence to tol={self.tol}.",
                ConvergenceWarning,
            )
        return self

    def transform(self, X: MatrixLike) -> np.ndarray:
        """Compute the extracted features of each row: its inner products with the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.

        Returns
        -------
        features : ndarray of shape (n_samples, n_components)
            The extracted features.
        """
        check_is_fitted(self)
        X = check_data(self, X, reset=False)
        return X @ self.components_.T.astype(X.dtype)

    def inverse_transform(self, X: MatrixLike) -> np.ndarray:
        """Reconstruct rows from extracted features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Extracted features.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            The reconstructed data.
        """
        check_is_fitted(self)
        X = check_features(self, X)
        return X @ self.components_.astype(X.dtype)

    @property
    def _n_features_out(self):
        return self.components_.shape[0]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


# Number of values that fit into the second-level cache of a core.
CACHE_ENTRIES = 2**18


class _Result(NamedTuple):
    """The result of one start on the scaled data."""

    components: np.ndarray
    error: float
    value: float
    n_iter: int


def _run_starts(estimator, problem, n_components, seeds):
    """Minimise from one random start per seed; return the result with the smallest error."""
    shape = n_components, problem.rows.shape[1]
    starts = np.stack([np.random.default_rng(seed).standard_normal(shape) for seed in seeds])
    # Batches are large enough for array operations and small enough for the cache.
    size = int(np.clip(CACHE_ENTRIES // (n_components * len(problem.rows)), 1, 25))
    blocks = [starts[first : first + size] for first in range(0, len(starts), size)]

    best, number = None, 0
    # BLAS threads would compete with the threads that run the batches.
    with threadpool_limits(1, user_api="blas"):
        workers = Parallel(estimator.n_jobs, require="sharedmem", return_as="generator")
        work = (delayed(descend)(b, problem, estimator.max_iter, estimator.tol) for b in blocks)
        for results in workers(work):
            for result in results:
                number += 1
                if best is None or result.error < best.error:
                    best = result
                if estimator.verbose:
                    sys.stderr.write(
                        f"start {number}/{len(seeds)}: relative reconstruction error "
                        f"{result.error:.6g}, {result.n_iter} iterations\n"
                    )
    return best


def descend(starts, problem, max_iter, tol):
    """Minimise :func:`objective` from each of `starts`; return a list of results."""
    starts = starts / np.linalg.norm(starts, axis=2, keepdims=True)
    workspace = np.empty((2, starts.shape[0] * starts.shape[1], len(problem.rows)))

    def function(flat):
        values, slopes = objective(flat.reshape(-1, *starts.shape[1:]), problem, workspace)
        return values, slopes.reshape(flat.shape)

    found = minimize_all(function, starts.reshape(len(starts), -1), max_iter, tol)
    results = []
    for point, value, n_iter in zip(*found, strict=True):
        components = point.reshape(starts.shape[1:])
        components = components / np.linalg.norm(components, axis=1, keepdims=True)
        rebuilt = (problem.rows @ components.T) @ components
        error = root_mean_square(problem.rows - rebuilt)
        results.append(_Result(components, error, float(value), int(n_iter)))
    return results
