"""ObjectiveDisplay: the objective after each iteration, and bounds on its final value."""

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cafelearn.base.typing import Estimator
from cafelearn.data.variables import fitted_variables
from cafelearn.estimators.cafe import CAFE
from cafelearn.interpret.labels import family_positions
from cafelearn.kmeans.starts import uses_offset
from cafelearn.plotting._axes import COLORS, Display
from cafelearn.plotting._estimators import check_estimator
from cafelearn.theory import objective_bounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

MANY_ITERATIONS = 40  # longer paths are drawn without markers


class ObjectiveDisplay(Display):
    """The objective after each iteration, and the bounds on its last value.

    Usually created by :meth:`from_estimator`. Each exponent has its own panel, because
    objectives at different exponents have different units. Below, w are the weights, D the
    dispersions and c the dispersion offset.

    Parameters
    ----------
    paths : mapping of float to array-like
        For each exponent p, the objective after each iteration.
    bounds : mapping of float to (float, float), default=None
        For some exponents, the lower and upper bounds on the last value.
    chosen : float, default=None
        The exponent to mark.
    stop_reasons : mapping of float to str, default=None
        For some exponents, the reason why the descent stopped; reasons other than "converged"
        are shown.
    dispersion_offset : {"mean", "fixed"} or float, default=0.0
        The offset of the models. With "fixed" or a positive number, the objectives are sums of
        ``w**p * (D + c)``; with "mean" or 0, they are sums of ``w**p * D``.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One panel for each exponent.
    ax_ : matplotlib Axes
        The first panel.
    figure_ : matplotlib Figure
        Figure of the axes.
    lines_ : list of matplotlib Line2D
        The path of the objective in each panel.
    bounds_ : list of matplotlib patch or None
        The range between the bounds in each panel; None for panels without bounds.

    Notes
    -----
    Theorem 2 of the paper bounds the objective of given dispersions (see
    :func:`~cafelearn.theory.objective_bounds`). The bounds drawn are those of the final
    dispersions; earlier values of the objective may lie above them. The theorem assumes weights
    that are optimal for the dispersions. Weights with an offset c are optimal for D + c, so the
    theorem is applied to D + c:

    - With "fixed" or a number, the objectives include c, and the bounds are those of D + c.
    - With "mean", the objectives do not include c. The upper bound is that of D + c minus the
      contribution of the offset, ``c * sum(w**p)``. The lower bound is that of D, which holds
      for any weights.

    No bounds are drawn if the descent stopped before it converged or if `tol` is above 0,
    because the weights are then not optimal for the last dispersions. For uniform weights,
    no bounds are drawn either, because the theorem does not apply.

    Examples
    --------
    >>> from cafelearn import CAFE
    >>> from cafelearn.datasets import load
    >>> from cafelearn.plotting import ObjectiveDisplay
    >>> cafe = CAFE(3, weighting="cluster", n_init=2, random_state=0)
    >>> cafe = cafe.fit(load("iris").data)
    >>> display = ObjectiveDisplay.from_estimator(cafe)
    >>> lower, upper = display.bounds[cafe.p_]
    >>> bool(lower <= cafe.model_.objective_path_[-1] <= upper)
    True
    """

    def __init__(
        self,
        paths: "Mapping[float, ArrayLike]",
        bounds: Mapping[float, tuple[float, float]] | None = None,
        *,
        chosen: float | None = None,
        stop_reasons: Mapping[float, str] | None = None,
        dispersion_offset: str | float = 0.0,
    ):
        if not isinstance(paths, Mapping) or not paths:
            raise ValueError(
                "ObjectiveDisplay needs paths as a mapping of at least one exponent to the "
                f"values of the objective, got {paths!r}."
            )
        self.paths = {p: np.asarray(path, dtype=np.float64) for p, path in paths.items()}
        self.bounds = dict(bounds or {})
        self.stop_reasons = dict(stop_reasons or {})
        self.chosen = chosen
        self.dispersion_offset = dispersion_offset
        named: dict[str, Iterable[float]] = {
            "bounds": self.bounds,
            "stop_reasons": self.stop_reasons,
            "chosen": () if chosen is None else (chosen,),
        }
        for name, given in named.items():
            for p in given:
                if p not in self.paths:
                    raise ValueError(
                        f"ObjectiveDisplay needs {name} for exponents that have a path "
                        f"({', '.join(f'{q:g}' for q in self.paths)}), got {p!r}."
                    )

    def plot(self, ax: "Axes | ArrayLike | None" = None, *, bounds: bool = True) -> Self:
        """Draw one panel for each exponent.

        Parameters
        ----------
        ax : matplotlib Axes or array of them, default=None
            Axes to draw on: one for each exponent, or a single subplot, which is divided. None
            creates a figure.
        bounds : bool, default=True
            Draw the bounds. Small changes of the objective are easier to see without them.
        """
        n = len(self.paths)
        n_columns = math.ceil(math.sqrt(n))
        size = (1.2 + 3.6 * n_columns, 0.6 + 2.6 * math.ceil(n / n_columns))
        self._open(ax, n, n_columns=n_columns, figsize=size)
        self.lines_: list = []
        self.bounds_: list = []
        for panel, p in zip(self.axes_, self.paths, strict=True):
            self._draw_panel(panel, p, self.bounds.get(p) if bounds else None)
        for panel in self.axes_[::n_columns]:
            panel.set_ylabel(f"objective, {self._formula()}")
        for panel in self.axes_[-n_columns:]:
            panel.set_xlabel("iteration")
        bounded = [
            panel
            for panel, found in zip(self.axes_, self.bounds_, strict=True)
            if found is not None
        ]
        if bounded:
            bounded[0].legend(fontsize="small")
        return self

    @classmethod
    def from_estimator(
        cls, estimator: Estimator, *, ax: "Axes | ArrayLike | None" = None, **options: Any
    ) -> Self:
        """Draw the objective of a fitted estimator.

        Parameters
        ----------
        estimator : MinkowskiWeightedKMeans, CAFE or TabularCAFE
            A fitted estimator. For CAFE, the chosen candidate (for a mixture, the best of its
            starts) and those that differ from it only in the exponent are drawn.
        ax : matplotlib Axes or array of them, default=None
            Axes to draw on, as in :meth:`plot`.
        **options : dict
            Other arguments of :meth:`plot`.

        """
        estimator = check_estimator(f"{cls.__name__}.from_estimator", estimator)
        chosen, family = estimator, [estimator]
        if isinstance(estimator, CAFE):
            chosen = estimator.model_
            family = [estimator.models_[i] for i in family_positions(estimator.candidates_)]
        models = {float(model.p): model for model in family}
        limits = {p: _final_bounds(model) for p, model in models.items()}
        display = cls(
            {p: model.objective_path_ for p, model in models.items()},
            {p: pair for p, pair in limits.items() if pair is not None},
            chosen=float(chosen.p) if len(models) > 1 else None,
            stop_reasons={p: model.stop_reason_ for p, model in models.items()},
            dispersion_offset=chosen.dispersion_offset if uses_offset(chosen) else 0.0,
        )
        return display.plot(ax, **options)

    def _draw_panel(self, ax, p, limits):
        from matplotlib.ticker import MaxNLocator

        path = self.paths[p]
        iterations = np.arange(1, len(path) + 1)
        few = len(path) <= MANY_ITERATIONS
        (line,) = ax.plot(
            iterations, path, color=COLORS[0], marker="o" if few else None, markersize=4
        )
        self.lines_.append(line)
        band = None
        if limits is not None:
            band = ax.axhspan(
                *limits,
                facecolor=COLORS[1],
                edgecolor="none",
                alpha=0.25,
                zorder=0,
                label="bounds at the end",
            )
        self.bounds_.append(band)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        title = f"p = {p:g}" + (" (chosen)" if p == self.chosen else "")
        reason = self.stop_reasons.get(p, "converged")
        if reason != "converged":
            title += f", stopped by {reason}"
        weight = "bold" if p == self.chosen else "normal"
        ax.set_title(title, fontsize="medium", fontweight=weight)

    def _formula(self):
        moving = isinstance(self.dispersion_offset, str) and self.dispersion_offset == "mean"
        constant = not moving and self.dispersion_offset != 0
        return r"$\sum w^p (D + c)$" if constant else r"$\sum w^p D$"


def _final_bounds(model):
    """Compute the bounds on the last value of ``objective_path_``, or return None.

    The notes of ObjectiveDisplay describe the bounds and the cases without bounds.
    """
    if model.stop_reason_ != "converged" or model.tol > 0 or model.weighting != "cluster":
        return None
    weights, D = (values.astype(np.float64) for values in fitted_variables(model))
    p = float(model.p)
    share = float((weights**p).sum())
    if isinstance(model.dispersion_offset, str) and model.dispersion_offset == "mean":
        offset = D.mean()
        bounds = objective_bounds(D, p)[0], objective_bounds(D + offset, p)[1] - offset * share
    else:
        offset = model.dispersion_offset
        if isinstance(offset, str):
            # Recover the constant of "fixed" from its contribution, which the path includes and
            # the inertia does not.
            offset = max(0.0, (model.objective_path_[-1] - model.inertia_) / share)
        bounds = objective_bounds(D + offset, p)
    return bounds if np.isfinite(bounds).all() else None
