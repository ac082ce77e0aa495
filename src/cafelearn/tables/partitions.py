"""TableEncoder on Dask dataframes, fitted to summaries merged over the partitions."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

from cafelearn.tables import encoding
from cafelearn.tables.columns import NUMBER, UNITS, Look, merge_looks, merged_kind


class Column(NamedTuple):
    """Summary of some rows of a column."""

    kind: str  # see tables.columns.kind_of
    look: Look
    values: frozenset  # texts of a category column, at most max_categories + 1
    order: tuple | None  # categories of a pandas categorical column, in their order
    low: float  # smallest value of a column of numbers
    high: float  # largest value
    infinite: int  # number of infinite values


class Summary(NamedTuple):
    """Summary of some rows of a table."""

    n_rows: int
    columns: dict


def fit_encoder(encoder, X):
    """Fit a TableEncoder to a Dask dataframe, in one pass."""
    if encoder.impute is not None:
        raise ValueError(
            f"TableEncoder(impute={encoder.impute!r}) needs the table in memory, because a "
            "median cannot be merged from parts. Fill the missing values of the Dask dataframe "
            "beforehand."
        )
    from cafelearn.distributed import meta_of, reduce_partitions

    meta = meta_of(X)
    encoder._learn_names(meta)
    encoder._check_columns(meta)
    names = [name for name in meta.columns if name not in set(encoder.drop)]
    summary = reduce_partitions(X[names], summarise, merge, clone(encoder))
    if summary.n_rows == 0:
        raise ValueError("TableEncoder needs at least one row: found array with 0 sample(s).")
    columns = summary.columns
    encoding.judge_columns(
        encoder,
        {name: column.kind for name, column in columns.items()},
        {name: column.look for name, column in columns.items()},
        {name: _sorted_values(column) for name, column in columns.items()},
        summary.n_rows,
    )
    encoder.fillings_ = {}
    encoding.refuse_infinite(
        encoder, {name: columns[name].infinite for name in encoder.numbers_}
    )
    used = (*encoder.numbers_, *encoder.categories_)
    encoding.refuse_empty(encoder, [n for n in used if columns[n].look.n_values == 0])
    encoder._keep_varying(
        encoder._encode(meta[names]).columns,
        [columns[name].low < columns[name].high for name in encoder.numbers_]
        + [len(texts) > 1 for texts in encoder.categories_.values() for _ in texts],
        summary.n_rows,
    )
    return encoder


def encode_parts(encoder, X):
    """Encode a Dask dataframe lazily, partition by partition."""
    from cafelearn.distributed import map_partitions, meta_of

    meta, encoder = meta_of(X), encoder.for_new_rows()
    encoder._check_known_columns(meta)
    used = [*encoder.numbers_, *encoder.categories_]
    return map_partitions(X[used], _encode, encoder)


def _encode(frame, encoder):
    return encoder._encode(frame)[encoder._names_out]


def summarise(frame, encoder):
    """Return the Summary of some rows."""
    columns = {}
    for name in frame.columns:
        column = frame[name]
        kind, look, texts = encoding.look_into(column, is_category=name in encoder.categorical)
        values, order, low, high, infinite = frozenset(), None, np.inf, -np.inf, 0
        if texts is not None:
            values = _few(texts, encoder.max_categories)
            if isinstance(column.dtype, pd.CategoricalDtype):
                order = tuple(column.cat.categories)
        unit = UNITS.get(kind)
        if unit or name in encoder.numeric:
            numbers = encoding.to_numbers(encoder, column, kind=unit or NUMBER)
            there = numbers[~np.isnan(numbers)]
            if len(there):
                low, high = float(there.min()), float(there.max())
                infinite = int(np.isinf(there).sum())
        columns[name] = Column(kind, look, values, order, low, high, infinite)
    return Summary(len(frame), columns)


def _few(values, max_categories):
    """Return at most `max_categories` + 1 of the values."""
    return frozenset(sorted(values)[: max_categories + 1])


def merge(parts, encoder):
    """Merge the Summaries of disjoint rows."""
    max_categories = encoder.max_categories
    columns = {}
    for name in parts[0].columns:
        own = [part.columns[name] for part in parts]
        # Parts without values have arbitrary kinds, which are ignored.
        there = [column for column in own if column.look.n_values] or own[:1]
        columns[name] = Column(
            merged_kind({column.kind for column in there}),
            merge_looks([column.look for column in there]),
            _few(frozenset().union(*(column.values for column in own)), max_categories),
            there[0].order if len({column.order for column in there}) == 1 else None,
            min(column.low for column in own),
            max(column.high for column in own),
            sum(column.infinite for column in own),
        )
    return Summary(sum(part.n_rows for part in parts), columns)


def _sorted_values(column):
    if column.order is None:
        return sorted(column.values)
    texts = [encoding.value_text(value) for value in column.order]
    return [text for text in texts if text in column.values]
