"""Features of all displays: axes, text, colours, and errors for bad input."""

# Fixtures are imported by name.
# ruff: noqa: F401, F811
import builtins
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

from cafelearn import CAFE, MinkowskiWeightedKMeans, plotting
from cafelearn.estimators.tabular import TabularCAFE
from cafelearn.explanation import explain
from cafelearn.plotting import (
    AgreementDisplay,
    EmbeddingDisplay,
    ExplanationDisplay,
    LoadingsDisplay,
    NoisePairsDisplay,
    NumberOfClustersDisplay,
    ObjectiveDisplay,
    WeightsDisplay,
)
from cafelearn.plotting._axes import COLORS, MARKERS, group_style, plain_text
from drawing import cafe, close_figures, iris


@pytest.mark.parametrize(
    "name",
    ["price in $ and $ again", "$x_2$", r"\$", r"a\frac{1}", "Größe µ ≥ 3", "a_b^c%#&{}", "$"],
)
def test_names_are_drawn_as_they_are_written(name):
    frame = pd.DataFrame([[0.4, 0.6]], columns=[name, "other"])
    display = WeightsDisplay(frame).plot()
    label = display.ax_.get_xticklabels()[0]
    # What matplotlib makes of the text: the characters to draw, and not as mathematics.
    assert label._preprocess_math(label.get_text()) == (name, False)
    display.figure_.canvas.draw()


def test_long_names_keep_both_ends():
    names = [f"a name that goes on and on for ever, number {i}" for i in range(100)]
    short = [plain_text(name) for name in names]
    assert len(set(short)) == 100
    assert max(map(len, short)) == 28
    assert short[7].startswith("a name that")
    assert short[7].endswith("number 7")
    assert plain_text("two\nlines\tand a tab") == "two lines and a tab"


def test_styles_differ_beyond_the_colours():
    styles = {tuple(group_style(i).values()) for i in range(64)}
    assert len(styles) == 64
    assert {group_style(i)["marker"] for i in range(8)} == {MARKERS[0]}
    assert group_style(8) == {"color": COLORS[0], "marker": MARKERS[1]}


NUMBERS = pd.DataFrame(
    {
        "gain": [0.0, 90.0, 85.0, 95.0],
        "counts": [True, True, True, False],
        "tied": [False, False, True, False],
        "chosen": [False, True, False, False],
    },
    index=[1, 2, 3, 4],
)


def test_gains_of_the_numbers_of_clusters():
    display = NumberOfClustersDisplay(NUMBERS).plot()
    assert display.line_.get_xydata().tolist() == [[1, 0], [2, 90], [3, 85], [4, 95]]
    assert [line.get_xdata()[0] for line in display.chosen_] == [2]
    assert display.tied_.get_xydata().tolist() == [[3, 85]]
    assert display.tiny_.get_xydata().tolist() == [[4, 95]]
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["chosen", "nearly as good", "tiny clusters"]
    with pytest.raises(ValueError, match="gain not found"):
        NumberOfClustersDisplay(NUMBERS.drop(columns="gain"))


def every_display(cafe, X, y):
    """A display of each kind, not drawn, and the number of its panels."""
    return [
        (WeightsDisplay(cafe.feature_weights_), 1),
        (AgreementDisplay(cafe.agreement_, list("abcd"), "b"), 1),
        (ObjectiveDisplay({m.p: m.objective_path_ for m in cafe.models_}), 4),
        (EmbeddingDisplay(cafe.transform(X), cafe.labels_), 1),
        (EmbeddingDisplay(cafe.transform(X), cafe.labels_, y), 2),
        (NoisePairsDisplay(cafe.feature_weights_, np.eye(3, 4, dtype=bool)), 2),
        (LoadingsDisplay(cafe.loadings_.loc[:1]), 2),
        (LoadingsDisplay(cafe.loadings_.loc[0]), 1),
        (ExplanationDisplay(explain(cafe, X, 3)), 1),
        (NumberOfClustersDisplay(NUMBERS), 1),
    ]


class TestAxes:
    def test_new_figures_and_no_other_state(self, cafe, iris):
        settings = dict(mpl.rcParams)
        for i, (display, _) in enumerate(every_display(cafe, *iris)):
            assert display.plot() is display
            assert len(plt.get_fignums()) == i + 1
            assert display.figure_ is plt.gcf()
            display.figure_.canvas.draw()
        assert dict(mpl.rcParams) == settings

    def test_given_axes_are_drawn_on_and_pyplot_is_left_alone(self, cafe, iris):
        for display, n_panels in every_display(cafe, *iris):
            figure = mpl.figure.Figure()
            given = figure.subplots(1, n_panels, squeeze=False)
            display.plot(given[0] if n_panels > 1 else given[0, 0])
            assert display.figure_ is figure
            assert display.ax_ is given[0, 0]
            assert all(len(ax.get_children()) > 10 for ax in given[0])
            assert plt.get_fignums() == []

    def test_the_current_axes_stay_current(self, cafe, iris):
        for display, _ in every_display(cafe, *iris):
            figure, (_, second) = plt.subplots(1, 2)
            plt.sca(second)
            display.plot(second)
            assert plt.gca() is second
            assert len(plt.get_fignums()) == 1
            plt.close(figure)

    def test_one_place_in_a_grid_is_divided(self, cafe, iris):
        for display, n_panels in every_display(cafe, *iris):
            if n_panels == 1:
                continue
            figure, (left, right) = plt.subplots(1, 2)
            display.plot(right)
            assert len(display.axes_) == n_panels
            assert not right.axison
            figure.canvas.draw()
            for panel in display.axes_:
                assert panel.get_position().x0 >= left.get_position().x1
            alone = plt.figure().add_axes([0, 0, 1, 1])
            with pytest.raises(ValueError, match=f"needs {n_panels} axes, or a single"):
                display.plot(alone)
            with pytest.raises(ValueError, match=f"needs {n_panels} axes, got 3"):
                display.plot(plt.figure().subplots(3))

    @pytest.mark.parametrize("ax", ["axes", 3, [None]])
    def test_not_axes(self, ax, cafe, iris):
        for display, _ in every_display(cafe, *iris):
            name = type(display).__name__
            with pytest.raises(TypeError, match=f"{name}.plot needs ax to be matplotlib axes"):
                display.plot(ax)


FROM_ESTIMATOR = {
    WeightsDisplay: (),
    AgreementDisplay: (),
    ObjectiveDisplay: (),
    EmbeddingDisplay: (np.zeros((5, 4)),),
    LoadingsDisplay: (),
    NoisePairsDisplay: (np.eye(3, 4, dtype=bool), np.arange(5)),
}


@pytest.mark.parametrize("kind", FROM_ESTIMATOR)
def test_estimators_that_do_not_fit(kind, iris):
    more = FROM_ESTIMATOR[kind]
    with pytest.raises(NotFittedError):
        kind.from_estimator(CAFE(), *more)
    fitted = KMeans(3, n_init=1).fit(iris[0])
    with pytest.raises(TypeError, match=rf"{kind.__name__}.from_estimator .* got a KMeans"):
        kind.from_estimator(fitted, *more)
    with pytest.raises(TypeError, match="got the class CAFE"):
        kind.from_estimator(CAFE, *more)


class TestEveryEstimator:
    """mwk-means and TabularCAFE are drawn like CAFE, where applicable."""

    @pytest.fixture
    def model(self, iris):
        return MinkowskiWeightedKMeans(3, n_init=2, random_state=0).fit(iris[0])

    @pytest.fixture
    def table(self, iris):
        frame = pd.DataFrame(np.asarray(iris[0]), columns=list("abcd"))
        frame["kind"] = ["x", "y"] * 75
        settings = {"p": 2.0, "n_init": 2, "random_state": 0}
        return TabularCAFE(CAFE(3, **settings)).fit(frame), frame

    def test_mwkmeans(self, model, iris):
        X, y = iris
        display = WeightsDisplay.from_estimator(model)
        np.testing.assert_array_equal(display.im_.get_array(), model.feature_weights_)
        assert ObjectiveDisplay.from_estimator(model).paths.keys() == {2.0}
        display = EmbeddingDisplay.from_estimator(model, X, y=y, components=(1, 2))
        assert display.ax_.get_xlabel() == "distance to cluster 1"
        np.testing.assert_array_equal(display.features, model.transform(X))
        with pytest.raises(TypeError, match="needs a fitted CAFE or TabularCAFE"):
            LoadingsDisplay.from_estimator(model)

    def test_tables(self, table):
        model, frame = table
        display = WeightsDisplay.from_estimator(model)
        shown = [label.get_text() for label in display.ax_.get_xticklabels()]
        assert shown == [*"abcd", "kind"]
        display = EmbeddingDisplay.from_estimator(model, frame)
        np.testing.assert_array_equal(display.labels, model.labels_)
        expected = PCA(2, random_state=0).fit_transform(model.transform(frame))
        shown = display.features[:, :2]
        np.testing.assert_allclose(np.abs(shown), np.abs(expected), atol=1e-6)
        assert display.ax_.get_xlabel().startswith("component 1 (")
        assert len(AgreementDisplay.from_estimator(model).names) == 6
        assert 2.0 in ObjectiveDisplay.from_estimator(model).paths

    def test_explanations(self, model, table, iris):
        for estimator, X in ((model, iris[0]), table):
            found = explain(estimator, X, 70)
            display = ExplanationDisplay.from_estimator(estimator, X, 70, max_features=3)
            widths = [bar.get_width() for bar in display.bars_]
            np.testing.assert_allclose(widths, 100 * found["share"].iloc[:3])
            assert f"for cluster {found.attrs['first']}" in display.ax_.get_xlabel()
        with pytest.raises(ValueError, match="max_features to be an int above 0, got 0"):
            ExplanationDisplay.from_estimator(model, iris[0], 70, max_features=0)
        with pytest.raises(ValueError, match=r"explanation.explain, got DataFrame"):
            ExplanationDisplay(pd.DataFrame({"share": [1.0]}))


def test_matplotlib_is_named_when_missing(cafe, iris, monkeypatch):
    displays = every_display(cafe, *iris)
    load_module = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return load_module(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    for display, _ in displays:
        message = rf"{type(display).__name__}.plot needs .* pip install 'cafelearn\[plot\]'"
        with pytest.raises(ImportError, match=message):
            display.plot()


def test_matplotlib_is_loaded_only_to_draw():
    code = "import sys, cafelearn.plotting; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_every_public_name_is_a_display():
    assert all(hasattr(getattr(plotting, name), "plot") for name in plotting.__all__)
    assert list(plotting.__all__) == sorted(plotting.__all__)
