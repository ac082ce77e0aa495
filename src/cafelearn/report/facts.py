"""What several sections of a fit report use: the estimator, its candidates and its rows."""

from functools import cached_property

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from cafelearn.choice.diagnosis import SEVERE
from cafelearn.data.validation import is_dask
from cafelearn.estimators.cafe import CAFE
from cafelearn.estimators.mwkmeans import MinkowskiWeightedKMeans
from cafelearn.estimators.tabular import TabularCAFE
from cafelearn.interpret.labels import (
    answer_words,
    candidate_names,
    chosen_position,
    family_positions,
    settings_words,
)
from cafelearn.interpret.placed import Placed
from cafelearn.interpret.profiles import feature_names

# Largest number of principal components that are drawn if no features are extracted.
MOST_COMPONENTS = 8
# Up to this many candidates are listed in the order of `candidates_`; more are sorted.
FEW = 10
KINDS = (CAFE, TabularCAFE, MinkowskiWeightedKMeans)


class Facts:
    """A fitted estimator and its rows.

    - `estimator` : a CAFE, TabularCAFE or MinkowskiWeightedKMeans;
    - `inner` : the CAFE inside a TabularCAFE, otherwise the estimator;
    - `cafe` : `inner` if it is a CAFE, otherwise None;
    - `is_mixture` : whether the clusters are those of a mixture;
    - `model` : the model of the chosen candidate if `inner` is a CAFE, otherwise `inner`; for a
      mixture, the candidate is the start with the highest score;
    - `placed` : the rows and what was computed from them, a Placed that the caller may pass.
    """

    def __init__(self, estimator, X, row_ids=None, y=None, placed=None):
        if not isinstance(estimator, KINDS):
            raise TypeError(
                "write_fit_report needs a fitted CAFE, TabularCAFE or "
                f"MinkowskiWeightedKMeans, got {type(estimator).__name__}."
            )
        check_is_fitted(estimator)
        if is_dask(X):
            raise TypeError(
                "write_fit_report needs rows in memory, got a Dask "
                f"{type(X).__name__}; pass a sample, for instance X[:10_000].compute()."
            )
        self.estimator = estimator
        self.is_table = isinstance(estimator, TabularCAFE)
        if placed is None:
            placed = Placed(estimator, estimator.encode(X) if self.is_table else X)
        self.placed, self.inner, self.is_mixture = placed, placed.inner, placed.is_mixture
        self.cafe = self.inner if isinstance(self.inner, CAFE) else None
        self.model = self.inner if self.cafe is None else self.cafe.model_
        self.models = [self.model] if self.cafe is None else self.cafe.models_
        self.candidates = _only_one(self.model) if self.cafe is None else self.cafe.candidates_
        self.chosen = chosen_position(self.candidates)
        self.names = candidate_names(self.candidates)
        self.weights = self.inner.feature_weights_
        self.n_clusters = len(self.weights)
        self.feature_names = [str(name) for name in feature_names(self.inner)]
        self.X = placed.X
        # A fit to a Dask collection has no labels in memory. The labels are then predicted, so
        # the rows may be any sample.
        fitted = getattr(self.inner, "labels_", None)
        lazy = fitted is None or is_dask(fitted)
        self.labels = placed.labels if lazy else fitted
        self.n_rows = len(self.labels)
        self.n_fitted = None if fitted is None else len(fitted)
        self.is_sample = lazy and self.n_rows != self.n_fitted
        if len(self.X) != self.n_rows:
            raise ValueError(
                f"write_fit_report needs the {self.n_rows} rows that the model was fitted on, "
                f"got {len(self.X)}."
            )
        if row_ids is None:
            row_ids = getattr(placed.rows, "index", range(self.n_rows))
        self.row_ids = self._per_row(row_ids, "row_ids")
        self.classes = None if y is None else self._per_row(y, "y")
        self.sizes = np.bincount(self.labels, minlength=self.n_clusters)

    def _per_row(self, values, name):
        values = list(values)
        if len(values) != self.n_rows:
            raise ValueError(
                f"write_fit_report needs one value of {name} for each of the {self.n_rows} "
                f"rows, got {len(values)}."
            )
        return values

    @property
    def margin(self):
        """Assignment margin of each row."""
        return self.placed.margin

    @cached_property
    def features(self):
        """Coordinates of the rows in pictures.

        They are the extracted features, the principal components of the rescaled rows if no
        features were extracted, or the distances to the centres if there is no CAFE.
        """
        found = np.asarray(self.placed.features, dtype=np.float64)
        if self.cafe is None or self.extracts:
            return found
        n_components = min(MOST_COMPONENTS, *found.shape)
        return PCA(n_components, random_state=0).fit_transform(found)

    @property
    def extracts(self):
        """Whether features are extracted from the rescaled rows."""
        return self.cafe is not None and self.cafe.extractor_ is not None

    @property
    def n_elsewhere(self):
        """Number of rows that `predict` puts into another cluster than the fit did."""
        return int((self.placed.predicted != self.labels).sum())

    @property
    def findings(self):
        """Findings about the fit, severe ones first."""
        return sorted(self.inner.diagnosis_, key=lambda finding: finding.severity != SEVERE)

    @property
    def is_uniform(self):
        """Whether the chosen clustering has uniform weights."""
        return not self.is_mixture and self.model.weighting == "uniform"

    @property
    def answer(self):
        """The answer in one line."""
        return answer_words(self.inner)

    @property
    def family(self):
        """Positions of the chosen candidate and of those that differ from it only in p."""
        return family_positions(self.candidates)

    @property
    def words(self):
        """Settings of the chosen candidate in words."""
        return settings_words(self.candidates.iloc[self.chosen])

    @property
    def mean_agreement(self):
        """Mean adjusted Rand index between the chosen candidate and the others, or None."""
        if len(self.candidates) == 1:
            return None
        row = self.cafe.agreement_[self.chosen]
        return float((row.sum() - 1) / (len(row) - 1))

    @cached_property
    def order(self):
        """Order of the candidates: as in `candidates_` if there are few, else best first."""
        n = len(self.candidates)
        if n <= FEW:
            return list(range(n))
        by_score = self.cafe.selection != "agreement"
        value = self.candidates["score"] if by_score else self.cafe.agreement_.sum(axis=1)
        order = np.argsort(-np.asarray(value), kind="stable").tolist()
        order.remove(self.chosen)
        return [self.chosen, *order]


def _only_one(model):
    """Make a table like `candidates_` for a MinkowskiWeightedKMeans."""
    has_offset = model.weighting != "uniform"
    settings = {
        "scaling": "none",
        "weighting": model.weighting,
        "dispersion_offset": model.dispersion_offset if has_offset else np.nan,
        "p": float(model.p),
        "chosen": True,
    }
    return pd.DataFrame([settings]).astype({"dispersion_offset": object})
