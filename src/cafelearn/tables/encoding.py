"""TableEncoder: encode the columns of a data frame as numbers."""

import shlex
from collections.abc import Sequence
from copy import copy
from numbers import Integral
from typing import Self

import numpy as np
import pandas as pd
from pandas.api.types import (
    is_datetime64_any_dtype,
    is_object_dtype,
    is_string_dtype,
    is_timedelta64_dtype,
)
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted

from cafelearn.base.typing import MatrixLike
from cafelearn.base.warning import warn_caller
from cafelearn.base.words import listed, suggestion
from cafelearn.data.validation import (
    check_collected,
    check_distinct_names,
    distributed,
    is_dask,
)
from cafelearn.tables.columns import (
    LEFT_OUT,
    LIKE_DATE,
    LIKE_NUMERAL,
    NUMBER,
    PLAIN,
    Treatment,
    as_days,
    is_day_first,
    is_marker,
    judge,
    kind_of,
    look_at,
    merged_kind,
    not_days,
)

__all__ = ["TableEncoder"]


class TableEncoder(TransformerMixin, BaseEstimator):
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

    # Column names of the fit as text; None if the columns had no names.
    _names_in: list[str] | None = None

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
            return distributed().fit_encoder(self, X)
        self._fit(X)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: MatrixLike, y: object = None) -> pd.DataFrame:
        """Learn the columns of a table and encode it.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_columns)
            The table.
        y : None
            Ignored; present by convention.

        Returns
        -------
        encoded : DataFrame of shape (n_samples, n_features_out)
            The same as ``fit(X).transform(X)``.
        """
        if is_dask(X):
            return self.fit(X).transform(X)
        return self._fit(X)

    def _fit(self, X):
        """Fit to a table in memory, and return it encoded."""
        frame = self._frame(X, reset=True)
        self._check_columns(frame)
        frame = frame.drop(columns=list(self.drop))
        _sort_columns(self, frame)
        columns = _observed(self, frame)
        self.fillings_ = {}
        if self.impute is not None:
            self.fillings_ = _fillings(self, columns)
        values = self._encode(frame)
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
            return distributed().encode_parts(self, X)
        frame = self._frame(X, reset=False)
        return self.for_new_rows()._encode_known(frame)

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Return the names of the encoded columns.

        Parameters
        ----------
        input_features : None
            Ignored; present by convention.

        Returns
        -------
        names : ndarray of str
            The names.
        """
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
        """Return the table column that each encoded column belongs to.

        Returns
        -------
        variables : list of str
            One name per encoded column, for use as `feature_groups`. All encoded columns of a
            categorical column have the same name.

        Examples
        --------
        >>> import pandas as pd
        >>> from cafelearn import TableEncoder
        >>> table = pd.DataFrame({"size": [1.0, 2.5, 2.0], "sex": ["f", "m", "f"]})
        >>> TableEncoder().fit(table).variables_out()
        ['size', 'sex', 'sex']
        """
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

    def _check_columns(self, frame):
        """Raise if a column named by a parameter is missing or has two treatments."""
        both = [name for name in self.categorical if name in self.numeric]
        if both:
            raise ValueError(
                f"{_owner(self)} needs each column in either numeric or categorical, got "
                f"{listed(both)} in both."
            )
        for name in (*self.drop, *self.categorical, *self.numeric):
            if name not in frame.columns:
                raise ValueError(
                    f"{_owner(self)} cannot find column {name!r}"
                    f"{suggestion(name, frame.columns)}. The table has "
                    f"{listed(frame.columns)}."
                )

    def _check_known_columns(self, frame):
        """Raise if a column of the fit is missing; warn about additional columns."""
        missing = [n for n in (*self.numbers_, *self.categories_) if n not in frame.columns]
        if missing:
            raise ValueError(
                f"{_owner(self)} needs the columns of the fit, but {listed(missing)} "
                f"{'is' if len(missing) == 1 else 'are'} missing from the table."
            )
        known = {*self.numbers_, *self.categories_, *self.drop, *self._treatments}
        extra = [name for name in frame.columns if name not in known]
        if extra:
            warn_caller(f"Ignoring columns that were not in the fit: {listed(extra)}.")

    def _keep_varying(self, names, varies, n_rows):
        """Keep the encoded columns that vary, and record the constant ones."""
        varies = np.asarray(varies, dtype=bool)
        if not len(varies):
            others = self.describe("identifier", "free text") or "all columns"
            raise ValueError(
                f"{_owner(self)} needs at least one column to cluster by, but left out "
                f"{others}. To use a column, name it in numeric (--numeric) or categorical "
                "(--category)."
            )
        if not varies.any():
            raise ValueError(
                f"{_owner(self)} needs columns that vary, but all {len(varies)} features of "
                f"the table are constant (n_samples={n_rows})."
            )
        self.constant_features_ = names[~varies].tolist()
        self._names_out = names[varies].tolist()
        used = set(self._names_out)
        for name in (*self.numbers_, *self.categories_):
            features = self.features_of(name) if name in self.categories_ else [name]
            if used.isdisjoint(features):
                self._treatments[name] = ["constant", LEFT_OUT, "the same in all rows"]

    def _learn_names(self, frame):
        check_distinct_names(frame.columns.map(str), _owner(self))
        _check_feature_names(self, frame, reset=True)
        _check_n_features(self, frame, reset=True)
        self._names_in = None
        if hasattr(self, "feature_names_in_") or _has_names(frame):
            self._names_in = [str(name) for name in frame.columns]

    def _frame(self, X, reset):
        """Return X as a data frame whose column names are strings."""
        check_collected(X, _owner(self))
        if hasattr(X, "to_pandas"):
            X = X.to_pandas()
        if not isinstance(X, pd.DataFrame):
            X = pd.DataFrame(
                check_array(X, dtype=None, ensure_all_finite=False, estimator=self)
            )
        if 0 in X.shape:
            raise ValueError(
                f"{_owner(self)} needs at least one row and one column: found array with "
                f"{X.shape[0]} sample(s) and {X.shape[1]} feature(s) (shape={X.shape}) while "
                "a minimum of 1 is required."
            )
        if reset:
            self._learn_names(X)
        # Older model files lack _names_in.
        known = self._names_in or list(getattr(self, "feature_names_in_", ()))
        names = X.columns.map(str)
        if known and _has_names(X):
            check_distinct_names(names, _owner(self))
            return X if names.equals(X.columns) else X.set_axis(names, axis=1)
        _check_n_features(self, X, reset=False)
        return X.set_axis(known or _positions(X), axis=1)

    def _encode(self, frame):
        """Encode all columns, including constant ones."""
        numbers = _as_numbers(self, frame, self.numbers_)
        parts = {name: numbers[:, v] for v, name in enumerate(self.numbers_)}
        refuse_infinite(self, {name: np.isinf(part).sum() for name, part in parts.items()})
        texts = {name: _as_text(frame[name]) for name in self.categories_}
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
                f"{_owner(self)} would give two features the name {repeated[0]!r}. "
                "Rename a column."
            )
        return pd.DataFrame(np.hstack(blocks), index=frame.index, columns=names)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _owner(estimator):
    return type(estimator).__name__


def _has_names(X):
    """Check whether the columns of a frame have names other than 0, 1, and so on."""
    return not X.columns.equals(pd.RangeIndex(X.shape[1]))


def _positions(X):
    return [f"x{v}" for v in range(X.shape[1])]


def _sort_columns(estimator, frame):
    """Decide the treatment of each column that is not dropped."""
    kinds, looks, values = {}, {}, {}
    for name in frame.columns:
        kinds[name], looks[name], values[name] = look_into(
            frame[name], is_category=name in estimator.categorical
        )
        kinds[name] = merged_kind({kinds[name]})
    judge_columns(estimator, kinds, looks, values, len(frame))


def look_into(column, *, is_category=False):
    """Return the kind, the Look and the distinct texts of a column (None if not needed)."""
    kind = "category" if is_category else kind_of(column)
    # In a Dask dataframe, another part of the column may have texts that make it a category.
    is_text = kind in ("text date", "text number", "markers")
    is_text |= kind == "number" and column.dtype == object
    texts = distinct(column) if kind == "category" or is_text else None
    return kind, look_at(column, kind, texts), texts


def judge_columns(estimator, kinds, looks, values, n_rows):
    """Decide the treatment of columns from their kinds, Looks and distinct texts."""
    found, unusable, many = {}, [], []
    for name, kind in kinds.items():
        wanted = NUMBER if name in estimator.numeric else None
        wanted = "category" if name in estimator.categorical else wanted
        known = ("number", "text number", "category", "date", "text date", "duration")
        if kind not in known:
            unusable.append(f"{name!r} ({kind})")
            continue
        look, most = looks[name], estimator.max_categories
        found[name] = judge(name, kind, look, n_rows, most, wanted=wanted)
        if found[name] is None:
            many.append(f"{name!r} ({look.n_distinct} in {n_rows} rows)")
    if unusable:
        raise ValueError(
            f"{_owner(estimator)} needs numbers, text, dates or booleans, got "
            f"{listed(unusable, str)}. Convert these columns or leave them out (drop, --drop)."
        )
    if many:
        raise ValueError(
            f"{_owner(estimator)} needs categories with at most {estimator.max_categories} "
            f"distinct values (max_categories), got {listed(many, str)}. Leave these columns "
            "out (drop, --drop) or use one as row names (id_column, --id)."
        )
    found |= {name: Treatment("dropped", LEFT_OUT, "as requested") for name in estimator.drop}
    for name, kind in kinds.items():
        is_chosen = name in estimator.numeric or name in estimator.categorical
        if kind == "category" and not is_chosen:
            _warn_of_text(name, looks[name], found[name])
    # Lists, because model files cannot hold named tuples.
    estimator._treatments = {name: list(each) for name, each in found.items()}
    used = {name: each for name, each in found.items() if each.treatment != LEFT_OUT}
    estimator.numbers_ = [n for n, each in used.items() if each.treatment == NUMBER]
    estimator.dates_ = [n for n in estimator.numbers_ if used[n].kind in ("date", "duration")]
    estimator.categories_ = {
        n: values[n] for n, each in used.items() if each.treatment == "category"
    }


def distinct(column):
    """Return the distinct values of a column as text.

    They are sorted, or in the order of the dtype for pandas categories.
    """
    present = set(_as_text(column).dropna().unique())
    if isinstance(column.dtype, pd.CategoricalDtype):
        return [text for text in map(value_text, column.cat.categories) if text in present]
    return sorted(present)


def _as_text(column):
    return column.astype(object).map(value_text, na_action="ignore")


def value_text(value):
    """Return a value as text, the same for 1 and 1.0.

    Otherwise a missing value, which turns a column of integers into floats, would change the
    names of its categories.
    """
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _number_type(frame, names):
    """Return float32 if all columns of these names are, else float64."""
    is_single = set(frame[names].dtypes) == {np.dtype(np.float32)}
    return np.dtype(np.float32 if is_single else np.float64)


def _as_numbers(estimator, frame, names):
    """Return columns of numbers and dates as an array."""
    dtypes, dtype = set(frame[names].dtypes), _number_type(frame, names)
    if not set(estimator.dates_).intersection(names) and all(
        isinstance(found, np.dtype) and found.kind in "iuf" for found in dtypes
    ):
        return np.array(frame[names].to_numpy(), dtype=dtype, order="C")
    numbers = np.empty((len(frame), len(names)), dtype=dtype)
    for v, name in enumerate(names):
        numbers[:, v] = to_numbers(estimator, frame[name], dtype, kind=unit_of(estimator, name))
    return numbers


def unit_of(estimator, name):
    """Return "number", "date" or "duration" for a column of numbers."""
    return estimator._treatments[name][0] if name in estimator.dates_ else NUMBER


def to_numbers(estimator, column, dtype=np.float64, *, kind=NUMBER):
    """Return the values of a column of numbers, with NaN for missing ones.

    `kind` is "number", "date" or "duration".
    """
    try:
        if kind != NUMBER:
            return as_days(column, kind)
        return pd.to_numeric(_plain(column)).to_numpy(dtype=dtype, na_value=np.nan)
    except (TypeError, ValueError):
        bad = not_numbers(column, kind=kind).astype(str)
        refuse_values(estimator, column.name, kind, bad.unique())
        raise


def refuse_values(estimator, name, kind, texts):
    """Raise if `texts`, the values that are not of this kind, is not empty."""
    if len(texts):
        raise ValueError(
            f"{_owner(estimator)} needs {kind}s in column {name!r}, got "
            f"{listed(texts, most=3)}."
        ) from None


def not_numbers(column, *, kind=NUMBER):
    """Return the values of a column that :func:`to_numbers` cannot convert."""
    if kind != NUMBER:
        return not_days(column, kind)
    column = _plain(column)
    return column[pd.to_numeric(column, errors="coerce").isna()].dropna()


def _plain(column):
    """Prepare a column for `to_numeric`: no categorical dtype, NaN for texts such as N/A.

    Dates and durations become objects, which `to_numeric` refuses.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if _has_time(column.dtype):
        column = column.astype(object)
    if not (is_object_dtype(column.dtype) or is_string_dtype(column.dtype)):
        return column
    if is_object_dtype(column.dtype):
        column = column.where(column.notna(), np.nan)  # not NaT
    markers = [value for value in column.unique() if is_marker(value)]
    return column.mask(column.isin(markers)) if markers else column


def _has_time(dtype):
    is_date = is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype)
    return is_date or is_timedelta64_dtype(dtype)


def _observed(estimator, frame):
    """Return the numbers or texts of the used columns; raise if one of them has no value."""
    numbers = _as_numbers(estimator, frame, estimator.numbers_)
    columns = {name: pd.Series(numbers[:, v]) for v, name in enumerate(estimator.numbers_)}
    columns |= {name: _as_text(frame[name]) for name in estimator.categories_}
    refuse_empty(estimator, [n for n, column in columns.items() if column.isna().all()])
    return columns


def _fillings(estimator, columns):
    fillings = {name: float(columns[name].median()) for name in estimator.numbers_}
    # mode() is sorted, so ties go to the first value in alphabetical order.
    return fillings | {name: columns[name].mode()[0] for name in estimator.categories_}


def refuse_infinite(estimator, counts):
    """Raise if any column contains infinite values; `counts` has their number by column."""
    found = [f"{name!r} ({count})" for name, count in counts.items() if count]
    if found:
        raise ValueError(
            f"{_owner(estimator)} needs finite numbers, got infinite values (inf) in "
            f"{listed(found, str)}."
        )


def refuse_empty(estimator, names):
    """Raise if `names`, the columns without any value, is not empty."""
    if names:
        raise ValueError(
            f"{_owner(estimator)} cannot use columns without any value: {listed(names)}. "
            "Leave them out (drop, --drop)."
        )


def _warn_of_text(name, look, treatment):
    """Warn if a column is treated as text, although its values may be numbers or dates."""
    what = "left out" if treatment.treatment == LEFT_OUT else "treated as categories"
    if look.are_likely_dates:
        found, advice = _on_dates(name, look)
    elif look.are_likely_numbers:
        texts = ", ".join(map(repr, look.named(LIKE_NUMERAL)))
        found = f"numbers with separators, symbols or units, such as {texts},"
        advice = "Write them as plain numbers such as 1234.5"
    elif look.is_nearly_numbers:
        found = f"{look.n_numbers:,} numbers"
        convert = f'pd.to_numeric(X[{name!r}], errors="coerce")'
        found, advice = _on_others(found, look.n_values - look.n_numbers, look.others, convert)
    else:
        return
    warn_caller(
        f"Column {name!r} has {found} and is {what}. {advice}; otherwise name the column in "
        "categorical (--category) or drop (--drop)."
    )


def _on_dates(name, look):
    """Return what a column of texts that may be dates contains, and advice."""
    dates, n_others = look.named(LIKE_DATE), look.n_values - look.n_dates
    is_clear = not any(map(is_day_first, dates))
    options = ("" if is_clear else ", dayfirst=True") + (', errors="coerce"' * bool(n_others))
    convert = f"pd.to_datetime(X[{name!r}]{options})"
    found = f"dates such as {', '.join(map(repr, dates))}"
    advice = f"Write them as 2020-12-31, or convert them with {convert}"
    if not is_clear:
        advice += " or dayfirst=False"
    if n_others:
        others = look.named(*(like for like in range(PLAIN + 1) if like != LIKE_DATE))
        found, gaps = _on_others(f"{look.n_dates:,} {found}", n_others, others, convert)
        advice = gaps if is_clear else advice
    return found, advice


def _on_others(found, n_others, texts, convert):
    """Add other texts to what was found in a column; return it and advice on the texts."""
    noun = "text" if n_others == 1 else "texts"
    return (
        f"{found} and {n_others:,} other {noun}, such as {', '.join(map(repr, texts))},",
        "If the texts mark missing values, replace them by NaN, for instance with "
        f"{convert}, or use --missing {shlex.quote(texts[0])}",
    )


def _warn_of_unseen(name, text, categories):
    unseen = text[~text.isin(categories) & text.notna()]
    if len(unseen):
        rows = "1 row" if len(unseen) == 1 else f"{len(unseen)} rows"
        warn_caller(
            f"Column {name!r} has unknown categories in {rows}: "
            f"{listed(unseen.unique(), most=3)}. They are encoded as zeros."
        )
