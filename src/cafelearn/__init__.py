"""Minkowski weighted k-means and Cluster-Adaptive Feature Extraction for scikit-learn."""

from cafelearn.mwkmeans import MinkowskiWeightedKMeans
from cafelearn.scaling import RangeScaler

__version__ = "0.1.0"

__all__ = ["MinkowskiWeightedKMeans", "RangeScaler"]
