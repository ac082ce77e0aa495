"""The message before a fit compiles kernels."""

import logging

import numpy as np
import pytest

from cafelearn import MinkowskiWeightedKMeans
from cafelearn.kmeans import compiling_note as module


@pytest.fixture
def fresh(monkeypatch):
    monkeypatch.setattr(module, "_noted", set())
    monkeypatch.setattr(logging.getLogger("cafelearn"), "level", logging.NOTSET)


def fit(blobs):
    return MinkowskiWeightedKMeans(3, n_init=1, random_state=0).fit(blobs[0])


def test_once_per_process(fresh, monkeypatch, caplog, blobs):
    monkeypatch.setattr(module, "kernels_are_compiled", lambda: False)
    fit(blobs)
    fit(blobs)
    assert [record.getMessage() for record in caplog.records] == [module.NOTE]


def test_nothing_where_nothing_is_compiled(fresh, monkeypatch, caplog, blobs):
    monkeypatch.setattr(module, "kernels_are_compiled", lambda: True)
    fit(blobs)
    assert caplog.records == []


def test_the_logger_silences_it(fresh, monkeypatch, caplog, blobs):
    monkeypatch.setattr(module, "kernels_are_compiled", lambda: False)
    caplog.set_level(logging.ERROR, logger="cafelearn")
    fit(blobs)
    assert caplog.records == []


def test_a_fit_compiles_all():
    fit((np.random.default_rng(0).normal(size=(30, 2)),))
    assert module.kernels_are_compiled()
