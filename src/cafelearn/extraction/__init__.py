"""Feature extractors that keep the best of many random starts."""

from cafelearn.extraction.autoencoder import Autoencoder
from cafelearn.extraction.ica import ReconstructionICA
from cafelearn.extraction.nmf import ReplicatedNMF

__all__ = ["Autoencoder", "ReconstructionICA", "ReplicatedNMF"]
