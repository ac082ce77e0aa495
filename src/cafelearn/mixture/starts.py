"""Starting labels: partitions of the rows from which EM descends."""

import numpy as np
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.neighbors import NearestNeighbors

from cafelearn.base.seeds import seed_integer
from cafelearn.mixture.settings import FEW, LIMITS, SETTINGS, TINY


def find_isolated(points):
    """Tell which points are far from all others.

    The distance to the fifth neighbour is large if its logarithm is above the upper quartile by
    more than twice the interquartile range. If many are, they are no exceptions.
    """
    none = np.zeros(len(points), dtype=bool)
    if len(points) < 4 * FEW or not points.shape[1]:
        return none
    nearest = NearestNeighbors(n_neighbors=FEW + 1, n_jobs=1).fit(points)
    distance = np.log(np.maximum(nearest.kneighbors(points)[0][:, -1], TINY))
    low, high = np.quantile(distance, (0.25, 0.75))
    isolated = distance > high + 2 * (high - low)
    return isolated if isolated.mean() <= SETTINGS.background else none


def power_labels(points, weight):
    """Cluster points to judge the skewness of columns; see `fit_powers`."""
    k = min(SETTINGS.power_clusters, len(np.unique(points[:50], axis=0)))
    model = KMeans(k, n_init=1, max_iter=20, random_state=0)
    return model.fit(points, sample_weight=weight).labels_


def first_starts(points, k, weight, isolated, seed):
    """Return starting labels by several methods.

    They are k-means, k-means on whitened points (with the covariance within the clusters of
    the first k-means) and Ward's method. Isolated rows are set aside, then join the nearest
    cluster.
    """
    if k == 1:
        return [np.zeros(len(points), dtype=np.int64)]
    isolated = _set_aside(isolated, k)
    inside = points[~isolated]
    mass = weight[~isolated]
    number = seed_integer(seed)
    plain = KMeans(k, n_init=3, random_state=number).fit(inside, sample_weight=mass)
    found = [plain.labels_]
    if points.shape[1] <= LIMITS.dependent_columns:
        residuals = inside - plain.cluster_centers_[plain.labels_]
        covariance = (residuals * mass[:, None]).T @ residuals / mass.sum()
        values, vectors = np.linalg.eigh(covariance)
        whitener = vectors / np.sqrt(np.maximum(values, SETTINGS.least_variance))
        white = KMeans(k, n_init=3, random_state=number)
        found.append(white.fit(inside @ whitener, sample_weight=mass).labels_)
    if len(inside) > k:
        ward = AgglomerativeClustering(k).fit_predict(inside)
        found.append(_nearest(inside, _centers(inside, ward, k)))
    return [_spread(labels, points, isolated, k) for labels in found]


def plain_start(points, k, weight, isolated, seed):
    """Return starting labels by one run of k-means."""
    isolated = _set_aside(isolated, k)
    model = KMeans(k, n_init=1, random_state=seed_integer(seed))
    labels = model.fit(points[~isolated], sample_weight=weight[~isolated]).labels_
    return _spread(labels, points, isolated, k)


def nearest_centers(points, some, labels, k):
    """Give each point the label of the nearest centre of some labelled points."""
    return _nearest(points, _centers(some, labels, k))


def more_starts(points, k, weight, isolated, seed, count):
    """Return starting labels by k-means from random centres, one run each."""
    isolated = _set_aside(isolated, k)
    found = []
    for child in seed.spawn(count):
        model = KMeans(
            k, init="random", n_init=1, max_iter=20, random_state=seed_integer(child)
        )
        labels = model.fit(points[~isolated], sample_weight=weight[~isolated]).labels_
        found.append(_spread(labels, points, isolated, k))
    return found


def _set_aside(isolated, k):
    """Return the isolated points; none if fewer than k others would be left."""
    return isolated if (~isolated).sum() >= k else np.zeros_like(isolated)


def _spread(labels, points, isolated, k):
    """Give the isolated points the labels of the nearest centres."""
    if not isolated.any():
        return labels.astype(np.int64)
    found = np.empty(len(points), dtype=np.int64)
    found[~isolated] = labels
    centers = _centers(points[~isolated], labels, k)
    found[isolated] = _nearest(points[isolated], centers)
    return found


def _centers(points, labels, k):
    members = np.eye(k)[labels]
    return (members.T @ points) / np.maximum(members.sum(axis=0), 1)[:, None]


def _nearest(points, centers):
    distances = (centers**2).sum(axis=1) - 2 * points @ centers.T
    return distances.argmin(axis=1)
