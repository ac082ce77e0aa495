"""The critical difference diagram."""

# Fixtures are imported by name.
# ruff: noqa: F401
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from drawing import close_figures, names_of, overlapping
from reproduction.diagram import CriticalDifferenceDisplay
from reproduction.ranking import rank_methods


class TestCriticalDifference:
    ranks = pd.Series({"d": 4.1, "a": 1.2, "b": 2.0, "c": 2.7})

    def test_bars_and_labels(self):
        display = CriticalDifferenceDisplay(self.ranks, 1.0).plot(highlight=["a"])
        assert display.groups_ == [("a", "b"), ("b", "c")]
        for bar, (first, last) in zip(display.bars_, [(1.2, 2.0), (2.0, 2.7)], strict=True):
            left, right = bar.get_xdata()
            assert 0 < first - left < 0.05
            assert 0 < right - last < 0.05
        # The bars overlap at b, so they are at different heights.
        assert display.bars_[0].get_ydata()[0] != display.bars_[1].get_ydata()[0]
        low, high = 1, 4.1
        for name, rank in self.ranks.items():
            text = display.texts_[name]
            assert f"{rank:.2f}" in text.get_text()
            assert name in text.get_text()
            left = name in "ab"
            assert text.get_ha() == ("right" if left else "left")
            assert text.get_position()[0] < low if left else text.get_position()[0] > high
            assert text.get_fontweight() == ("bold" if name == "a" else "normal")
        # A line leads from each rank to its label.
        ends = {
            (line.get_xdata()[0], line.get_ydata()[-1])
            for line in display.ax_.lines
            if len(line.get_xdata()) == 3
        }
        assert ends == {(r, display.texts_[n].get_position()[1]) for n, r in self.ranks.items()}

    def test_the_ruler_is_as_long_as_the_difference(self):
        display = CriticalDifferenceDisplay(self.ranks, 7.5).plot()
        (ruler,) = (
            line
            for line in display.ax_.lines
            if line.get_ydata()[0] == line.get_ydata()[1] and line.get_ydata()[0] < 0
        )
        assert np.ptp(ruler.get_xdata()) == 7.5
        assert "CD = 7.50" in names_of(display.ax_.texts)
        # It is longer than the axis of ranks, and still within the picture.
        assert display.ax_.get_xlim()[1] >= ruler.get_xdata()[1]

    def test_bars_of_one_height_do_not_touch(self):
        ranks = {f"m{i}": 1 + 0.7 * i for i in range(25)}
        display = CriticalDifferenceDisplay(ranks, 2.0).plot()
        assert len(display.bars_) > 10
        by_height = {}
        for bar in display.bars_:
            by_height.setdefault(bar.get_ydata()[0], []).append(bar.get_xdata())
        assert 1 < len(by_height) < len(display.bars_)
        for bars in by_height.values():
            for (_, end), (start, _) in pairwise(bars):
                assert start - end > 0.3
        assert overlapping([display.texts_[name] for name in list(ranks)[:13]]) == 0

    def test_of_a_ranking(self):
        rng = np.random.default_rng(0)
        scores = pd.DataFrame(rng.normal([0, 0.1, 2, 2.1], size=(40, 4)), columns=list("abcd"))
        ranking = rank_methods(scores)
        display = CriticalDifferenceDisplay(ranking.ranks, ranking.difference).plot()
        ranks = scores.rank(axis=1, ascending=False).mean()
        pd.testing.assert_series_equal(
            display.ranks.sort_index(), ranks.sort_index(), check_names=False
        )
        # Demšar's table: q = 2.569 for 4 methods at 0.05.
        expected = 2.569 * np.sqrt(4 * 5 / (6 * 40))
        assert display.critical_difference == pytest.approx(expected, rel=1e-3)
        assert sorted(map(sorted, display.groups_)) == [["a", "b"], ["c", "d"]]
        assert rank_methods(scores, alpha=0.01).difference > display.critical_difference

    def test_equal_ranks_and_one_method(self):
        display = CriticalDifferenceDisplay({"a": 1.5, "b": 1.5}, 1.0).plot()
        assert np.ptp(display.bars_[0].get_xdata()) > 0
        assert CriticalDifferenceDisplay({"a": 1.0}, 1.0).plot().bars_ == []

    def test_bad_input(self):
        with pytest.raises(ValueError, match="critical_difference above 0, got -1"):
            CriticalDifferenceDisplay(self.ranks, -1)
        with pytest.raises(ValueError, match="finite ranks"):
            CriticalDifferenceDisplay({"a": np.nan}, 1)
        with pytest.raises(ValueError, match="distinct names"):
            CriticalDifferenceDisplay(pd.Series([1.0, 2.0], index=["a", "a"]), 1)
        with pytest.raises(ValueError, match="highlight to be a list of some of"):
            CriticalDifferenceDisplay(self.ranks, 1).plot(highlight=["z"])
        with pytest.raises(ValueError, match="highlight to be a list of some of"):
            CriticalDifferenceDisplay(self.ranks, 1).plot(highlight="ab")

    def test_axes_that_are_given_are_used(self):
        figure = plt.figure()
        ax = figure.subplots()
        display = CriticalDifferenceDisplay(self.ranks, 1.0).plot(ax)
        assert (display.ax_, display.figure_) == (ax, figure)

    def test_names_are_drawn_as_given(self):
        display = CriticalDifferenceDisplay({"$x^2$": 1.0, "a_b": 2.0}, 0.5).plot()
        display.figure_.canvas.draw()
        assert r"\$x^2\$" in display.texts_["$x^2$"].get_text()
