"""The estimator CAFE: cluster the rows, choose a clustering, extract features."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from sklearn import config_context
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils import gen_batches
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from cafelearn.base.progress import phase, shown
from cafelearn.base.seeds import seed_integer, seed_sequence
from cafelearn.base.typing import MatrixLike, Seed, Transformer, VectorLike
from cafelearn.choice.answer import best_starts, confidence_of, fit_mixture, judge_labels
from cafelearn.choice.chosen import fit_chosen, number_frame
from cafelearn.choice.diagnosis import (
    SCALE_IN_CAFE,
    Finding,
    check_answer,
    check_choice,
    check_number,
    check_scales,
    check_sizes,
    check_ties,
    check_verdict,
    check_weights,
    warn_of,
)
from cafelearn.choice.selection import (
    MIXTURE,
    SELECTIONS,
    add_tables,
    adjusted_rand_index,
    agreement_matrix,
    contingency_tables,
    highest,
)
from cafelearn.data.gaps import fill_gaps, has_gaps
from cafelearn.data.moments import combine_moments, sum_moments
from cafelearn.data.source import Part, scale_rows
from cafelearn.data.validation import (
    N_JOBS,
    check_data,
    check_given_number,
    check_unscaled,
    is_dask,
)
from cafelearn.data.variables import columns_by_code, set_variables, variable_codes
from cafelearn.estimators.candidates import (
    SCALINGS,
    candidate_frame,
    candidate_records,
    fit_models,
    make_candidates,
    make_models,
)
from cafelearn.estimators.mwkmeans import MinkowskiWeightedKMeans
from cafelearn.estimators.opening import lazy_on_dask, open_rows
from cafelearn.estimators.scaling import LARGEST_SAMPLE
from cafelearn.estimators.variable_scaling import fit_scalers, scaling_key
from cafelearn.extraction.fitting import (
    extractor_of,
    fit_extractor,
    fit_pca,
    fits_from_moments,
    width_of,
)
from cafelearn.extraction.loadings import make_loadings
from cafelearn.extraction.rescaling import (
    RESCALINGS,
    balancing_scales,
    beside_distances,
    beside_memberships,
    rescale_rows,
    shortest_distance,
    spread_sums,
    weights_of,
)
from cafelearn.extraction.table import EXTRACTORS
from cafelearn.interpret.labels import family_positions
from cafelearn.interpret.notebook import NotebookMixin
from cafelearn.interpret.profiles import ProfileMixin
from cafelearn.kmeans.kernels.weights import WEIGHTINGS
from cafelearn.kmeans.placing import margins
from cafelearn.mixture.descent import score_labels
from cafelearn.mixture.em import add_sums
from cafelearn.mixture.rows import one_thread, prepare, sum_batches
from cafelearn.mixture.settings import LIMITS

__all__ = ["CAFE", "PAPER"]

# Extractors that transform each row independently of the others. They are applied to ROWS rows
# at a time, which avoids a rescaled copy of all rows. NMF is excluded, because it would warn
# once per chunk.
BY_ROW = ("auto", "pca", "ica", "fastica", "autoencoder")
ROWS = 32_768

# Settings of Algorithm 2 in the paper, for ``CAFE(n_clusters, **PAPER)``.
PAPER = {
    "selection": "agreement",
    "p": (1.1, 1.5, 2.0, 3.0),
    "scaling": "range",
    "dispersion_offset": "mean",
    "weighting": "cluster",
    "rescaling": "origin",
    "n_init": 50,
}


def has_probabilities(cafe):
    """Raise if a CAFE fits no mixture; scikit-learn then treats the method as missing."""
    if cafe.selection != MIXTURE:
        raise AttributeError(
            f"CAFE.predict_proba needs selection='mixture', got {cafe.selection!r}."
        )
    return True


class CAFE(
    NotebookMixin,
    ProfileMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
):
    """Cluster-Adaptive Feature Extraction.

    PCA and similar methods treat all rows alike, so features that are relevant in some
    clusters and noise in others distort their results. CAFE first clusters the rows by
    Minkowski weighted k-means with several settings, the candidates. Starting from the two
    best candidates and from other clusterings, it fits a mixture, in which each feature may
    matter in some clusters only. The clusters are those of the mixture, and the features are
    the standardised rows beside their membership probabilities and log densities.
    `verdict_` says whether the clusters are a structure of the data, `confidence_` how well
    the labels are reproduced by halves of the rows, and `diagnosis_` lists reasons to distrust
    the result.

    ``CAFE(n_clusters, **cafelearn.PAPER)`` is the method of the paper [1]_.

    Parameters
    ----------
    n_clusters : int, "auto" or sequence of int, default=8
        Number of clusters. If several numbers are given, the one whose mixture has the highest
        criterion is chosen (:doc:`/guide/clusters`). If a single cloud describes the rows as
        well, 1 is chosen if it is among the numbers. "auto" means the numbers from 1 to 10.
        With fewer than 100 rows, the largest number is a tenth of the number of rows instead,
        but at least 2.
    n_components : int or float, default=None
        Number of features to extract. ``None`` means all columns of the rescaled rows if
        `extractor` is "auto" and `rescaling` is "memberships", as by default. Otherwise it
        means half the number of features of `X` (rounded down), but at least 1 and at most the
        number of rows; a custom `extractor` keeps its own setting. For PCA, a number between 0
        and 1 selects the smallest number of features that explain more than this share of the
        variance of the input.
    extractor : {"auto", "pca", "nmf", "ica", "fastica", "autoencoder", "umap"}, transformer \
            or None, default="auto"
        Method that extracts features from the rescaled rows. "auto" is no extraction if
        `n_components` is None and `rescaling` is "memberships", and else "pca". "nmf" is
        :class:`~cafelearn.extraction.ReplicatedNMF`, "ica" is
        :class:`~cafelearn.extraction.ReconstructionICA`, "autoencoder" is
        :class:`~cafelearn.extraction.Autoencoder`; "umap" requires ``cafelearn[umap]``. Any
        scikit-learn transformer is accepted and cloned. With ``None``, :meth:`transform`
        returns the rescaled rows.
    selection : {"mixture", "likelihood", "agreement"}, default="mixture"
        How the clusters are found:

        - "mixture": a :class:`cafelearn.mixture.Mixture`, which starts from the two candidates
          of the highest likelihood score, from k-means, from Ward's method and from random
          centres.
        - "likelihood": the candidate with the highest
          :func:`cafelearn.selection.likelihood_score`.
        - "agreement": the candidate with the largest sum of adjusted Rand indices with the
          others, as in the paper. Ties go to the lower objective relative to its bounds
          (:func:`cafelearn.theory.normalized_objective`), then to the smaller exponent.
    p : float or sequence of float, default=(2.0, 3.0)
        Minkowski exponents to try.
    scaling : {"range", "standard"}, transformer, None or list or tuple of them, \
            default=("range", "standard")
        Scalings of the features to try. "range" is :class:`RangeScaler`, "standard" is
        :class:`~sklearn.preprocessing.StandardScaler`. A custom transformer is cloned.
        ``None`` leaves the features as they are.
    dispersion_offset : {"mean", "fixed"}, float or list or tuple of them, \
            default=("mean", "fixed")
        Offsets of the dispersions to try; see :class:`MinkowskiWeightedKMeans`.
    weighting : {"cluster", "feature", "uniform"} or list or tuple of them, \
            default=("cluster", "uniform")
        Weightings to try; see :class:`MinkowskiWeightedKMeans`. "uniform" with
        p = 2 is ordinary k-means.
    feature_groups : array-like of shape (n_features,), "auto" or None, default=None
        For each feature, the label of its variable; see :class:`MinkowskiWeightedKMeans`. A
        variable of several features is scaled as a whole: "range" gives it a diameter of at
        most 1, "standard" a total variance of 1. A categorical variable then counts as one
        variable, regardless of its number of values (:doc:`/guide/variables`).
    rescaling : {"auto", "memberships", "distances", "origin", "centroid"}, default="auto"
        Input of the extractor. "auto" is "memberships" for ``selection="mixture"``, and else
        "distances".

        - "memberships", which needs ``selection="mixture"``: the standardised row, extended by
          its membership probabilities and by the roots of its log densities in the clusters
          (:doc:`/guide/settings`).

        For a scaled row x:

        - "distances": x, extended by the logarithms of its weighted distances to all
          centres. Both parts are scaled to the same total variance.
        - "origin": ``w * x``, with the weights w of the row's cluster, as in the paper.
        - "centroid": ``z + (w / max(w)) * (x - z)``, which shrinks the row towards the centre
          z of its cluster.
    init : {"random", "k-means++", "anomalous"}, callable or array-like, default="random"
        Initial centres; see :class:`MinkowskiWeightedKMeans`. An array must be in the units
        of the scaled data.
    n_init : int, default=None
        Number of starts for each candidate. ``None`` means 3 for ``selection="mixture"``, where
        the candidates are only starts of the mixture, and else 10.
    subsample : int or None, default=10_000
        Size of the sample that the starts run on if `X` has at least twice as many rows; see
        :class:`MinkowskiWeightedKMeans`.
    max_iter : int, default=300
        Largest number of iterations of one start.
    tol : float, default=0.0
        Stop a start when its objective changes by less than this fraction in an iteration;
        see :class:`MinkowskiWeightedKMeans`.
    early_stopping : bool, default=False
        End starts that are unlikely to be the best; see :class:`MinkowskiWeightedKMeans`.
    n_jobs : int, default=None
        Number of threads, shared by all starts of all candidates. The result does not depend
        on it.
    verbose : int, default=0
        1 shows the progress on standard error: a bar on a terminal and in a notebook,
        occasional lines elsewhere. 2 reports each start instead.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts, the extractor, the verdict and the choice of `n_clusters`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row.
    n_clusters_ : int
        The number of clusters, given or chosen.
    n_clusters_table_ : pandas.DataFrame or None
        One row for each number of clusters tried, with the columns ``gain`` (criterion of the
        mixture minus that of a single cloud), ``counts`` (whether all clusters are large enough
        to count), ``tied`` (whether the number is nearly as good as the chosen one) and
        ``chosen``; see :doc:`/guide/clusters`. None if a single number was given.
    verdict_ : {"structure", "none", "inconclusive", "continuum"}
        Whether the clusters are a structure of the data: "none" if a single cloud describes the
        rows as well, "continuum" if there are no gaps between the clusters, "inconclusive" if
        there is little evidence. For hard candidates, the verdict is that on the mixture that
        descends from them.
    mixture_ : cafelearn.mixture.Mixture
        The fitted mixture. This attribute, the next four and :meth:`predict_proba` are defined
        only for ``selection="mixture"``.
    confidence_ : {"high", "medium", "low"}
        "high" for a `stability_` of at least 0.85, "medium" from 0.6; "low" below, or if
        `verdict_` is not "structure".
    stability_ : float
        Mean adjusted Rand index between the labels and those of mixtures fitted to random
        halves of the rows.
    cluster_stability_ : ndarray of shape (n_clusters,)
        Mean Jaccard index of each cluster with the most similar cluster of these mixtures.
    relevance_ : ndarray of int of shape (n_clusters, n_features)
        Role of each feature in each cluster: 0 if irrelevant, 1 if only its location differs, 2
        if its spread or its probabilities differ, too; see
        :class:`cafelearn.mixture.Mixture`.
    feature_weights_ : ndarray of shape (n_clusters, n_features)
        Weight of each feature in each cluster; see also :meth:`weights_frame`. For a mixture,
        the weights of the paper's Eq. 4 with p = 2 for the final clusters
        (:doc:`/guide/weights`). With `feature_groups`, each entry is the weight of the
        feature's variable.
    feature_groups_ : ndarray of str of shape (n_features,) or None
        Name of the variable of each feature; None without `feature_groups`.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Centres of the clusters in the units of `X`. For a mixture, they are means weighted by
        the membership probabilities. Otherwise ``model_.cluster_centers_`` are the centres of
        the scaled data, and this attribute is defined only if there is no scaler or the scaler
        has an ``inverse_transform``.
    diagnosis_ : list of Finding
        Problems found with the fit; see :class:`cafelearn.diagnosis.Finding`. Severe findings
        are also issued as warnings.
    candidates_ : pandas.DataFrame
        One row per candidate: its settings, its objective and score, the sizes of its
        smallest and largest cluster, its agreement (adjusted Rand index) with the chosen
        candidate, and whether it was chosen.
    models_ : list of MinkowskiWeightedKMeans
        The model of each candidate, fitted to the data with the candidate's scaling.
    model_ : MinkowskiWeightedKMeans
        The model of the chosen candidate; for a mixture, of the candidate with the highest
        score, whose clusters are not those of `labels_`.
    p_ : float
        The chosen exponent.
    agreement_ : ndarray of shape (n_candidates, n_candidates)
        Adjusted Rand index between the clusterings of each pair of candidates.
    n_iter_ : int
        Iterations of the start that was kept for the chosen candidate.
    extractor_ : transformer or None
        The fitted extractor.
    scaler_ : transformer or None
        The fitted scaler of the chosen candidate.
    loadings_ : pandas.DataFrame of shape (n_inputs, n_components)
        Coefficients of the inputs in each extracted feature. Defined only for linear
        extractors such as PCA and ICA, and for NMF, where they are its components. With
        ``rescaling="memberships"`` the inputs are the standardised features and the membership
        and log density of each cluster. With ``rescaling="distances"`` they are the scaled
        features and the log distances to the centres, both parts scaled to the same total
        variance. With "origin" and "centroid" the coefficients include the weights of the
        clusters, and the index has two levels, cluster and input.
    n_features_in_ : int
        Number of features seen during :meth:`fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during :meth:`fit`. Defined only when `X` has feature names
        that are all strings.

    See Also
    --------
    MinkowskiWeightedKMeans : The clustering alone.
    cafelearn.mixture.Mixture : The mixture alone.
    cafelearn.selection.likelihood_score : The score of a clustering.

    Notes
    -----
    A new row is rescaled and passed to the fitted extractor, if there is one. With
    ``rescaling="origin"`` and ``"centroid"`` the row is first assigned to the nearest centre.
    If this assignment is uncertain, so are the features; see :meth:`assignment_margin`.

    References
    ----------
    .. [1] R. C. de Amorim and V. Makarenkov, "Cluster-Adaptive Feature Extraction and its
       Theoretical Foundation with Minkowski Weighted k-Means".

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from cafelearn import CAFE
    >>> X = load_wine(as_frame=True).data
    >>> cafe = CAFE(n_clusters=3, random_state=0)
    >>> cafe.fit_transform(X).shape  # 13 columns, 3 memberships, 3 log densities
    (178, 19)
    >>> cafe.verdict_, cafe.confidence_
    ('structure', 'high')
    >>> cafe.predict_proba(X.head(2)).max(axis=1).round(2)
    array([1., 1.])
    >>> cafe.weights_frame().shape
    (3, 13)
    """

    _parameter_constraints = {
        "n_clusters": MinkowskiWeightedKMeans._parameter_constraints["n_clusters"],
        "n_components": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="neither"),
            None,
        ],
        "extractor": [
            StrOptions({"auto", *EXTRACTORS}),
            HasMethods(["fit", "transform"]),
            None,
        ],
        "selection": [StrOptions(set(SELECTIONS))],
        "p": [Interval(Real, 1, None, closed="neither"), "array-like"],
        "scaling": [
            StrOptions(set(SCALINGS)),
            HasMethods(["fit", "transform"]),
            None,
            list,
            tuple,
        ],
        "dispersion_offset": [
            *MinkowskiWeightedKMeans._parameter_constraints["dispersion_offset"],
            list,
            tuple,
        ],
        "weighting": [StrOptions(set(WEIGHTINGS)), list, tuple],
        "feature_groups": MinkowskiWeightedKMeans._parameter_constraints["feature_groups"],
        "rescaling": [StrOptions({"auto", *RESCALINGS})],
        "init": MinkowskiWeightedKMeans._parameter_constraints["init"],
        "n_init": [Interval(Integral, 1, None, closed="left"), None],
        "subsample": MinkowskiWeightedKMeans._parameter_constraints["subsample"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": MinkowskiWeightedKMeans._parameter_constraints["tol"],
        "early_stopping": ["boolean"],
        "n_jobs": N_JOBS,
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    # Mass and number of rows of each cluster of the mixture; None where they are unknown.
    _mass: np.ndarray | None = None
    _members: np.ndarray | None = None

    def __init__(
        self,
        n_clusters: int | str | Sequence[int] = 8,
        *,
        n_components: int | float | None = None,
        extractor: str | Transformer | None = "auto",
        selection: str = "mixture",
        p: float | Sequence[float] = (2.0, 3.0),
        scaling: Any = ("range", "standard"),
        dispersion_offset: Any = ("mean", "fixed"),
        weighting: Any = ("cluster", "uniform"),
        feature_groups: Any = None,
        rescaling: str = "auto",
        init: Any = "random",
        n_init: int | None = None,
        subsample: int | None = 10_000,
        max_iter: int = 300,
        tol: float = 0.0,
        early_stopping: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Seed = None,
    ):
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.extractor = extractor
        self.selection = selection
        self.p = p
        self.scaling = scaling
        self.dispersion_offset = dispersion_offset
        self.weighting = weighting
        self.feature_groups = feature_groups
        self.rescaling = rescaling
        self.init = init
        self.n_init = n_init
        self.subsample = subsample
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    # Nested validation is not skipped: custom scalers and extractors check their parameters.
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: MatrixLike, y: object = None, sample_weight: VectorLike | None = None
    ) -> Self:
        """Cluster the rows, rescale them and fit the extractor.

        Parameters
        ----------
        X : array-like, Dask array or Dask dataframe of shape (n_samples, n_features)
            The data: dense and numeric; NaN is a missing value (:doc:`/guide/missing`). A Dask
            collection is fitted block by block (:doc:`/guide/large_data`); extractors other
            than "pca" are then fitted to at most 100,000 of its rows.
        y : None
            Ignored; present by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row in the scaling, the clustering, the score and the extractor. If
            `n_clusters` is a number, an integer weight is equivalent to repeating the row, with
            two exceptions that treat all rows of positive weight alike: `agreement_`, and
            scalers and extractors (except PCA) whose `fit` takes no `sample_weight`. Not
            supported for Dask collections.

        Returns
        -------
        self : CAFE
            The fitted estimator.
        """
        check_given_number(self)
        check_input(self)
        with shown(self.verbose):
            if not isinstance(self.n_clusters, Integral):
                return fit_chosen(self, X, sample_weight)
            self._numbers = None
            return self._fit(self._open(X, sample_weight))

    def _open(self, X, sample_weight):
        """Check the rows and return their source."""
        if is_dask(X) and sample_weight is not None:
            raise ValueError(
                f"{type(self).__name__} takes no sample_weight for Dask collections; "
                "MinkowskiWeightedKMeans does."
            )
        return open_rows(self, X, sample_weight)

    def _fit(self, source):
        """Fit with the number of clusters that was given or chosen."""
        candidates = make_candidates(self)
        set_variables(self)
        codes = variable_codes(self)
        if any(candidate.scaling is None for candidate in candidates):
            check_unscaled(source.low, source.high, self)
        seeds = seed_sequence(self.random_state).spawn(4)
        for_models, for_extractor, for_search, for_answer = seeds
        seed = seed_integer(for_extractor)
        extractor = extractor_of(self, source.n_counted, source.shape[1], seed)
        # Candidates with the same scaling share one source of scaled rows.
        scalers = fit_scalers(candidates, source, codes, for_extractor)
        scaled = dict(zip(scalers, source.scaled(scalers.values(), self), strict=True))
        sources = [scaled[scaling_key(candidate, codes)] for candidate in candidates]
        prepared = self._prepare(source, for_search)
        models, found, scores = self._fit_candidates(candidates, for_models, sources, prepared)
        chosen = self._choose(candidates, models, found, scores, source, sources)
        self.scaler_ = sources[chosen].scaler
        if self.selection == MIXTURE:
            starts = [models[i] for i in best_starts(scores)]
            starts = _predict(starts, [sources[i] for i in best_starts(scores)], prepared.X)
            self._fit_mixture(source, prepared, starts, for_answer)
            placed = source.labelled(source.portable(self)._assign)
            self._weigh(placed, sources[chosen], codes)
        else:
            placed = source.labelled(source.portable(self)._assign, self.model_.labels_)
            labels = self._assign(prepared.X)
            self._judge(prepared, labels, for_answer)
        self._extract(extractor, placed, for_extractor)
        for model, its_source in zip(models, sources, strict=True):
            model.labels_ = its_source.labels(model, model.labels_)
        self.labels_ = source.labels(self, placed.placed)
        if self.selection == MIXTURE and isinstance(self.labels_, np.ndarray):
            self.mixture_.labels_ = self.labels_[source.kept]
        warn_of(self.diagnosis_, type(self).__name__)
        return self

    def _prepare(self, source, seed):
        """Prepare the rows of the search: all rows, or a sample."""
        rows, mass = source.sample(seed, LIMITS.search_rows)
        codes = variable_codes(self)
        groups = None if codes is None else columns_by_code(codes)
        return prepare(rows, mass / counting_unit(source), groups)

    def _fit_mixture(self, source, prepared, starts, seed):
        """Fit the mixture: the search runs on prepared rows, the last iterations on all."""
        unit, refine = counting_unit(source), len(prepared.weight) < source.n_counted

        def total(run, request):
            return source.reduce(sum_part, add_sums, (unit, run, request))

        self.mixture_, answer = fit_mixture(self, prepared, starts, seed, total, refine)
        self._answer = answer._asdict()

    def _weigh(self, placed, scaled, codes):
        """Set the weights and the sizes of the clusters of the mixture."""
        unit, center = counting_unit(placed), scaled.low / 2 + scaled.high / 2
        request = placed.portable(self), unit, center
        with one_thread():
            sums, mass, members = placed.reduce(sum_spreads, add_members, request)
            self.feature_weights_ = weights_of(sums, scaled.high - scaled.low, codes)
        self._mass, self._members = mass, members if placed.weighted else None

    def _extract(self, extractor, placed, seed):
        """Fit the extractor by moments of the rescaled rows if possible, else to rows."""
        rescale = Rescaling(placed.portable(self))
        if self._input == "distances":
            request = rescale, placed.weighted, {}
            moments = placed.reduce(sum_moments, combine_moments, request)
            self._balance_parts(moments.scatter / moments.mass)
            rescale = Rescaling(placed.portable(self))
        if not placed.in_memory and fits_from_moments(extractor):
            request = rescale, False, {"products": True}
            moments = placed.reduce(sum_moments, combine_moments, request)
            self.extractor_ = fit_pca(extractor, moments, placed.dtype)
            self._n_features_out = extractor.n_components_
            return
        if placed.in_memory:
            part = Part(placed.counted, placed.weight, labels=placed.placed[placed.kept])
            rows, mass = rescale(part), placed.weight if placed.weighted else None
        else:
            at_most = 1 if extractor is None else LARGEST_SAMPLE
            rows, mass = self._rescaled(placed.sample(seed, at_most)[0]), None
        self.extractor_ = fit_extractor(extractor, rows, mass)
        self._n_features_out = width_of(self.extractor_, rows[:1])

    def _judge(self, prepared, labels, seed):
        """Judge the clusters of a hard candidate; `labels` are those of the prepared rows."""
        with phase("verdict"):
            verdict = judge_labels(prepared, labels, self.n_clusters, seed)
        self._answer = {"verdict": verdict.kind, "gain": float(verdict.gain)}

    @property
    def _input(self):
        """The input of the extractor, a value of RESCALINGS."""
        if self.rescaling != "auto":
            return self.rescaling
        return "memberships" if self.selection == MIXTURE else "distances"

    def fit_transform(
        self, X: MatrixLike, y: object = None, sample_weight: VectorLike | None = None
    ) -> np.ndarray:
        """Fit and extract the features of the training data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data.
        y : None
            Ignored; present by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row; see :meth:`fit`.

        Returns
        -------
        features : ndarray of shape (n_samples, n_components)
            The same as ``fit(X).transform(X)``.
        """
        return self.fit(X, sample_weight=sample_weight).transform(X)

    @lazy_on_dask
    def transform(self, X: MatrixLike) -> np.ndarray:
        """Extract the features of new rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.

        Returns
        -------
        features : ndarray of shape (n_samples, n_components)
            The extracted features.
        """
        check_is_fitted(self)
        X = check_data(self, X, reset=False, gaps=True)
        # The rows were validated above, so the extractor need not check that they are finite.
        with config_context(assume_finite=True):
            if self.extractor_ is None:
                return self._rescaled(X)
            if not (isinstance(self.extractor, str) and self.extractor in BY_ROW):
                return np.asarray(self.extractor_.transform(self._rescaled(X)))
            features: Any = None
            for rows in gen_batches(len(X), ROWS):
                some = np.asarray(self.extractor_.transform(self._rescaled(X[rows])))
                if features is None:
                    features = np.empty((len(X), some.shape[1]), dtype=some.dtype)
                features[rows] = some
            return features

    @lazy_on_dask
    def rescale(self, X: MatrixLike) -> np.ndarray:
        """Compute the input of the extractor for new rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.

        Returns
        -------
        rescaled : ndarray of shape (n_samples, n_features + 2 * n_clusters) for \
                ``rescaling="memberships"``, (n_samples, n_features + n_clusters) for \
                "distances", and else (n_samples, n_features)
            The input of the extractor.
        """
        check_is_fitted(self)
        X = check_data(self, X, reset=False, gaps=True)
        with config_context(assume_finite=True):
            return self._rescaled(X)

    @lazy_on_dask
    def predict(self, X: MatrixLike) -> np.ndarray:
        """Find the cluster of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Index of the most likely cluster or, if `selection` is not "mixture", of the nearest
            centre.
        """
        check_is_fitted(self)
        X = check_data(self, X, reset=False, gaps=True)
        with config_context(assume_finite=True):
            return self._assign(X)

    @available_if(has_probabilities)
    @lazy_on_dask
    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Compute the probability of each cluster for each row.

        Only defined for ``selection="mixture"``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_clusters)
            The probabilities; each row has the sum 1.
        """
        check_is_fitted(self)
        X = check_data(self, X, reset=False, gaps=True)
        return self.mixture_._probabilities(X).astype(X.dtype, copy=False)

    @lazy_on_dask
    def assignment_margin(self, X: MatrixLike) -> np.ndarray:
        """Compute the assignment margin of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.

        Returns
        -------
        margin : ndarray of shape (n_samples,)
            1 minus the ratio of the probabilities of the second most likely and the most likely
            cluster: 1 if there is no doubt, 0 if both are equally likely. For hard candidates
            (`selection` is not "mixture"), 1 minus the ratio of the distances to the nearest
            and the second nearest centre.
        """
        if self.selection != MIXTURE:
            return margins(self._model().transform(self._checked(X)))
        share = np.sort(self.predict_proba(X), axis=1)
        if share.shape[1] == 1:
            return share[:, 0]
        return 1 - share[:, -2] / share[:, -1]

    @property
    def loadings_(self):
        """Coefficients of the inputs of the extractor in each extracted feature."""
        check_is_fitted(self)
        return make_loadings(self)

    @property
    def cluster_centers_(self) -> np.ndarray:
        """Centres of the clusters in the units of the data."""
        check_is_fitted(self)
        if self.selection == MIXTURE:
            return self.mixture_.means_
        centers = self.model_.cluster_centers_
        if self.scaler_ is None:
            return centers
        if not hasattr(self.scaler_, "inverse_transform"):
            raise AttributeError(
                f"The scaler {type(self.scaler_).__name__} has no inverse_transform, so the "
                "centres are not available in the units of X; model_.cluster_centers_ has the "
                "centres of the scaled data."
            )
        return np.asarray(self.scaler_.inverse_transform(centers))

    @property
    def candidates_(self) -> pd.DataFrame:
        """The candidates, one row each."""
        check_is_fitted(self)
        return candidate_frame(self._candidates)

    @property
    def n_clusters_(self) -> int:
        """The number of clusters, given or chosen."""
        check_is_fitted(self)
        return len(self.feature_weights_)

    @property
    def n_clusters_table_(self) -> pd.DataFrame | None:
        """The numbers of clusters tried, one row each; None if a single number was given."""
        check_is_fitted(self)
        return None if self._numbers is None else number_frame(self._numbers)

    @property
    def diagnosis_(self) -> list[Finding]:
        """Problems found with the fit."""
        check_is_fitted(self)
        if self.selection == MIXTURE:
            return list(check_answer(self, agreement_with_starts(self)))
        names = getattr(self, "feature_names_in_", None)
        k, verdict = self.n_clusters_, self.verdict_
        candidates = self.candidates_
        return [
            *(check_number(self._numbers) if k == 1 else check_verdict(verdict, k)),
            *check_ties(self._numbers),
            *(check_scales(self.model_, names, SCALE_IN_CAFE) if self.scaler_ is None else ()),
            *check_sizes(self.model_),
            *check_weights(self.model_, names),
            *check_choice(candidates, family_positions(candidates)),
        ]

    @property
    def verdict_(self) -> str:
        """Whether the clusters are a structure of the data: see :doc:`/guide/clusters`."""
        check_is_fitted(self)
        return self._answer["verdict"]

    @property
    def confidence_(self) -> str:
        """How sure the labels are: "high", "medium" or "low"."""
        return confidence_of(self._answered("stability"), self.verdict_)

    @property
    def stability_(self) -> float:
        """Mean agreement of the labels with those of fits to random halves of the rows."""
        return self._answered("stability")

    @property
    def cluster_stability_(self) -> np.ndarray:
        """Mean agreement of each cluster with the most similar one of fits to random halves."""
        return np.array(self._answered("clusters"))

    @property
    def relevance_(self) -> np.ndarray:
        """Role of each feature in each cluster; see :class:`cafelearn.mixture.Mixture`."""
        self._answered("stability")
        return self.mixture_.relevance_

    def _answered(self, name):
        check_is_fitted(self)
        if self.selection != MIXTURE:
            raise AttributeError(
                f"Only CAFE(selection='mixture') has this attribute; got {self.selection!r}."
            )
        return self._answer[name]

    def _fit_candidates(self, candidates, seed, sources, prepared):
        """Fit a model of each candidate; return the models, numbers of clusters and scores.

        If values are missing, each candidate is fitted with both kinds of starts, and the model
        with the higher score is kept.
        """

        def fit(filled):
            models = make_models(candidates, seed, **self._model_options())
            found = fit_models(models, sources, self.n_jobs, self.verbose, filled)
            labellings = _predict(models, sources, prepared.X)
            with one_thread():
                scores = [score_labels(prepared, each, self.n_clusters) for each in labellings]
            return models, found, scores

        models, found, scores = fit(False)
        if sources[0].gaps:
            # On some data the starts on filled rows are better, on other data they are not.
            others, more, scores_of_others = fit(True)
            both = np.transpose([scores, scores_of_others])
            better = [highest(pair) for pair in both]
            models = [(models, others)[i][j] for j, i in enumerate(better)]
            found = np.choose(better, [found, more]).tolist()
            scores = np.choose(better, both.T)
        return models, found, np.asarray(scores)

    def _choose(self, candidates, models, found, scores, source, sources):
        """Choose a fitted model, set the attributes that depend on it and return its index."""
        place = Placement([source.portable(m) for m in models], [s.scaler for s in sources])
        sizes = [self.n_clusters] * len(models)
        placed = source.labelled(place, [model.labels_ for model in models])
        tables = placed.reduce(count_pairs, add_tables, sizes)
        self.agreement_ = agreement_matrix(tables, len(models))
        chosen = SELECTIONS[self.selection].choose(models, scores, self.agreement_)
        check_found(self, found[chosen], source.weighted)
        self.models_, self.model_ = models, models[chosen]
        self._candidates = candidate_records(
            candidates, models, scores, self.agreement_, chosen
        )
        self.p_, self.n_iter_ = float(self.model_.p), self.model_.n_iter_
        self.feature_weights_ = self.model_.feature_weights_
        shortest = shortest_distance(self.model_.inertia_, self.model_._mass.sum(), self.p_)
        self._distance_scales = np.array([shortest, 1.0, 1.0])
        if source.weighted:
            counted = placed.placed[chosen][source.kept]
            self.model_._members = np.bincount(counted, minlength=self.n_clusters) * 1.0
        return chosen

    def _balance_parts(self, variances):
        """Set the scales that give rows and log distances the same total variance.

        `variances` are the variances of all columns without these scales.
        """
        self._distance_scales[1:] = balancing_scales(variances, self.n_features_in_)

    def _model_options(self):
        """Return the parameters that all candidate models share."""
        names = ("n_clusters", "init", "n_init", "subsample", "max_iter", "tol")
        options = {name: getattr(self, name) for name in (*names, "early_stopping", "n_jobs")}
        # feature_groups_ instead of feature_groups, because "auto" needs column names, which
        # scaled rows do not have.
        options["feature_groups"] = self.feature_groups_
        if self.n_init is None:
            options["n_init"] = 3 if self.selection == MIXTURE else 10
        return options

    def _model(self):
        check_is_fitted(self)
        return self.model_

    def _checked(self, X):
        """Validate and scale new rows."""
        return self._scale(check_data(self, X, reset=False, gaps=True))

    def _scale(self, X):
        return scale_rows(self.scaler_, X)

    def _assign(self, X, scaled=None):
        """Return the clusters of validated rows."""
        if self.selection == MIXTURE:
            return self.mixture_._probabilities(X).argmax(axis=1).astype(np.int32)
        return self.model_._assign(self._scale(X) if scaled is None else scaled)

    def _rescaled(self, X):
        """Scale, assign and rescale validated rows."""
        if self._input == "memberships":
            return self._rescale(X, None)
        scaled = self._scale(X)
        if self._input == "distances":
            return self._rescale(scaled, None)
        labels = self._assign(X, scaled)
        return self._rescale(scaled, labels, None if np.may_share_memory(scaled, X) else scaled)

    def _rescale(self, rows, labels, out=None):
        """Return the input of the extractor.

        `rows` are scaled, but for memberships, where they are as given. Missing values are
        filled with the centre of the row's cluster. For distances and memberships, `labels` may
        be None.
        """
        if self._input == "memberships":
            return beside_memberships(rows, self.mixture_)
        model, scaled, centers = self.model_, rows, self.model_.cluster_centers_
        if self.selection == MIXTURE and self._input == "distances":
            labels = None  # the distances are those from the centres of the starts
        elif self.selection == MIXTURE:
            centers = self._scale(self.mixture_.means_)
        if has_gaps(scaled):
            labels = model.predict(scaled) if labels is None else labels
            rows = out = fill_gaps(scaled, labels, centers)
        if self._input == "distances":
            shape = len(scaled), len(model.cluster_centers_)
            distances = (
                model.transform(scaled) if len(scaled) else np.empty(shape, scaled.dtype)
            )
            shortest, *scales = self._distance_scales.tolist()
            return beside_distances(rows, distances, shortest, scales)
        return rescale_rows(rows, labels, self.feature_weights_, centers, self._input, out)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def agreement_with_starts(cafe):
    """Return the mean adjusted Rand index of the labels with those of the candidates.

    Return None if labels are lazy, after a fit to a Dask collection.
    """
    labels = [getattr(each, "labels_", None) for each in (cafe, *cafe.models_)]
    if not all(isinstance(each, np.ndarray) for each in labels):
        return None
    sizes = [cafe.n_clusters_] * 2
    tables = (contingency_tables([each, labels[0]], sizes)[1, 0] for each in labels[1:])
    return float(np.mean([adjusted_rand_index(table) for table in tables]))


def check_input(estimator):
    """Raise if the input of the extractor needs a mixture, and there is none."""
    if estimator._input == "memberships" and estimator.selection != MIXTURE:
        raise ValueError(
            "CAFE(rescaling='memberships') needs selection='mixture', got "
            f"{estimator.selection!r}."
        )


def check_found(estimator, n_found, weighted):
    """Raise if the chosen model has fewer nonempty clusters than requested."""
    if n_found < estimator.n_clusters:
        rows = "distinct rows of positive weight" if weighted else "distinct rows"
        raise ValueError(
            f"CAFE found only {n_found} of n_clusters={estimator.n_clusters} clusters in every "
            f"start: X has too few {rows}. Use fewer clusters."
        )


def counting_unit(source):
    """Return the divisor that makes weights numbers of rows; see `counting_weights`."""
    if not source.weighted:
        return 1.0
    return min(source.weight.sum() / len(source.weight), 1.0)


class Placement(NamedTuple):
    """Assign rows by several models, each after its own scaler."""

    models: list
    scalers: list

    def __call__(self, X):
        """Return the labels of the rows by each model."""
        scaled = {id(scaler): scale_rows(scaler, X) for scaler in self.scalers}
        with config_context(assume_finite=True):
            return [
                model._assign(scaled[id(scaler)])
                for model, scaler in zip(self.models, self.scalers, strict=True)
            ]


def _predict(models, sources, X):
    """Return the labels of rows by models, which were fitted to scaled sources."""
    return Placement(models, [source.scaler for source in sources])(X)


def count_pairs(part, sizes):
    """Compute the contingency tables of the labellings of a part."""
    return contingency_tables(part.labels, sizes)


def sum_part(part, request):
    """Add up the results of a function for a part; `request` is (unit, run, its request)."""
    unit, run, inner = request
    weight = part.sample_weight if unit == 1 else part.sample_weight / unit
    return sum_batches(part.X, weight, run, inner)


def sum_spreads(part, request):
    """Compute SpreadSums, masses and sizes of clusters; `request` is (cafe, unit, centre)."""
    cafe, unit, center = request
    labels, weight, k = part.labels, part.sample_weight, cafe.n_clusters
    sums = spread_sums(cafe._scale(part.X), labels, k, weight / unit, center)
    mass = np.bincount(labels, weight, minlength=k)
    return sums, mass, np.bincount(labels, minlength=k).astype(np.float64)


def add_members(parts):
    """Add the results of `sum_spreads`."""
    return tuple(add_sums(sums) for sums in zip(*parts, strict=True))


class Rescaling(NamedTuple):
    """Compute the input of the extractor of a CAFE for a part with labels."""

    cafe: CAFE

    def __call__(self, part):
        X, cafe = part.X, self.cafe
        with config_context(assume_finite=True):
            if cafe._input == "memberships":
                return cafe._rescale(X, part.labels)
            return cafe._rescale(cafe._scale(X), part.labels)
