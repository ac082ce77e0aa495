"""Tables of a fit report."""

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from cafelearn.data.gaps import extremes, has_gaps, observed_moments
from cafelearn.data.variables import of_variables, sum_over_variables, variable_codes
from cafelearn.interpret.labels import ROLES
from cafelearn.interpret.profiles import amount_in, decimals_for, variable_names
from cafelearn.report.page import count, number, short
from cafelearn.report.tables import (
    Cell,
    Table,
    clusters,
    count_cell,
    heat_cell,
    kept_features,
    number_cell,
    numbers,
    text_cell,
    texts,
)
from cafelearn.report.tried import shown_name
from cafelearn.theory import certificate

# Largest numbers of features, classes and doubtful rows that are listed.
MOST_FEATURES = 5_000
MOST_CLASSES = 40
DOUBTFUL_ROWS = 100
# The certificate compares all pairs of features in each cluster; with more pairs than this, it
# is left out.
MOST_PAIRS = 10_000_000
# A start counts as reaching the best objective if its own is higher by at most this fraction.
SAME_OBJECTIVE = 1e-6


def data_table(facts) -> Table:
    """Tabulate summary statistics of each feature in its own units."""
    X = facts.X[:, :MOST_FEATURES]
    low, high, gaps = extremes(X)
    mean, spread = X.mean(axis=0, dtype=np.float64), X.std(axis=0, dtype=np.float64)
    observed = np.full(X.shape[1], len(X))
    if gaps:
        mean, variance = observed_moments(X)
        spread, observed = np.sqrt(variance), np.maximum((~np.isnan(X)).sum(axis=0), 1)
    # Means that differ from zero only by rounding errors are set to zero.
    mean[np.abs(mean) < 1e-12 * (np.abs(low) + np.abs(high))] = 0.0
    columns = [
        low,
        mean,
        high,
        spread,
        (X == 0).sum(axis=0) / observed,
        1 - observed / len(X),
    ][: 6 if gaps else 5]
    units = facts.estimator._profile_units()
    rows = [
        [
            text_cell(name),
            *(_statistic(column[v], units.get(name), spread[v]) for column in columns[:3]),
            _statistic(spread[v], "duration" if name in units else None, spread[v]),
            *(Cell(f"{column[v]:.0%}", float(column[v])) for column in columns[4:]),
        ]
        for v, name in enumerate(facts.feature_names[:MOST_FEATURES])
    ]
    names = ("min", "mean", "max", "std", "zeros", "missing")[: len(columns)]
    return Table(
        "data-table",
        "Features, in their own units",
        [*texts("feature"), *numbers(*names)],
        rows,
        shown=12,
        search="Find a feature",
    )


def _statistic(value, unit, spread):
    """Make a cell with a number, a date or a duration, depending on the unit."""
    cell = number_cell(float(value), 4)
    if unit is None or np.isnan(value):
        return cell
    return cell._replace(text=amount_in(unit, float(value), decimals_for(spread)))


def weights_table(facts) -> Table:
    """Tabulate the weight of each feature in each cluster; the largest weights come first."""
    codes, names = variable_codes(facts.inner), variable_names(facts.inner)
    weights = of_variables(facts.weights, codes)
    extra = _roles(facts, codes) if facts.is_mixture else _dispersions(facts, codes)
    what = "feature" if codes is None else "variable"
    kept = kept_features(weights)
    # Uniform weights are shaded relative to 1, or all cells would have the darkest shade.
    top = 1.0 if facts.is_uniform else float(weights.max()) or 1.0
    # Enough decimals for two significant digits of the uniform weight.
    decimals = max(3, 2 + int(np.ceil(np.log10(weights.shape[1]))))
    rows = [
        [
            text_cell(str(names[v])),
            *(
                heat_cell(w, w / top, _weight(w, decimals), extra=extra(l, v))
                for l, w in enumerate(weights[:, v].astype(float))
            ),
        ]
        for v in kept
    ]
    return Table(
        "weights-table",
        f"Weight of each {what} in each cluster, the largest weights first",
        [*texts(what), *clusters(facts.n_clusters)],
        rows,
        shown=20,
        search=f"Find a {what}",
        measure="weight",
        extra="" if facts.is_mixture else "dispersion",
    )


def _dispersions(facts, codes):
    """Return a function that formats the dispersion of a variable in a cluster."""
    dispersions = sum_over_variables(facts.model.dispersions_, codes)
    return lambda l, v: number(float(dispersions[l, v]))


def _roles(facts, codes):
    """Return a function that names the role of a variable in a cluster."""
    relevance = facts.inner.relevance_
    if codes is not None:
        columns = [codes == g for g in range(codes.max() + 1)]
        relevance = np.stack([relevance[:, of].max(axis=1) for of in columns], axis=1)
    return lambda l, v: ROLES[relevance[l, v]]


def _weight(weight, decimals):
    smallest = 10.0**-decimals
    return f"{weight:.{decimals}f}" if weight >= smallest else f"<{smallest:.{decimals}f}"


def restarts_table(facts) -> Table:
    """Tabulate the starts of each candidate."""
    rows = []
    for i in facts.order:
        model = facts.models[i]
        objectives = model.init_objectives_
        above = _above_best(objectives)
        rows.append(
            [
                text_cell(shown_name(facts, i), mark="chosen" if i == facts.chosen else None),
                number_cell(model.inertia_, 5),
                count_cell(len(objectives)),
                count_cell((above <= SAME_OBJECTIVE).sum()),
                Cell(f"{np.median(above):.2%}", float(np.median(above))),
                count_cell(model.n_iter_),
                text_cell(
                    model.stop_reason_,
                    "good" if model.stop_reason_ == "converged" else "warn",
                ),
            ]
        )
    names = ("objective", "starts", "reached the best", "median above the best", "iterations")
    return Table(
        "restarts-table",
        "The starts of each candidate; objectives of different candidates are not comparable",
        [*texts("candidate"), *numbers(*names), *texts("stop reason")],
        rows,
        shown=12,
    )


def _above_best(objectives):
    """Return the relative difference of each objective from the lowest objective."""
    best = objectives.min()
    if not 0 < best < np.inf:
        return np.where(objectives == best, 0.0, np.inf)
    return objectives / best - 1


def certificate_section(facts) -> dict:
    """Check the claims of the paper on the chosen model, or explain why this was not done.

    For a mixture, the model is the start with the highest score.
    """
    if remark := _why_unchecked(facts):
        return {"table": None, "remark": f"The claims were not checked: {remark}"}
    table = certificate(facts.model, facts.placed.scaled)
    marks = {"holds": "good", "does not hold": "bad", "does not apply": "quiet"}
    applies = table["verdict"] != "does not apply"
    return {
        "counts": {verdict: int((table["verdict"] == verdict).sum()) for verdict in marks},
        "remark": None,
        "table": _claims(
            "certificate-table",
            f"Claims of the theory on the {'start' if facts.is_mixture else 'model'} at p = "
            f"{facts.model.p:g}",
            table[applies],
            marks,
        ),
        "others": None
        if applies.all()
        else _claims("folded-table", "Claims that do not apply", table[~applies], marks),
    }


def _why_unchecked(facts):
    """Say why the claims cannot be checked on the rows of the report; None if they can."""
    m, k = facts.X.shape[1], facts.n_clusters
    if facts.is_sample:
        return (
            "they are about all rows of the fit, but this report was made from a sample of "
            f"{count(facts.n_rows)} rows."
        )
    if not np.isclose(facts.model._mass.sum(), facts.n_rows):
        return (
            "the fit had sample weights, which the report does not have. Call "
            "cafelearn.theory.certificate with these weights to check the claims."
        )
    if has_gaps(facts.X):
        return "they assume complete rows, but some rows have missing values."
    if k * m**2 > MOST_PAIRS:
        return (
            f"they compare all pairs of features in each cluster. For {count(m)} features "
            f"there are {count(k * m**2)} pairs. Call cafelearn.theory.certificate on the "
            "model to check the claims."
        )
    return None


def _claims(name, caption, table, marks):
    """Tabulate claims, one row each."""
    rows = [
        [
            text_cell(claim),
            text_cell(row.verdict, marks[row.verdict]),
            number_cell(row.measured),
            number_cell(row.bound),
            number_cell(row.slack),
            text_cell(row.note, "note"),
        ]
        for claim, row in table.iterrows()
    ]
    return Table(
        name,
        caption,
        [
            *texts("claim"),
            *texts("verdict", choose=True),
            *numbers("measured", "bound", "slack"),
            *texts("note"),
        ],
        rows,
        shown=40,
    )


def doubtful_table(facts) -> Table:
    """Tabulate the rows with the smallest assignment margins."""
    order = np.argsort(facts.margin, kind="stable")[:DOUBTFUL_ROWS]
    rows = []
    for i in order:
        own, second = int(facts.labels[i]), int(facts.placed.second[i])
        rows.append(
            [
                text_cell(facts.row_ids[i]),
                Cell(f"cluster {own}", own),
                Cell(f"cluster {second}", second),
                number_cell(float(facts.margin[i])),
                *([text_cell(facts.classes[i])] if facts.classes is not None else []),
            ]
        )
    return Table(
        "doubtful-table",
        "Rows with the smallest assignment margins",
        [
            *texts("row"),
            *texts("cluster", "second cluster", choose=True),
            *numbers("margin"),
            *texts(*(["class"] if facts.classes is not None else [])),
        ],
        rows,
        shown=15,
        search="Find a row",
    )


def classes_section(facts) -> dict | None:
    """Compare the clusters with the known classes; return None if no classes are given."""
    if facts.classes is None:
        return None
    # As in the summary of the command, rows without a class do not count in the agreement.
    known = np.array([not pd.isna(c) for c in facts.classes])
    if not known.any():
        return None
    names = ["missing" if pd.isna(c) else short(c, 60) for c in facts.classes]
    codes, distinct = pd.factorize(np.asarray(names, dtype=object), sort=True)
    counts = np.zeros((len(distinct), facts.n_clusters), dtype=int)
    np.add.at(counts, (codes, facts.labels), 1)
    order = np.argsort(-counts.sum(axis=1), kind="stable")[:MOST_CLASSES]
    rows = [
        [
            text_cell(distinct[c]),
            *(
                heat_cell(
                    int(n), n / counts[c].sum(), count(n), extra=f"{n / counts[c].sum():.0%}"
                )
                for n in counts[c]
            ),
            count_cell(counts[c].sum()),
        ]
        for c in sorted(order)
    ]
    found = codes[known], facts.labels[known]
    return {
        "ari": float(adjusted_rand_score(*found)),
        "nmi": float(normalized_mutual_info_score(*found)),
        "n_classes": len(np.unique(codes[known])),
        "n_missing": int((~known).sum()),
        "n_left_out": len(distinct) - len(order),
        "table": Table(
            "classes-table",
            "Rows of each class in each cluster",
            [*texts("class"), *clusters(facts.n_clusters), *numbers("rows")],
            rows,
            shown=MOST_CLASSES,
            measure="rows",
            extra="share of the class",
        ),
    }
