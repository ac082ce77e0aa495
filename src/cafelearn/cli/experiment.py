"""cafe reproduce, cafe tables, cafe theory: the paper's experiments and their results."""

import time
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cafelearn.cli import options
from cafelearn.cli.session import session

SECONDS = 30  # between two lines of progress
SUFFIXES = {"text": "txt", "md": "md", "latex": "tex", "csv": "csv", "html": "html"}


class Format(StrEnum):
    """How to write a table."""

    text = "text"
    md = "md"
    latex = "latex"
    csv = "csv"
    html = "html"


SEVERAL = "Several are separated by commas."
Names = Annotated[str | None, typer.Option(metavar="A,B", help=f"Only these. {SEVERAL}")]
Numbers = Annotated[str | None, typer.Option(metavar="X,Y", help=f"Only these. {SEVERAL}")]


def register(app):
    """Add the commands."""
    app.command("reproduce")(reproduce)
    app.command("tables")(tables)
    app.command("theory")(theory)


def reproduce(
    out: Annotated[
        Path, typer.Option(help="Directory of the runs; an interrupted one is continued.")
    ] = Path("reproduction"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Two versions and few restarts: minutes, not hours.")
    ] = False,
    datasets: Names = None,
    methods: Names = None,
    levels: Numbers = None,
    scales: Numbers = None,
    versions: Annotated[
        int | None,
        typer.Option(min=1, help="Noisy versions of each data set.", show_default="20"),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Worker processes; -1 for all processors.")
    ] = -1,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler to run on instead.")
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run those again that have failed.")
    ] = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
):
    """Run the paper's experiment, and lay its tables beside the published ones."""
    with session("reproduce", quiet, as_json, debug) as run:
        from cafelearn.experiments import QUICK, Plan, Settings, read_results, run_grid

        chosen = {
            "datasets": _split(datasets, str, "--datasets"),
            "methods": _split(methods, str, "--methods"),
            "levels": _split(levels, float, "--levels"),
            "scales": _split(scales, float, "--scales"),
            "versions": versions or (2 if quick else None),
        }
        plan = Plan(
            **{name: value for name, value in chosen.items() if value is not None},
            settings=QUICK if quick else Settings(),
        )
        run.note(f"{len(plan):,} runs on {len(plan.samples()):,} noisy data sets, in {out}.")
        with _watch(run) as update:
            end = run_grid(
                plan,
                out,
                n_jobs=jobs,
                scheduler=scheduler,
                retry_failed=retry_failed,
                progress=update,
            )
        if end.failed:
            run.remark(f"{end.failed} runs failed; --retry-failed runs them again.")
        files = _write_results(run, read_results(out), out)
        run.facts |= {
            "directory": out,
            "done": end.done,
            "failed": end.failed,
            "seconds": end.elapsed,
            "files": files,
        }
        run.say()
        run.say(f"Written to {out}: {', '.join(path.name for path in files)}")
        run.say(f"The tables: cafe tables {out}")


def tables(
    directory: Annotated[
        Path, typer.Argument(help="Directory of cafe reproduce, or a CSV file of runs.")
    ],
    format: Annotated[Format, typer.Option(help="How to write the tables.")] = Format.text,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
):
    """Print Tables 1 and 2 of the paper: ours beside the published, with z for each cell."""
    with session("tables", quiet, as_json, debug) as run:
        from cafelearn.experiments import read_results
        from cafelearn.experiments.compare import against_published
        from cafelearn.experiments.tables import render

        results = read_results(directory)
        run.facts["cells"] = against_published(results).to_dict("records")
        for line in render(results, str(format)).splitlines():
            run.say(line)


def theory(
    out: Annotated[Path, typer.Option(help="Directory of the figures and tables.")] = Path(
        "theory"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the data and the starts.", min=0)] = 0,
    jobs: options.Jobs = -1,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
):
    """Draw the paper's Figures 1 and 2, and check every claim on all of their fits."""
    with session("theory", quiet, as_json, debug) as run:
        from cafelearn._files import atomic_path
        from cafelearn.cli.progress import note_compiling
        from cafelearn.experiments.theory_figures import draw_figures
        from cafelearn.experiments.theory_study import summary, theory_study

        note_compiling(run)
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


def _split(text, kind, option):
    """The values of an option such as --scales 1,5."""
    if text is None:
        return None
    try:
        return [kind(part.strip()) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option} needs numbers such as 1,5, got {text!r}.") from None


def _write_results(run, results, directory):
    """The tables in all formats, the comparison in words and the report."""
    from cafelearn._files import atomic_path
    from cafelearn.experiments.compare import compare, summary
    from cafelearn.experiments.tables import render

    words = summary(compare(results))
    texts = {"comparison.txt": words + "\n"}
    for format, suffix in SUFFIXES.items():
        texts[f"tables.{suffix}"] = render(results, format)
    files = []
    for name, text in texts.items():
        with atomic_path(directory / name, force=True) as path:
            path.write_text(text, encoding="utf-8")
        files.append(directory / name)
    try:
        from cafelearn.report import write_experiment_report

        # Those of cafe theory, if they were drawn into the same directory.
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


@contextmanager
def _watch(run):
    """Show the progress of a grid: a bar on a terminal, now and then a line elsewhere."""
    if run.quiet:
        yield None
        return
    if not run.is_terminal():
        yield _lines(run)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[words]}"))
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("runs", total=None, words="")
        yield lambda state: bar.update(
            task, completed=state.done, total=state.total, words=_words(state)
        )


def _lines(run):
    last = time.monotonic()

    def update(state):
        nonlocal last
        if time.monotonic() - last >= SECONDS or state.done == state.total:
            last = time.monotonic()
            run.note(f"{state.done:,} of {state.total:,} runs, {_words(state)}")

    return update


def _words(state):
    words = [f"{_span(state.elapsed)} so far"]
    if state.remaining is not None and state.done < state.total:
        words.append(f"{_span(state.remaining)} to go")
    if state.failed:
        words.append(f"{state.failed} failed")
    return ", ".join(words)


def _span(seconds):
    """Seconds as 1:02:03 or 2:03."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
