"""The section of a fit report about the choice of the number of clusters."""

import numpy as np

from cafelearn.report.charts import chart
from cafelearn.report.page import number
from cafelearn.report.tables import Column, Table, count_cell, number_cell


def numbers_section(facts) -> dict | None:
    """Describe the choice of the number of clusters; return None if the number was given."""
    table = facts.inner.n_clusters_table_
    if table is None:
        return None
    return {
        "chosen": facts.n_clusters,
        "tried": _in_words(table.index.tolist()),
        "charts": [_chart(table, "stability", "(ARI)"), _chart(table, "score", "")],
        "table": _table(table),
    }


def _in_words(tried):
    """Describe the numbers of clusters that were tried: as a range, or one by one."""
    if len(tried) > 2 and tried == list(range(tried[0], tried[-1] + 1)):
        return f"{tried[0]} to {tried[-1]}"
    *others, last = map(str, tried)
    return f"{', '.join(others)} and {last}" if others else last


def _chart(table, name, unit):
    """Draw the column `name` of the table against the number of clusters."""
    measured = table[table[name].notna()]
    tips = [
        f"{k} clusters{', chosen' if row['chosen'] else ''}\n{name} {number(row[name])}\n"
        f"permuted rows {number(row[f'permuted_{name}'])}"
        for k, row in measured.iterrows()
    ]
    return chart(
        np.asarray(measured.index),
        measured[name],
        tips,
        label=f"{name.capitalize()} by the number of clusters",
        x_label="clusters",
        y_label=f"{name} {unit}".strip(),
        joined=True,
    )


def _table(table):
    """Tabulate the numbers of clusters, one row each."""
    columns = {
        "stability": "stability",
        "spread": "spread",
        "permuted_stability": "stability, permuted",
        "score": "score",
        "permuted_score": "score, permuted",
        "criterion": "criterion",
    }
    rows = []
    for k, row in table.iterrows():
        mark = "chosen" if row["chosen"] else None
        cells = [number_cell(row[name], mark=mark) for name in columns]
        rows.append([count_cell(k, mark), *cells])
    return Table(
        "numbers-table",
        "Numbers of clusters tried; permuted values are for rows whose columns were permuted "
        "independently of each other",
        [Column("clusters"), *(Column(name) for name in columns.values())],
        rows,
    )
