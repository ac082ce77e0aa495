"""Functions shared by the scripts that publish results."""

import argparse
import gzip
import io
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "docs" / "results"


def directories(description):
    """Parse the command line; return the directories to read from and to write to."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("directory", type=Path, help="directory of runs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="directory to write to")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    return arguments.directory, arguments.out


def write_runs(results, order, columns, path):
    """Write the runs, sorted, as gzipped CSV without a date: equal runs give equal files."""
    results = results.sort_values(order, ignore_index=True)[columns]
    for name in ("seconds", "sweep_seconds"):
        if name in columns:
            results[name] = results[name].round(4)
    text = io.StringIO()
    results.to_csv(text, index=False, lineterminator="\n")
    path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def save(figure, path):
    """Write a figure without the version of matplotlib in its metadata."""
    figure.savefig(path, dpi=110, metadata={"Software": None})
