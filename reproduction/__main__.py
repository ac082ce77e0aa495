"""Run the experiments: python -m reproduction paper | study | compare | theory."""

import argparse
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path

from cafelearn.base.progress import Bar, Lines, span
from cafelearn.cli.session import _interrupts_heard
from cafelearn.diagnosis import DiagnosisWarning
from cafelearn.files.atomic import atomic_path
from reproduction.runs.pool import WorkersLost

SECONDS = 30  # between two lines of progress
SUFFIXES = {"text": "txt", "md": "md", "csv": "csv", "html": "html"}


def main(arguments=None):
    """Run a command and return its exit code; report errors in one line."""
    options = make_parser().parse_args(arguments)
    command = f"reproduction {options.command.__name__}"
    try:
        if getattr(options, "jobs", 1) == 0:
            raise ValueError("--jobs needs a number >= 1, or -1 for all processors; got 0.")
        with _interrupts_heard():
            return options.command(options)
    except KeyboardInterrupt:
        sys.stderr.write(f"{command}: interrupted\n")
        return 130
    except (ValueError, OSError, ImportError, WorkersLost) as error:
        sys.stderr.write(f"{command}: {' '.join(str(error).split())}\n")
        return 2 if isinstance(error, ValueError | FileNotFoundError) else 1


def make_parser():
    """Make the parser of the command line."""
    parser = argparse.ArgumentParser(prog="python -m reproduction")
    commands = parser.add_subparsers(required=True, metavar="command")
    for command in (paper, study, compare, theory):
        words = command.__doc__.splitlines()[0]
        added = commands.add_parser(command.__name__, help=words, description=words)
        added.set_defaults(command=command)
        if command in (paper, study):
            _add_run_options(added, command)
        if command is compare:
            added.add_argument("runs", type=Path, help="directory of paper, or a CSV file")
            added.add_argument("--format", choices=SUFFIXES, default="text")
        if command is theory:
            added.add_argument("--out", type=Path, default=Path("build/theory"))
            added.add_argument("--seed", type=int, default=0)
            added.add_argument("-j", "--jobs", type=int, default=-1, help="threads")
    return parser


def _add_run_options(parser, command):
    out = Path("build") / command.__name__
    parser.add_argument("--out", type=Path, default=out, help="directory; resumed if it exists")
    lists = {
        paper: ("datasets", "methods", "levels", "scales"),
        study: ("datasets", "regimes", "methods", "tasks"),
    }
    for name in lists[command]:
        parser.add_argument(f"--{name}", metavar="A,B", help="run only these")
    if command is paper:
        parser.add_argument("--quick", action="store_true", help="two versions and few starts")
    parser.add_argument("--versions", type=int, help="number of versions of each data set")
    parser.add_argument("-j", "--jobs", type=int, default=-1, help="processes; -1: all cores")
    parser.add_argument("--scheduler", help="address of a Dask scheduler, instead of processes")
    parser.add_argument("--retry-failed", action="store_true", help="repeat failed runs")


def paper(options):
    """Repeat the experiment of the paper and compare the results with its tables."""
    from reproduction.paper.compare import compare, summary
    from reproduction.paper.plan import QUICK, Plan, Settings
    from reproduction.paper.report import write_report
    from reproduction.paper.run import read_results, run_grid
    from reproduction.paper.tables import render

    plan = Plan(
        **_given(
            datasets=_split(options.datasets, str, "--datasets"),
            methods=_split(options.methods, str, "--methods"),
            levels=_split(options.levels, float, "--levels"),
            scales=_split(options.scales, float, "--scales"),
            versions=2 if options.quick and options.versions is None else options.versions,
        ),
        settings=QUICK if options.quick else Settings(),
    )
    _run(run_grid, plan, "noisy data sets", options)
    results = read_results(options.out)
    words = summary(compare(results))
    texts = {"comparison.txt": words + "\n"}
    texts |= {f"tables.{suffix}": render(results, form) for form, suffix in SUFFIXES.items()}
    _write(options.out, texts)
    with atomic_path(options.out / "report.html", force=True) as path:
        write_report(results, path)
    _say(words)
    _say(f"\nWritten to {options.out}: {', '.join(texts)}, report.html")
    _say(f"To print the tables: python -m reproduction compare {options.out}")
    return 0


def study(options):
    """Compare the labels and features of CAFE with those of other methods."""
    from reproduction.study.plan import StudyPlan
    from reproduction.study.run import read_study, run_study
    from reproduction.study.text import render, summarise

    names = ("datasets", "regimes", "methods", "tasks")
    chosen = {name: _split(getattr(options, name), str, f"--{name}") for name in names}
    plan = StudyPlan(**_given(**chosen, versions=options.versions))
    _run(run_study, plan, "data sets and tasks", options)
    results = read_study(options.out)
    _write(options.out, {"study.md": render(results)})
    for title, table in summarise(results).items():
        _say(f"{title}\n{table.to_string(float_format='{:.3f}'.format, na_rep='')}\n")
    _say(f"Written to {options.out}: study.md")
    return 0


def compare(options):
    """Print the tables of the paper with the computed values, the published values and z."""
    from reproduction.paper.run import read_results
    from reproduction.paper.tables import render

    _say(render(read_results(options.runs), options.format).rstrip("\n"))
    return 0


def theory(options):
    """Repeat the study behind the paper's Figures 1 and 2, and check its claims on each fit."""
    from reproduction.theory.figures import draw_figures
    from reproduction.theory.fits import summary, theory_study

    # Without an offset, weights can be extreme.
    warnings.simplefilter("ignore", DiagnosisWarning)
    found = theory_study(n_jobs=options.jobs, random_state=options.seed)
    draw_figures(found, options.out)
    texts = {"fits.csv": found.fits.to_csv(index=False), "claims.csv": found.claims.to_csv()}
    _write(options.out, texts)
    _say(summary(found))
    _say(f"\nWritten to {options.out}: {', '.join(texts)} and the figures")
    return 0 if found.holds else 1


def _run(runner, plan, samples, options):
    """Run a plan, show the progress, and report failures."""
    note = f"{len(plan):,} runs on {len(plan.samples()):,} {samples}, in {options.out}."
    sys.stderr.write(note + "\n")
    with _progress() as update:
        end = runner(
            plan,
            options.out,
            n_jobs=options.jobs,
            scheduler=options.scheduler,
            retry_failed=options.retry_failed,
            progress=update,
        )
    if end.failed:
        sys.stderr.write(f"{end.failed} runs failed; --retry-failed repeats them.\n")


@contextmanager
def _progress():
    """Yield a function that shows progress: a bar on a terminal, else occasional lines."""
    if sys.stderr.isatty():
        display = Bar(sys.stderr)
    else:
        display = Lines(lambda line: sys.stderr.write(line + "\n"), seconds=SECONDS)
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


def _given(**options):
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def _split(text, kind, option):
    """Parse the value of an option such as --scales 1,5; return None if it was not given."""
    if text is None:
        return None
    try:
        return [kind(part.strip()) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option} needs numbers such as 1,5, got {text!r}.") from None


def _write(directory, texts):
    """Write text files atomically."""
    for name, text in texts.items():
        with atomic_path(directory / name, force=True) as path:
            path.write_text(text, encoding="utf-8")


def _say(text):
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
