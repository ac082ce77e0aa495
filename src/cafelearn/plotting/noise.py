"""NoisePairsDisplay: compare the feature weights of noise pairs with those of other pairs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.metrics import roc_auc_score

from cafelearn.base.typing import Estimator
from cafelearn.plotting._axes import COLORS, Display
from cafelearn.plotting._estimators import (
    check_classes,
    check_weights_table,
    match_clusters,
    weights_frame,
)
from cafelearn.plotting._heat_map import contrast_colors, draw_heat_map, figure_size

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

WIDTH_OF_DISTRIBUTIONS = 3.2  # in inches


class NoisePairsDisplay(Display):
    """Heat map of feature weights in which noise pairs are marked.

    A noise pair is a class and a feature to which noise was added in the rows of this class. A
    second panel compares the weights of noise pairs with those of pairs without noise. Usually
    created by :meth:`from_estimator`.

    Parameters
    ----------
    weights : DataFrame or array-like of shape (n_classes, n_features)
        For each class, the feature weights of the cluster matched to it.
    noise_pairs : array-like of bool of shape (n_classes, n_features)
        True for noise pairs.

    Attributes
    ----------
    ranked_right : float
        Area under the ROC curve: the probability that a random noise pair has a lower weight
        than a random pair without noise (ties count half). 1 is perfect, 0.5 is chance. NaN if
        all pairs or none are noise pairs.
    axes_ : ndarray of matplotlib Axes
        The heat map and the distributions.
    ax_ : matplotlib Axes
        The heat map.
    figure_ : matplotlib Figure
        Figure of the axes.
    im_ : matplotlib AxesImage
        The heat map.
    marks_ : matplotlib PathCollection
        The crosses on the noise pairs.
    points_ : list of matplotlib PathCollection
        The weights of the pairs without noise, and of the noise pairs.

    See Also
    --------
    cafelearn.datasets.corrupt : Add noise to data, and return the noise pairs.

    Examples
    --------
    >>> from cafelearn import CAFE, RangeScaler
    >>> from cafelearn.datasets import corrupt, load
    >>> from cafelearn.plotting import NoisePairsDisplay
    >>> iris = load("iris")
    >>> X = RangeScaler().fit_transform(iris.data)
    >>> X, pairs = corrupt(X, iris.target, 0.2, 1.0, random_state=0)
    >>> cafe = CAFE(3, n_init=5, random_state=0).fit(X)
    >>> display = NoisePairsDisplay.from_estimator(cafe, pairs, iris.target)
    >>> display.ranked_right
    1.0
    """

    def __init__(self, weights: "pd.DataFrame | ArrayLike", noise_pairs: "ArrayLike"):
        self.weights = check_weights_table("NoisePairsDisplay", weights)
        self.noise_pairs = _check_pairs(noise_pairs)
        if self.noise_pairs.shape != self.weights.shape:
            raise ValueError(
                f"NoisePairsDisplay needs noise_pairs of the shape of the weights, "
                f"{self.weights.shape}, got {self.noise_pairs.shape}."
            )
        noisy = self.noise_pairs.ravel()
        self.ranked_right = float("nan")
        if 0 < noisy.sum() < noisy.size:
            values = self.weights.to_numpy(dtype=np.float64).ravel()
            self.ranked_right = float(roc_auc_score(~noisy, values))

    def plot(
        self,
        ax: "Axes | ArrayLike | None" = None,
        *,
        cmap: Any = "viridis",
        colorbar: bool = True,
        im_kw: dict | None = None,
    ) -> Self:
        """Draw the heat map and the distributions.

        Parameters
        ----------
        ax : matplotlib Axes or two of them, default=None
            Axes to draw on: two, or a single subplot, which is divided. None creates a figure
            whose size fits the table.
        cmap : str or matplotlib Colormap, default="viridis"
            Colours of the weights.
        colorbar : bool, default=True
            Draw a colour bar.
        im_kw : dict, default=None
            Keyword arguments of :meth:`matplotlib.axes.Axes.imshow`.
        """
        width, height = figure_size(self.weights.index, self.weights.columns)
        self._open(
            ax,
            2,
            figsize=(width + WIDTH_OF_DISTRIBUTIONS, max(height, 3.2)),
            width_ratios=(width, WIDTH_OF_DISTRIBUTIONS),
        )
        values = self.weights.to_numpy(dtype=np.float64)
        self.im_, _, _ = draw_heat_map(
            self.ax_,
            self.weights,
            own_figure=ax is None,
            # The cells show crosses instead of numbers.
            annotate=False,
            cmap=cmap,
            im_kw=im_kw,
            colorbar=colorbar,
        )
        self._mark_pairs(values)
        self._draw_distributions(values)
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        noise_pairs: "ArrayLike",
        y: "ArrayLike",
        *,
        class_names: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
        ax: "Axes | ArrayLike | None" = None,
        **options: Any,
    ) -> Self:
        """Draw the weights of an estimator fitted to corrupted data.

        Classes and clusters are matched to maximise the number of common rows. If their
        numbers differ, unmatched classes or clusters are left out.

        Parameters
        ----------
        estimator : MinkowskiWeightedKMeans, CAFE or TabularCAFE
            An estimator fitted to the corrupted data.
        noise_pairs : array-like of bool of shape (n_classes, n_features)
            True for noise pairs, as returned by :func:`cafelearn.datasets.corrupt`, with the
            classes in sorted order.
        y : array-like of shape (n_samples,)
            Class of each row of the corrupted data.
        class_names : sequence of str, default=None
            Names of the classes in sorted order; None means the labels in `y`.
        feature_names : sequence of str, default=None
            Names of the features; None means the names seen in `fit` or, if there were none,
            x0, x1, ...
        ax : matplotlib Axes or two of them, default=None
            Axes to draw on, as in :meth:`plot`.
        **options : dict
            Other arguments of :meth:`plot`.

        """
        who = f"{cls.__name__}.from_estimator"
        table = weights_frame(who, estimator, feature_names)
        classes, codes = check_classes(who, y, len(estimator.labels_))
        names = classes.tolist() if class_names is None else list(class_names)
        if len(names) != len(classes):
            raise ValueError(
                f"{who} needs {len(classes)} class_names, one per class, got {len(names)}."
            )
        pairs = _check_pairs(noise_pairs)
        if pairs.shape != (len(classes), table.shape[1]):
            raise ValueError(
                f"{who} needs noise_pairs of shape (n_classes, n_features) = "
                f"{(len(classes), table.shape[1])}, got {pairs.shape}."
            )
        matched = match_clusters(codes, estimator.labels_)
        table = table.iloc[list(matched.values())]
        table.index = [f"{names[c]} (cluster {l})" for c, l in matched.items()]
        display = cls(table, pairs[list(matched)])
        return display.plot(ax, **options)

    def _mark_pairs(self, values):
        rows, columns = np.nonzero(self.noise_pairs)
        box, dpi = self.ax_.get_window_extent(), self.ax_.figure.get_dpi()
        cell = min(box.width / values.shape[1], box.height / values.shape[0]) / dpi * 72
        side = float(np.clip(0.45 * cell, 2, 10))
        self.marks_ = self.ax_.scatter(
            columns,
            rows,
            s=side**2,
            c=contrast_colors(self.im_, values[rows, columns]),
            marker="x",
            linewidths=max(0.8, side / 6),
        )
        self.ax_.set_title("crosses: noise was added", fontsize="medium")

    def _draw_distributions(self, values):
        ax = self.axes_[1]
        groups = values[~self.noise_pairs], values[self.noise_pairs]
        self.points_ = []
        for position, (group, color) in enumerate(
            zip(groups, (COLORS[0], COLORS[5]), strict=True)
        ):
            # Spread the points horizontally, without random numbers.
            jitter = (np.arange(len(group)) * 0.618034) % 1 - 0.5
            points = ax.scatter(
                position + 0.5 * jitter,
                group,
                s=14,
                marker="ox"[position],
                color=color,
                alpha=0.7,
                linewidths=1.0,
            )
            self.points_.append(points)
            if len(group):
                ax.boxplot(
                    group,
                    positions=[position],
                    widths=0.6,
                    showfliers=False,
                    manage_ticks=False,
                    medianprops={"color": "black", "linewidth": 2},
                )
        names = [
            f"{name}\n({len(group)})"
            for name, group in zip(("no noise", "noise"), groups, strict=True)
        ]
        ax.set_xticks([0, 1], names)
        ax.set_xlim(-0.6, 1.6)
        ax.set_ylabel("weight")
        if np.isfinite(self.ranked_right):
            ax.set_title(f"ranked right: {self.ranked_right:.1%}", fontsize="medium")


def _check_pairs(noise_pairs):
    noise_pairs = np.asarray(noise_pairs)
    if noise_pairs.dtype != bool:
        raise TypeError(
            f"NoisePairsDisplay needs noise_pairs to be boolean, got {noise_pairs.dtype}."
        )
    return noise_pairs
