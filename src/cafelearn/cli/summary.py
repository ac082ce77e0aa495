"""Summary of a fit, as facts for --json and as printed tables."""

import math
import warnings
from contextlib import contextmanager

from cafelearn.cli.tables import make_table, short, stacked

TOP = 5  # features of each cluster in the facts
LOWEST = 5  # rows in doubt that are described
RUNNERS_UP = 3  # candidates that are compared with the chosen one
LINES = 3  # features of each cluster in the printed table
PROFILE = (
    "variable",
    "category",
    "center",
    "spread",
    "overall",
    "difference",
    "description",
)
SETTINGS = ("scaling", "weighting", "dispersion_offset", "p")


@contextmanager
def findings_shown_here():
    """Suppress warnings of severe findings in the `with` block: `show_fit` prints them."""
    from cafelearn.choice.diagnosis import DiagnosisWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiagnosisWarning)
        yield


def facts_of(fitted):
    """Return the facts about a Fitted as a dict."""
    import numpy as np

    from cafelearn.interpret.labels import answer_words, chosen_position, settings_words

    model = fitted.estimator
    cafe, weights = model.cafe_, model.weights_frame()
    counts = np.bincount(fitted.labels, minlength=cafe.n_clusters_)
    frame, numbers = cafe.candidates_, cafe.n_clusters_table_
    chosen = chosen_position(frame)
    row = frame.iloc[chosen]
    candidates = _records(frame.rename_axis("candidate").reset_index())
    clusters = []
    for l, portrait in enumerate(fitted.portraits):
        top = weights.iloc[l].sort_values(ascending=False, kind="stable").head(TOP)
        clusters.append(
            {
                "cluster": l,
                "rows": int(counts[l]),
                "share": portrait.share,
                "profile": _records(portrait.different[list(PROFILE)]),
                "top_features": [
                    {"feature": name, "weight": float(weight)} for name, weight in top.items()
                ],
            }
        )
    return {
        "answer": answer_words(cafe),
        **_mixture_facts(cafe),
        "features": cafe.n_features_in_,
        "variables": weights.shape[1],
        "used_columns": len(set(model.encoder_.variables_out())),
        "components": int(cafe._n_features_out),
        "extracted": cafe.extractor_ is not None,
        "columns": model.encoder_.treatments_.reset_index().to_dict("records"),
        "constant": model.encoder_.constant_features_,
        "diagnosis": [finding._asdict() for finding in model.diagnosis_],
        "n_clusters": cafe.n_clusters_,
        "n_clusters_table": None if numbers is None else _records(numbers.reset_index()),
        "p": cafe.p_,
        "exponents": frame["p"].unique().tolist(),
        "selection": cafe.selection,
        "chosen": {name: candidates[chosen][name] for name in ("candidate", *SETTINGS)}
        | {"words": settings_words(row), "score": float(row["score"])},
        "candidates": candidates,
        "agreement": cafe.agreement_.tolist(),
        "clusters": clusters,
        "doubtful": _doubtful_rows(fitted),
    }


def _mixture_facts(cafe):
    """Return what is known of the mixture; None without a mixture."""
    from cafelearn.interpret.labels import is_mixture, mixture_words
    from cafelearn.interpret.profiles import feature_names

    names = ("verdict", "confidence", "stability", "cluster_stability", "relevance", "mixture")
    if not is_mixture(cafe):
        return dict.fromkeys(names)
    mixture, features = cafe.mixture_, feature_names(cafe)
    return {
        "verdict": cafe.verdict_,
        "confidence": cafe.confidence_,
        "stability": cafe.stability_,
        "cluster_stability": cafe.cluster_stability_.tolist(),
        "relevance": [
            dict(zip(features, roles, strict=True)) for roles in cafe.relevance_.tolist()
        ],
        "mixture": {
            "covariance": mixture.covariance_,
            "tails": bool(mixture.tails_),
            "background": mixture.background_,
            "irrelevant": float((cafe.relevance_ == 0).mean()),
            "words": mixture_words(mixture),
        },
    }


def _doubtful_rows(fitted):
    """Count the rows in doubt, and describe those with the lowest margins."""
    import numpy as np

    from cafelearn.interpret.labels import DOUBTFUL, DOUBTFUL_DISTANCE, is_mixture

    margin, names = fitted.margin, fitted.names
    below = DOUBTFUL if is_mixture(fitted.estimator.cafe_) else DOUBTFUL_DISTANCE
    lowest = [i for i in np.argsort(margin, kind="stable")[:LOWEST] if margin[i] < below]
    return {
        "below": below,
        "rows": int((margin < below).sum()),
        "lowest": [
            {"row": int(i), "cluster": int(fitted.labels[i]), "margin": float(margin[i])}
            | ({} if names is None else {"id": _scalar(names.iloc[i])})
            for i in lowest
        ],
    }


def agreement_with(labels, known):
    """Compute ARI and NMI of the clusters with known classes, ignoring rows without a class."""
    import pandas as pd
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    there = known.notna().to_numpy()
    codes, _ = pd.factorize(known[there])
    if not len(codes):
        raise ValueError(f"the label column {known.name!r} has no values.")
    found = labels[there]
    return {
        "column": known.name,
        "rows": len(codes),
        "ari": float(adjusted_rand_score(codes, found)),
        "nmi": float(normalized_mutual_info_score(codes, found)),
    }


def show_fit(out, facts):
    """Print the facts of a fit: the answer, then severe findings, then the rest."""
    out.say(facts["answer"], style="bold")
    for finding in facts["diagnosis"]:
        if finding["severity"] == "severe":
            out.say(f"Warning: {finding['message']} [{finding['code']}]", style="bold red")
    data, variables = facts["data"], facts["used_columns"]
    used = f"{variables:,} of " if variables < data["columns"] else ""
    out.say(
        f"Fitted CAFE on {data['rows']:,} rows, {used}{data['columns']:,} columns in "
        f"{facts['seconds']:.1f} s; {_features(facts)}"
    )
    if facts["n_clusters_table"] is not None:
        _show_numbers(out, facts["n_clusters_table"])
    _say_choice(out, facts)
    if "label" in facts:
        label = facts["label"]
        few = f"{label['rows']:,} of {data['rows']:,} rows have a label"
        out.say(
            f"Agreement of the clusters with {label['column']!r}"
            f"{f' ({few})' if label['rows'] < data['rows'] else ''}: "
            f"ARI {label['ari']:.3f}, NMI {label['nmi']:.3f}"
        )
    _show_clusters(out, facts["clusters"], facts["variables"])
    _say_doubtful(out, facts["doubtful"])
    for finding in facts["diagnosis"]:
        if finding["severity"] != "severe":
            out.say(f"Note: {finding['message']} [{finding['code']}]")
    if not facts["diagnosis"]:
        out.say("No problems found.")


def _features(facts):
    """Say what the features are."""
    m, n = facts["features"], facts["components"]
    if facts["extracted"]:
        return f"extracted {n:,} features from {m:,}"
    more = f" and {n - m:,} about the clusters" if n > m else ""
    return f"{n:,} features: {m:,} rescaled columns{more}"


def _show_numbers(out, numbers):
    """Print the chosen number of clusters and the gain of each number tried."""
    from cafelearn.interpret.labels import number_note, range_words

    chosen = next(row["n_clusters"] for row in numbers if row["chosen"])
    tried = [row["n_clusters"] for row in numbers]
    words = range_words(tried, ", ")
    out.say(f"Chose k = {chosen} by the gain over a single cloud (tried {words})")
    table = make_table(">k", ">gain", "")
    for row in numbers:
        table.add_row(str(row["n_clusters"]), f"{row['gain']:,.1f}", number_note(row))
    out.show("Numbers of clusters", table)


def _show_clusters(out, clusters, n_variables):
    """Print the main differences and the highest weights of each cluster."""
    from cafelearn.interpret.profiles import ALIKE, percent

    table = make_table(
        ">cluster", ">rows", "differs most from the rest in", "highest weights (most compact)"
    )
    for cluster in clusters:
        # Equal weights are 1 / n_variables, up to rounding.
        is_weighted = cluster["top_features"][0]["weight"] * n_variables > ALIKE
        lines = [short(row["description"], 56) for row in cluster["profile"][:LINES]]
        top = [
            f"{short(top['feature'], 28)} {top['weight']:.3g}"
            for top in cluster["top_features"][:LINES]
        ]
        table.add_row(
            str(cluster["cluster"]),
            f"{cluster['rows']:,} ({percent(cluster['share'])})",
            stacked(lines or ["no notable difference"]),
            stacked(top if is_weighted else ["all equal"]),
        )
    out.show("Clusters", table)


def _say_choice(out, facts):
    """Print the chosen mixture, or settings and score of the chosen candidate."""
    chosen, candidates = facts["chosen"], facts["candidates"]
    if facts["mixture"] is not None:
        if len(facts["clusters"]) > 1:
            out.say(f"Mixture: {facts['mixture']['words']}; stability {facts['stability']:.2f}")
        n = len(candidates)
        best = chosen["words"] if n == 1 else f"the best of {n} candidates: {chosen['words']}"
        out.say(f"Starts: Minkowski weighted k-means, {best}; Ward's method; others")
        return
    if len(candidates) == 1:
        out.say(f"Settings: {chosen['words']}; score {chosen['score']:,.1f}")
        return
    out.say(
        f"Chose 1 of {len(candidates)} candidates by {facts['selection']}: {chosen['words']}"
    )
    others = [row for row in candidates if not row["chosen"]]
    if facts["selection"] == "agreement":
        mean = sum(row["agreement"] for row in others) / len(others)
        out.say(
            f"Mean agreement with the others {mean:.3f} (ARI); score {chosen['score']:,.1f}"
        )
        return
    # Python's sort is stable: equal scores keep the order of `candidates_`.
    best = sorted(others, key=lambda row: -row["score"])[:RUNNERS_UP]
    scores = ", ".join(f"{row['score']:,.1f}" for row in best)
    agreement = ", ".join(f"{row['agreement']:.3f}" for row in best)
    out.say(
        f"Score {chosen['score']:,.1f}; next best: {scores} (ARI with this candidate: "
        f"{agreement})"
    )


def _say_doubtful(out, doubtful):
    if not doubtful["rows"]:
        out.say(f"No row is in doubt (margin below {doubtful['below']:g}).")
        return
    shown = ", ".join(
        f"{short(row.get('id', row['row']))} (cluster {row['cluster']}, {row['margin']:.3f})"
        for row in doubtful["lowest"]
    )
    out.say(
        f"Rows in doubt (margin below {doubtful['below']:g}): {doubtful['rows']:,}. "
        f"Lowest: {shown}"
    )


def _records(frame):
    """Convert a data frame to a list of dicts, with None for NaN."""
    return [
        {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in record.items()
        }
        for record in frame.to_dict("records")
    ]


def _scalar(value):
    import pandas as pd

    if value is pd.NA:
        return None
    return value.item() if hasattr(value, "item") else value
