"""Initial centres: random rows, k-means++ in the Minkowski geometry, anomalous clusters.

Every function takes validated arrays and returns an array of shape (k, m). Weights are
uniform at the start of the algorithm, so distances here are plain Minkowski distances.
"""

from typing import NamedTuple

import numpy as np

from cafelearn.descent import descend, make_problem, one_cluster
from cafelearn.kernels.assign import project_rows
from cafelearn.kernels.weights import log_mean, update_weights
from cafelearn.placing import assign, distances, make_model


class Draw(NamedTuple):
    """The rows of positive weight in an order that only their values decide.

    Random choices made in this order do not depend on the order of the rows, and a row of
    weight 2 is as good as two equal rows.
    """

    rows: np.ndarray  # indices
    group: np.ndarray  # number of the distinct value at each of them, rising
    mass: np.ndarray  # weight of each distinct value


def make_draw(X, sample_weight, spans):
    """Sort the rows along a fixed direction in which distinct rows hardly ever coincide.

    `spans` are the ranges of the features, which make the direction free of units.
    """
    spans = np.where(spans > 0, spans, 1.0)
    direction = (1 + np.sqrt(2 + np.arange(X.shape[1])) % 1) / spans
    along = project_rows(X, direction)
    rows = np.argsort(along, kind="stable")
    rows = rows[sample_weight[rows] > 0]
    new = along[rows[1:]] != along[rows[:-1]]
    # Rows that coincide are compared, in case they are not equal after all.
    doubtful = np.flatnonzero(~new)
    new[doubtful] = (X[rows[doubtful + 1]] != X[rows[doubtful]]).any(axis=1)
    group = np.concatenate([[0], np.cumsum(new)])
    return Draw(rows, group, np.bincount(group, weights=sample_weight[rows]))


def random_rows(X, n_clusters, draw, rng):
    """k distinct rows drawn without replacement, in proportion to their weight.

    Where there are fewer distinct rows than clusters, they repeat.
    """
    # The smallest of exponential variables over weights are a weighted draw.
    chosen = np.argsort(rng.exponential(size=len(draw.mass)) / draw.mass)[:n_clusters]
    first = np.searchsorted(draw.group, chosen)
    return X[draw.rows[np.resize(first, n_clusters)]]


def kmeans_plusplus(X, n_clusters, sample_weight, draw, rng, p, scale):
    """k-means++ with the Minkowski distance: rows are drawn in proportion to d^p (Eq. 2).

    Each centre is the best of a few candidates, the one that leaves the smallest sum of
    distances, as in scikit-learn.
    """
    n_trials = 2 + int(np.log(n_clusters))
    centers = np.empty((n_clusters, X.shape[1]), dtype=X.dtype)
    nearest = np.ones(len(X), dtype=X.dtype)
    for l in range(n_clusters):
        cumulated = np.cumsum((sample_weight * nearest)[draw.rows])
        if cumulated[-1] == 0:  # every row is a centre already
            cumulated = np.cumsum(sample_weight[draw.rows])
        marks = rng.random(n_trials if l else 1) * cumulated[-1]
        places = np.searchsorted(cumulated, marks, side="right")
        candidates = draw.rows[places.clip(max=len(draw.rows) - 1)]
        reached = _powers(X, X[candidates], p, scale)
        if l:
            np.minimum(reached, nearest[:, None], out=reached)
        best = np.argmin(sample_weight @ reached)
        centers[l] = X[candidates[best]]
        nearest = np.ascontiguousarray(reached[:, best])
    return centers


def _powers(X, centers, p, scale):
    """d^p of each row to each centre for uniform weights, relative to the data's scale."""
    weights = np.ones_like(centers)
    return (distances(X, make_model(centers, weights, p, scale, X.dtype)) * scale) ** p


def anomalous(X, n_clusters, sample_weight, p, scale, feature_scale, offset):
    """Centres of the k largest anomalous clusters (de Amorim and Mirkin, 2012).

    A cluster grows around the row farthest from the Minkowski centre of the data, against
    a second centre that stays there; when it is stable it is taken out, and the next grows
    from what is left, until nothing is left. Both clusters carry feature weights. If there
    are fewer clusters than asked for, the rows farthest from the centres found complete
    them.
    """
    middle, _ = one_cluster(X, sample_weight, feature_scale, p)
    left = np.flatnonzero(sample_weight > 0)
    found, sizes = [], []
    while len(left) and len(found) < len(X):
        rows, mass = np.ascontiguousarray(X[left]), sample_weight[left]
        members, center = _anomalous_cluster(
            rows, mass, middle, p, scale, feature_scale, offset
        )
        found.append(center)
        sizes.append(mass[members].sum())
        left = left[~members]
    largest = np.argsort(-np.asarray(sizes), kind="stable")[:n_clusters]
    centers = np.asarray(found, dtype=X.dtype)[largest]
    while len(centers) < n_clusters:
        model = make_model(centers, np.ones_like(centers), p, scale, X.dtype)
        _, nearest = assign(X, model)
        farthest = np.argmax(np.where(sample_weight > 0, nearest, -1))
        centers = np.vstack([centers, X[farthest]])
    return centers


def _anomalous_cluster(X, sample_weight, middle, p, scale, feature_scale, offset):
    """Members and centre of the cluster around the row farthest from `middle`."""
    n_features = X.shape[1]
    weights = np.full((2, n_features), 1 / n_features, dtype=X.dtype)
    _, away = assign(X, make_model(middle[None, :], weights[:1], p, scale, X.dtype))
    seed = np.argmax(away)
    center = X[seed]
    problem = make_problem(X, p, scale, offset, 1, 0.0)._replace(haste=0.0)
    members, seen = None, set()
    while True:
        pair = np.stack([middle, center])
        labels, _ = assign(X, make_model(pair, weights, p, scale, X.dtype))
        inside = labels == 1
        # Weights may pull every row to the middle; the cluster keeps at least its seed.
        inside[seed] |= not inside.any()
        fingerprint = hash(inside.tobytes())
        if fingerprint in seen:
            return members, center
        seen.add(fingerprint)
        members = inside
        result = descend(
            X[members], sample_weight[members], center[None, :], feature_scale, problem
        )
        center, weights[1] = result.centers[0], result.weights[0]
        if not members.all():
            weights[0] = _weights_about(middle, X[~members], sample_weight[~members], problem)


def _weights_about(center, X, sample_weight, problem):
    """Feature weights (Eq. 4) of one cluster whose centre is given."""
    p, dispersions = problem.geometry.p, np.zeros(X.shape[1])
    for first in range(0, len(X), problem.chunk):
        rows = slice(first, first + problem.chunk)
        away = np.abs(X[rows] - center) * problem.scale
        dispersions += sample_weight[rows] @ away.astype(np.float64) ** p
    with np.errstate(divide="ignore"):
        log_dispersions = np.log(dispersions)[None, :] - p * np.log(problem.scale)
    offset = log_mean(log_dispersions) if problem.moving_offset else problem.log_offset
    weights = np.empty_like(log_dispersions)
    update_weights(weights, log_dispersions, offset, p)
    return weights[0]
