"""The nine data sets of the paper, and the noise that its experiments add to them."""

from cafelearn.datasets.loading import load, names
from cafelearn.datasets.noise import corrupt

__all__ = ["corrupt", "load", "names"]
