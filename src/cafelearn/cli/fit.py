"""cafe fit: fit CAFE to a table; write features, a model, a report and cluster profiles."""

from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cafelearn.cli import fitting, options
from cafelearn.cli.candidates import method_settings, numbers_of_clusters
from cafelearn.cli.session import session
from cafelearn.extraction.table import EXTRACTORS

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
# The keys of SELECTIONS, which are slow to import.
Selection = StrEnum("Selection", ["mixture", "likelihood", "agreement"])
Impute = StrEnum("Impute", ["median"])

Clusters = typer.Option(
    "-k",
    "--clusters",
    help="Number of clusters: a number, a range such as 2-8 or a list such as 2,3,5 to choose "
    "from, or auto.",
    metavar="K",
)
Components = typer.Option(
    "-r",
    "--components",
    help="Number of features to extract; by default, all of the standardised columns, "
    "probabilities and log densities of the clusters are written.",
    min=1,
)


def _method(text, *names, **options):
    return typer.Option(*names, help=text, rich_help_panel=METHOD, **options)


def _columns(text, *names):
    return typer.Option(*names, help=text, rich_help_panel=COLUMNS)


def _output(text):
    return typer.Option(help=text, rich_help_panel=OUTPUT)


MIXTURE = """mixture (default): clusters are those of a mixture, which starts from the
candidates, all combinations of exponents, scalings, weightings and offsets. likelihood or
agreement: the clusters are those of one candidate."""
CATEGORY = f"""Columns to treat as categories, even if they are numbers or would be left out.
{options.REPEATED}"""
NUMERIC = f"""Columns to treat as numbers, even if they look like identifiers.
{options.REPEATED}"""
IMPUTE = """Replace missing numbers by the median and missing categories by the most frequent
category; by default, missing values stay missing."""
RESCALING = "Input of the extraction: memberships (default), distances, origin or centroid."
WEIGHTINGS = f"Weightings {STARTS}, such as cluster or uniform. {MANY}"
OFFSETS = f"Dispersion offsets {STARTS}: mean, fixed or a number. {MANY}"
LABEL = "Column of known classes: left out of the fit and compared with the clusters."
EXTRACTOR = "Method of feature extraction; auto is pca if --components is given."
Texts = list[str] | None


def fit(
    data: options.LargeData,
    clusters: Annotated[str, Clusters],
    components: Annotated[int | None, Components] = None,
    extractor: Annotated[Extractor, _method(EXTRACTOR)] = BY_DEFAULT,
    paper: Annotated[
        bool, _method("Use the settings of the paper (Algorithm 2).", "--paper")
    ] = False,
    selection: Annotated[Selection | None, _method(MIXTURE)] = None,
    p: Annotated[Texts, _method(f"Minkowski exponents {STARTS}. {MANY}", "--p")] = None,
    scaling: Annotated[
        Texts, _method(f"Scalings {STARTS}: range, standard or none. {MANY}")
    ] = None,
    weighting: Annotated[Texts, _method(WEIGHTINGS)] = None,
    offset: Annotated[Texts, _method(OFFSETS)] = None,
    rescaling: Annotated[str | None, _method(RESCALING)] = None,
    n_init: Annotated[
        int | None, _method("Number of starts for each candidate.", min=1)
    ] = None,
    seed: Annotated[int, _method("Random seed.", min=0)] = 0,
    jobs: options.Jobs = -1,
    scheduler: options.Scheduler = None,
    drop: Annotated[Texts, _columns(f"Columns to leave out. {options.REPEATED}")] = None,
    label: Annotated[str | None, _columns(LABEL)] = None,
    row_id: Annotated[str | None, _columns("Column of row names.", "--id")] = None,
    category: Annotated[Texts, _columns(CATEGORY)] = None,
    numeric: Annotated[Texts, _columns(NUMERIC)] = None,
    impute: Annotated[Impute | None, _columns(IMPUTE)] = None,
    out: Annotated[Path | None, _output(options.OUT)] = None,
    model: Annotated[Path | None, _output("Write the model to this file (.skops).")] = None,
    report: Annotated[Path | None, _output("Write a report to this file (.html).")] = None,
    profile: Annotated[Path | None, _output("Write the cluster profiles to this file.")] = None,
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
        from cafelearn.cli.parts import computing
        from cafelearn.estimators.cafe import CAFE
        from cafelearn.estimators.tabular import TabularCAFE

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
        estimator = TabularCAFE(
            CAFE(
                numbers_of_clusters(clusters),
                n_components=components,
                extractor=extractor.value,
                n_jobs=jobs,
                random_state=seed,
                **method,
            ),
            impute=impute.value if impute else None,
            categorical=list(category or ()),
            numeric=list(numeric or ()),
            drop=list(drop or ()),
            id_column=row_id,
        )
        with computing(scheduler, jobs) if is_large else nullcontext():
            if is_large:
                fitted = fitting.fit_large(run, estimator, data, label, out, force)
            else:
                fitted = fitting.fit_table(run, estimator, data, reading, label, out, force)
            fitting.tell(run, fitted)
            files = {} if out is None else {"features": out}
            files |= _write(fitted, data, model, report, profile, force)
        run.facts["files"] = files
        for what, path in files.items():
            run.say(f"Wrote the {what} to {path}")


def _check_files(out, model, report, profile, force, data, extractor, scheduler):
    """Check all files before the computation; return whether the data is read with Dask."""
    from cafelearn.cli.parts import check_features, check_scheduler
    from cafelearn.cli.writing import check_outputs, kind_of
    from cafelearn.files.atomic import MODEL_SUFFIXES, PAGE_SUFFIXES, check_suffix

    need = options.need
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
        for package in ("jinja2", "matplotlib"):
            need(package, "--report", "report")
    return is_large


def _write(fitted, data, model, report, profile, force):
    """Write the profiles, the model and the report; return a dict of the files written."""
    from cafelearn.cli.writing import write_table
    from cafelearn.files.models import save_model

    files = {}
    if profile is not None:
        files["profile"] = write_table(fitted.profile, profile, force)
    if model is not None:
        files["model"] = save_model(fitted.estimator, model, force)
    if report is not None:
        files["report"] = fitting.write_report(fitted, data, report, force)
    return files
