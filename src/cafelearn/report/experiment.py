"""Write a report on an experiment as one HTML file."""

import io
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from cafelearn.experiments.compare import compare, summary
from cafelearn.experiments.published import CONFIGURATION, check_results
from cafelearn.experiments.tables import label
from cafelearn.plotting import CriticalDifferenceDisplay
from cafelearn.report import runs
from cafelearn.report.page import check_ready, count, encoded, image, write_page


def write_experiment_report(
    results: pd.DataFrame,
    path: str | Path,
    *,
    figures: Mapping[str, str | Path] | None = None,
    title: str | None = None,
    force: bool = False,
) -> Path:
    """Write a report on the runs of an experiment as one self-contained HTML file.

    The report shows the tables of the paper, recomputed from these runs, and compares them with
    the published tables. It also shows wins, tests and ranks of the methods, the mean gain of
    CAFE by noise level, noise scale and data set, and the run times of the methods.

    Parameters
    ----------
    results : DataFrame
        One row per run, with the columns `dataset`, `noise_level`, `noise_scale`, `version`,
        `method`, `status` ("done" or "failed") and `ari`; `nmi` and `seconds` are optional.
    path : str or Path
        The file to write, with the suffix ``.html`` or ``.htm``.
    figures : dict of str to path, default=None
        PNG or SVG files to show; the keys are the captions.
    title : str, default=None
        Title of the page.
    force : bool, default=False
        Whether to replace an existing file.

    Returns
    -------
    path : Path
        The file.

    See Also
    --------
    write_fit_report : Write a report on a single fit.
    cafelearn.experiments.compare.compare : Compute the numbers of the report.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from cafelearn.experiments.published import published
    >>> from cafelearn.report import write_experiment_report
    >>> runs = published().query("dataset == 'iris'").rename(columns={"mean_ari": "ari"})
    >>> with TemporaryDirectory() as folder:
    ...     path = write_experiment_report(
    ...         runs.assign(version=0, status="done"), Path(folder, "iris.html"), title="Iris")
    ...     "<title>Iris</title>" in path.read_text(encoding="utf-8")
    True
    """
    check_ready("write_experiment_report", path, force)
    results = check_results(results, "write_experiment_report")
    comparison = compare(results)
    content = {
        "key_numbers": _key_numbers(results, comparison),
        "points": _points(summary(comparison)),
        "comparison": comparison,
        "result_tables": runs.result_tables(comparison),
        "cells_table": runs.cells_table(comparison),
        "z_table": runs.z_table(comparison),
        "agreement_table": runs.agreement_table(comparison),
        "wins_table": runs.wins_table(comparison),
        "tests_table": runs.tests_table(comparison),
        "ranks_table": runs.ranks_table(comparison),
        "diagram": _diagram(comparison.ranking),
        "diagram_text": _diagram_text(comparison.ranking),
        "improvement_table": runs.improvement_table(comparison),
        "time_table": runs.time_table(results),
        "figures": [(caption, image(file)) for caption, file in (figures or {}).items()],
    }
    return write_page(
        "experiment.html.jinja",
        content,
        path,
        title="Experiment report" if title is None else title,
        force=force,
        caller="write_experiment_report",
    )


def _key_numbers(results, comparison):
    done = int(results["ari"].notna().sum())
    found = [
        (count(done), "runs done"),
        (count(len(results) - done), "runs failed"),
        (count(results["dataset"].nunique()), "data sets"),
        (count(len(results[CONFIGURATION].drop_duplicates())), "configurations"),
        (count(results["method"].nunique()), "methods"),
    ]
    if len(comparison.configurations):
        won = comparison.configurations["won"]
        found.append((f"{int(won.sum())} of {len(won)}", "configurations won by CAFE"))
    whole = comparison.agreement.iloc[0]
    if whole["cells"]:
        found.append(
            (f"{whole['within_2']:.0%}", "of cells within 2 standard errors of the paper")
        )
    return found


def _points(text):
    """Split a summary into points with lists of sub-points, and join wrapped lines."""
    points = []
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip())
        if depth >= 4 and points:
            # The line continues the last point or sub-point.
            target = points[-1][1] or points[-1]
            index = -1 if points[-1][1] else 0
            target[index] = f"{target[index]} {line.strip()}"
        elif depth and points:
            points[-1][1].append(line.strip())
        else:
            points.append([line.strip(), []])
    return points


def _diagram(ranking):
    """Draw the critical difference diagram and return it as a data: URL.

    Return None if there are no ranks or only one method.
    """
    if ranking is None or len(ranking.ranks) < 2:
        return None
    from matplotlib import pyplot as plt
    from matplotlib import rc_context

    display = CriticalDifferenceDisplay(ranking.ranks.rename(label), ranking.difference)
    drawn, figure = io.BytesIO(), None
    try:
        # Without the date and random identifiers, equal results give identical diagrams.
        with rc_context({"svg.hashsalt": "cafelearn"}):
            figure = display.plot().figure_
            options = {"transparent": True, "bbox_inches": "tight", "metadata": {"Date": None}}
            figure.savefig(drawn, format="svg", **options)
    finally:
        if figure is not None:
            plt.close(figure)
    return encoded(drawn.getvalue(), "image/svg+xml")


def _diagram_text(ranking):
    """Describe the diagram for readers who cannot see it."""
    if ranking is None:
        return ""
    ranks = ", ".join(f"{label(name)} {rank:.2f}" for name, rank in ranking.ranks.items())
    groups = "; ".join(", ".join(map(label, group)) for group in ranking.groups) or "none"
    return (
        f"Critical difference diagram. Average ranks: {ranks}. Critical difference "
        f"{ranking.difference:.2f}. No significant difference: {groups}."
    )
