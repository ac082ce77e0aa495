"""NumberOfClustersDisplay: stability and score of each number of clusters."""

from typing import TYPE_CHECKING, Self

import numpy as np
import pandas as pd

from cafelearn._cafe import CAFE
from cafelearn._mwkmeans import MinkowskiWeightedKMeans
from cafelearn._n_clusters import MEASURED
from cafelearn._typing import Estimator
from cafelearn.plotting._axes import COLORS, panels
from cafelearn.plotting._estimators import check_estimator

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


class NumberOfClustersDisplay:
    """Stability and score of each number of clusters tried.

    Usually created by :meth:`from_estimator`. For comparison, the stability and the score of
    permuted rows are also drawn: each variable is permuted independently, so that there is no
    cluster structure. A band shows the stability plus and minus its standard deviation.

    Parameters
    ----------
    table : pandas.DataFrame
        ``n_clusters_table_`` of a fitted estimator, one row for each number of clusters.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        The panels of stability and score.
    ax_ : matplotlib Axes
        The first panel.
    figure_ : matplotlib Figure
        Figure of the axes.
    lines_ : list of matplotlib Line2D
        Stability of the rows, stability of the permuted rows, score of the rows and score of
        the permuted rows, in this order.
    marks_ : list of matplotlib Line2D
        The lines that mark the chosen number of clusters, one in each panel.

    Examples
    --------
    >>> import pandas as pd
    >>> from cafelearn.plotting import NumberOfClustersDisplay
    >>> table = pd.DataFrame(
    ...     {
    ...         "stability": [0.7, 0.9],
    ...         "spread": [0.1, 0.02],
    ...         "permuted_stability": [0.2, 0.1],
    ...         "score": [320.0, 510.0],
    ...         "permuted_score": [-50.0, -130.0],
    ...         "criterion": [12.5, 20.3],
    ...         "chosen": [False, True],
    ...     },
    ...     index=[2, 3],
    ... )
    >>> display = NumberOfClustersDisplay(table).plot()
    >>> [panel.get_ylabel() for panel in display.axes_]
    ['stability (ARI)', 'score']
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

    def plot(self, ax: "Axes | ArrayLike | None" = None) -> Self:
        """Draw a panel for the stability and one for the score.

        Parameters
        ----------
        ax : matplotlib Axes or array of two of them, default=None
            Axes to draw on: two, or a single subplot, which is divided. None creates a figure.

        Returns
        -------
        display : NumberOfClustersDisplay
            This object.
        """
        from matplotlib.ticker import MaxNLocator

        self.axes_ = panels("NumberOfClustersDisplay.plot", ax, 2, figsize=(8.4, 3.4))
        self.ax_ = self.axes_[0]
        self.figure_ = self.ax_.figure
        numbers = np.asarray(self.table.index)
        chosen = numbers[self.table["chosen"].to_numpy(dtype=bool)]
        self.lines_, self.marks_ = [], []
        for panel, name in zip(self.axes_, ("stability", "score"), strict=True):
            permuted = f"permuted_{name}"
            for column, label, color, style in (
                (name, "rows", COLORS[0], "o-"),
                (permuted, "permuted rows", COLORS[1], "s--"),
            ):
                (line,) = panel.plot(
                    numbers, self.table[column], style, color=color, markersize=4, label=label
                )
                self.lines_.append(line)
            for number in chosen:
                self.marks_.append(
                    panel.axvline(number, color=COLORS[5], linestyle=":", label="chosen")
                )
            panel.set_xlabel("number of clusters")
            panel.set_ylabel("stability (ARI)" if name == "stability" else name)
            panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        low, high = (self.table["stability"] + sign * self.table["spread"] for sign in (-1, 1))
        self.ax_.fill_between(
            numbers, low, high, facecolor=COLORS[0], edgecolor="none", alpha=0.2
        )
        self.ax_.legend(fontsize="small")
        return self

    @classmethod
    def from_estimator(
        cls, estimator: Estimator, *, ax: "Axes | ArrayLike | None" = None
    ) -> Self:
        """Draw the stability and score of each number of clusters that an estimator tried.

        Parameters
        ----------
        estimator : CAFE, TabularCAFE or MinkowskiWeightedKMeans
            An estimator fitted with ``n_clusters="auto"`` or several numbers of clusters.
        ax : matplotlib Axes or array of two of them, default=None
            Axes to draw on: two, or a single subplot, which is divided. None creates a figure.

        Returns
        -------
        display : NumberOfClustersDisplay
            The drawn display.

        Examples
        --------
        >>> from cafelearn import CAFE
        >>> from cafelearn.datasets import load
        >>> from cafelearn.plotting import NumberOfClustersDisplay
        >>> cafe = CAFE(range(2, 5), n_init=2, random_state=0).fit(load("iris").data)
        >>> display = NumberOfClustersDisplay.from_estimator(cafe)
        >>> display.lines_[0].get_xdata()
        array([2, 3, 4])
        """
        who = f"{cls.__name__}.from_estimator"
        model = check_estimator(who, estimator, (CAFE, MinkowskiWeightedKMeans))
        if model.n_clusters_table_ is None:
            raise ValueError(
                f"{who} needs an estimator that chose its number of clusters, got one with "
                f"n_clusters={model.n_clusters}."
            )
        return cls(model.n_clusters_table_).plot(ax)
