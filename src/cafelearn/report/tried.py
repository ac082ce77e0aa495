"""Tables of the candidates and of the agreement between them."""

import pandas as pd

from cafelearn.report.tables import (
    Cell,
    Table,
    count_cell,
    heat_cell,
    number_cell,
    numbers,
    text_cell,
    texts,
)

# Only this many of the best candidates are compared; more columns would be too narrow.
MOST_COMPARED = 10
# If any name is longer, the header of the heat map has numbers instead of names.
SHORT_NAME = 8


def shown_name(facts, i, name=None) -> str:
    """Return the name of a candidate, marked if it was chosen."""
    mark = f" ({chosen_word(facts)})" if i == facts.chosen else ""
    return f"{facts.names[i] if name is None else name}{mark}"


def chosen_word(facts) -> str:
    """Return the word for the chosen candidate; the starts of a mixture are not chosen."""
    return "best" if facts.is_mixture else "chosen"


def candidates_table(facts) -> Table:
    """Tabulate settings, score, agreement and cluster sizes of the candidates."""
    rows = []
    for i in facts.order:
        row = facts.candidates.iloc[i]
        offset = row["dispersion_offset"]
        if not isinstance(offset, str):
            offset = "" if pd.isna(offset) else f"{offset:g}"
        mark = "chosen" if i == facts.chosen else None
        words = shown_name(facts, i, str(i)), row["scaling"], row["weighting"], offset
        rows.append(
            [
                *(text_cell(word, mark) for word in words),
                number_cell(row["p"], mark=mark),
                Cell(f"{row['score']:,.1f}", float(row["score"]), mark=mark),
                number_cell(row["agreement"], mark=mark),
                *(count_cell(row[name], mark) for name in ("smallest", "largest")),
            ]
        )
    return Table(
        "candidates-table",
        "Candidates: row number in candidates_, settings, score, agreement (ARI) with the "
        f"{chosen_word(facts)} candidate, and sizes of the smallest and the largest cluster",
        [
            *texts("candidate"),
            *texts("scaling", "weighting", "offset", choose=True),
            *numbers("p", "score", "agreement", "smallest", "largest"),
        ],
        rows,
        shown=12,
    )


def agreement_table(facts) -> Table | None:
    """Tabulate the adjusted Rand index between each pair of the best candidates.

    Return None if there is only one candidate.
    """
    if len(facts.names) == 1:
        return None
    compared, agreement = facts.order[:MOST_COMPARED], facts.cafe.agreement_
    short = max(len(facts.names[i]) for i in compared) <= SHORT_NAME
    rows = []
    for i in compared:
        name = shown_name(facts, i) if short else f"{i}: {shown_name(facts, i)}"
        cells = [text_cell(name, mark="chosen" if i == facts.chosen else None)]
        for j in compared:
            mark = "chosen" if facts.chosen in (i, j) else None
            share = agreement[i, j]
            cells.append(heat_cell(share, share, f"{share:.2f}", mark=mark))
        rows.append([*cells, number_cell(float(agreement[i].sum() - 1))])
    return Table(
        "agreement-table",
        "Adjusted Rand index between the clusterings of two candidates",
        [
            *texts("candidate"),
            *numbers(*(facts.names[i] if short else str(i) for i in compared)),
            *numbers("sum over others"),
        ],
        rows,
        measure="adjusted Rand index",
    )
