"""Make the extractor of a CAFE and fit it, optionally with sample weights."""

from numbers import Integral

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.utils.validation import has_fit_parameter

from cafelearn.extraction.table import make_extractor

# Entries of a component count as equally large if their absolute values differ by at most this
# fraction.
TIE = 1e-6


def extractor_of(estimator, n_rows, n_features, seed):
    """Validate `n_components` of a CAFE and return its unfitted extractor, or None."""
    extractor, wanted = estimator.extractor, estimator.n_components
    if isinstance(extractor, str) and extractor == "auto":
        # Membership probabilities lose by a projection; extract only if that is asked for.
        extractor = None if wanted is None and estimator._input == "memberships" else "pca"
    if extractor is None:
        if wanted is not None:
            raise ValueError(
                "CAFE(extractor=None) returns the rescaled rows and needs "
                f"n_components=None, got {wanted}."
            )
        return None
    named = isinstance(extractor, str)
    shown = repr(extractor) if named else type(extractor).__name__
    _check_wanted(
        shown,
        wanted,
        n_rows,
        n_features,
        extractor == "pca" if named else isinstance(extractor, PCA),
    )
    if named:
        n_components = wanted
        if wanted is None:
            # The rank is at most the number of rows.
            n_components = max(1, min(n_features // 2, n_rows))
        return make_extractor(extractor, n_components, seed, estimator.n_jobs)
    extractor = clone(extractor)
    if wanted is not None:
        if "n_components" not in extractor.get_params():
            raise ValueError(
                f"CAFE(extractor={shown}) has no parameter n_components to set to {wanted}; "
                "leave n_components=None."
            )
        extractor.set_params(n_components=wanted)
    return extractor


def _check_wanted(shown, wanted, n_rows, n_features, is_pca):
    """Raise unless the extractor can extract `wanted` features.

    `shown` is the name of the extractor in messages.
    """
    if wanted is None:
        return
    if not isinstance(wanted, Integral):
        if not is_pca:
            raise ValueError(
                f"CAFE(extractor={shown}) needs n_components to be an integer, got {wanted}; "
                "only PCA takes a share of the variance."
            )
        return
    if wanted > n_features:
        raise ValueError(
            f"CAFE(extractor={shown}) needs n_components <= {n_features} features, "
            f"got {wanted}."
        )
    if wanted > n_rows:
        raise ValueError(
            f"CAFE(extractor={shown}) needs at least as many rows as components: "
            f"n_components={wanted}, n_samples={n_rows}."
        )


def fit_extractor(extractor, rows, sample_weight=None):
    """Fit an extractor to rescaled rows; return None if `extractor` is None.

    All weights must be positive. PCA and extractors whose `fit` takes `sample_weight` use the
    weights; other extractors ignore them.
    """
    if extractor is None:
        return None
    if type(extractor) is PCA and len(rows) == 1 and sample_weight is None:
        # For one row, the variances of scikit-learn are NaN; those of the weighted fit are 0.
        sample_weight = np.ones(1)
    if sample_weight is not None and has_fit_parameter(extractor, "sample_weight"):
        return extractor.fit(rows, sample_weight=sample_weight)
    if sample_weight is not None and type(extractor) is PCA:
        return _fit_weighted_pca(extractor, rows, sample_weight)
    if type(extractor) is not PCA:
        return extractor.fit(rows)
    with np.errstate(invalid="ignore"):  # scikit-learn divides by the total variance
        extractor.fit(rows)
    extractor.components_ = oriented(extractor.components_)
    if not extractor.explained_variance_.any():
        extractor.explained_variance_ratio_ = np.zeros_like(extractor.explained_variance_)
    return extractor


def shares_of(variances):
    """Return the share of each variance in their sum; 0 if all rows are equal."""
    total = variances.sum()
    return variances / total if total > 0 else np.zeros_like(variances)


def oriented(components):
    """Flip the sign of each component whose entry of largest absolute value is negative.

    scikit-learn does the same. Here, however, if several entries tie up to rounding, the first
    of them decides, so that the sign does not depend on rounding errors. For example, the
    entries of the two columns of a binary category have the same absolute value.
    """
    size = np.abs(components)
    first = np.argmax(size >= (1 - TIE) * size.max(axis=1, keepdims=True), axis=1)
    signs = np.where(components[np.arange(len(size)), first] < 0, -1, 1)
    return components * signs[:, None].astype(components.dtype)


def _fit_weighted_pca(pca, rows, sample_weight):
    """Fit scikit-learn's PCA as if each row occurred as many times as its weight."""
    # PCA.fit validates the parameters and sets the attributes that do not depend on weights.
    with np.errstate(invalid="ignore"):
        pca.fit(rows)
    mass = sample_weight.sum()
    mean = sample_weight @ rows.astype(np.float64) / mass
    centered = (rows - mean) * np.sqrt(sample_weight)[:, None]
    _, singular, components = np.linalg.svd(centered, full_matrices=False)
    components = oriented(components)
    variances = singular**2 / (mass - 1 if mass > 1 else mass)
    shares = shares_of(variances)
    wanted = pca.n_components
    if wanted is not None and not isinstance(wanted, Integral | str) and 0 < wanted < 1:
        # As in scikit-learn, the components kept explain more than this share of the variance.
        kept = int(np.searchsorted(np.cumsum(shares), wanted, side="right")) + 1
    else:
        kept = pca.n_components_
    kept, rest = min(kept, len(variances)), variances[kept:]
    dtype = pca.components_.dtype
    return _set_pca(pca, mean, components[:kept], variances, shares, singular, rest, dtype)


def fits_from_moments(extractor):
    """Check whether an extractor is a PCA whose components follow from mean and covariance."""
    return type(extractor) is PCA and (
        extractor.n_components is None or isinstance(extractor.n_components, Integral)
    )


def fit_pca(pca, moments, dtype):
    """Fit scikit-learn's PCA by the `Moments` of the rows."""
    n_rows, n_features = moments.mass, len(moments.mean)
    n_components = min(pca.n_components or n_features, n_features, n_rows)
    variances, vectors = np.linalg.eigh(moments.scatter / (n_rows - 1))
    variances = np.maximum(variances[::-1], 0.0)
    pca.n_samples_, pca.n_features_in_ = n_rows, n_features
    shares = shares_of(variances)[:n_components]
    rest = variances[n_components : min(n_features, n_rows)]
    singular = np.sqrt(variances[:n_components] * (n_rows - 1))
    vectors = oriented(vectors.T[::-1])[:n_components]
    return _set_pca(pca, moments.mean, vectors, variances, shares, singular, rest, dtype)


def _set_pca(pca, mean, components, variances, shares, singular, rest, dtype):
    """Set the attributes of a PCA; `rest` are the variances of the other components."""
    kept = pca.n_components_ = len(components)
    pca.mean_ = mean.astype(dtype)
    pca.components_ = np.ascontiguousarray(components, dtype=dtype)
    pca.explained_variance_ = variances[:kept].astype(dtype)
    pca.explained_variance_ratio_ = shares[:kept].astype(dtype)
    pca.singular_values_ = singular[:kept].astype(dtype)
    pca.noise_variance_ = dtype.type(rest.mean() if len(rest) else 0.0)
    return pca


def width_of(extractor, rescaled):
    """Return the number of extracted features or, without an extractor, of rescaled columns."""
    if extractor is None:
        return rescaled.shape[1]
    width = getattr(extractor, "_n_features_out", None)
    if width is None:
        width = np.asarray(extractor.transform(rescaled[:1])).shape[1]
    return width
