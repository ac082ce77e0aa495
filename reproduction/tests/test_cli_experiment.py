"""The commands paper, compare and theory, through the entry point."""

import io
import re
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser

import pandas as pd
import pytest

from reproduction.paper.run import GRID, read_results
from reproduction.tests.commanding import command

FILE = GRID.file
SMALL = [
    *("--quick", "--jobs", "1", "--datasets", "iris,glass", "--levels", "0.4"),
    *("--methods", "pca,cafe+pca,kmeans", "--scales", "1,5"),
]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    out = tmp_path_factory.mktemp("grid") / "runs"
    done = command("paper", *SMALL, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "runs: 24 of 24" in done.stderr
    assert "3 methods in 4 configurations, 2 versions per cell; no run failed" in done.stdout
    assert f"reproduction compare {out}" in done.stdout
    return out


def test_reproduce_writes_its_results(directory):
    names = {path.name for path in directory.iterdir()}
    tables = {f"tables.{suffix}" for suffix in ("txt", "md", "csv", "html")}
    assert tables | {FILE, "comparison.txt", "report.html"} <= names
    results = read_results(directory)
    assert len(results) == 2 * 3 * 2 * 2
    assert set(results.status) == {"done"}


def test_reproduce_again_has_nothing_to_do(directory):
    before = read_results(directory)
    done = command("paper", *SMALL, "--out", directory)
    assert done.returncode == 0
    assert "runs: 24 of 24" in done.stderr
    assert "failed" not in done.stderr
    assert read_results(directory).equals(before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--datasets", "irsi"], "irsi"),
        (["--methods", "tsne"], "tsne"),
        (["--levels", "much"], "--levels needs numbers such as 1,5, got 'much'"),
        (["--levels", "2"], "between 0 and 1"),
        (["--versions", "0"], "versions"),
        (["--jobs", "0"], "--jobs needs a number >= 1, or -1 for all processors; got 0"),
    ],
)
def test_bad_options_are_one_line(tmp_path, options, message):
    done = command("paper", "--out", tmp_path / "new", *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""
    assert not (tmp_path / "new").exists()


def test_other_settings_are_refused(directory):
    done = command("paper", "--out", directory, "--datasets", "iris")
    assert done.returncode == 2
    assert "other settings" in done.stderr


def test_interrupted_and_continued(tmp_path, directory):
    out = tmp_path / "runs"
    process = subprocess.Popen(
        [sys.executable, "-m", "reproduction", "paper", *SMALL, "--out", out],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None and not _begun(out):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "interrupted" in errors
    assert len(read_results(out)) < 24
    assert command("paper", *SMALL, "--out", out).returncode == 0
    assert read_results(out).ari.equals(read_results(directory).ari)


def _begun(out):
    try:
        return len(read_results(out)) > 0
    except OSError:
        return False


class Cells(HTMLParser):
    """Counts what is opened and closed."""

    def __init__(self):
        super().__init__()
        self.open, self.tables = [], 0

    def handle_starttag(self, tag, attributes):
        if tag not in ("br", "meta"):
            self.open.append(tag)
        self.tables += tag == "table"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_tables(directory):
    text = command("compare", directory).stdout
    assert "Mean ARI ± standard deviation" in text
    assert re.search(r"Iris +1 +ours", text)
    assert "paper" in text
    assert "| Iris" in command("compare", directory, "--format", "md").stdout
    assert command("compare", directory, "--format", "csv").stdout.startswith(
        "dataset,noise_level"
    )
    page = Cells()
    page.feed(command("compare", directory, "--format", "html").stdout)
    assert page.tables >= 1
    assert not page.open
    cells = pd.read_csv(io.StringIO(command("compare", directory, "--format", "csv").stdout))
    compared = cells[cells["published"].notna()]
    assert set(compared["method"]) == {"pca", "cafe+pca"}
    assert compared["z"].notna().all()


def test_tables_of_nothing(tmp_path):
    for source in (tmp_path, tmp_path / "nowhere"):
        done = command("compare", source)
        assert done.returncode == 2
        assert len(done.stderr.strip().splitlines()) == 1


def test_theory(tmp_path):
    done = command("theory", "--out", tmp_path / "theory", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    assert "All normalised objectives lie in [0, 1]." in done.stdout
    assert "20 of 20 claims hold in every fit they apply to (16,000 checks)." in done.stdout
    names = {path.name for path in (tmp_path / "theory").iterdir()}
    assert {"fits.csv", "claims.csv"} <= names
    assert len([name for name in names if name.startswith("figure-")]) == 4
