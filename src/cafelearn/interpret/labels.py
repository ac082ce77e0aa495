"""The answer of CAFE and its candidates in words, for charts, tables and sentences.

The argument `candidates` is the data frame ``CAFE.candidates_``.
"""

import pandas as pd

from cafelearn.interpret.profiles import percent
from cafelearn.kmeans.kernels.weights import WEIGHTINGS

SCALINGS = {"none": "no scaling"}
# The covariance structures of a mixture in words.
COVARIANCES = {
    "independent": "columns are independent within clusters",
    "spherical": "columns have one spread within each cluster",
    "tied": "columns are correlated within clusters, in all clusters alike",
    "proportional": "columns are correlated within clusters, in all clusters alike up to size",
    "full": "columns are correlated within clusters, in each cluster in its own way",
    "lowrank": "columns are correlated within clusters by few factors",
}
# The verdict on a mixture in words; that on a structure depends on the confidence.
VERDICTS = {
    "none": "no cluster structure was found",
    "inconclusive": "there is little evidence for or against clusters",
    "continuum": "the clusters are cuts through a cloud without gaps",
}
STRUCTURES = {
    "high": "the rows form separate clusters, the same ones in random halves of the rows",
    "medium": "the rows form clusters, somewhat different ones in random halves of the rows",
    "low": "the rows form clusters, but different ones in random halves of the rows",
}
# Rows with a smaller margin are in doubt: for probabilities, the second cluster is more than
# half as likely as the first one; for distances, the margin is smaller in general.
DOUBTFUL, DOUBTFUL_DISTANCE = 0.5, 0.1
# Roles of a column in a cluster; the values of ``relevance_``.
ROLES = ("irrelevant", "relevant, spread as elsewhere", "relevant, own spread")


def answer_words(estimator):
    """Say the answer in one line: number of clusters, near ties, confidence and verdict.

    For estimators without a mixture, the line has the number of clusters and, if no structure
    was found, says so.
    """
    cafe = getattr(estimator, "cafe_", estimator)
    k = cafe.n_clusters_
    words = plural(k, "cluster")
    if not is_mixture(cafe) or k == 1:
        found = all(finding.code != "no-structure" for finding in cafe.diagnosis_)
        return words if found else f"{words}: {VERDICTS['none']}"
    table = cafe.n_clusters_table_
    tied = [] if table is None else table.index[table["tied"]].tolist()
    if tied:
        words += f" ({joined(tied, ' or ')} nearly as good)"
    confidence, verdict = cafe.confidence_, cafe.verdict_
    return f"{words}, {confidence} confidence: {VERDICTS.get(verdict, STRUCTURES[confidence])}"


def plural(n, word):
    """Format a count and its noun."""
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def joined(items, last=" and "):
    """Join items by commas, and the last one by `last`."""
    *others, end = map(str, items)
    return f"{', '.join(others)}{last}{end}" if others else end


def range_words(numbers, last=" and "):
    """Format ascending integers as a range if there are no gaps, else one by one."""
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return joined(numbers, last)


def number_note(row):
    """Say what distinguishes a number of clusters; `row` is its row of `n_clusters_table_`."""
    notes = ["chosen"] if row["chosen"] else ["nearly as good"] if row["tied"] else []
    return ", ".join([*notes, *([] if row["counts"] else ["tiny clusters"])])


def is_mixture(estimator):
    """Check whether the clusters of a fitted estimator are those of a mixture."""
    return hasattr(estimator, "mixture_")


def is_correlated(mixture):
    """Check whether columns are correlated within the clusters of a mixture."""
    return mixture.covariance_ != "independent" and len(mixture._fitted.parameters.block) > 1


def mixture_words(mixture):
    """Describe the chosen mixture: dependence, tails, background and irrelevant columns."""
    tails = "t distributions (heavy tails)" if mixture.tails_ else "normal distributions"
    background = mixture.background_
    apart = f"{background:.1%} of the rows in a background" if background else "no background"
    covariance = mixture.covariance_ if is_correlated(mixture) else "independent"
    parts = [COVARIANCES[covariance], tails, apart]
    return "; ".join([*parts, relevance_words(mixture.relevance_)])


def relevance_words(relevance):
    """Say how many columns are irrelevant; `relevance` has a row for each cluster."""
    m = relevance.shape[1]
    never = int((relevance == 0).all(axis=0).sum())
    share = float((relevance == 0).mean())
    if share == 0:
        return "all columns relevant in all clusters"
    average = f"{percent(share)} of the columns irrelevant in the average cluster"
    return f"{average}, {never:,} of {m:,} in all clusters" if never else average


def candidate_names(candidates):
    """Return a short name for each candidate, made of the settings in which they differ.

    If the offsets differ and only one weighting uses them, a name with an offset omits the
    weighting. If two candidates would have the same name, as with two scalers of one class,
    all names are numbered.
    """
    with_offset = candidates[candidates["dispersion_offset"].notna()]
    differ = {name: candidates[name].nunique() > 1 for name in ("scaling", "weighting", "p")}
    offsets_differ = with_offset["dispersion_offset"].map(offset_name).nunique() > 1
    implied = offsets_differ and with_offset["weighting"].nunique() == 1
    names = []
    for row in candidates.itertuples():
        has_offset = not pd.isna(row.dispersion_offset)
        parts = [row.scaling] if differ["scaling"] else []
        if differ["weighting"] and not (implied and has_offset):
            parts.append(row.weighting)
        if offsets_differ and has_offset:
            parts.append(offset_name(row.dispersion_offset))
        if differ["p"] or not parts:
            parts.append(exponent_name(row.p))
        names.append(", ".join(parts))
    if len(set(names)) < len(names):
        names = [f"{name} #{number}" for number, name in enumerate(names)]
    return names


def chosen_position(candidates):
    """Return the position of the chosen candidate."""
    return int(candidates["chosen"].to_numpy().argmax())


def family_positions(candidates):
    """Return the positions of the candidates that equal the chosen one except in p."""
    families, last = [], None
    for i, row in enumerate(candidates.itertuples()):
        key = row.scaling, row.weighting, str(row.dispersion_offset)
        # Two scalers of one class have the same name. Where a value of p is repeated, the
        # candidates of the second scaler begin.
        if key != last or row.p in candidates["p"].iloc[families[-1]].to_numpy():
            families.append([])
        families[-1].append(i)
        last = key
    chosen = chosen_position(candidates)
    return next(family for family in families if chosen in family)


def settings_words(row):
    """Describe all settings of a candidate in words; `row` is its row of `candidates_`."""
    scaling = SCALINGS.get(row["scaling"], f"{row['scaling']} scaling")
    offset = row["dispersion_offset"]
    weights = WEIGHTINGS[row["weighting"]].text
    if not pd.isna(offset):
        weights += f" (offset {offset if isinstance(offset, str) else format(offset, 'g')})"
    return f"{scaling}, {weights}, {exponent_name(row['p'])}"


def exponent_name(p):
    """Format an exponent for charts and tables."""
    return f"p = {p:g}"


def offset_name(offset):
    """Format a dispersion offset for charts and tables."""
    return offset if isinstance(offset, str) else f"offset {offset:g}"
