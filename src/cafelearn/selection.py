"""Compare clusterings of the same rows by the density of a mixture."""

from cafelearn.choice.selection import likelihood_score

__all__ = ["likelihood_score"]
