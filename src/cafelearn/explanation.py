"""The contribution of each feature to the cluster of a row."""

from cafelearn.interpret.explanation import explain

__all__ = ["explain"]
