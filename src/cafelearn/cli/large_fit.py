"""cafe fit on tables that need not fit into memory: the same steps, partition by partition."""

import time
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from cafelearn.cli.large_reading import PARQUET, read_large
from cafelearn.cli.summary import LOWEST, doubtful_rows, facts_of, show_fit

# Rows that a report is made from.
REPORT_ROWS = 10_000
# A column of classes has fewer values.
MOST_CLASSES = 1_000
SECONDS = 10


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


def check_features(out, force, data):
    """Raise unless the features can be written to the directory `out`."""
    from cafelearn._files import check_directory

    if out.suffix.lower() not in ("", *PARQUET):
        raise ValueError(
            f"--out {out}: the features of so many rows are written as a directory of Parquet "
            "files; its name should end in .parquet or in nothing."
        )
    if out.resolve() in (data.resolve(), *data.resolve().parents):
        raise ValueError(f"--out {out} is where the data is read from.")
    check_directory(out, ".parquet", force)


def read(run, data):
    """The table, and what there is to say about it."""
    large = read_large(data, run.remark)
    n_rows, n_parts = sum(large.lengths), len(large.lengths)
    n_columns = len(large.frame.columns)
    run.facts["data"] = {"path": data, "rows": n_rows, "columns": n_columns, "parts": n_parts}
    run.say(
        f"Found {data}: {n_rows:,} rows, {n_columns:,} columns, to be read in "
        f"{n_parts:,} part{'s' if n_parts > 1 else ''}"
    )
    return large


def fit(run, estimator, large, label, out, force):
    """Fit, look at every row once more, write the features, and say what was found."""
    from cafelearn.cli.progress import watch

    begin = time.perf_counter()
    with watch(run, sum(large.lengths)):
        estimator.fit(large.frame)
    seconds = time.perf_counter() - begin
    found = _survey(estimator, large, label, out, force)
    run.facts |= facts_of(estimator, found.counts, found.n_doubtful, found.doubtful)
    run.facts["seconds"] = round(seconds, 3)
    if label is not None:
        run.facts["label"] = _agreement(found.classes, label)
    run.say(
        f"Fitted CAFE on {run.facts['features']:,} features in {seconds:.1f} s; "
        f"extracted {run.facts['components']:,}"
    )
    show_fit(run, run.facts)


def sample(estimator, large, label, seed):
    """At most REPORT_ROWS rows: the encoded table, its rows' names and their classes."""
    import dask
    import pandas as pd

    rng, lengths = np.random.default_rng(seed), np.asarray(large.lengths)
    count = min(REPORT_ROWS, int(lengths.sum()))
    counts = rng.multivariate_hypergeometric(lengths, count, method="marginals")
    first = np.cumsum(lengths) - lengths
    tasks, rows = [], []
    for part, length, wanted, begin in zip(
        large.frame.to_delayed(), lengths, counts, first, strict=True
    ):
        if wanted:
            places = np.sort(rng.choice(length, wanted, replace=False))
            tasks.append(dask.delayed(_take)(part, places))
            rows.append(begin + places)
    frame = pd.concat(dask.compute(*tasks), ignore_index=True)
    encoded = estimator.encode(frame)
    names = np.concatenate(rows) if estimator.id_column is None else encoded.index
    return encoded, names, None if label is None else frame[label].to_numpy()


def _take(frame, places):
    return frame.iloc[places]


class Survey(NamedTuple):
    """What was seen of some rows."""

    counts: np.ndarray  # rows of each cluster
    n_doubtful: int
    doubtful: list  # the most doubtful rows, as facts
    classes: dict  # class -> rows of it in each cluster


def _survey(estimator, large, label, out, force):
    """One pass over all rows, which writes their features if that is wanted."""
    import dask

    from cafelearn._files import atomic_directory
    from cafelearn.persistence import without_lazy_labels

    worker = dask.delayed(without_lazy_labels(estimator), pure=False)
    parts = large.frame.to_delayed()
    first = np.cumsum(large.lengths) - large.lengths

    def survey(folder):
        tasks = [
            dask.delayed(_survey_part)(
                part,
                worker,
                int(first[i]),
                label,
                None if folder is None else str(folder.absolute() / f"part-{i:05d}.parquet"),
            )
            for i, part in enumerate(parts)
        ]
        return _merged(dask.compute(*tasks))

    if out is None:
        return survey(None)
    with atomic_directory(out, ".parquet", force) as folder:
        return survey(folder)


def _survey_part(frame, estimator, first, label, path):
    from cafelearn.cli.place import features_table

    table = features_table(estimator, frame)
    if estimator.id_column is None:
        table["row"] += first
    if path is not None:
        table.to_parquet(path, index=False)
    cluster, margin = table["cluster"].to_numpy(), table["margin"].to_numpy()
    k = estimator.cafe_.n_clusters
    names = None if estimator.id_column is None else table.iloc[:, 0].to_numpy()
    classes = {} if label is None else _classes(frame[label], cluster, k)
    counts = np.bincount(cluster, minlength=k)
    return Survey(counts, *doubtful_rows(cluster, margin, names, first), classes)


def _classes(known, cluster, k):
    import pandas as pd

    codes, distinct = pd.factorize(known)  # -1 where there is none
    if len(distinct) > MOST_CLASSES:
        raise ValueError(
            f"--label {known.name!r} needs fewer than {MOST_CLASSES:,} classes, but one part "
            f"of the table has {len(distinct):,}."
        )
    table = np.zeros((len(distinct), k), dtype=np.int64)
    np.add.at(table, (codes[codes >= 0], cluster[codes >= 0]), 1)
    return dict(zip(distinct.tolist(), table, strict=True))


def _merged(parts):
    classes = {}
    for part in parts:
        for name, counts in part.classes.items():
            classes[name] = classes.get(name, 0) + counts
    doubtful = sorted((row for part in parts for row in part.doubtful), key=_by_margin)
    return Survey(
        np.sum([part.counts for part in parts], axis=0),
        sum(part.n_doubtful for part in parts),
        doubtful[:LOWEST],
        classes,
    )


def _by_margin(row):
    return row["margin"], row["row"]


def _agreement(classes, label):
    """ARI and NMI with known classes, from the table of their rows in each cluster."""
    from scipy.stats import entropy
    from sklearn.metrics import mutual_info_score

    from cafelearn.distributed.consensus import adjusted_rand_index

    if not classes:
        raise ValueError(f"the label column {label!r} has no values.")
    table = np.array(list(classes.values()))
    both = (entropy(table.sum(axis=1)) + entropy(table.sum(axis=0))) / 2
    shared = mutual_info_score(None, None, contingency=table)
    return {
        "column": label,
        "rows": int(table.sum()),
        "ari": float(adjusted_rand_index(table)),
        "nmi": float(shared / both) if both > 0 else 1.0,
    }
