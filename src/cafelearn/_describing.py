"""What fitted estimators say of rows and weights, the same for all of them."""

import numpy as np
import pandas as pd


def margins(distances):
    """1 minus the ratio of the distances to the nearest and the second nearest centre."""
    if distances.shape[1] == 1:
        return np.ones(len(distances), dtype=distances.dtype)
    two = np.partition(distances, 1, axis=1)
    second = np.where(two[:, 1] > 0, two[:, 1], 1)
    return 1 - np.where(two[:, 1] > 0, two[:, 0], 1) / second


def weights_table(estimator):
    """The feature weights of an estimator as a data frame with names."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        names = [f"x{v}" for v in range(estimator.n_features_in_)]
    index = [f"cluster {l}" for l in range(len(estimator.feature_weights_))]
    return pd.DataFrame(estimator.feature_weights_, index=index, columns=names)
