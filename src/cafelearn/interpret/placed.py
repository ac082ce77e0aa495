"""Rows in the clusters of a fitted estimator, with each quantity computed at most once."""

from functools import cached_property

import numpy as np

from cafelearn.data.validation import check_data
from cafelearn.interpret.labels import is_mixture
from cafelearn.interpret.profiles import make_profile, portraits, profile_sums
from cafelearn.kmeans.placing import margins

MOST_LINES = 5  # differences, and high weights, that are listed for a cluster


class Placed:
    """Rows, their clusters, margins, features and profiles.

    `estimator` is a fitted CAFE, TabularCAFE or MinkowskiWeightedKMeans, and `rows` are in the
    format that its `inner` takes, the CAFE of a TabularCAFE: they are encoded. `labels` are
    those of the fit; by default, they are predicted.
    """

    def __init__(self, estimator, rows, labels=None):
        self.estimator, self.rows = estimator, rows
        self.inner = getattr(estimator, "cafe_", estimator)
        self.is_mixture = is_mixture(self.inner)
        self.labels = self.predicted if labels is None else labels

    @cached_property
    def X(self):
        """The rows as a validated array."""
        return check_data(self.inner, self.rows, reset=False, gaps=True)

    @cached_property
    def shares(self):
        """Probability of each cluster for each row of a mixture."""
        return np.asarray(self.inner.predict_proba(self.rows))

    @cached_property
    def predicted(self):
        """The labels that `predict` returns."""
        if self.is_mixture:
            return self.shares.argmax(axis=1).astype(np.int32)
        return self.inner.predict(self.rows)

    @cached_property
    def scaled(self):
        """Scaled rows, the input of mwk-means."""
        return self.inner._scale(self.X) if hasattr(self.inner, "model_") else self.rows

    @cached_property
    def distances(self):
        """Distance of each row to each centre."""
        return np.asarray(getattr(self.inner, "model_", self.inner).transform(self.scaled))

    @cached_property
    def margin(self):
        """Assignment margin of each row."""
        if not self.is_mixture:
            return margins(self.distances)
        share = np.sort(self.shares, axis=1)
        return share[:, 0] if share.shape[1] == 1 else 1 - share[:, -2] / share[:, -1]

    @cached_property
    def second(self):
        """The cluster of each row that is the most likely, or nearest, beside its own."""
        away = -self.shares if self.is_mixture else self.distances
        if away.shape[1] == 1:
            return np.zeros(len(away), dtype=np.intp)
        two = np.argpartition(away, 1, axis=1)[:, :2]
        swap = np.take_along_axis(away, two, axis=1)
        two = np.where(swap[:, :1] > swap[:, 1:], two[:, ::-1], two)
        return np.where(two[:, 0] == self.labels, two[:, 1], two[:, 0])

    @cached_property
    def features(self):
        """What the estimator transforms the rows to."""
        return self.inner.transform(self.rows)

    @cached_property
    def profile(self):
        """Cluster profiles."""
        weights = self.inner.feature_weights_
        columns, units = self.estimator._profile_columns(), self.estimator._profile_units()
        sums = profile_sums(self.X, self.labels, len(weights))
        return make_profile(sums, weights, columns, units)

    @cached_property
    def portraits(self):
        """Largest differences and highest weights of each cluster."""
        return portraits(self.profile, MOST_LINES)
