"""Consistency checks of the state of a mixture, for models loaded from files."""

from numbers import Real

import numpy as np

from cafelearn.mixture.columns import Columns
from cafelearn.mixture.covariances import COVARIANCES
from cafelearn.mixture.em import Family, Parameters
from cafelearn.mixture.marginals import Marginals
from cafelearn.mixture.powers import Powers
from cafelearn.mixture.rows import memberships
from cafelearn.mixture.settings import TINY

# Largest absolute value of a log ratio, whose exponential must be a float.
LARGEST_RATIO = 700.0
# Tolerance of sums of probabilities.
TOLERANCE = 1e-3


def _any(x):
    return ~np.isposinf(x)


def _finite(x):
    return np.isfinite(x)


def _positive(x):
    return np.isfinite(x) & (x > 0)


def _not_negative(x):
    return np.isfinite(x) & (x >= 0)


def _share(x):
    return (x >= 0) & (x <= 1 + TOLERANCE)


def _sign(x):
    return np.abs(x) == 1


def _zero_or_one(x):
    return (x == 0) | (x == 1)


def _log_ratio(x):
    return np.abs(x) <= LARGEST_RATIO


# For each array: its kind (f: float, i: integer, b: bool), its dimensions and the test of its
# values. Dimensions: m columns of X, c continuous columns, d events, e modes, g normal
# densities of a column, j cuts, J = j + 1, k clusters, K clusters and background, b columns of
# the block, t events and modes. An integer array is an index below its limit, a dimension or a
# number.
POWERS = {
    "side": ("f", "c", _sign),
    "edge": ("f", "c", _finite),
    "width": ("f", "c", _positive),
    "exponent": ("f", "c", _share),
    "center": ("f", "c", _finite),
    "scale": ("f", "c", _positive),
}
MARGINALS = {
    "weight": ("f", "cg", _share),
    "mean": ("f", "cg", _finite),
    "deviation": ("f", "cg", _positive),
    "low": ("f", "c", _finite),
    "high": ("f", "c", _finite),
    "n_parameters": ("f", "c", _not_negative),
    "cuts": ("f", "cj", lambda x: ~np.isnan(x)),
    "modes": ("i", "cJ", "g"),
    "mode_column": ("i", "e", "c"),
    "mode_number": ("i", "e", "g"),
    "mode_share": ("f", "e", _share),
}
COLUMNS = {
    "units": ("f", "m", _positive),
    "low": ("f", "m", _finite),
    "high": ("f", "m", _finite),
    "place": ("i", "c", "m"),
    "complete": ("b", "c", None),
    "event_place": ("i", "d", "m"),
    "event_value": ("f", "d", _any),
    "event_variable": ("i", "d", "d"),
    "event_share": ("f", "d", _share),
}
PARAMETERS = {
    "log_weight": ("f", "K", lambda x: np.isfinite(x) & (x <= TOLERANCE)),
    "log_ratio": ("f", "Kt", _log_ratio),
    "used": ("f", "kc", _zero_or_one),
    "mean": ("f", "kc", _finite),
    "variance": ("f", "kc", _positive),
    "kind": ("i", "c", 3),
    "block": ("i", "b", "c"),
    "block_mean": ("f", "kb", _finite),
    "covariance": ("f", "kbb", _finite),
}
NUMBERS = ("n_parameters", "log_prior")


def check_state(mixture):
    """Raise a ValueError unless the state of a Mixture is consistent.

    `n_features_in_`, `n_components` and `means_` must have been checked before.
    """
    state = _dictionary("_state", getattr(mixture, "_state", None), _Names)
    columns = _dictionary("columns", state["columns"], Columns)
    powers = _dictionary("powers", columns["powers"], Powers)
    marginals = _dictionary("marginals", columns["marginals"], Marginals)
    parameters = _dictionary("parameters", state["parameters"], Parameters)
    family = _dictionary("family", state["family"], Family)
    _check_family(family)
    k = mixture.n_components
    sizes = {"m": mixture.n_features_in_, "k": k, "K": k + int(family["background"])}
    _check_arrays(columns, COLUMNS, sizes)
    _check_arrays(powers, POWERS, sizes)
    _check_arrays(marginals, MARGINALS, sizes)
    sizes["t"] = sizes["d"] + sizes["e"]
    _check_arrays(parameters, PARAMETERS, sizes)
    for name in NUMBERS:
        value = parameters[name]
        _require(isinstance(value, Real) and np.isfinite(value), f"{name} is not a number")
    fitted = mixture._fitted
    _check_columns(fitted.columns)
    _check_modes(fitted.columns.marginals)
    _check_parameters(fitted.columns, fitted.parameters)
    _try_rows(mixture, fitted)


class _Names:
    _fields = ("columns", "parameters", "family")


def _require(sound, problem):
    if not sound:
        raise ValueError(f"the mixture is damaged: {problem}")


def _dictionary(name, found, kind):
    """Return a dictionary that has the fields of a NamedTuple."""
    sound = isinstance(found, dict) and set(found) == set(kind._fields)
    _require(sound, f"{name} has not the right entries")
    return found


def _check_family(family):
    name = family["covariance"]
    known = isinstance(name, str) and name in {"independent", *COVARIANCES}
    _require(known, "the covariance of its family is unknown")
    for name in ("tails", "background"):
        sound = isinstance(family[name], (bool, np.bool_))
        _require(sound, f"{name} of its family is not True or False")


def _check_arrays(found, table, sizes):
    for name, (kind, letters, test) in table.items():
        array = found[name]
        sound = isinstance(array, np.ndarray) and array.dtype.kind == kind
        _require(sound, f"{name} is not an array of the right type")
        sound = array.ndim == len(letters)
        for letter, size in zip(letters, array.shape, strict=False):
            sound = sound and sizes.setdefault(letter, size) == size
            if letter == "j":
                sizes.setdefault("J", size + 1)
        _require(sound, f"{name} has the shape {array.shape}")
        if kind == "i":
            limit = sizes[test] if isinstance(test, str) else test
            _require(((array >= 0) & (array < limit)).all(), f"{name} is out of range")
        elif test is not None:
            _require(test(array).all(), f"{name} has values that are out of range")


def _check_columns(columns):
    _require((columns.low <= columns.high).all(), "low exceeds high")
    _require(len(np.unique(columns.place)) == len(columns.place), "place has repeated columns")
    variable, n_variables = columns.event_variable, columns.n_variables
    levels = np.bincount(variable, minlength=n_variables)
    _require((levels > 0).all(), "event_variable leaves out a variable")
    total = np.bincount(variable, columns.event_share, n_variables)
    _require(np.allclose(total, 1, atol=TOLERANCE), "event_share has not the sum 1")
    # Columns with atoms are not complete.
    with_atoms = np.isin(columns.place, columns.event_place)
    _require(not (with_atoms & columns.complete).any(), "complete columns have atoms")


def _check_modes(marginals):
    total = marginals.weight.sum(axis=1)
    sound = (total == 0) | (np.abs(total - 1) <= TOLERANCE)
    _require(sound.all(), "weight has not the sum 1")
    _require((marginals.low <= marginals.high).all(), "low of its densities exceeds high")
    _require((marginals.cuts[:, :-1] <= marginals.cuts[:, 1:]).all(), "cuts are not sorted")
    column, number = marginals.mode_column, marginals.mode_number
    _require((np.diff(column) >= 0).all(), "mode_column is not sorted")
    for v in np.unique(column):
        inside = column == v
        sound = np.array_equal(number[inside], np.unique(marginals.modes[v]))
        _require(sound, "mode_number does not match modes")
        share = marginals.mode_share[inside].sum()
        _require(abs(share - 1) <= TOLERANCE, "mode_share has not the sum 1")


def _check_parameters(columns, parameters):
    total = np.exp(parameters.log_weight).sum()
    _require(abs(total - 1) <= TOLERANCE, "log_weight are no probabilities")
    share = np.maximum(columns.share, TINY) * np.exp(parameters.log_ratio)
    variable = columns.variable
    for row in share:
        sums = np.bincount(variable, row)[np.unique(variable)] if len(variable) else row
        _require((np.abs(sums - 1) <= TOLERANCE).all(), "log_ratio are no probabilities")
    block = parameters.block
    _require((np.diff(block) > 0).all(), "block is not sorted")
    _require(columns.complete[block].all(), "block has columns with gaps")
    _require(not parameters.used[:, block].any(), "used has columns of the block")
    covariance = parameters.covariance
    symmetric = np.allclose(covariance, covariance.transpose(0, 2, 1), rtol=1e-6)
    _require(symmetric, "covariance is not symmetric")
    try:
        np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        _require(False, "covariance is not positive definite")


def _try_rows(mixture, fitted):
    """Place the extremes of the columns and the means, to see that nothing overflows."""
    ends = np.stack([fitted.columns.low, fitted.columns.high]) / fitted.columns.units
    with np.errstate(all="ignore"):
        found = memberships(np.vstack([ends, mixture.means_]), fitted)
    _require(all(np.isfinite(part).all() for part in found), "its densities overflow")
