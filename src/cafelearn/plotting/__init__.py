"""Displays in scikit-learn's manner: data in, ``plot`` draws it with matplotlib."""

from cafelearn.plotting.agreement import AgreementDisplay
from cafelearn.plotting.embedding import EmbeddingDisplay
from cafelearn.plotting.noise import NoisePairsDisplay
from cafelearn.plotting.numbers import NumberOfClustersDisplay
from cafelearn.plotting.objective import ObjectiveDisplay
from cafelearn.plotting.ranking import CriticalDifferenceDisplay
from cafelearn.plotting.weights import WeightsDisplay

__all__ = [
    "AgreementDisplay",
    "CriticalDifferenceDisplay",
    "EmbeddingDisplay",
    "NoisePairsDisplay",
    "NumberOfClustersDisplay",
    "ObjectiveDisplay",
    "WeightsDisplay",
]
