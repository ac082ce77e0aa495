"""Mixtures of clusters for columns of any kind."""

from cafelearn.mixture.model import Mixture

__all__ = ["Mixture"]
