"""Remarks after a fit about the columns of the table."""

import numpy as np

from cafelearn.base.words import listed

# A column may hold known classes if it has at most MOST_VALUES * n_clusters distinct values.
MOST_VALUES = 2
# Remark on such a column if its ARI with the clusters is at least SAME, or if its share of the
# weight is at least HEAVY in at least half of the clusters.
SAME, HEAVY = 0.9, 0.9


def remark_columns(run, estimator, frame, labels):
    """Remark on columns that were left out or converted, or that may hold known classes."""
    encoder = estimator.encoder_
    if encoder.constant_features_:
        run.remark(f"Left out as constant: {listed(encoder.constant_features_)}.")
    if names := encoder.describe("identifier", "free text"):
        run.remark(
            f"Left out: {names}. Use --numeric or --category to include a column, or --id to "
            "name the rows by it."
        )
    if names := encoder.dates_:
        run.remark(
            "Converted dates to days since 1970-01-01, and durations to days: "
            f"{listed(names)}. Use --drop to leave a column out, or --category to treat it as "
            "categories."
        )
    if names := [n for n, found in encoder.categories_.items() if "" in found]:
        run.remark(
            f"Empty text is a category in {listed(names)}; in a CSV file it would be a missing "
            "value. Replace it by null if values are missing."
        )
    for name, why in _targets(estimator, frame, labels):
        run.remark(
            f"Column {name!r} {why}. If it holds known classes, --label leaves it out of the "
            "fit and compares it with the clusters."
        )


def _targets(estimator, frame, labels):
    """Yield the columns that may hold known classes, each with the reason."""
    import pandas as pd
    from sklearn.metrics import adjusted_rand_score

    encoder, weights = estimator.encoder_, estimator.weights_frame()
    n_clusters = len(weights)
    for name in (*encoder.numbers_, *encoder.categories_):
        is_one = name in encoder.numbers_ or name in weights.columns
        features = [name] if is_one else encoder.features_of(name)
        share = weights[[f for f in features if f in weights.columns]].sum(axis=1)
        there = frame[name].notna().to_numpy()
        codes, values = pd.factorize(frame[name][there])
        if not 2 <= len(values) <= MOST_VALUES * n_clusters:
            continue
        agreement = adjusted_rand_score(codes, np.asarray(labels)[there])
        if agreement >= SAME:
            yield name, f"agrees almost completely with the clusters (ARI {agreement:.2f})"
        elif weights.shape[1] > len(features) and 2 * (share >= HEAVY).sum() >= n_clusters:
            yield name, f"has {share.max():.0%} of the weight of a cluster"
