"""The displays that are heat maps: weights, agreement and noise pairs."""

# Fixtures are imported by name.
# ruff: noqa: F401, F811
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from sklearn.metrics import roc_auc_score

from cafelearn import CAFE, PAPER, MinkowskiWeightedKMeans, RangeScaler
from cafelearn.datasets import corrupt
from cafelearn.interpret.labels import candidate_names
from cafelearn.plotting import AgreementDisplay, NoisePairsDisplay, WeightsDisplay
from drawing import cafe, close_figures, iris, many, model, names_of, overlapping


@pytest.fixture(scope="module")
def large():
    """Weights of 20 clusters and 60 features."""
    weights = np.random.default_rng(0).dirichlet(np.full(60, 0.4), size=20)
    names = [f"feature number {v}" for v in range(60)]
    return pd.DataFrame(weights, index=[f"cluster {l}" for l in range(20)], columns=names)


class TestWeights:
    def test_cells_names_and_numbers(self, model, iris):
        display = WeightsDisplay.from_estimator(model)
        np.testing.assert_array_equal(display.im_.get_array(), model.feature_weights_)
        assert names_of(display.ax_.get_xticklabels()) == list(iris[0].columns)
        assert names_of(display.ax_.get_yticklabels()) == [f"cluster {l}" for l in range(3)]
        for cell, text in np.ndenumerate(display.text_):
            assert text.get_text() == f"{model.feature_weights_[cell]:.2f}"
            assert text.get_position() == cell[::-1]
        assert display.figure_ is display.ax_.figure

    def test_numbers_contrast_with_their_cells(self, model):
        display = WeightsDisplay.from_estimator(model)
        colors = {text.get_color() for text in display.text_.flat}
        assert colors == {"black", "white"}
        brightest = np.unravel_index(model.feature_weights_.argmax(), (3, 4))
        darkest = np.unravel_index(model.feature_weights_.argmin(), (3, 4))
        assert display.text_[brightest].get_color() == "black"
        assert display.text_[darkest].get_color() == "white"

    def test_cafe_and_names_of_the_users_own(self, cafe):
        display = WeightsDisplay.from_estimator(cafe, feature_names=list("abcd"))
        np.testing.assert_array_equal(display.im_.get_array(), cafe.feature_weights_)
        assert names_of(display.ax_.get_xticklabels()) == list("abcd")
        # The models of CAFE are fitted on scaled arrays, which have no names.
        display = WeightsDisplay.from_estimator(cafe.models_[0])
        assert names_of(display.ax_.get_xticklabels()) == ["x0", "x1", "x2", "x3"]
        with pytest.raises(ValueError, match="needs 4 feature_names, one per feature, got 2"):
            WeightsDisplay.from_estimator(cafe, feature_names=["a", "b"])

    def test_20_clusters_and_60_features_are_readable(self, large):
        display = WeightsDisplay(large).plot()
        assert display.text_ is None
        columns, rows = display.ax_.get_xticklabels(), display.ax_.get_yticklabels()
        assert names_of(columns) == list(large.columns)
        assert names_of(rows) == list(large.index)
        assert {label.get_rotation() for label in columns} == {90}
        assert overlapping(columns) == 0
        assert overlapping(rows) == 0
        width, height = display.figure_.get_size_inches()
        small = WeightsDisplay(large.iloc[:3, :4]).plot().figure_.get_size_inches()
        assert width > 2 * small[0]
        assert height > 1.5 * small[1]

    def test_labels_thin_out_where_there_is_no_room(self, large):
        figure, ax = plt.subplots(figsize=(4, 2.5))
        display = WeightsDisplay(large).plot(ax)
        columns, rows = ax.get_xticklabels(), ax.get_yticklabels()
        assert 5 < len(columns) < 60
        assert 4 < len(rows) < 20
        step = int(ax.get_xticks()[1])
        assert names_of(columns) == list(large.columns[::step])
        assert overlapping(columns) == 0
        assert overlapping(rows) == 0
        assert display.figure_ is figure

    def test_a_figure_does_not_grow_without_end(self):
        wide = np.random.default_rng(0).dirichlet(np.ones(2000), size=2)
        display = WeightsDisplay(wide).plot()
        assert display.figure_.get_size_inches()[0] < 30
        assert overlapping(display.ax_.get_xticklabels()) == 0

    def test_the_features_of_the_largest_spread(self, large):
        spread = (large.max() - large.min()).sort_values(ascending=False)
        display = WeightsDisplay(large).plot(max_features=7, sort_features=True)
        assert names_of(display.ax_.get_xticklabels()) == list(spread.index[:7])
        np.testing.assert_array_equal(display.im_.get_array(), large[spread.index[:7]])
        assert display.ax_.get_title() == "7 of 60 features, largest spread"
        display = WeightsDisplay(large).plot(max_features=7)
        chosen = [name for name in large.columns if name in spread.index[:7]]
        assert names_of(display.ax_.get_xticklabels()) == chosen
        display = WeightsDisplay(large).plot(max_features=100)
        assert display.im_.get_array().shape == (20, 60)
        assert display.ax_.get_title() == ""
        # One cluster has no spread; then the larger weights go first.
        display = WeightsDisplay([[0.2, 0.5, 0.3]]).plot(sort_features=True)
        assert names_of(display.ax_.get_xticklabels()) == ["x1", "x2", "x0"]

    @pytest.mark.parametrize("number", [0, -1, 2.5, True, "3"])
    def test_bad_max_features(self, large, number):
        with pytest.raises(ValueError, match="max_features to be an int above 0 or None"):
            WeightsDisplay(large).plot(max_features=number)

    def test_options(self, large, model):
        assert WeightsDisplay(large).plot(annotate=True).text_.shape == (20, 60)
        display = WeightsDisplay.from_estimator(
            model, annotate=False, colorbar=False, cmap="cividis", im_kw={"norm": "log"}
        )
        assert display.text_ is None
        assert display.colorbar_ is None
        assert len(display.figure_.axes) == 1
        assert display.im_.get_cmap().name == "cividis"
        assert display.im_.norm.vmin == pytest.approx(model.feature_weights_.min())
        display = WeightsDisplay.from_estimator(model, im_kw={"vmax": 0.9})
        assert display.im_.get_clim() == (0, 0.9)

    def test_the_colour_bar_marks_equal_weights(self, model):
        display = WeightsDisplay.from_estimator(model)
        assert display.colorbar_.ax.get_ylabel() == "weight (line: 1/4)"
        lines = [line.get_ydata()[0] for line in display.colorbar_.ax.lines]
        assert 0.25 in lines
        assert WeightsDisplay([[3.0, 5.0]]).plot().colorbar_.ax.get_ylabel() == "weight"

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            ([0.5, 0.5], "of shape"),
            (np.zeros((0, 3)), "at least one weight"),
            ([[0.5, np.nan]], "finite"),
            ([["a", "b"]], "that are numbers"),
        ],
    )
    def test_bad_weights(self, weights, message):
        with pytest.raises(ValueError, match=f"WeightsDisplay needs .*{message}"):
            WeightsDisplay(weights)


class TestAgreement:
    def test_matrix_sums_and_mark(self, cafe):
        display = AgreementDisplay.from_estimator(cafe)
        np.testing.assert_array_equal(display.im_.get_array(), cafe.agreement_)
        row = cafe.models_.index(cafe.model_)
        assert display.frame_.get_xy() == (-0.5, row - 0.5)
        assert (display.frame_.get_width(), display.frame_.get_height()) == (4, 1)
        assert display.ax_.get_title() == f"chosen: p = {cafe.p_:g}"
        names = ["p = 1.1", "p = 1.5", "p = 2", "p = 3"]
        assert names_of(display.ax_.get_xticklabels()) == names
        rows = names_of(display.ax_.get_yticklabels())
        for label, name, matrix_row in zip(rows, names, cafe.agreement_, strict=True):
            assert label == f"{name} (sum {matrix_row.sum() - 1:.2f})"
        assert display.text_[0, 1].get_text() == f"{cafe.agreement_[0, 1]:.2f}"

    def test_many_candidates_are_readable(self, many):
        display = AgreementDisplay.from_estimator(many)
        n = len(many.models_)
        assert n > 16
        assert display.text_ is None
        columns, rows = display.ax_.get_xticklabels(), display.ax_.get_yticklabels()
        assert names_of(columns) == names_of(rows) == candidate_names(many.candidates_)
        assert overlapping(columns) == 0
        assert overlapping(rows) == 0
        row = many.models_.index(many.model_)
        assert display.frame_.get_xy() == (-0.5, row - 0.5)
        assert display.ax_.get_title() == f"chosen: {names_of(rows)[row]}"

    def test_names_are_not_cut(self, iris):
        cafe = CAFE(3, p=(1.5, 2.0), dispersion_offset=("mean", 0.25), n_init=1, random_state=0)
        display = AgreementDisplay.from_estimator(cafe.fit(iris[0]))
        rows = names_of(display.ax_.get_yticklabels())
        assert rows[-4].startswith("standard, offset 0.25, p = 1.5 (sum ")
        assert overlapping(display.ax_.get_yticklabels()) == 0

    def test_worse_than_chance_has_a_colour(self):
        display = AgreementDisplay([[1.0, -0.2], [-0.2, 1.0]], ["a", "b"]).plot()
        assert display.im_.get_clim() == (-0.2, 1.0)
        assert display.frame_ is None
        assert AgreementDisplay([[1.0]], ["a"]).plot().im_.get_clim() == (0, 1)

    def test_bad_input(self, model):
        with pytest.raises(ValueError, match=r"matrix of shape \(3, 3\) for 3 names"):
            AgreementDisplay(np.eye(2), ["a", "b", "c"])
        with pytest.raises(ValueError, match="chosen to be one of 'a', 'b', got 'c'"):
            AgreementDisplay(np.eye(2), ["a", "b"], chosen="c")
        with pytest.raises(TypeError, match="needs a fitted CAFE or TabularCAFE, got a Mink"):
            AgreementDisplay.from_estimator(model)


@pytest.fixture(scope="module")
def noisy(iris):
    X, y = iris
    X, pairs = corrupt(RangeScaler().fit_transform(X), y, 0.25, 1.0, random_state=3)
    return CAFE(3, random_state=0, **PAPER | {"n_init": 5}).fit(X), pairs, y


class TestNoisePairs:
    def test_rows_are_matched_and_pairs_marked(self, noisy):
        cafe, pairs, y = noisy
        display = NoisePairsDisplay.from_estimator(cafe, pairs, y, class_names=["a", "b", "c"])
        clusters = [np.bincount(cafe.labels_[y == c]).argmax() for c in range(3)]
        assert sorted(clusters) == [0, 1, 2]
        weights = cafe.feature_weights_[clusters]
        np.testing.assert_array_equal(display.im_.get_array(), weights)
        expected = [f"{n} (cluster {l})" for n, l in zip("abc", clusters, strict=True)]
        assert names_of(display.ax_.get_yticklabels()) == expected
        marked = {(int(row), int(column)) for column, row in display.marks_.get_offsets()}
        assert marked == set(map(tuple, np.argwhere(pairs).tolist()))
        clean, noise = (np.sort(points.get_offsets()[:, 1]) for points in display.points_)
        np.testing.assert_allclose(clean, np.sort(weights[~pairs]))
        np.testing.assert_allclose(noise, np.sort(weights[pairs]))
        assert display.ranked_right == roc_auc_score(~pairs.ravel(), weights.ravel())
        assert display.axes_[1].get_title() == f"ranked right: {display.ranked_right:.1%}"

    def test_the_share_ranked_right(self):
        weights = np.array([[0.1, 0.9], [0.5, 0.5]])
        pairs = np.array([[True, False], [True, False]])
        by_hand = np.mean(
            [
                (weights[a] < weights[b]) + 0.5 * (weights[a] == weights[b])
                for a in [(0, 0), (1, 0)]
                for b in [(0, 1), (1, 1)]
            ]
        )
        assert NoisePairsDisplay(weights, pairs).ranked_right == pytest.approx(by_hand)

    @pytest.mark.parametrize("value", [True, False])
    def test_all_or_no_pairs(self, value):
        display = NoisePairsDisplay([[0.4, 0.6]], np.full((1, 2), value)).plot()
        assert np.isnan(display.ranked_right)
        assert display.axes_[1].get_title() == ""
        sizes = [len(points.get_offsets()) for points in display.points_]
        assert sizes == ([0, 2] if value else [2, 0])

    @pytest.mark.parametrize("n_clusters", [2, 5])
    def test_other_numbers_of_clusters_than_classes(self, n_clusters, iris):
        X, y = iris
        pairs = np.eye(3, 4, dtype=bool)
        model = MinkowskiWeightedKMeans(n_clusters, n_init=2, random_state=0).fit(X)
        display = NoisePairsDisplay.from_estimator(model, pairs, y)
        n_matched = min(n_clusters, 3)
        assert display.weights.shape == (n_matched, 4)
        rows = [label.split() for label in names_of(display.ax_.get_yticklabels())]
        for (name, _, cluster), weights, noise in zip(
            rows, display.weights.to_numpy(), display.noise_pairs, strict=True
        ):
            np.testing.assert_array_equal(weights, model.feature_weights_[int(cluster[:-1])])
            np.testing.assert_array_equal(noise, pairs[int(name)])

    def test_20_by_60(self, large):
        pairs = np.random.default_rng(1).random((20, 60)) < 0.2
        display = NoisePairsDisplay(large, pairs).plot()
        marked = display.marks_.get_offsets().astype(int)
        np.testing.assert_array_equal(marked[:, ::-1], np.argwhere(pairs))
        assert overlapping(display.ax_.get_xticklabels()) == 0
        # A cross stays within its cell.
        cell = display.ax_.get_window_extent().width / 60 / display.figure_.dpi * 72
        assert np.sqrt(display.marks_.get_sizes()[0]) < cell

    def test_bad_input(self, noisy):
        cafe, pairs, y = noisy
        with pytest.raises(ValueError, match=r"= \(3, 4\), got \(2, 4\)"):
            NoisePairsDisplay.from_estimator(cafe, pairs[:2], y)
        with pytest.raises(TypeError, match="noise_pairs to be boolean, got float64"):
            NoisePairsDisplay.from_estimator(cafe, pairs * 0.5, y)
        with pytest.raises(ValueError, match="each of 150 rows"):
            NoisePairsDisplay.from_estimator(cafe, pairs, y[:10])
        with pytest.raises(ValueError, match="needs 3 class_names, one per class, got 1"):
            NoisePairsDisplay.from_estimator(cafe, pairs, y, class_names=["a"])
        with pytest.raises(ValueError, match="of the shape of the weights"):
            NoisePairsDisplay([[0.5, 0.5]], [[True]])
