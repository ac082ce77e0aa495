"""Passes over tables that need not fit into memory: where they run and what they write."""

import re
import warnings
from contextlib import contextmanager

import numpy as np

from cafelearn.cli.large_reading import PARQUET, is_large, need_dask, read_large
from cafelearn.cli.options import need

SECONDS = 10


def check_scheduler(data, scheduler):
    """Whether the data is read with Dask; raise if it is not and there is a scheduler."""
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
    """Raise unless features can be written to the directory `out`, which holds no source."""
    from cafelearn._files import check_directory

    if out.suffix.lower() not in ("", *PARQUET):
        raise ValueError(
            f"--out {out}: the features of so many rows are written as a directory of Parquet "
            "files; its name should end in .parquet or in nothing."
        )
    for what, path in sources.items():
        if out.resolve() in (path.resolve(), *path.resolve().parents):
            raise ValueError(f"--out {out} is where the {what} is read from.")
    check_directory(out, ".parquet", force)
    need("pyarrow", "--out", "cli")


@contextmanager
def computing(scheduler, jobs):
    """Where the body computes: on threads of this process, or on a cluster that is there."""
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
        raise ValueError(f"--scheduler {scheduler}: no Dask scheduler answers there.") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=SECONDS)
        except TimeoutError:
            raise ValueError(f"--scheduler {scheduler}: the cluster has no workers.") from None
        yield


def read(run, data, tell):
    """The table; how large it is goes to the facts of the run, and to `tell` in words."""
    large = read_large(data, run.remark)
    n_rows, n_parts = sum(large.lengths), len(large.lengths)
    n_columns = len(large.frame.columns)
    run.facts["data"] = {"path": data, "rows": n_rows, "columns": n_columns, "parts": n_parts}
    tell(
        f"Found {data}: {n_rows:,} rows, {n_columns:,} columns, to be read in "
        f"{n_parts:,} part{'s' if n_parts > 1 else ''}"
    )
    return large


def over_parts(run, function, large, *arguments, out=None, force=False):
    """What ``function(frame, first, path, *arguments)`` gives for each part, in their order.

    `first` is the number of its first row and `path` the file to write its features to, in
    the directory `out`. That is there when all have been written, or not at all. Without
    `out` the path is None.
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
        with _alike_once():
            return _results(run, tasks)


def for_parts(estimator):
    """A copy of a TabularCAFE that takes one thread, as there are others, and little room."""
    from cafelearn._dask.lazy import detached

    worker, cafe = detached(estimator), detached(estimator.cafe_)
    cafe.feature_names_in_ = estimator.cafe_.feature_names_in_
    worker.cafe_ = cafe
    return worker


def write_part(table, path, id_type=None):
    """Write the features of some rows.

    `id_type` is the type of the names in the first column. A part that lacks some would
    have another one if it were left to pandas, and the parts would not fit together.
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
    """What the tasks give; it shows how many are done."""
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
        # As long as somebody looks at the exception, the futures would be wanted.
        client.cancel(futures)
        raise
    return [found[future.key] for future in futures]


@contextmanager
def _alike_once():
    """Of warnings in the body that differ in numbers only, show the first, at the end."""
    found = {}

    def keep(message, *where):
        found.setdefault(re.sub(r"\d+", "#", str(message)), []).append((str(message), where))

    with warnings.catch_warnings():
        warnings.showwarning = keep
        yield
    for (message, where), *others in found.values():
        more = " There is more of that in other parts." if others else ""
        warnings.showwarning(message + more, *where)
