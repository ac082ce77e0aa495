"""The committed results of the full grid: complete, and what this code computes."""

from pathlib import Path

import numpy as np
import pytest

from reproduction.paper.compare import compare, summary
from reproduction.paper.plan import METHODS, Plan, Sample, Settings
from reproduction.paper.run import GRID, find_sweep, noisy_data, read_results
from reproduction.paper.tables import render
from reproduction.runs.experiment import libraries

RESULTS = Path(__file__).parents[2] / "docs" / "results"
EXACT = ("pca", "cafe+pca", "kmeans", "mwk-means", "cafe-centroid+pca")
# The sixth version of every data set at a strong and a weak noise.
SAMPLES = [
    Sample(dataset, level, scale, 5)
    for dataset in Plan().datasets
    for level, scale in ((0.2, 1.0), (0.4, 5.0))
]


@pytest.fixture(scope="module")
def grid():
    return read_results(RESULTS / "grid.csv.gz")


def cells(grid):
    return grid.set_index(["dataset", "noise_level", "noise_scale", "version", "method"])


def test_the_grid_is_complete(grid):
    wanted = {(*sample, method) for sample in Plan().samples() for method in METHODS}
    assert len(grid) == len(wanted) == 11_880
    assert set(cells(grid).index) == wanted
    assert (grid.status == "done").all()
    assert grid.ari.between(-0.5, 1).all()
    assert (grid.seconds > 0).all()
    assert (grid.seconds >= grid.sweep_seconds).all()


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_a_small_grid_gives_the_committed_numbers(grid, sample):
    """Bit for bit with the same libraries; else the means agree, see the next test."""
    rows = cells(grid).loc[tuple(sample)]
    if rows.libraries.iloc[0] != libraries():
        pytest.skip(f"these numbers are of {rows.libraries.iloc[0]}, this is {libraries()}")
    data, found = noisy_data(sample), find_sweep(sample, Settings())
    for method in EXACT:
        record = GRID.run(sample, method, Settings(), found, data)
        assert record.ari == rows.loc[method, "ari"], method
    assert found.p == rows.loc["mwk-means", "p"]


def test_the_means_of_a_small_grid_are_near_the_committed_ones(grid):
    """Whatever the libraries."""
    samples = [Sample("iris", 0.4, 2.0, version) for version in range(8)]
    ours = {method: [] for method in EXACT}
    for sample in samples:
        data, found = noisy_data(sample), find_sweep(sample, Settings())
        for method in EXACT:
            ours[method].append(GRID.run(sample, method, Settings(), found, data).ari)
    for method in EXACT:
        theirs = [cells(grid).loc[(*sample, method), "ari"] for sample in samples]
        assert np.mean(ours[method]) == pytest.approx(np.mean(theirs), abs=0.02), method


def test_the_published_files_are_of_these_runs(grid):
    assert (RESULTS / "comparison.txt").read_text() == summary(compare(grid)) + "\n"
    for format, suffix in {"text": "txt", "md": "md", "csv": "csv"}.items():
        assert (RESULTS / f"tables.{suffix}").read_text() == render(grid, format)
