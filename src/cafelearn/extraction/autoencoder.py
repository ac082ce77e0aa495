"""Autoencoder with one hidden layer of logistic units; many starts are trained together."""

import sys
from numbers import Integral, Real
from typing import Self

import numpy as np
from joblib import Parallel, delayed
from scipy.special import expit
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from cafelearn.base.seeds import seed_sequence
from cafelearn.base.typing import MatrixLike, Seed
from cafelearn.data.validation import N_JOBS, check_data
from cafelearn.extraction import _scg
from cafelearn.extraction._components import (
    check_features,
    resolve_components,
    root_mean_square,
)
from cafelearn.extraction._network import (
    initial_point,
    layers,
    loss,
    make_problem,
    make_workspace,
)

# Number of values that fit into the second-level cache of a core.
CACHE_ENTRIES = 2**17
# Starts per batch.
BATCH = 25


class Autoencoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Autoencoder with one hidden layer of logistic units.

    Each feature is scaled so that its training data lies in [0, 1]. The extracted features of a
    scaled row x are ``h = logistic(W1 x + b1)``, and its reconstruction is
    ``y = logistic(W2 h + b2)``. The network minimises the loss

    ``mean(||x - y||**2) + l2 / 2 * (||W1||**2 + ||W2||**2) + sparsity_weight * sum(KL)``

    The mean is over all rows, and the last sum over all hidden units. KL is the
    Kullback-Leibler divergence between two Bernoulli distributions; their means are `sparsity`
    and the mean activation of the unit. The network is trained on all rows at once, with scaled
    conjugate gradients [1]_.

    Parameters
    ----------
    n_components : int, default=None
        Number of hidden units, at most the number of features of the data. ``None`` means
        half that number, rounded down, but at least 1.
    n_init : int, default=50
        Number of random starts; the start with the smallest mean squared error on the scaled
        data is kept.
    max_iter : int, default=100
        Number of epochs; there is no early stopping.
    l2 : float, default=1e-3
        Penalty on the squared weights; the offsets b1 and b2 are not penalised.
    sparsity_weight : float, default=1.0
        Weight of the sparsity penalty.
    sparsity : float, default=0.05
        Target mean activation of the hidden units, between 0 and 1.
    initial_scale : float, default=0.1
        Initial weights are uniform between minus and plus this fraction of Glorot's limit,
        ``sqrt(6 / (n_features + n_components))``; the offsets start at 0.
    n_jobs : int, default=None
        Number of threads; each trains a batch of 25 starts at a time. The result does not
        depend on the number of threads. ``None`` means 1 unless in a
        :obj:`joblib.parallel_config` context; -1 means all cores.
    verbose : int, default=0
        If 1, report each start on standard error.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts. Each start has its own stream of random numbers.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        W1, the weights of the hidden units.
    hidden_offset_ : ndarray of shape (n_components,)
        b1, the offsets of the hidden units.
    decoder_ : ndarray of shape (n_components, n_features)
        Transpose of W2, the weights of the output units.
    output_offset_ : ndarray of shape (n_features,)
        b2, the offsets of the output units.
    minimum_ : ndarray of shape (n_features,)
        Smallest value of each feature.
    range_ : ndarray of shape (n_features,)
        Largest minus smallest value of each feature; 1 for constant features.
    reconstruction_error_ : float
        Root mean square of ``X - inverse_transform(transform(X))``.
    loss_ : float
        Loss of the start that was kept.
    n_iter_ : int
        Number of epochs.
    n_features_in_ : int
        Number of features seen during :meth:`fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during :meth:`fit`. Defined only when `X` has feature names
        that are all strings.

    See Also
    --------
    sklearn.neural_network.MLPRegressor : Network with any number of layers, from one start.

    References
    ----------
    .. [1] M. F. Møller, "A scaled conjugate gradient algorithm for fast supervised learning",
       Neural Networks 6 (1993).

    Examples
    --------
    Six features are linear combinations of two variables. There is no sparsity penalty.

    >>> import numpy as np
    >>> from cafelearn.extraction import Autoencoder
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(100, 2)) @ rng.uniform(size=(2, 6))
    >>> model = Autoencoder(n_components=2, n_init=5, sparsity_weight=0, random_state=0)
    >>> features = model.fit_transform(X)
    >>> features.shape
    (100, 2)
    >>> bool(model.reconstruction_error_ < 0.3 * X.std(axis=0).mean())
    True
    """

    _parameter_constraints = {
        "n_components": [None, Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "l2": [Interval(Real, 0, None, closed="left")],
        "sparsity_weight": [Interval(Real, 0, None, closed="left")],
        "sparsity": [Interval(Real, 0, 1, closed="neither")],
        "initial_scale": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_init: int = 50,
        max_iter: int = 100,
        l2: float = 1e-3,
        sparsity_weight: float = 1.0,
        sparsity: float = 0.05,
        initial_scale: float = 0.1,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.n_init = n_init
        self.max_iter = max_iter
        self.l2 = l2
        self.sparsity_weight = sparsity_weight
        self.sparsity = sparsity
        self.initial_scale = initial_scale
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Train the network.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data: dense, numeric and without missing values. float32 stays float32.
        y : None
            Ignored; present by convention.

        Returns
        -------
        self : Autoencoder
            The fitted estimator.
        """
        X = check_data(self, X)
        n_components = resolve_components(self, X.shape[1])
        self.minimum_ = X.min(axis=0)
        width = X.max(axis=0) - self.minimum_
        self.range_ = np.where(width > 0, width, X.dtype.type(1))
        problem = make_problem(
            self._scaled(X), n_components, self.l2, self.sparsity_weight, self.sparsity
        )
        seeds = seed_sequence(self.random_state).spawn(self.n_init)
        starts = np.stack([initial_point(seed, problem, self.initial_scale) for seed in seeds])
        point, self.loss_ = _train_all(self, problem, starts)
        encoder, decoder = (layer[0].astype(X.dtype) for layer in layers(point[None], problem))
        self.components_, self.hidden_offset_ = encoder[:, :-1].copy(), encoder[:, -1].copy()
        self.decoder_, self.output_offset_ = decoder[:, :-1].T.copy(), decoder[:, -1].copy()
        self.n_iter_ = self.max_iter
        self.reconstruction_error_ = root_mean_square(
            X - self.inverse_transform(self._activations(X))
        )
        return self

    def transform(self, X: MatrixLike) -> np.ndarray:
        """Compute the activations of the hidden units.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.

        Returns
        -------
        features : ndarray of shape (n_samples, n_components)
            Activations, between 0 and 1.
        """
        check_is_fitted(self)
        return self._activations(check_data(self, X, reset=False))

    def inverse_transform(self, X: MatrixLike) -> np.ndarray:
        """Reconstruct rows, in the units of the data, from activations of the hidden units.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Activations.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            The reconstructed data, within the range of the training data.
        """
        check_is_fitted(self)
        X = check_features(self, X)
        kind = X.dtype
        output = expit(X @ self.decoder_.astype(kind) + self.output_offset_.astype(kind))
        return output * self.range_.astype(kind) + self.minimum_.astype(kind)

    def _scaled(self, X):
        return (X - self.minimum_.astype(X.dtype)) / self.range_.astype(X.dtype)

    def _activations(self, X):
        kind = X.dtype
        scaled = self._scaled(X)
        return expit(
            scaled @ self.components_.T.astype(kind) + self.hidden_offset_.astype(kind)
        )

    @property
    def _n_features_out(self):
        return self.components_.shape[0]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _train_all(estimator, problem, starts):
    """Train all starts; return the parameters and loss of the start with the smallest error."""
    batches = [starts[k : k + BATCH] for k in range(0, len(starts), BATCH)]
    # The matrices of one start are too small to benefit from BLAS threads.
    with threadpool_limits(1, user_api="blas"):
        workers = Parallel(estimator.n_jobs, require="sharedmem")
        results = workers(delayed(_train)(problem, b, estimator.max_iter) for b in batches)
    points, values, errors = (np.concatenate(parts) for parts in zip(*results, strict=True))
    if estimator.verbose:
        for number, (value, error) in enumerate(zip(values, errors, strict=True)):
            sys.stderr.write(
                f"start {number + 1}/{len(starts)}: loss {value:.6g}, "
                f"mean squared error {error:.6g}\n"
            )
    best = int(np.argmin(errors))
    return points[best], float(values[best])


def _train(problem, starts, n_epochs):
    """Train one batch of starts; return their parameters, losses and mean squared errors."""
    n_samples, n_columns = problem.rows.shape
    size = int(np.clip(CACHE_ENTRIES // (n_samples * n_columns), 1, len(starts)))
    workspace = make_workspace(size, problem)
    points, values = _scg.minimize_all(
        lambda points: loss(points, problem, workspace)[:2], starts, n_epochs
    )
    return points, values, loss(points, problem, workspace)[2]
