"""Run the samples of an experiment in local processes or on a Dask cluster."""

import os
from concurrent.futures import BrokenExecutor
from functools import cache, lru_cache

from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky.process_executor import ShutdownExecutorError

from reproduction.runs.parent import end_with
from reproduction.runs.progress import Clock
from reproduction.runs.store import Store

# Give up if workers are lost this many times in a row without a completed run in between.
LOSSES = 3


class WorkersLost(RuntimeError):
    """Worker processes died repeatedly."""


def run_all(
    experiment,
    todo,
    settings,
    directory,
    *,
    n_jobs=None,
    scheduler=None,
    retry_failed=False,
    progress=None,
):
    """Execute the runs of `todo` that are not yet in the directory; return the final Progress.

    `todo` is a list of (sample, methods). The record of each run is written when the run ends,
    so an interrupted experiment is resumed by the same call. Neither interruptions nor the
    number of workers affect the results.

    `n_jobs` is the number of worker processes of one thread each; -1 means one per core, None
    and 1 this process. Instead, `scheduler`, a distributed.Client or the address of a Dask
    scheduler, may execute the runs; its workers need this package, but no access to the
    directory. `progress` is called with a Progress at the start and whenever runs have ended.
    """
    report = progress if progress is not None else lambda state: None
    total = sum(len(methods) for _, methods in todo)
    with Store(directory, experiment, settings) as store:
        todo = _remaining(todo, store.ended(include_failed=not retry_failed))
        clock = Clock(todo, total, experiment)
        report(clock.state())
        if scheduler is not None:
            batches = _on_cluster(experiment, todo, settings, store, scheduler)
        elif n_jobs in (None, 1):
            batches = _here(experiment, todo, settings, store)
        else:
            batches = _in_processes(experiment, todo, settings, store, n_jobs)
        for records in batches:
            report(clock.count(records))
        return clock.state()


def _here(experiment, todo, settings, store):
    for sample, methods in todo:
        yield _run_into(store, experiment, sample, methods, settings)


def _in_processes(experiment, todo, settings, store, n_jobs):
    """Use worker processes, which commit their own records.

    If a worker dies, all runs in progress are lost; they are started again.
    """
    directory, losses = str(store.path.parent), 0
    # A worker ends when this process ends. It must start to watch this process before the slow
    # imports of its first task.
    watch = {"initializer": end_with, "initargs": (os.getpid(),)}
    while todo:
        before = store.ended(include_failed=False)
        try:
            with parallel_config(backend="loky", inner_max_num_threads=1, **watch):
                workers = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
                yield from workers(
                    delayed(_work)(directory, experiment, sample, methods, settings)
                    for sample, methods in todo
                )
            return
        except (BrokenExecutor, ShutdownExecutorError) as error:
            done = store.ended(include_failed=False)
            losses = losses + 1 if done == before else 0
            if losses == LOSSES:
                names = ", ".join(str(sample) for sample, _ in todo[:3])
                raise WorkersLost(
                    f"The worker processes were lost {LOSSES} times in a row without a "
                    f"completed run (out of memory?), at or near {names}. All completed runs "
                    "are saved."
                ) from error
        # The lost workers may have committed records that they did not return.
        yield store.records()
        todo = _remaining(todo, done)


def _on_cluster(experiment, todo, settings, store, scheduler):
    """Submit a task for each run and each shared result, and commit the records here."""
    from distributed import Client, as_completed

    own = not isinstance(scheduler, Client)
    client = Client(scheduler) if own else scheduler
    runs = {}
    try:
        for sample, methods in todo:
            found = None
            if any(experiment.shares(sample, method) for method in methods):
                found = client.submit(experiment.try_share, sample, settings, pure=False)
            for method in methods:
                shared = found if experiment.shares(sample, method) else None
                run = client.submit(
                    experiment.run, sample, method, settings, shared, pure=False
                )
                runs[run] = sample, method
        for run in as_completed(list(runs)):
            sample, method = runs.pop(run)
            if run.status == "finished":
                record = run.result()
            else:
                # Dask gives up on a task after several workers have died while executing it.
                record = experiment.fail(sample, method, repr(run.exception()))
            store.add(record)
            yield [record]
    finally:
        client.cancel(list(runs))
        if own:
            client.close()


def _remaining(todo, done):
    left = [
        (sample, [method for method in methods if (*sample, method) not in done])
        for sample, methods in todo
    ]
    return [(sample, methods) for sample, methods in left if methods]


def _work(directory, experiment, sample, methods, settings):
    for method in methods:
        _warm_up(experiment, experiment.trial(sample), method)
    store = _open(directory, experiment, settings)
    return _run_into(store, experiment, sample, methods, settings)


def _run_into(store, experiment, sample, methods, settings):
    """Run methods on a sample, commit each record and return the records."""
    records = []

    def emit(record):
        store.add(record)
        records.append(record)

    experiment.run_sample(sample, methods, settings, emit)
    return records


@lru_cache(maxsize=4)
def _open(directory, experiment, settings):
    return Store(directory, experiment, settings)


@cache
def _warm_up(experiment, trial, method):
    """Compile the kernels of a method, so that its time does not include compilation."""
    experiment.run(trial, method, experiment.quick)
