"""The command study through the entry point, and the script that publishes its results."""

import signal
import subprocess
import sys
import time

import pandas as pd
import pytest

from reproduction.study.run import read_study
from reproduction.study.text import render
from reproduction.tests.commanding import command

SCRIPT = [sys.executable, "-m", "scripts.publish_study"]
KEY = ["dataset", "regime", "version", "task", "method"]
SMALL = [
    *("--datasets", "iris,glass", "--regimes", "clean,columns", "--versions", "2"),
    *("--methods", "kmeans-range,hdbscan,pca,raw-range", "--jobs", "1"),
]


def scores(directory):
    """All that does not depend on the clock."""
    return read_study(directory).drop(columns="seconds")


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    out = tmp_path_factory.mktemp("study") / "runs"
    done = command("study", *SMALL, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "runs: 32 of 32" in done.stderr
    assert "Mean ARI of the labels" in done.stdout
    assert "hdbscan" in done.stdout
    return out


def test_the_command_writes_its_tables(directory):
    assert (directory / "study.md").read_text() == render(read_study(directory))


def test_the_command_again_has_nothing_to_do(directory):
    before = read_study(directory)
    done = command("study", *SMALL, "--out", directory)
    assert "runs: 32 of 32" in done.stderr
    assert "failed" not in done.stderr
    ranks = done.stdout.partition("Average ranks")[2].splitlines()
    assert ranks[3].split()[0] == "kmeans-range"
    assert read_study(directory).equals(before)


def test_the_command_interrupted_and_continued(tmp_path, directory):
    out = tmp_path / "runs"
    process = subprocess.Popen(
        [sys.executable, "-m", "reproduction", "study", *SMALL, "--out", out],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None and not _begun(out):
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert len(read_study(out)) < 32
    assert command("study", *SMALL, "--out", out).returncode == 0
    pd.testing.assert_frame_equal(scores(out), scores(directory))


def _begun(out):
    try:
        return len(read_study(out)) > 0
    except OSError:
        return False


def test_bad_options_are_one_line(tmp_path):
    done = command("study", "--out", tmp_path / "new", "--regimes", "loud")
    assert done.returncode == 2
    assert "loud" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "new").exists()


def test_the_script_publishes_the_same_files_again(tmp_path, directory):
    for name in ("one", "two"):
        done = subprocess.run(
            [*SCRIPT, directory, "--out", tmp_path / name],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files == ["answers-ranks.png", "answers-regimes.png", "study.csv.gz", "study.md"]
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    published = read_study(tmp_path / "one" / "study.csv.gz").sort_values(KEY)
    runs = read_study(directory).sort_values(KEY)
    assert (published.ari.to_numpy() == runs.ari.to_numpy())[runs.task == "labels"].all()
    assert (tmp_path / "one" / "study.md").read_text() == render(published)
