"""Displays as in scikit-learn: objects that hold results and draw them with matplotlib."""

from cafelearn.plotting.agreement import AgreementDisplay
from cafelearn.plotting.embedding import EmbeddingDisplay
from cafelearn.plotting.explanation import ExplanationDisplay
from cafelearn.plotting.loadings import LoadingsDisplay
from cafelearn.plotting.noise import NoisePairsDisplay
from cafelearn.plotting.numbers import NumberOfClustersDisplay
from cafelearn.plotting.objective import ObjectiveDisplay
from cafelearn.plotting.weights import WeightsDisplay

__all__ = [
    "AgreementDisplay",
    "EmbeddingDisplay",
    "ExplanationDisplay",
    "LoadingsDisplay",
    "NoisePairsDisplay",
    "NumberOfClustersDisplay",
    "ObjectiveDisplay",
    "WeightsDisplay",
]
