"""What there is to say about a fit: as facts, and as tables for a reader."""

from cafelearn.cli.tables import make_table, plain, short

DOUBTFUL = 0.1  # margins below it
TOP = 5
LOWEST = 5


def facts_of(model, counts, n_doubtful, doubtful):
    """Facts about a fitted TabularCAFE: rows of each cluster, and the most doubtful ones."""
    cafe, weights = model.cafe_, model.weights_frame()
    exponents = list(cafe.models_)
    clusters = []
    for l in range(len(weights)):
        top = weights.iloc[l].sort_values(ascending=False, kind="stable").head(TOP)
        clusters.append(
            {
                "cluster": l,
                "rows": int(counts[l]),
                "top_features": [
                    {"feature": name, "weight": float(weight)} for name, weight in top.items()
                ],
            }
        )
    return {
        "features": weights.shape[1],
        "components": int(cafe._n_features_out),
        "constant": model.encoder_.constant_features_,
        "p": cafe.p_,
        "exponents": exponents,
        "agreement": cafe.agreement_.tolist(),
        "clusters": clusters,
        "doubtful": {"below": DOUBTFUL, "rows": n_doubtful, "lowest": doubtful},
    }


def doubtful_rows(labels, margin, row_names=None, first=0):
    """How many rows are in doubt, and facts about the worst; `first` is the first's number."""
    import numpy as np

    lowest = np.argsort(margin, kind="stable")[:LOWEST]
    return int((margin < DOUBTFUL).sum()), [
        {"row": first + int(i), "cluster": int(labels[i]), "margin": float(margin[i])}
        | ({} if row_names is None else {"id": _scalar(row_names[i])})
        for i in lowest
        if margin[i] < DOUBTFUL
    ]


def agreement_with(labels, known):
    """ARI and NMI with known labels; rows without one do not count."""
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
    """Print the facts of a fit."""
    p, exponents = facts["p"], facts["exponents"]
    if len(exponents) > 1:
        row = facts["agreement"][exponents.index(p)]
        mean = (sum(row) - 1) / (len(row) - 1)
        tried = ", ".join(f"{q:g}" for q in exponents)
        out.say(
            f"Exponent p = {p:g} of {tried}: mean agreement with the others {mean:.3f} (ARI)"
        )
    else:
        out.say(f"Exponent p = {p:g}")
    if "label" in facts:
        label = facts["label"]
        out.say(
            f"Agreement of the clusters with {label['column']!r}: "
            f"ARI {label['ari']:.3f}, NMI {label['nmi']:.3f}"
        )
    table = make_table(">cluster", ">rows", "features with the highest weights")
    for cluster in facts["clusters"]:
        top = ", ".join(
            f"{short(top['feature'])} {top['weight']:.3g}" for top in cluster["top_features"]
        )
        table.add_row(str(cluster["cluster"]), f"{cluster['rows']:,}", plain(top))
    out.show("Clusters", table)
    _say_doubtful(out, facts["doubtful"])


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


def _scalar(value):
    return value.item() if hasattr(value, "item") else value
