"""Minkowski weighted k-means and Cluster-Adaptive Feature Extraction for scikit-learn."""

from cafelearn.cafe import CAFE
from cafelearn.mwkmeans import MinkowskiWeightedKMeans
from cafelearn.scaling import RangeScaler

__version__ = "0.1.0"

__all__ = ["CAFE", "MinkowskiWeightedKMeans", "RangeScaler"]
