"""Findings about a fit."""

from cafelearn.choice.diagnosis import DiagnosisWarning, Finding

__all__ = ["DiagnosisWarning", "Finding"]
