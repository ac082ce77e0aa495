"""EmbeddingDisplay: scatter plots of two extracted features, by cluster and by class."""

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.decomposition import PCA

from cafelearn.base.typing import Estimator, MatrixLike
from cafelearn.estimators.cafe import CAFE
from cafelearn.plotting._axes import Display, group_style, plain_text
from cafelearn.plotting._estimators import check_classes, check_estimator, match_clusters

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

# With more rows than this, points in vector graphics are rasterised.
MANY_ROWS = 5_000
MOST = 10  # principal components, if no features are extracted
LEGEND_ROWS = 12  # in each column of the legend


class EmbeddingDisplay(Display):
    """Scatter plot of two extracted features by cluster and, in a second panel, by class.

    Usually created by :meth:`from_estimator`.

    Parameters
    ----------
    features : array-like of shape (n_samples, n_components)
        The extracted features.
    labels : array-like of int of shape (n_samples,)
        Cluster of each row.
    y : array-like of shape (n_samples,), default=None
        Class of each row, for a second panel. Classes and clusters are matched one to one, and
        a class has the colour of its cluster. Rows in a cluster that does not match their class
        have different colours in the two panels.
    components : (int, int), default=(0, 1)
        The two features to show.
    component_names : sequence of str, default=None
        Names of all extracted features.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        The panel by cluster and, with `y`, the panel by class.
    ax_ : matplotlib Axes
        The first panel.
    figure_ : matplotlib Figure
        Figure of the axes.
    scatters_ : list of list of matplotlib PathCollection
        For each panel, the points of each group.

    Examples
    --------
    >>> from cafelearn import CAFE
    >>> from cafelearn.datasets import load
    >>> from cafelearn.plotting import EmbeddingDisplay
    >>> iris = load("iris")
    >>> cafe = CAFE(3, n_components=2, n_init=2, random_state=0).fit(iris.data)
    >>> display = EmbeddingDisplay.from_estimator(cafe, iris.data, y=iris.target)
    >>> len(display.axes_)
    2
    """

    def __init__(
        self,
        features: "ArrayLike",
        labels: "ArrayLike",
        y: "ArrayLike | None" = None,
        *,
        components: tuple[int, int] = (0, 1),
        component_names: Sequence[str] | None = None,
    ):
        self.features = np.asarray(features, dtype=np.float64)
        self.labels, self.y = np.asarray(labels), y
        if self.features.ndim != 2 or len(self.features) == 0:
            raise ValueError(
                "EmbeddingDisplay needs features of shape (n_samples, n_components), got "
                f"shape {self.features.shape}."
            )
        n_samples, n_components = self.features.shape
        if self.labels.shape != (n_samples,) or self.labels.dtype.kind not in "iu":
            raise ValueError(
                f"EmbeddingDisplay needs one integer label for each of {n_samples} rows, got "
                f"{self.labels.dtype} of shape {self.labels.shape}."
            )
        self.components = _check_components(components, n_components)
        if component_names is None:
            component_names = [f"component {c}" for c in range(n_components)]
        if len(component_names) != n_components:
            raise ValueError(
                f"EmbeddingDisplay needs {n_components} component_names, "
                f"got {len(component_names)}."
            )
        self.component_names = list(component_names)
        if y is not None:
            self.classes, self._codes = check_classes("EmbeddingDisplay", y, n_samples)

    def plot(
        self,
        ax: "Axes | ArrayLike | None" = None,
        *,
        legend: bool = True,
        scatter_kw: dict | None = None,
    ) -> Self:
        """Draw the points.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, default=None
            Axes to draw on: one or, with `y`, two. A single subplot is divided if two axes are
            needed. None creates a figure.
        legend : bool, default=True
            Draw a legend.
        scatter_kw : dict, default=None
            Keyword arguments of :meth:`matplotlib.axes.Axes.scatter`, such as `s` and `alpha`.
        """
        groupings = [self._by_cluster()]
        if self.y is not None:
            groupings.append(self._by_class())
        n = len(groupings)
        self._open(ax, n, figsize=(0.4 + 5.6 * n, 4.4))
        self.scatters_ = [
            [self._draw_group(panel, group, scatter_kw or {}) for group in groups]
            for panel, groups in zip(self.axes_, groupings, strict=True)
        ]
        first, second = (plain_text(self.component_names[c]) for c in self.components)
        for panel in self.axes_:
            panel.set(xlabel=first, ylabel=second)
            if legend:
                _name_groups(panel, outside=ax is None)
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        X: MatrixLike,
        *,
        y: "ArrayLike | None" = None,
        components: tuple[int, int] = (0, 1),
        ax: "Axes | ArrayLike | None" = None,
        **options: Any,
    ) -> Self:
        """Transform rows with a fitted estimator and draw the features.

        The features of mwk-means are the distances to the centres. If a CAFE extracts no
        features, the principal components of its rescaled rows are drawn instead.

        Parameters
        ----------
        estimator : CAFE, TabularCAFE or MinkowskiWeightedKMeans
            A fitted estimator.
        X : array-like of shape (n_samples, n_features)
            Rows to transform: the training data or new rows.
        y : array-like of shape (n_samples,), default=None
            Class of each row, for a second panel.
        components : (int, int), default=(0, 1)
            The two extracted features to show.
        ax : matplotlib Axes or array of them, default=None
            Axes to draw on, as in :meth:`plot`.
        **options : dict
            Other arguments of :meth:`plot`.

        """
        inner = check_estimator(f"{cls.__name__}.from_estimator", estimator)
        features = np.asarray(estimator.transform(X))
        names = list(inner.get_feature_names_out())
        if not isinstance(inner, CAFE):
            names = [f"distance to cluster {l}" for l in range(len(names))]
            extractor = None
        elif inner.extractor_ is None:
            extractor = PCA(min(MOST, *features.shape), random_state=0)
            features = extractor.fit_transform(features)
            names = [f"component {v + 1}" for v in range(features.shape[1])]
        else:
            extractor = inner.extractor_
        _check_components(components, len(names))
        shares = getattr(extractor, "explained_variance_ratio_", None)
        if shares is not None:
            names = [f"{n} ({s:.0%} of variance)" for n, s in zip(names, shares, strict=True)]
        display = cls(
            features,
            estimator.predict(X),
            y,
            components=components,
            component_names=names,
        )
        return display.plot(ax, **options)

    def _by_cluster(self):
        """Yield a mask of the rows, the style and the name of each cluster."""
        for l in np.unique(self.labels).tolist():
            yield self.labels == l, group_style(l), f"cluster {l}"

    def _by_class(self):
        """Yield a mask of the rows, the style and the name of each class."""
        matched = match_clusters(self._codes, self.labels)
        # A class without a matching cluster gets an unused style.
        free = max(int(self.labels.max()), 0) + 1
        for code, name in enumerate(self.classes.tolist()):
            position = matched.get(code)
            if position is None:
                position, free = free, free + 1
            yield self._codes == code, group_style(position), f"class {name}"

    def _draw_group(self, ax, group, scatter_kw):
        rows, style, name = group
        x, y = self.features[rows][:, list(self.components)].T
        options = {
            "s": 12 if len(self.features) > 500 else 28,
            "alpha": 0.8,
            "edgecolors": "black",
            "linewidths": 0.3,
            "rasterized": len(self.features) > MANY_ROWS,
        }
        return ax.scatter(x, y, label=plain_text(name), **options | style | scatter_kw)


def _check_components(components, n_components):
    try:
        first, second = components
    except (TypeError, ValueError):
        first = second = None
    if not all(isinstance(c, Integral) for c in (first, second)) or first == second:
        raise ValueError(
            f"EmbeddingDisplay needs components to be two different ints, got {components!r}."
        )
    if not all(0 <= c < n_components for c in (first, second)):
        raise ValueError(
            f"EmbeddingDisplay needs components below the number of extracted features, "
            f"{n_components}, got {components!r}."
        )
    return int(first), int(second)


def _name_groups(ax, outside):
    n_groups = len(ax.get_legend_handles_labels()[0])
    place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if outside else {"loc": "best"}
    ax.legend(fontsize="small", ncols=-(-n_groups // LEGEND_ROWS), **place)
