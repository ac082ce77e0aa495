"""Displays of `cafelearn.plotting` as pictures of a report."""

import io
import math

from cafelearn.plotting import NumberOfClustersDisplay, ObjectiveDisplay
from cafelearn.report.page import encoded


def draw_numbers(table) -> str:
    """Draw the gain of each number of clusters."""
    return _drawn(NumberOfClustersDisplay(table).plot, (5.4, 3.4))


def draw_objectives(facts) -> str:
    """Draw the objective of the best start by iteration.

    There is a panel for each candidate that differs from the chosen one at most in p.
    """

    def draw(ax):
        ObjectiveDisplay.from_estimator(facts.inner, ax=ax)

    n_columns = math.ceil(math.sqrt(len(facts.family)))
    n_rows = math.ceil(len(facts.family) / n_columns)
    return _drawn(draw, (1.2 + 3.6 * n_columns, 0.6 + 2.6 * n_rows))


def _drawn(draw, size):
    """Call `draw` with matplotlib axes; return the picture as a data: URL."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    drawn = io.BytesIO()
    # Without the date and random identifiers, equal results give identical pictures.
    with rc_context({"svg.hashsalt": "cafelearn"}):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure.add_subplot())
        figure.savefig(drawn, format="svg", transparent=True, metadata={"Date": None})
    return encoded(drawn.getvalue(), "image/svg+xml")
