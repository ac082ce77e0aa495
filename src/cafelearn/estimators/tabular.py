"""TabularCAFE: CAFE for tables with text, dates and missing values."""

from collections.abc import Sequence
from numbers import Integral
from typing import Self

import numpy as np
import pandas as pd
from sklearn.base import (
    BaseEstimator,
    ClusterMixin,
    TransformerMixin,
    _fit_context,
    clone,
)
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from cafelearn.base.typing import MatrixLike
from cafelearn.data.validation import is_dask
from cafelearn.estimators.cafe import CAFE
from cafelearn.interpret.notebook import NotebookMixin
from cafelearn.interpret.profiles import ProfileMixin
from cafelearn.tables.encoding import TableEncoder

__all__ = ["TabularCAFE"]


def _of_cafe(name):
    """Make a property that has the value of an attribute of the fitted CAFE."""
    return property(lambda self: getattr(self._fitted(), name), doc=getattr(CAFE, name).__doc__)


class TabularCAFE(
    NotebookMixin,
    ProfileMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
):
    """CAFE on a data frame of numbers, text, booleans and dates.

    A :class:`~cafelearn.TableEncoder` encodes the columns as numbers, and CAFE is fitted to
    the result. Identifiers, free text and constant columns are left out; see
    ``encoder_.treatments_``. New rows are encoded with the categories and medians of the
    training rows.

    Parameters
    ----------
    cafe : CAFE, default=None
        The estimator to clone and fit. None means ``CAFE()``.
    impute : {"median"} or None, default=None
        Treatment of missing values. None keeps them (:doc:`/guide/missing`). "median" imputes
        the median of numbers and the most frequent value of categories.
    categorical : sequence of str, default=()
        Columns to treat as categories, whatever they contain.
    drop : sequence of str, default=()
        Columns to leave out.
    id_column : str, default=None
        Column of row names. It is left out of the fit.
    max_categories : int, default=100
        Largest number of distinct values of a categorical column; a column with more raises
        an error.
    numeric : sequence of str, default=()
        Columns to treat as numbers, even if they look like identifiers.
    group_categories : bool, default=True
        Whether the encoded columns of a categorical column are one variable, with one weight
        per cluster. A categorical column then counts as much as a numeric one, regardless of
        its number of values; see `feature_groups` of :class:`CAFE`. With False, each value has
        its own weight. If `cafe` has its own `feature_groups`, one label per encoded column,
        these are used instead.

    Attributes
    ----------
    encoder_ : TableEncoder
        The fitted encoder.
    cafe_ : CAFE
        The fitted CAFE.
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row.
    n_clusters_ : int
        The number of clusters, given or chosen; see :class:`CAFE`.
    n_clusters_table_ : pandas.DataFrame or None
        The numbers of clusters tried; see :class:`CAFE`.
    diagnosis_ : list of Finding
        Problems found with the fit; see :class:`CAFE`.
    verdict_, confidence_, stability_, cluster_stability_ : str, str, float, ndarray
        How sure the clusters are; see :class:`CAFE`.
    mixture_ : Mixture
        The mixture of the encoded columns; see :class:`CAFE`.
    relevance_ : ndarray of int of shape (n_clusters, n_encoded_columns)
        Role of each encoded column in each cluster; see :class:`CAFE`.
    loadings_ : DataFrame
        Coefficients of the inputs in each extracted feature; see :class:`CAFE`.
    n_features_in_ : int
        Number of columns seen during :meth:`fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of columns seen during :meth:`fit`. Defined only when `X` has names that are
        all strings.

    See Also
    --------
    CAFE : The same method for numeric data.

    Examples
    --------
    >>> from cafelearn import CAFE
    >>> from cafelearn.datasets import load
    >>> from cafelearn import TabularCAFE
    >>> table = load("iris").frame.assign(big=lambda t: t.iloc[:, 0] > 6)
    >>> model = TabularCAFE(CAFE(3, n_init=5, random_state=0), drop=["target"])
    >>> model.fit_transform(table).shape
    (150, 12)
    >>> model.weights_frame().columns[-2:].tolist()
    ['petal_width', 'big']
    >>> model.confidence_
    'high'
    """

    _parameter_constraints = {
        "cafe": [CAFE, None],
        "impute": [StrOptions({"median"}), None],
        "categorical": ["array-like"],
        "drop": ["array-like"],
        "id_column": [str, None],
        "max_categories": [Interval(Integral, 1, None, closed="left")],
        "numeric": ["array-like"],
        "group_categories": ["boolean"],
    }

    def __init__(
        self,
        cafe: CAFE | None = None,
        *,
        impute: str | None = None,
        categorical: Sequence[str] = (),
        drop: Sequence[str] = (),
        id_column: str | None = None,
        max_categories: int = 100,
        numeric: Sequence[str] = (),
        group_categories: bool = True,
    ):
        self.cafe = cafe
        self.impute = impute
        self.categorical = categorical
        self.drop = drop
        self.id_column = id_column
        self.max_categories = max_categories
        self.numeric = numeric
        self.group_categories = group_categories

    # Options with which the command ``cafe fit`` read the table; None for other fits.
    _reading: dict | None = None

    # Nested validation is not skipped, because `cafe` checks its own parameters.
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Encode the table and fit CAFE.

        There are no sample weights. For rows with weights, encode the table with
        :class:`~cafelearn.TableEncoder`, and fit ``CAFE(feature_groups="auto")`` to the result.

        Parameters
        ----------
        X : DataFrame, Dask dataframe or array-like of shape (n_samples, n_columns)
            The table. A Dask dataframe is fitted block by block (:doc:`/guide/large_data`).
            The other methods are lazy on Dask dataframes.
        y : None
            Ignored; present by convention.

        Returns
        -------
        self : TabularCAFE
            The fitted estimator.
        """
        self._fit(X)
        return self

    def _fit(self, X):
        """Encode the table, fit CAFE and return the encoded rows."""
        names = [] if self.id_column is None else [self.id_column]
        self.encoder_ = TableEncoder(
            self.impute,
            categorical=self.categorical,
            drop=list(dict.fromkeys([*self.drop, *names])),
            max_categories=self.max_categories,
            numeric=self.numeric,
        )
        encoded = self._named(X, self.encoder_.fit_transform(X))
        self.n_features_in_ = self.encoder_.n_features_in_
        if hasattr(self.encoder_, "feature_names_in_"):
            self.feature_names_in_ = self.encoder_.feature_names_in_
        cafe = clone(CAFE() if self.cafe is None else self.cafe)
        if self.group_categories and cafe.feature_groups is None:
            cafe.set_params(feature_groups=self.encoder_.variables_out())
        self.cafe_ = cafe.fit(encoded)
        self.labels_ = self.cafe_.labels_
        self.n_iter_ = self.cafe_.n_iter_
        return encoded

    @_fit_context(prefer_skip_nested_validation=False)
    def fit_transform(self, X: MatrixLike, y: object = None) -> np.ndarray:
        """Fit and extract the features; the same as ``fit(X).transform(X)``."""
        encoded = self._fit(X)
        return self.cafe_.transform(encoded)

    def transform(self, X: MatrixLike) -> np.ndarray:
        """Extract the features of new rows; see :meth:`CAFE.transform`."""
        return self._fitted().transform(self.encode(X))

    def predict(self, X: MatrixLike) -> np.ndarray:
        """Find the cluster of each row; see :meth:`CAFE.predict`."""
        return self._fitted().predict(self.encode(X))

    def predict_proba(self, X: MatrixLike) -> np.ndarray:
        """Compute the probability of each cluster for each row; see :meth:`CAFE.predict_proba`.

        Only defined if the CAFE has ``selection="mixture"``.
        """
        return self._fitted().predict_proba(self.encode(X))

    def assignment_margin(self, X: MatrixLike) -> np.ndarray:
        """Compute the assignment margin of each row; see :meth:`CAFE.assignment_margin`."""
        return self._fitted().assignment_margin(self.encode(X))

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return the names of the extracted features, cafe0, cafe1, and so on."""
        return self._fitted().get_feature_names_out()

    def weights_frame(self) -> pd.DataFrame:
        """Return the feature weights as a labelled table, clusters by variables.

        With ``group_categories=False``, there is one column per encoded column.
        """
        return self._fitted().weights_frame()

    def encode(self, X: MatrixLike) -> pd.DataFrame:
        """Encode a table as the input of CAFE.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_columns)
            A table with the columns of :meth:`fit`.

        Returns
        -------
        encoded : pandas.DataFrame of shape (n_samples, n_features)
            The encoded rows. Their index is the `id_column`, if there is one; a Dask dataframe
            keeps its index.
        """
        check_is_fitted(self)
        return self._named(X, self.encoder_.transform(X))

    def _named(self, X, encoded):
        """Name encoded rows by the `id_column`, except those of a Dask dataframe."""
        names = () if is_dask(X) else getattr(X, "columns", ())
        if self.id_column is not None and self.id_column in names:
            encoded.index = pd.Index(X[self.id_column], name=self.id_column)
        return encoded

    def _profile_columns(self):
        return self.encoder_.columns_out()

    def _profile_units(self):
        kinds = self.encoder_.treatments_["kind"].to_dict()
        return {name: kind for name, kind in kinds.items() if kind in ("date", "duration")}

    loadings_ = _of_cafe("loadings_")
    diagnosis_ = _of_cafe("diagnosis_")
    n_clusters_ = _of_cafe("n_clusters_")
    n_clusters_table_ = _of_cafe("n_clusters_table_")
    verdict_ = _of_cafe("verdict_")
    confidence_ = _of_cafe("confidence_")
    stability_ = _of_cafe("stability_")
    cluster_stability_ = _of_cafe("cluster_stability_")
    relevance_ = _of_cafe("relevance_")

    @property
    def mixture_(self):
        """The mixture of the CAFE."""
        return self._fitted().mixture_

    def _fitted(self):
        check_is_fitted(self)
        return self.cafe_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        return tags
