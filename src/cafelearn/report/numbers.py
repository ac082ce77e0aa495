"""The section of a fit report about the choice of the number of clusters."""

from cafelearn.report.drawing import draw_numbers
from cafelearn.report.tables import Cell, Column, Table, count_cell, text_cell


def numbers_section(facts) -> dict | None:
    """Describe the choice of the number of clusters; return None if the number was given."""
    table = facts.inner.n_clusters_table_
    if table is None:
        return None
    tied = table.index[table["tied"]].tolist()
    return {
        "chosen": facts.n_clusters,
        "tried": _in_words(table.index.tolist()),
        "tied": _in_words(tied, "or") if tied else None,
        "n_tied": len(tied),
        "picture": draw_numbers(table),
        "table": _table(table),
    }


def _in_words(tried, word="and"):
    """Describe numbers of clusters: as a range, or one by one."""
    if len(tried) > 2 and tried == list(range(tried[0], tried[-1] + 1)):
        return f"{tried[0]} to {tried[-1]}"
    *others, last = map(str, tried)
    return f"{', '.join(others)} {word} {last}" if others else last


def note_of(row) -> str:
    """Say what distinguishes a number of clusters; `row` is its row of `n_clusters_table_`."""
    notes = ["chosen"] if row["chosen"] else ["nearly as good"] if row["tied"] else []
    return ", ".join([*notes, *([] if row["counts"] else ["tiny clusters"])])


def _table(table):
    """Tabulate the numbers of clusters, one row each."""
    rows = []
    for k, row in table.iterrows():
        mark = "chosen" if row["chosen"] else None
        rows.append(
            [
                count_cell(k, mark),
                Cell(f"{row['gain']:,.1f}", float(row["gain"]), mark=mark),
                text_cell(note_of(row), mark),
            ]
        )
    return Table(
        "numbers-table",
        "Numbers of clusters tried, and their gain over a single cloud",
        [Column("clusters", numeric=False), Column("gain"), Column("note", numeric=False)],
        rows,
    )
