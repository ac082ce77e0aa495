"""The steps of `cafe fit`: read, fit and place the rows, then describe the result."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from cafelearn.base.words import listed, suggestion
from cafelearn.cli import options
from cafelearn.cli.place import features_table, row_names

if TYPE_CHECKING:
    import numpy as np

FEW = 1_000  # rows of a table larger than memory in which remarks look for known classes


class Fitted(NamedTuple):
    """A fitted TabularCAFE and what is known of its rows."""

    estimator: object
    labels: "np.ndarray"
    margin: "np.ndarray"
    names: object  # names of the rows, or None
    known: object  # Series of known classes, or None
    profile: object  # cluster profiles
    portraits: list
    seconds: float
    report_facts: Callable  # returns the Facts of the report
    code: str  # reads the table


def fit_table(run, estimator, data, reading, label, out, force):
    """Fit to a table in memory, and write the features unless `out` is None."""
    from cafelearn.cli.reading import read_and_tell
    from cafelearn.cli.remarks import remark_columns
    from cafelearn.cli.writing import write_table
    from cafelearn.interpret.placed import Placed

    frame, trace = read_and_tell(run, data, reading, run.tell)
    _set_columns(estimator, frame.columns, label)
    encoded, seconds = _timed_fit(run, estimator, frame)
    estimator._reading = options.for_new_rows(reading, trace.get("found", {}))
    placed, names = Placed(estimator, encoded, estimator.labels_), row_names(estimator, frame)
    remark_columns(run, estimator, frame, placed.labels)
    if out is not None:
        write_table(features_table(placed, names), out, force)
    known = None if label is None else frame[label]

    def report_facts():
        from cafelearn.report.facts import Facts

        return Facts(estimator, frame, names, known, placed)

    return Fitted(
        *(estimator, placed.labels, placed.margin, names, known),
        *(placed.profile, placed.portraits, seconds, report_facts),
        code=trace["code"],
    )


def fit_large(run, estimator, data, label, out, force):
    """Fit to a table larger than memory, and write the features unless `out` is None."""
    from cafelearn.cli.large import open_and_tell
    from cafelearn.cli.parts import place_parts, sample_rows
    from cafelearn.cli.reading_code import large_code
    from cafelearn.cli.remarks import remark_columns
    from cafelearn.interpret.placed import MOST_LINES
    from cafelearn.interpret.profiles import portraits

    id_column = estimator.id_column
    large = open_and_tell(run, data, run.tell, id_column)
    frame = large.frame
    _set_columns(estimator, frame.columns, label)
    _, seconds = _timed_fit(run, estimator, frame)
    labels, margin = place_parts(run, estimator, large, id_column, out, force)
    few = frame.partitions[0].compute().head(FEW)
    remark_columns(run, estimator, few, labels[: len(few)])

    def report_facts():
        from cafelearn.report.facts import Facts

        rows, numbers = sample_rows(large, estimator.cafe.random_state)
        run.facts["report_rows"] = len(rows)
        names = numbers if id_column is None else rows[id_column]
        return Facts(estimator, rows, names, None if label is None else rows[label])

    profile = estimator.profile_frame(frame)
    return Fitted(
        *(estimator, labels, margin),
        names=None if id_column is None else frame[id_column].compute(),
        known=None if label is None else frame[label].compute(),
        profile=profile,
        portraits=portraits(profile, MOST_LINES),
        seconds=seconds,
        report_facts=report_facts,
        code=large_code(data, len(frame.columns)),
    )


def _set_columns(estimator, columns, label):
    """Pass the column names given as options to the estimator.

    Raise ValueError if --label or --id names no column of the table.
    """
    for option, name in (("--label", label), ("--id", estimator.id_column)):
        if name is not None and name not in columns:
            raise ValueError(
                f"{option} {name!r}: there is no such column{suggestion(name, columns)}. The "
                f"table has {listed(columns)}."
            )
    dropped = options.column_names(estimator.drop, columns)
    estimator.set_params(
        drop=[*dropped, *([label] if label else ())],
        categorical=options.column_names(estimator.categorical, columns),
        numeric=options.column_names(estimator.numeric, columns),
    )


def _timed_fit(run, estimator, frame):
    """Fit the estimator; return the encoded rows and the seconds that this took."""
    from cafelearn.cli.progress import watch
    from cafelearn.cli.summary import findings_shown_here

    begin = time.perf_counter()
    with watch(run), findings_shown_here():
        encoded = estimator._fit(frame)
    return encoded, time.perf_counter() - begin


def tell(run, fitted):
    """Add the facts of the fit to those of the run, and print them."""
    from cafelearn.cli.summary import agreement_with, facts_of, show_fit

    run.facts |= facts_of(fitted)
    run.facts["seconds"] = round(fitted.seconds, 3)
    if fitted.known is not None:
        run.facts["label"] = agreement_with(fitted.labels, fitted.known)
    show_fit(run, run.facts)


def write_report(fitted, data, path, force):
    """Write the report."""
    import shlex
    import sys

    from cafelearn.report.fit import write_facts

    return write_facts(
        fitted.report_facts(),
        path,
        title=f"CAFE on {data.name}",
        source=data.name,
        command=shlex.join(["cafe", *sys.argv[1:]]),
        read=fitted.code,
        force=force,
    )
