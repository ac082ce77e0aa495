"""Options and functions shared by the commands that run experiments."""

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from cafelearn._progress import Bar, Lines, span
from cafelearn.cli.options import check_jobs

SECONDS = 30  # between two lines of progress
SEVERAL = "Comma-separated."
Names = Annotated[str | None, typer.Option(metavar="A,B", help=f"Run only these. {SEVERAL}")]
Numbers = Annotated[str | None, typer.Option(metavar="X,Y", help=f"Run only these. {SEVERAL}")]
Out = Annotated[
    Path, typer.Option(help="Directory for the runs; an interrupted experiment is resumed.")
]
Processes = Annotated[
    int,
    typer.Option(
        "--jobs",
        "-j",
        help="Worker processes; -1 for all processors.",
        callback=check_jobs,
    ),
]
Scheduler = Annotated[
    str | None, typer.Option(help="Address of a Dask scheduler to use instead of processes.")
]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Repeat failed runs.")]


def run_plan(session, runner, plan, out, samples, **options):
    """Run a plan, store its runs in `out`, show the progress, and report failures.

    `samples` describes the samples of the plan in the message.
    """
    session.note(f"{len(plan):,} runs on {len(plan.samples()):,} {samples}, in {out}.")
    with _watch(session) as update:
        end = runner(plan, out, progress=update, **options)
    if end.failed:
        session.remark(f"{end.failed} runs failed; --retry-failed repeats them.")
    session.facts |= {
        "directory": out,
        "done": end.done,
        "failed": end.failed,
        "seconds": end.elapsed,
    }


def given(**options):
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def split(text, kind, option):
    """Parse the value of an option such as --scales 1,5; return None if it was not given."""
    if text is None:
        return None
    try:
        return [kind(part.strip()) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option} needs numbers such as 1,5, got {text!r}.") from None


def write_texts(directory, texts):
    """Write text files atomically; return their paths."""
    from cafelearn._files import atomic_path

    for name, text in texts.items():
        with atomic_path(directory / name, force=True) as path:
            path.write_text(text, encoding="utf-8")
    return [directory / name for name in texts]


@contextmanager
def _watch(run):
    """Yield a function that shows progress: a bar on a terminal, else occasional lines."""
    if run.quiet:
        yield None
        return
    if run.is_terminal():
        display = Bar(sys.stderr)
    else:
        display = Lines(run.note, seconds=SECONDS)
    try:
        yield lambda state: display(state.done, state.total, "runs", _words(state))
    finally:
        display.close()


def _words(state):
    words = [f"{span(state.elapsed)} so far"]
    if state.remaining is not None and state.done < state.total:
        words.append(f"{span(state.remaining)} to go")
    if state.failed:
        words.append(f"{state.failed} failed")
    return ", ".join(words)
