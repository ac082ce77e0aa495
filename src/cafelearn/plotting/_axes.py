"""Axes, colours and escaped text for all displays."""

import numpy as np

from cafelearn.base.words import shortened

# The palette of Okabe and Ito, whose colours people with the common kinds of colour blindness
# can tell apart.
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
LABEL_LENGTH = 28  # longest label, in characters


def group_style(position):
    """Return the colour and marker of a group; groups of one colour have different markers."""
    turn, color = divmod(position, len(COLORS))
    return {"color": COLORS[color], "marker": MARKERS[turn % len(MARKERS)]}


def plain_text(name, length=LABEL_LENGTH):
    """Shorten a name to one line and escape it for matplotlib."""
    text = shortened(" ".join(str(name).split()), length)
    # matplotlib would parse text between two dollar signs as mathematics.
    return text.replace("$", r"\$")


def require_matplotlib(who):
    """Raise ImportError with the command to install matplotlib if it is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{who} needs the package matplotlib: pip install 'cafelearn[plot]'."
        ) from error


class Display:
    """The axes of a display."""

    def _open(self, ax, n_panels=1, **options):
        """Set the axes and the figure to draw on; the options are those of `panels`."""
        self.axes_ = panels(f"{type(self).__name__}.plot", ax, n_panels, **options)
        self.ax_ = self.axes_[0]
        self.figure_ = self.ax_.figure


def panels(who, ax, n_panels=1, n_columns=None, figsize=None, width_ratios=None):
    """Return an array of `n_panels` axes.

    If `ax` is None, the axes are in a new figure of the size `figsize`. If `ax` is one subplot
    and several axes are needed, the subplot is divided. Otherwise, the given axes are returned.
    pyplot is imported only for a new figure.
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
    """Replace a subplot by a grid of axes."""
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
    # Adding subplots changes the current axes of pyplot; make `ax` the current axes again.
    ax.figure.sca(ax)
    return parts
