"""The estimator Mixture."""

from collections.abc import Sequence
from contextlib import contextmanager
from functools import partial
from numbers import Integral
from threading import Lock
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin, _fit_context
from sklearn.utils import gen_batches
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from cafelearn.base.seeds import seed_sequence
from cafelearn.base.typing import MatrixLike, Seed, VectorLike
from cafelearn.data.validation import (
    check_columns_observed,
    check_data,
    check_weights,
    countable_weights,
)
from cafelearn.data.variables import columns_by_code, set_variables, variable_codes
from cafelearn.mixture.columns import Columns, fit_columns, geometry, read_rows
from cafelearn.mixture.covariances import COVARIANCES
from cafelearn.mixture.drawing import draw_rows
from cafelearn.mixture.em import Family, Parameters, add_sums, e_step, log_joint, memberships_of
from cafelearn.mixture.marginals import Marginals
from cafelearn.mixture.maximise import m_step
from cafelearn.mixture.powers import Powers
from cafelearn.mixture.search import families_of, search
from cafelearn.mixture.settings import LIMITS, TINY
from cafelearn.mixture.starts import find_isolated, first_starts, more_starts, power_labels

__all__ = ["Mixture"]

# Rows per batch.
ROWS = 8_192
# Number of mixtures found, whose clusters are starts for the others.
OTHERS = 6


class Fitted(NamedTuple):
    """A fitted mixture."""

    columns: Columns
    parameters: Parameters
    family: Family


class Mixture(DensityMixin, BaseEstimator):
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
        weight = counting_weights(weight)
        sampling, searching = seed_sequence(self.random_state).spawn(2)
        some = search_sample(weight, sampling)
        prepared = prepare(X[some], weight[some], self._groups())
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

    def _groups(self):
        codes = variable_codes(self)
        return None if codes is None else columns_by_code(codes)

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
            more += [other.labels for other in found[1:OTHERS]]
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
        columns, parameters, family = self._fitted
        joint, *_ = log_joint(prepared.rows, parameters, columns, family)
        k = len(parameters.mean)
        density = joint[:, :k] - parameters.log_weight[:k]
        self._peaks = density.max(axis=0)
        roots = -np.sqrt(2 * (self._peaks - density))
        variance = float(roots.var(axis=0).sum())
        self._root_scale = 1 / np.sqrt(variance) if variance > 0 else 0.0

    def _cluster_features(self, X):
        """Return the membership probabilities of validated rows, and the roots of densities.

        A root is minus the square root of twice the log density of the row in a cluster,
        relative to the highest one: minus its Mahalanobis distance, for a normal distribution.
        The total variance of the roots is about 1.
        """
        columns, parameters, family = self._fitted
        k = len(parameters.mean)
        shares, roots = [np.empty((0, k))], [np.empty((0, k))]
        with one_thread():
            for rows in gen_batches(len(X), ROWS) if len(X) else ():
                joint, *_ = log_joint(read_rows(X[rows], columns), parameters, columns, family)
                joint = joint[:, :k]
                shares.append(memberships_of(joint)[0])
                below = self._peaks - (joint - parameters.log_weight[:k])
                roots.append(-np.sqrt(2 * np.maximum(below, 0.0)) * self._root_scale)
        return np.concatenate(shares), np.concatenate(roots)

    def _in_batches(self, X):
        """Return memberships and log densities of validated rows, batch by batch."""
        fitted = self._fitted
        with one_thread():
            return [memberships(X[rows], fitted) for rows in gen_batches(len(X), ROWS)]

    def _probabilities(self, X):
        """Return the membership probabilities of validated rows."""
        if not len(X):
            return np.empty((0, self.n_components))
        return np.concatenate([share for share, _ in self._in_batches(X)])

    def _checked(self, X):
        check_is_fitted(self)
        return check_data(self, X, reset=False, gaps=True)

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Compute the probability of each component for each row, the background aside.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_components)
            The probabilities; each row has the sum 1.
        """
        return self._probabilities(self._checked(X))

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Find the most likely component of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Index of the component.
        """
        return self.predict_proba(X).argmax(axis=1).astype(np.int32)

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

    def score_samples(self, X: MatrixLike) -> np.ndarray:
        """Compute the log density of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Log of the density with respect to continuous values and of the probability of
            categories and atoms.
        """
        return np.concatenate([found for _, found in self._in_batches(self._checked(X))])

    def score(self, X: MatrixLike, y: object = None) -> float:
        """Compute the mean log density of the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.
        y : None
            Ignored; present by convention.

        Returns
        -------
        score : float
            Mean of :meth:`score_samples`.
        """
        return float(self.score_samples(X).mean())

    def bic(self, X: MatrixLike) -> float:
        """Compute the Bayesian information criterion; lower is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.

        Returns
        -------
        bic : float
            The criterion.
        """
        log_density = self.score_samples(X)
        columns, parameters, _ = self._fitted
        n_parameters = columns.n_parameters + parameters.n_parameters
        return float(n_parameters * np.log(len(log_density)) - 2 * log_density.sum())

    def icl(self, X: MatrixLike) -> float:
        """Compute the integrated completed likelihood criterion; lower is better.

        It is the BIC plus twice the entropy of the membership probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.

        Returns
        -------
        icl : float
            The criterion.
        """
        share = self.predict_proba(X)
        return self.bic(X) - 2 * float((share * np.log(np.maximum(share, 1e-300))).sum())

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows from the mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The rows, without missing values.
        labels : ndarray of shape (n_samples,)
            Component of each row; -1 for the background.
        """
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"Mixture.sample needs n_samples to be >= 1, got {n_samples!r}.")
        rng = np.random.default_rng(seed_sequence(self.random_state).spawn(3)[2])
        return draw_rows(self._fitted, int(n_samples), rng)

    def transform_columns(self, X: MatrixLike) -> np.ndarray:
        """Transform the continuous columns as the mixture does.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.

        Returns
        -------
        values : ndarray of shape (n_samples, n_continuous)
            Transformed values with a mean of about 0 and a variance of about 1; 0 for atoms and
            missing values.
        """
        return np.array(read_rows(self._checked(X), self._fitted.columns).values)

    @property
    def covariances_(self) -> np.ndarray:
        """Covariance matrices of the transformed continuous columns."""
        check_is_fitted(self)
        _, parameters, _ = self._fitted
        own = np.where(parameters.used > 0, parameters.variance, 1.0)
        found = np.stack([np.diag(variance) for variance in own])
        block = parameters.block
        found[:, block[:, None], block] = parameters.covariance
        return found

    @property
    def relevance_(self) -> np.ndarray:
        """Role of each feature in each component."""
        check_is_fitted(self)
        columns, parameters, _ = self._fitted
        k = len(parameters.mean)
        found = np.zeros((k, self.n_features_in_), dtype=np.int8)
        kind = np.where(parameters.used > 0, parameters.kind, 0)
        kind[:, parameters.block] = parameters.kind[parameters.block]
        found[:, columns.place] = kind
        places = columns.event_place, columns.place[columns.marginals.mode_column]
        matters = parameters.log_ratio[:k] != 0
        for place, column in enumerate(np.concatenate(places).tolist()):
            found[matters[:, place], column] = 2
        return found

    @property
    def covariance_(self) -> str:
        """The chosen covariance structure."""
        check_is_fitted(self)
        return self._fitted.family.covariance

    @property
    def tails_(self) -> bool:
        """Whether t distributions were chosen."""
        check_is_fitted(self)
        return self._fitted.family.tails

    @property
    def background_(self) -> float:
        """Share of the background."""
        check_is_fitted(self)
        _, parameters, family = self._fitted
        return float(np.exp(parameters.log_weight[-1])) if family.background else 0.0

    @property
    def _fitted(self):
        """The fitted mixture; stored as dictionaries of arrays, which model files can hold."""
        state = self._state
        columns = dict(state["columns"])
        columns["powers"] = Powers(**columns["powers"])
        columns["marginals"] = Marginals(**columns["marginals"])
        return Fitted(
            Columns(**columns), Parameters(**state["parameters"]), Family(**state["family"])
        )

    @_fitted.setter
    def _fitted(self, fitted):
        columns = fitted.columns._asdict()
        columns["powers"] = columns["powers"]._asdict()
        columns["marginals"] = columns["marginals"]._asdict()
        parameters = fitted.parameters._asdict()
        parameters["covariance"] = np.array(parameters["covariance"])
        self._state = {
            "columns": columns,
            "parameters": parameters,
            "family": fitted.family._asdict(),
        }

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class MemberSums(NamedTuple):
    """Sums over the members of each component."""

    mass: np.ndarray  # (k,)
    first: np.ndarray  # (k, m)
    second: np.ndarray  # (m,) of all rows
    observed: np.ndarray  # (k, m)

    def __add__(self, other):
        return MemberSums(*(a + b for a, b in zip(self, other, strict=True)))


def memberships(X, fitted):
    """Return the membership probabilities of the components and the log densities of rows."""
    columns, parameters, family = fitted
    rows = read_rows(X, columns)
    joint, *_ = log_joint(rows, parameters, columns, family)
    _, log_density = memberships_of(joint)
    share, _ = memberships_of(joint[:, : len(parameters.mean)])
    return share, log_density + rows.base


def sum_batches(X, weight, run, request):
    """Add up ``run(X, weight, request)`` over batches of rows; there may be no rows."""
    batches = gen_batches(len(X), ROWS) if len(X) else [slice(0)]
    return add_sums([run(X[rows], weight[rows], request) for rows in batches])


def em_sums(X, weight, fitted):
    """Compute the `Sums` of rows for the M-step."""
    columns, parameters, family = fitted
    return e_step(read_rows(X, columns), weight, parameters, columns, family)[1]


def member_sums(X, weight, fitted):
    """Compute the `MemberSums` of rows."""
    members = (memberships(X, fitted)[0] * weight[:, None]).T
    there = ~np.isnan(X)
    X = np.where(there, X * fitted.columns.units - fitted.columns.low, 0.0)
    return MemberSums(members.sum(axis=1), members @ X, weight @ (X * X), members @ there)


LIMIT = {"lock": Lock(), "users": 0, "limits": None}


@contextmanager
def one_thread():
    """Limit BLAS and OpenMP to one thread.

    For small matrices, more threads only wait for each other, above all on a busy machine.
    The limits are those of the process, so of several users the last one lifts them.
    """
    with LIMIT["lock"]:
        LIMIT["users"] += 1
        if LIMIT["users"] == 1:
            LIMIT["limits"] = threadpool_limits(1)
    try:
        yield
    finally:
        with LIMIT["lock"]:
            LIMIT["users"] -= 1
            if LIMIT["users"] == 0:
                LIMIT["limits"].restore_original_limits()


class Prepared(NamedTuple):
    """Rows that are ready for the search."""

    X: np.ndarray
    columns: Columns
    rows: Any
    weight: np.ndarray
    points: np.ndarray
    isolated: np.ndarray

    def take(self, rows):
        """Return some of the rows."""
        X, columns, read, *others = self
        return Prepared(X[rows], columns, read.take(rows), *(field[rows] for field in others))


def prepare(X, weight, groups=None):
    """Find the kinds of the columns, and read the rows."""
    with one_thread():
        columns = fit_columns(X, weight, power_labels, groups)
        rows = read_rows(X, columns)
        points = geometry(X, columns, weight)
        return Prepared(X, columns, rows, weight, points, find_isolated(points))


def search_sample(weight, seed):
    """Return the positions of the rows that the search uses; rows of weight 0 are left out."""
    used, most = np.flatnonzero(weight > 0), LIMITS.search_rows
    if len(used) <= most:
        return used
    return np.sort(np.random.default_rng(seed).choice(used, most, replace=False))


def counting_weights(weight):
    """Return weights as numbers of rows; the mean of positive weights is at least 1."""
    mean = weight.sum() / np.count_nonzero(weight)
    return weight if mean >= 1 else weight / mean
