"""One page with the tables, the comparison with the paper and the figures."""

import base64
import html
import io

import pandas as pd

from reproduction.paper.compare import compare, summary
from reproduction.paper.figures import draw_figures
from reproduction.paper.tables import label, render

PAGE = """<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>The experiment of the paper, repeated</title>
<style>
body {{ font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 78rem; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0; }}
caption {{ font-weight: bold; padding: .4rem; text-align: left; }}
th, td {{ border-bottom: 1px solid #ddd; padding: .2rem .6rem; text-align: right; }}
th:first-child {{ text-align: left; }}
td.far {{ background: #fde8d0; }}
div {{ overflow-x: auto; }}
img {{ max-width: 100%; }}
pre {{ white-space: pre-wrap; }}
</style>
<h1>The experiment of the paper, repeated</h1>
{body}
</html>
"""
# Text below the name of a figure.
CAPTIONS = {
    "ranks": "Critical difference diagrams; bars join methods without a significant difference",
    "cells": "Mean of each cell beside the published mean",
    "agreement": "Distance from the published tables by data set and method",
    "improvement": "Mean gain of CAFE by noise level, noise scale and data set",
    "time": "Time of the runs of each method",
}


def write_report(results, path):
    """Write the report on the results, see `check_results`, to an HTML file."""
    comparison = compare(results)
    parts = [
        f"<pre>{html.escape(summary(comparison))}</pre>",
        _scrolling(render(results, "html")),
    ]
    for name, figure in draw_figures(results, comparison).items():
        parts.append(_image(figure, CAPTIONS[name]))
    for title, table in _tables(comparison).items():
        if len(table):
            parts.append(_scrolling(_table(title, table)))
    path.write_text(PAGE.format(body="\n".join(parts)), encoding="utf-8")


def _tables(comparison):
    rankings = {
        "all methods": comparison.ranking,
        "the paper's methods": comparison.paper_ranking,
        "in the paper": comparison.published_ranking,
    }
    ranks = {name: found.ranks for name, found in rankings.items() if found is not None}
    return {
        "Average ranks; 1 is the best": pd.DataFrame(ranks).rename_axis("method").reset_index(),
        "Wilcoxon's signed-rank test over configurations": comparison.tests,
        "Share of cells within two standard errors of the published mean": comparison.agreement,
        "Mean gain of CAFE over its baseline": comparison.improvement,
        "Mean ARI with CAFE minus mean ARI without CAFE": comparison.pairs,
    }


def _table(title, table):
    for name in table.columns.intersection(
        ["dataset", "method", "other", "extractor", "group"]
    ):
        table = table.assign(**{name: table[name].map(label)})
    text = table.rename(columns=lambda name: name.replace("_", " ")).to_html(
        index=False, border=0, na_rep="", float_format="{:.3g}".format
    )
    return text.replace(">", f"><caption>{html.escape(title)}</caption>", 1)


def _scrolling(text):
    return f"<div>{text}</div>"


def _image(figure, caption):
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=110, metadata={"Software": None})
    source = base64.b64encode(drawn.getvalue()).decode("ascii")
    caption = html.escape(caption)
    return (
        f'<figure><img src="data:image/png;base64,{source}" alt="{caption}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )
