"""Run a plan of the paper's experiment."""

from collections.abc import Callable
from os import PathLike
from typing import Any

from cafelearn.experiments.plan import Plan
from cafelearn.experiments.pool import WorkersLost, run_all
from cafelearn.experiments.progress import Progress
from cafelearn.experiments.run import GRID

__all__ = ["WorkersLost", "run_grid"]


def run_grid(
    plan: Plan,
    directory: str | PathLike[str],
    *,
    n_jobs: int | None = None,
    scheduler: Any = None,
    retry_failed: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Progress:
    """Execute the runs of a plan that are not yet in the directory.

    The record of each run is written to the directory when the run ends. To resume an
    interrupted experiment, call the function again. Neither interruptions nor the number of
    workers affect the results.

    Parameters
    ----------
    plan : Plan
        The runs.
    directory : str or path
        Directory of the records; it is created if it does not exist.
    n_jobs : int, default=None
        Number of worker processes, each with one thread; -1 means one per core. ``None`` and 1
        execute the runs in this process.
    scheduler : str or distributed.Client, default=None
        Address of a Dask scheduler, or a client. If given, the runs are executed by its
        workers, and `n_jobs` is ignored. The workers need no access to the directory. For
        accurate run times, use workers with one thread each.
    retry_failed : bool, default=False
        Repeat failed runs.
    progress : callable, default=None
        Called with a Progress (done, total, failed, elapsed, remaining) at the start and
        whenever runs have ended.

    Returns
    -------
    progress : Progress
        The final state.

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
    return run_all(
        GRID,
        [(sample, plan.methods) for sample in plan.samples()],
        plan.settings,
        directory,
        n_jobs=n_jobs,
        scheduler=scheduler,
        retry_failed=retry_failed,
        progress=progress,
    )
