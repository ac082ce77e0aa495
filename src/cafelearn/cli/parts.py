"""Place the rows of a table larger than memory in the clusters of a model, part by part.

A part is one partition of the Dask dataframe of the table.
"""

import re
import warnings
from contextlib import contextmanager, nullcontext

import numpy as np

from cafelearn.cli.large import SUFFIXES, is_large, is_zarr
from cafelearn.cli.options import need
from cafelearn.cli.place import features_table

REPORT_ROWS = 10_000  # largest number of rows in the sample for the report
NUMBER = re.compile(r"\b\d+\b")
SECONDS = 10  # longest wait for the scheduler and for a first worker


def check_scheduler(data, scheduler):
    """Return whether the data is read with Dask; raise if a package for it is missing.

    Also raise if a scheduler is given for data that is not read with Dask.
    """
    if not is_large(data):
        if scheduler is not None:
            raise ValueError(
                "--scheduler needs a directory of Parquet files, a Zarr array or a .npy file, "
                f"got {data}."
            )
        return False
    try:
        import dask.dataframe  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"Reading {data} needs the package dask: pip install 'cafelearn[dask]'."
        ) from error
    if is_zarr(data):
        need("zarr", f"Reading {data}", "dask")
    if scheduler is not None:
        need("distributed", "--scheduler", "dask")
    return True


def check_features(out, force, **sources):
    """Raise unless features can be written to the directory `out`.

    `out` must neither be nor contain any of the input paths in `sources`.
    """
    from cafelearn.files.atomic import check_directory

    if out.suffix.lower() not in ("", *SUFFIXES):
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
    import dask

    # Text has the same type as in memory.
    settings = {"dataframe.convert-string": False}
    if scheduler is None:
        from joblib import effective_n_jobs

        settings |= {"scheduler": "threads", "num_workers": effective_n_jobs(jobs)}
        with dask.config.set(settings):
            yield
        return
    from distributed import Client

    try:
        client = Client(scheduler, timeout=SECONDS)
    except (OSError, ValueError):
        raise ValueError(
            f"--scheduler {scheduler}: cannot connect to a Dask scheduler."
        ) from None
    with dask.config.set(settings), client:
        try:
            client.wait_for_workers(1, timeout=SECONDS)
        except TimeoutError:
            raise ValueError(f"--scheduler {scheduler}: the cluster has no workers.") from None
        yield


def place_parts(run, estimator, large, id_column, out=None, force=False):
    """Return the cluster and the margin of each row; write the features to the directory `out`.

    `out` gets one Parquet file for each part, and appears when all of them are written.
    """
    import dask

    from cafelearn.distributed.lazy import detached
    from cafelearn.files.atomic import atomic_directory

    encoder, cafe = estimator.encoder_.for_new_rows(), detached(estimator.cafe_)
    cafe.feature_names_in_ = estimator.cafe_.feature_names_in_
    encoder._check_known_columns(large.frame._meta)
    used = [*encoder.numbers_, *encoder.categories_]
    frame = large.frame[list(dict.fromkeys([*used, *([id_column] if id_column else ())]))]
    model = dask.delayed((cafe, encoder, used, id_column), pure=False, traverse=False)
    first = np.cumsum(large.lengths) - large.lengths
    directory = nullcontext() if out is None else atomic_directory(out, ".parquet", force)
    with directory as folder, _similar_once():
        tasks = []
        for i, part in enumerate(frame.to_delayed()):
            path = None if out is None else str(folder.absolute() / f"part-{i:05d}.parquet")
            task = dask.delayed(_place_part, pure=False)
            tasks.append(task(part, int(first[i]), path, model))
        placed = _compute(run, tasks)
    labels, margin = zip(*placed, strict=True)
    return np.concatenate(labels), np.concatenate(margin)


def _place_part(frame, first, path, model):
    """Return clusters and margins of a part; write its features unless `path` is None."""
    from cafelearn.interpret.placed import Placed

    cafe, encoder, used, id_column = model
    placed = Placed(cafe, encoder.transform(frame[used]))
    if path is not None:
        names = None if id_column is None else frame[id_column]
        features_table(placed, names, first).to_parquet(path, index=False)
    return placed.labels, placed.margin


def _compute(run, tasks):
    """Compute the tasks and show their progress; a cluster shows it on its dashboard."""
    import dask
    from dask.callbacks import Callback

    from cafelearn.cli.progress import counting

    waiting = {task.key for task in tasks}
    with counting(run, "parts") as update:

        def note(key, *_):
            if key in waiting:
                waiting.remove(key)
                update(len(tasks) - len(waiting), len(tasks))

        with Callback(posttask=note):
            return dask.compute(*tasks)


def sample_rows(large, seed):
    """Return up to REPORT_ROWS random rows and their numbers."""
    import dask
    import pandas as pd

    ends = np.cumsum(large.lengths)
    count = min(REPORT_ROWS, ends[-1])
    rows = np.sort(np.random.default_rng(seed).choice(ends[-1], count, replace=False))
    part_of = np.searchsorted(ends, rows, side="right")
    parts, first = large.frame.to_delayed(), ends - large.lengths
    found = [
        dask.delayed(_take)(parts[i], rows[part_of == i] - first[i]) for i in np.unique(part_of)
    ]
    return pd.concat(dask.compute(*found), ignore_index=True), rows


def _take(frame, places):
    return frame.iloc[places]


@contextmanager
def _similar_once():
    """Show only the first of the warnings that begin with the same words before a number."""
    show, shown = warnings.showwarning, set()

    def show_first(message, *where):
        kind, *counts = NUMBER.split(str(message))
        if kind not in shown:
            shown.add(kind)
            show(f"{message}{' Other parts may have others.' if counts else ''}", *where)

    with warnings.catch_warnings():
        warnings.showwarning = show_first
        yield
