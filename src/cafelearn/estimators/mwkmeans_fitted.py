"""The attributes of a fitted MinkowskiWeightedKMeans, and its methods for new rows."""

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from cafelearn.base.typing import MatrixLike, VectorLike
from cafelearn.choice.chosen import number_frame
from cafelearn.choice.diagnosis import Finding, check_number, check_scales, check_sizes
from cafelearn.choice.diagnosis import check_weights as check_feature_weights
from cafelearn.data.validation import (
    check_data,
    check_weights,
    is_dask,
)
from cafelearn.estimators.opening import lazy_on_dask
from cafelearn.interpret.notebook import NotebookMixin
from cafelearn.interpret.profiles import ProfileMixin
from cafelearn.kmeans.placing import assign, distances, make_model, margins


class FittedKMeans(
    NotebookMixin,
    ProfileMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
):
    """Attributes and methods of a fitted MinkowskiWeightedKMeans."""

    @property
    def diagnosis_(self) -> list[Finding]:
        """Problems found with the fit."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        return [
            *check_number(getattr(self, "_numbers", None)),
            *check_scales(self, names),
            *check_sizes(self),
            *check_feature_weights(self, names),
        ]

    @property
    def n_clusters_(self):
        """The number of clusters, given or chosen."""
        check_is_fitted(self)
        return len(self.cluster_centers_)

    @property
    def n_clusters_table_(self):
        """The numbers of clusters tried, one row each; None if a single number was given."""
        check_is_fitted(self)
        numbers = getattr(self, "_numbers", None)
        return None if numbers is None else number_frame(numbers)

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
            Index of the centre with the smallest weighted distance.
        """
        return assign(*self._placed(X))[0]

    @lazy_on_dask
    def transform(self, X: MatrixLike) -> np.ndarray:
        """Compute the distance of each row to each centre.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            Weighted Minkowski distances. The objective is the sum of the p-th powers of the
            distances to the nearest centres.
        """
        rows, model, n_threads = self._placed(X)
        single = getattr(X, "dtype", None) == np.float32
        return distances(rows, model, n_threads).astype(
            np.float32 if single else rows.dtype, copy=False
        )

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
            1 minus the ratio of the distances to the nearest and the second nearest centre:
            1 at a centre, 0 if both centres are equally near.
        """
        return margins(self.transform(X))

    def score(
        self, X: MatrixLike, y: object = None, sample_weight: VectorLike | None = None
    ) -> float:
        """Compute the negative objective of `X` with the fitted centres and weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New data.
        y : None
            Ignored; present by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row.

        Returns
        -------
        score : float
            Minus the sum of the p-th powers of the distances to the nearest centres.
        """
        if is_dask(X):
            from cafelearn.distributed import reduce_new_rows

            return float(reduce_new_rows(self, X, sample_weight, score_part, sum))
        X, model, n_threads = self._placed(X)
        sample_weight = check_weights(sample_weight, X, self)
        _, nearest = assign(X, model, n_threads)
        with np.errstate(over="ignore"):
            return -float(sample_weight @ nearest.astype(np.float64) ** self.p)

    def _assign(self, X):
        """Return the clusters of rows; there may be none."""
        return self.predict(X) if len(X) else np.empty(0, dtype=np.int32)

    def _placed(self, X):
        """Return the arguments of `assign` and `distances`: rows, model and threads."""
        check_is_fitted(self)
        X = check_data(self, X, reset=False, gaps=True)
        if getattr(self.cluster_centers_, "dtype", None) == np.float64:
            # Centres rounded to float32 could lie outside the range of their members.
            X = X.astype(np.float64, copy=False)
        return X, self._placement(X.dtype), effective_n_jobs(self.n_jobs)

    def _placement(self, dtype):
        """Return the Model that assigns rows of `dtype`."""
        return make_model(
            self.cluster_centers_,
            self.feature_weights_,
            self.p,
            self._scale,
            dtype,
            self._gap_distances,
        )

    def _gap_distances(self):
        """Return the distance that a missing value counts as, by cluster and feature."""
        typical = getattr(self, "_typical", None)
        if typical is not None:
            return typical
        mass = np.where(self._mass > 0, self._mass, 1.0)[:, None]
        return (self.dispersions_ / mass) ** (1 / self.p)

    @property
    def _n_features_out(self):
        return self.cluster_centers_.shape[0]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def score_part(part, model):
    """Compute the score of a part of the rows; 0 if all of its weights are zero."""
    if not part.sample_weight.any():
        return 0.0
    return model.score(part.X, sample_weight=part.sample_weight)
