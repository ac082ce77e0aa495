"""Figures of the comparison study."""

import numpy as np
from matplotlib.figure import Figure

from cafelearn import datasets
from reproduction.diagram import CriticalDifferenceDisplay
from reproduction.paper.figures import BASELINE, BEYOND, CAFE
from reproduction.study.answers import by_regime
from reproduction.study.plan import STUDY_METHODS
from reproduction.study.regimes import BUNDLED, PUBLIC
from reproduction.study.text import SCORE_LABELS, TASK_LABELS, study_label
from reproduction.study.verdicts import rank_answers

# Colour and marker of each method. The colours are from the palette of Okabe and Ito.
STYLES = {
    "kmeans-range": (BASELINE, "o"),
    "kmeans-standard": (BASELINE, "s"),
    "ward": (BASELINE, "^"),
    "hdbscan": ("#CC79A7", "^"),
    "gmm-diag": (BEYOND, "o"),
    "gmm-full": (BEYOND, "s"),
    "gmm-bic": (BEYOND, "D"),
    "mclust": ("#56B4E9", "D"),
    "stepmix": ("#56B4E9", "o"),
    "raw-range": (BASELINE, "o"),
    "raw-standard": (BASELINE, "s"),
    "pca": (BEYOND, "o"),
    "paper": ("#E69F00", "v"),
    "cafe": (CAFE, "D"),
    "trivial": ("0.6", "_"),
}


def draw_ranks(results):
    """Draw critical difference diagrams for the labels and for the features."""
    figure = Figure(figsize=(9, 5.6), layout="constrained")
    axes = figure.subplots(2, 1)
    for ax, task in zip(axes, STUDY_METHODS, strict=True):
        ranking = rank_answers(results, task)
        ranks = ranking.ranks.rename(study_label)
        display = CriticalDifferenceDisplay(ranks, ranking.difference)
        display.plot(ax=ax, highlight=ranks.index.intersection([study_label("cafe")]))
        ax.set_title(
            f"Average rank over {ranking.n_blocks} configurations: {TASK_LABELS[task]}",
            loc="left",
            fontsize=11,
        )
    return figure


def draw_regimes(results):
    """Draw the mean score of each method in each regime."""
    nine, others = datasets.names(), (*BUNDLED, *PUBLIC)
    parts = [
        ("labels", nine, "the paper's nine sets"),
        ("labels", others, "other real sets"),
        ("features", (*nine, *others), "all real sets"),
    ]
    means = [by_regime(results, task, sets=sets) for task, sets, _ in parts]
    shown = [place for place, table in enumerate(means) if table.size]
    figure = Figure(figsize=(10, 4.2 * len(shown)), layout="constrained")
    axes = figure.subplots(len(shown), 1, squeeze=False)
    for ax, place in zip(axes[:, 0], shown, strict=True):
        task, _, words = parts[place]
        _draw_means(ax, means[place])
        ax.set_ylabel(f"mean {SCORE_LABELS[task]}")
        ax.set_title(f"{TASK_LABELS[task].capitalize()}, {words}", loc="left")
    return figure


def _draw_means(ax, means):
    """Draw a row of points, one per method, for each regime."""
    places = np.arange(len(means))
    for place in places:
        ax.axvline(place, color="0.9", linewidth=0.8, zorder=0)
    for number, method in enumerate(means.columns):
        colour, marker = STYLES[method]
        shift = 0.07 * (number - (means.shape[1] - 1) / 2)
        ax.plot(
            places + shift,
            means[method],
            marker,
            color=colour,
            markersize=12 if marker == "_" else 8 if method == "cafe" else 6,
            markerfacecolor="white" if marker == "s" else colour,
            label=study_label(method),
        )
    ax.set_xticks(places, means.index, rotation=30, ha="right")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
