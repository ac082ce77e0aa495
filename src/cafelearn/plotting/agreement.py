"""AgreementDisplay: how far the clusterings of several exponents agree."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from cafelearn.cafe import CAFE
from cafelearn.plotting._axes import COLORS, panels
from cafelearn.plotting._estimators import check_estimator
from cafelearn.plotting._heat_map import draw_heat_map, figure_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


class AgreementDisplay:
    """Adjusted Rand index between the clusterings of each pair of exponents.

    Most often made by :meth:`from_estimator`.

    Parameters
    ----------
    agreement : array-like of shape (n_exponents, n_exponents)
        Adjusted Rand indices.
    exponents : sequence of float
        The exponents p, in the order of the rows.
    chosen : float, default=None
        The exponent to mark.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the heat map. The labels of its rows carry the sum of the indices with
        the other exponents, by which CAFE chooses.
    figure_ : matplotlib Figure
        Figure of the axes.
    im_ : matplotlib AxesImage
        The heat map.
    text_ : ndarray of shape (n_exponents, n_exponents) of matplotlib Text, or None
        The numbers in the cells.
    frame_ : matplotlib Rectangle or None
        The frame about the row of the chosen exponent.

    Examples
    --------
    >>> from cafelearn.plotting import AgreementDisplay
    >>> matrix = [[1.0, 0.8], [0.8, 1.0]]
    >>> display = AgreementDisplay(matrix, [1.5, 2.0], chosen=2.0).plot()
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['1.5 (sum 0.80)', '2 (sum 0.80)']
    """

    def __init__(
        self, agreement: "ArrayLike", exponents: Sequence[float], chosen: float | None = None
    ):
        self.agreement = np.asarray(agreement, dtype=np.float64)
        self.exponents = [float(p) for p in exponents]
        self.chosen = chosen
        if self.agreement.shape != (len(self.exponents),) * 2:
            raise ValueError(
                f"AgreementDisplay needs a matrix of shape {(len(self.exponents),) * 2} for "
                f"{len(self.exponents)} exponents, got {self.agreement.shape}."
            )
        if chosen is not None and chosen not in self.exponents:
            raise ValueError(
                f"AgreementDisplay needs chosen to be one of {self.exponents}, got {chosen!r}."
            )

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        annotate: bool | None = None,
        cmap="viridis",
        colorbar: bool = True,
        im_kw: dict | None = None,
    ) -> Self:
        """Draw the matrix.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes a figure.
        annotate : bool, default=None
            Write the indices into the cells; None does so when there is room.
        cmap : str or matplotlib Colormap, default="viridis"
            Colours of the indices.
        colorbar : bool, default=True
            Draw a colour bar.
        im_kw : dict, default=None
            More options of :meth:`matplotlib.axes.Axes.imshow`.

        Returns
        -------
        display : AgreementDisplay
            This object.
        """
        sums = self.agreement.sum(axis=1) - np.diag(self.agreement)
        columns = [f"{p:g}" for p in self.exponents]
        rows = [f"{p} (sum {total:.2f})" for p, total in zip(columns, sums, strict=True)]
        (self.ax_,) = panels("AgreementDisplay.plot", ax, figsize=figure_size(rows, columns))
        self.figure_ = self.ax_.figure
        self.im_, self.text_, _ = draw_heat_map(
            self.ax_,
            self.agreement,
            rows,
            columns,
            own_figure=ax is None,
            # Below 0 is worse than chance; the colours say so only if it happens.
            limits=(min(0.0, self.agreement.min()), 1.0),
            annotate=annotate,
            cmap=cmap,
            im_kw=im_kw,
            colorbar_label="adjusted Rand index" if colorbar else None,
        )
        self.ax_.set(xlabel="exponent p", ylabel="exponent p")
        self.frame_ = None
        if self.chosen is not None:
            self._mark_chosen(columns)
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator,
        *,
        annotate: bool | None = None,
        cmap="viridis",
        colorbar: bool = True,
        im_kw: dict | None = None,
        ax: "Axes | None" = None,
    ) -> Self:
        """Draw the agreement between the exponents of a fitted CAFE.

        Parameters
        ----------
        estimator : CAFE
            A fitted CAFE.
        annotate : bool, default=None
            Write the indices into the cells; None does so when there is room.
        cmap : str or matplotlib Colormap, default="viridis"
            Colours of the indices.
        colorbar : bool, default=True
            Draw a colour bar.
        im_kw : dict, default=None
            More options of :meth:`matplotlib.axes.Axes.imshow`.
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes a figure.

        Returns
        -------
        display : AgreementDisplay
            The display, drawn, with the chosen exponent marked.

        Examples
        --------
        >>> from cafelearn import CAFE
        >>> from cafelearn.datasets import load
        >>> from cafelearn.plotting import AgreementDisplay
        >>> cafe = CAFE(3, n_init=2, random_state=0).fit(load("iris").data)
        >>> display = AgreementDisplay.from_estimator(cafe)
        >>> display.chosen == cafe.p_
        True
        """
        check_estimator(f"{cls.__name__}.from_estimator", estimator, (CAFE,))
        display = cls(estimator.agreement_, list(estimator.models_), estimator.p_)
        return display.plot(ax, annotate=annotate, cmap=cmap, colorbar=colorbar, im_kw=im_kw)

    def _mark_chosen(self, columns):
        from matplotlib.patches import Rectangle

        row, n = self.exponents.index(self.chosen), len(self.exponents)
        self.frame_ = self.ax_.add_patch(
            Rectangle(
                (-0.5, row - 0.5),
                n,
                1,
                fill=False,
                edgecolor=COLORS[5],
                linewidth=3,
                # Half of the line of an outer row lies outside of the axes.
                clip_on=False,
                zorder=3,
            )
        )
        self.ax_.set_title(f"chosen: p = {columns[row]}", fontsize="medium")
