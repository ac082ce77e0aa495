"""Validation of the input of displays: fitted estimators, weights and class labels."""

from numbers import Integral

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils.validation import check_is_fitted

from cafelearn.data.variables import variable_codes
from cafelearn.estimators.cafe import CAFE
from cafelearn.estimators.mwkmeans import MinkowskiWeightedKMeans
from cafelearn.estimators.tabular import TabularCAFE
from cafelearn.interpret.profiles import variable_names, variable_weights


def check_estimator(who, estimator, kinds=(MinkowskiWeightedKMeans, CAFE)):
    """Raise unless `estimator` is fitted and an instance of one of `kinds`.

    A TabularCAFE is accepted in place of a CAFE. Return the estimator, or the CAFE of a
    TabularCAFE.
    """
    if CAFE in kinds:
        kinds = (*kinds, TabularCAFE)
    if not isinstance(estimator, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        given = estimator.__name__ if isinstance(estimator, type) else type(estimator).__name__
        what = f"the class {given}" if isinstance(estimator, type) else f"a {given}"
        raise TypeError(f"{who} needs a fitted {wanted}, got {what}.")
    check_is_fitted(estimator)
    return estimator.cafe_ if isinstance(estimator, TabularCAFE) else estimator


def weights_frame(who, estimator, feature_names=None):
    """Return the weights of a fitted estimator, labelled by clusters and features."""
    estimator = check_estimator(who, estimator)
    weights = variable_weights(estimator)
    if feature_names is None:
        feature_names = variable_names(estimator)
    if len(feature_names) != weights.shape[1]:
        noun = "feature" if variable_codes(estimator) is None else "variable"
        raise ValueError(
            f"{who} needs {weights.shape[1]} feature_names, one per {noun}, got "
            f"{len(feature_names)}."
        )
    clusters = [f"cluster {l}" for l in range(len(weights))]
    return pd.DataFrame(weights, index=clusters, columns=list(feature_names))


def check_count(who, count, or_none=True):
    """Raise unless `count`, the parameter max_features, is an int above 0 or None."""
    if count is None and or_none:
        return
    if not isinstance(count, Integral) or isinstance(count, bool) or count < 1:
        wanted = "an int above 0 or None" if or_none else "an int above 0"
        raise ValueError(f"{who} needs max_features to be {wanted}, got {count!r}.")


def check_weights_table(who, weights):
    """Validate weights and return them as a data frame."""
    if not isinstance(weights, pd.DataFrame):
        weights = np.asarray(weights)
        if weights.ndim != 2:
            raise ValueError(
                f"{who} needs weights of shape (n_clusters, n_features), got shape "
                f"{weights.shape}."
            )
        weights = pd.DataFrame(
            weights,
            index=[f"cluster {l}" for l in range(weights.shape[0])],
            columns=[f"x{v}" for v in range(weights.shape[1])],
        )
    try:
        values = weights.to_numpy(dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{who} needs weights that are numbers, but {error}.") from error
    if not values.size or not np.isfinite(values).all():
        raise ValueError(f"{who} needs at least one weight, and all weights must be finite.")
    return weights


def check_classes(who, y, n_samples):
    """Validate y; return the sorted class labels and the index of each row's label."""
    y = np.asarray(y)
    if y.ndim != 1 or len(y) != n_samples:
        raise ValueError(
            f"{who} needs y with one class label for each of {n_samples} rows, "
            f"got shape {y.shape}."
        )
    if pd.isna(y).any():
        raise ValueError(f"{who} needs a class label for every row, got missing values in y.")
    if y.dtype.kind == "f" and (y % 1 != 0).any():
        raise ValueError(f"{who} needs class labels in y, got numbers with fractions.")
    try:
        return np.unique(y, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"{who} needs labels in y that can be sorted, but {error}.") from error


def match_clusters(codes, labels):
    """Match classes with clusters one to one, maximising the number of common rows.

    Return a dict from classes to clusters. If there are more of one than of the other, some are
    not matched.
    """
    table = contingency_matrix(codes, labels)
    classes, clusters = linear_sum_assignment(table, maximize=True)
    found = np.unique(labels)
    return {int(c): int(found[l]) for c, l in zip(classes, clusters, strict=True)}
