"""LoadingsDisplay: loadings of each input of the extractor on each extracted feature."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from cafelearn.base.typing import Estimator
from cafelearn.estimators.cafe import CAFE
from cafelearn.plotting._axes import Display
from cafelearn.plotting._estimators import check_count, check_estimator, check_weights_table
from cafelearn.plotting._heat_map import draw_heat_map, figure_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

MOST_COLUMNS = 3  # panels side by side


class LoadingsDisplay(Display):
    """Heat map of loadings: a row per input of the extractor, a column per extracted feature.

    Usually created by :meth:`from_estimator`. If the loadings differ by cluster, there is a
    panel for each cluster.

    Parameters
    ----------
    loadings : DataFrame of shape (n_inputs, n_components)
        The loadings, as in ``CAFE.loadings_``. If the loadings differ by cluster, the index has
        the levels cluster and input.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One panel, or one for each cluster.
    ax_ : matplotlib Axes
        The first panel.
    figure_ : matplotlib Figure
        Figure of the axes.
    ims_ : list of matplotlib AxesImage
        The heat map of each panel.
    colorbar_ : matplotlib Colorbar or None
        The colour bar, beside the last panel.

    See Also
    --------
    WeightsDisplay : Weight of each feature in each cluster.

    Examples
    --------
    >>> from cafelearn import CAFE
    >>> from cafelearn.datasets import load
    >>> from cafelearn.plotting import LoadingsDisplay
    >>> cafe = CAFE(3, n_components=2, n_init=2, random_state=0).fit(load("iris").data)
    >>> display = LoadingsDisplay.from_estimator(cafe)
    >>> display.ims_[0].get_array().shape  # four features, two inputs per cluster
    (10, 2)
    """

    def __init__(self, loadings: "pd.DataFrame"):
        if not isinstance(loadings, pd.DataFrame):
            raise TypeError(
                "LoadingsDisplay needs loadings as a DataFrame, such as CAFE.loadings_, got "
                f"{type(loadings).__name__}."
            )
        self.loadings = check_weights_table("LoadingsDisplay", loadings)

    def plot(
        self,
        ax: "Axes | ArrayLike | None" = None,
        *,
        max_features: int | None = None,
        annotate: bool | None = None,
        cmap: Any = "RdBu_r",
        colorbar: bool = True,
        im_kw: dict | None = None,
    ) -> Self:
        """Draw the heat map.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, default=None
            Axes to draw on: one for each panel, or a single subplot, which is divided. None
            creates a figure.
        max_features : int, default=None
            Number of inputs to show, those with the largest absolute loadings; None shows all.
        annotate : bool, default=None
            Write the loadings into the cells; None does so if they fit.
        cmap : str or matplotlib Colormap, default="RdBu_r"
            Colours of the loadings; zero is in the middle.
        colorbar : bool, default=True
            Draw a colour bar.
        im_kw : dict, default=None
            Keyword arguments of :meth:`matplotlib.axes.Axes.imshow`.
        """
        tables = self._tables(max_features)
        n, first = len(tables), next(iter(tables.values()))
        columns = min(n, MOST_COLUMNS)
        width, height = figure_size(first.index, first.columns)
        size = (width * columns, height * -(-n // columns))
        self._open(ax, n, n_columns=columns, figsize=size)
        largest = max(float(np.abs(table.to_numpy()).max()) for table in tables.values()) or 1.0
        self.ims_, self.colorbar_ = [], None
        for (name, table), panel in zip(tables.items(), self.axes_, strict=True):
            drawn = draw_heat_map(
                panel,
                table,
                own_figure=ax is None,
                limits=(-largest, largest),
                annotate=annotate,
                cmap=cmap,
                im_kw=im_kw,
                colorbar=colorbar and panel is self.axes_[-1],
                label="loading",
            )
            self.ims_.append(drawn.image)
            self.colorbar_ = drawn.colorbar
            if name is not None:
                panel.set_title(f"cluster {name}", fontsize="medium")
        if max_features is not None and len(first) < self._n_inputs():
            # Write this below the panels, because their titles name the clusters.
            self.figure_.supxlabel(
                f"{len(first)} of {self._n_inputs()} inputs, largest loadings",
                fontsize="medium",
            )
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        *,
        ax: "Axes | ArrayLike | None" = None,
        **options: Any,
    ) -> Self:
        """Draw the loadings of a fitted CAFE with a linear extractor.

        Parameters
        ----------
        estimator : CAFE or TabularCAFE
            A fitted estimator.
        ax : matplotlib Axes or array of them, default=None
            Axes to draw on, as in :meth:`plot`.
        **options : dict
            Other arguments of :meth:`plot`.

        """
        cafe = check_estimator(f"{cls.__name__}.from_estimator", estimator, (CAFE,))
        return cls(cafe.loadings_).plot(ax, **options)

    def _tables(self, max_features):
        """Return a dict of the loadings to show, by cluster.

        If the loadings do not differ by cluster, the only key is None.
        """
        check_count("LoadingsDisplay", max_features)
        tables = {None: self.loadings}
        if self.loadings.index.nlevels > 1:
            clusters = self.loadings.index.get_level_values(0).unique()
            tables = {l: self.loadings.xs(l, level=0) for l in clusters}
        sizes = np.max(
            [np.abs(table.to_numpy()).max(axis=1) for table in tables.values()], axis=0
        )
        kept = np.sort(np.argsort(-sizes, kind="stable")[:max_features])
        return {name: table.iloc[kept] for name, table in tables.items()}

    def _n_inputs(self):
        levels = self.loadings.index
        return len(levels.get_level_values(-1).unique()) if levels.nlevels > 1 else len(levels)
