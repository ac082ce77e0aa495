"""Draw the paper's Figures 1 and 2 from the results of a theory study."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from cafelearn.files.atomic import atomic_path
from reproduction.theory.fits import N_FEATURES, WEIGHTS

# Different markers, so that the exponents can be told apart without colour.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    # A fixed salt makes the SVG files of equal studies identical.
    "svg.hashsalt": "cafelearn",
    "svg.fonttype": "path",
}


def draw_figures(study, directory, formats=("png", "svg")):
    """Draw Figures 1 and 2 of the paper, write them to files and return the paths.

    Figure 1 shows the feature weights at each exponent, sorted within each cluster. Figure 2
    shows the position of each fit's objective between the bounds of Theorem 2.
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    drawings = {"figure-1-weights": _draw_weights, "figure-2-objective": _draw_objectives}
    paths = []
    with mpl.rc_context({**mpl.rcParamsDefault, **STYLE}):
        for name, draw in drawings.items():
            figure = Figure(figsize=(6.4, 4.2), layout="constrained")
            draw(figure.subplots(), study)
            for kind in formats:
                paths.append(_save(figure, directory / f"{name}.{kind}", kind))
    return paths


def _draw_weights(axes, study):
    """Draw Figure 1: the mean of the sorted weights, and their 5% and 95% quantiles."""
    exponents = study.fits["p"].unique()
    ranks = np.arange(1, N_FEATURES + 1)
    for p, shade, marker in _looks(exponents):
        weights = study.fits.loc[study.fits["p"] == p, list(WEIGHTS)].to_numpy()
        low, high = np.quantile(weights, [0.05, 0.95], axis=0)
        axes.fill_between(ranks, low, high, color=shade, alpha=0.18, linewidth=0)
        axes.plot(ranks, weights.mean(axis=0), color=shade, marker=marker, label=f"$p = {p:g}$")
    axes.axhline(1 / N_FEATURES, color="0.35", linewidth=0.9, linestyle=(0, (4, 3)))
    axes.annotate(
        f"uniform, 1/{N_FEATURES}",
        (N_FEATURES, 1 / N_FEATURES),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right",
        color="0.35",
    )
    axes.set_xticks(ranks)
    axes.set(
        xlabel="Feature, by weight within its cluster",
        ylabel="Feature weight",
        ylim=(-0.02, 1.04),
        title=_title("Sorted feature weights", "mean, and 5% to 95% of fits", study),
    )
    axes.legend(frameon=False)


def _draw_objectives(axes, study):
    """Draw Figure 2: a marker for each fit, a bar at the mean, and the bounds."""
    exponents = study.fits["p"].unique()
    axes.axhspan(0, 1, color="0.93", zorder=0)
    for bound in (0, 1):
        axes.axhline(bound, color="0.55", linewidth=0.9, zorder=1)
    # A fixed seed, so that the horizontal jitter is the same in each drawing.
    generator = np.random.default_rng(0)
    for place, (p, shade, marker) in enumerate(_looks(exponents)):
        values = study.fits.loc[study.fits["p"] == p, "normalized_objective"].to_numpy()
        aside = place + generator.uniform(-0.24, 0.24, size=len(values))
        axes.scatter(
            aside, values, s=15, color=shade, marker=marker, alpha=0.55, linewidth=0, zorder=2
        )
        mean = values.mean()
        axes.hlines(mean, place - 0.32, place + 0.32, color="black", linewidth=2, zorder=3)
        axes.annotate(
            f"{mean:.2f}",
            (place + 0.32, mean),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontweight="bold",
        )
    low, high = study.fits["normalized_objective"].agg(["min", "max"])
    axes.set_xticks(range(len(exponents)), [f"{p:g}" for p in exponents])
    axes.set(
        xlabel="Minkowski exponent $p$",
        ylabel="Normalised objective",
        xlim=(-0.5, len(exponents) - 0.35),
        ylim=(min(-0.06, low - 0.06), max(1.06, high + 0.06)),
        title=_title("Objective between its bounds", "each fit, and the mean", study),
    )
    _name_bounds(axes)


def _name_bounds(axes):
    """Label the bounds where there are few markers: at the top left and the bottom right."""
    for text, place, shift, across, up in (
        ("upper bound", (0.01, 1), -3, "left", "top"),
        ("lower bound", (0.99, 0), 3, "right", "bottom"),
    ):
        axes.annotate(
            text,
            place,
            xycoords=axes.get_yaxis_transform(),
            xytext=(0, shift),
            textcoords="offset points",
            ha=across,
            va=up,
            color="0.35",
        )


def _title(what, how, study):
    offset = study.dispersion_offset
    note = "" if not isinstance(offset, str) and offset == 0 else f"; offset {offset}"
    return f"{what} ({how}{note})"


def _looks(exponents):
    """Yield each exponent with its colour and its marker; colours differ in lightness."""
    shades = mpl.colormaps["viridis"](np.linspace(0.0, 0.82, len(exponents)))
    for i, p in enumerate(exponents):
        yield p, shades[i], MARKERS[i % len(MARKERS)]


def _save(figure, path, kind):
    # Without the date, equal figures give identical files.
    dated = {"svg": "Date", "pdf": "CreationDate"}.get(kind)
    with atomic_path(path, force=True) as unfinished:
        figure.savefig(
            unfinished, format=kind, dpi=200, metadata={dated: None} if dated else None
        )
    return path
