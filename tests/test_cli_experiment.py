"""cafe reproduce, cafe tables and cafe theory, through the entry point."""

import json
import re
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser

import pytest

from cafelearn.experiments import read_results
from cafelearn.experiments.store import FILE

SMALL = [
    *("--quick", "--jobs", "1", "--datasets", "iris,glass", "--levels", "0.4"),
    *("--methods", "pca,cafe+pca,kmeans", "--scales", "1,5"),
]


def cafe(*args, **options):
    return subprocess.run(
        [sys.executable, "-m", "cafelearn", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=300,
        **options,
    )


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    out = tmp_path_factory.mktemp("grid") / "runs"
    done = cafe("reproduce", *SMALL, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "runs: 24 of 24" in done.stderr
    assert "3 methods in 4 configurations, 2 versions per cell; no run failed" in done.stdout
    assert f"cafe tables {out}" in done.stdout
    return out


def test_reproduce_writes_its_results(directory):
    names = {path.name for path in directory.iterdir()}
    tables = {f"tables.{suffix}" for suffix in ("txt", "md", "tex", "csv", "html")}
    assert tables | {FILE, "comparison.txt", "report.html"} <= names
    results = read_results(directory)
    assert len(results) == 2 * 3 * 2 * 2
    assert set(results.status) == {"done"}


def test_reproduce_again_has_nothing_to_do(directory):
    before = read_results(directory)
    begin = time.monotonic()
    done = cafe("reproduce", *SMALL, "--out", directory, "--json")
    assert done.returncode == 0
    facts = json.loads(done.stdout)
    assert (facts["done"], facts["failed"]) == (24, 0)
    assert facts["seconds"] < time.monotonic() - begin
    assert read_results(directory).equals(before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--datasets", "irsi"], "irsi"),
        (["--methods", "tsne"], "tsne"),
        (["--levels", "much"], "--levels needs numbers such as 1,5, got 'much'"),
        (["--levels", "2"], "between 0 and 1"),
        (["--versions", "0"], "versions"),
    ],
)
def test_bad_options_are_one_line(tmp_path, options, message):
    done = cafe("reproduce", "--out", tmp_path / "new", *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""
    assert not (tmp_path / "new").exists()


def test_other_settings_are_refused(directory):
    done = cafe("reproduce", "--out", directory, "--datasets", "iris", "--quiet")
    assert done.returncode == 2
    assert "other settings" in done.stderr


def test_interrupted_and_continued(tmp_path, directory):
    out = tmp_path / "runs"
    process = subprocess.Popen(
        [sys.executable, "-m", "cafelearn", "reproduce", *SMALL, "--out", out],
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
    assert cafe("reproduce", *SMALL, "--out", out).returncode == 0
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
    text = cafe("tables", directory).stdout
    assert "Mean ARI ± standard deviation" in text
    assert re.search(r"Iris +1 +ours", text)
    assert "paper" in text
    assert "| Iris" in cafe("tables", directory, "--format", "md").stdout
    assert r"\begin{tabular}" in cafe("tables", directory, "--format", "latex").stdout
    assert cafe("tables", directory, "--format", "csv").stdout.startswith("dataset,noise_level")
    page = Cells()
    page.feed(cafe("tables", directory, "--format", "html").stdout)
    assert page.tables >= 1
    assert not page.open
    facts = json.loads(cafe("tables", directory, "--json").stdout)
    assert {cell["method"] for cell in facts["cells"]} == {"pca", "cafe+pca"}
    assert {"ours", "published", "z"} <= set(facts["cells"][0])


def test_tables_of_nothing(tmp_path):
    for source in (tmp_path, tmp_path / "nowhere"):
        done = cafe("tables", source)
        assert done.returncode == 2
        assert len(done.stderr.strip().splitlines()) == 1


def test_theory(tmp_path):
    done = cafe("theory", "--out", tmp_path / "theory", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    assert "All normalised objectives lie in [0, 1]." in done.stdout
    assert "20 of 20 claims hold in every fit they apply to (16,000 checks)." in done.stdout
    names = {path.name for path in (tmp_path / "theory").iterdir()}
    assert {"fits.csv", "claims.csv"} <= names
    assert len([name for name in names if name.startswith("figure-")]) == 4
