"""Helpers shared by the tests of the displays."""

from itertools import pairwise

import matplotlib as mpl
import pytest

from cafelearn import CAFE, PAPER, MinkowskiWeightedKMeans
from cafelearn.datasets import load

mpl.use("Agg")
from matplotlib import pyplot as plt


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def iris():
    return load("iris").frame.drop(columns="target"), load("iris").target


@pytest.fixture(scope="module")
def model(iris):
    return MinkowskiWeightedKMeans(3, n_init=3, random_state=0).fit(iris[0])


@pytest.fixture(scope="module")
def cafe(iris):
    """Candidates that differ in the exponent alone."""
    settings = PAPER | {"n_init": 3}
    return CAFE(3, n_components=3, random_state=0, **settings).fit(iris[0])


@pytest.fixture(scope="module")
def many(iris):
    """Candidates that differ in every setting."""
    cafe = CAFE(
        3,
        n_components=3,
        p=(1.5, 2.0, 2.5, 3.0, 4.0),
        scaling=("range", "standard"),
        dispersion_offset=("mean", "fixed"),
        weighting=("cluster", "uniform"),
        n_init=2,
        selection="likelihood",
        random_state=0,
    )
    return cafe.fit(iris[0])


def names_of(texts):
    return [text.get_text() for text in texts]


def overlapping(texts):
    """Count the neighbours that overlap in the drawn figure."""
    texts[0].figure.canvas.draw()
    boxes = [text.get_window_extent() for text in texts]
    return sum(a.overlaps(b) for a, b in pairwise(boxes))
