"""cafe reproduce, tables, study and theory: run experiments and show their results."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cafelearn.cli import options
from cafelearn.cli.running import (
    Names,
    Numbers,
    Out,
    Processes,
    RetryFailed,
    Scheduler,
    given,
    run_plan,
    split,
    write_texts,
)
from cafelearn.cli.session import session

SUFFIXES = {"text": "txt", "md": "md", "latex": "tex", "csv": "csv", "html": "html"}


class Format(StrEnum):
    """Format of a table."""

    text = "text"
    md = "md"
    latex = "latex"
    csv = "csv"
    html = "html"


def register(app):
    """Add the commands."""
    app.command("reproduce")(reproduce)
    app.command("tables")(tables)
    app.command("study")(study)
    app.command("theory")(theory)


def reproduce(
    out: Out = Path("reproduction"),
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Use two noisy versions of each data set and few starts; this takes minutes "
            "instead of hours.",
        ),
    ] = False,
    datasets: Names = None,
    methods: Names = None,
    levels: Numbers = None,
    scales: Numbers = None,
    versions: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of noisy versions of each data set.", show_default="20"
        ),
    ] = None,
    jobs: Processes = -1,
    scheduler: Scheduler = None,
    retry_failed: RetryFailed = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
):
    """Repeat the experiment of the paper and compare the results with the published tables."""
    with session("reproduce", quiet, as_json, debug) as run:
        from cafelearn.experiments import QUICK, Plan, Settings, read_results, run_grid

        chosen = given(
            datasets=split(datasets, str, "--datasets"),
            methods=split(methods, str, "--methods"),
            levels=split(levels, float, "--levels"),
            scales=split(scales, float, "--scales"),
            versions=versions or (2 if quick else None),
        )
        plan = Plan(**chosen, settings=QUICK if quick else Settings())
        run_plan(
            run,
            run_grid,
            plan,
            out,
            "noisy data sets",
            n_jobs=jobs,
            scheduler=scheduler,
            retry_failed=retry_failed,
        )
        files = _write_results(run, read_results(out), out)
        run.facts["files"] = files
        run.say()
        run.say(f"Written to {out}: {', '.join(path.name for path in files)}")
        run.say(f"To print the tables: cafe tables {out}")


def study(
    out: Out = Path("study"),
    datasets: Names = None,
    regimes: Names = None,
    methods: Names = None,
    tasks: Names = None,
    versions: Annotated[
        int | None,
        typer.Option(min=1, help="Largest number of versions of each data set."),
    ] = None,
    jobs: Processes = -1,
    scheduler: Scheduler = None,
    retry_failed: RetryFailed = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
):
    """Compare the labels and features of CAFE with those of other methods."""
    with session("study", quiet, as_json, debug) as run:
        from cafelearn.experiments import StudyPlan, read_study, run_study
        from cafelearn.experiments.answers_text import render, summarise

        plan = StudyPlan(
            **given(
                datasets=split(datasets, str, "--datasets"),
                regimes=split(regimes, str, "--regimes"),
                methods=split(methods, str, "--methods"),
                tasks=split(tasks, str, "--tasks"),
                versions=versions,
            )
        )
        run_plan(
            run,
            run_study,
            plan,
            out,
            "data sets and tasks",
            n_jobs=jobs,
            scheduler=scheduler,
            retry_failed=retry_failed,
        )
        results = read_study(out)
        run.facts["files"] = write_texts(out, {"study.md": render(results)})
        run.facts["tables"] = {}
        for title, table in summarise(results).items():
            run.facts["tables"][title] = table.reset_index().to_dict("records")
            _show_frame(run, title, table)
        run.say(f"Written to {out}: study.md")


def tables(
    directory: Annotated[
        Path, typer.Argument(help="Directory written by cafe reproduce, or a CSV file of runs.")
    ],
    format: Annotated[Format, typer.Option(help="Format of the tables.")] = Format.text,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
):
    """Print Tables 1 and 2 of the paper with the computed values, the published values and z.

    z is the difference of the two values divided by its standard error.
    """
    with session("tables", quiet, as_json, debug) as run:
        from cafelearn.experiments import read_results
        from cafelearn.experiments.compare import against_published
        from cafelearn.experiments.tables import render

        results = read_results(directory)
        run.facts["cells"] = against_published(results).to_dict("records")
        for line in render(results, str(format)).splitlines():
            run.say(line)


def theory(
    out: Annotated[Path, typer.Option(help="Directory for the figures and tables.")] = Path(
        "theory"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the data and the starts.", min=0)] = 0,
    jobs: options.Jobs = -1,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
):
    """Fit mwk-means to generated data as in the paper, and draw Figures 1 and 2.

    Every claim of the paper's theory is checked on each fit.
    """
    with session("theory", quiet, as_json, debug) as run:
        from cafelearn._compiling_note import note_compiling
        from cafelearn._files import atomic_path
        from cafelearn.experiments.theory_figures import draw_figures
        from cafelearn.experiments.theory_study import summary, theory_study

        note_compiling(run.note)
        out.mkdir(parents=True, exist_ok=True)
        study = theory_study(n_jobs=jobs, random_state=seed)
        files = [Path(path) for path in draw_figures(study, out)]
        for name, frame in {"fits": study.fits, "claims": study.claims}.items():
            with atomic_path(out / f"{name}.csv", force=True) as path:
                frame.to_csv(path, index=name == "claims")
            files.append(out / f"{name}.csv")
        for line in summary(study).splitlines():
            run.say(line)
        run.say()
        run.say(f"Written to {out}: {', '.join(path.name for path in files)}")
        run.facts |= {"holds": study.holds, "fits": len(study.fits), "files": files}
    if not study.holds:
        raise typer.Exit(1)


def _write_results(run, results, directory):
    """Write the tables in all formats, the comparison and the report; return the files."""
    from cafelearn.experiments.compare import compare, summary
    from cafelearn.experiments.tables import render

    words = summary(compare(results))
    texts = {"comparison.txt": words + "\n"}
    for format, suffix in SUFFIXES.items():
        texts[f"tables.{suffix}"] = render(results, format)
    files = write_texts(directory, texts)
    try:
        from cafelearn.report import write_experiment_report

        # Include the figures of cafe theory if they are in the same directory.
        figures = {path.stem: path for path in sorted(directory.glob("figure-*.png"))}
        files.append(
            write_experiment_report(
                results, directory / "report.html", figures=figures, force=True
            )
        )
    except ImportError as error:
        run.remark(str(error))
    for line in words.splitlines():
        run.say(line)
    run.facts["comparison"] = words
    return files


def _show_frame(run, title, frame):
    """Show a data frame of numbers as a table."""
    from cafelearn.cli.tables import make_table, plain

    table = make_table(frame.index.name or "", *(f">{name}" for name in frame.columns))
    for name, row in frame.iterrows():
        cells = ("" if value != value else f"{value:.3f}" for value in row)
        table.add_row(plain(name), *cells)
    run.show(title, table)
