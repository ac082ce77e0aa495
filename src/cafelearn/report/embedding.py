"""Data of the scatter plot of extracted features."""

import numpy as np
import pandas as pd

from cafelearn.report.page import short

# With more rows, a sample of about this size is drawn.
MOST_POINTS = 5_000
# Largest number of extracted features to choose the axes from.
MOST_AXES = 8
# Smallest number of points of a cluster in the sample; it is lower if there are many clusters.
AT_LEAST = 20


def embedding(facts) -> dict:
    """Return the names of the rows, their values on each axis, and their groups."""
    rows = sample(facts.labels, facts.n_clusters)
    features = facts.features[:, :MOST_AXES]
    # Extracted features are numbered from 1, clusters from 0.
    name = axis_name(facts)
    axes = [
        {"name": f"{name} {v + 1 if facts.cafe else v}", "values": _digits(features[rows, v])}
        for v in range(features.shape[1])
    ]
    axes.append({"name": "assignment margin", "values": _digits(facts.margin[rows])})
    colours = [
        {
            "name": "cluster",
            "groups": [f"cluster {l}" for l in range(facts.n_clusters)],
            "codes": facts.labels[rows].tolist(),
        }
    ]
    if facts.classes is not None:
        names = ["missing" if pd.isna(c) else short(c, 60) for c in facts.classes]
        codes, groups = pd.factorize(np.asarray(names, dtype=object), sort=True)
        colours.append({"name": "class", "groups": list(groups), "codes": codes[rows].tolist()})
    return {
        "ids": [short(facts.row_ids[i], 80) for i in rows],
        "axes": axes,
        "colours": colours,
    }


def axis_name(facts):
    """Return the name of the coordinates, without their number."""
    if facts.cafe is None:
        return "distance to cluster"
    return "extracted feature" if facts.extracts else "principal component"


def sample(labels, n_clusters, most=MOST_POINTS, seed=0):
    """Return the indices of all rows, or of a sample of about `most`, stratified by cluster."""
    if len(labels) <= most:
        return np.arange(len(labels))
    rng = np.random.default_rng(seed)
    least = max(1, min(AT_LEAST, most // (5 * n_clusters)))
    drawn = []
    for l in range(n_clusters):
        members = np.flatnonzero(labels == l)
        wanted = max(least, round(most * len(members) / len(labels)))
        drawn.append(rng.choice(members, min(wanted, len(members)), replace=False))
    return np.sort(np.concatenate(drawn))


def _digits(values):
    """Round to five significant digits; values that are not finite become None."""
    return [float(f"{v:.5g}") if np.isfinite(v) else None for v in values.tolist()]
