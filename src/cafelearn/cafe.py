"""CAFE: scale, cluster over several exponents, rescale by the weights, extract features."""

from numbers import Integral, Real

import numpy as np
import pandas as pd
from sklearn import config_context
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
    _fit_context,
    clone,
)
from sklearn.preprocessing import StandardScaler
from sklearn.utils import gen_batches
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from cafelearn._seeds import seed_integer, seed_sequence
from cafelearn._validation import check_data, distributed, is_dask, lazy_on_dask
from cafelearn.consensus import choose, make_models, sweep
from cafelearn.extraction.names import NAMES, make_extractor
from cafelearn.mwkmeans import MinkowskiWeightedKMeans
from cafelearn.rescaling import rescale_rows
from cafelearn.scaling import RangeScaler

# Extractors whose features of a row depend on no other row: large data is transformed some
# rows at a time, which saves a rescaled copy of all of it. (The NMF would warn many times.)
BY_ROW = ("pca", "ica", "fastica", "autoencoder")
ROWS = 32_768


class CAFE(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """Cluster-Adaptive Feature Extraction.

    Features that matter in some clusters and are noise in others mislead PCA and its kin,
    which treat every row alike. CAFE first clusters the rows with Minkowski weighted
    k-means, for several exponents p, and keeps the clustering that agrees most with the
    others. Each row is then rescaled by the feature weights of its cluster, which turns
    down what is noise there, and features are extracted from the rescaled rows.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_components : int, default=None
        Number of features to extract; ``None`` means half the features of `X`, at least 1.
        For an `extractor` of your own, ``None`` leaves its own setting as it is.
    extractor : {"pca", "nmf", "ica", "fastica", "autoencoder", "umap"} or transformer, \
            default="pca"
        How to extract features from the rescaled rows. "nmf" is
        :class:`~cafelearn.extraction.ReplicatedNMF`, "ica" is
        :class:`~cafelearn.extraction.ReconstructionICA`, "autoencoder" is
        :class:`~cafelearn.extraction.Autoencoder`, "umap" needs ``cafelearn[umap]``. Any
        scikit-learn transformer will do; it is cloned.
    p : float or sequence of float, default=(1.1, 1.5, 2.0, 3.0)
        Minkowski exponents to try; a single number skips the consensus.
    dispersion_offset : {"mean", "fixed"} or float, default="mean"
        See :class:`MinkowskiWeightedKMeans`.
    rescaling : {"origin", "centroid"}, default="origin"
        - "origin" is the paper's: ``w * x``, with the weights w of the row's cluster.
        - "centroid" keeps the centre z of the cluster where it is and shrinks the row
          towards it: ``z + (w / max(w)) * (x - z)``.
    scaling : {"range", "standard"}, transformer or None, default="range"
        How to scale the features beforehand: :class:`RangeScaler`,
        :class:`~sklearn.preprocessing.StandardScaler`, a transformer of your own (cloned),
        or not at all.
    init : {"random", "k-means++", "anomalous"}, callable or array-like, default="random"
        See :class:`MinkowskiWeightedKMeans`; an array is in the units of the scaled data.
    n_init : int, default=50
        Number of starts for each exponent.
    max_iter : int, default=300
        Largest number of iterations of one start.
    early_stopping : bool, default=False
        Give up starts that are unlikely to win; see :class:`MinkowskiWeightedKMeans`.
    n_jobs : int, default=None
        Number of threads; all starts of all exponents share them. The result does not
        depend on it.
    verbose : int, default=0
        1 reports each start on standard error.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts and of the extractor.

    Attributes
    ----------
    p_ : float
        The exponent chosen: the one whose clustering has the largest sum of adjusted Rand
        indices with the others. Ties go to the lower objective relative to its bounds
        (:func:`cafelearn.theory.normalized_objective`), then to the smaller exponent.
    agreement_ : ndarray of shape (n_exponents, n_exponents)
        Adjusted Rand index between the clusterings of each pair of exponents.
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row.
    feature_weights_ : ndarray of shape (n_clusters, n_features)
        Weight of each feature in each cluster; see also :meth:`weights_frame`.
    models_ : dict of float to MinkowskiWeightedKMeans
        The fitted model of each exponent, on the scaled data.
    n_iter_ : int
        Iterations of the start that was kept, at the exponent chosen.
    extractor_ : transformer
        The fitted extractor.
    scaler_ : transformer or None
        The fitted scaler.
    n_features_in_ : int
        Number of features seen during :meth:`fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during :meth:`fit`. Defined only when `X` has feature names
        that are all strings.

    See Also
    --------
    MinkowskiWeightedKMeans : The clustering alone.

    Notes
    -----
    A new row is scaled, assigned to the nearest centre, rescaled by the weights of that
    cluster and given to the fitted extractor. Where the assignment is doubtful, so are the
    features; :meth:`assignment_margin` tells.

    References
    ----------
    .. [1] R. C. de Amorim and V. Makarenkov, "Cluster-Adaptive Feature Extraction and its
       Theoretical Foundation with Minkowski Weighted k-Means".

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from cafelearn import CAFE
    >>> X = load_wine(as_frame=True).data
    >>> cafe = CAFE(n_clusters=3, n_components=2, n_init=5, random_state=0)
    >>> cafe.fit_transform(X).shape
    (178, 2)
    >>> cafe.p_
    2.0
    >>> cafe.weights_frame().round(2).iloc[:, :3]
               alcohol  malic_acid   ash
    cluster 0     0.09        0.05  0.07
    cluster 1     0.06        0.08  0.07
    cluster 2     0.07        0.04  0.09
    """

    _parameter_constraints = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "extractor": [StrOptions(set(NAMES)), HasMethods(["fit", "transform"])],
        "p": [Interval(Real, 1, None, closed="neither"), "array-like"],
        "dispersion_offset": MinkowskiWeightedKMeans._parameter_constraints[
            "dispersion_offset"
        ],
        "rescaling": [StrOptions({"origin", "centroid"})],
        "scaling": [StrOptions({"range", "standard"}), HasMethods(["fit", "transform"]), None],
        "init": MinkowskiWeightedKMeans._parameter_constraints["init"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "early_stopping": ["boolean"],
        "n_jobs": [None, Integral],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        n_components=None,
        extractor="pca",
        p=(1.1, 1.5, 2.0, 3.0),
        dispersion_offset="mean",
        rescaling="origin",
        scaling="range",
        init="random",
        n_init=50,
        max_iter=300,
        early_stopping=False,
        n_jobs=None,
        verbose=0,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.extractor = extractor
        self.p = p
        self.dispersion_offset = dispersion_offset
        self.rescaling = rescaling
        self.scaling = scaling
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.early_stopping = early_stopping
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    # The scaler and the extractor of the user may be estimators that are not fitted yet.
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None):
        """Cluster the rows, rescale them and fit the extractor.

        Parameters
        ----------
        X : array-like, Dask array or Dask dataframe of shape (n_samples, n_features)
            The data: dense, numeric and without missing values. A Dask collection is
            fitted where it lies, see ``cafelearn.distributed``; extractors other than
            "pca" then learn from at most 100,000 of its rows.
        y : None
            Ignored; present by convention.

        Returns
        -------
        self : CAFE
            The fitted estimator.
        """
        if is_dask(X):
            return distributed().fit_cafe(self, X)
        X = check_data(self, X)
        exponents = check_exponents(self.p)
        for_models, for_extractor = seed_sequence(self.random_state).spawn(2)
        extractor = extractor_of(self, X, seed_integer(for_extractor))
        self.scaler_ = scaler_of(self.scaling)
        if self.scaler_ is not None:
            self.scaler_.fit(X)
        scaled = self._scale(X)
        models = make_models(exponents, for_models, **self._model_options())
        found = sweep(models, scaled, self.n_jobs, self.verbose)
        self.p_, self.agreement_ = choose(models)
        self.models_ = dict(zip(exponents, models, strict=True))
        check_found(self, found[exponents.index(self.p_)])
        model = self.models_[self.p_]
        self.labels_, self.feature_weights_ = model.labels_, model.feature_weights_
        self.n_iter_ = model.n_iter_
        self.extractor_ = extractor.fit(self._rescale(scaled, model.labels_))
        first = self._rescale(scaled[:1], model.labels_[:1])
        self._n_features_out = width_of(self.extractor_, first)
        return self

    def fit_transform(self, X, y=None):
        """Fit, and extract the features of the training data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.
        y : None
            Ignored; present by convention.

        Returns
        -------
        features : ndarray of shape (n_samples, n_components)
            The same as ``fit(X).transform(X)``.
        """
        return self.fit(X).transform(X)

    @lazy_on_dask
    def transform(self, X):
        """Extract the features of new rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.

        Returns
        -------
        features : ndarray of shape (n_samples, n_components)
            What the extractor makes of the rows, scaled and rescaled.
        """
        check_is_fitted(self)
        X = check_data(self, X, reset=False)
        # Every row has been checked here; those who get them need not look again.
        with config_context(assume_finite=True):
            if not (isinstance(self.extractor, str) and self.extractor in BY_ROW):
                return np.asarray(self.extractor_.transform(self._rescaled(X)))
            features = None
            for rows in gen_batches(len(X), ROWS):
                some = np.asarray(self.extractor_.transform(self._rescaled(X[rows])))
                if features is None:
                    features = np.empty((len(X), some.shape[1]), dtype=some.dtype)
                features[rows] = some
            return features

    @lazy_on_dask
    def rescale(self, X):
        """Scale new rows and rescale them by the weights of their cluster.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.

        Returns
        -------
        rescaled : ndarray of shape (n_samples, n_features)
            What the extractor is given.
        """
        check_is_fitted(self)
        X = check_data(self, X, reset=False)
        with config_context(assume_finite=True):
            return self._rescaled(X)

    @lazy_on_dask
    def predict(self, X):
        """Find the cluster of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Index of the nearest centre.
        """
        model, scaled = self._model(), self._checked(X)
        with config_context(assume_finite=True):
            return model.predict(scaled)

    @lazy_on_dask
    def assignment_margin(self, X):
        """How clearly each row belongs to its cluster.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.

        Returns
        -------
        margin : ndarray of shape (n_samples,)
            1 minus the ratio of the distances to the nearest and the second nearest centre:
            1 at a centre, 0 half way between two. Where it is close to 0 the rescaling, and
            with it the features, could as well have been another.
        """
        distances = self._model().transform(self._checked(X))
        if distances.shape[1] == 1:
            return np.ones(len(distances), dtype=distances.dtype)
        two = np.partition(distances, 1, axis=1)
        second = np.where(two[:, 1] > 0, two[:, 1], 1)
        return 1 - np.where(two[:, 1] > 0, two[:, 0], 1) / second

    def weights_frame(self):
        """The feature weights as a table with names.

        Returns
        -------
        weights : pandas.DataFrame of shape (n_clusters, n_features)
            One row per cluster, one column per feature.
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = [f"x{v}" for v in range(self.n_features_in_)]
        index = [f"cluster {l}" for l in range(len(self.feature_weights_))]
        return pd.DataFrame(self.feature_weights_, index=index, columns=names)

    def _model_options(self):
        """What the models of all exponents have in common."""
        names = ("n_clusters", "dispersion_offset", "init", "n_init", "max_iter")
        names += ("early_stopping", "n_jobs")
        return {name: getattr(self, name) for name in names}

    def _model(self):
        check_is_fitted(self)
        return self.models_[self.p_]

    def _checked(self, X):
        """New rows, validated and scaled."""
        return self._scale(check_data(self, X, reset=False))

    def _scale(self, X):
        if self.scaler_ is None:
            return X
        with config_context(assume_finite=True):
            return np.ascontiguousarray(self.scaler_.transform(X), dtype=X.dtype)

    def _rescaled(self, X):
        """Checked rows, scaled, assigned and rescaled."""
        scaled = self._scale(X)
        labels = self._model().predict(scaled)
        return self._rescale(scaled, labels, None if np.may_share_memory(scaled, X) else scaled)

    def _rescale(self, scaled, labels, out=None):
        model = self.models_[self.p_]
        return rescale_rows(
            scaled, labels, model.feature_weights_, model.cluster_centers_, self.rescaling, out
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def check_exponents(p):
    """The exponents as a list of floats."""
    exponents = [float(q) for q in np.atleast_1d(np.asarray(p, dtype=np.float64)).ravel()]
    if not exponents:
        raise ValueError("CAFE needs at least one exponent p, got none.")
    for q in exponents:
        if not 1 < q < np.inf:
            raise ValueError(f"CAFE needs exponents p above 1, got {q:g} in p={p!r}.")
    if len(set(exponents)) < len(exponents):
        raise ValueError(f"CAFE needs distinct exponents, got p={p!r}.")
    return exponents


def scaler_of(scaling):
    """The scaler to fit, or None."""
    if scaling is None:
        return None
    if isinstance(scaling, str):
        return RangeScaler() if scaling == "range" else StandardScaler()
    return clone(scaling)


def extractor_of(estimator, X, seed):
    """The extractor to fit, after checking that it can give what is asked."""
    extractor, wanted = estimator.extractor, estimator.n_components
    shown = repr(extractor) if isinstance(extractor, str) else type(extractor).__name__
    if wanted is not None and wanted > X.shape[1]:
        raise ValueError(
            f"CAFE(extractor={shown}) needs n_components <= {X.shape[1]} features, "
            f"got {wanted}."
        )
    if isinstance(extractor, str):
        n_components = max(1, X.shape[1] // 2) if wanted is None else wanted
        if n_components > len(X):
            raise ValueError(
                f"CAFE(extractor={shown}) needs at least as many rows as components: "
                f"n_components={n_components}, n_samples={len(X)}."
            )
        return make_extractor(extractor, n_components, seed, estimator.n_jobs)
    extractor = clone(extractor)
    if wanted is not None:
        if "n_components" not in extractor.get_params():
            raise ValueError(
                f"CAFE(extractor={shown}) has no parameter n_components to set to {wanted}; "
                "leave n_components=None."
            )
        extractor.set_params(n_components=wanted)
    return extractor


def check_found(estimator, n_found):
    """Raise if there are fewer clusters than weights are needed for."""
    if n_found < estimator.n_clusters:
        raise ValueError(
            f"CAFE found only {n_found} of n_clusters={estimator.n_clusters} clusters in every "
            "start: X has too few distinct rows. Ask for fewer clusters."
        )


def width_of(extractor, rescaled):
    """Number of features that the extractor gives."""
    width = getattr(extractor, "_n_features_out", None)
    if width is None:
        width = np.asarray(extractor.transform(rescaled[:1])).shape[1]
    return width
