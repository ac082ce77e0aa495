"""Remarks about the columns of a table that was fitted."""

import numpy as np

from cafelearn._words import listed

# A column with no more values than this many times the clusters may hold known classes;
MOST_VALUES = 2
# it is remarked upon if it agrees with the clusters this well (ARI), or has this share of the
# weight in at least half of them.
SAME, HEAVY = 0.9, 0.9


def remark_columns(run, estimator, frame, labels):
    """Remark on columns that do not vary, that count the rows, or that hold the classes."""
    encoder = estimator.encoder_
    if encoder.constant_features_:
        run.remark(f"Left out, because they do not vary: {listed(encoder.constant_features_)}.")
    counting = [
        name
        for name in encoder.numbers_
        if frame[name].dtype.kind in "iu"
        and len(frame) > 2
        and (np.diff(frame[name]) == 1).all()
    ]
    if counting:
        run.remark(
            f"These columns just count the rows: {listed(counting)}. They were used as "
            "features; --drop leaves them out, --id names rows by one."
        )
    for name, why in _targets(estimator, frame, labels):
        run.remark(
            f"Column {name!r} {why}. If it holds known classes, --label leaves it out of the "
            "fit and compares it with the clusters."
        )


def _targets(estimator, frame, labels):
    """Columns that may hold known classes, each with the reason."""
    import pandas as pd
    from sklearn.metrics import adjusted_rand_score

    encoder, weights = estimator.encoder_, estimator.weights_frame()
    n_clusters = len(weights)
    for name in (*encoder.numbers_, *encoder.categories_):
        features = [name] if name in encoder.numbers_ else encoder.features_of(name)
        share = weights[[f for f in features if f in weights.columns]].sum(axis=1)
        there = frame[name].notna().to_numpy()
        codes, values = pd.factorize(frame[name][there])
        if not 2 <= len(values) <= MOST_VALUES * n_clusters:
            continue
        agreement = adjusted_rand_score(codes, np.asarray(labels)[there])
        if agreement >= SAME:
            yield name, f"agrees with the clusters almost entirely (ARI {agreement:.2f})"
        elif weights.shape[1] > len(features) and 2 * (share >= HEAVY).sum() >= n_clusters:
            yield name, f"has {share.max():.0%} of the weight of a cluster"
