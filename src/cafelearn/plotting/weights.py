"""WeightsDisplay: feature weights by cluster."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cafelearn.base.typing import Estimator
from cafelearn.plotting._axes import Display
from cafelearn.plotting._estimators import check_count, check_weights_table, weights_frame
from cafelearn.plotting._heat_map import contrast_colors, draw_heat_map, figure_size

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


class WeightsDisplay(Display):
    """Heat map of feature weights: a row per cluster, a column per feature.

    Usually created by :meth:`from_estimator`.

    Parameters
    ----------
    weights : DataFrame or array-like of shape (n_clusters, n_features)
        The weights. The index of a data frame gives the names of the clusters, and its columns
        give the names of the features.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the heat map.
    figure_ : matplotlib Figure
        Figure of the axes.
    im_ : matplotlib AxesImage
        The heat map.
    text_ : ndarray of shape (n_clusters, n_features) of matplotlib Text, or None
        The numbers in the cells.
    colorbar_ : matplotlib Colorbar or None
        The colour bar. If the weights of each cluster sum to 1, a line marks the uniform weight
        1 / n_features.

    See Also
    --------
    NoisePairsDisplay : Heat map of weights with known noise pairs marked.

    Examples
    --------
    >>> from cafelearn import CAFE
    >>> from cafelearn.datasets import load
    >>> from cafelearn.plotting import WeightsDisplay
    >>> X = load("glass").frame.drop(columns="target")
    >>> cafe = CAFE(6, p=(1.5, 2.0), n_init=2, random_state=0).fit(X)
    >>> display = WeightsDisplay.from_estimator(cafe, max_features=3)
    >>> display.ax_.get_title()
    '3 of 9 features, largest spread'
    """

    def __init__(self, weights: "pd.DataFrame | ArrayLike"):
        self.weights = check_weights_table("WeightsDisplay", weights)

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        max_features: int | None = None,
        sort_features: bool = False,
        annotate: bool | None = None,
        cmap: Any = "viridis",
        colorbar: bool = True,
        im_kw: dict | None = None,
    ) -> Self:
        """Draw the heat map.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure whose size fits the table.
        max_features : int, default=None
            Number of features to show, those with the largest spread; None shows all. The
            spread is the largest minus the smallest weight over the clusters.
        sort_features : bool, default=False
            Sort the features by spread, in descending order.
        annotate : bool, default=None
            Write the weights into the cells; None does so if they fit.
        cmap : str or matplotlib Colormap, default="viridis"
            Colours of the weights.
        colorbar : bool, default=True
            Draw a colour bar.
        im_kw : dict, default=None
            Keyword arguments of :meth:`matplotlib.axes.Axes.imshow`;
            ``{"norm": "log"}`` makes differences between small weights visible.
        """
        shown = self.weights.iloc[:, self._chosen_features(max_features, sort_features)]
        size = figure_size(shown.index, shown.columns)
        self._open(ax, figsize=size)
        self.im_, self.text_, self.colorbar_ = draw_heat_map(
            self.ax_,
            shown,
            own_figure=ax is None,
            annotate=annotate,
            cmap=cmap,
            im_kw=im_kw,
            colorbar=colorbar,
        )
        if colorbar:
            self._mark_uniform_weight()
        if shown.shape[1] < self.weights.shape[1]:
            self.ax_.set_title(
                f"{shown.shape[1]} of {self.weights.shape[1]} features, largest spread",
                fontsize="medium",
            )
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        *,
        feature_names: Sequence[str] | None = None,
        ax: "Axes | None" = None,
        **options: Any,
    ) -> Self:
        """Draw the weights of a fitted estimator.

        Parameters
        ----------
        estimator : MinkowskiWeightedKMeans, CAFE or TabularCAFE
            A fitted estimator.
        feature_names : sequence of str, default=None
            Names of the features; None means the names seen in `fit` or, if there were none,
            x0, x1, ...
        ax : matplotlib Axes, default=None
            Axes to draw on, as in :meth:`plot`.
        **options : dict
            Other arguments of :meth:`plot`.

        """
        table = weights_frame(f"{cls.__name__}.from_estimator", estimator, feature_names)
        return cls(table).plot(ax, **options)

    def _chosen_features(self, max_features, sort_features):
        """Return the positions of the features to show, in order."""
        check_count("WeightsDisplay", max_features)
        values = self.weights.to_numpy(dtype=np.float64)
        # Ties in the spread, as with a single cluster, are ordered by the largest weight.
        order = np.lexsort((-values.max(axis=0), -np.ptp(values, axis=0)))
        chosen = order[:max_features]
        return chosen if sort_features else np.sort(chosen)

    def _mark_uniform_weight(self):
        values = self.weights.to_numpy(dtype=np.float64)
        uniform = 1 / values.shape[1]
        low, high = self.im_.get_clim()
        # The line has a meaning only for weights that sum to 1.
        if np.allclose(values.sum(axis=1), 1, atol=1e-3) and low < uniform < high:
            color = str(contrast_colors(self.im_, [uniform])[0])
            self.colorbar_.ax.axhline(uniform, color=color, linewidth=1.5)
            self.colorbar_.set_label(f"weight (line: 1/{values.shape[1]})")
