"""What a fit report says in words: the summary, the key numbers, the code to use it."""

import inspect

import numpy as np

from cafelearn._labels import SELECTIONS, exponent_name, offset_name
from cafelearn.cafe import CAFE
from cafelearn.report.page import count, join, number, short

EXTRACTORS = {
    "pca": "principal component analysis",
    "nmf": "non-negative matrix factorisation",
    "ica": "reconstruction ICA",
    "fastica": "FastICA",
    "autoencoder": "an autoencoder",
    "umap": "UMAP",
}
RESCALINGS = {
    "distances": "Each row was joined by the logarithms of its weighted distances to all "
    "centres",
    "origin": "Each row was multiplied by the feature weights of its cluster",
    "centroid": "Each row was shrunk towards the centre of its cluster, most along the "
    "features with little weight",
}
SCALINGS = {
    "range": "centred and divided by its range",
    "standard": "brought to mean 0 and variance 1",
    "none": "left in its own units",
}
# Settings that do not change the result.
SILENT = ("n_jobs", "verbose")


def summary(facts) -> str:
    """What was done, in one paragraph."""
    k = facts.n_clusters
    n_rows = facts.n_fitted or facts.n_rows
    sentences = [
        f"CAFE looked for {_plural(k, 'cluster')} in {_plural(n_rows, 'row')} of "
        f"{_plural(facts.X.shape[1], 'feature')}. Each feature was {_scaling(facts)}.",
        _starts(facts),
        _rescaling(facts),
    ]
    if facts.is_sample:
        sentences.append(
            f"This report was made from a sample of {_plural(facts.n_rows, 'row')}; weights, "
            "starts and agreement are those of the fit, all else is measured on the sample."
        )
    low, middle = np.quantile(facts.margin, [0.05, 0.5])
    if k > 1:
        sentences.append(
            f"Half of the rows have an assignment margin above {number(middle, 2)}, and one "
            f"in twenty has one below {number(low, 2)} (1 is at a centre, 0 half way between "
            "two)."
        )
    return " ".join(sentences)


def key_numbers(facts) -> list[tuple[str, str]]:
    """The numbers at the top of the page."""
    found = [
        (count(facts.n_fitted or facts.n_rows), "rows"),
        *([(count(facts.n_rows), "of them shown here")] if facts.is_sample else []),
        (count(facts.X.shape[1]), "features"),
        (count(facts.n_clusters), "clusters"),
        *([(count(n), "candidates tried")] if (n := len(facts.candidates)) > 1 else []),
        (exponent_name(facts.cafe.p_), "exponent chosen"),
        (count(facts.features.shape[1]), "extracted features"),
    ]
    if facts.mean_agreement is not None:
        found.append((f"{facts.mean_agreement:.2f}", "mean agreement with the others"))
    return found


def cluster_cards(facts) -> list[dict]:
    """Each cluster: size, margin, and the features that count in it most and least."""
    equal = 1 / facts.X.shape[1]
    cards = []
    for l, weights in enumerate(facts.weights):
        order = np.argsort(-weights, kind="stable")
        members = facts.labels == l
        cards.append(
            {
                "index": l,
                "rows": int(facts.sizes[l]),
                "share": _percent(facts.sizes[l] / facts.n_rows),
                "margin": float(np.median(facts.margin[members])) if members.any() else None,
                "top": [
                    {
                        "name": short(facts.feature_names[v], 60),
                        "weight": float(weights[v]),
                        "bar": round(100 * float(weights[v] / weights[order[0]])),
                        "times": f"{weights[v] / equal:.1f}",
                    }
                    for v in order[:4]
                ],
            }
        )
    return cards


def snippet(facts) -> str:
    """Code that makes the same fit and uses it on new rows."""
    cafe = facts.cafe
    arguments = "".join(
        f"    {name}={' '.join(repr(getattr(cafe, name)).split())},\n"
        for name, parameter in inspect.signature(CAFE).parameters.items()
        if name == "n_clusters"
        or (name not in SILENT and repr(getattr(cafe, name)) != repr(parameter.default))
    )
    seeded = "" if cafe.random_state is not None else "  # unseeded: another run may differ"
    return (
        f"from cafelearn import CAFE\n\ncafe = CAFE(\n{arguments}){seeded}\n"
        "features = cafe.fit_transform(X)        # the rows of this report\n\n"
        "labels = cafe.predict(X_new)            # new rows, with the same columns\n"
        "new_features = cafe.transform(X_new)\n"
        "margin = cafe.assignment_margin(X_new)  # near 0: doubtful\n"
        "weights = cafe.weights_frame()          # clusters by features\n"
    )


def _scaling(facts):
    name = facts.candidates["scaling"].iloc[facts.chosen]
    return SCALINGS.get(name, f"scaled by {name}")


def _starts(facts):
    models, frame = facts.cafe.models_, facts.candidates
    starts = sum(len(model.init_objectives_) for model in models)
    each = len(facts.model.init_objectives_)
    times = "once" if starts == 1 else f"{count(starts)} times"
    clustered = f"The rows were clustered {times} by Minkowski weighted k-means"
    if len(models) == 1:
        kept = "" if starts == 1 else ", and the start with the lowest objective was kept"
        return f"{clustered} at {exponent_name(facts.cafe.p_)}{kept}: {facts.words}."
    others = "them" if facts.cafe.selection == "agreement" else "the others"
    reason = (
        f"{SELECTIONS[facts.cafe.selection]}; its mean adjusted Rand index with {others} is "
        f"{facts.mean_agreement:.2f}"
    )
    exponents = f"p = {join(f'{p:g}' for p in frame['p'].unique())}"
    if len(models) == frame["p"].nunique():
        return (
            f"{clustered}, {_plural(each, 'start')} for each exponent {exponents}, and the "
            f"best start of each was kept. The clustering at {exponent_name(facts.cafe.p_)} "
            f"was chosen: it has {reason}."
        )
    return (
        f"{clustered}, {_plural(each, 'start')} for each of {count(len(models))} candidates "
        f"({_combined(frame)}, {exponents}), and the best start of each was kept. The "
        f"clustering with {facts.words} was chosen: it has {reason}."
    )


def _combined(frame):
    """The settings other than p that the candidates combine."""
    offsets = frame["dispersion_offset"].dropna().unique()
    values = {
        "scaling": frame["scaling"].unique(),
        "weighting": frame["weighting"].unique(),
        "offset": [offset_name(offset).removeprefix("offset ") for offset in offsets],
    }
    return ", ".join(f"{name} {join(found)}" for name, found in values.items() if len(found))


def _rescaling(facts):
    cafe = facts.cafe
    own = f"Rescaling {cafe.rescaling!r} was applied to each row"
    extractor = (
        EXTRACTORS.get(cafe.extractor, cafe.extractor)
        if isinstance(cafe.extractor, str)
        else type(cafe.extractor).__name__
    )
    if cafe.extractor is None:
        return f"{RESCALINGS.get(cafe.rescaling, own)}; no features were extracted from that."
    return (
        f"{RESCALINGS.get(cafe.rescaling, own)}, and {extractor} made "
        f"{_plural(facts.features.shape[1], 'feature')} of the result."
    )


def _percent(share):
    return f"{share:.0%}" if share >= 0.01 or share == 0 else "<1%"


def _plural(n, word):
    return f"{count(n)} {word}{'' if n == 1 else 's'}"
