"""The report on the paper's experiment."""

import base64
import re

import numpy as np
import pandas as pd
import pytest

from reproduction.paper.compare import compare
from reproduction.paper.report import CAPTIONS, write_report
from reproduction.tests.test_tables import Grid, results

ATTACK = "</table><script>alert(1)</script>\"'&"


class Page(Grid):
    """Also accepts the tags without an end."""

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "img"):
            super().handle_starttag(tag, attributes)


def report(runs, folder):
    write_report(runs, folder / "report.html")
    text = (folder / "report.html").read_text(encoding="utf-8")
    grid = Page(text)
    rows = [[[cell["text"] for cell in row] for row in table] for table in grid.tables]
    frames = [pd.DataFrame(cells, columns=head) for head, *cells in rows]
    return text, dict(zip(grid.captions, frames, strict=True))


@pytest.fixture(scope="module")
def runs():
    runs = results(n=3).assign(nmi=0.5, seconds=1.0, sweep_seconds=0.0)
    runs.loc[5, "status"] = "failed"
    return runs


@pytest.fixture(scope="module")
def page(runs, tmp_path_factory):
    return report(runs, tmp_path_factory.mktemp("report"))


def frame(page, words):
    (found,) = (table for caption, table in page[1].items() if words in caption)
    return found


def test_the_tables_of_the_paper(page, runs):
    means = compare(runs).means
    for level in (0.2, 0.4):
        caption = (
            f"Mean ARI ± standard deviation over noisy versions at noise level {level:.0%}"
        )
        table = page[1][caption]
        row = table[
            (table["Data set"] == "Iris") & (table["\N{GREEK SMALL LETTER SIGMA}"] == "2")
        ]
        cell = means.query(
            f"dataset == 'iris' and noise_level == {level} and noise_scale == 2 "
            "and method == 'cafe+pca'"
        )
        assert row["CAFE+PCA"].item().startswith(f"{cell['mean_ari'].item():.3f}")


def test_the_comparison(page, runs):
    comparison = compare(runs)
    pairs = frame(page, "with CAFE minus")
    assert (pairs["won"] == "True").sum() == comparison.pairs["won"].sum()
    tests = frame(page, "Wilcoxon")
    np.testing.assert_allclose(
        tests["p holm"].astype(float), comparison.tests["p_holm"], rtol=0.01
    )
    ranks = frame(page, "Average ranks").set_index("method")["all methods"].astype(float)
    assert ranks["CAFE+PCA"] == pytest.approx(comparison.ranking.ranks["cafe+pca"], rel=0.01)
    gain = frame(page, "Mean gain")["difference"].astype(float)
    np.testing.assert_allclose(gain, comparison.improvement["difference"], rtol=0.01)
    agreement = frame(page, "Share of cells")
    assert agreement["cells"].astype(int).tolist() == comparison.agreement["cells"].tolist()
    assert "1 run failed" in page[0]


def test_the_figures(page):
    images = re.findall(r'<img src="data:image/png;base64,([^"]+)" alt="([^"]+)">', page[0])
    assert [caption for _, caption in images] == list(CAPTIONS.values())
    assert all(base64.b64decode(data).startswith(b"\x89PNG") for data, _ in images)


def test_little_is_enough(tmp_path):
    one = results(n=1, dataset="iris", methods=["pca"])
    text, tables = report(one, tmp_path)
    assert "<img" not in text
    assert not any("Wilcoxon" in caption for caption in tables)
    pair = results(n=2, dataset="iris", methods=["nmf", "cafe+nmf"])
    assert report(pair.assign(dataset="mine"), tmp_path)[0].count("<img") == 2


def test_names_are_escaped(tmp_path):
    runs = results(n=2, dataset="iris")
    runs["dataset"] += ATTACK
    runs.loc[runs["method"] == "umap", "method"] = ATTACK
    text, _ = report(runs, tmp_path)
    assert "<script" not in text
