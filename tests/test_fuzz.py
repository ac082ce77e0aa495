"""One minute of the fuzzer: the corpus of past failures, and new cases by turns."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*options):
    return subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *options], capture_output=True, text=True, cwd=ROOT
    )


def test_a_minute_of_fuzzing_finds_nothing():
    # The same cases on any machine, as far as it comes in a minute.
    done = run("--minutes", "1", "--seed", "18", "--cases", "1000")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith(": 0 with findings")


def test_a_finding_is_reported_with_its_case():
    """Fewer rows than clusters are refused, which the fuzzer counts as a finding."""
    case = (
        '{"what": "fits", "seed": 1, "kind": "normal", "rows": 3, "columns": 1, '
        '"dtype": "float64", "weights": "unweighted", "n_clusters": 5, "p": 2.0, '
        '"offset": "mean", "weighting": "cluster", "init": "random", "n_jobs": 1}'
    )
    done = run("--case", case)
    assert done.returncode == 1
    assert "FOUND raises ValueError" in done.stdout
    assert "n_samples=3, n_clusters=5" in done.stdout
    assert "python -m tests.fuzz --case" in done.stdout


def test_damaged_files_on_their_own():
    done = run("--only", "files", "--cases", "60", "--seed", "5", "--workers", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    counts = re.findall(r"(\d+) (models|tables|fits) (refused|loaded|read|fitted)", done.stdout)
    # 30 new ones, and one of the corpus.
    assert sum(int(count) for count, what, _ in counts if what == "models") == 31
    assert {what for _, what, _ in counts} == {"models", "tables"}


@pytest.fixture
def workers(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return pytest.importorskip("tests.fuzz.workers")


def test_a_crash_is_a_finding(workers):
    worker = workers.Worker()
    try:
        outcome, findings = worker.run({"what": "nothing of the kind"})
        assert outcome == "crashed"
        assert findings == ["crashes with code 1: KeyError: 'nothing of the kind'"]
    finally:
        worker.close()


def test_a_hang_is_a_finding(workers, monkeypatch):
    monkeypatch.setattr(workers, "FIRST_SECONDS", 0.01)
    worker = workers.Worker()
    try:
        outcome, findings = worker.run({"what": "tables", "how": "bytes", "seed": 1, "file": 0})
        assert (outcome, findings) == ("hung", ["hangs: no answer within 0.01 seconds"])
    finally:
        worker.close()
