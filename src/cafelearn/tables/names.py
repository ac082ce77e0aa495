"""Names of the columns of a table, and checks of them."""

import pandas as pd
from sklearn.utils import check_array
from sklearn.utils.validation import _check_feature_names, _check_n_features

from cafelearn.base.warning import warn_caller
from cafelearn.base.words import listed, suggestion
from cafelearn.data.validation import check_collected, check_distinct_names
from cafelearn.tables.values import owner


class NamedColumns:
    """What a TableEncoder knows of the names of its columns."""

    # Column names of the fit as text; None if the columns had no names.
    _names_in: list[str] | None = None

    def _check_columns(self, frame):
        """Raise if a column named by a parameter is missing or has two treatments."""
        both = [name for name in self.categorical if name in self.numeric]
        if both:
            raise ValueError(
                f"{owner(self)} needs each column in either numeric or categorical, got "
                f"{listed(both)} in both."
            )
        for name in (*self.drop, *self.categorical, *self.numeric):
            if name not in frame.columns:
                raise ValueError(
                    f"{owner(self)} cannot find column {name!r}"
                    f"{suggestion(name, frame.columns)}. The table has "
                    f"{listed(frame.columns)}."
                )

    def _check_known_columns(self, frame):
        """Raise if a column of the fit is missing; warn about additional columns."""
        missing = [n for n in (*self.numbers_, *self.categories_) if n not in frame.columns]
        if missing:
            raise ValueError(
                f"{owner(self)} needs the columns of the fit, but {listed(missing)} "
                f"{'is' if len(missing) == 1 else 'are'} missing from the table."
            )
        known = {*self.numbers_, *self.categories_, *self.drop, *self._treatments}
        extra = [name for name in frame.columns if name not in known]
        if extra:
            warn_caller(f"Ignoring columns that were not in the fit: {listed(extra)}.")

    def _learn_names(self, frame):
        check_distinct_names(frame.columns.map(str), owner(self))
        _check_feature_names(self, frame, reset=True)
        _check_n_features(self, frame, reset=True)
        self._names_in = None
        if hasattr(self, "feature_names_in_") or _has_names(frame):
            self._names_in = [str(name) for name in frame.columns]

    def _frame(self, X, reset):
        """Return X as a data frame whose column names are strings."""
        check_collected(X, owner(self))
        if hasattr(X, "to_pandas"):
            X = X.to_pandas()
        if not isinstance(X, pd.DataFrame):
            X = pd.DataFrame(
                check_array(X, dtype=None, ensure_all_finite=False, estimator=self)
            )
        if 0 in X.shape:
            raise ValueError(
                f"{owner(self)} needs at least one row and one column: found array with "
                f"{X.shape[0]} sample(s) and {X.shape[1]} feature(s) (shape={X.shape}) while "
                "a minimum of 1 is required."
            )
        if reset:
            self._learn_names(X)
        # Older model files lack _names_in.
        known = self._names_in or list(getattr(self, "feature_names_in_", ()))
        names = X.columns.map(str)
        if known and _has_names(X):
            check_distinct_names(names, owner(self))
            return X if names.equals(X.columns) else X.set_axis(names, axis=1)
        _check_n_features(self, X, reset=False)
        return X.set_axis(known or _positions(X), axis=1)


def _has_names(X):
    """Check whether the columns of a frame have names other than 0, 1, and so on."""
    return not X.columns.equals(pd.RangeIndex(X.shape[1]))


def _positions(X):
    return [f"x{v}" for v in range(X.shape[1])]
