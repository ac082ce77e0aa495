"""The displays of lines and points: objective and embedding."""

# Fixtures are imported by name.
# ruff: noqa: F401, F811
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba

from cafelearn import CAFE, MinkowskiWeightedKMeans, theory
from cafelearn.plotting import EmbeddingDisplay, ObjectiveDisplay
from cafelearn.plotting._axes import group_style
from drawing import cafe, close_figures, iris, many, names_of, overlapping


def one_cluster_mean(X, p):
    """Mean over features of the dispersion of the whole data."""
    center = theory.minkowski_center(X, p)
    return theory.dispersions(X, np.zeros(len(X), int), center[None], p).mean()


class TestObjective:
    @pytest.mark.parametrize("p", [1.2, 2.0, 3.5])
    @pytest.mark.parametrize("offset", [0, 0.7, "fixed", "mean"])
    def test_path_and_bounds_are_of_one_kind(self, offset, p, iris):
        X = iris[0].to_numpy()
        model = MinkowskiWeightedKMeans(3, p=p, dispersion_offset=offset, random_state=0).fit(X)
        assert model.stop_reason_ == "converged"
        display = ObjectiveDisplay.from_estimator(model)
        (line,) = display.lines_
        np.testing.assert_array_equal(line.get_ydata(), model.objective_path_)
        np.testing.assert_array_equal(line.get_xdata(), np.arange(1, model.n_iter_ + 1))
        lower, upper = display.bounds[p]
        end = model.objective_path_[-1]
        assert lower * (1 - 1e-9) <= end <= upper * (1 + 1e-9)
        D, weights = model.dispersions_, model.feature_weights_
        if offset == "mean":
            c = D.mean()
            own = c * (weights**p).sum()
            assert end == pytest.approx(theory.objective(D + c, p) - own)
            expected = (
                theory.objective_bounds(D, p)[0],
                theory.objective_bounds(D + c, p)[1] - own,
            )
        else:
            c = 0.1 * one_cluster_mean(X, p) / 3 if offset == "fixed" else offset
            assert end == pytest.approx(theory.objective(D + c, p))
            expected = theory.objective_bounds(D + c, p)
        assert (lower, upper) == pytest.approx(expected, rel=1e-6)
        box = display.bounds_[0].get_extents().transformed(display.ax_.transData.inverted())
        assert (box.y0, box.y1) == pytest.approx((lower, upper))
        has_offset = offset in (0.7, "fixed")
        assert ("D + c" in display.ax_.get_ylabel()) == has_offset

    def test_the_bounds_of_the_plain_dispersions_would_not_do(self):
        """With "mean" the end may lie above the bound for weights without an offset."""
        X = np.random.default_rng(3).normal(size=(120, 6)) * [0.01, 1, 1, 1, 1, 1]
        model = MinkowskiWeightedKMeans(2, p=3.0, n_init=3, random_state=0).fit(X)
        end = model.objective_path_[-1]
        assert end > theory.objective_bounds(model.dispersions_, 3.0)[1]
        lower, upper = ObjectiveDisplay.from_estimator(model).bounds[3.0]
        assert lower <= end <= upper

    def test_a_panel_for_each_exponent(self, cafe):
        display = ObjectiveDisplay.from_estimator(cafe)
        assert len(display.axes_) == 4
        assert display.ax_ is display.axes_[0]
        for panel, line, model in zip(display.axes_, display.lines_, cafe.models_, strict=True):
            assert line.axes is panel
            np.testing.assert_array_equal(line.get_ydata(), model.objective_path_)
            chosen = " (chosen)" if model.p == cafe.p_ else ""
            assert panel.get_title() == f"p = {model.p:g}{chosen}"
        assert names_of(display.ax_.get_legend().get_texts()) == ["bounds at the end"]
        without = ObjectiveDisplay.from_estimator(cafe, bounds=False)
        assert without.bounds_ == [None] * 4
        assert without.ax_.get_legend() is None

    def test_of_many_candidates_those_that_differ_from_the_chosen_one_in_p(self, many):
        display = ObjectiveDisplay.from_estimator(many)
        settings = ("weighting", "dispersion_offset")
        rows = many.candidates_
        scaling = rows.loc[rows["chosen"], "scaling"].item()
        family = [
            model
            for model, other in zip(many.models_, rows["scaling"], strict=True)
            if other == scaling
            and all(getattr(model, s) == getattr(many.model_, s) for s in settings)
        ]
        assert many.model_ in family
        assert list(display.paths) == list(many.p)
        for model in family:
            np.testing.assert_array_equal(display.paths[model.p], model.objective_path_)
        assert display.chosen == many.p_

    @pytest.mark.parametrize("scaling", ["standard", None])
    def test_uniform_weights_have_no_bounds(self, scaling, iris):
        options = {"n_init": 2, "random_state": 0}
        cafe = CAFE(3, p=(1.5, 2), scaling=scaling, weighting="uniform", **options).fit(iris[0])
        display = ObjectiveDisplay.from_estimator(cafe)
        assert list(display.paths) == [1.5, 2.0]
        assert display.bounds == {}
        assert display.bounds_ == [None, None]
        assert "D + c" not in display.ax_.get_ylabel()
        model = MinkowskiWeightedKMeans(
            3, weighting="uniform", dispersion_offset=5.0, **options
        )
        display = ObjectiveDisplay.from_estimator(model.fit(iris[0]))
        assert display.bounds == {}
        # An offset has no effect on equal weights.
        assert "D + c" not in display.ax_.get_ylabel()

    def test_three_panels_leave_no_empty_axes(self, iris):
        cafe = CAFE(3, p=(1.5, 2, 3), n_init=1, random_state=0).fit(iris[0])
        assert len(ObjectiveDisplay.from_estimator(cafe).figure_.axes) == 3

    def test_an_unfinished_descent_has_no_bounds(self, iris):
        model = MinkowskiWeightedKMeans(3, max_iter=1, n_init=1, random_state=0).fit(iris[0])
        display = ObjectiveDisplay.from_estimator(model)
        assert display.bounds_ == [None]
        assert display.ax_.get_title() == "p = 2, stopped by max_iter"
        loose = MinkowskiWeightedKMeans(3, tol=0.5, n_init=1, random_state=0).fit(iris[0])
        assert ObjectiveDisplay.from_estimator(loose).bounds == {}

    def test_bad_input(self):
        with pytest.raises(ValueError, match="needs paths as a mapping"):
            ObjectiveDisplay([3.0, 2.0])
        with pytest.raises(ValueError, match=r"needs bounds for exponents .* got 3"):
            ObjectiveDisplay({2.0: [3.0]}, {3.0: (1, 2)})
        with pytest.raises(ValueError, match=r"needs chosen for exponents .* got 3"):
            ObjectiveDisplay({2.0: [3.0]}, chosen=3.0)


class TestEmbedding:
    def test_points_by_cluster(self, cafe, iris):
        display = EmbeddingDisplay.from_estimator(cafe, iris[0], components=(2, 0))
        features, labels = cafe.transform(iris[0]), cafe.predict(iris[0])
        assert len(display.axes_) == 1
        for l, points in enumerate(display.scatters_[0]):
            np.testing.assert_allclose(points.get_offsets(), features[labels == l][:, [2, 0]])
            assert points.get_label() == f"cluster {l}"
            expected = to_rgba(group_style(l)["color"], 0.8)
            assert tuple(points.get_facecolor()[0]) == expected
        shares = cafe.extractor_.explained_variance_ratio_
        assert display.ax_.get_xlabel() == f"cafe2 ({shares[2]:.0%} of variance)"
        assert display.ax_.get_ylabel().startswith("cafe0 ")

    def test_classes_have_the_colours_of_their_clusters(self, cafe, iris):
        X, y = iris
        classes = np.array(["setosa", "$versi$color", "_virginica"])[y]
        display = EmbeddingDisplay.from_estimator(cafe, X, y=classes)
        by_cluster, by_class = display.scatters_
        labels = cafe.predict(X)
        assert [len(points.get_offsets()) for points in by_class] == [50, 50, 50]
        for points, name in zip(by_class, np.unique(classes), strict=True):
            assert points.get_label() == f"class {name}".replace("$", r"\$")
            most = np.bincount(labels[classes == name]).argmax()
            np.testing.assert_array_equal(
                points.get_facecolor(), by_cluster[most].get_facecolor()
            )
        legend = display.axes_[1].get_legend()
        assert names_of(legend.get_texts())[1] == "class _virginica"

    def test_more_classes_than_clusters_and_more_clusters_than_colours(self):
        labels = np.repeat(np.arange(20), 3)
        features = np.random.default_rng(0).normal(size=(60, 2))
        display = EmbeddingDisplay(features, labels, y=np.arange(60) // 2).plot()
        by_cluster, by_class = display.scatters_
        looks = {
            (tuple(points.get_facecolor()[0]), points.get_paths()[0].vertices.tobytes())
            for points in by_cluster
        }
        assert len(looks) == 20
        looks = {
            (tuple(points.get_facecolor()[0]), points.get_paths()[0].vertices.tobytes())
            for points in by_class
        }
        assert len(looks) == 30

    def test_options(self, cafe, iris):
        display = EmbeddingDisplay.from_estimator(
            cafe, iris[0], legend=False, scatter_kw={"s": 5, "alpha": 0.1}
        )
        assert display.ax_.get_legend() is None
        assert display.scatters_[0][0].get_sizes() == [5]
        many = EmbeddingDisplay(np.zeros((6000, 2)), np.zeros(6000, dtype=int)).plot()
        assert many.scatters_[0][0].get_rasterized()

    @pytest.mark.parametrize("components", [(0, 0), (0,), 1, (0, 1.5), "ab"])
    def test_components_must_be_two(self, components, cafe, iris):
        with pytest.raises(ValueError, match="components to be two different ints"):
            EmbeddingDisplay.from_estimator(cafe, iris[0], components=components)

    def test_bad_input(self, cafe, iris):
        X, y = iris
        with pytest.raises(ValueError, match=r"number of extracted features, 3, got \(0, 3\)"):
            EmbeddingDisplay.from_estimator(cafe, X, components=(0, 3))
        with pytest.raises(ValueError, match=r"label for each of 150 rows, got shape \(3,\)"):
            EmbeddingDisplay.from_estimator(cafe, X, y=y[:3])
        with pytest.raises(ValueError, match="got numbers with fractions"):
            EmbeddingDisplay.from_estimator(cafe, X, y=y + 0.5)
        with pytest.raises(ValueError, match="got missing values"):
            EmbeddingDisplay.from_estimator(cafe, X, y=np.where(y == 0, np.nan, y))
        with pytest.raises(ValueError, match="that can be sorted"):
            EmbeddingDisplay.from_estimator(
                cafe, X, y=np.array([1, "a", None][:2] * 75, object)
            )
        with pytest.raises(ValueError, match="one integer label for each of 2 rows"):
            EmbeddingDisplay(np.zeros((2, 2)), [0.5, 1.0])
        with pytest.raises(ValueError, match="2 component_names, got 1"):
            EmbeddingDisplay(np.zeros((2, 2)), [0, 1], component_names=["a"])
        with pytest.raises(ValueError, match="features of shape"):
            EmbeddingDisplay(np.zeros(2), [0, 1])
