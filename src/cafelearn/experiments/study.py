"""Run the comparison study "How good are the answers" and read its records."""

from collections.abc import Callable
from os import PathLike
from typing import Any

import pandas as pd

from cafelearn.experiments.pool import run_all
from cafelearn.experiments.progress import Progress
from cafelearn.experiments.store import read_runs
from cafelearn.experiments.study_plan import StudyPlan
from cafelearn.experiments.study_run import STUDY


def run_study(
    plan: StudyPlan,
    directory: str | PathLike[str],
    *,
    n_jobs: int | None = None,
    scheduler: Any = None,
    retry_failed: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Progress:
    """Execute the runs of a study plan that are not yet in the directory.

    The record of each run is written to the directory when the run ends. To resume an
    interrupted study, call the function again. Neither interruptions nor the number of
    workers affect the results.

    Parameters
    ----------
    plan : StudyPlan
        The runs.
    directory : str or path
        Directory of the records; it is created if it does not exist.
    n_jobs : int, default=None
        Number of worker processes, each with one thread; -1 means one per core. ``None`` and 1
        execute the runs in this process.
    scheduler : str or distributed.Client, default=None
        Address of a Dask scheduler, or a client. If given, the runs are executed by its
        workers, and `n_jobs` is ignored.
    retry_failed : bool, default=False
        Repeat failed runs.
    progress : callable, default=None
        Called with a Progress (done, total, failed, elapsed, remaining) at the start and
        whenever runs have ended.

    Returns
    -------
    progress : Progress
        The final state.

    See Also
    --------
    run_grid : Run the paper's experiment.

    Examples
    --------
    >>> import tempfile
    >>> from cafelearn.experiments import StudyPlan, run_study
    >>> plan = StudyPlan(["iris"], ["clean"], ["kmeans-range", "pca"], versions=1)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     end = run_study(plan, directory)
    >>> end.done, end.total, end.failed
    (2, 2, 0)
    """
    return run_all(
        STUDY,
        [(sample, plan.methods_of(sample)) for sample in plan.samples()],
        plan.settings,
        directory,
        n_jobs=n_jobs,
        scheduler=scheduler,
        retry_failed=retry_failed,
        progress=progress,
    )


def read_study(source: str | PathLike[str]) -> pd.DataFrame:
    """Read the records of the study.

    Parameters
    ----------
    source : str or path
        A directory written by :func:`run_study`, or a CSV file, possibly compressed, with the
        columns dataset, regime, version, task, method and ari.

    Returns
    -------
    results : DataFrame
        One row per run. In text columns such as `warnings`, "" stands for a missing value.

    Examples
    --------
    >>> import tempfile
    >>> from cafelearn.experiments import StudyPlan, read_study, run_study
    >>> plan = StudyPlan(["iris"], ["clean"], ["kmeans-range", "pca"], versions=1)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     _ = run_study(plan, directory)
    ...     results = read_study(directory)
    >>> results[["dataset", "regime", "task", "method", "status"]]
      dataset regime      task        method status
    0    iris  clean  features           pca   done
    1    iris  clean    labels  kmeans-range   done
    """
    results = read_runs(source, STUDY, "read_study")
    texts = [name for name, default in STUDY.record._field_defaults.items() if default == ""]
    texts = [name for name in texts if name in results.columns]
    return results.assign(**{name: results[name].astype(object).fillna("") for name in texts})
