"""Draw the pictures of docs/theory.md: ``python -m scripts.draw_theory [DIRECTORY]``.

Each function draws one picture, from values computed by the package.
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np

from cafelearn import MinkowskiWeightedKMeans
from cafelearn.plotting._axes import COLORS
from cafelearn.theory import (
    dominance,
    feature_weights,
    minkowski_center,
    power_mean,
    rescaled_dispersions,
    suppression_bound,
    weight_ratio_bound,
)
from reproduction.theory.fits import mixture

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import Ellipse

IMAGES = Path(__file__).parent.parent / "docs" / "images"
EXPONENTS = (1.1, 1.5, 2.0, 3.0, 5.0)
SHADES = dict(zip(EXPONENTS, plt.get_cmap("viridis")(np.linspace(0, 0.88, 5)), strict=True))
# The rows and the new row of the worked example.
ROWS = np.array([[1, 0], [2, 4], [3, 8], [10, 1], [14, 2], [18, 3]], dtype=float)
NEW_ROW = np.array([5.0, 3.0])


def draw_example(figure):
    """Draw the worked example, with equal weights and with the weights of Eq. 4."""
    start = np.array([ROWS[:3].mean(axis=0), ROWS[3:].mean(axis=0)])
    for axes, weighting in zip(
        figure.subplots(1, 2, sharey=True), ("uniform", "cluster"), strict=True
    ):
        settings = {"dispersion_offset": 0} if weighting == "cluster" else {}
        model = MinkowskiWeightedKMeans(2, p=2, weighting=weighting, init=start, **settings)
        model.fit(ROWS)
        weights = model.feature_weights_ if weighting == "cluster" else np.full((2, 2), 0.5)
        nearest = int(model.predict(NEW_ROW[None])[0])
        for l, (center, w) in enumerate(zip(model.cluster_centers_, weights, strict=True)):
            distance = np.sqrt((w**2 * (NEW_ROW - center) ** 2).sum())
            width, height = 2 * distance / w
            style = {"lw": 2} if l == nearest else {"lw": 1, "ls": "--"}
            ring = Ellipse(center, width, height, fill=False, ec=COLORS[l], **style)
            ring.set_clip_on(True)
            axes.add_patch(ring)
            axes.plot(*ROWS[model.labels_ == l].T, "o", color=COLORS[l], ms=7)
            axes.plot(*center, "+", color=COLORS[l], ms=12, mew=2)
        axes.plot(*NEW_ROW, "*", color=COLORS[nearest], mec="black", ms=15, zorder=5)
        axes.set(xlim=(-3, 21), ylim=(-3.5, 10), aspect="equal", xlabel="A")
        axes.set_title("equal weights" if weighting == "uniform" else "weights of Eq. 4, p = 2")
    figure.axes[0].set_ylabel("B")


def draw_centres(figure):
    """Draw Proposition 1: for every p > 1 the dispersion has one minimum."""
    values = np.array([0.0, 1.0, 2.0, 3.0, 10.0])
    grid = np.linspace(-0.5, 10.5, 600)
    axes = figure.subplots()
    for p, shade in SHADES.items():
        costs = (np.abs(values[:, None] - grid) ** p).sum(axis=0)
        center = minkowski_center(values, p)
        lowest = (np.abs(values - center) ** p).sum()
        axes.plot(grid, costs / lowest, color=shade, label=f"p = {p:g}, centre {center:.2f}")
        axes.plot(center, 1, "o", color=shade, ms=7, mec="white", zorder=4)
    axes.plot(values, np.full(5, 0.86), "k|", ms=12, mew=2)
    axes.annotate("values", (10, 0.86), (9.9, 0.94), ha="right", fontsize=9)
    axes.set(
        ylim=(0.8, 2.4), xlabel="position of the centre", ylabel="dispersion / its minimum"
    )
    axes.legend(fontsize=9, loc="upper left", bbox_to_anchor=(1, 1), frameon=False)


def draw_descent(figure):
    """Draw Theorem 1: the objective of five starts after each iteration."""
    X, _ = mixture("mixture-1")
    axes = figure.subplots()
    for seed in range(5):
        model = MinkowskiWeightedKMeans(
            3, p=1.5, dispersion_offset=0, init="random", n_init=1, random_state=seed
        ).fit(X)
        path = model.objective_path_
        axes.step(range(1, len(path) + 1), path, where="post", color=COLORS[seed])
        axes.plot(len(path), path[-1], "o", color=COLORS[seed])
    axes.set(xlabel="iteration", ylabel="objective")


def draw_bounds(figure):
    """Draw Theorem 2: the objective times m^(p - 1) between its bounds."""
    D = np.array([2.0, 32.0])

    def scaled_objective(p):
        return power_mean(D, -1 / (p - 1))

    exponents = 1 + np.geomspace(0.05, 60, 200)
    axes = figure.subplots()
    axes.axhspan(D.min(), power_mean(D, 0), color=COLORS[0], alpha=0.08)
    for value, name in (
        (D.min(), "smallest dispersion: the lower bound"),
        (power_mean(D, 0), "geometric mean: the upper bound"),
        (D.mean(), "arithmetic mean: equal weights"),
    ):
        axes.axhline(value, color="#777777", lw=1, ls="--")
        axes.annotate(name, (60, value * 1.04), ha="right", va="bottom", fontsize=9)
    axes.plot(exponents, [scaled_objective(p) for p in exponents], color=COLORS[0], lw=2)
    for p in EXPONENTS:
        axes.plot(p, scaled_objective(p), "o", color=SHADES[p], mec="white", ms=8)
        place = {"xytext": (9, -8), "textcoords": "offset points", "fontsize": 9}
        # There is no space for the label of p = 1.1.
        axes.annotate(f"p = {p:g}" * (p > 1.1), (p, scaled_objective(p)), **place)
    axes.set(xscale="log", yscale="log", xlim=(1.04, 61), ylim=(1.7, 20))
    axes.set(xlabel="p", ylabel="objective times $m^{p-1}$")
    axes.set_xticks([1.1, 1.5, 2, 3, 5, 10, 30], [1.1, 1.5, 2, 3, 5, 10, 30])
    axes.set_yticks([2, 4, 8, 17], [2, 4, 8, 17])
    axes.minorticks_off()


def draw_ratios(figure):
    """Draw Theorem 3: the bound on the ratio of weights against the ratio of dispersions."""
    C = np.geomspace(1, 100, 50)
    axes = figure.subplots()
    for p, shade in SHADES.items():
        axes.plot(C, weight_ratio_bound(C, p), color=shade, label=f"p = {p:g}")
    axes.set(xscale="log", yscale="log", ylim=(1e-4, 1.3), xlim=(1, 100))
    axes.set_xticks([1, 2, 4, 8, 16, 32, 64], [1, 2, 4, 8, 16, 32, 64])
    axes.set_yticks(
        [1, 1 / 4, 1 / 16, 1 / 64, 1 / 1000], ["1", "1/4", "1/16", "1/64", "1/1000"]
    )
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.set(xlabel="ratio C of the dispersions", ylabel="upper bound of the weight ratio")
    # Points for cluster 0 of the worked example: the weight of B divided by that of A.
    for p in (1.5, 2.0, 3.0):
        ratio = 4**p
        axes.plot(ratio, weight_ratio_bound(ratio, p), "o", color=SHADES[p], mec="white", ms=9)
    axes.legend(fontsize=9, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))


def draw_suppression(figure):
    """Draw Theorem 4: weights of dominating features for random dispersions, and the bound."""
    rng = np.random.default_rng(0)
    D = np.exp(rng.normal(scale=0.7, size=(400, 8)))
    D[:, 0] = D[:, 1:].max(axis=1) * rng.uniform(1, 16, size=400)
    C = np.geomspace(1, 16, 60)
    panels = figure.subplots(1, 3, sharey=True)
    for axes, p in zip(panels, (1.5, 2.0, 5.0), strict=True):
        features, factors = dominance(D)
        weights = np.take_along_axis(feature_weights(D, p), features[:, None], axis=1)
        axes.plot(factors, weights, ".", ms=4, color="#999999", label="weights")
        axes.plot(C, suppression_bound(C, 8, p), color=COLORS[0], lw=2, label="bound")
        axes.axhline(1 / 8, ls="--", lw=1, color="#777777")
        axes.set(xscale="log", xlim=(1, 16), ylim=(0, 0.15), title=f"p = {p:g}")
        axes.set_xticks([1, 2, 4, 8, 16], [1, 2, 4, 8, 16])
        axes.minorticks_off()
        axes.set_xlabel("ratio C of the dispersions")
    panels[0].set_ylabel("weight of the feature")
    panels[0].annotate("equal weights: 1/8", (15, 1 / 8), (15, 0.128), ha="right", fontsize=8)
    panels[1].annotate("bound", (4.2, 0.037), color=COLORS[0], fontsize=9)


def draw_reversal(figure):
    """Draw Lemma 3: dispersions of a cluster before and after the rescaling."""
    X, _ = mixture("mixture-1")
    model = MinkowskiWeightedKMeans(3, p=2, dispersion_offset=0, random_state=0).fit(X)
    D = model.dispersions_[0]
    after = rescaled_dispersions(D, 2)
    axes = figure.subplots()
    for v in range(8):
        noise = v >= 4
        color = COLORS[5] if noise else COLORS[0]
        axes.plot([0, 1], [D[v] / D.sum(), after[v] / after.sum()], "o-", color=color, lw=1.4)
    axes.set(xlim=(-0.15, 1.15), ylabel="share of the cluster's dispersion")
    axes.set_xticks([0, 1], ["before", "after the rescaling"])
    handles = [plt.Line2D([], [], color=c, marker="o") for c in (COLORS[0], COLORS[5])]
    axes.legend(handles, ["feature with clusters", "noise feature"], frameon=False, fontsize=9)


PICTURES = {
    "theory-example": (draw_example, (9, 3.4)),
    "theory-proposition-1": (draw_centres, (7.5, 3.2)),
    "theory-theorem-1": (draw_descent, (6, 3)),
    "theory-theorem-2": (draw_bounds, (7, 3.6)),
    "theory-theorem-3": (draw_ratios, (6.4, 3.4)),
    "theory-theorem-4": (draw_suppression, (9, 3.2)),
    "theory-lemma-3": (draw_reversal, (5.4, 3.4)),
}


def main(directory=IMAGES):
    """Draw all pictures into a directory."""
    with plt.rc_context({"axes.spines.top": False, "axes.spines.right": False}):
        for name, (draw, size) in PICTURES.items():
            figure = plt.figure(figsize=size, layout="constrained")
            draw(figure)
            # Leave the version of matplotlib out of the file, so that equal pictures give equal
            # files.
            figure.savefig(
                Path(directory) / f"{name}.png", dpi=110, metadata={"Software": None}
            )
            plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:2])
