"""The attributes of a fitted CAFE, and its methods for new rows."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn import config_context
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils import gen_batches
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from cafelearn.base.typing import MatrixLike
from cafelearn.choice.answer import confidence_of
from cafelearn.choice.chosen import number_frame
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
)
from cafelearn.choice.selection import (
    MIXTURE,
    adjusted_rand_index,
    contingency_tables,
)
from cafelearn.data.gaps import fill_gaps, has_gaps
from cafelearn.data.source import scale_rows
from cafelearn.data.validation import (
    check_data,
)
from cafelearn.estimators.candidates import (
    candidate_frame,
)
from cafelearn.estimators.opening import lazy_on_dask
from cafelearn.extraction.loadings import make_loadings
from cafelearn.extraction.rescaling import (
    beside_distances,
    beside_memberships,
    rescale_rows,
)
from cafelearn.interpret.labels import family_positions
from cafelearn.interpret.notebook import NotebookMixin
from cafelearn.interpret.profiles import ProfileMixin
from cafelearn.kmeans.placing import margins

# Extractors that transform each row independently of the others. They are applied to ROWS rows
# at a time, which avoids a rescaled copy of all rows. NMF is excluded, because it would warn
# once per chunk.
BY_ROW = ("auto", "pca", "ica", "fastica", "autoencoder")
ROWS = 32_768


def has_probabilities(cafe):
    """Raise if a CAFE fits no mixture; scikit-learn then treats the method as missing."""
    if cafe.selection != MIXTURE:
        raise AttributeError(
            f"CAFE.predict_proba needs selection='mixture', got {cafe.selection!r}."
        )
    return True


class FittedCAFE(
    NotebookMixin,
    ProfileMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
):
    """Attributes and methods of a fitted CAFE."""

    # Mass and number of rows of each cluster of the mixture; None where they are unknown.
    _mass: np.ndarray | None = None
    _members: np.ndarray | None = None

    @property
    def _input(self):
        """The input of the extractor, a value of RESCALINGS."""
        if self.rescaling != "auto":
            return self.rescaling
        return "memberships" if self.selection == MIXTURE else "distances"

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
        X = self._validated(X)
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
        X = self._validated(X)
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
        X = self._validated(X)
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
        X = self._validated(X)
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

    def _model(self):
        check_is_fitted(self)
        return self.model_

    def _validated(self, X):
        """Validate new rows."""
        check_is_fitted(self)
        return check_data(self, X, reset=False, gaps=True)

    def _checked(self, X):
        """Validate and scale new rows."""
        return self._scale(self._validated(X))

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
