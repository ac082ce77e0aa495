"""Write the results of the paper's experiment to docs/results, from a directory of runs.

    cafe reproduce --out DIR
    python scripts/publish_results.py DIR

The script writes all runs to one compressed CSV file. It also writes the tables, the comparison
as text and the figures, and repeats the study behind the paper's Figures 1 and 2. The same runs
always give the same files.
"""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from publishing import BASELINE, BEYOND, CAFE, directories, save, write_runs

from cafelearn.experiments import METHODS, read_results
from cafelearn.experiments.compare import compare, summary
from cafelearn.experiments.tables import label, render
from cafelearn.experiments.theory_figures import draw_figures
from cafelearn.experiments.theory_study import summary as theory_summary
from cafelearn.experiments.theory_study import theory_study
from cafelearn.plotting import CriticalDifferenceDisplay

COLUMNS = [
    *("dataset", "noise_level", "noise_scale", "version", "method", "status", "ari", "nmi"),
    *("seconds", "sweep_seconds", "p", "k_found", "warnings", "libraries"),
]


def main():
    """Parse the arguments and write all files."""
    directory, out = directories(__doc__.splitlines()[0])
    results = read_results(directory)
    place = results.method.map({method: place for place, method in enumerate(METHODS)})
    order = ["dataset", "noise_level", "noise_scale", "version", "place"]
    write_runs(results.assign(place=place), order, COLUMNS, out / "grid.csv.gz")
    results = read_results(out / "grid.csv.gz")
    comparison = compare(results)
    (out / "comparison.txt").write_text(summary(comparison) + "\n", encoding="utf-8")
    for format, suffix in {"text": "txt", "md": "md", "csv": "csv"}.items():
        text = render(results, format)
        (out / f"tables.{suffix}").write_text(text, encoding="utf-8")
    mpl.rcParams["svg.hashsalt"] = "cafelearn"
    draw_ranks(comparison, out)
    draw_cells(comparison, out)
    draw_agreement(comparison, out)
    draw_improvement(comparison, out)
    draw_time(results, out)
    study = theory_study()
    (out / "theory.txt").write_text(theory_summary(study) + "\n", encoding="utf-8")
    draw_figures(study, out, formats=("png",))


def draw_ranks(comparison, out):
    """Draw critical difference diagrams of our runs and of the published tables."""
    figure, axes = plt.subplots(2, 1, figsize=(9, 6.4), layout="constrained")
    for ax, ranking, title in (
        (axes[0], comparison.ranking, "our runs, all methods"),
        (axes[1], comparison.published_ranking, "the published tables"),
    ):
        display = CriticalDifferenceDisplay(ranking.ranks.rename(label), ranking.difference)
        display.plot(ax=ax)
        ax.set_title(f"Average rank over the configurations: {title}", loc="left", fontsize=11)
    save(figure, out / "ranks.png")


def draw_cells(comparison, out):
    """Draw our mean of each cell against the published mean."""
    cells = comparison.cells
    methods = [method for method in METHODS if (cells.method == method).any()]
    figure, axes = plt.subplots(
        2, 4, figsize=(11, 5.8), sharex=True, sharey=True, layout="constrained"
    )
    for ax, method in zip(axes.flat, methods, strict=False):
        own = cells[cells.method == method]
        near = own.z.abs() <= 2
        colour = CAFE if method.startswith("cafe") else BASELINE
        ax.axline((0, 0), slope=1, color="0.6", linewidth=0.8, zorder=0)
        for rows, marker, face in ((own[near], "o", colour), (own[~near], "D", "white")):
            ax.errorbar(
                rows.published,
                rows.ours,
                xerr=rows.published_std / np.sqrt(20),
                yerr=rows.ours_std / np.sqrt(rows.n),
                fmt=marker,
                color=colour,
                markerfacecolor=face,
                markersize=4,
                elinewidth=0.6,
            )
        ax.set_title(f"{label(method)}: {near.sum()} of {len(own)}", fontsize=10)
    figure.supxlabel("published mean ARI")
    figure.supylabel("our mean ARI")
    figure.suptitle(
        "Cells with standard errors; hollow: |z| > 2; titles: number of cells with |z| <= 2",
        fontsize=11,
    )
    save(figure, out / "cells.png")


def draw_agreement(comparison, out):
    """Draw the root mean square of z for each data set and method."""
    cells = comparison.cells.assign(square=comparison.cells.z**2)
    table = np.sqrt(cells.pivot_table(index="dataset", columns="method", values="square"))
    table = table[[method for method in METHODS if method in table.columns]]
    figure, ax = plt.subplots(figsize=(8, 4.6), layout="constrained")
    image = ax.imshow(table, cmap="cividis", vmin=0, vmax=3, aspect="auto")
    ax.set_xticks(range(table.shape[1]), [label(name) for name in table.columns])
    ax.set_yticks(range(table.shape[0]), [label(name) for name in table.index])
    for (i, j), value in np.ndenumerate(table.to_numpy()):
        ax.text(
            j, i, f"{value:.1f}", ha="center", va="center", color="w" if value < 1.6 else "k"
        )
    figure.colorbar(image, label="root mean square of z (1 is expected by chance)")
    ax.set_title("Distance from the published tables, over six settings", loc="left")
    save(figure, out / "agreement.png")


def draw_improvement(comparison, out):
    """Draw the mean gain of CAFE over its baseline by level, scale and data set."""
    table = comparison.improvement
    kinds = [
        kind for kind in ("noise_level", "noise_scale", "dataset") if (table.by == kind).any()
    ]
    figure, axes = plt.subplots(
        1, 3, figsize=(11, 4), width_ratios=[2, 3, 9], sharey=True, layout="constrained"
    )
    colours = {"pca": BASELINE, "nmf": CAFE, "ica": BEYOND}
    for ax, kind in zip(axes, kinds, strict=True):
        rows = table[table.by == kind]
        groups = list(dict.fromkeys(rows.group))
        for shift, (extractor, colour) in enumerate(colours.items()):
            own = rows[rows.extractor == extractor].set_index("group").loc[groups]
            ax.errorbar(
                np.arange(len(groups)) + 0.2 * (shift - 1),
                own["difference"],
                yerr=own["standard_error"],
                fmt="osD"[shift],
                color=colour,
                label=f"{label('cafe+' + extractor)} - {label(extractor)}",
                markersize=5,
            )
        ax.axhline(0, color="0.6", linewidth=0.8)
        ax.set_xticks(range(len(groups)), [label(group) for group in groups], rotation=30)
        ax.set_title(kind.replace("_", " "), fontsize=10)
    axes[0].set_ylabel("mean gain in ARI")
    axes[-1].legend(fontsize=8, frameon=False)
    save(figure, out / "improvement.png")


def draw_time(results, out):
    """Draw the total time of the runs of each method.

    The fits of mwk-means, which all CAFE methods of a data set share, are counted once, as
    "sweep".
    """
    own = results.seconds - results.sweep_seconds.where(results.method != "mwk-means", 0)
    total = own.groupby(results.method).sum().reindex(METHODS).dropna() / 60
    figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
    names = [
        "sweep (shared by CAFE)" if name == "mwk-means" else label(name) for name in total.index
    ]
    ax.barh(names, total, color=BASELINE)
    for place, minutes in enumerate(total):
        ax.text(minutes, place, f" {minutes:.1f}", va="center", fontsize=9)
    ax.invert_yaxis()
    ax.set_xlabel(f"minutes of one core; {total.sum():.0f} in all, for {len(results):,} runs")
    save(figure, out / "time.png")


if __name__ == "__main__":
    main()
