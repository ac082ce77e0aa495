"""cafe transform on tables larger than memory, part by part."""

import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd

from cafelearn._encoding import (
    _as_numbers,
    not_numbers,
    refuse_infinite,
    refuse_values,
    unit_of,
    value_text,
)
from cafelearn._words import listed
from cafelearn.cli.large_pass import for_parts, over_parts, write_part
from cafelearn.cli.place import features_table

# Largest number of distinct texts that a part reports for a column.
MOST_TEXTS = 100


def transform(run, estimator, large, id_column, out, force):
    """Write the features of all rows and return the sizes of the nonempty clusters."""
    encoder = estimator.encoder_.for_new_rows()
    encoder._check_known_columns(large.frame._meta)
    used = [*encoder.numbers_, *encoder.categories_]
    needed = used if id_column is None else [*dict.fromkeys([*used, id_column])]
    large = large._replace(frame=large.frame[needed])
    arguments = (for_parts(estimator), used, id_column, large.types.get(id_column))
    try:
        with warnings.catch_warnings():
            # Instead of this warning for each part, _remark_unseen makes one remark per column.
            warnings.filterwarnings("ignore", "Column .* has unknown categories")
            parts = over_parts(run, _place_part, large, *arguments, out=out, force=force)
    except ValueError:
        _refuse(run, encoder, large)
        raise
    _remark_unseen(run, encoder, parts)
    counts = np.sum([part.counts for part in parts], axis=0)
    return {l: int(n) for l, n in enumerate(counts) if n}


class Unseen(NamedTuple):
    """Categories of a column that occur in one part but did not occur in the fit."""

    n_rows: int  # number of rows with such a category
    texts: list  # up to MOST_TEXTS distinct categories
    cut_off: bool  # whether there are more than MOST_TEXTS


class Placed(NamedTuple):
    """Statistics of one part."""

    counts: np.ndarray  # number of rows in each cluster
    unseen: dict  # column -> Unseen


def _place_part(frame, first, path, estimator, used, id_column, id_type):
    cafe, encoder = estimator.cafe_, estimator.encoder_.for_new_rows()
    names = None if id_column is None else frame[id_column]
    table = features_table(cafe, encoder.transform(frame[used]), names, first)
    write_part(table, path, id_type)
    counts = np.bincount(table["cluster"], minlength=cafe.n_clusters_)
    found = {name: _unseen(frame[name], known) for name, known in encoder.categories_.items()}
    return Placed(counts, {name: unseen for name, unseen in found.items() if unseen.n_rows})


def _unseen(column, known):
    if column.dtype == object:  # may have unhashable values
        column = column.map(value_text, na_action="ignore")
    codes, values = pd.factorize(column)  # the code of a missing value is -1
    texts = pd.Index([value_text(value) for value in values.astype(object)], dtype=object)
    is_new = ~texts.isin(known)
    n_rows = np.bincount(codes[codes >= 0], minlength=len(texts))[is_new].sum()
    new = texts[is_new].unique()
    return Unseen(int(n_rows), new[:MOST_TEXTS].tolist(), len(new) > MOST_TEXTS)


def _remark_unseen(run, encoder, parts):
    """Remark on unknown categories, in the words of the encoder's warning."""
    for name in encoder.categories_:
        found = [part.unseen[name] for part in parts if name in part.unseen]
        if not found:
            continue
        n_rows = sum(unseen.n_rows for unseen in found)
        texts = _distinct(unseen.texts for unseen in found)
        cut_off = any(unseen.cut_off for unseen in found)
        shown = f"{listed(texts[:3])} and many more" if cut_off else listed(texts, most=3)
        run.remark(
            f"Column {name!r} has unknown categories in {n_rows} rows: {shown}. "
            "They are encoded as zeros."
        )


def _distinct(lists):
    return list(dict.fromkeys(item for items in lists for item in items))


class Faults(NamedTuple):
    """Invalid values in one part."""

    words: dict  # numeric column -> its values that are not numbers, as text
    infinite: dict  # numeric column -> number of infinite values


def _refuse(run, encoder, large):
    """Raise the error that the encoder would raise if the whole table were in memory."""
    parts = over_parts(run, _faults, large, encoder)
    for name in encoder.numbers_:
        words = _distinct(part.words.get(name, ()) for part in parts)
        refuse_values(encoder, name, unit_of(encoder, name), words)
    refuse_infinite(encoder, _added(part.infinite for part in parts))


def _faults(frame, first, path, encoder):
    words, infinite = {}, {}
    for name in encoder.numbers_:
        try:
            numbers = _as_numbers(encoder, frame, [name])
        except ValueError:
            bad = not_numbers(frame[name], kind=unit_of(encoder, name))
            words[name] = bad.astype(str).unique()[:MOST_TEXTS].tolist()
        else:
            infinite[name] = int(np.isinf(numbers).sum())
    return Faults(words, infinite)


def _added(counts):
    """Add up the counts of each name over several dicts."""
    total = {}
    for part in counts:
        for name, count in part.items():
            total[name] = total.get(name, 0) + count
    return total
