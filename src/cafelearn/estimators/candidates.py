"""Enumerate, fit and tabulate the candidates of CAFE, the settings that it tries."""

from itertools import product
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from cafelearn.base.seeds import seed_integer
from cafelearn.base.words import listed
from cafelearn.estimators.mwkmeans import MinkowskiWeightedKMeans
from cafelearn.estimators.scaling import RangeScaler
from cafelearn.kmeans.kernels.weights import WEIGHTINGS
from cafelearn.kmeans.starts import prepare, run_starts

SCALINGS = {"range": RangeScaler, "standard": StandardScaler}
OFFSETS = ("mean", "fixed")


class Candidate(NamedTuple):
    """Settings of one candidate."""

    scaling: Any  # a name, a transformer or None
    weighting: str
    dispersion_offset: Any  # None if the weighting does not use it
    p: float


def make_candidates(estimator):
    """Return every distinct combination of the settings of an estimator."""
    combinations = product(
        _values(estimator, "scaling", _is_scaling, "'range', 'standard', None or transformers"),
        _values(
            estimator, "weighting", WEIGHTINGS.__contains__, f"one of {listed(WEIGHTINGS)}"
        ),
        _values(estimator, "dispersion_offset", _is_offset, "'mean', 'fixed' or numbers >= 0"),
        _values(estimator, "p", _is_exponent, "finite numbers above 1"),
    )
    found = []
    for scaling, weighting, offset, p in combinations:
        used = offset if WEIGHTINGS[weighting].uses_offset else None
        candidate = Candidate(scaling, weighting, used, float(p))
        if candidate not in found:
            found.append(candidate)
    return found


def _values(estimator, name, is_valid, needed):
    """Validate a parameter that is one value or a sequence; return a list of values."""
    given = getattr(estimator, name)
    many = isinstance(given, (list, tuple)) or (name == "p" and np.ndim(given) > 0)
    if name == "p" and many:
        values = np.ravel(given).tolist()
    else:
        values = list(given) if many else [given]
    owner = type(estimator).__name__
    if not values:
        raise ValueError(f"{owner} needs at least one value of {name}, got none.")
    for i, value in enumerate(values):
        if not is_valid(value):
            raise ValueError(
                f"{owner} needs {name} to be {needed}; got {value!r} in {given!r}."
            )
        if any(value is other or _same(value, other) for other in values[:i]):
            raise ValueError(f"{owner} needs distinct values of {name}, got {given!r}.")
    return values


def _same(a, b):
    return type(a) is type(b) and isinstance(a, (str, Real)) and a == b


def _is_scaling(value):
    known = isinstance(value, str) and value in SCALINGS
    return value is None or known or (hasattr(value, "fit") and hasattr(value, "transform"))


def _is_offset(value):
    if isinstance(value, str):
        return value in OFFSETS
    return isinstance(value, Real) and not isinstance(value, bool) and 0 <= value < np.inf


def _is_exponent(value):
    return isinstance(value, Real) and not isinstance(value, bool) and 1 < value < np.inf


def make_scaler(scaling):
    """Return an unfitted scaler for a setting, or None."""
    if scaling is None:
        return None
    return SCALINGS[scaling]() if isinstance(scaling, str) else clone(scaling)


def make_models(candidates, seed, **options):
    """Make an unfitted model for each candidate; each gets its own child of `seed`."""
    return [
        MinkowskiWeightedKMeans(
            p=candidate.p,
            weighting=candidate.weighting,
            random_state=seed_integer(child),
            **({} if candidate.dispersion_offset is None else _offset(candidate)),
            **options,
        )
        for candidate, child in zip(candidates, seed.spawn(len(candidates)), strict=True)
    ]


def _offset(candidate):
    return {"dispersion_offset": candidate.dispersion_offset}


def fit_models(models, sources, n_jobs=None, verbose=0, filled_starts=False):
    """Fit each model to its source, with the starts of all models in one pool of workers.

    With `filled_starts` the starts run on rows whose missing values are filled; see `prepare`.
    Return the number of nonempty clusters of each model.
    """
    groups = {}
    for model, source in zip(models, sources, strict=True):
        model.n_features_in_ = source.shape[1]
        rows = source.ordinary(model.p)
        groups.setdefault(id(rows), (rows, []))[1].append(model)
    jobs = []
    for rows, together in groups.values():
        jobs += prepare(together, rows, filled_starts)
    order = {id(job.estimator): job for job in jobs}
    jobs = [order[id(model)] for model in models]
    run_starts(jobs, n_jobs, verbose)
    return [job.best.n_found for job in jobs]


def candidate_records(candidates, models, scores, agreement, chosen):
    """Return the columns of `candidate_frame` as lists, which model files can hold."""
    return {
        "scaling": [_name(candidate.scaling) for candidate in candidates],
        "weighting": [candidate.weighting for candidate in candidates],
        "dispersion_offset": [candidate.dispersion_offset for candidate in candidates],
        "p": [candidate.p for candidate in candidates],
        "objective": [float(model.inertia_) for model in models],
        "score": [float(score) for score in scores],
        "smallest": _sizes(model._mass.min() for model in models),
        "largest": _sizes(model._mass.max() for model in models),
        "agreement": [float(value) for value in agreement[chosen]],
        "chosen": [i == chosen for i in range(len(candidates))],
    }


def candidate_frame(records):
    """Return the candidates as a data frame, one row each."""
    return pd.DataFrame(records).rename_axis("candidate")


def _sizes(masses):
    """Return masses (sums of weights) as a list, of integers if all are whole numbers."""
    masses = [float(mass) for mass in masses]
    return [int(mass) for mass in masses] if all(map(float.is_integer, masses)) else masses


def _name(scaling):
    if scaling is None or isinstance(scaling, str):
        return scaling or "none"
    return type(scaling).__name__
