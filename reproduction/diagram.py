"""CriticalDifferenceDisplay: average ranks of methods, and which differ significantly."""

import math

import numpy as np
import pandas as pd

from cafelearn.plotting._axes import panels, plain_text
from reproduction.ranking import cliques

FONT_SIZE = 9
# Vertical positions and lengths in lines of text, downwards from the axis of ranks.
RULER_HEIGHT = -1.7
FIRST_BAR, BETWEEN_BARS = 0.7, 0.45
TICK = 0.25


class CriticalDifferenceDisplay:
    """Critical difference diagram after Demšar (2006).

    Methods are placed on an axis of average ranks, the best on the left. A bar joins methods
    whose ranks differ by less than the critical difference, that is, not significantly.

    After `plot`, `groups_` has the groups of methods joined by bars, `bars_` their lines and
    `texts_` the labels of the methods.
    """

    def __init__(self, ranks, critical_difference):
        self.ranks = pd.Series(ranks, dtype=np.float64).sort_values(kind="stable")
        if not len(self.ranks) or not np.isfinite(self.ranks).all():
            raise ValueError(
                "CriticalDifferenceDisplay needs the rank of at least one method, and finite "
                f"ranks, got {self.ranks.to_dict()}."
            )
        if not self.ranks.index.is_unique:
            raise ValueError(
                "CriticalDifferenceDisplay needs methods with distinct names, got "
                f"{list(self.ranks.index)}."
            )
        self.critical_difference = float(critical_difference)
        if not 0 < self.critical_difference < math.inf:
            raise ValueError(
                "CriticalDifferenceDisplay needs a critical_difference above 0, got "
                f"{critical_difference!r}."
            )

    def plot(self, ax=None, *, highlight=()):
        """Draw the diagram, with the labels of the methods in `highlight` in bold."""
        unknown = [name for name in highlight if name not in self.ranks.index]
        if unknown or isinstance(highlight, str):
            raise ValueError(
                f"CriticalDifferenceDisplay needs highlight to be a list of some of "
                f"{list(self.ranks.index)}, got {highlight!r}."
            )
        self.groups_ = cliques(self.ranks, self.critical_difference)
        low, high = self._ends()
        reach = max(high - low, self.critical_difference)
        # The overhang makes a bar between equal ranks visible.
        spans = self._spans(overhang=0.01 * reach)
        levels = _bar_levels(spans, gap=0.02 * reach)
        first_label = FIRST_BAR + BETWEEN_BARS * (max(levels, default=0) + 1) + 0.6
        depth = first_label + math.ceil(len(self.ranks) / 2)
        longest = max(len(plain_text(name)) for name in self.ranks.index)
        size = (
            3.5 + 0.15 * len(self.ranks) + 0.17 * longest,
            0.5 + 0.22 * (depth - RULER_HEIGHT),
        )
        (self.ax_,) = panels("CriticalDifferenceDisplay.plot", ax, figsize=size)
        self.figure_ = self.ax_.figure
        self._draw_axis(low, high)
        self.ax_.set_xlim(low, low + reach)
        self.ax_.set_ylim(depth, RULER_HEIGHT - 0.8)
        self.ax_.set_axis_off()
        self._draw_ruler(low)
        self._draw_bars(spans, levels)
        self._draw_labels(low, high, first_label, set(highlight))
        return self

    def _ends(self):
        """Return the integers at which the axis of ranks begins and ends."""
        low = math.floor(min(1.0, self.ranks.iloc[0]))
        return low, max(math.ceil(self.ranks.iloc[-1]), len(self.ranks), low + 1)

    def _spans(self, overhang):
        """Return the start and end of the bar of each group."""
        return [
            (self.ranks.loc[group[0]] - overhang, self.ranks.loc[group[-1]] + overhang)
            for group in self.groups_
        ]

    def _draw_axis(self, low, high):
        self._line((low, high), (0, 0), linewidth=1.2)
        # Label at most 16 ticks, so that the labels fit side by side.
        step = max(1, math.ceil((high - low) / 15))
        for rank in range(low, high + 1):
            named = (rank - low) % step == 0
            self._line((rank, rank), (0, -TICK if named else -TICK / 2), linewidth=1.2)
            if named:
                self.ax_.text(
                    rank, -TICK - 0.1, str(rank), ha="center", va="bottom", fontsize=FONT_SIZE
                )

    def _draw_ruler(self, low):
        """Draw the critical difference as a ruler above the axis."""
        end = low + self.critical_difference
        self._line((low, end), (RULER_HEIGHT, RULER_HEIGHT), linewidth=1.2)
        for x in (low, end):
            self._line((x, x), (RULER_HEIGHT - 0.2, RULER_HEIGHT + 0.2), linewidth=1.2)
        self.ax_.text(
            (low + end) / 2,
            RULER_HEIGHT - 0.15,
            f"CD = {self.critical_difference:.2f}",
            ha="center",
            va="bottom",
            fontsize=FONT_SIZE,
        )

    def _draw_bars(self, spans, levels):
        self.bars_ = []
        for span, level in zip(spans, levels, strict=True):
            y = FIRST_BAR + BETWEEN_BARS * level
            self.bars_.append(self._line(span, (y, y), linewidth=4, solid_capstyle="butt"))

    def _draw_labels(self, low, high, first_label, highlight):
        """Draw the labels of the better half on the left, and the others on the right.

        The labels of the outermost ranks are at the top, so that the lines do not cross.
        """
        gap = 0.02 * (high - low)
        n_left = math.ceil(len(self.ranks) / 2)
        self.texts_ = {}
        for position, (name, rank) in enumerate(self.ranks.items()):
            left = position < n_left
            row = position if left else len(self.ranks) - 1 - position
            y = first_label + row
            edge = low - gap if left else high + gap
            self._line((rank, rank, edge), (0, y, y), linewidth=0.8, solid_joinstyle="miter")
            label = (plain_text(name), f"{rank:.2f}")
            self.texts_[name] = self.ax_.text(
                edge + (-gap if left else gap),
                y,
                "  ".join(label if left else label[::-1]),
                ha="right" if left else "left",
                va="center",
                fontsize=FONT_SIZE,
                fontweight="bold" if name in highlight else "normal",
            )

    def _line(self, x, y, **options):
        (line,) = self.ax_.plot(x, y, color="black", clip_on=False, **options)
        return line


def _bar_levels(spans, gap):
    """Assign each bar the first level on which it does not overlap an earlier bar.

    Bars on the same level are more than `gap` apart, so that they do not look like one bar.
    """
    ends, levels = [], []
    for first, last in spans:
        level = next((i for i, end in enumerate(ends) if end + gap < first), len(ends))
        if level == len(ends):
            ends.append(last)
        ends[level] = last
        levels.append(level)
    return levels
