"""AgreementDisplay: agreement between the clusterings of several candidates."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from cafelearn.base.typing import Estimator
from cafelearn.base.words import listed
from cafelearn.estimators.cafe import CAFE
from cafelearn.interpret.labels import candidate_names, chosen_position
from cafelearn.plotting._axes import COLORS, Display, plain_text
from cafelearn.plotting._estimators import check_estimator
from cafelearn.plotting._heat_map import FEW, draw_heat_map, figure_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


# Names of candidates are longer than those of features.
LENGTH = 60


class AgreementDisplay(Display):
    """Adjusted Rand index between the clusterings of each pair of candidates.

    Usually created by :meth:`from_estimator`.

    Parameters
    ----------
    agreement : array-like of shape (n_candidates, n_candidates)
        Adjusted Rand indices.
    names : sequence of str
        A name for each candidate, in the order of the rows.
    chosen : str, default=None
        The name of the chosen candidate, whose row is marked.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the heat map. With up to 16 candidates, each row label also shows the sum of
        the indices of this candidate with all others. ``CAFE(selection="agreement")`` chooses
        the candidate with the largest sum.
    figure_ : matplotlib Figure
        Figure of the axes.
    im_ : matplotlib AxesImage
        The heat map.
    text_ : ndarray of shape (n_candidates, n_candidates) of matplotlib Text, or None
        The numbers in the cells.
    frame_ : matplotlib Rectangle or None
        The frame around the row of the chosen candidate.

    Examples
    --------
    >>> from cafelearn import CAFE
    >>> from cafelearn.datasets import load
    >>> from cafelearn.plotting import AgreementDisplay
    >>> cafe = CAFE(3, p=2.0, scaling="range", n_init=2, random_state=0)
    >>> display = AgreementDisplay.from_estimator(cafe.fit(load("iris").data))
    >>> display.names
    ['mean', 'fixed', 'uniform']
    """

    def __init__(self, agreement: "ArrayLike", names: Sequence[str], chosen: str | None = None):
        self.agreement = np.asarray(agreement, dtype=np.float64)
        self.names = [str(name) for name in names]
        self.chosen = chosen
        if self.agreement.shape != (len(self.names),) * 2:
            raise ValueError(
                f"AgreementDisplay needs a matrix of shape {(len(self.names),) * 2} for "
                f"{len(self.names)} names, got {self.agreement.shape}."
            )
        if chosen is not None and chosen not in self.names:
            raise ValueError(
                f"AgreementDisplay needs chosen to be one of {listed(self.names)}, "
                f"got {chosen!r}."
            )

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        annotate: bool | None = None,
        cmap: Any = "viridis",
        colorbar: bool = True,
        im_kw: dict | None = None,
    ) -> Self:
        """Draw the matrix.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None creates a figure.
        annotate : bool, default=None
            Write the indices into the cells; None does so if they fit.
        cmap : str or matplotlib Colormap, default="viridis"
            Colours of the indices.
        colorbar : bool, default=True
            Draw a colour bar.
        im_kw : dict, default=None
            Keyword arguments of :meth:`matplotlib.axes.Axes.imshow`.
        """
        columns = rows = self.names
        if len(rows) <= FEW:
            sums = self.agreement.sum(axis=1) - np.diag(self.agreement)
            rows = [f"{name} (sum {sum_:.2f})" for name, sum_ in zip(rows, sums, strict=True)]
        size = figure_size(rows, columns, LENGTH)
        self._open(ax, figsize=size)
        self.im_, self.text_, _ = draw_heat_map(
            self.ax_,
            pd.DataFrame(self.agreement, rows, columns),
            own_figure=ax is None,
            # Include negative indices (worse than chance) only if they occur.
            limits=(min(0.0, self.agreement.min()), 1.0),
            annotate=annotate,
            cmap=cmap,
            im_kw=im_kw,
            colorbar=colorbar,
            label="adjusted Rand index",
            length=LENGTH,
        )
        self.frame_ = None
        if self.chosen is not None:
            self._mark_chosen()
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Estimator,
        *,
        ax: "Axes | None" = None,
        **options: Any,
    ) -> Self:
        """Draw the agreement between the candidates of a fitted CAFE.

        The candidates of ``CAFE(selection="mixture")`` are starts of the mixture; the chosen
        one has the highest score.

        Parameters
        ----------
        estimator : CAFE or TabularCAFE
            A fitted estimator.
        ax : matplotlib Axes, default=None
            Axes to draw on, as in :meth:`plot`.
        **options : dict
            Other arguments of :meth:`plot`.

        """
        estimator = check_estimator(f"{cls.__name__}.from_estimator", estimator, (CAFE,))
        candidates = estimator.candidates_
        names = candidate_names(candidates)
        display = cls(estimator.agreement_, names, names[chosen_position(candidates)])
        return display.plot(ax, **options)

    def _mark_chosen(self):
        from matplotlib.patches import Rectangle

        row, n = self.names.index(self.chosen), len(self.names)
        self.frame_ = self.ax_.add_patch(
            Rectangle(
                (-0.5, row - 0.5),
                n,
                1,
                fill=False,
                edgecolor=COLORS[5],
                linewidth=3,
                # Around the first and last rows, half of the line is outside the axes.
                clip_on=False,
                zorder=3,
            )
        )
        self.ax_.set_title(f"chosen: {plain_text(self.chosen, LENGTH)}", fontsize="medium")
