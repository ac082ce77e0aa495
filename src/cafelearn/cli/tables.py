"""Tables for the terminal, in which names that others have chosen do no harm."""

from cafelearn.cli.session import clean

BAR = 7
SHADES = " ░▒▓█"
SHADE = 4


def make_table(*columns):
    """A rich table; a column whose name begins with ">" is flushed right.

    The one without a name is for bars, and is never broken.
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
    """Text for a cell, in which brackets are brackets."""
    from rich.text import Text

    return Text(clean(text))


def stacked(lines):
    """A cell of several lines, each without line breaks of its own."""
    from rich.text import Text

    return Text("\n").join(map(plain, lines))


def short(name, length=40):
    """A name that leaves room for others."""
    name = str(name)
    return name if len(name) <= length else f"{name[: length - 3]}..."


def bar(share):
    """A bar for a number between -1 and 1, to the left or the right of the middle."""
    width = round(abs(share) * BAR)
    left = ("#" * width if share < 0 else "").rjust(BAR)
    return f"{left}|{'#' * width if share > 0 else ''}"


def shade(share):
    """Blocks that are the darker, the nearer a number between 0 and 1 is to 1."""
    return SHADES[min(int(share * len(SHADES)), len(SHADES) - 1)] * SHADE
