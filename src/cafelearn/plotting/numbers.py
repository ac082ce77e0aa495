"""NumberOfClustersDisplay: the gain of each number of clusters over a single cloud."""

from typing import TYPE_CHECKING, Self

import numpy as np
import pandas as pd

from cafelearn.base.typing import Estimator
from cafelearn.choice.chosen import MEASURED
from cafelearn.estimators.cafe import CAFE
from cafelearn.estimators.mwkmeans import MinkowskiWeightedKMeans
from cafelearn.plotting._axes import COLORS, Display
from cafelearn.plotting._estimators import check_estimator

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class NumberOfClustersDisplay(Display):
    """Gain of each number of clusters tried.

    Usually created by :meth:`from_estimator`. The gain is the criterion of a mixture with this
    number of components, minus that of a single cloud. Hollow points are nearly as good as the
    chosen number; crosses have tiny clusters.

    Parameters
    ----------
    table : pandas.DataFrame
        ``n_clusters_table_`` of a fitted estimator, one row for each number of clusters.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes.
    figure_ : matplotlib Figure
        Figure of the axes.
    line_ : matplotlib Line2D
        The gains.
    chosen_ : list of matplotlib Line2D
        The lines that mark the chosen number of clusters.
    tied_ : matplotlib Line2D
        The numbers that are nearly as good.
    tiny_ : matplotlib Line2D
        The numbers with tiny clusters.

    Examples
    --------
    >>> from cafelearn import CAFE
    >>> from cafelearn.datasets import load
    >>> from cafelearn.plotting import NumberOfClustersDisplay
    >>> cafe = CAFE(range(2, 5), n_init=2, random_state=0).fit(load("iris").data)
    >>> display = NumberOfClustersDisplay.from_estimator(cafe)
    >>> display.line_.get_xdata()
    array([2, 3, 4])
    """

    def __init__(self, table: pd.DataFrame):
        needed = [*MEASURED, "chosen"]
        missing = [name for name in needed if name not in getattr(table, "columns", ())]
        if missing:
            raise ValueError(
                "NumberOfClustersDisplay needs a table like n_clusters_table_, with the "
                f"columns {', '.join(needed)}; {', '.join(missing)} not found."
            )
        self.table = table

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Draw the gains.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure.
        """
        self._open(ax, figsize=(5.4, 3.4))
        from matplotlib.ticker import MaxNLocator

        numbers, gains = np.asarray(self.table.index), self.table["gain"].to_numpy()
        chosen, tied, counts = (
            self.table[name].to_numpy(dtype=bool) for name in ("chosen", "tied", "counts")
        )
        self.ax_.axhline(0, color="black", linewidth=0.8)
        self.chosen_ = [
            self.ax_.axvline(number, color=COLORS[5], linestyle=":", label="chosen")
            for number in numbers[chosen]
        ]
        (self.line_,) = self.ax_.plot(numbers, gains, "o-", color=COLORS[0], markersize=4)
        hollow = {"color": COLORS[0], "markerfacecolor": "white", "markersize": 8}
        (self.tied_,) = self.ax_.plot(
            numbers[tied], gains[tied], "o", **hollow, label="nearly as good"
        )
        (self.tiny_,) = self.ax_.plot(
            numbers[~counts], gains[~counts], "x", color=COLORS[5], label="tiny clusters"
        )
        self.ax_.set_xlabel("number of clusters")
        self.ax_.set_ylabel("gain over a single cloud")
        self.ax_.xaxis.set_major_locator(MaxNLocator(integer=True))
        marked = [line for line in (self.tied_, self.tiny_) if len(line.get_xdata())]
        shown = [*self.chosen_, *marked]
        self.ax_.legend(handles=shown, fontsize="small")
        return self

    @classmethod
    def from_estimator(cls, estimator: Estimator, *, ax: "Axes | None" = None) -> Self:
        """Draw the gain of each number of clusters that an estimator tried.

        Parameters
        ----------
        estimator : CAFE, TabularCAFE or MinkowskiWeightedKMeans
            An estimator fitted with ``n_clusters="auto"`` or several numbers of clusters.
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure.

        """
        who = f"{cls.__name__}.from_estimator"
        model = check_estimator(who, estimator, (CAFE, MinkowskiWeightedKMeans))
        if model.n_clusters_table_ is None:
            raise ValueError(
                f"{who} needs an estimator that chose its number of clusters, got one with "
                f"n_clusters={model.n_clusters}."
            )
        return cls(model.n_clusters_table_).plot(ax)
