"""TableEncoder: encode the columns of a data frame as numbers."""

from collections.abc import Sequence
from copy import copy
from numbers import Integral
from typing import Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from cafelearn.base.typing import MatrixLike
from cafelearn.base.warning import warn_caller
from cafelearn.base.words import listed
from cafelearn.data.validation import is_dask
from cafelearn.tables.columns import LEFT_OUT, NUMBER, Treatment, kind_of, look_at, merged_kind
from cafelearn.tables.judging import judge_columns
from cafelearn.tables.names import NamedColumns
from cafelearn.tables.values import as_text, distinct, owner, refuse_empty, refuse_infinite
from cafelearn.tables.values import to_numbers as to_numbers
from cafelearn.tables.values import value_text as value_text

__all__ = ["TableEncoder"]


class TableEncoder(NamedColumns, TransformerMixin, BaseEstimator):
    """Encode the columns of a data frame as numbers.

    - Numbers are unchanged.
    - Text becomes numbers if every value either is a number or marks a missing value, as NA,
      N/A, NULL, ``-`` and ``?`` do. Codes with leading zeros, such as 01007, are not numbers.
    - Other text, booleans and pandas categories become one binary column per value, named
      ``column=value``. There is a warning if most of the texts look like numbers or dates,
      such as 1,234, 12.5%, 5.1 kg or 31/12/2020.
    - Dates, including text such as 2024-05-31 or 2024-05-31T12:00Z, become days since
      1970-01-01. Durations become numbers of days.

    Missing values are kept or imputed. These columns are left out:

    - identifiers: text with more than 10 distinct values, if their number is more than half of
      the number of values. In tables of more than 10 rows, columns of distinct integers are
      identifiers, too, if the integers are consecutive (in any order) or the column has a
      name such as id, customer_id, CustomerID, key or index;
    - free text: text of at least four words on average, with as many distinct values as an
      identifier, or with more than `max_categories` of them;
    - constant columns.

    `treatments_` lists the treatment of each column. The parameters `numeric`, `categorical`
    and `drop` override it.

    Parameters
    ----------
    impute : {"median"} or None, default=None
        Treatment of missing values. None keeps them (:doc:`/guide/missing`): a missing
        category is NaN in all encoded columns of its column. "median" replaces missing numbers
        by the median, and missing categories by the most frequent value, of the training rows.
        A column without any value raises an error.
    categorical : sequence of str, default=()
        Columns to treat as categories, whatever they contain.
    drop : sequence of str, default=()
        Columns to leave out.
    max_categories : int, default=100
        Largest number of distinct values of a categorical column; a column with more raises
        an error.
    numeric : sequence of str, default=()
        Columns to treat as numbers, even if they look like identifiers.

    Attributes
    ----------
    treatments_ : DataFrame
        One row per column of the table: its ``kind`` (number, date, duration, category,
        identifier, free text, constant or dropped), its ``treatment`` (number, category or
        left out) and the ``reason``.
    numbers_ : list of str
        Columns of numbers, dates and durations.
    dates_ : list of str
        Columns of dates and durations.
    categories_ : dict of str to list of str
        The values of each categorical column.
    fillings_ : dict of str to float or str
        Value imputed in each column; empty if `impute` is None.
    constant_features_ : list of str
        Encoded columns left out because they are constant.
    n_features_in_ : int
        Number of columns seen during :meth:`fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of columns seen during :meth:`fit`. Defined only when `X` has names that are
        all strings.

    See Also
    --------
    cafelearn.TabularCAFE : Encoding and CAFE in one estimator.

    Examples
    --------
    >>> import pandas as pd
    >>> from cafelearn import TableEncoder
    >>> table = pd.DataFrame({"size": [1.0, 2.5, 2.0], "sex": ["f", "m", "f"]})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.transform(table)
       size  sex=f  sex=m
    0   1.0    1.0    0.0
    1   2.5    0.0    1.0
    2   2.0    1.0    0.0
    >>> encoder.treatments_
             kind treatment        reason
    column
    size    number    number       numbers
    sex   category  category  2 categories
    """

    _parameter_constraints = {
        "impute": [StrOptions({"median"}), None],
        "categorical": ["array-like"],
        "drop": ["array-like"],
        "max_categories": [Interval(Integral, 1, None, closed="left")],
        "numeric": ["array-like"],
    }

    def __init__(
        self,
        impute: str | None = None,
        *,
        categorical: Sequence[str] = (),
        drop: Sequence[str] = (),
        max_categories: int = 100,
        numeric: Sequence[str] = (),
    ):
        self.impute = impute
        self.categorical = categorical
        self.drop = drop
        self.max_categories = max_categories
        self.numeric = numeric

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Learn the kinds of the columns, their categories and the values to impute.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_columns)
            The table; polars frames are accepted. The columns of an array, or of a frame
            whose columns are named 0, 1, and so on, get the names x0, x1, and so on. Other
            names that are not text are converted to text. A Dask dataframe is read in one
            pass, partition by partition.
        y : None
            Ignored; present by convention.

        Returns
        -------
        self : TableEncoder
            The fitted encoder.
        """
        if is_dask(X):
            from cafelearn.tables.partitions import fit_encoder

            return fit_encoder(self, X)
        self._fit(X)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: MatrixLike, y: object = None) -> pd.DataFrame:
        """Learn the columns of a table and encode it; the same as ``fit(X).transform(X)``."""
        if is_dask(X):
            return self.fit(X).transform(X)
        return self._fit(X)

    def _fit(self, X):
        """Fit to a table in memory, and return it encoded."""
        frame = self._frame(X, reset=True)
        self._check_columns(frame)
        frame = frame.drop(columns=list(self.drop))
        found = {
            name: look_into(frame[name], is_category=name in self.categorical)
            for name in frame.columns
        }
        kinds, looks, texts = ({n: each[i] for n, each in found.items()} for i in range(3))
        kinds = {name: merged_kind({kind}) for name, kind in kinds.items()}
        judge_columns(self, kinds, looks, texts, len(frame))
        numbers, texts = self._values(frame)
        columns = {name: pd.Series(numbers[:, v]) for v, name in enumerate(self.numbers_)}
        columns |= texts
        refuse_empty(self, [name for name, column in columns.items() if column.isna().all()])
        self.fillings_ = {}
        if self.impute is not None:
            # mode() is sorted, so ties go to the first value in alphabetical order.
            self.fillings_ = {name: float(columns[name].median()) for name in self.numbers_}
            self.fillings_ |= {name: text.mode()[0] for name, text in texts.items()}
        values = self._encoded(frame.index, numbers, texts)
        self._keep_varying(values.columns, values.min(axis=0) < values.max(axis=0), len(frame))
        encoded = values[self._names_out]
        numbers = [name for name in self.numbers_ if name in encoded.columns]
        return encoded.astype(_number_type(frame, numbers))

    def transform(self, X: MatrixLike) -> pd.DataFrame:
        """Encode a table.

        Columns that were not in the table of :meth:`fit` are ignored with a warning. A
        category that was not in that table becomes 0 in all encoded columns of its column,
        also with a warning.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_columns)
            The table, with the columns of :meth:`fit` in any order.

        Returns
        -------
        encoded : DataFrame of shape (n_samples, n_features_out)
            The encoded table, with the index of `X`; lazy if `X` is a Dask dataframe.
        """
        check_is_fitted(self)
        if is_dask(X):
            from cafelearn.tables.partitions import encode_parts

            return encode_parts(self, X)
        frame = self._frame(X, reset=False)
        return self.for_new_rows()._encode_known(frame)

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return the names of the encoded columns; `input_features` is ignored."""
        check_is_fitted(self)
        return np.asarray(self._names_out, dtype=object)

    @property
    def treatments_(self) -> pd.DataFrame:
        """Kind, treatment and reason of each column."""
        check_is_fitted(self)
        index = pd.Index(self._treatments, name="column")
        return pd.DataFrame(
            list(self._treatments.values()), index=index, columns=list(Treatment._fields)
        )

    def describe(self, *kinds: str) -> str:
        """List the columns of these kinds in one line of text, each with kind and reason."""
        found = [
            f"{name!r} ({kind}: {reason})"
            for name, (kind, _, reason) in self._treatments.items()
            if kind in kinds
        ]
        return listed(found, str)

    def variables_out(self) -> list[str]:
        """Return the table column of each encoded column, for use as `feature_groups`."""
        check_is_fitted(self)
        return [variable for variable, _ in self.columns_out()]

    def columns_out(self) -> list[tuple[str, str | None]]:
        """Return (column, category) for each encoded column; (column, None) for numbers."""
        known: dict = {name: (name, None) for name in self.numbers_}
        for name, categories in self.categories_.items():
            known |= {f"{name}={category}": (name, category) for category in categories}
        return [known[name] for name in self._names_out]

    def features_of(self, name: str) -> list[str]:
        """Return the names of all encoded columns of a column, including constant ones."""
        return [f"{name}={category}" for category in self.categories_[name]]

    def for_new_rows(self) -> Self:
        """Return a copy that does not require the unused columns in new rows."""
        other, names = copy(self), set(self._names_out)
        other.numbers_ = [name for name in self.numbers_ if name in names]
        other.categories_ = {
            name: values
            for name, values in self.categories_.items()
            if names.intersection(self.features_of(name))
        }
        used = {*other.numbers_, *other.categories_}
        unused = [n for n in (*self.numbers_, *self.categories_) if n not in used]
        other.drop = [*self.drop, *unused]
        return other

    def _encode_known(self, frame):
        self._check_known_columns(frame)
        return self._encode(frame)[self._names_out]

    def _keep_varying(self, names, varies, n_rows):
        """Keep the encoded columns that vary, and record the constant ones."""
        varies = np.asarray(varies, dtype=bool)
        if not len(varies):
            others = self.describe("identifier", "free text") or "all columns"
            raise ValueError(
                f"{owner(self)} needs at least one column to cluster by, but left out "
                f"{others}. To use a column, name it in numeric (--numeric) or categorical "
                "(--category)."
            )
        if not varies.any():
            raise ValueError(
                f"{owner(self)} needs columns that vary, but all {len(varies)} features of "
                f"the table are constant (n_samples={n_rows})."
            )
        self.constant_features_ = names[~varies].tolist()
        self._names_out = names[varies].tolist()
        used = set(self._names_out)
        for name in (*self.numbers_, *self.categories_):
            features = self.features_of(name) if name in self.categories_ else [name]
            if used.isdisjoint(features):
                self._treatments[name] = ["constant", LEFT_OUT, "the same in all rows"]

    def _encode(self, frame):
        """Encode all columns, including constant ones."""
        return self._encoded(frame.index, *self._values(frame))

    def _values(self, frame):
        """Return numbers and dates as an array, and the texts of the categorical columns."""
        names = self.numbers_
        dtypes, dtype = set(frame[names].dtypes), _number_type(frame, names)
        texts = {name: as_text(frame[name]) for name in self.categories_}
        plain = all(isinstance(each, np.dtype) and each.kind in "iuf" for each in dtypes)
        if plain and not set(self.dates_).intersection(names):
            return np.array(frame[names].to_numpy(), dtype=dtype, order="C"), texts
        numbers = np.empty((len(frame), len(names)), dtype=dtype)
        for v, name in enumerate(names):
            kind = self._treatments[name][0] if name in self.dates_ else NUMBER
            numbers[:, v] = to_numbers(self, frame[name], dtype, kind=kind)
        return numbers, texts

    def _encoded(self, index, numbers, texts):
        """Encode the result of `_values`."""
        parts = {name: numbers[:, v] for v, name in enumerate(self.numbers_)}
        refuse_infinite(self, {name: np.isinf(part).sum() for name, part in parts.items()})
        if self.fillings_:
            for name, column in parts.items():
                column[np.isnan(column)] = self.fillings_[name]
            texts = {name: text.fillna(self.fillings_[name]) for name, text in texts.items()}
        blocks, names = [numbers], list(self.numbers_)
        for name, text in texts.items():
            categories = self.categories_[name]
            _warn_of_unseen(name, text, categories)
            codes = pd.Index(categories, dtype=object).get_indexer(text)
            block = (codes[:, None] == np.arange(len(categories))).astype(numbers.dtype)
            block[text.isna().to_numpy(dtype=bool)] = np.nan
            blocks.append(block)
            names.extend(self.features_of(name))
        repeated = pd.Index(names)[pd.Index(names).duplicated()]
        if len(repeated):
            raise ValueError(
                f"{owner(self)} would give two features the name {repeated[0]!r}. "
                "Rename a column."
            )
        return pd.DataFrame(np.hstack(blocks), index=index, columns=names)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def look_into(column, *, is_category=False):
    """Return the kind, the Look and the distinct texts of a column (None if not needed)."""
    kind = "category" if is_category else kind_of(column)
    # In a Dask dataframe, another part of the column may have texts that make it a category.
    is_text = kind in ("text date", "text number", "markers")
    is_text |= kind == "number" and column.dtype == object
    texts = distinct(column) if kind == "category" or is_text else None
    return kind, look_at(column, kind, texts), texts


def _number_type(frame, names):
    """Return float32 if all columns of these names are, else float64."""
    is_single = set(frame[names].dtypes) == {np.dtype(np.float32)}
    return np.dtype(np.float32 if is_single else np.float64)


def _warn_of_unseen(name, text, categories):
    unseen = text[~text.isin(categories) & text.notna()]
    if len(unseen):
        rows = "1 row" if len(unseen) == 1 else f"{len(unseen)} rows"
        warn_caller(
            f"Column {name!r} has unknown categories in {rows}: "
            f"{listed(unseen.unique(), most=3)}. They are encoded as zeros."
        )
