"""The summary, the key numbers and the cluster cards of a fit report."""

import numpy as np

from cafelearn.choice.selection import SELECTIONS
from cafelearn.extraction.table import EXTRACTORS
from cafelearn.interpret.labels import (
    DOUBTFUL,
    exponent_name,
    joined,
    mixture_words,
    offset_name,
    plural,
    relevance_words,
)
from cafelearn.interpret.profiles import percent, variable_names
from cafelearn.report.page import count, number, short

RESCALINGS = {
    "memberships": "Each row was standardised and extended by its membership probabilities and "
    "the log densities of the clusters",
    "distances": "Each row was extended by the logarithms of its weighted distances to all "
    "centres",
    "origin": "Each row was multiplied by the feature weights of its cluster",
    "centroid": "Each row was shrunk towards the centre of its cluster, most strongly on the "
    "features with low weights",
}
# Largest number of differences, and of high weights, that are listed for a cluster.
MOST_LINES = 4
SCALINGS = {
    "range": "centred and divided by its range",
    "standard": "scaled to mean 0 and variance 1",
    "none": "left in its own units",
}


def summary(facts) -> str:
    """Summarise the fit in one paragraph."""
    k = facts.n_clusters
    n_rows = facts.n_fitted or facts.n_rows
    chosen = "" if facts.inner.n_clusters_table_ is None else " (chosen automatically)"
    method = "Minkowski weighted k-means" if facts.cafe is None else "CAFE"
    fitted = (
        f"{method} was fitted with {plural(k, 'cluster')}{chosen} to {plural(n_rows, 'row')} "
        f"of {_columns(facts)}."
    )
    if facts.is_mixture:
        sentences = [fitted, *_left_out(facts), _mixture(facts)]
    else:
        sentences = [
            f"{fitted} Each feature was {_scaling(facts)}.",
            *_left_out(facts),
            _starts(facts),
        ]
    sentences += [] if facts.cafe is None else [_rescaling(facts)]
    if facts.is_sample:
        sentences.append(
            f"This report was made from a sample of {plural(facts.n_rows, 'row')}. Weights, "
            "starts and agreement are those of the fit; everything else describes the sample."
        )
    if k > 1 and facts.is_mixture:
        sentences.append(_doubt(facts.margin))
    elif k > 1:
        low, middle = np.quantile(facts.margin, [0.05, 0.5])
        sentences.append(
            "The assignment margin is 1 at a centre and 0 halfway between two centres. It is "
            f"above {number(middle, 2)} in half of the rows, and below {number(low, 2)} in one "
            "row in twenty."
        )
    return " ".join(sentences)


def key_numbers(facts) -> list[tuple[str, str]]:
    """Return the numbers at the top of the page."""
    found = [
        (count(facts.n_fitted or facts.n_rows), "rows"),
        *([(count(facts.n_rows), "rows in this report")] if facts.is_sample else []),
        (count(facts.X.shape[1]), "features"),
        (count(facts.n_clusters), f"cluster{'' if facts.n_clusters == 1 else 's'}"),
    ]
    if facts.is_mixture:
        if facts.n_clusters > 1:
            cafe = facts.cafe
            found += [(cafe.confidence_, "confidence"), (f"{cafe.stability_:.2f}", "stability")]
    else:
        n = len(facts.candidates)
        found += [(count(n), "candidates tried")] if n > 1 else []
        found.append(
            (exponent_name(facts.model.p), f"{'chosen ' if n > 1 else ''}exponent"),
        )
    if facts.extracts:
        found.append((count(facts.features.shape[1]), "extracted features"))
    if facts.mean_agreement is not None and not facts.is_mixture:
        found.append((f"{facts.mean_agreement:.2f}", "mean agreement with other candidates"))
    return found


def _doubt(margin):
    """Say in how many rows the second cluster is more than half as likely as the first."""
    n = int((margin < DOUBTFUL).sum())
    rows = f"{plural(n, 'row')} ({percent(n / len(margin))})" if n else "no row"
    return f"In {rows}, the second cluster is more than half as likely as the first."


def _mixture(facts):
    """Describe the mixture and its starts."""
    cafe = facts.cafe
    starts = (
        f"It started from {plural(len(facts.models), 'candidate')} of Minkowski weighted "
        "k-means, from Ward's method and from k-means."
    )
    if facts.n_clusters == 1:
        return "The cluster is a mixture of one component."
    stability = (
        "Mixtures fitted to random halves of the rows agree with the clusters by "
        f"{cafe.stability_:.2f} (stability: mean adjusted Rand index)."
    )
    return (
        f"The clusters are the components of a mixture: {mixture_words(cafe.mixture_)}. "
        f"{starts} {stability}"
    )


def cluster_cards(facts) -> list[dict]:
    """Describe each cluster: size, median margin, largest differences and highest weights."""
    equal = 1 / len(variable_names(facts.inner))
    cards = []
    for portrait in facts.placed.portraits:
        l = portrait.cluster
        members = facts.labels == l
        heaviest = float(facts.weights[l].max()) or 1.0
        cards.append(
            {
                "index": l,
                "stability": _stability(facts, l),
                "rows": int(facts.sizes[l]),
                "share": percent(facts.sizes[l] / facts.n_rows),
                "margin": float(np.median(facts.margin[members])) if members.any() else None,
                "different": [
                    {"text": short(row.description, 120), "above": row.difference > 0}
                    for row in portrait.different.head(MOST_LINES).itertuples()
                ],
                "compact": [
                    {
                        "name": short(feature_text(row.variable, row.category), 60),
                        "bar": round(100 * float(row.weight / heaviest)),
                        "times": f"{row.weight / equal:.1f}",
                    }
                    for row in portrait.compact.head(MOST_LINES).itertuples()
                ],
            }
        )
    return cards


def relevance(facts) -> str:
    """Say how many columns are irrelevant in the mixture; empty without one."""
    if not facts.is_mixture:
        return ""
    words = relevance_words(facts.inner.relevance_)
    return f"In the mixture: {words}."


def _stability(facts, l):
    if not facts.is_mixture or facts.n_clusters == 1:
        return None
    return float(facts.cafe.cluster_stability_[l])


def feature_text(variable, category) -> str:
    """Format the name of a variable, or of a variable and a category."""
    return str(variable) if category is None else f"{variable}: {category}"


def _columns(facts):
    """State the number of features; for a table also the number of its columns."""
    features = plural(facts.X.shape[1], "feature")
    encoder = facts.estimator.encoder_ if facts.is_table else None
    if encoder is None:
        return features
    n_used = len(set(encoder.variables_out()))
    columns, encoded = plural(encoder.n_features_in_, "column"), ""
    if encoder.categories_:
        encoded = f", encoded as {features}"
    if n_used < encoder.n_features_in_:
        return f"{columns} ({count(n_used)} used{encoded})"
    return f"{columns}{encoded}" if encoded else features


def _left_out(facts):
    """List the columns of a table that were not used, with the reasons."""
    if not facts.is_table:
        return []
    encoder = facts.estimator.encoder_
    names = encoder.describe("identifier", "free text", "constant", "dropped")
    return [f"Left out: {names}."] if names else []


def _scaling(facts):
    name = facts.candidates["scaling"].iloc[facts.chosen]
    return SCALINGS.get(name, f"scaled by {name}")


def _starts(facts):
    models, frame = facts.models, facts.candidates
    starts = sum(len(model.init_objectives_) for model in models)
    each = len(facts.model.init_objectives_)
    times = "once" if starts == 1 else f"{count(starts)} times"
    clustered = f"The rows were clustered {times} by Minkowski weighted k-means"
    if len(models) == 1:
        kept = "" if starts == 1 else ", and the start with the lowest objective was kept"
        return f"{clustered} at {exponent_name(facts.model.p)}{kept}. Settings: {facts.words}."
    reason = (
        f"was chosen, because it has {SELECTIONS[facts.cafe.selection].text}. Its mean "
        f"adjusted Rand index with the other candidates is {facts.mean_agreement:.2f}."
    )
    exponents = f"p = {joined(f'{p:g}' for p in frame['p'].unique())}"
    if len(models) == frame["p"].nunique():
        return (
            f"{clustered}, {plural(each, 'start')} for each of the exponents {exponents}, and "
            "the best start at each exponent was kept. The clustering at "
            f"{exponent_name(facts.model.p)} {reason}"
        )
    return (
        f"{clustered}, {plural(each, 'start')} for each of {count(len(models))} candidates "
        f"({_combined(frame)}, {exponents}), and the best start of each candidate was kept. "
        f"The clustering with {facts.words} {reason}"
    )


def _combined(frame):
    """List the settings of the candidates, except p."""
    offsets = frame["dispersion_offset"].dropna().unique()
    values = {
        "scaling": frame["scaling"].unique(),
        "weighting": frame["weighting"].unique(),
        "offset": [offset_name(offset).removeprefix("offset ") for offset in offsets],
    }
    return ", ".join(f"{name} {joined(found)}" for name, found in values.items() if len(found))


def _rescaling(facts):
    cafe = facts.cafe
    used = cafe._input
    own = RESCALINGS.get(used, f"Rescaling {used!r} was applied to each row")
    if cafe.extractor_ is None:
        return f"{own}; no features were extracted from the result."
    name = cafe.extractor if isinstance(cafe.extractor, str) else None
    name = "pca" if name == "auto" else name
    extractor = type(cafe.extractor).__name__ if name is None else EXTRACTORS[name].text
    return (
        f"{own}, and {extractor} extracted {plural(facts.features.shape[1], 'feature')} from "
        "the result."
    )
