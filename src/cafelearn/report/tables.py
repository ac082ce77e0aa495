"""Tables of a report, plain or as heat maps, in the form that the templates render."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cafelearn.report.page import count, number, short

# A larger heat map would make the file large and the page slow.
MOST_CELLS = 40_000
FEWEST_FEATURES = 50
LONG = 40  # characters of a name


class Cell(NamedTuple):
    """One cell: text, sort key, shade in percent, extra text of the tooltip, CSS classes."""

    text: str
    value: float | str | None = None
    heat: int | None = None
    extra: str | None = None
    mark: str | None = None


@dataclass(frozen=True)
class Column:
    """One column.

    Above the table, a column with `choose` has a list of its values to select from, and a
    column with `hideable` has a checkbox.
    """

    name: str
    numeric: bool = True
    choose: bool = False
    hideable: bool = False


@dataclass(frozen=True)
class Table:
    """A table with a caption; the first cell of each row is its name.

    A table with a `measure` is a heat map. Its tooltips show `measure` and the value, then the
    `extra` of the table, if given, and the `extra` of the cell.
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
        """Number of rows to show at first; all rows if only a few would be hidden."""
        return len(self.rows) if len(self.rows) <= 1.3 * self.shown else self.shown

    def choices(self, index):
        """Return the distinct texts of a column, in the order of their first appearance."""
        return list(dict.fromkeys(row[index].text for row in self.rows))

    @property
    def has_long_names(self):
        """Whether a row name is so long that it would wrap over many lines."""
        return any(len(row[0].text) > LONG for row in self.rows)

    @property
    def boxes(self):
        """Columns that can be hidden."""
        return [(i, column) for i, column in enumerate(self.columns) if column.hideable]

    @property
    def selects(self):
        """Columns with `choose` that have more than one value."""
        found = [(i, column) for i, column in enumerate(self.columns) if column.choose]
        return [(i, column) for i, column in found if len(self.choices(i)) > 1]


def text_cell(value, mark=None) -> Cell:
    """Make a cell of text."""
    return Cell(short(value), mark=mark)


def number_cell(value, digits=3, mark=None) -> Cell:
    """Make a cell of a number; its sort key has more digits than are shown."""
    if value is None or np.isnan(value):
        return Cell("", mark=mark)
    return Cell(number(value, digits), _sort_key(value), mark=mark)


def count_cell(value, mark=None) -> Cell:
    """Make a cell of an integer."""
    return Cell(count(value), int(value), mark=mark)


def heat_cell(value, share, text=None, extra=None, mark=None) -> Cell:
    """Make a cell of a heat map; its shade `share` is in [0, 1], or [-1, 1] if diverging."""
    if value is None or np.isnan(value):
        return Cell("", mark=mark)
    shade = round(100 * float(np.clip(share, -1, 1)))
    text = number(value) if text is None else text
    return Cell(text, _sort_key(value), shade, extra, mark)


def _sort_key(value):
    """Round to six significant digits, to keep the file small."""
    return f"{value:.6g}"


def kept_features(weights):
    """Return the features to show, largest weights first; leave out the rest if too many."""
    most = max(FEWEST_FEATURES, MOST_CELLS // len(weights))
    order = np.argsort(-weights.max(axis=0), kind="stable")
    return order[:most]
