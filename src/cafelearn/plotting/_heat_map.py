"""Draw a labelled heat map of a few cells or of hundreds of columns."""

import math
from typing import NamedTuple

import numpy as np

from cafelearn.plotting._axes import LABEL_LENGTH, plain_text

FONT_SIZE = 9
# Width and height of a cell in inches: with space for a number (ROOMY), or with space only for
# one line of a label (NARROW).
ROOMY, NARROW = (0.58, 0.36), (0.21, 0.23)
FEW = 16  # largest number of rows or columns with roomy cells
LARGEST = 24.0  # usual limit for the width and height of a heat map, in inches
CHARACTER = 0.075  # width of a character in inches


class HeatMap(NamedTuple):
    """The matplotlib objects of a heat map."""

    image: object
    texts: np.ndarray  # (n_rows, n_columns); None without numbers in the cells
    colorbar: object  # None without a colour bar


def cell_size(shape):
    """Return the width and height of a cell in a new figure, in inches."""
    rows, columns = shape
    height, width = (
        roomy if n <= FEW else max(min(narrow, LARGEST / n), 0.01)
        for n, roomy, narrow in zip((rows, columns), ROOMY[::-1], NARROW[::-1], strict=True)
    )
    # Small maps get larger cells, so that the label of the colour bar fits.
    return max(width, 2.4 / columns), max(height, 1.6 / rows)


def figure_size(row_names, column_names, length=LABEL_LENGTH):
    """Return the size, in inches, of a figure with a heat map of these rows and columns."""
    width, height = cell_size((len(row_names), len(column_names)))
    left, below = (
        CHARACTER * max(len(plain_text(name, length)) for name in names)
        for names in (row_names, column_names)
    )
    return left + width * len(column_names) + 1.5, below + height * len(row_names) + 0.9


def contrast_colors(image, values):
    """Choose the colour of text on each value: black on light cells, white on dark cells."""
    rgba = image.cmap(image.norm(np.asarray(values)))
    # Transparent cells show the white background.
    rgb = rgba[..., :3] * rgba[..., 3:] + 1 - rgba[..., 3:]
    luminance = rgb @ (0.2126, 0.7152, 0.0722)
    return np.where(luminance > 0.45, "black", "white")


def draw_heat_map(
    ax,
    table,
    *,
    own_figure,
    limits=None,
    annotate=None,
    cmap="viridis",
    im_kw=None,
    colorbar=True,
    label="weight",
    length=LABEL_LENGTH,
):
    """Draw a data frame as a heat map with its names on both axes.

    The limits of the colours are by default 0, or the smallest value if that is negative, and
    the largest value.
    `own_figure` is True if the figure was made for this heat map, with cells of `cell_size`.
    If `annotate` is None, numbers are shown if the cells are few and large enough. The colour
    bar has the `label`. Names are shortened to `length` characters.
    """
    values = table.to_numpy(dtype=np.float64)
    low, high = (min(0.0, values.min()), values.max()) if limits is None else limits
    options = {"cmap": cmap, "vmin": low, "vmax": high} | (im_kw or {})
    if options.get("norm") is not None:
        options = {k: v for k, v in options.items() if k not in ("vmin", "vmax")}
    image = ax.imshow(values, **{"aspect": "auto", "interpolation": "nearest"} | options)
    cell = cell_size(values.shape) if own_figure else None
    bar = None
    if colorbar:
        size = np.multiply(cell or _measured_cell(ax, values.shape), values.shape[::-1])
        bar = ax.figure.colorbar(image, ax=ax, label=label, **_slim(*size))
    # Measure the cells again, because the colour bar has made the axes smaller.
    width, height = cell or _measured_cell(ax, values.shape)
    places, shown = _labels(table.columns, width, length)
    fits = CHARACTER * max(map(len, shown)) < 0.95 * width * _label_step(width)
    ax.set_xticks(places, shown, rotation=0 if fits else 90, fontsize=FONT_SIZE)
    ax.set_yticks(*_labels(table.index, height, length), fontsize=FONT_SIZE)
    if annotate is None:
        annotate = max(values.shape) <= FEW and width >= 0.35 and height >= 0.18
    texts = _write_values(ax, image, values) if annotate else None
    return HeatMap(image, texts, bar)


def _measured_cell(ax, shape):
    box = ax.get_window_extent()
    dpi = ax.figure.get_dpi()
    return box.width / dpi / shape[1], box.height / dpi / shape[0]


def _slim(width, height):
    """Return options that keep the width and padding of a colour bar nearly constant."""
    thickness = min(0.2, 0.1 * width)
    return {
        "fraction": min(0.15, 1.5 * thickness / width),
        "pad": min(0.05, 0.12 / width),
        "aspect": max(height / thickness, 3),
    }


def _label_step(size):
    """Return the smallest n for which the labels of every n-th cell of this size fit."""
    return max(1, math.ceil(FONT_SIZE * 1.25 / 72 / max(size, 1e-9)))


def _labels(names, size, length):
    """Return the places and the texts of the labels that fit beside cells of this size."""
    step = _label_step(size)
    places = np.arange(0, len(names), step)
    return places, [plain_text(name, length) for name in names[::step]]


def _write_values(ax, image, values):
    colors = contrast_colors(image, values)
    texts = np.empty(values.shape, dtype=object)
    for cell in np.ndindex(values.shape):
        texts[cell] = ax.text(
            cell[1],
            cell[0],
            f"{values[cell]:.2f}",
            ha="center",
            va="center",
            color=str(colors[cell]),
            fontsize=FONT_SIZE,
        )
    return texts
