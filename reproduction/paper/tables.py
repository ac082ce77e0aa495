"""Render the paper's Tables 1 and 2 from results, together with the published numbers.

The layout is that of the paper: one table per noise level, one row per data set and noise
scale, one column per method. Methods that are not in the paper have separate tables.
"""

import html
import re
from collections import Counter
from typing import NamedTuple

import numpy as np
import pandas as pd

from reproduction.markdown import escape, markdown_table
from reproduction.paper.compare import PAIRS
from reproduction.paper.plan import METHODS
from reproduction.paper.published import (
    CELL,
    CONFIGURATION,
    PUBLISHED_VERSIONS,
    against_published,
    cell_means,
    check_results,
    name_group,
    paper_methods,
    published,
)

DATASET_LABELS = {
    "australian_credit": "AustraCC",
    "balance_scale": "Balance",
    "breast_cancer": "Breast Cancer",
    "car_evaluation": "CarEvaluation",
    "ecoli": "Ecoli",
    "glass": "Glass",
    "ionosphere": "Ionosphere",
    "iris": "Iris",
    "teaching_assistant": "Teaching Assistant",
}
METHOD_LABELS = {
    "autoencoder": "Auto",
    "kmeans": "k-means",
    "mwk-means": "mwk-means",
    "cafe-centroid+pca": "CAFE-centroid+PCA",
}
# Methods of the paper that are repeated in the tables of other methods, for reference.
REFERENCES = ("pca", "cafe+pca")
TITLE = "Mean ARI ± standard deviation over noisy versions"
FAR = 2  # larger absolute values of z are marked
MISSING = "-"
SIGMA = "\N{GREEK SMALL LETTER SIGMA}"  # the scale of the noise


class _Table(NamedTuple):
    title: str
    methods: list[str]
    rows: list[tuple]  # data set, scale, cells in the order of the methods (None: no ARI)
    beside: bool  # whether cells also show the published mean and z
    versions: int  # most frequent number of versions of a cell
    failed: int  # number of failed runs


def render(results: pd.DataFrame, format: str = "text") -> str:
    """Render the paper's tables from results.

    Each mean is shown with the published mean and with z, the difference from it in standard
    errors; see `against_published`. The formats are:

    - "text": plain text. The best of a CAFE/baseline pair is marked with ``*`` and the best of
      a row with ``_``. The next two formats use bold and underlining instead.
    - "md": GitHub's Markdown.
    - "html": a fragment. Cells have the attribute `data-sort`, for sorting, and the class `far`
      if z is beyond ±2.
    - "csv": one line per cell, with all digits.
    """
    _check_format("render", format)
    results = check_results(results, "render", need_done=True)
    ours = cell_means(results).rename(columns={"mean_ari": "mean", "std_ari": "std"})
    beside = against_published(results)[[*CELL, "published", "published_std", "z"]]
    cells = ours.merge(beside, on=CELL, how="left")
    return RENDERERS[format](_all_tables(cells, beside=True))


def render_published(format: str = "text") -> str:
    """Render the published tables."""
    _check_format("render_published", format)
    cells = published().rename(columns={"mean_ari": "mean", "std_ari": "std"})
    cells = cells.assign(n=PUBLISHED_VERSIONS, failed=0, mean_nmi=np.nan, mean_seconds=np.nan)
    cells = cells.assign(published=np.nan, published_std=np.nan, z=np.nan)
    return RENDERERS[format](_all_tables(cells, beside=False))


def mark(cells: pd.DataFrame) -> pd.DataFrame:
    """Mark the best of each CAFE/baseline pair (`bold`) and of each row (`underline`).

    As in the paper, means are compared as printed, with three decimals. If the best means are
    equal, all of them are marked. A pair of which only one method was run is not marked.
    """
    cells = cells.copy()
    printed = cells["mean"].map(_mean).astype(float)
    row = [cells[name] for name in CONFIGURATION]
    pair = cells["method"].str.removeprefix("cafe+")
    in_pair = printed.groupby([*row, pair])
    complete = (in_pair.transform("size") == 2) & pair.isin(list(PAIRS))
    cells["bold"] = complete & (printed == in_pair.transform("max"))
    cells["underline"] = printed == printed.groupby(row).transform("max")
    return cells


def _check_format(caller, format):
    if format not in RENDERERS:
        formats = ", ".join(RENDERERS)
        raise ValueError(f"{caller} needs a format among {formats}, got {format!r}.")


def _all_tables(cells, beside):
    """Make a table per noise level for the paper's methods, then the same for the others."""
    run = list(cells["method"].unique())
    order = [*METHODS, *sorted(set(run) - set(METHODS))]
    ours = [method for method in order if method in run]
    in_paper = [method for method in ours if method in paper_methods()]
    beyond = [method for method in ours if method not in paper_methods()]
    references = [method for method in REFERENCES if method in run]
    tables = []
    for methods, name, shown in (
        (in_paper, "", beside),
        ([*references, *beyond] if beyond else [], ", methods beyond the paper", False),
    ):
        some = cells[cells["method"].isin(methods)]
        for level, at_level in some.groupby("noise_level"):
            title = f"{TITLE} at noise level {100 * level:g}%"
            tables.append(_table(title + name, methods, at_level, shown))
    return tables


def _table(title, methods, cells, beside):
    failed, cells = int(cells["failed"].sum()), mark(cells[cells["n"] > 0])
    known = {(cell.dataset, cell.noise_scale, cell.method): cell for cell in cells.itertuples()}
    labels = [*DATASET_LABELS, *sorted(set(cells["dataset"]) - set(DATASET_LABELS))]
    places = sorted(
        {(dataset, scale) for dataset, scale, _ in known},
        key=lambda place: (labels.index(place[0]), place[1]),
    )
    rows = [(*place, [known.get((*place, method)) for method in methods]) for place in places]
    versions = Counter(cells["n"]).most_common(1)[0][0] if len(cells) else 0
    return _Table(title, methods, rows, beside, int(versions), failed)


def label(name: str) -> str:
    """Return the label of a data set or a method; unknown names are returned unchanged."""
    if name in DATASET_LABELS:
        return DATASET_LABELS[name]
    paper = name.upper() if name in paper_methods() else name
    return METHOD_LABELS.get(name, paper)


def _mean(value):
    """Format a mean with three decimals, as in the paper; avoid a negative zero."""
    return re.sub(r"^-(0\.0+)$", r"\1", f"{value:.3f}")


def _notes(tables, best_of_pair, best_of_row, where, far):
    notes = [
        f"{best_of_pair}: best of a CAFE/baseline pair. {best_of_row}: best of the row. Both "
        "compare the means as printed."
    ]
    if any(table.beside for table in tables):
        notes.append(
            f"{where} each mean: the mean in the paper, and z, the difference from it in "
            f"standard errors; {far} where z is beyond ±{FAR}."
        )
    return notes + [_note_versions(table) for table in tables]


def _note_versions(table):
    level = table.title.removeprefix(f"{TITLE} at ").capitalize()
    cells = [cell for _, _, cells in table.rows for cell in cells if cell is not None]
    note = f"{level}: {table.versions} version{'' if table.versions == 1 else 's'} per cell"
    if any(_versions(table, cell) for cell in cells):
        note += ", unless n is shown"
    if table.failed:
        note += f"; failed runs, left out: {table.failed}"
    return f"{note}."


def _versions(table, cell):
    return f"n={cell.n}" if cell.n != table.versions else ""


def _std(cell):
    """Format a standard deviation with two decimals, as in the paper; empty if missing."""
    return "" if np.isnan(cell.std) else f"{cell.std:.2f}"


def _z(cell, far):
    # Adding zero turns a rounded -0.0 into 0.0.
    return "" if np.isnan(cell.z) else f"{round(cell.z, 1) + 0.0:+}{far * _is_far(cell)}"


def _is_far(cell):
    return bool(abs(cell.z) > FAR)


def _text(tables):
    parts = [_text_table(table) for table in tables]
    return "\n\n".join([*parts, "\n".join(_notes(tables, "*", "_", "Below", "!"))]) + "\n"


def _text_table(table):
    grid = [["Data set", SIGMA, *([""] if table.beside else [])]]
    grid[0] += [f"  {label(method)}" for method in table.methods]
    previous = None
    for dataset, scale, cells in table.rows:
        start = [label(dataset) if dataset != previous else "", name_group(scale)]
        previous = dataset
        line = [_text_cell(table, cell) for cell in cells]
        grid.append([*start, *(["ours"] if table.beside else []), *line])
        if table.beside:
            grid.append(["", "", "paper", *(_text_published(cell) for cell in cells)])
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in grid
    ]
    rule = "-" * max(map(len, lines))
    return "\n".join([table.title, rule, lines[0], rule, *lines[1:], rule])


def _text_cell(table, cell):
    if cell is None:
        return f"  {MISSING:>6}"
    marks = ("_" if cell.underline else " ") + ("*" if cell.bold else " ")
    std = f" ±{_std(cell)}" if _std(cell) else ""
    return f"{marks}{_mean(cell.mean):>6}{std} {_versions(table, cell)}".rstrip()


def _text_published(cell):
    if cell is None or np.isnan(cell.published):
        return ""
    return f"{_mean(cell.published):>8} {_z(cell, '!')}".rstrip()


def _markdown(tables):
    notes = _notes(tables, "Bold", "Underlined", "After", "!")
    return "\n\n".join([*map(_markdown_table, tables), *notes]) + "\n"


def _markdown_table(table):
    names = ["Data set", SIGMA, *(label(method) for method in table.methods)]
    rows = [
        [
            escape(label(dataset)),
            name_group(scale),
            *(_markdown_cell(table, cell) for cell in cells),
        ]
        for dataset, scale, cells in table.rows
    ]
    return f"**{table.title}**\n\n{markdown_table(map(escape, names), rows)}"


def _markdown_cell(table, cell):
    if cell is None:
        return MISSING
    text = f"**{_mean(cell.mean)}**" if cell.bold else _mean(cell.mean)
    text = f"<ins>{text}</ins>" if cell.underline else text
    text += f" ± {_std(cell)}" if _std(cell) else ""
    if table.beside and not np.isnan(cell.published):
        text += f" ({_mean(cell.published)}{', ' if _z(cell, '') else ''}{_z(cell, '!')})"
    return f"{text} {_versions(table, cell)}".rstrip()


def _html(tables):
    notes = _notes(tables, "Bold", "Underlined", "Below", "!")
    return "\n".join(
        [*map(_html_table, tables), *(f"<p>{html.escape(note)}</p>" for note in notes), ""]
    )


def _html_table(table):
    names = ["Data set", SIGMA, *(label(method) for method in table.methods)]
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in names)
    lines = ['<table class="results">', f"<caption>{html.escape(table.title)}</caption>"]
    lines += [f"<thead><tr>{head}</tr></thead>", "<tbody>"]
    for dataset, scale, cells in table.rows:
        # The data set is repeated in every row, because the rows can be sorted.
        name = html.escape(label(dataset))
        start = f'<th scope="row" data-sort="{name}">{name}</th>'
        start += f'<td data-sort="{scale!r}">{name_group(scale)}</td>'
        lines.append(f"<tr>{start}{''.join(_html_cell(table, cell) for cell in cells)}</tr>")
    return "\n".join([*lines, "</tbody>", "</table>"])


def _html_cell(table, cell):
    if cell is None:
        return f'<td data-sort="">{MISSING}</td>'
    text = f"<b>{_mean(cell.mean)}</b>" if cell.bold else _mean(cell.mean)
    text = f"<u>{text}</u>" if cell.underline else text
    text += f" ± {_std(cell)}" if _std(cell) else ""
    text += f" <small>{_versions(table, cell)}</small>" if _versions(table, cell) else ""
    far = ""
    if table.beside and not np.isnan(cell.published):
        text += f"<br><small>{_mean(cell.published)} {_z(cell, '!')}".rstrip() + "</small>"
        far = ' class="far"' if _is_far(cell) else ""
    return f'<td data-sort="{float(cell.mean)!r}"{far}>{text}</td>'


def _csv(tables):
    """Write every cell once, although reference methods appear in two tables."""
    rows = [
        {"beyond_paper": not set(table.methods) <= set(paper_methods()), **cell._asdict()}
        for table in tables
        for _, _, cells in table.rows
        for cell in cells
        if cell is not None
    ]
    columns = [*CELL, "beyond_paper", "mean", "std", "n", "failed", "mean_nmi", "mean_seconds"]
    columns += ["published", "published_std", "z", "bold", "underline"]
    cells = pd.DataFrame(rows, columns=columns).drop_duplicates(CELL)
    return cells.to_csv(index=False)


RENDERERS = {
    "text": _text,
    "md": _markdown,
    "csv": _csv,
    "html": _html,
}
