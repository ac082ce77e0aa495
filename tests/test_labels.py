"""Names of candidates: short, distinct, and of the settings that differ."""

import numpy as np
import pytest
from sklearn.preprocessing import MinMaxScaler, RobustScaler

from cafelearn import CAFE
from cafelearn.interpret.labels import (
    candidate_names,
    chosen_position,
    family_positions,
    settings_words,
)

X = np.random.default_rng(0).normal(size=(30, 3))


def candidates(**settings):
    every = {"scaling": "range", "weighting": "cluster", "dispersion_offset": "mean", "p": 2.0}
    return (
        CAFE(2, selection="likelihood", n_init=1, random_state=0, **every | settings)
        .fit(X)
        .candidates_
    )


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({}, ["p = 2"]),
        ({"p": (1.5, 2.0)}, ["p = 1.5", "p = 2"]),
        ({"scaling": ("range", None)}, ["range", "none"]),
        ({"weighting": ("cluster", "uniform")}, ["cluster", "uniform"]),
        ({"dispersion_offset": ("mean", 0.5, 0)}, ["mean", "offset 0.5", "offset 0"]),
        (
            {"weighting": ("cluster", "uniform"), "dispersion_offset": ("mean", "fixed")},
            ["mean", "fixed", "uniform"],
        ),
        (
            {"scaling": ("standard", "range"), "weighting": ("uniform", "cluster")},
            ["standard, uniform", "standard, cluster", "range, uniform", "range, cluster"],
        ),
        (
            {"scaling": ("standard", RobustScaler()), "p": (2, 3)},
            [
                *("standard, p = 2", "standard, p = 3"),
                *("RobustScaler, p = 2", "RobustScaler, p = 3"),
            ],
        ),
        (
            {"scaling": (MinMaxScaler((0, 1)), MinMaxScaler((0, 2)))},
            ["p = 2 #0", "p = 2 #1"],
        ),
    ],
)
def test_names(settings, names):
    assert candidate_names(candidates(**settings)) == names


def test_names_are_distinct_by_default():
    frame = CAFE(2, selection="likelihood", n_init=1, random_state=0).fit(X).candidates_
    names = candidate_names(frame)
    assert len(set(names)) == len(frame)
    assert "range, mean, p = 2" in names
    assert "standard, uniform, p = 2" in names


def test_the_family_of_the_chosen_one():
    frame = CAFE(2, selection="likelihood", n_init=1, random_state=0).fit(X).candidates_
    for position in range(len(frame)):
        frame["chosen"] = np.arange(len(frame)) == position
        assert chosen_position(frame) == position
        row = frame.iloc[position]
        names = ["scaling", "weighting", "dispersion_offset"]
        expected = frame[names].fillna("none").eq(row[names].fillna("none")).all(axis=1)
        assert family_positions(frame) == np.flatnonzero(expected).tolist()


def test_two_scalers_of_one_class_are_two_families():
    frame = candidates(scaling=(MinMaxScaler((0, 1)), MinMaxScaler((0, 2))), p=(2, 3))
    frame["chosen"] = [False, False, True, False]
    assert family_positions(frame) == [2, 3]


def test_settings_in_words():
    frame = candidates(scaling=(None, "range"), weighting=("cluster", "uniform"), p=1.5)
    assert [settings_words(row) for _, row in frame.iterrows()] == [
        "no scaling, one weight per cluster and feature (offset mean), p = 1.5",
        "no scaling, equal weights (ordinary Minkowski k-means), p = 1.5",
        "range scaling, one weight per cluster and feature (offset mean), p = 1.5",
        "range scaling, equal weights (ordinary Minkowski k-means), p = 1.5",
    ]
    (_, row), *_ = candidates(dispersion_offset=0.25).iterrows()
    assert "(offset 0.25)" in settings_words(row)
