"""Heat map of the cluster profiles in a fit report: centres as text, differences as shades."""

import numpy as np

from cafelearn.interpret.profiles import amount_in, decimals_for, percent
from cafelearn.report.tables import Cell, Table, clusters, heat_cell, numbers, text_cell, texts
from cafelearn.report.words import feature_text

# Difference that has the darkest shade, in units of the overall spread.
FULL = 2.0
# The tooltips of the cells make the file large. The table is therefore limited to about
# MOST_CELLS cells, but never to fewer than FEWEST_VARIABLES rows.
MOST_CELLS, FEWEST_VARIABLES = 4_000, 50


def profile_table(facts) -> Table:
    """Tabulate the centre of each variable in each cluster.

    The variables with the largest differences come first. All categories of a variable are
    listed together.
    """
    frame, k = facts.placed.profile, facts.n_clusters
    found = {(row.cluster, row.variable, row.category): row for row in frame.itertuples()}
    largest = frame["difference"].abs().fillna(0).groupby(frame["variable"], sort=False).max()
    categories: dict[str, list] = {}
    for variable, category in facts.estimator._profile_columns():
        categories.setdefault(variable, []).append(category)
    variables = sorted(categories, key=lambda variable: -largest[variable])
    keys = [(v, c) for v in variables for c in categories[v]]
    rows, units = [], facts.estimator._profile_units()
    for key in keys[: max(FEWEST_VARIABLES, MOST_CELLS // k)]:
        show = _formatter(found[0, *key], units.get(key[0]))
        overall = found[0, *key].overall
        rows.append(
            [
                text_cell(feature_text(*key)),
                *(_cell(found[l, *key], show) for l in range(k)),
                Cell(show(overall), f"{overall:.6g}"),
            ]
        )
    return Table(
        "profile-table",
        "Mean of each variable, or share of each category, in each cluster and overall; "
        "largest differences first. Brown is above the other clusters, blue below.",
        [*texts("variable"), *clusters(k), *numbers("overall")],
        rows,
        shown=20,
        search="Find a variable",
        measure="mean or share",
        extra="",
        diverging=True,
    )


def _formatter(row, unit):
    """Return a function that formats centres of the variable or category of `row`."""
    if row.category is not None:
        return percent
    decimals = decimals_for(row.overall_spread)
    return lambda value: amount_in(unit, value, decimals)


def _cell(row, show):
    if np.isnan(row.center):
        return Cell("")
    known = not np.isnan(row.difference)
    lines = [f"overall {show(row.overall)}"]
    if known:
        side = "above" if row.difference > 0 else "below"
        lines.append(f"{abs(row.difference):.1f} spreads {side} the rest")
    if not np.isnan(row.spread):
        lines.append(f"spread {row.spread:.3g}, overall {row.overall_spread:.3g}")
    lines.append(f"weight {row.weight:.3g}")
    shade = row.difference / FULL if known else 0.0
    return heat_cell(row.center, shade, show(row.center), extra="\n".join(lines))
