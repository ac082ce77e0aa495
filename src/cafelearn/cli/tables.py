"""Tables for the terminal; names from the data are escaped."""

from cafelearn.cli.session import clean

BAR = 7  # longest bar, in characters
SHADES = " ░▒▓█"
SHADE = 4  # characters of a shaded block


def make_table(*columns):
    """Make a rich table; columns whose names begin with ">" are right-aligned.

    A column without a name is for bars and is not wrapped.
    """
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        right = column.startswith(">")
        table.add_column(
            plain(column.removeprefix(">")),
            justify="right" if right else "left",
            overflow="fold",
            no_wrap=not column,
        )
    return table


def plain(text):
    """Make the text of a cell, in which markup has no effect."""
    from rich.text import Text

    return Text(clean(text))


def stacked(lines):
    """Make a cell of several lines, each without line breaks."""
    from rich.text import Text

    return Text("\n").join(map(plain, lines))


def short(name, length=40):
    """Shorten a name."""
    name = str(name)
    return name if len(name) <= length else f"{name[: length - 3]}..."


def bar(share):
    """Draw a number between -1 and 1 as a bar to the left or right of the middle."""
    width = round(abs(share) * BAR)
    left = ("#" * width if share < 0 else "").rjust(BAR)
    return f"{left}|{'#' * width if share > 0 else ''}"


def shade(share):
    """Draw a number between 0 and 1 as a block that is fuller for larger numbers."""
    return SHADES[min(int(share * len(SHADES)), len(SHADES) - 1)] * SHADE
