"""Compare fitting CAFE to rows with missing values and fitting it after imputation.

    python -m benchmarks.missing

The script removes 5, 20 and 40% of the entries of the nine data sets with the paper's noise at
level 0.4 (scales 1 and 5). Entries are removed at random ("random"), or with a probability that
rises with the value ("value"). CAFE is fitted to the rows with missing values, and to the rows
after imputation: by medians, by the five nearest neighbours of the standard-scaled rows, and by
iterated regressions. Its labels are compared with the classes. With 20% removed at random,
there are five versions of each data set; in all other settings, there is one.

The script writes docs/results/missing.csv, with one row per data set, version and setting, and
missing.md with the mean adjusted Rand indices. Cases that the CSV file already contains are not
run again. A complete run takes about half an hour on one core.
"""

import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from cafelearn import CAFE, datasets
from reproduction.markdown import markdown_table
from reproduction.study.regimes import Case, case_data

OUT = Path(__file__).parent.parent / "docs" / "results" / "missing.csv"
REGIMES = ("pairs 0.4/1", "pairs 0.4/5")
SHARES, KINDS = (0.05, 0.2, 0.4), ("random", "value")
IMPUTERS = {
    "median": lambda: SimpleImputer(strategy="median"),
    "nearest": lambda: make_pipeline(StandardScaler(), KNNImputer()),
    "iterative": lambda: IterativeImputer(random_state=0),
}
SETTING = ("kind", "share", "version", "regime", "dataset")
# The kind and the share with several versions of each data set, and the number of versions.
REFERENCE, MANY_VERSIONS = ("random", 0.2), 5


def remove(X, share, kind, rng):
    """Return a copy of X in which about `share` of the entries are missing.

    With kind "random" all entries have the same probability. With "value" the probability rises
    from about 0 for the smallest value of a column to twice the share for the largest. Every
    row and every column keeps at least one entry.
    """
    chance = np.full(X.shape, share)
    if kind == "value":
        chance = 2 * share * rankdata(X, axis=0) / len(X)
    gaps = rng.random(X.shape) < chance
    gaps[np.arange(len(X)), rng.integers(X.shape[1], size=len(X))] = False
    gaps[rng.integers(len(X), size=X.shape[1]), np.arange(X.shape[1])] = False
    return np.where(gaps, np.nan, X)


def run_case(case, kind, share):
    """Compute the adjusted Rand index of CAFE's labels for each treatment of missing values.

    "complete" is the index without missing values, "native" that of a fit without imputation.
    """
    X, y = case_data(case)
    rng = np.random.default_rng(case.seed(f"missing/{kind}/{share}"))
    gapped = remove(X, share, kind, rng)
    given = {"complete": X, "native": gapped}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make in IMPUTERS.items():
            given[name] = make().fit_transform(gapped)
        cafe = CAFE(len(np.unique(y)), extractor=None, random_state=0)
        return {
            name: adjusted_rand_score(y, cafe.fit(rows).labels_) for name, rows in given.items()
        }


def settings():
    """Yield all cases as tuples of the fields named in SETTING."""
    for kind, share in product(KINDS, SHARES):
        versions = MANY_VERSIONS if (kind, share) == REFERENCE else 1
        yield from product([kind], [share], range(versions), REGIMES, datasets.names())


def main():
    """Run the cases that the CSV file lacks, and write the tables."""
    known = pd.read_csv(OUT) if OUT.exists() else pd.DataFrame(columns=SETTING)
    rows = known.to_dict("records")
    done = {tuple(row[name] for name in SETTING) for row in rows}
    # The cases of REFERENCE are run first.
    for setting in sorted(settings(), key=lambda setting: setting[:2] != REFERENCE):
        if setting in done:
            continue
        kind, share, version, regime, name = setting
        found = run_case(Case(name, regime, version), kind, share)
        rows.append(
            dict(zip(SETTING, setting, strict=True))
            | {name: round(ari, 4) for name, ari in found.items()}
        )
        print(*rows[-1].values(), flush=True)
        pd.DataFrame(rows).to_csv(OUT, index=False, lineterminator="\n")
    OUT.with_suffix(".md").write_text(render(pd.read_csv(OUT)), encoding="utf-8")


def render(table):
    """Return the Markdown table for the documentation from the table of the CSV file."""
    names = {
        "complete": "nothing missing",
        "native": "gaps kept",
        "median": "median",
        "nearest": "k-nearest",
        "iterative": "iterative",
    }
    kinds = {"random": "at random", "value": "by value"}
    rows = []
    for (kind, share), cases in table.groupby(["kind", "share"]):
        means = [f"{cases[name].mean():.3f}" for name in names]
        rows.append([f"{share:.0%}", kinds[kind], str(len(cases)), *means])
    return markdown_table(["removed", "how", "fits", *names.values()], rows) + "\n"


if __name__ == "__main__":
    main()
