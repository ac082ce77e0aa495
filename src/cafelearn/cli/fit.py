"""cafe fit: fit CAFE to a table; write features, a model, a report and cluster profiles."""

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cafelearn._extractors import EXTRACTORS
from cafelearn._selections import SELECTIONS
from cafelearn._words import listed, suggestion
from cafelearn.cli import options
from cafelearn.cli.candidates import method_settings, numbers_of_clusters
from cafelearn.cli.session import session

OUTPUT = "Output"
COLUMNS = "Columns"
METHOD = "Method"
MANY = "Comma-separated or repeated; several by default."
STARTS = "of the candidates (of the starts of the mixture)"


AUTO = "auto"
Extractor = StrEnum(  # type: ignore[misc]
    "Extractor", {name: name for name in (AUTO, *EXTRACTORS)}
)
BY_DEFAULT = Extractor(AUTO)
Selection = StrEnum("Selection", {name: name for name in SELECTIONS})  # type: ignore[misc]


class Impute(StrEnum):
    """Imputation methods."""

    median = "median"


def register(app):
    """Add the command."""
    app.command("fit")(fit)


def fit(
    data: options.LargeData,
    clusters: Annotated[
        str,
        typer.Option(
            "-k",
            "--clusters",
            help="Number of clusters: a number, a range such as 2-8 or a list such as 2,3,5 to "
            "choose from, or auto.",
            metavar="K",
        ),
    ],
    components: Annotated[
        int | None,
        typer.Option(
            "-r",
            "--components",
            help="Number of features to extract; by default, all of the standardised columns, "
            "probabilities and log densities of the clusters are written.",
            min=1,
        ),
    ] = None,
    extractor: Annotated[
        Extractor,
        typer.Option(
            help="Method of feature extraction; auto is pca if --components is given.",
            rich_help_panel=METHOD,
        ),
    ] = BY_DEFAULT,
    paper: Annotated[
        bool,
        typer.Option(
            "--paper",
            help="Use the settings of the paper (Algorithm 2).",
            rich_help_panel=METHOD,
        ),
    ] = False,
    selection: Annotated[
        Selection | None,
        typer.Option(
            help="mixture (default): clusters are those of a mixture, which starts from the "
            "candidates, all combinations of exponents, scalings, weightings and offsets. "
            "likelihood or agreement: the clusters are those of one candidate.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    p: Annotated[
        list[str] | None,
        typer.Option(
            "--p", help=f"Minkowski exponents {STARTS}. {MANY}", rich_help_panel=METHOD
        ),
    ] = None,
    scaling: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Scalings {STARTS}: range, standard or none. {MANY}", rich_help_panel=METHOD
        ),
    ] = None,
    weighting: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Weightings {STARTS}, such as cluster or uniform. {MANY}",
            rich_help_panel=METHOD,
        ),
    ] = None,
    offset: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Dispersion offsets {STARTS}: mean, fixed or a number. {MANY}",
            rich_help_panel=METHOD,
        ),
    ] = None,
    rescaling: Annotated[
        str | None,
        typer.Option(
            help="Input of the extraction: memberships (default), distances, origin or "
            "centroid.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    n_init: Annotated[
        int | None,
        typer.Option(
            help="Number of starts for each candidate.", min=1, rich_help_panel=METHOD
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed.", min=0, rich_help_panel=METHOD)] = 0,
    jobs: options.Jobs = -1,
    scheduler: options.Scheduler = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(help=f"Columns to leave out. {options.REPEATED}", rich_help_panel=COLUMNS),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            help="Column of known classes: left out of the fit and compared with the clusters.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    row_id: Annotated[
        str | None,
        typer.Option("--id", help="Column of row names.", rich_help_panel=COLUMNS),
    ] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns to treat as categories, even if they are numbers or would be left "
            f"out. {options.REPEATED}",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    numeric: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns to treat as numbers, even if they look like identifiers. "
            f"{options.REPEATED}",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    impute: Annotated[
        Impute | None,
        typer.Option(
            help="Replace missing numbers by the median and missing categories by the most "
            "frequent category; by default, missing values stay missing.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help=options.OUT, rich_help_panel=OUTPUT),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(help="Write the model to this file (.skops).", rich_help_panel=OUTPUT),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="Write a report to this file (.html).", rich_help_panel=OUTPUT),
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option(help="Write the cluster profiles to this file.", rich_help_panel=OUTPUT),
    ] = None,
    force: options.Force = False,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    thousands: options.Thousands = None,
    missing: options.Missing = None,
    no_header: options.NoHeader = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
):
    """Cluster the rows of a table, weight its features and extract new ones.

    Text columns become categories, and dates become numbers. Identifiers,
    free text and constant columns are left out. Rows are numbered from 0.
    """
    with session("fit", quiet, as_json, debug) as run:
        reading = options.make_reading(delimiter, decimal, missing, no_header, thousands)
        reading = reading._replace(
            row_id=row_id,
            unused=(*(drop or ()), *([row_id] if row_id else ())),
            category=(*(category or ()), *([label] if label else ())),
            numeric=tuple(numeric or ()),
        )
        is_large = _check_files(out, model, report, profile, force, data, extractor, scheduler)
        method = method_settings(
            paper, selection, p, scaling, weighting, offset, rescaling, n_init
        )
        estimator = _estimator(
            numbers_of_clusters(clusters),
            cafe={
                "n_components": components,
                "extractor": extractor.value,
                "n_jobs": jobs,
                "random_state": seed,
                **method,
            },
            impute=impute.value if impute else None,
            categorical=list(category or ()),
            numeric=list(numeric or ()),
            drop=list(drop or ()),
            id_column=row_id,
        )
        if is_large:
            _fit_large(
                run, estimator, data, scheduler, label, out, model, report, profile, force
            )
            return
        frame, code, found = _read(run, data, reading)
        _set_columns(estimator, frame, label)
        described = _fit(run, estimator, frame, label)
        estimator._reading = options.for_new_rows(reading, found)
        files = _write_profile(described, profile, force)
        _write(run, estimator, frame, label, data, code, out, model, report, force, files)


def _check_files(out, model, report, profile, force, data, extractor, scheduler):
    """Check all files before the computation; return whether the data is read with Dask."""
    from cafelearn._files import MODEL_SUFFIXES, PAGE_SUFFIXES, check_suffix
    from cafelearn.cli.large_pass import check_features, check_scheduler
    from cafelearn.cli.options import need
    from cafelearn.cli.writing import check_outputs, kind_of

    is_large = check_scheduler(data, scheduler)
    if is_large and out is not None:
        check_features(out, force, data=data)
    tables = {"--out": None if is_large else out, "--profile": profile}
    check_outputs(tables | {"--model": model, "--report": report}, force, data)
    check_suffix("--model", model, MODEL_SUFFIXES)
    check_suffix("--report", report, PAGE_SUFFIXES)
    for option, path in tables.items():
        if path is not None and kind_of(path)[0] in ("parquet", "feather"):
            need("pyarrow", option, "cli")
    if model is not None:
        need("skops", "--model", "cli")
        if extractor is Extractor.umap:
            raise ValueError("--model cannot save a model with the extractor umap.")
    if report is not None:
        need("jinja2", "--report", "report")
    return is_large


def _set_columns(estimator, frame, label):
    """Pass the column names given as options to the estimator.

    Raise ValueError if --label or --id names no column of the table.
    """
    for option, name in (("--label", label), ("--id", estimator.id_column)):
        if name is not None and name not in frame.columns:
            raise ValueError(
                f"{option} {name!r}: there is no such column"
                f"{suggestion(name, frame.columns)}. The table has {listed(frame.columns)}."
            )
    dropped = options.column_names(estimator.drop, frame.columns)
    estimator.set_params(
        drop=[*dropped, *([label] if label else ())],
        categorical=options.column_names(estimator.categorical, frame.columns),
        numeric=options.column_names(estimator.numeric, frame.columns),
    )


def _read(run, data, reading):
    from cafelearn.cli.reading import read_table

    trace = {}
    frame = read_table(data, reading, run.remark, trace)
    run.facts["data"] = {"path": data, "rows": len(frame), "columns": frame.shape[1]}
    run.tell(f"Read {data}: {len(frame):,} rows, {frame.shape[1]:,} columns")
    return frame, trace["code"], trace.get("found", {})


def _estimator(clusters, cafe, **columns):
    from cafelearn._cafe import CAFE
    from cafelearn._tabular import TabularCAFE

    return TabularCAFE(CAFE(clusters, **cafe), **columns)


def _fit_large(run, estimator, data, scheduler, label, out, model, report, profile, force):
    from cafelearn.cli import large_fit as large
    from cafelearn.cli.large_pass import computing, read
    from cafelearn.cli.reading_code import large_code
    from cafelearn.cli.remarks import remark_columns

    with computing(scheduler, estimator.cafe.n_jobs):
        table = read(run, data, run.tell, estimator.id_column)
        _set_columns(estimator, table.frame, label)
        described = large.fit(run, estimator, table, label, out, force)
        few = table.frame.partitions[0].compute().head(1_000)
        remark_columns(run, estimator, few, estimator.predict(few))
        files = _write_profile(described, profile, force)
        if out is not None:
            files["features"] = out
        if model is not None:
            files["model"] = _save(estimator, model, force)
        if report is not None:
            rows, names, known = large.sample(
                estimator, table, label, estimator.cafe.random_state
            )
            code = large_code(data, len(table.frame.columns))
            files["report"] = _report(estimator, rows, names, known, data, code, report, force)
            run.facts["report_rows"] = len(rows)
    _say_files(run, files)


def _fit(run, estimator, frame, label):
    import numpy as np

    from cafelearn.cli.progress import warm_up, watch
    from cafelearn.cli.remarks import remark_columns
    from cafelearn.cli.summary import (
        agreement_with,
        doubtful_below,
        doubtful_rows,
        facts_of,
        findings_shown_here,
        show_fit,
    )

    warm_up(run)
    begin = time.perf_counter()
    with watch(run), findings_shown_here():
        estimator.fit(frame)
    seconds = time.perf_counter() - begin
    encoded = estimator.encode(frame)
    remark_columns(run, estimator, frame, estimator.labels_)
    labels, margin = estimator.labels_, estimator.cafe_.assignment_margin(encoded)
    names = None if estimator.id_column is None else encoded.index
    counts = np.bincount(labels, minlength=estimator.cafe_.n_clusters_)
    profile = estimator.profile_frame(frame)
    doubtful = doubtful_rows(labels, margin, doubtful_below(estimator.cafe_), names)
    run.facts |= facts_of(estimator, counts, profile, *doubtful)
    run.facts["seconds"] = round(seconds, 3)
    if label is not None:
        run.facts["label"] = agreement_with(estimator.labels_, frame[label])
    show_fit(run, run.facts)
    return profile


def _write_profile(profile, path, force):
    """Write the cluster profiles unless `path` is None; return a dict of the files written."""
    if path is None:
        return {}
    from cafelearn.cli.writing import write_table

    return {"profile": write_table(profile, path, force)}


def _write(run, estimator, frame, label, data, code, out, model, report, force, files):
    if out is not None:
        from cafelearn.cli.place import features_table, row_names
        from cafelearn.cli.writing import write_table

        names = row_names(estimator, frame)
        table = features_table(estimator.cafe_, estimator.encode(frame), names)
        files["features"] = write_table(table, out, force)
    if model is not None:
        files["model"] = _save(estimator, model, force)
    if report is not None:
        names = None if estimator.id_column is None else frame[estimator.id_column]
        known = None if label is None else frame[label].to_numpy()
        files["report"] = _report(estimator, frame, names, known, data, code, report, force)
    _say_files(run, files)


def _save(estimator, path, force):
    from cafelearn.persistence import save_model

    return save_model(estimator, path, force)


def _say_files(run, files):
    run.facts["files"] = files
    for what, path in files.items():
        run.say(f"Wrote the {what} to {path}")


def _report(estimator, rows, row_ids, known, data, code, report, force):
    import shlex
    import sys

    from cafelearn.report import write_fit_report

    return write_fit_report(
        estimator,
        rows,
        report,
        row_ids=row_ids,
        y=known,
        title=f"CAFE on {data.name}",
        source=data.name,
        command=shlex.join(["cafe", *sys.argv[1:]]),
        read=code,
        force=force,
    )
