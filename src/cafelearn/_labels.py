"""Names of the candidates of CAFE for charts, tables and sentences.

The argument `candidates` is the data frame ``CAFE.candidates_``.
"""

import pandas as pd

from cafelearn._solver.kernels.weights import WEIGHTINGS

SCALINGS = {"none": "no scaling"}


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


def chosen_name(candidates):
    """Return the name of the chosen candidate."""
    return candidate_names(candidates)[chosen_position(candidates)]


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
