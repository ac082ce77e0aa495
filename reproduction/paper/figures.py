"""Figures of the results of the paper's experiment."""

import numpy as np
from matplotlib.figure import Figure

from reproduction.diagram import CriticalDifferenceDisplay
from reproduction.paper.plan import METHODS
from reproduction.paper.tables import label

# Colours from the palette of Okabe and Ito.
BASELINE, CAFE, BEYOND = "#0072B2", "#D55E00", "#009E73"


def draw_figures(results, comparison):
    """Return the figures by name, without those for which runs are missing."""
    drawn = {}
    if comparison.ranking is not None and len(comparison.ranking.ranks) > 1:
        drawn["ranks"] = _draw_ranks(comparison)
    if comparison.cells["z"].notna().any():
        drawn["cells"] = _draw_cells(comparison)
        drawn["agreement"] = _draw_agreement(comparison)
    if len(comparison.improvement):
        drawn["improvement"] = _draw_improvement(comparison)
    if {"seconds", "sweep_seconds"} <= set(results.columns):
        drawn["time"] = _draw_time(results)
    return drawn


def _draw_ranks(comparison):
    """Draw critical difference diagrams of our runs and of the published tables."""
    figure = Figure(figsize=(9, 6.4), layout="constrained")
    axes = figure.subplots(2, 1)
    for ax, ranking, title in (
        (axes[0], comparison.ranking, "our runs, all methods"),
        (axes[1], comparison.published_ranking, "the published tables"),
    ):
        display = CriticalDifferenceDisplay(ranking.ranks.rename(label), ranking.difference)
        display.plot(ax=ax)
        ax.set_title(f"Average rank over the configurations: {title}", loc="left", fontsize=11)
    return figure


def _draw_cells(comparison):
    """Draw our mean of each cell against the published mean."""
    cells = comparison.cells
    methods = [method for method in METHODS if (cells.method == method).any()]
    figure = Figure(figsize=(11, 5.8), layout="constrained")
    axes = figure.subplots(2, 4, sharex=True, sharey=True)
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
    return figure


def _draw_agreement(comparison):
    """Draw the root mean square of z for each data set and method."""
    cells = comparison.cells.assign(square=comparison.cells.z**2)
    table = np.sqrt(cells.pivot_table(index="dataset", columns="method", values="square"))
    table = table[[method for method in METHODS if method in table.columns]]
    figure = Figure(figsize=(8, 4.6), layout="constrained")
    ax = figure.subplots()
    image = ax.imshow(table, cmap="cividis", vmin=0, vmax=3, aspect="auto")
    ax.set_xticks(range(table.shape[1]), [label(name) for name in table.columns])
    ax.set_yticks(range(table.shape[0]), [label(name) for name in table.index])
    for (i, j), value in np.ndenumerate(table.to_numpy()):
        ax.text(
            j, i, f"{value:.1f}", ha="center", va="center", color="w" if value < 1.6 else "k"
        )
    figure.colorbar(image, label="root mean square of z (1 is expected by chance)")
    ax.set_title("Distance from the published tables, over six settings", loc="left")
    return figure


def _draw_improvement(comparison):
    """Draw the mean gain of CAFE over its baseline by level, scale and data set."""
    table = comparison.improvement
    figure = Figure(figsize=(11, 4), layout="constrained")
    axes = figure.subplots(1, 3, width_ratios=[2, 3, 9], sharey=True)
    colours = {"pca": BASELINE, "nmf": CAFE, "ica": BEYOND}
    for ax, kind in zip(axes, ("noise_level", "noise_scale", "dataset"), strict=True):
        rows = table[table.by == kind]
        groups = list(dict.fromkeys(rows.group))
        for shift, (extractor, colour) in enumerate(colours.items()):
            own = rows[rows.extractor == extractor].set_index("group").reindex(groups)
            if own["difference"].isna().all():
                continue
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
    return figure


def _draw_time(results):
    """Draw the total time of the runs of each method.

    The fits of mwk-means, which all CAFE methods of a data set share, are counted once, as
    "sweep".
    """
    own = results.seconds - results.sweep_seconds.where(results.method != "mwk-means", 0)
    total = own.groupby(results.method).sum().reindex(METHODS).dropna() / 60
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    ax = figure.subplots()
    names = [
        "sweep (shared by CAFE)" if name == "mwk-means" else label(name) for name in total.index
    ]
    ax.barh(names, total, color=BASELINE)
    for place, minutes in enumerate(total):
        ax.text(minutes, place, f" {minutes:.1f}", va="center", fontsize=9)
    ax.invert_yaxis()
    ax.set_xlabel(f"minutes of one core; {total.sum():.0f} in all, for {len(results):,} runs")
    return figure
