"""Write the results of the comparison study to docs/results, from a directory of runs.

    cafe study --out DIR
    python scripts/publish_study.py DIR

The script writes all runs to one compressed CSV file. It also writes the tables and the figures
of docs/answers.md. The same runs always give the same files.
"""

import matplotlib.pyplot as plt
import numpy as np
from publishing import BASELINE, BEYOND, CAFE, directories, save, write_runs

from cafelearn import datasets
from cafelearn.experiments import STUDY_METHODS, read_study
from cafelearn.experiments.answers import by_regime
from cafelearn.experiments.answers_text import SCORE_LABELS, TASK_LABELS, render, study_label
from cafelearn.experiments.regimes import BUNDLED, PUBLIC
from cafelearn.experiments.study_run import STUDY
from cafelearn.experiments.verdicts import rank_answers
from cafelearn.plotting import CriticalDifferenceDisplay

COLUMNS = [name for name in STUDY.record._fields if name != "traceback"]
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


def main():
    """Parse the arguments and write all files."""
    directory, out = directories(__doc__.splitlines()[0])
    results = read_study(directory)
    methods = dict.fromkeys(sum(STUDY_METHODS.values(), ()))
    place = results.method.map({method: place for place, method in enumerate(methods)})
    order = ["task", "dataset", "regime", "version", "place"]
    write_runs(results.assign(place=place), order, COLUMNS, out / "study.csv.gz")
    results = read_study(out / "study.csv.gz")
    (out / "study.md").write_text(render(results), encoding="utf-8")
    draw_ranks(results, out)
    draw_regimes(results, out)


def draw_ranks(results, out):
    """Draw critical difference diagrams for the labels and for the features."""
    figure, axes = plt.subplots(2, 1, figsize=(9, 5.6), layout="constrained")
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
    save(figure, out / "answers-ranks.png")


def draw_regimes(results, out):
    """Draw the mean score of each method in each regime."""
    nine, others = datasets.names(), (*BUNDLED, *PUBLIC)
    parts = [
        ("labels", nine, "the paper's nine sets"),
        ("labels", others, "other real sets"),
        ("features", (*nine, *others), "all real sets"),
    ]
    means = [by_regime(results, task, sets=sets) for task, sets, _ in parts]
    shown = [place for place, table in enumerate(means) if table.size]
    figure, axes = plt.subplots(
        len(shown), 1, figsize=(10, 4.2 * len(shown)), squeeze=False, layout="constrained"
    )
    for ax, place in zip(axes[:, 0], shown, strict=True):
        task, _, words = parts[place]
        draw_means(ax, means[place])
        ax.set_ylabel(f"mean {SCORE_LABELS[task]}")
        ax.set_title(f"{TASK_LABELS[task].capitalize()}, {words}", loc="left")
    save(figure, out / "answers-regimes.png")


def draw_means(ax, means):
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


if __name__ == "__main__":
    main()
