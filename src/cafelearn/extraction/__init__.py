"""Feature extractors that keep the best of many random starts."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cafelearn.extraction.autoencoder import Autoencoder
    from cafelearn.extraction.ica import ReconstructionICA
    from cafelearn.extraction.nmf import ReplicatedNMF

__all__ = ["Autoencoder", "ReconstructionICA", "ReplicatedNMF"]

# The classes are imported on first use, so that `cafe` can list the extractors quickly.
_PLACES = {"Autoencoder": "autoencoder", "ReconstructionICA": "ica", "ReplicatedNMF": "nmf"}


def __getattr__(name):
    if name in _PLACES:
        return getattr(import_module(f"cafelearn.extraction.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
