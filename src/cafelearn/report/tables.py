"""Tables of a report, plain or as heat maps, as the templates expect them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cafelearn.report.page import count, number, short

# A larger heat map would make the file large and the page slow. With many clusters, at least
# FEWEST_FEATURES are kept.
MOST_CELLS = 40_000
FEWEST_FEATURES = 50
# Row names with more characters than this get a wide column.
LONG = 40


class Cell(NamedTuple):
    """One cell of a table."""

    text: str
    value: float | str | None = None  # sort key; None sorts by the text
    heat: int | None = None  # shade in percent
    extra: str | None = None  # text added to the tooltip
    mark: str | None = None  # CSS classes


class Column(NamedTuple):
    """One column of a table; with `choose`, a list above it filters the rows by its values."""

    name: str
    numeric: bool = True
    choose: bool = False


def texts(*names, choose=False) -> list[Column]:
    """Make columns of text."""
    return [Column(name, numeric=False, choose=choose) for name in names]


def numbers(*names) -> list[Column]:
    """Make columns of numbers."""
    return [Column(name) for name in names]


def clusters(n_clusters) -> list[Column]:
    """Make a column for each cluster."""
    return numbers(*(f"cluster {l}" for l in range(n_clusters)))


@dataclass(frozen=True)
class Table:
    """A table with a caption; the first cell of each row is the name of the row.

    `shown` is the number of rows to show at first, and `search` the label of a search box.

    A table with a `measure` is a heat map. The tooltip of a cell shows the names of its row and
    column, then the `measure` and the value, then the `extra` of the table and of the cell.
    """

    name: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    shown: int = 25
    search: str | None = None
    measure: str | None = None
    extra: str | None = None
    diverging: bool = False

    @property
    def limit(self):
        """Number of rows to show at first: `shown`, or all if only a few would be hidden."""
        return len(self.rows) if len(self.rows) <= 1.3 * self.shown else self.shown

    @property
    def has_long_names(self):
        """Whether a row name is so long that it would wrap over many lines."""
        return any(len(row[0].text) > LONG for row in self.rows)

    @property
    def selects(self):
        """Position, column and texts of each column that filters the rows by its texts."""
        found = [
            (i, column, list(dict.fromkeys(row[i].text for row in self.rows)))
            for i, column in enumerate(self.columns)
            if column.choose
        ]
        return [select for select in found if len(select[2]) > 1]


def text_cell(value, mark=None) -> Cell:
    """Make a cell with text."""
    return Cell(short(value), mark=mark)


def number_cell(value, digits=3, mark=None, text=None) -> Cell:
    """Make a cell with a number; the sort key has more digits than the text."""
    if value is None or np.isnan(value):
        return Cell("", mark=mark)
    # Six digits of the sort key keep the file small.
    return Cell(number(value, digits) if text is None else text, f"{value:.6g}", mark=mark)


def count_cell(value, mark=None) -> Cell:
    """Make a cell with an integer."""
    return Cell(count(value), int(value), mark=mark)


def heat_cell(value, share, text, extra=None, mark=None) -> Cell:
    """Make a cell of a heat map with the shade `share`.

    Shades range from 0 to 1, or from -1 to 1 in a diverging heat map.
    """
    cell = number_cell(value, mark=mark, text=text)
    if not cell.text:
        return cell
    return cell._replace(heat=round(100 * float(np.clip(share, -1, 1))), extra=extra)


def kept_features(weights):
    """Return the positions of the features to show, largest weights first, up to a limit."""
    most = max(FEWEST_FEATURES, MOST_CELLS // len(weights))
    return np.argsort(-weights.max(axis=0), kind="stable")[:most]
