"""Loadings: coefficients of the inputs in each feature of a linear extractor."""

import numpy as np
import pandas as pd
from sklearn.decomposition import NMF, PCA, IncrementalPCA, TruncatedSVD

from cafelearn.extraction.table import EXTRACTORS, extractor_class
from cafelearn.interpret.profiles import feature_names

# Extractors whose features are linear in the rows, with the coefficients `components_`. For NMF
# it is the other way round: the rows are approximately linear in the features.
LINEAR = (
    IncrementalPCA,
    TruncatedSVD,
    NMF,
    *(extractor_class(name) for name, entry in EXTRACTORS.items() if entry.linear),
)


def has_loadings(extractor) -> bool:
    """Check whether a fitted extractor has loadings."""
    return isinstance(extractor, LINEAR)


def make_loadings(cafe) -> pd.DataFrame:
    """Compute ``CAFE.loadings_``.

    Raise an AttributeError for extractors that are not linear, so that ``hasattr`` works.
    """
    extractor = cafe.extractor_
    if not has_loadings(extractor):
        known = ", ".join(sorted(kind.__name__ for kind in LINEAR))
        raise AttributeError(
            f"CAFE.loadings_ needs a linear extractor ({known}), got "
            f"{type(extractor).__name__}."
        )
    names = feature_names(cafe)
    components = _components(extractor)
    columns = list(cafe.get_feature_names_out())
    if cafe._input == "memberships":
        parts = ("membership in cluster", "log density in cluster")
        clusters = range(len(cafe.feature_weights_))
        more = [f"{part} {l}" for part in parts for l in clusters]
        index = pd.Index([*names, *more], name="input")
        return pd.DataFrame(components.T, index=index, columns=columns)
    if cafe._input == "distances":
        distances = [f"log distance to cluster {l}" for l in range(len(cafe.feature_weights_))]
        index = pd.Index([*names, *distances], name="input")
        return pd.DataFrame(components.T, index=index, columns=columns)
    factors = cafe.feature_weights_
    if cafe._input == "centroid":
        factors = factors / factors.max(axis=1, keepdims=True)
    index = pd.MultiIndex.from_product([range(len(factors)), names], names=["cluster", "input"])
    values = np.concatenate([components.T * factor[:, None] for factor in factors])
    return pd.DataFrame(values, index=index, columns=columns)


def _components(extractor):
    components = np.asarray(extractor.components_, dtype=np.float64)
    if isinstance(extractor, PCA | IncrementalPCA) and extractor.whiten:
        # PCA with whitening divides each feature by its standard deviation.
        return components / np.sqrt(extractor.explained_variance_)[:, None]
    return components
