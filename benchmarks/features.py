"""Compare inputs of the extractor, to choose CAFE's default rescaling.

    python -m benchmarks.features

The script fits CAFE to one half of each tuning set and computes features in several ways from
the same clustering. Classifiers are trained on 5 or 20 labelled rows per class of this half,
and classify the other half, as in `cafe study`. The mean accuracy in each regime is written to
docs/results/features.csv. This takes a few minutes.
"""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.selection import regime_of
from cafelearn import CAFE, datasets
from cafelearn.experiments.regimes import GENERATED, Case, case_data
from cafelearn.experiments.study_run import _accuracies, split

OUT = Path(__file__).parent.parent / "docs" / "results" / "features.csv"


def tuning_cases():
    """Return the tuning sets, on which the default rescaling was chosen."""
    regimes = (
        "clean",
        "pairs 0.2/1",
        "pairs 0.4/1",
        "pairs 0.4/5",
        "columns",
        "heavy",
        "zeros",
    )
    cases = [Case(name, regime, 0) for name in datasets.names() for regime in regimes]
    cases += [Case(name, regime, 0) for name in ("wine", "wdbc") for regime in regimes[:2]]
    return cases + [Case(name, "generated", v) for name in GENERATED for v in range(4)]


def spread(parts, first):
    """Compute the square root of the total variance of the rows `first`; it is never 0."""
    return np.sqrt(parts[first].var(axis=0).sum()) + 1e-300


def run_case(case):
    """Compute the mean accuracy of each kind of features on one data set."""
    X, y = case_data(case)
    k, halves = len(np.unique(y)), split(case, y)
    first = halves.first
    X = X[:, np.ptp(X[first], axis=0) > 0]
    n_components = max(1, X.shape[1] // 2)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cafe = CAFE(k, n_permutations=0, random_state=0, n_jobs=1).fit(X[first])
        model, scaled = cafe.model_, cafe._scale(X)
        labels, distances = model.predict(scaled), model.transform(scaled)
        logs = np.log(distances + 1e-3 * np.median(distances[first]))
        weights, centers = model.feature_weights_, model.cluster_centers_
        shrink = weights / weights.max(axis=1, keepdims=True)
        centred = centers[labels] + shrink[labels] * (scaled - centers[labels])
        own = _own_scales(scaled[first], labels[first], centers)
        tight = centers[labels] + own[labels] * (scaled - centers[labels])
        standard = StandardScaler().fit(X[first]).transform(X)

        def extract(*parts):
            scales = [spread(part, first) if len(parts) > 1 else 1.0 for part in parts]
            joined = np.hstack([part / s for part, s in zip(parts, scales, strict=True)])
            return PCA(min(n_components, *joined.shape)).fit(joined[first]).transform(joined)

        kinds = {
            "raw, standard scaling": standard,
            "PCA, standard scaling": extract(standard),
            "origin: w x (the paper's)": extract(weights[labels] * scaled),
            "centroid: rows shrunk towards centres by w": extract(centred),
            "rows shrunk by the clusters' own standard deviations": extract(tight),
            "log distances alone, all k": logs,
            "distances: rows beside log distances (the default)": extract(scaled, logs),
            "rows beside plain distances": extract(scaled, distances),
            "centroid beside log distances": extract(centred, logs),
        }
        found = {
            name: np.mean(list(_accuracies(features, y, halves).values()))
            for name, features in kinds.items()
        }
    return pd.Series(found, name=str(case))


def _own_scales(rows, labels, centers):
    """Divide the standard deviation of each feature by that of its values in each cluster.

    The quotients of a cluster are divided by their maximum, so that the largest is 1.
    """
    scales = np.empty_like(centers)
    for l, center in enumerate(centers):
        members = rows[labels == l]
        scatter = ((members - center) ** 2).sum(axis=0) + 0.2 * rows.var(axis=0)
        scales[l] = rows.std(axis=0) / np.sqrt(scatter / (len(members) + 2))
    return scales / scales.max(axis=1, keepdims=True)


def main():
    """Run all cases and write the table."""
    cases = tuning_cases()
    rows = Parallel(n_jobs=2)(delayed(run_case)(case) for case in cases)
    table = pd.DataFrame(rows).groupby([regime_of(case) for case in cases]).mean().T
    table.insert(0, "mean", table.mean(axis=1))
    table.rename_axis("features").round(4).to_csv(OUT, lineterminator="\n")
    print(table.round(3).to_string())


if __name__ == "__main__":
    main()
