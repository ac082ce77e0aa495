"""The estimator Mixture."""

from collections.abc import Sequence
from functools import partial
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from cafelearn.base.seeds import seed_sequence
from cafelearn.base.typing import MatrixLike, Seed, VectorLike
from cafelearn.data.validation import (
    check_columns_observed,
    check_data,
    check_weights,
    countable_weights,
)
from cafelearn.data.variables import columns_of_variables, set_variables
from cafelearn.mixture.covariances import COVARIANCES
from cafelearn.mixture.fitted import FittedMixture
from cafelearn.mixture.maximise import m_step
from cafelearn.mixture.rows import (
    Fitted,
    counting_unit,
    em_sums,
    member_sums,
    one_thread,
    place,
    prepare,
    search_sample,
    sum_batches,
)
from cafelearn.mixture.search import families_of, search
from cafelearn.mixture.settings import LIMITS, TINY
from cafelearn.mixture.starts import first_starts, more_starts

__all__ = ["Mixture"]


class Mixture(FittedMixture, DensityMixin, BaseEstimator):
    """Mixture of clusters for tables with columns of any kind.

    A component describes a cluster: it has probabilities for categories and for values that
    many rows share (atoms), and normal or t distributions for continuous values, which may
    depend on each other. In each cluster, a column may instead be irrelevant: it then has the
    same free-form density as in all rows. Skewed columns are transformed. Missing values (NaN)
    add nothing to the likelihood.

    Parameters
    ----------
    n_components : int, default=1
        Number of clusters.
    covariance : {"auto", "independent", "spherical", "tied", "proportional", "full", \
            "lowrank"} or sequence of them, default="auto"
        How continuous columns without missing values depend on each other within clusters. With
        "independent", they do not, and neither if there are more than 100 of these columns.
        "auto" tries "independent", "proportional" and "full".
    tails : bool or "auto", default="auto"
        Whether distributions are t distributions (4 degrees of freedom) instead of normal ones.
    background : bool or "auto", default="auto"
        Whether a part of the rows, at most a tenth, may belong to no cluster but to a uniform
        background. These rows are still labelled with the most likely cluster.
    feature_groups : array-like of shape (n_features,), "auto" or None, default=None
        For each feature, the label of its variable, see :class:`~cafelearn.CAFE`. The columns
        of a one-hot encoded variable are one discrete variable. ``None`` detects them.
    n_init : int, default=3
        Largest number of rounds that follow the starts by k-means on standardised rows, on
        whitened rows, and by Ward's method. In each, the two best kinds of mixtures start from
        two random clusterings and from the clusters of the other mixtures. The search ends with
        the first round that finds nothing better.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Most likely component of each row.
    weights_ : ndarray of shape (n_components,)
        Share of each component among the rows outside the background.
    means_ : ndarray of shape (n_components, n_features)
        Mean of the observed values of the members of each component, by membership.
    covariances_ : ndarray of shape (n_components, n_continuous, n_continuous)
        Covariance matrices of the continuous columns, transformed and scaled to a variance of
        1; see :meth:`transform_columns`. Columns without a density of their own have
        variance 1.
    relevance_ : ndarray of int of shape (n_components, n_features)
        Role of each feature in each component. 0: irrelevant, with the same density as in all
        rows; 1: its location differs, with the same spread in all components where it counts;
        2: own location and spread, or own probabilities of categories.
    covariance_ : str
        The chosen covariance structure.
    tails_ : bool
        Whether t distributions were chosen.
    background_ : float
        Share of the background.
    n_iter_ : int
        Iterations of the best descent.
    lower_bound_ : float
        Penalised log-likelihood of the best descent, relative to independent columns.
    n_features_in_ : int
        Number of features seen during :meth:`fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during :meth:`fit`. Defined only when `X` has feature names
        that are all strings.

    See Also
    --------
    cafelearn.CAFE : Starts the mixture from Minkowski weighted k-means, too, chooses the number
        of clusters and extracts features.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cafelearn.mixture import Mixture
    >>> X = load_iris(as_frame=True).data
    >>> mixture = Mixture(3, random_state=0).fit(X)
    >>> mixture.covariance_
    'full'
    >>> mixture.predict_proba(X.head(2)).round(2)
    array([[1., 0., 0.],
           [1., 0., 0.]])
    """

    _parameter_constraints = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "covariance": [StrOptions({"auto", "independent", *COVARIANCES}), list, tuple],
        "tails": ["boolean", StrOptions({"auto"})],
        "background": ["boolean", StrOptions({"auto"})],
        "feature_groups": ["array-like", StrOptions({"auto"}), None],
        "n_init": [Interval(Integral, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance: str | Sequence[str] = "auto",
        tails: bool | str = "auto",
        background: bool | str = "auto",
        feature_groups: Any = None,
        n_init: int = 3,
        random_state: Seed = None,
    ):
        self.n_components = n_components
        self.covariance = covariance
        self.tails = tails
        self.background = background
        self.feature_groups = feature_groups
        self.n_init = n_init
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: MatrixLike, y: object = None, sample_weight: VectorLike | None = None
    ) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data: dense and numeric; NaN is a missing value.
        y : None
            Ignored; present by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row. In the likelihood, an integer weight counts as that many equal
            rows; the starts may differ.

        Returns
        -------
        self : Mixture
            The fitted estimator.
        """
        X = check_data(self, X, gaps=True)
        set_variables(self)
        weight = np.ones(len(X))
        if sample_weight is not None:
            weight = countable_weights(check_weights(sample_weight, X, self))
        self._check_covariance()
        counted = X[weight > 0]
        check_columns_observed(self, counted)
        if len(counted) < self.n_components:
            raise ValueError(
                f"Mixture needs at least as many rows of positive weight as components: "
                f"n_samples={len(counted)}, n_components={self.n_components}."
            )
        weight = weight / counting_unit(weight)
        sampling, searching = seed_sequence(self.random_state).spawn(2)
        some = search_sample(weight, sampling)
        prepared = prepare(X[some], weight[some], columns_of_variables(self))
        total = partial(sum_batches, X, weight)
        self._fit(prepared, (), searching, total, refine=len(some) < len(counted))
        self.labels_ = self._probabilities(X).argmax(axis=1).astype(np.int32)
        return self

    def _fit(self, prepared, starts, seed, total, refine):
        """Fit to prepared rows; return the descents, the best one first.

        `starts` are starting labels of these rows. ``total(run, request)`` adds up
        ``run(X, weight, request)`` over all rows. `refine` tells whether the prepared rows are
        only a part of them.
        """
        with one_thread():
            found = self._search(prepared, seed, starts)
            self._set(prepared.columns, found[0])
            if refine:
                self._refine(total)
            self._set_moments(total(member_sums, self._fitted))
            self._set_peaks(prepared)
        return found

    def _check_covariance(self):
        """Raise if a sequence of covariance structures is empty or has an unknown name."""
        if isinstance(self.covariance, str):
            return
        known = ["independent", *COVARIANCES]
        if not self.covariance or any(name not in known for name in self.covariance):
            raise ValueError(
                f"Mixture needs covariance to be 'auto' or among {known}, or a sequence of "
                f"these; got {self.covariance!r}."
            )

    def _search(self, prepared, seed, starts=()):
        """Search mixtures of prepared rows; return the descents, the best one first."""
        k, points, columns = self.n_components, prepared.points, prepared.columns
        given = prepared.weight, prepared.isolated
        labellings = [*starts, *first_starts(points, k, *given, seed)]
        families = families_of(self.covariance, self.tails, self.background, columns)
        drop = self.background == "auto"
        found = search(prepared, k, labellings, families, drop_background=drop)
        # Go on until neither independent starts nor the clusters of other families lead to a
        # better mixture of the two best families.
        for child in seed.spawn(self.n_init if k > 1 else 0):
            more = more_starts(points, k, *given, child, 2)
            more += [other.labels for other in found[1 : LIMITS.mixtures]]
            best = list(dict.fromkeys(descent.family for descent in found))[:2]
            again = search(prepared, k, more, [[family] for family in best], finished=1)
            if again[0].criterion <= found[0].criterion + LIMITS.tolerance * given[0].sum():
                break
            found = again + found
        return found

    def _set(self, columns, descent):
        self._fitted = Fitted(columns, descent.parameters, descent.family)
        self.n_iter_ = descent.n_iter
        self.lower_bound_ = descent.objective

    def _refine(self, total):
        """Run iterations of EM on all rows, with the columns of the sample.

        ``total(run, request)`` adds up ``run(X, weight, request)`` over all rows.
        """
        columns, parameters, family = self._fitted
        before = -np.inf
        for _ in range(LIMITS.all_iterations):
            sums = total(em_sums, Fitted(columns, parameters, family))
            if sums.log_likelihood - before < LIMITS.tolerance * sums.total:
                break
            before = sums.log_likelihood
            parameters = m_step(sums, columns, family, parameters, choose_block=False)
        self._fitted = Fitted(columns, parameters, family)

    def _set_moments(self, sums):
        """Set the attributes that are sums over members."""
        self.weights_ = sums.mass / sums.mass.sum()
        columns, observed = self._fitted.columns, sums.observed.sum(axis=0)
        self._n_varying = int((columns.low < columns.high).sum())
        center = sums.first.sum(axis=0) / observed
        variance = np.maximum(sums.second / observed - center**2, 0.0)
        means = sums.first / np.maximum(sums.observed, TINY)
        self.means_ = (means + columns.low) / columns.units
        self._center = (center + columns.low) / columns.units
        self._spread = np.sqrt(np.where(variance > 0, variance, 1.0)) / columns.units

    def _set_peaks(self, prepared):
        """Set the scale of `_cluster_features` by the rows of the search."""
        _, density, _ = place(prepared.rows, self._fitted)
        self._peaks = density.max(axis=0)
        roots = -np.sqrt(2 * (self._peaks - density))
        variance = float(roots.var(axis=0).sum())
        self._root_scale = 1 / np.sqrt(variance) if variance > 0 else 0.0

    def fit_predict(
        self, X: MatrixLike, y: object = None, sample_weight: VectorLike | None = None
    ) -> np.ndarray:
        """Fit the mixture and return the labels of the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.
        y : None
            Ignored; present by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The same as ``fit(X).predict(X)``.
        """
        return self.fit(X, sample_weight=sample_weight).labels_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
