"""Warnings: at the line of the caller."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from cafelearn import CAFE, MinkowskiWeightedKMeans
from cafelearn.estimators.tabular import TabularCAFE
from cafelearn.extraction import ReconstructionICA, ReplicatedNMF

WINE = load_wine().data
QUICK = {"p": 2.0, "n_init": 1, "scaling": "range", "random_state": 0}
HARD = {"selection": "likelihood", "scaling": None}


def table(rows, extra=False):
    frame = pd.DataFrame(WINE[rows, :3], columns=list("abc"))
    frame["kind"] = np.where(frame["a"] > 13, "high", "new" if extra else "low")
    return frame.assign(extra=1) if extra else frame


def nested():
    """Estimators whose warnings arise at different depths, and what makes them warn."""
    raw = MinkowskiWeightedKMeans(3, random_state=0)
    yield "scales", lambda: raw.fit(WINE)
    pipeline = make_pipeline(FunctionTransformer(), MinkowskiWeightedKMeans(3, random_state=0))
    yield "scales", lambda: pipeline.fit(WINE)
    yield "scales", lambda: CAFE(3, **QUICK | HARD).fit(WINE)
    nmf = ReplicatedNMF(2, n_init=1, random_state=0).fit(WINE)
    yield "below the minimum", lambda: nmf.transform(WINE - 1)
    cafe = CAFE(3, extractor="nmf", n_components=2, **QUICK).fit(WINE)
    yield "below the minimum", lambda: cafe.transform(WINE * 2 - 10)
    ica = ReconstructionICA(2, n_init=1, max_iter=1, random_state=0)
    yield "stopped after max_iter=1", lambda: ica.fit(WINE)
    tabular = TabularCAFE(CAFE(2, **QUICK)).fit(table(slice(None)))
    yield "not in the fit: 'extra'", lambda: tabular.predict(table(slice(0, 60), extra=True))
    yield "unknown categories", lambda: tabular.predict(table(slice(0, 100), extra=True))


@pytest.mark.parametrize("number", range(8))
def test_at_the_line_of_the_caller(number):
    text, act = list(nested())[number]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    found = [warning for warning in caught if text in str(warning.message)]
    assert len(found) == 1
    assert found[0].filename == __file__
    assert found[0].lineno == inspect.getsourcelines(act)[1]


@pytest.mark.parametrize(("action", "n_shown"), [("always", 3), ("ignore", 0)])
def test_filters_are_those_of_python(action, n_shown):
    nmf = ReplicatedNMF(2, n_init=1, random_state=0).fit(WINE)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        for step in range(1, 4):
            nmf.transform(WINE - step)
    assert len(caught) == n_shown
