"""The estimator CAFE: cluster the rows, choose a clustering, extract features."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Self

from sklearn.base import (
    _fit_context,
)
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from cafelearn.base.typing import MatrixLike, Seed, Transformer, VectorLike
from cafelearn.choice.chosen import fit_with_number
from cafelearn.choice.selection import (
    MIXTURE,
    SELECTIONS,
)
from cafelearn.data.validation import (
    N_JOBS,
    check_given_number,
)
from cafelearn.estimators.cafe_fitting import FittingCAFE
from cafelearn.estimators.candidates import (
    SCALINGS,
)
from cafelearn.estimators.mwkmeans import MinkowskiWeightedKMeans
from cafelearn.extraction.rescaling import (
    RESCALINGS,
)
from cafelearn.extraction.table import EXTRACTORS
from cafelearn.kmeans.kernels.weights import WEIGHTINGS

__all__ = ["CAFE", "PAPER"]

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


class CAFE(FittingCAFE):
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
        Number of clusters. Of several numbers, the one whose mixture has the highest criterion
        is chosen; "auto" means the numbers from 1 to 10 (:doc:`/guide/clusters`).
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
        How the clusters are found: by a :class:`cafelearn.mixture.Mixture`, which starts from
        the two candidates of the highest likelihood score and from other clusterings; as the
        candidate with the highest :func:`cafelearn.selection.likelihood_score`; or as the one
        with the largest sum of adjusted Rand indices with the others, as in the paper, where
        ties go to the lower :func:`cafelearn.theory.normalized_objective`.
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
        variable of several features is scaled as a whole (:doc:`/guide/variables`).
    rescaling : {"auto", "memberships", "distances", "origin", "centroid"}, default="auto"
        Input of the extractor (:doc:`/guide/settings`). "memberships", which needs
        ``selection="mixture"``, is the standardised row, extended by its membership
        probabilities and by the roots of its log densities in the clusters. "distances" is the
        scaled row, extended by the logarithms of its weighted distances to all centres. In
        "origin", as in the paper, the scaled row is multiplied by the weights of its cluster;
        in "centroid", it is shrunk towards the centre. "auto" is "memberships" for
        ``selection="mixture"``, and else "distances".
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
        One row for each number of clusters tried (:doc:`/guide/clusters`); None if a single
        number was given.
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
        Role of each feature in each cluster; see :class:`cafelearn.mixture.Mixture`.
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
        "origin" and "centroid" they include the weights of the clusters, and the index has two
        levels, cluster and input.
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
        return fit_with_number(self, X, sample_weight)


def check_input(estimator):
    """Raise if the input of the extractor needs a mixture, and there is none."""
    if estimator._input == "memberships" and estimator.selection != MIXTURE:
        raise ValueError(
            "CAFE(rescaling='memberships') needs selection='mixture', got "
            f"{estimator.selection!r}."
        )
