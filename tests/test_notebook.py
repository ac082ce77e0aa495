"""Fitted estimators in notebooks: a summary above scikit-learn's diagram."""

from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone

from cafelearn import CAFE, MinkowskiWeightedKMeans, TabularCAFE
from cafelearn.interpret.labels import answer_words, mixture_words

pytestmark = pytest.mark.filterwarnings("ignore::cafelearn.diagnosis.DiagnosisWarning")
ATTACK = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 15))
    X[:30, :3] += 6
    X[30:60, 3:6] -= 6
    return pd.DataFrame(X, columns=[f"name {v}" for v in range(14)] + [ATTACK])


def estimators():
    quick = {"p": 2.0, "n_init": 2, "random_state": 0}
    weighted = quick | {"weighting": "cluster", "scaling": "range"}
    return [
        CAFE(3, **quick),
        CAFE(3, selection="likelihood", **weighted),
        TabularCAFE(CAFE(3, selection="likelihood", **weighted)),
        MinkowskiWeightedKMeans(3, n_init=2, random_state=0),
    ]


def summary(html):
    """The summary as a tree; it is well formed, so nothing in it was left unescaped."""
    end = html.index("</div>") + len("</div>")
    return ElementTree.fromstring(html[:end])


@pytest.mark.parametrize("estimator", estimators(), ids=lambda e: type(e).__name__)
class TestEstimators:
    def test_summary_above_the_diagram(self, estimator, table):
        model = clone(estimator).fit(table)
        html = model._repr_html_()
        tree = summary(html)
        said = "".join(tree.itertext())
        assert f"{type(model).__name__}: 3 clusters of 90 rows, 15 features" in said
        if hasattr(model, "mixture_"):
            assert said.index(answer_words(model)) < said.index("3 clusters of 90")
            assert mixture_words(model.mixture_) in said
        else:
            assert "best of 2 starts" in said
            assert "one weight per cluster and feature" in said
        sizes = np.bincount(model.labels_)
        texts = [text.text for text in tree.iter("text")]
        assert [str(size) for size in sizes] == texts[3:8:2]
        for finding in model.diagnosis_:
            assert finding.message in said
        assert html.index("cafelearn-fit") < html.index("sk-top-container")
        assert model._repr_mimebundle_()["text/html"].startswith('<div class="cafelearn-fit">')

    def test_the_map_shows_the_weights(self, estimator, table):
        model = clone(estimator).fit(table)
        weights = model.weights_frame()
        tree = summary(model._repr_html_())
        tips = [rect.find("title").text for rect in tree.iter("rect")]
        assert len(tips) == 3 * 12
        first = weights.columns[np.argsort(-weights.to_numpy().max(axis=0), kind="stable")[0]]
        assert tips[0] == f"{first}, cluster 0: weight {weights[first].iloc[0]:.3g}"
        shades = [float(rect.get("fill-opacity")) for rect in tree.iter("rect")]
        assert max(shades) == 1
        assert np.argmax(shades) == np.argmax(weights[first])
        assert "The 12 highest-weighted of 15 features." in " ".join(tree.itertext())

    def test_unfitted(self, estimator):
        assert "cafelearn-fit" not in estimator._repr_html_()
        assert "sk-top-container" in estimator._repr_html_()
        assert "cafelearn-fit" not in estimator._repr_mimebundle_()["text/html"]

    def test_text(self, estimator, table):
        with config_context(display="text"):
            assert not hasattr(clone(estimator).fit(table), "_repr_html_")
            assert "text/html" not in estimator._repr_mimebundle_()


def test_names_are_escaped(table):
    model = MinkowskiWeightedKMeans(3, n_init=2, random_state=0).fit(table[[ATTACK, "name 1"]])
    html = model._repr_html_()
    assert ATTACK not in html[: html.index("</div>")]
    tips = [rect.find("title").text for rect in summary(html).iter("rect")]
    assert any(tip.startswith(ATTACK) for tip in tips)


def test_many_clusters_and_equal_weights():
    X = np.random.default_rng(0).normal(size=(300, 4))
    model = MinkowskiWeightedKMeans(30, weighting="uniform", n_init=1, random_state=0).fit(X)
    said = " ".join(summary(model._repr_html_()).itertext())
    assert "The 20 largest of 30 clusters. All features have the same weight." in said


def test_long_names_differ():
    """Both ends of a name are shown, and the map leaves room for them."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    names = [f"the concentration measured at the inlet of reactor {v}" for v in range(3)]
    model = MinkowskiWeightedKMeans(2, n_init=1, random_state=0).fit(
        pd.DataFrame(X, columns=names)
    )
    tree = summary(model._repr_html_())
    shown = [text for text in tree.iter("text") if "…" in text.text]
    assert len({text.text for text in shown}) == 3
    assert all(float(text.get("x")) > 5.5 * len(text.text) for text in shown)


def test_a_category_is_one_row_of_the_map(table):
    kind = np.repeat(["a", "b", "c"], 30)
    rows = table[["name 0", "name 4"]].assign(kind=kind)
    cafe = CAFE(3, p=2.0, n_init=2, weighting="cluster", random_state=0)
    model = TabularCAFE(cafe).fit(rows)
    tree = summary(model._repr_html_())
    names = [text.text for text in tree.iter("text")][-3:]
    assert sorted(names) == ["kind", "name 0", "name 4"]


def test_sample_weights_and_a_chosen_number(table):
    X = table.to_numpy()
    model = MinkowskiWeightedKMeans((2, 3), n_init=2, random_state=0)
    said = " ".join(
        summary(model.fit(X, sample_weight=np.full(90, 0.31))._repr_html_()).itertext()
    )
    assert "(number chosen automatically) of weighted rows" in said
