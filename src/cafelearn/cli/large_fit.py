"""cafe fit on tables larger than memory, part by part."""

import time
from typing import NamedTuple

import numpy as np

from cafelearn._profiles import ProfileSums, make_profile, merge_sums, profile_sums
from cafelearn.cli.large_pass import for_parts, over_parts, write_part
from cafelearn.cli.place import features_table
from cafelearn.cli.summary import (
    LOWEST,
    doubtful_below,
    doubtful_rows,
    facts_of,
    findings_shown_here,
    show_fit,
)

# Largest number of rows in the sample for the report.
REPORT_ROWS = 10_000
# Largest number of distinct labels in one part.
MOST_CLASSES = 1_000


def fit(run, estimator, large, label, out, force):
    """Fit the estimator, record and show the facts, and return the cluster profiles.

    One more pass after the fit collects the statistics of all rows and, unless `out` is None,
    writes the features.
    """
    from cafelearn.cli.progress import watch

    begin = time.perf_counter()
    with watch(run), findings_shown_here():
        estimator.fit(large.frame)
    seconds = time.perf_counter() - begin
    found = _survey(run, estimator, large, label, out, force)
    columns, units = estimator._profile_columns(), estimator._profile_units()
    profile = make_profile(found.profile, estimator.cafe_.feature_weights_, columns, units)
    run.facts |= facts_of(estimator, found.counts, profile, found.n_doubtful, found.doubtful)
    run.facts["seconds"] = round(seconds, 3)
    if label is not None:
        run.facts["label"] = _agreement(found.classes, label)
    show_fit(run, run.facts)
    return profile


def sample(estimator, large, label, seed):
    """Draw up to REPORT_ROWS random rows; return them, their names and their known classes.

    Without an id column, the names are row numbers. Without a label column, the classes are
    None.
    """
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
    names = np.concatenate(rows) if estimator.id_column is None else frame[estimator.id_column]
    return frame, names, None if label is None else frame[label].to_numpy()


def _take(frame, places):
    return frame.iloc[places]


class Survey(NamedTuple):
    """Statistics of the rows of one or all parts."""

    counts: np.ndarray  # number of rows in each cluster
    n_doubtful: int
    doubtful: list  # rows with the lowest margins, as returned by `doubtful_rows`
    classes: dict  # known class -> number of its rows in each cluster
    profile: ProfileSums


def _survey(run, estimator, large, label, out, force):
    """Compute the Survey of all rows in one pass; write the features unless `out` is None."""
    worker, id_type = for_parts(estimator), large.types.get(estimator.id_column)
    parts = over_parts(run, _survey_part, large, worker, label, id_type, out=out, force=force)
    return _merged(parts)


def _survey_part(frame, first, path, estimator, label, id_type):
    names = None if estimator.id_column is None else frame[estimator.id_column]
    encoded = estimator.encode(frame)
    table = features_table(estimator.cafe_, encoded, names, first)
    if path is not None:
        write_part(table, path, id_type)
    cluster, margin = table["cluster"].to_numpy(), table["margin"].to_numpy()
    k = estimator.cafe_.n_clusters_
    ids = None if names is None else table.iloc[:, 0].to_numpy()
    classes = {} if label is None else _classes(frame[label], cluster, k)
    counts = np.bincount(cluster, minlength=k)
    profile = profile_sums(encoded.to_numpy(), cluster, k)
    doubtful = doubtful_rows(cluster, margin, doubtful_below(estimator.cafe_), ids, first)
    return Survey(counts, *doubtful, classes, profile)


def _classes(known, cluster, k):
    import pandas as pd

    codes, distinct = pd.factorize(known)  # the code of a missing value is -1
    if len(distinct) > MOST_CLASSES:
        raise ValueError(
            f"--label {known.name!r} needs at most {MOST_CLASSES:,} classes, but one part "
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
        merge_sums([part.profile for part in parts]),
    )


def _by_margin(row):
    return row["margin"], row["row"]


def _agreement(classes, label):
    """Compute ARI and NMI from the number of rows of each known class in each cluster."""
    from scipy.stats import entropy
    from sklearn.metrics import mutual_info_score

    from cafelearn.selection import adjusted_rand_index

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
