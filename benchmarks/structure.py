"""Measure how often the structure test finds structure in data without structure.

    python -m benchmarks.structure

The script generates data sets of independent variables that differ in size and distribution. It
runs the test behind the finding "no-structure" on each and writes docs/results/structure.csv.
This takes a minute or two. `cafe study` measures the opposite error: how often the test misses
structure in the paper's data sets.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from cafelearn import CAFE
from cafelearn._structure import check_structure

OUT = Path(__file__).parent.parent / "docs" / "results" / "structure.csv"
KINDS = {
    "uniform": lambda rng, n, m: rng.uniform(size=(n, m)),
    "normal": lambda rng, n, m: rng.normal(size=(n, m)),
    "lognormal": lambda rng, n, m: rng.lognormal(size=(n, m)),
    "binary": lambda rng, n, m: (rng.random((n, m)) < rng.uniform(0.1, 0.9, m)).astype(float),
    "one-hot": lambda rng, n, m: np.hstack(
        [np.eye(s)[rng.integers(0, s, n)] for s in rng.integers(2, 7, m)]
    ),
}
COUNTS = dict.fromkeys(KINDS, 50) | {"uniform": 100}


def run(kind, number):
    """Generate one data set, run the test on it and return a row of the table."""
    rng = np.random.default_rng([list(KINDS).index(kind), number])
    n, m = int(rng.choice([50, 100, 300, 1_000, 3_000])), int(rng.choice([2, 3, 5, 10, 30]))
    k = int(rng.integers(2, 11))
    X = KINDS[kind](rng, n, m)
    found = check_structure(X, k, CAFE().n_permutations, np.random.SeedSequence(number), 1)
    return {"kind": kind, "number": number, "n": n, "m": X.shape[1], "k": k} | {
        "z": round(float(found.z), 3),
        "found": bool(found.found),
    }


def main():
    """Run all tests and write the table."""
    sets = [(kind, number) for kind, count in COUNTS.items() for number in range(count)]
    table = pd.DataFrame(Parallel(n_jobs=2)(delayed(run)(*which) for which in sets))
    table.to_csv(OUT, index=False, lineterminator="\n")
    print(table.groupby("kind")["found"].agg(["sum", "size"]))


if __name__ == "__main__":
    main()
