"""The section of a fit report about the choice of the number of clusters."""

from cafelearn.interpret.labels import number_note, range_words
from cafelearn.report.drawing import draw_numbers
from cafelearn.report.tables import Cell, Table, count_cell, numbers, text_cell, texts


def numbers_section(facts) -> dict | None:
    """Describe the choice of the number of clusters; return None if the number was given."""
    table = facts.inner.n_clusters_table_
    if table is None:
        return None
    tied, rows = table.index[table["tied"]].tolist(), []
    for k, row in table.iterrows():
        mark = "chosen" if row["chosen"] else None
        gain = Cell(f"{row['gain']:,.1f}", float(row["gain"]), mark=mark)
        rows.append([count_cell(k, mark), gain, text_cell(number_note(row), mark)])
    return {
        "chosen": facts.n_clusters,
        "tried": range_words(table.index.tolist()),
        "tied": range_words(tied, " or ") if tied else None,
        "picture": draw_numbers(table),
        "table": Table(
            "numbers-table",
            "Numbers of clusters tried, and their gain over a single cloud",
            [*texts("clusters"), *numbers("gain"), *texts("note")],
            rows,
        ),
    }
