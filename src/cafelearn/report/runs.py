"""The tables of an experiment report."""

import numpy as np
import pandas as pd

from cafelearn.experiments.plan import METHODS
from cafelearn.experiments.published import CELL, CONFIGURATION, name_group
from cafelearn.experiments.tables import label, mark
from cafelearn.report.page import number
from cafelearn.report.tables import (
    Cell,
    Column,
    Table,
    count_cell,
    heat_cell,
    number_cell,
    text_cell,
)

# Absolute value of z that has the darkest shade.
DARKEST_Z = 4
CONFIGURATION_COLUMNS = (
    Column("data set", numeric=False, choose=True),
    Column("level", choose=True),
    Column("scale", choose=True),
)
# Names of the columns by which configurations are grouped.
PLACES = {"all": "all", "dataset": "data set", "noise_level": "level", "noise_scale": "scale"}


def result_tables(comparison) -> list[Table]:
    """Make the paper's tables: one table per noise level, one column per method."""
    cells = comparison.means.merge(
        comparison.cells[[*CELL, "published", "published_std", "z"]], on=CELL, how="left"
    )
    cells = mark(cells[cells["n"] > 0].rename(columns={"mean_ari": "mean"}))
    methods = _methods(cells)
    return [
        _result_table(level, methods, some)
        for level, some in cells.groupby("noise_level", sort=True)
    ]


def _result_table(level, methods, cells):
    rows = []
    for (dataset, scale), some in cells.groupby(["dataset", "noise_scale"], sort=False):
        by_method = {cell.method: cell for cell in some.itertuples()}
        whole = f"{label(dataset)}, scale {scale:g}"
        rows.append(
            [
                Cell(label(dataset), extra=whole),
                number_cell(scale),
                *(_result_cell(by_method.get(method)) for method in methods),
            ]
        )
    return Table(
        f"results-{level:g}".replace(".", "-"),
        f"Mean adjusted Rand index at noise level {100 * level:g}%. Bold: best of a "
        "CAFE/baseline pair; underlined: best of the row",
        [
            CONFIGURATION_COLUMNS[0],
            CONFIGURATION_COLUMNS[2],
            *(Column(label(method), hideable=True) for method in methods),
        ],
        rows,
        shown=60,
        measure="mean ARI",
    )


def _result_cell(cell):
    if cell is None:
        return Cell("")
    std = "" if np.isnan(cell.std_ari) else f", std {cell.std_ari:.2f}"
    lines = [f"{cell.n} version{'' if cell.n == 1 else 's'}{std}"]
    if not np.isnan(cell.published):
        z = "" if np.isnan(cell.z) else f", z {cell.z:+z.1f}"
        lines.append(f"paper {cell.published:.3f}{z}")
    if not np.isnan(cell.mean_nmi):
        lines.append(f"mean NMI {cell.mean_nmi:.3f}")
    if cell.failed:
        lines.append(f"{cell.failed} runs failed")
    marks = [name for name, on in (("bold", cell.bold), ("best", cell.underline)) if on]
    return heat_cell(
        cell.mean,
        0.9 * max(cell.mean, 0),
        f"{cell.mean:z.3f}",
        "\n".join(lines),
        " ".join(marks),
    )


def cells_table(comparison) -> Table:
    """Tabulate our mean, the published mean and z of every cell of the paper's tables."""
    rows = [
        [
            *_configuration(cell),
            text_cell(label(cell.method)),
            Cell(f"{cell.ours:.3f}", f"{cell.ours:.6g}"),
            _decimals(cell.ours_std, 2),
            count_cell(cell.n),
            Cell(f"{cell.published:.3f}", cell.published),
            _decimals(cell.published_std, 2),
            _signed(cell.z, 2, mark="far" if abs(cell.z) > 2 else None),
        ]
        for cell in comparison.cells.itertuples()
    ]
    names = ("ours", "std", "versions", "published", "published std", "z")
    return Table(
        "cells-table",
        "Our mean and the published mean of every cell; z is the difference in standard errors",
        [
            *CONFIGURATION_COLUMNS,
            Column("method", numeric=False, choose=True),
            *(Column(name) for name in names),
        ],
        rows,
        shown=16,
    )


def z_table(comparison) -> Table | None:
    """Tabulate z by configuration and method, as a heat map; return None if there is no z."""
    cells = comparison.cells[comparison.cells["z"].notna()]
    if cells.empty:
        return None
    methods = _methods(cells)
    rows = []
    for place, some in cells.groupby(CONFIGURATION, sort=False):
        by_method = {cell.method: cell for cell in some.itertuples()}
        dataset, level, scale = place
        name = f"{label(dataset)}, level {level:g}, scale {scale:g}"
        rows.append(
            [
                Cell(label(dataset), extra=name),
                number_cell(level),
                number_cell(scale),
                *(_z_cell(by_method.get(method)) for method in methods),
            ]
        )
    return Table(
        "z-table",
        "z of each cell; brown is above the published mean, blue below",
        [*CONFIGURATION_COLUMNS, *(Column(label(method), hideable=True) for method in methods)],
        rows,
        shown=18,
        measure="z",
        diverging=True,
    )


def _z_cell(cell):
    if cell is None:
        return Cell("")
    return heat_cell(
        cell.z,
        cell.z / DARKEST_Z,
        f"{cell.z:+z.1f}",
        extra=f"ours {cell.ours:.3f}, published {cell.published:.3f}",
    )


def agreement_table(comparison) -> Table:
    """Tabulate the deviations from the published means, by group of cells."""
    rows = [
        [
            text_cell(_group(row)),
            text_cell(PLACES.get(row.by, row.by)),
            count_cell(row.cells),
            _share(row.within_2),
            _share(row.expected),
            number_cell(row.rms_z),
            _signed(row.mean_difference, 3),
        ]
        for row in comparison.agreement.itertuples()
    ]
    names = ("cells", "within 2", "expected", "rms z", "mean difference")
    return Table(
        "agreement-table",
        "Share of cells within two standard errors of the published mean, and the share "
        "expected if only the random noise differed",
        [
            Column("group", numeric=False),
            Column("by", numeric=False, choose=True),
            *(Column(name) for name in names),
        ],
        rows,
        shown=12,
    )


def wins_table(comparison) -> Table:
    """Tabulate the difference and the winner of each pair, here and in the paper."""
    rows = [
        [
            *_configuration(pair),
            text_cell(label(pair.extractor)),
            _signed(pair.difference, 3),
            _decimals(pair.standard_error, 3),
            _yes(pair.won),
            _signed(pair.published_difference, 3),
            _yes(pair.shared),
        ]
        for pair in comparison.pairs.itertuples()
    ]
    return Table(
        "wins-table",
        "Mean ARI with CAFE minus mean ARI without CAFE, over the versions that both methods "
        "completed",
        [
            *CONFIGURATION_COLUMNS,
            Column("extractor", numeric=False, choose=True),
            Column("difference"),
            Column("standard error"),
            Column("CAFE wins", numeric=False, choose=True),
            Column("in the paper"),
            Column("same winner", numeric=False, choose=True),
        ],
        rows,
        shown=16,
    )


def tests_table(comparison) -> Table:
    """Tabulate Wilcoxon's tests with Holm's correction."""
    rows = [
        [
            text_cell(f"{label(test.method)} against {label(test.other)}"),
            count_cell(test.configurations),
            count_cell(test.wins),
            count_cell(test.loses),
            _signed(test.mean_difference, 3),
            _signed(test.median_difference, 3),
            number_cell(test.p_value, 2),
            number_cell(test.p_holm, 2, mark="bold" if test.p_holm <= 0.05 else None),
        ]
        for test in comparison.tests.itertuples()
    ]
    names = ("configurations", "wins", "losses", "mean difference", "median", "p", "p (Holm)")
    return Table(
        "tests-table",
        "Wilcoxon's signed-rank test over configurations; bold: p (Holm) at most 0.05",
        [Column("pair", numeric=False), *(Column(name) for name in names)],
        rows,
    )


def ranks_table(comparison) -> Table:
    """Tabulate ranks among all methods, among those of the paper, and in the paper's tables."""
    rankings = (comparison.ranking, comparison.paper_ranking, comparison.published_ranking)
    names = dict.fromkeys(m for r in rankings if r is not None for m in r.ranks.index)
    rows = [
        [
            text_cell(label(method)),
            *(_rank(ranking, method) for ranking in rankings),
        ]
        for method in names
    ]
    columns = ("all methods", "the paper's methods", "in the paper")
    return Table(
        "ranks-table",
        "Average rank over configurations; 1 is the best",
        [Column("method", numeric=False), *(Column(name) for name in columns)],
        rows,
    )


def _rank(ranking, method):
    return _decimals(np.nan if ranking is None else ranking.ranks.get(method, np.nan), 2)


def improvement_table(comparison) -> Table:
    """Tabulate the mean gain of CAFE by noise level, noise scale and data set."""
    table = comparison.improvement
    darkest = float(table["difference"].abs().max()) or 1.0
    rows = [
        [
            text_cell(_group(row)),
            text_cell(PLACES[row.by]),
            text_cell(label(row.extractor)),
            count_cell(row.configurations),
            heat_cell(
                row.difference,
                row.difference / darkest,
                f"{row.difference:+.3f}",
                extra=f"standard error {number(row.standard_error, 2) or 'unknown'}",
            ),
            _signed(row.published, 3),
        ]
        for row in table.itertuples()
    ]
    return Table(
        "improvement-table",
        "Mean gain of CAFE over its baseline",
        [
            Column("group", numeric=False),
            Column("by", numeric=False, choose=True),
            Column("extractor", numeric=False, choose=True),
            Column("configurations"),
            Column("gain"),
            Column("in the paper"),
        ],
        rows,
        shown=24,
        measure="gain",
        diverging=True,
    )


def time_table(results) -> Table | None:
    """Tabulate the run times of each method; return None if no times were recorded."""
    timed = results[results["seconds"].notna()]
    if timed.empty:
        return None
    by_method = timed.groupby("method", sort=False)["seconds"]
    times = by_method.agg(["size", "median", "mean", "max", "sum"])
    times = times.sort_values("mean", ascending=False)
    slowest = float(times["mean"].max()) or 1.0
    rows = [
        [
            text_cell(label(row.Index)),
            count_cell(row.size),
            number_cell(row.median),
            heat_cell(
                row.mean, row.mean / slowest, extra=f"{row.mean / slowest:.0%} of the slowest"
            ),
            number_cell(row.max),
            number_cell(row.sum),
        ]
        for row in times.itertuples()
    ]
    names = ("runs", "median", "mean", "longest", "total")
    return Table(
        "time-table",
        "Seconds per run",
        [Column("method", numeric=False), *(Column(name) for name in names)],
        rows,
        measure="mean seconds",
    )


def _methods(cells):
    found = list(cells["method"].unique())
    order = [method for method in METHODS if method in found]
    return order + sorted(set(found) - set(order))


def _group(row):
    return label(row.group) if row.by in ("method", "dataset") else row.group or "all"


def _configuration(row):
    return (
        text_cell(label(row.dataset)),
        Cell(name_group(row.noise_level), row.noise_level),
        Cell(name_group(row.noise_scale), row.noise_scale),
    )


def _decimals(value, digits, sign="", mark=None):
    if np.isnan(value):
        return Cell("")
    return Cell(f"{value:{sign}z.{digits}f}", f"{value:.6g}", mark=mark)


def _signed(value, digits, mark=None):
    return _decimals(value, digits, "+", mark)


def _share(value):
    return Cell("") if np.isnan(value) else Cell(f"{value:.0%}", f"{value:.6g}")


def _yes(value):
    """Format a boolean that may be missing."""
    if pd.isna(value):
        return Cell("")
    return Cell("yes", mark="good") if value else Cell("no", mark="warn")
