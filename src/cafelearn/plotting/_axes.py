"""Axes, escaped text and colours for all displays."""

import numpy as np

from cafelearn._words import shortened

# The palette of Okabe and Ito, distinguishable with the common kinds of colour blindness.
COLORS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#F0E442",
    "#000000",
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LABEL_LENGTH = 28


def group_style(position):
    """Return colour and marker of a group; groups that share a colour differ in the marker."""
    turn, color = divmod(position, len(COLORS))
    return {"color": COLORS[color], "marker": MARKERS[turn % len(MARKERS)]}


def plain_text(name, length=LABEL_LENGTH):
    """Shorten a name to one line and escape it for matplotlib."""
    text = shortened(" ".join(str(name).split()), length)
    # matplotlib would parse text between two dollar signs as mathematics.
    return text.replace("$", r"\$")


def require_matplotlib(who):
    """Raise an error with the installation command if matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{who} needs the package matplotlib: pip install 'cafelearn[plot]'."
        ) from error


def panels(who, ax, n_panels=1, n_columns=None, figsize=None, width_ratios=None):
    """Return an array of `n_panels` axes: in a new figure, as given, or within a given axes.

    `figsize` is only used for a new figure. pyplot is not used if axes are given.
    """
    require_matplotlib(who)
    from matplotlib.axes import Axes

    n_columns = n_columns or n_panels
    n_rows = -(-n_panels // n_columns)
    if ax is None:
        from matplotlib import pyplot as plt

        _, grid = plt.subplots(
            n_rows,
            n_columns,
            figsize=figsize,
            width_ratios=width_ratios,
            squeeze=False,
            layout="constrained",
        )
        for surplus in grid.ravel()[n_panels:]:
            surplus.remove()
        return grid.ravel()[:n_panels]
    given = [ax] if isinstance(ax, Axes) else list(np.ravel(ax))
    if not all(isinstance(each, Axes) for each in given):
        raise TypeError(f"{who} needs ax to be matplotlib axes, got {ax!r}.")
    if len(given) == 1 and n_panels > 1:
        given = _divide(who, given[0], n_rows, n_columns, width_ratios, n_panels)
    if len(given) != n_panels:
        raise ValueError(f"{who} needs {n_panels} axes, got {len(given)}.")
    return np.array(given, dtype=object)


def _divide(who, ax, n_rows, n_columns, width_ratios, n_panels):
    """Replace an axes by a grid of axes."""
    place = ax.get_subplotspec()
    if place is None:
        raise ValueError(
            f"{who} needs {n_panels} axes, or a single subplot of a grid to divide; got axes "
            "outside a grid."
        )
    grid = place.subgridspec(n_rows, n_columns, width_ratios=width_ratios)
    ax.set_axis_off()
    parts = [
        ax.figure.add_subplot(grid[divmod(position, n_columns)]) for position in range(n_panels)
    ]
    # Adding axes changes the current axes of pyplot; restore them.
    ax.figure.sca(ax)
    return parts
