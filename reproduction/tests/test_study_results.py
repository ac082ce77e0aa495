"""The committed results of the study: complete, above the bars, and what this code computes."""

from pathlib import Path

import pandas as pd
import pytest
from benchmarks import missing

from reproduction.runs.experiment import libraries
from reproduction.study import plan as study_plan
from reproduction.study.plan import STUDY_METHODS, StudyPlan, StudySample, StudySettings
from reproduction.study.rivals import missing_method
from reproduction.study.run import ACCURACIES, STUDY, read_study
from reproduction.study.text import render
from reproduction.study.verdicts import must_hold

RESULTS = Path(__file__).parents[2] / "docs" / "results"
KEY = list(STUDY.key())
# Small sets, so that all methods take seconds.
SAMPLES = [
    StudySample(dataset, regime, version, task)
    for dataset, regime, version in (
        ("iris", "clean", 0),
        ("iris", "pairs 0.4/5", 1),
        ("glass", "columns", 1),
        ("teaching_assistant", "heavy", 1),
        ("wine", "outliers", 1),
    )
    for task in ("labels", "features")
]


# Number of requirements that `must_hold` lists.
N_BARS = 20


@pytest.fixture(scope="module")
def study():
    return read_study(RESULTS / "study.csv.gz")


def test_the_study_is_complete(study, monkeypatch):
    monkeypatch.setattr(study_plan, "missing", lambda name: "")
    monkeypatch.setattr(study_plan, "missing_method", lambda name: "")
    plan = StudyPlan()
    wanted = {
        (*sample, method) for sample in plan.samples() for method in plan.methods_of(sample)
    }
    assert len(study) == len(wanted) == len(plan)
    assert set(study[KEY].itertuples(index=False, name=None)) == wanted
    # R or StepMix may fail on some data, the others may not.
    failed = study[study.status != "done"]
    assert set(failed.method) <= {"mclust", "stepmix"}
    assert len(failed) < 0.01 * len(study)
    done = study[study.status == "done"]
    assert study.libraries.nunique() == 1
    assert (done.seconds > 0).all()
    labels, features = done[done.task == "labels"], done[done.task == "features"]
    assert labels.ari.between(-0.5, 1).all()
    assert features[list(ACCURACIES)].stack().between(0, 1).all()
    assert (labels[labels.method == "cafe"].choice != "").all()


def test_the_noise_does_not_leak(study):
    trivial = study[study.method == "trivial"].pivot_table("ari", "dataset", "regime")
    for regime in trivial.columns.drop(["clean", "generated"]):
        assert (trivial[regime] - trivial["clean"]).max() < 0.05, regime


@pytest.mark.parametrize("place", range(N_BARS))
def test_bars(study, place):
    """Each number that `must_hold` lists."""
    bars = must_hold(study)
    assert len(bars) == N_BARS
    bar = bars.iloc[place]
    assert bar.holds, f"{bar.what}: {bar.value:.4f} is below {bar.bar:g}"


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_a_few_cases_give_the_committed_numbers(study, sample):
    """Bit for bit with the same libraries."""
    rows = study.set_index(KEY).loc[tuple(sample)]
    if rows.libraries.iloc[0] != libraries():
        pytest.skip(f"these numbers are of {rows.libraries.iloc[0]}, this is {libraries()}")
    names = ["ari"] if sample.task == "labels" else list(ACCURACIES)
    records = []
    names_run = [name for name in STUDY_METHODS[sample.task] if name in rows.index]
    methods = [name for name in names_run if not missing_method(name)]
    STUDY.run_sample(sample, methods, StudySettings(), records.append)
    for record in records:
        row = rows.loc[record.method]
        assert [getattr(record, name) for name in names] == row[names].tolist(), record.method
        assert (record.choice, record.findings) == (row.choice, row.findings), record.method


def test_the_published_tables_are_of_these_runs(study):
    assert (RESULTS / "study.md").read_text(encoding="utf-8") == render(study)


def test_the_published_comparison_of_missing_values_is_of_its_numbers():
    table = pd.read_csv(RESULTS / "missing.csv")
    assert (RESULTS / "missing.md").read_text(encoding="utf-8") == missing.render(table)
    # The bar: above the best imputation, or within 0.01 of it with the reason on the page.
    means = table.query("kind == 'random' and share == 0.2").mean(numeric_only=True)
    assert means["native"] > means[list(missing.IMPUTERS)].max() - 0.01
