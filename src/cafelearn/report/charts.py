"""Small line and dot charts: convert values to drawing coordinates for the template."""

from dataclasses import dataclass

import numpy as np

from cafelearn.report.page import number

# Size and margins of a chart, in drawing units.
WIDTH, HEIGHT = 250, 165
LEFT, RIGHT, TOP, BOTTOM = 60, 8, 12, 34
# Largest number of points that are drawn.
MOST_DOTS = 200


@dataclass(frozen=True)
class Dot:
    """A point in the drawing and its tooltip."""

    x: float
    y: float
    tip: str
    mark: str | None = None  # CSS class


@dataclass(frozen=True)
class Chart:
    """Dots, optionally joined by a line, with ticks in drawing units."""

    label: str
    x_label: str
    y_label: str
    dots: list
    x_ticks: list
    y_ticks: list
    joined: bool
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


def chart(x, y, tips, *, label, x_label, y_label, joined, marks=None) -> Chart:
    """Make a Chart of points with the coordinates `x` and `y`; `marks` are their CSS classes.

    Points that are not finite are left out. Of more than MOST_DOTS points, an evenly spaced
    selection is kept, including the first and the last.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    finite = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if len(finite) > MOST_DOTS:
        finite = finite[np.linspace(0, len(finite) - 1, MOST_DOTS).round().astype(int)]
    marks = [None] * len(tips) if marks is None else marks
    x, y, tips, marks = (
        x[finite],
        y[finite],
        [tips[i] for i in finite],
        [marks[i] for i in finite],
    )
    low_x, high_x = _span(x)
    low_y, high_y = _span(y)

    def across(value):
        return round(LEFT + (value - low_x) / (high_x - low_x) * (WIDTH - LEFT - RIGHT), 2)

    def down(value):
        return round(
            HEIGHT - BOTTOM - (value - low_y) / (high_y - low_y) * (HEIGHT - TOP - BOTTOM), 2
        )

    return Chart(
        label=label,
        x_label=x_label,
        y_label=y_label,
        dots=[
            Dot(across(a), down(b), tip, mark)
            for a, b, tip, mark in zip(x, y, tips, marks, strict=True)
        ],
        x_ticks=[(across(t), number(t, 4)) for t in ticks(low_x, high_x, 4, whole=True)],
        y_ticks=[(down(t), number(t, 4)) for t in ticks(low_y, high_y, 4)],
        joined=joined,
    )


def ticks(low, high, most, whole=False):
    """Return at most `most` + 1 round numbers from `low` to `high`, integers if `whole`."""
    step = 10.0 ** np.floor(np.log10((high - low) / most))
    for factor in (1, 2, 5, 10):
        if (high - low) / (step * factor) <= most:
            step *= factor
            break
    if whole:
        step = max(1.0, step)
    first = np.ceil(low / step - 1e-9)
    last = np.floor(high / step + 1e-9)
    # Formatting removes rounding errors, and adding 0 turns a negative zero into a zero.
    return [float(f"{i * step:.6g}") + 0.0 for i in np.arange(first, last + 1)]


def _span(values):
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    padding = (high - low) * 0.06
    # If all values are equal, they are in the middle of a span of arbitrary width.
    padding = padding or abs(high) * 0.1 or 1.0
    return low - padding, high + padding
