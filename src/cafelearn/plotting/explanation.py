"""ExplanationDisplay: contribution of each feature to the assignment of a row to a cluster."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from cafelearn.base.typing import Estimator, MatrixLike
from cafelearn.interpret.explanation import explain, values_shown
from cafelearn.plotting._axes import COLORS, Display, plain_text
from cafelearn.plotting._estimators import check_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 12
NEEDED = ("share", "value", "first_center", "second_center")


class ExplanationDisplay(Display):
    """Bar chart of the contribution of each feature to the assignment of a row to its cluster.

    The share of a feature is its contribution divided by the sum of the absolute contributions.
    Positive shares favour the cluster of the row, negative shares the second nearest cluster.
    Usually created by :meth:`from_estimator`.

    Parameters
    ----------
    contributions : DataFrame
        The result of :func:`cafelearn.explanation.explain`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the bars.
    figure_ : matplotlib Figure
        Figure of the axes.
    bars_ : matplotlib BarContainer
        The bars, with the largest absolute share at the top.

    Examples
    --------
    >>> from cafelearn import CAFE
    >>> from cafelearn.datasets import load
    >>> from cafelearn.explanation import explain
    >>> from cafelearn.plotting import ExplanationDisplay
    >>> X = load("iris").frame.drop(columns="target")
    >>> cafe = CAFE(3, p=2.0, n_init=5, random_state=0).fit(X)
    >>> display = ExplanationDisplay(explain(cafe, X, 70)).plot()
    >>> len(display.bars_)
    4
    """

    def __init__(self, contributions: "pd.DataFrame"):
        missing = [name for name in NEEDED if name not in getattr(contributions, "columns", ())]
        if missing or "first" not in getattr(contributions, "attrs", {}):
            raise ValueError(
                "ExplanationDisplay needs the result of cafelearn.explanation.explain, got "
                f"{type(contributions).__name__}."
            )
        self.contributions = contributions

    def plot(
        self, ax: "Axes | None" = None, *, max_features: int = MOST, bar_kw: dict | None = None
    ) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure.
        max_features : int, default=12
            Number of features to show, those with the largest absolute shares.
        bar_kw : dict, default=None
            Keyword arguments of :meth:`matplotlib.axes.Axes.barh`.
        """
        check_count("ExplanationDisplay", max_features, or_none=False)
        shown = self.contributions.head(max_features)
        size = (6.4, 1.2 + 0.32 * len(shown))
        self._open(ax, figsize=size)
        shares = 100 * shown["share"].to_numpy(dtype=np.float64)
        values = values_shown(shown)["value"]
        names = [
            plain_text(f"{name} = {value}", 40)
            for name, value in zip(shown.index, values, strict=True)
        ]
        places = np.arange(len(shown))
        colors = np.where(shares >= 0, COLORS[0], COLORS[5])
        self.bars_ = self.ax_.barh(places, shares, **{"color": colors} | (bar_kw or {}))
        self.ax_.set_yticks(places, names)
        self.ax_.invert_yaxis()
        self.ax_.axvline(0, color="black", linewidth=0.8)
        facts = self.contributions.attrs
        self.ax_.set_xlabel(
            "share of the difference in %\n"
            f"\N{LEFTWARDS ARROW} for cluster {facts['second']}     "
            f"for cluster {facts['first']} \N{RIGHTWARDS ARROW}"
        )
        self.ax_.set_title(
            f"cluster {facts['first']}, not cluster {facts['second']} "
            f"(margin {facts['margin']:.2f})",
            fontsize="medium",
        )
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: MatrixLike,
        row: int,
        *,
        ax: "Axes | None" = None,
        **options: Any,
    ) -> Self:
        """Compute the contributions for one row and draw the bars.

        Parameters
        ----------
        estimator : CAFE, TabularCAFE or MinkowskiWeightedKMeans
            A fitted estimator with at least two clusters.
        X : array-like or DataFrame of shape (n_samples, n_features)
            The rows, in the format of ``predict``.
        row : int
            Position of the row in `X`, from 0; negative positions count from the end.
        ax : matplotlib Axes, default=None
            Axes to draw on, as in :meth:`plot`.
        **options : dict
            Other arguments of :meth:`plot`.
        """
        found = explain(estimator, X, row)
        return cls(found).plot(ax, **options)
