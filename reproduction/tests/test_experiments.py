"""The grid of experiments: the plan, reproducible runs, and recovery after failures."""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import psutil
import pytest
from sklearn.metrics import adjusted_rand_score

from cafelearn import CAFE, PAPER, datasets
from cafelearn.estimators.candidates import make_candidates, make_models
from reproduction.paper import run as running
from reproduction.paper.plan import METHODS, QUICK, Plan, Sample, Settings
from reproduction.paper.run import GRID, Record, find_sweep, noisy_data, read_results, run_grid
from reproduction.runs.progress import Clock
from reproduction.runs.store import Store, StoreError

FILE = GRID.file
TINY = Settings(n_init=2, kmeans_n_init=3)
CHEAP = ["pca", "cafe+pca", "kmeans", "mwk-means", "cafe-centroid+pca"]


def small_plan(**changes):
    options = {
        "datasets": ["iris", "glass"],
        "methods": CHEAP,
        "levels": [0.4],
        "scales": [1, 5],
        "versions": 2,
        "settings": TINY,
    }
    return Plan(**{**options, **changes})


def scores(directory):
    frame = read_results(directory)
    return {tuple(row[:5]): (row.status, row.ari) for row in frame.itertuples(index=False)}


# The plan


def test_the_whole_plan_is_the_papers():
    plan = Plan()
    assert len(plan.samples()) == len(set(plan.samples())) == 1080
    assert len(plan) == 1080 * 11
    assert plan.settings == Settings(50, 100, (1.1, 1.5, 2.0, 3.0))


def test_versions_come_last_so_that_a_part_of_the_grid_covers_every_cell():
    plan = Plan(versions=3)
    assert {sample.version for sample in plan.samples()[:54]} == {0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"datasets": ["irsi"]}, "irsi"),
        ({"methods": ["tsne"]}, "tsne"),
        ({"methods": []}, "at least one"),
        ({"levels": [1.2]}, "between 0 and 1"),
        ({"scales": [-1]}, "scales"),
        ({"versions": 0}, "versions"),
    ],
)
def test_bad_plans(options, message):
    with pytest.raises(ValueError, match=message):
        Plan(**options)


def test_seeds_depend_on_the_name_alone():
    sample = Sample("iris", 0.2, 1.0, 3)
    assert sample == Sample("iris", 0.2, 1, 3)
    assert str(sample) == str(Sample("iris", 0.2, 1, 3)) == "iris/0.2/1/3"
    # Pinned: another number would be another experiment.
    assert sample.seed("noise").generate_state(1)[0] == 3515086530
    states = {
        int(other.seed(purpose).generate_state(1)[0])
        for other in Plan().samples()
        for purpose in ("noise", "sweep", "pca")
    }
    assert len(states) == 3 * 1080


def test_noise_by_its_definition():
    """Scale, add N(0, sigma^2) at the chosen pairs alone, scale again."""
    sample = Sample("glass", 0.4, 2.0, 1)
    X, y, pairs = noisy_data(sample)
    raw = datasets.load("glass").data
    k, m = pairs.shape
    assert pairs.sum() == round(0.4 * k * m)
    clean = (raw - raw.mean(axis=0)) / np.ptp(raw, axis=0)
    # The second scaling is affine: the values that got no noise determine it.
    for v in range(m):
        kept = ~pairs[y, v]
        slope, shift = np.polyfit(clean[kept, v], X[kept, v], 1)
        np.testing.assert_allclose(X[kept, v], slope * clean[kept, v] + shift, atol=1e-12)
        noise = (X[~kept, v] - shift) / slope - clean[~kept, v]
        if len(noise) > 20:
            assert 0.5 < np.std(noise) / 2.0 < 1.5
    np.testing.assert_allclose(np.ptp(X, axis=0), 1, rtol=1e-12)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)


# Runs


def test_the_shared_sweep_is_cafes():
    sample = Sample("iris", 0.4, 2.0, 0)
    X, y, _ = noisy_data(sample)
    found = find_sweep(sample, TINY)
    seed = sample.seed("sweep")
    cafe = CAFE(3, **PAPER | {"n_init": 2, "scaling": None})
    # The same seeds for the models: what CAFE finds with the paper's settings.
    models = make_models(make_candidates(cafe), seed, n_clusters=3, n_init=2)
    matching = [model for model in models if model.p == found.p]
    assert len(matching) == 1
    np.testing.assert_array_equal(matching[0].fit(X).labels_, found.labels)
    np.testing.assert_array_equal(matching[0].feature_weights_, found.feature_weights)
    record = GRID.run(sample, "mwk-means", TINY)
    assert record.ari == adjusted_rand_score(y, found.labels)
    assert record.p == found.p
    assert record.k_found == 3
    assert record.seconds >= record.sweep_seconds > 0


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_a_record(method):
    record = GRID.run(Sample("iris", 0.2, 1.0, 0), method, QUICK)
    assert record.status == "done", record.traceback
    assert -1 <= record.ari <= 1
    assert 0 <= record.nmi <= 1
    assert record.k_found == 3
    assert "scikit-learn==" in record.libraries


def test_a_run_does_not_depend_on_order_or_workers(tmp_path):
    plan = small_plan()
    run_grid(plan, tmp_path / "one")
    run_grid(plan, tmp_path / "two", n_jobs=2)
    assert scores(tmp_path / "one") == scores(tmp_path / "two")
    assert len(scores(tmp_path / "one")) == len(plan)
    for sample in reversed(plan.samples()[:3]):
        for method in reversed(CHEAP):
            record = GRID.run(sample, method, TINY)
            assert scores(tmp_path / "one")[(*sample, method)] == ("done", record.ari)


def test_a_grid_grows_by_what_is_new(tmp_path):
    run_grid(small_plan(versions=1, methods=["pca"]), tmp_path)
    before = scores(tmp_path)
    seen = []
    run_grid(small_plan(methods=["pca", "kmeans"]), tmp_path, progress=seen.append)
    assert seen[0].done == len(before)
    assert seen[-1].done == seen[-1].total == len(scores(tmp_path))
    assert before.items() <= scores(tmp_path).items()


def test_a_failed_run_is_a_record_and_is_tried_again_on_request(tmp_path, monkeypatch):
    plan = small_plan(methods=["pca", "nmf", "kmeans"], versions=1)
    real = running.make_extractor

    def broken(name, *args, **options):
        if name == "nmf":
            raise RuntimeError("no factors today")
        return real(name, *args, **options)

    monkeypatch.setattr(running, "make_extractor", broken)
    assert run_grid(plan, tmp_path).failed == 4
    frame = read_results(tmp_path).set_index("method")
    assert set(frame.loc["nmf", "status"]) == {"failed"}
    assert frame.loc["nmf", "traceback"].str.contains("no factors today").all()
    assert set(frame.loc[["pca", "kmeans"], "status"]) == {"done"}
    monkeypatch.undo()
    run_grid(plan, tmp_path)
    assert (read_results(tmp_path).status == "failed").sum() == 4
    run_grid(plan, tmp_path, retry_failed=True)
    assert set(read_results(tmp_path).status) == {"done"}


def test_a_sweep_that_fails_fails_all_that_need_it(tmp_path, monkeypatch):
    def broken(*args, **options):
        raise RuntimeError("no sweep today")

    monkeypatch.setattr(running, "fit_models", broken)
    run_grid(small_plan(versions=1), tmp_path)
    status = read_results(tmp_path).groupby("method").status.unique()
    assert {m for m in CHEAP if list(status[m]) == ["failed"]} == {
        "cafe+pca",
        "mwk-means",
        "cafe-centroid+pca",
    }


def test_warnings_are_kept(monkeypatch):
    import warnings

    real = running.KMeans.fit_predict

    def loud(self, X):
        warnings.warn("mind\nthe gap", UserWarning, stacklevel=1)
        return real(self, X)

    monkeypatch.setattr(running.KMeans, "fit_predict", loud)
    assert GRID.run(Sample("iris", 0.2, 1.0, 0), "pca", TINY).warnings == (
        "UserWarning: mind the gap"
    )


# The store

SCRIPT = """
    from reproduction.paper.plan import Plan, Settings
    from reproduction.paper.run import run_grid
    if __name__ == "__main__":
        plan = Plan(["iris", "glass"], {methods}, [0.4], [1, 5], 4, Settings(2, 3))
        run_grid(plan, {directory!r}, n_jobs=2)
"""


def start_grid(directory, script):
    text = textwrap.dedent(SCRIPT).format(methods=CHEAP, directory=str(directory))
    script.write_text(text)
    return subprocess.Popen([sys.executable, str(script)], start_new_session=True)


def wait_for_runs(directory, number, process):
    # The kernels may have to be compiled first.
    for _ in range(6000):
        # The file may be there before its table.
        with contextlib.suppress(StoreError):
            if len(read_results(directory)) >= number:
                return
        assert process.poll() is None, "the grid ended too early"
        time.sleep(0.05)
    raise AssertionError("no runs after five minutes")


def test_kill_everything_in_mid_run_and_resume(tmp_path):
    plan = small_plan(versions=4)
    run_grid(plan, tmp_path / "whole")
    process = start_grid(tmp_path / "grid", tmp_path / "grid.py")
    wait_for_runs(tmp_path / "grid", 7, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = scores(tmp_path / "grid")
    assert 7 <= len(before) < len(plan)
    run_grid(plan, tmp_path / "grid")
    assert before.items() <= scores(tmp_path / "grid").items()
    assert scores(tmp_path / "grid") == scores(tmp_path / "whole")
    assert len(read_results(tmp_path / "grid")) == len(plan)


def test_a_worker_killed_in_mid_run_is_replaced(tmp_path):
    plan = small_plan(versions=4)
    run_grid(plan, tmp_path / "whole")
    process = start_grid(tmp_path / "grid", tmp_path / "grid.py")
    wait_for_runs(tmp_path / "grid", 7, process)
    workers = [
        child
        for child in psutil.Process(process.pid).children(recursive=True)
        if "resource_tracker" not in " ".join(child.cmdline())
    ]
    workers[0].kill()
    assert process.wait(timeout=120) == 0
    assert scores(tmp_path / "grid") == scores(tmp_path / "whole")


def test_a_full_disk_is_told_and_loses_nothing(tmp_path):
    """A limit on the size of files stands for the full disk."""
    run_grid(small_plan(versions=1, methods=["pca"]), tmp_path / "grid")
    before = scores(tmp_path / "grid")
    script = tmp_path / "grid.py"
    text = textwrap.dedent(SCRIPT).format(methods=CHEAP, directory=str(tmp_path / "grid"))
    script.write_text(text.replace("n_jobs=2", "n_jobs=1"))

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))

    done = subprocess.run(
        [sys.executable, "-X", "pycache_prefix=/dev/null", str(script)],
        preexec_fn=limit,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "StoreError: Cannot" in last
    assert "are saved" in last
    assert "disk" in last
    assert before.items() <= scores(tmp_path / "grid").items()
    run_grid(small_plan(versions=4), tmp_path / "grid")
    assert len(read_results(tmp_path / "grid")) == len(small_plan(versions=4))


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(StoreError, match="Cannot open the runs in"):
        run_grid(small_plan(), tmp_path / "file")


@pytest.mark.skipif(not os.path.isdir("/sys/kernel"), reason="needs a place that is read-only")
def test_a_place_that_not_even_root_can_write():
    with pytest.raises(StoreError, match=r"Cannot open the runs in /sys/kernel.*are saved"):
        run_grid(small_plan(), "/sys/kernel/grid")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_store(tmp_path):
    run_grid(small_plan(versions=1, methods=["pca"]), tmp_path)
    for path in (tmp_path / FILE, tmp_path):
        path.chmod(0o500)
    with pytest.raises(StoreError, match="readonly"):
        run_grid(small_plan(), tmp_path)
    tmp_path.chmod(0o700)


def test_settings_are_not_mixed(tmp_path):
    run_grid(small_plan(versions=1, methods=["pca"]), tmp_path)
    with pytest.raises(StoreError, match="other settings"):
        run_grid(small_plan(settings=Settings(n_init=3)), tmp_path)


def test_a_record_that_is_done_stays(tmp_path):
    sample = Sample("iris", 0.2, 1.0, 0)
    with Store(tmp_path, GRID, TINY) as store:
        store.add(Record(*sample, "pca", "failed", traceback="oh"))
        store.add(Record(*sample, "pca", "done", ari=0.5))
        store.add(Record(*sample, "pca", "done", ari=0.7))
        store.add(Record(*sample, "pca", "failed"))
        assert [(r.status, r.ari) for r in store.records()] == [("done", 0.5)]
        mode = store._connection.execute("PRAGMA journal_mode").fetchone()[0]
    assert mode == "wal"


def test_reading_results(tmp_path):
    with pytest.raises(StoreError, match="no runs"):
        read_results(tmp_path)
    with pytest.raises(StoreError, match=r"got .*nowhere"):
        read_results(tmp_path / "nowhere")
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    with pytest.raises(StoreError, match="no column dataset"):
        read_results(tmp_path / "a.csv")
    (tmp_path / FILE).write_text("this is not a database, " * 100)
    with pytest.raises(StoreError, match="not a database"):
        read_results(tmp_path)
    run_grid(small_plan(versions=1, methods=["pca"]), tmp_path / "grid")
    frame = read_results(tmp_path / "grid")
    frame.to_csv(tmp_path / "b.csv.gz", index=False)
    assert (read_results(tmp_path / "b.csv.gz").ari == frame.ari).all()


# Progress and clusters


def test_time_to_finish():
    """Two kinds of runs of known cost, two workers: the estimate is what is left."""
    now = [100.0]
    plan = Plan(["iris", "glass"], ["pca", "ica"], [0.2], [1], 10)
    todo = [(sample, plan.methods) for sample in plan.samples()]
    clock = Clock(todo, len(plan), GRID, now=lambda: now[0])
    assert clock.state().remaining is None
    cost = {"iris": {"pca": 1.0, "ica": 3.0}, "glass": {"pca": 2.0, "ica": 10.0}}
    now[0] += 50  # the workers start slowly, once
    for number, (sample, methods) in enumerate(todo):
        seconds = cost[sample.dataset]
        now[0] += sum(seconds.values()) / 2
        state = clock.count(
            Record(*sample, m, "done", seconds=seconds[m], sweep_seconds=0.0) for m in methods
        )
        left = sum(sum(cost[s.dataset].values()) for s, _ in todo[number + 1 :]) / 2
        if number >= 2:
            assert state.remaining == pytest.approx(left, rel=1e-6)
    assert state.done == state.total == 40
    assert state.remaining == 0


def test_the_same_plan_on_a_cluster(tmp_path):
    distributed = pytest.importorskip("distributed")
    plan = small_plan(versions=1)
    run_grid(plan, tmp_path / "here")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster:
        end = run_grid(plan, tmp_path / "there", scheduler=cluster.scheduler_address)
    assert end.done == end.total == len(plan)
    assert scores(tmp_path / "there") == scores(tmp_path / "here")


def test_the_store_says_what_it_holds(tmp_path):
    run_grid(small_plan(versions=1, methods=["pca"]), tmp_path)
    with Store(tmp_path, GRID) as store:
        about = json.loads(store._about())
    assert about["settings"] == {"n_init": 2, "kmeans_n_init": 3, "exponents": [1.1, 1.5, 2, 3]}
