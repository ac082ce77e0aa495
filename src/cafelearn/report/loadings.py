"""Heat map of the loadings in a fit report."""

import numpy as np

from cafelearn.extraction.loadings import has_loadings
from cafelearn.report.embedding import MOST_AXES
from cafelearn.report.tables import Table, heat_cell, numbers, text_cell, texts

# A larger heat map would make the file large and the page slow.
MOST_CELLS = 10_000


def loadings_table(facts) -> Table | None:
    """Tabulate the loadings of the first extracted features.

    The inputs with the largest loadings come first. Return None if the extractor has no
    loadings.
    """
    if facts.cafe is None or not has_loadings(facts.cafe.extractor_):
        return None
    frame = facts.cafe.loadings_.iloc[:, :MOST_AXES]
    values = frame.to_numpy()
    order = np.argsort(-np.abs(values).max(axis=1), kind="stable")
    order = order[: max(50, MOST_CELLS // values.shape[1])]
    top = float(np.abs(values).max()) or 1.0
    decimals = max(2, 1 + int(np.ceil(-np.log10(top))))
    by_cluster = frame.index.nlevels > 1
    rows = []
    for i in order:
        label = frame.index[i]
        names = [label[1], f"cluster {label[0]}"] if by_cluster else [label]
        rows.append(
            [
                *(text_cell(name) for name in names),
                *(heat_cell(float(v), float(v) / top, f"{v:.{decimals}f}") for v in values[i]),
            ]
        )
    return Table(
        "loadings-table",
        "Loadings of the extracted features; inputs with the largest loadings first. Brown is "
        "positive, blue is negative.",
        [
            *texts("input"),
            *texts(*(["cluster"] if by_cluster else []), choose=True),
            *numbers(*(f"extracted feature {v + 1}" for v in range(values.shape[1]))),
        ],
        rows,
        shown=16,
        search="Find an input",
        measure="loading",
        diverging=True,
    )
