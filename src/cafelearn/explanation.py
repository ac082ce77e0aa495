"""The contribution of each feature to the cluster of a row."""

from cafelearn.interpret.explanation import explain, values_shown

__all__ = ["explain", "values_shown"]
