"""Passes over tables larger than memory, on local threads or a Dask cluster.

A part is one partition of the Dask dataframe of the table.
"""

import re
import warnings
from contextlib import contextmanager

import numpy as np

from cafelearn.cli.large_reading import PARQUET, is_large, need_dask, read_large
from cafelearn.cli.options import need

SECONDS = 10  # longest wait for the scheduler and for a first worker


def check_scheduler(data, scheduler):
    """Return whether the data is read with Dask; raise if it is not and a scheduler is given.

    Also raise if a package needed for Dask is not installed.
    """
    if not is_large(data):
        if scheduler is not None:
            raise ValueError(
                "--scheduler needs a directory of Parquet files, a Zarr array or a .npy file, "
                f"got {data}."
            )
        return False
    need_dask(data)
    if scheduler is not None:
        need("distributed", "--scheduler", "dask")
    return True


def check_features(out, force, **sources):
    """Raise unless features can be written to the directory `out`.

    `out` must neither be nor contain any of the input paths in `sources`.
    """
    from cafelearn._files import check_directory

    if out.suffix.lower() not in ("", *PARQUET):
        raise ValueError(
            f"--out {out}: the features of a directory or array are written to a directory of "
            "Parquet files; its name must end in .parquet, .parq or .pq, or have no "
            "extension."
        )
    for what, path in sources.items():
        if out.resolve() in (path.resolve(), *path.resolve().parents):
            raise ValueError(f"--out {out} is or contains the {what} to read.")
    check_directory(out, ".parquet", force)
    need("pyarrow", "--out", "cli")


@contextmanager
def computing(scheduler, jobs):
    """Run the Dask computations of the body on threads or on an existing cluster."""
    if scheduler is None:
        import dask
        from joblib import effective_n_jobs

        with dask.config.set(scheduler="threads", num_workers=effective_n_jobs(jobs)):
            yield
        return
    from distributed import Client

    try:
        client = Client(scheduler, timeout=SECONDS)
    except (OSError, ValueError):
        raise ValueError(
            f"--scheduler {scheduler}: cannot connect to a Dask scheduler."
        ) from None
    with client:
        try:
            client.wait_for_workers(1, timeout=SECONDS)
        except TimeoutError:
            raise ValueError(f"--scheduler {scheduler}: the cluster has no workers.") from None
        yield


def read(run, data, tell, row_id):
    """Open the table, record its size in the facts of the run, and report it with `tell`.

    `row_id` is the column of row names.
    """
    large = read_large(data, run.remark, row_id)
    n_rows, n_parts = sum(large.lengths), len(large.lengths)
    n_columns = len(large.frame.columns)
    run.facts["data"] = {"path": data, "rows": n_rows, "columns": n_columns, "parts": n_parts}
    tell(
        f"Found {data}: {n_rows:,} rows, {n_columns:,} columns, to be read in "
        f"{n_parts:,} part{'s' if n_parts > 1 else ''}"
    )
    return large


def over_parts(run, function, large, *arguments, out=None, force=False):
    """Return ``function(frame, first, path, *arguments)`` for each part, in order.

    `first` is the index of the part's first row. `path` is the file for the part's features, or
    None if `out` is None. The files are written to a temporary directory, which is renamed to
    `out` after the last part.
    """
    import dask

    shared = [dask.delayed(each, pure=False, traverse=False) for each in arguments]
    first = np.cumsum(large.lengths) - large.lengths
    with _directory(out, force) as folder:
        tasks = [
            dask.delayed(function, pure=False)(
                part,
                int(first[i]),
                None if folder is None else str(folder.absolute() / f"part-{i:05d}.parquet"),
                *shared,
            )
            for i, part in enumerate(large.frame.to_delayed())
        ]
        with _similar_once():
            return _results(run, tasks)


def for_parts(estimator):
    """Copy a fitted TabularCAFE without the attributes that the tasks of a pass do not need."""
    from cafelearn._dask.lazy import detached

    worker, cafe = detached(estimator), detached(estimator.cafe_)
    cafe.feature_names_in_ = estimator.cafe_.feature_names_in_
    worker.cafe_ = cafe
    return worker


def write_part(table, path, id_type=None):
    """Write the features of one part.

    `id_type` is the Arrow type of the row names in the first column. If it is None, the type is
    inferred from the part. An inferred type may differ between parts if names are missing.
    """
    import pyarrow as pa

    schema = pa.Schema.from_pandas(table, preserve_index=False)
    if id_type is not None:
        schema = schema.set(0, schema.field(0).with_type(id_type))
    table.to_parquet(path, index=False, schema=schema)


@contextmanager
def _directory(out, force):
    from cafelearn._files import atomic_directory

    if out is None:
        yield None
        return
    with atomic_directory(out, ".parquet", force) as folder:
        yield folder


def _results(run, tasks):
    """Run the tasks, show their progress, and return their results."""
    import dask

    from cafelearn.cli.progress import counting

    on_threads = dask.config.get("scheduler") == "threads"
    with counting(run, "parts") as update:
        update(0, len(tasks))
        return (_on_threads if on_threads else _on_cluster)(tasks, update)


def _on_threads(tasks, update):
    import dask
    from dask.callbacks import Callback

    waiting = {task.key for task in tasks}

    def note(key, *_):
        if key in waiting:
            waiting.remove(key)
            update(len(tasks) - len(waiting), len(tasks))

    with Callback(posttask=note):
        return dask.compute(*tasks)


def _on_cluster(tasks, update):
    from distributed import as_completed, default_client

    client, found = default_client(), {}
    futures = client.compute(tasks)
    try:
        for future, result in as_completed(futures, with_results=True):
            found[future.key] = result
            update(len(found), len(tasks))
    except BaseException:
        # Otherwise, the cluster would continue to compute, because the traceback of the
        # exception refers to the futures.
        client.cancel(futures)
        raise
    return [found[future.key] for future in futures]


@contextmanager
def _similar_once():
    """Delay the warnings of the body until its end; merge those that differ only in numbers.

    Of such warnings, the first is shown, with a note if there are others.
    """
    found = {}

    def keep(message, *where):
        found.setdefault(re.sub(r"\d+", "#", str(message)), []).append((str(message), where))

    with warnings.catch_warnings():
        warnings.showwarning = keep
        yield
    for (message, where), *others in found.values():
        more = " Other parts have similar warnings." if others else ""
        warnings.showwarning(message + more, *where)
