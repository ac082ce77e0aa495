"""Table of the rules by which CAFE chooses among candidates.

To add a rule, add an entry here and its function to `cafelearn.selection`.
"""

from importlib import import_module
from typing import NamedTuple


class Selection(NamedTuple):
    """One rule."""

    function: str  # name in cafelearn.selection; (models, scores, agreement) -> index
    text: str  # reason for the choice, in reports


# The selection that fits a mixture, which starts from the candidates.
MIXTURE = "mixture"
SELECTIONS = {
    MIXTURE: Selection("by_likelihood", "the highest likelihood score of the starts"),
    "likelihood": Selection("by_likelihood", "the highest likelihood score"),
    "agreement": Selection("by_agreement", "the highest total agreement with the others"),
}


def choose(name, models, scores, agreement):
    """Choose among fitted models; return the index of the chosen model."""
    function = getattr(import_module("cafelearn.selection"), SELECTIONS[name].function)
    return function(models, scores, agreement)
