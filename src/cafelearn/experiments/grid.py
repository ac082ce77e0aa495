"""Run a plan on the processes of this machine or on a Dask cluster."""

from functools import cache, lru_cache

from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky.process_executor import TerminatedWorkerError

from cafelearn.experiments.plan import QUICK, Plan, Sample
from cafelearn.experiments.progress import Clock
from cafelearn.experiments.run import (
    failed_record,
    needs_sweep,
    run_method,
    run_sample,
    try_sweep,
)
from cafelearn.experiments.store import Store


class WorkersLost(RuntimeError):
    """Worker processes died, and went on dying."""


def run_grid(
    plan: Plan, directory, *, n_jobs=None, scheduler=None, retry_failed=False, progress=None
):
    """Run what a plan asks for and the directory does not hold yet.

    Each run is committed to the directory when it ends. A grid that was stopped, in whatever
    way, is continued by calling this again; the results depend neither on that nor on the
    number of workers.

    Parameters
    ----------
    plan : Plan
        What to run.
    directory : str or path
        Where the records are kept; it is made if there is none.
    n_jobs : int, default=None
        Number of worker processes, each with one thread; -1 is one for each core, and
        ``None`` is 1, in this process.
    scheduler : str or distributed.Client, default=None
        Address of a Dask scheduler whose workers do the runs instead. They need no access to
        the directory. Workers with one thread each measure the time of the runs best.
    retry_failed : bool, default=False
        Run those again that have failed.
    progress : callable, default=None
        Called with a Progress (done, total, failed, elapsed, remaining) as runs end.

    Returns
    -------
    progress : Progress
        How it ended.

    Examples
    --------
    >>> import tempfile
    >>> from cafelearn.experiments import Plan, run_grid
    >>> plan = Plan(["iris"], ["pca", "kmeans"], levels=[0.2], scales=[1], versions=1)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     first = run_grid(plan, directory)
    ...     again = run_grid(plan, directory)
    >>> first.done, first.total, first.failed
    (2, 2, 0)
    >>> again.done, again.elapsed < first.elapsed
    (2, True)
    """
    report = progress if progress is not None else lambda state: None
    with Store(directory, plan.settings) as store:
        todo = _pending(plan, store, retry_failed)
        clock = Clock(todo, len(plan))
        report(clock.state())
        if scheduler is not None:
            batches = _on_cluster(todo, plan.settings, store, scheduler)
        elif n_jobs in (None, 1):
            batches = _here(todo, plan.settings, store)
        else:
            batches = _in_processes(todo, plan.settings, store, n_jobs)
        for records in batches:
            report(clock.count(records))
        return clock.state()


def _pending(plan, store, retry_failed):
    """The samples that are not finished, each with the methods it lacks."""
    todo = [(sample, plan.methods) for sample in plan.samples()]
    return _remaining(todo, store.ended(include_failed=not retry_failed))


def _here(todo, settings, store):
    for sample, methods in todo:
        records = []

        def emit(record, records=records):
            store.add(record)
            records.append(record)

        run_sample(sample, methods, settings, emit)
        yield records


def _in_processes(todo, settings, store, n_jobs):
    """Workers commit their records themselves; one that dies loses the run under way."""
    while todo:
        before = store.ended(include_failed=False)
        try:
            with parallel_config(backend="loky", inner_max_num_threads=1):
                workers = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
                yield from workers(
                    delayed(_work)(str(store.path.parent), sample, methods, settings)
                    for sample, methods in todo
                )
            return
        except TerminatedWorkerError as error:
            done = store.ended(include_failed=False)
            if done == before:
                names = ", ".join(str(sample) for sample, _ in todo[:3])
                raise WorkersLost(
                    "run_grid lost its worker processes twice without a run in between (out "
                    f"of memory?), at {names} or near it. All that ended before is safe."
                ) from error
        # Committed by the workers, but not reported by them.
        yield store.records()
        todo = _remaining(todo, done)


def _on_cluster(todo, settings, store, scheduler):
    """One task per run, and one per sweep that the runs depend on; this process commits."""
    from distributed import Client, as_completed

    own = not isinstance(scheduler, Client)
    client = Client(scheduler) if own else scheduler
    runs = {}
    try:
        for sample, methods in todo:
            found = None
            if any(needs_sweep(method) for method in methods):
                found = client.submit(try_sweep, sample, settings, pure=False)
            for method in methods:
                shared = found if needs_sweep(method) else None
                run = client.submit(run_method, sample, method, settings, shared, pure=False)
                runs[run] = sample, method
        for run in as_completed(list(runs)):
            sample, method = runs.pop(run)
            if run.status == "finished":
                record = run.result()
            else:
                # The scheduler gave up on it: its workers died several times.
                record = failed_record(sample, method, repr(run.exception()))
            store.add(record)
            yield [record]
    finally:
        client.cancel(list(runs))
        if own:
            client.close()


def _remaining(todo, done):
    left = [
        (sample, [method for method in methods if (sample, method) not in done])
        for sample, methods in todo
    ]
    return [(sample, methods) for sample, methods in left if methods]


def _work(directory, sample, methods, settings):
    store, records = _open(directory, settings), []

    def emit(record):
        store.add(record)
        records.append(record)

    for method in methods:
        _warm_up(method)
    run_sample(sample, methods, settings, emit)
    return records


@lru_cache(maxsize=4)
def _open(directory, settings):
    return Store(directory, settings)


@cache
def _warm_up(method):
    """Compile what a method needs, so that it does not count as its time."""
    run_method(Sample("iris", 0.2, 1.0, 0), method, QUICK)
