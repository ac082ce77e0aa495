"""What the sections of a fit report are about, measured once."""

from functools import cached_property

import numpy as np
from sklearn.utils.validation import check_is_fitted

from cafelearn._labels import candidate_names, chosen_position, settings_words
from cafelearn._validation import check_data, is_dask
from cafelearn.cafe import CAFE
from cafelearn.diagnosis import SEVERE

# So many candidates are listed as they were tried: all are in view at once.
FEW = 10


class Facts:
    """A fitted CAFE and the rows it was fitted on, checked, named and measured."""

    def __init__(self, cafe, X, row_ids=None, y=None):
        if not isinstance(cafe, CAFE):
            raise TypeError(
                f"write_fit_report needs a fitted cafelearn.CAFE, got {type(cafe).__name__}."
            )
        check_is_fitted(cafe)
        if is_dask(X):
            raise TypeError(
                "write_fit_report needs rows in memory, got a Dask "
                f"{type(X).__name__}; give it some of them, X[:10_000].compute() for instance."
            )
        self.cafe, self.model = cafe, cafe.model_
        self.candidates = cafe.candidates_
        self.chosen = chosen_position(self.candidates)
        self.names = candidate_names(self.candidates)
        self.weights = cafe.feature_weights_
        self.n_clusters = len(self.weights)
        self.feature_names = [str(name) for name in cafe.weights_frame().columns]
        self.given = X
        self.X = check_data(cafe, X, reset=False)
        # Of the rows of a Dask collection any may be shown, for what has no labels here.
        fitted = getattr(cafe, "labels_", None)
        lazy = fitted is None or is_dask(fitted)
        self.labels = cafe.predict(X) if lazy else fitted
        self.n_rows = len(self.labels)
        self.n_fitted = None if fitted is None else len(fitted)
        self.is_sample = lazy and self.n_rows != self.n_fitted
        if len(self.X) != self.n_rows:
            raise ValueError(
                f"write_fit_report needs the {self.n_rows} rows that the model was fitted on, "
                f"got {len(self.X)}."
            )
        self.row_ids = self._row_ids(row_ids)
        self.classes = None if y is None else self._per_row(y, "y")

    def _row_ids(self, row_ids):
        if row_ids is not None:
            return self._per_row(row_ids, "row_ids")
        index = getattr(self.given, "index", None)
        return list(range(self.n_rows)) if index is None else list(index)

    def _per_row(self, values, name):
        values = list(values)
        if len(values) != self.n_rows:
            raise ValueError(
                f"write_fit_report needs one of {name} for each of the {self.n_rows} rows, "
                f"got {len(values)}."
            )
        return values

    @cached_property
    def scaled(self):
        """The rows as the clustering saw them."""
        scaler = self.cafe.scaler_
        if scaler is None:
            return self.X
        return np.ascontiguousarray(scaler.transform(self.X), dtype=self.X.dtype)

    @cached_property
    def nearest_two(self):
        """Indices of the nearest and the second nearest centre of each row."""
        distances = self.model.transform(self.scaled)
        if distances.shape[1] == 1:
            return np.zeros((self.n_rows, 2), dtype=np.intp)
        two = np.argpartition(distances, 1, axis=1)[:, :2]
        swap = np.take_along_axis(distances, two, axis=1)
        return np.where((swap[:, :1] > swap[:, 1:]), two[:, ::-1], two)

    @cached_property
    def margin(self):
        """How clearly each row belongs to its cluster."""
        return self.cafe.assignment_margin(self.given)

    @cached_property
    def features(self):
        """The extracted features."""
        return np.asarray(self.cafe.transform(self.given), dtype=np.float64)

    @cached_property
    def sizes(self):
        """Rows of each cluster."""
        return np.bincount(self.labels, minlength=self.n_clusters)

    @property
    def n_elsewhere(self):
        """Rows whose nearest centre is not that of their label: the data are others."""
        return int((self.cafe.predict(self.given) != self.labels).sum())

    @property
    def findings(self):
        """What speaks against the fit, the severe findings first."""
        return sorted(self.cafe.diagnosis_, key=lambda finding: finding.severity != SEVERE)

    @property
    def is_uniform(self):
        """Whether the chosen clustering weighs all features alike."""
        return self.model.weighting == "uniform"

    @property
    def words(self):
        """The settings of the chosen candidate as a phrase."""
        return settings_words(self.candidates.iloc[self.chosen])

    @property
    def mean_agreement(self):
        """Mean adjusted Rand index of the chosen candidate with the others, or None."""
        if len(self.candidates) == 1:
            return None
        row = self.cafe.agreement_[self.chosen]
        return float((row.sum() - 1) / (len(row) - 1))

    @cached_property
    def order(self):
        """Candidates in the order to list them: as tried if they are few, else best first."""
        n = len(self.candidates)
        if n <= FEW:
            return list(range(n))
        by_score = self.cafe.selection == "likelihood"
        value = self.candidates["score"] if by_score else self.cafe.agreement_.sum(axis=1)
        order = np.argsort(-np.asarray(value), kind="stable").tolist()
        order.remove(self.chosen)
        return [self.chosen, *order]
