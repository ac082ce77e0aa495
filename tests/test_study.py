"""The study of the answers: its plan, its data and its runs."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from cafelearn import CAFE, datasets
from cafelearn.diagnosis import DiagnosisWarning, Finding
from cafelearn.experiments import (
    STUDY_METHODS,
    Case,
    Sample,
    StoreError,
    StudyPlan,
    StudySettings,
    case_data,
    noisy_data,
    read_results,
    read_study,
    run_study,
)
from cafelearn.experiments import study_run as running
from cafelearn.experiments.progress import Clock
from cafelearn.experiments.study_plan import StudySample, count_versions
from cafelearn.experiments.study_run import ACCURACIES, STUDY, StudyRecord, split

TINY = StudySettings(n_init=2)
RUNS = [(task, method) for task, methods in STUDY_METHODS.items() for method in methods]


def small_plan(**changes):
    options = {
        "datasets": ["iris"],
        "regimes": ["clean", "columns", "pairs 0.4/5"],
        "versions": 2,
        "settings": TINY,
    }
    return StudyPlan(**{**options, **changes})


def scores(directory):
    """All that does not depend on the clock."""
    return read_study(directory).drop(columns="seconds")


# The plan


def test_the_whole_plan():
    plan = StudyPlan()
    samples = plan.samples()
    assert len(samples) == len(set(samples))
    labels = [sample for sample in samples if sample.task == "labels"]
    assert len(labels) == 9 * (3 + 6 * 20 + 3 * 5) + 2 * (3 + 3 * 5) + 5 + 3 * 20
    features = [sample for sample in samples if sample.task == "features"]
    assert len(features) == 9 * 10 * 3 + 2 * 4 * 3 + 5 + 3 * 3
    # The paper's settings under the paper's noise are in the grid.
    assert len(plan) == 8 * len(labels) + 5 * len(features) - 9 * 6 * 20
    assert {sample.version for sample in samples[:210]} == {0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"datasets": ["irsi"]}, "irsi"),
        ({"regimes": ["loud"]}, "loud"),
        ({"methods": ["tsne"]}, "tsne"),
        ({"tasks": []}, "at least one"),
        ({"versions": 0}, "versions"),
        (
            {"datasets": ["digits"], "regimes": ["heavy"]},
            "no data set among digits has a regime among heavy",
        ),
        ({"methods": ["pca"], "tasks": ["labels"]}, "task among labels has a method among pca"),
    ],
)
def test_bad_plans(options, message):
    with pytest.raises(ValueError, match=message):
        StudyPlan(**options)


def test_versions_of_a_case():
    assert count_versions("iris", "clean", "features") == 3
    assert count_versions("digits", "heavy", "labels") == 0
    assert count_versions("counts", "generated", "labels") == 20


def test_seeds_depend_on_the_name_alone():
    sample = StudySample("iris", "clean", 1, "labels")
    # Pinned: another number would be another study.
    assert (
        sample.seed("cafe").generate_state(1)[0]
        == Case("iris", "clean", 1).seed("labels/cafe").generate_state(1)[0]
    )
    names = {str(sample) for sample in StudyPlan().samples()}
    assert len(names) == len(StudyPlan().samples())


def test_regimes_by_their_definition():
    clean = case_data(Case("glass", "clean", 0))
    n, m = clean.X.shape
    pairs = case_data(Case("glass", "pairs 0.4/5", 3))
    assert np.array_equal(pairs.X, noisy_data(Sample("glass", 0.4, 5.0, 3)).X)
    columns = case_data(Case("glass", "columns", 0)).X
    assert columns.shape == (n, 2 * m)
    assert np.abs(columns[:, m:]).max() <= 0.5
    assert np.abs(np.corrcoef(columns.T)[:m, m:]).max() < 0.4
    scaled = columns[:, :m]
    zeros = case_data(Case("glass", "zeros", 0)).X
    changed = zeros != scaled
    assert np.array_equal(zeros[changed], np.broadcast_to(scaled.min(axis=0), (n, m))[changed])
    assert 0.1 < changed.mean() < 0.25
    heavy = case_data(Case("glass", "heavy", 0)).X - scaled
    assert 0.25 < (heavy != 0).mean() < 0.55
    assert np.abs(heavy).max() > 5 * np.median(np.abs(heavy[heavy != 0]))
    with pytest.raises(ValueError, match="got 'loud'"):
        case_data(Case("glass", "loud", 0))


@pytest.mark.parametrize("name", ["categories", "counts", "subspaces"])
def test_generators_give_every_class_rows(name):
    for version in range(5):
        X, y = case_data(Case(name, "generated", version))
        assert np.isfinite(X).all()
        assert np.unique(y).tolist() == list(range(y.max() + 1))
        assert np.bincount(y).min() >= 2
        assert np.array_equal(X, case_data(Case(name, "generated", version)).X)


# Runs


@pytest.mark.parametrize(("task", "method"), RUNS)
def test_every_method_gives_a_record(task, method):
    record = STUDY.run(StudySample("iris", "columns", 0, task), method, TINY)
    assert record.status == "done", record.traceback
    assert (record.n_rows, record.n_features, record.n_classes) == (150, 8, 3)
    assert record.seconds > 0
    assert bool(record.choice) == (method == "cafe")
    assert "scikit-learn==" in record.libraries
    if task == "labels":
        assert -1 <= record.ari <= 1
        assert record.knn_5 is None
    else:
        assert record.ari is None
        assert all(1 / 3 < getattr(record, name) <= 1 for name in ACCURACIES)


def test_cafe_and_hindsight_are_of_one_fit():
    sample = StudySample("iris", "pairs 0.4/5", 0, "labels")
    X, y = case_data(sample.case)
    fit = STUDY.share(sample, TINY, STUDY.load(sample))
    aris = [adjusted_rand_score(y, labels) for labels in fit.candidates]
    chosen = STUDY.run(sample, "cafe", TINY)
    assert chosen.ari in aris
    assert chosen.ari == adjusted_rand_score(y, fit.labels)
    assert STUDY.run(sample, "hindsight", TINY).ari == max(aris)
    assert "scaling" in chosen.choice
    # The defaults of CAFE, but for the starts and the seed.
    assert len(aris) == len(CAFE(3, n_init=1, random_state=0).fit(X).models_)


def test_halves():
    """Disjoint, of equal size in every class, with labels for some rows of the first."""
    y = datasets.load("ecoli").target
    first, second, labelled = split(Case("ecoli", "clean", 0), y)
    assert np.array_equal(np.sort(np.concatenate([first, second])), np.arange(len(y)))
    in_first, in_second = np.bincount(y[first]), np.bincount(y[second])
    assert set(in_first - in_second) <= {0, 1}
    assert set(labelled[5]) <= set(labelled[20]) <= set(first)
    for n, rows in labelled.items():
        assert np.array_equal(np.bincount(y[rows]), np.minimum(in_first, n))
    other = split(Case("ecoli", "clean", 1), y)
    assert not np.array_equal(first, other.first)


def test_accuracy_of_nearest_neighbours_by_definition():
    sample = StudySample("iris", "clean", 0, "features")
    X, y = case_data(sample.case)
    halves = split(sample.case, y)
    scaled = StandardScaler().fit(X[halves.first]).transform(X)
    rows, right = halves.labelled[20], 0
    for row in halves.second:
        distances = ((scaled[rows] - scaled[row]) ** 2).sum(axis=1)
        votes = np.bincount(y[rows[np.argsort(distances)[:3]]], minlength=3)
        right += votes.argmax() == y[row]
    record = STUDY.run(sample, "raw-standard", TINY)
    assert record.knn_20 == pytest.approx(right / len(halves.second), abs=0.02)


def test_the_study_does_not_depend_on_workers_or_interruptions(tmp_path):
    plan = small_plan()
    end = run_study(plan, tmp_path / "one")
    assert (end.done, end.failed) == (len(plan), 0)
    run_study(plan, tmp_path / "two", n_jobs=2)
    pd.testing.assert_frame_equal(scores(tmp_path / "one"), scores(tmp_path / "two"))

    def stop(state):
        if state.done > 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(plan, tmp_path / "cut", progress=stop)
    assert 20 < len(scores(tmp_path / "cut")) < len(plan)
    run_study(plan, tmp_path / "cut")
    pd.testing.assert_frame_equal(scores(tmp_path / "one"), scores(tmp_path / "cut"))


def test_a_failed_run_is_a_record(tmp_path, monkeypatch):
    plan = small_plan(regimes=["clean"], versions=1, methods=["gmm-diag", "kmeans-range"])

    class Broken:
        def __init__(self, *args, **options):
            raise RuntimeError("no mixture today")

    monkeypatch.setattr(running, "GaussianMixture", Broken)
    assert run_study(plan, tmp_path).failed == 1
    results = read_study(tmp_path).set_index("method")
    assert results.status.to_dict() == {"gmm-diag": "failed", "kmeans-range": "done"}
    assert "no mixture today" in results.traceback["gmm-diag"]
    monkeypatch.undo()
    run_study(plan, tmp_path, retry_failed=True)
    assert set(read_study(tmp_path).status) == {"done"}


def test_data_that_cannot_be_made_fails_all_of_its_runs(tmp_path, monkeypatch):
    def broken(case):
        raise RuntimeError("no data today")

    monkeypatch.setattr(running, "case_data", broken)
    running._size.cache_clear()
    plan = small_plan(regimes=["clean"], versions=1)
    assert run_study(plan, tmp_path).failed == len(plan) == 13
    assert read_study(tmp_path).traceback.str.contains("no data today").all()


def test_a_severe_finding_is_no_failure(monkeypatch):
    class Doubtful(CAFE):
        diagnosis_ = (Finding("collapsed", "severe", "!"), Finding("offset", "note", "?"))

        def fit(self, X, y=None):
            warnings.warn("doubtful", DiagnosisWarning, stacklevel=2)
            return super().fit(X)

    monkeypatch.setattr(running, "CAFE", Doubtful)
    record = STUDY.run(StudySample("iris", "clean", 0, "labels"), "cafe", TINY)
    assert (record.status, record.findings) == ("done", "collapsed,offset")
    assert "DiagnosisWarning: doubtful" in record.warnings


def test_directories_of_the_grid_and_of_the_study_are_told_apart(tmp_path):
    plan = small_plan(regimes=["clean"], methods=["hdbscan"], versions=1)
    run_study(plan, tmp_path)
    with pytest.raises(StoreError, match="no runs"):
        read_results(tmp_path)
    with pytest.raises(StoreError, match="other settings"):
        run_study(small_plan(settings=StudySettings()), tmp_path)


def test_time_to_finish_counts_the_shared_fit_once():
    now = [0.0]
    plan = small_plan(methods=["cafe", "hindsight"], regimes=["clean"], tasks=["labels"])
    todo = [(sample, plan.methods_of(sample)) for sample in plan.samples()]
    clock = Clock(todo, len(plan), now=lambda: now[0], experiment=STUDY)
    now[0] += 10
    state = clock.count(
        StudyRecord(*todo[0][0], method, "done", seconds=10.0) for method in todo[0][1]
    )
    assert (state.done, state.total) == (2, 4)
    assert state.remaining == pytest.approx(10)
