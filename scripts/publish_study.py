"""Write the results of the comparison study to docs/results, from a directory of runs.

    cafe study --out DIR
    python scripts/publish_study.py DIR

The script writes all runs to one compressed CSV file. It also writes the tables and the figures
of docs/answers.md. The same runs always give the same files. The study itself does not cluster
the paper's noisy data sets with the paper's settings. The script takes these runs from the
paper's experiment: they are those of the method "mwk-means" in ``grid.csv.gz``.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from publishing import BASELINE, BEYOND, CAFE, RESULTS, directories, save, write_runs

from cafelearn import datasets
from cafelearn.experiments import STUDY_METHODS, read_results, read_study
from cafelearn.experiments.answers import by_regime
from cafelearn.experiments.answers_text import SCORE_LABELS, TASK_LABELS, render, study_label
from cafelearn.experiments.study_run import STUDY
from cafelearn.experiments.verdicts import rank_answers
from cafelearn.plotting import CriticalDifferenceDisplay

COLUMNS = [name for name in STUDY.record._fields if name != "traceback"]
# Colour and marker of each method. The colours are from the palette of Okabe and Ito.
STYLES = {
    "kmeans-range": (BASELINE, "o"),
    "kmeans-standard": (BASELINE, "s"),
    "gmm-diag": (BEYOND, "o"),
    "gmm-full": (BEYOND, "s"),
    "hdbscan": ("#CC79A7", "^"),
    "raw-range": (BASELINE, "o"),
    "raw-standard": (BASELINE, "s"),
    "pca": (BEYOND, "o"),
    "paper": ("#E69F00", "v"),
    "cafe": (CAFE, "D"),
    "hindsight": ("0.6", "_"),
}


def main():
    """Parse the arguments and write all files."""
    directory, out = directories(__doc__.splitlines()[0])
    results = read_study(directory)
    results = pd.concat([results, grid_runs(results)], ignore_index=True)
    methods = dict.fromkeys(sum(STUDY_METHODS.values(), ()))
    place = results.method.map({method: place for place, method in enumerate(methods)})
    order = ["task", "dataset", "regime", "version", "place"]
    write_runs(results.assign(place=place), order, COLUMNS, out / "study.csv.gz")
    results = read_study(out / "study.csv.gz")
    (out / "study.md").write_text(render(results), encoding="utf-8")
    draw_ranks(results, out)
    draw_regimes(results, out)


def grid_runs(results):
    """Return the mwk-means runs of the paper's experiment as records of the method "paper"."""
    grid = read_results(RESULTS / "grid.csv.gz").query("method == 'mwk-means'")
    scale, level = grid.noise_scale, grid.noise_level
    regime = [f"pairs {a:g}/{b:g}" for a, b in zip(level, scale, strict=True)]
    runs = grid.assign(regime=regime, task="labels", method="paper")
    runs = runs[["dataset", "regime", "version", "task", "method", "status", "ari", "seconds"]]
    key = ["dataset", "regime", "version"]
    sizes = results.query("task == 'labels' and method == 'cafe'")[
        [*key, "n_rows", "n_features", "n_classes", "libraries"]
    ]
    return runs.merge(sizes, on=key)


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
    """Draw the mean score of each method in each regime, over the paper's nine data sets."""
    figure, axes = plt.subplots(2, 1, figsize=(10, 8), sharex=True, layout="constrained")
    for ax, task in zip(axes, STUDY_METHODS, strict=True):
        means = by_regime(results, task, sets=datasets.names())
        places = np.arange(len(means))
        for place in places:
            ax.axvline(place, color="0.9", linewidth=0.8, zorder=0)
        for number, method in enumerate(means.columns):
            colour, marker = STYLES[method]
            shift = 0.08 * (number - (means.shape[1] - 1) / 2)
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
        ax.tick_params(labelbottom=True)
        ax.set_ylabel(f"mean {SCORE_LABELS[task]}")
        ax.set_title(f"{TASK_LABELS[task].capitalize()}, the paper's nine sets", loc="left")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    save(figure, out / "answers-regimes.png")


if __name__ == "__main__":
    main()
