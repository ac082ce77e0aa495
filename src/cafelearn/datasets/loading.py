"""Load the packaged data sets as numeric arrays."""

from importlib.resources import files

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from cafelearn.datasets._catalogue import CATALOGUE


def names() -> tuple[str, ...]:
    """Return the names of the packaged data sets.

    Returns
    -------
    names : tuple of str
        The names accepted by :func:`load`, in alphabetical order.

    Examples
    --------
    >>> from cafelearn.datasets import names
    >>> names()[:3]
    ('australian_credit', 'balance_scale', 'breast_cancer')
    """
    return tuple(CATALOGUE)


def load(name: str) -> Bunch:
    """Load one of the nine data sets of the paper's experiments.

    A categorical attribute is replaced by one binary column per value. Features are not
    scaled, and the rows keep the order of the file.

    Parameters
    ----------
    name : str
        One of :func:`names`.

    Returns
    -------
    dataset : sklearn.utils.Bunch
        A bunch with the keys

        - ``data`` : ndarray of shape (n_samples, n_features), float64.
        - ``target`` : ndarray of shape (n_samples,), class codes from 0.
        - ``frame`` : DataFrame of the features, with the target as its last column.
        - ``feature_names`` : list of str; a binary column has a name such as
          ``"doors=5more"``.
        - ``target_names`` : list of str, the class of each code.
        - ``categorical_features`` : list of str, the attributes that were encoded.
        - ``description`` : str, contents, source and licence of the data.
        - ``name`` : str, the name of the data set.

    See Also
    --------
    corrupt : Add the noise of the paper's experiments.

    Examples
    --------
    >>> from cafelearn.datasets import load
    >>> cars = load("car_evaluation")
    >>> cars.data.shape
    (1728, 21)
    >>> cars.categorical_features
    ['buying', 'maint', 'doors', 'persons', 'lug_boot', 'safety']
    >>> cars.feature_names[:4]
    ['buying=vhigh', 'buying=high', 'buying=med', 'buying=low']
    >>> cars.target_names
    ['unacc', 'acc', 'good', 'vgood']
    """
    if not isinstance(name, str) or name not in CATALOGUE:
        raise ValueError(
            f"load needs the name of a data set ({', '.join(names())}), got {name!r}."
        )
    entry = CATALOGUE[name]
    raw = _read(name)
    target = _codes(raw.pop("target"), entry.classes)
    features = {}
    for attribute, column in raw.items():
        if attribute in entry.categories:
            codes = _codes(column, entry.categories[attribute])
            for code, category in enumerate(entry.categories[attribute]):
                features[f"{attribute}={category}"] = (codes == code).astype(np.float64)
        else:
            features[attribute] = np.array([float(value) for value in column])
    data = np.column_stack(list(features.values()))
    frame = pd.DataFrame(data.copy(), columns=list(features))
    return Bunch(
        data=data,
        target=target,
        frame=frame.assign(target=target),
        feature_names=list(features),
        target_names=list(entry.classes),
        categorical_features=list(entry.categories),
        description=entry.description,
        name=name,
    )


def _read(name):
    """Read all columns as text, because pandas may parse the last digit of a number wrongly."""
    path = files("cafelearn.datasets") / "data" / f"{name}.csv"
    with path.open("r", encoding="utf-8") as file:
        return pd.read_csv(file, dtype=str, keep_default_na=False)


def _codes(column, values):
    return column.map({value: code for code, value in enumerate(values)}).to_numpy(np.int64)
