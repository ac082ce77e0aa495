"""The built-in feature extractors of CAFE, by name."""

from sklearn.decomposition import PCA, FastICA

from cafelearn.extraction.autoencoder import Autoencoder
from cafelearn.extraction.ica import ReconstructionICA
from cafelearn.extraction.nmf import ReplicatedNMF

NAMES = ("pca", "nmf", "ica", "fastica", "autoencoder", "umap")


def make_extractor(name, n_components, seed, n_jobs=None):
    """Make an extractor of `n_components` features; `seed` is an integer."""
    if name == "pca":
        return PCA(n_components, random_state=seed)
    if name == "nmf":
        return ReplicatedNMF(n_components, n_jobs=n_jobs, random_state=seed)
    if name == "ica":
        return ReconstructionICA(n_components, n_jobs=n_jobs, random_state=seed)
    if name == "fastica":
        return FastICA(n_components, whiten="unit-variance", random_state=seed)
    if name == "autoencoder":
        return Autoencoder(n_components, n_jobs=n_jobs, random_state=seed)
    return _umap(n_components, seed)


def _umap(n_components, seed):
    try:
        from umap import UMAP
    except ImportError as error:
        raise ImportError(
            "CAFE(extractor='umap') needs the package umap-learn: "
            "pip install 'cafelearn[umap]'."
        ) from error
    # UMAP does not support several threads with a seed.
    return UMAP(n_components=n_components, random_state=seed, n_jobs=1)
