"""The tables: the paper's layout and marks, in four formats."""

import io
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from reproduction.paper.published import CELL, against_published, cell_means, published
from reproduction.paper.tables import mark, render, render_published

FORMATS = ("text", "md", "csv", "html")
# Rows of the paper's tables as it prints them: level, data set, scale, and the eight cells,
# in which b is bold and u underlined.
PRINTED = """
0.2 AustraCC 1 | 0.032 0.12 | 0.175 0.21 | ub 0.273 0.24 | 0.131 0.19 | b 0.259 0.25 | 0.151 0.20 | ub 0.273 0.24 | 0.218 0.24
0.2 AustraCC 5 | 0.080 0.18 | 0.195 0.21 | b 0.321 0.22 | 0.295 0.26 | 0.195 0.22 | b 0.270 0.25 | 0.321 0.22 | ub 0.332 0.24
0.2 Balance 1 | 0.022 0.02 | 0.038 0.04 | 0.025 0.03 | ub 0.061 0.04 | 0.024 0.03 | ub 0.061 0.04 | 0.024 0.02 | b 0.049 0.04
0.2 CarEvaluation 2 | 0.037 0.06 | 0.040 0.04 | 0.060 0.06 | ub 0.071 0.06 | b 0.051 0.05 | 0.042 0.07 | b 0.056 0.05 | 0.055 0.07
0.2 Ionosphere 1 | -0.018 0.03 | 0.132 0.03 | ub 0.152 0.02 | 0.148 0.02 | 0.085 0.04 | b 0.106 0.04 | b 0.151 0.02 | 0.142 0.01
0.2 Iris 2 | 0.447 0.11 | u 0.790 0.12 | 0.682 0.10 | b 0.701 0.16 | b 0.735 0.12 | 0.732 0.16 | 0.634 0.15 | b 0.714 0.17
0.4 Breast_Cancer 2 | 0.781 0.06 | 0.790 0.13 | 0.701 0.08 | ub 0.798 0.12 | 0.676 0.09 | b 0.776 0.09 | 0.701 0.08 | ub 0.798 0.12
0.4 Ionosphere 5 | 0.027 0.07 | 0.116 0.05 | 0.115 0.03 | ub 0.680 0.36 | 0.063 0.04 | b 0.437 0.36 | 0.112 0.04 | b 0.641 0.37
0.4 Iris 5 | 0.349 0.33 | u 0.466 0.20 | 0.357 0.28 | b 0.422 0.27 | 0.355 0.29 | b 0.423 0.29 | 0.281 0.21 | b 0.382 0.24
0.4 Teaching_Assistant 1 | 0.019 0.02 | 0.023 0.02 | 0.023 0.02 | b 0.120 0.15 | 0.013 0.02 | b 0.050 0.10 | 0.023 0.02 | ub 0.194 0.18
"""  # noqa: E501
HEADER = ["Auto", "UMAP", "PCA", "CAFE+PCA", "NMF", "CAFE+NMF", "ICA", "CAFE+ICA"]


def printed_rows():
    for line in PRINTED.strip().splitlines():
        start, *cells = line.split(" | ")
        level, label, scale = start.split()
        cells = [["", *cell.split()][-3:] for cell in cells]
        yield pytest.param(float(level), label.replace("_", " "), scale, cells, id=start)


PRINTED_ROWS = pytest.mark.parametrize(
    ("level", "label", "scale", "cells"), list(printed_rows())
)


def results(n=4, methods=None, dataset=None, seed=0):
    """Made-up runs around the published means."""
    rng = np.random.default_rng(seed)
    cells = published()
    more = cells[cells["method"] == "cafe+pca"]
    cells = pd.concat(
        [cells, *(more.assign(method=m) for m in ("kmeans", "mwk-means", "cafe-centroid+pca"))]
    )
    if methods is not None:
        cells = cells[cells["method"].isin(methods)]
    if dataset is not None:
        cells = cells[cells["dataset"] == dataset]
    return pd.concat(
        cells.assign(
            version=version,
            status="done",
            ari=cells["mean_ari"] + cells["std_ari"] * rng.normal(size=len(cells)),
        )
        for version in range(n)
    ).reset_index(drop=True)


class Grid(HTMLParser):
    """Rows of every table, and whether the tags nest."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.captions, self.open = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag == "br":
            return
        self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append(
                {"tag": tag, "text": "", "in": set(), **dict(attributes)}
            )
        elif tag in ("b", "u"):
            self.tables[-1][-1][-1]["in"].add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1]["text"] += data
        elif "caption" in self.open:
            self.captions.append(data)


class TestThePapersOwnTables:
    @PRINTED_ROWS
    def test_html(self, level, label, scale, cells):
        head, *rows = Grid(render_published("html")).tables[0 if level == 0.2 else 1]
        assert [cell["text"] for cell in head[2:]] == HEADER
        row = next(r for r in rows if (r[0]["text"], r[1]["text"]) == (label, scale))
        for (marks, mean, std), found in zip(cells, row[2:], strict=True):
            assert found["text"] == f"{mean} ± {std}"
            assert found["in"] == set(marks)
            assert float(found["data-sort"]) == float(mean)

    def test_text_and_markdown_have_the_same_marks(self):
        text, markdown = render_published("text"), render_published("md")
        assert "_* 0.061 ±0.04" in text
        assert "_  0.790 ±0.12" in text
        assert " * 0.049 ±0.04" in text
        assert "| <ins>**0.061**</ins> ± 0.04 |" in markdown
        assert "| <ins>0.790</ins> ± 0.12 |" in markdown
        marked = mark(published().rename(columns={"mean_ari": "mean"}))
        body = text.split("\n\n*: best")[0]
        assert len(re.findall(r"\* [ -]?0\.\d{3}", body)) == marked["bold"].sum() == 162
        assert markdown.count("<ins>") == marked["underline"].sum() == 58
        assert markdown.count("**0.") == 162

    def test_nothing_stands_beside_them(self):
        assert "paper" not in render_published("text")
        assert "20 versions per cell." in render_published("text")


class TestMarks:
    def test_ties_as_printed_are_shared(self):
        cells = published().head(8).rename(columns={"mean_ari": "mean"})
        cells["mean"] = [0.1, 0.2, 0.29951, 0.30049, 0.3, 0.29949, 0.1, 0.2]
        found = mark(cells).set_index("method")
        assert list(found.index[found["underline"]]) == ["pca", "cafe+pca", "nmf"]
        assert list(found.index[found["bold"]]) == ["pca", "cafe+pca", "nmf", "cafe+ica"]

    def test_half_a_pair_is_not_bold(self):
        cells = published().head(3).rename(columns={"mean_ari": "mean"})
        assert not mark(cells)["bold"].any()

    def test_a_centroid_variant_is_no_pair_of_pca(self):
        text = render(results(methods=["pca", "cafe-centroid+pca"]), "md")
        assert "**0." not in text


class TestOursBesideThePapers:
    def test_text(self):
        runs = results(dataset="ionosphere")
        lines = render(runs).splitlines()
        cells = against_published(runs).set_index(["noise_level", "noise_scale", "method"])
        cell = cells.loc[(0.2, 1, "autoencoder")]
        ours, paper = lines[4], lines[5]
        assert re.match(r"Ionosphere  1  ours  ", ours)
        assert f"{cell['ours']:.3f} ±{cell['ours_std']:.2f}" in ours
        far = "!" if abs(cell["z"]) > 2 else ""
        assert paper.split()[:3] == ["paper", "-0.018", f"{cell['z']:+.1f}{far}"]
        assert "4 versions per cell." in lines[-1]

    def test_text_fits_200_columns(self):
        runs = results(n=12)
        runs["ari"] -= 1.5
        runs = runs[~((runs["version"] > 9) & (np.arange(len(runs)) % 2 == 0))]
        text = render(runs)
        assert "n=10" in text or "n=11" in text
        assert re.search(r"-\d\d\.\d!", text)
        assert max(map(len, text.splitlines())) <= 200
        assert "\x1b" not in text

    def test_far_cells_are_marked(self):
        runs = results(n=20, dataset="iris", methods=["pca", "umap"])
        runs.loc[runs["method"] == "umap", "ari"] += 5
        html = Grid(render(runs, "html"))
        for row in html.tables[0][1:]:
            umap, pca = row[2], row[3]
            assert umap["class"] == "far"
            assert umap["text"].endswith("!")
            assert pca.get("class") == ("far" if pca["text"].endswith("!") else None)

    def test_far_means_beyond_2(self):
        runs = results(n=3)
        z = against_published(runs)["z"].abs()
        assert z.between(2, 3).any()
        html = Grid(render(runs, "html"))
        cells = [cell for table in html.tables for row in table for cell in row]
        assert sum("class" in cell for cell in cells) == (z > 2).sum()
        assert sum(cell["text"].endswith("!") for cell in cells) == (z > 2).sum()

    def test_csv_has_every_cell_once_with_all_digits(self):
        runs = results()
        table = pd.read_csv(io.StringIO(render(runs, "csv")))
        means = cell_means(runs)
        assert len(table) == len(means) == 54 * 11
        both = table.merge(means, on=CELL)
        np.testing.assert_allclose(both["mean"], both["mean_ari"], rtol=1e-12)
        np.testing.assert_allclose(both["std"], both["std_ari"], rtol=1e-12)
        theirs = table.merge(against_published(runs), on=CELL, suffixes=("", "_expected"))
        assert len(theirs) == 432
        np.testing.assert_allclose(theirs["z"], theirs["z_expected"], rtol=1e-12)
        assert table.loc[table["beyond_paper"], "z"].isna().all()
        assert set(table.loc[table["beyond_paper"], "method"]) == {
            *("kmeans", "mwk-means", "cafe-centroid+pca")
        }

    def test_methods_beyond_the_paper_have_their_own_tables(self):
        grid = Grid(render(results(), "html"))
        assert [caption.split(" at ")[1] for caption in grid.captions] == [
            "noise level 20%",
            "noise level 40%",
            "noise level 20%, methods beyond the paper",
            "noise level 40%, methods beyond the paper",
        ]
        names = [cell["text"] for cell in grid.tables[2][0][2:]]
        assert names == ["PCA", "CAFE+PCA", "k-means", "mwk-means", "CAFE-centroid+PCA"]
        assert all(len(table) == 28 for table in grid.tables)
        only = Grid(render(results(methods=["kmeans"]), "html"))
        assert [cell["text"] for cell in only.tables[0][0][2:]] == ["k-means"]
        assert len(Grid(render(results(methods=["pca"]), "html")).tables) == 2


class TestPartialResults:
    @pytest.fixture
    def partial(self):
        """Failed runs, a cell of one version, a cell without any, and one never run."""
        runs = results(n=3, dataset="iris", methods=["umap", "pca", "cafe+pca"])
        runs = runs[runs["noise_level"] == 0.2]
        one = runs["method"].eq("pca") & runs["noise_scale"].eq(1) & runs["version"].gt(0)
        none = runs["method"].eq("pca") & runs["noise_scale"].eq(2)
        never = runs["method"].eq("umap") & runs["noise_scale"].eq(5)
        runs.loc[one | none, "status"] = "failed"
        return runs[~never]

    def test_every_format(self, partial):
        for name in FORMATS:
            text = render(partial, name)
            assert "nan" not in text.lower()
        table = pd.read_csv(io.StringIO(render(partial, "csv")))
        assert len(table) == 7
        assert sorted(table["n"]) == [1, 3, 3, 3, 3, 3, 3]

    def test_text(self, partial):
        text = render(partial)
        assert "n=1" in text
        assert "3 versions per cell, unless n is shown; failed runs, left out: 5." in text
        lines = [line.split() for line in text.splitlines()]
        # A single version has the paper's number, but neither deviation nor z.
        assert "n=1" in lines[4]
        assert lines[4][lines[4].index("n=1") - 2].startswith("±")
        paper = lines[5]
        assert paper[paper.index("0.708") + 1] == "0.728"

    def test_cells_that_were_not_run(self, partial):
        rows = Grid(render(partial, "html")).tables[0]
        assert rows[2][3]["text"] == "-"
        assert rows[3][2]["text"] == "-"
        assert rows[3][2]["data-sort"] == ""

    def test_no_runs_that_are_done(self, partial):
        with pytest.raises(ValueError, match="render needs at least one run that is done"):
            render(partial.assign(status="failed"))

    def test_small_negative_means_print_as_zero(self, partial):
        zero = partial.assign(ari=-0.0001)
        assert "-0.000" not in "".join(render(zero, name) for name in FORMATS[:2])


class TestFormats:
    @pytest.fixture
    def hostile(self):
        runs = results(n=2, dataset="iris", methods=["pca", "cafe+pca"])
        runs["dataset"] = r'<b>R&D</b> | 50%_of $x^2$ {#1} ~\ "q"'
        other = runs[runs["method"] == "pca"].assign(method="<i>|my_method&")
        return pd.concat([runs, other])

    def test_html_escapes_names(self, hostile):
        grid = Grid(render(hostile, "html"))
        assert grid.tables[0][1][0]["text"] == hostile["dataset"].iloc[0]
        assert grid.tables[0][1][0]["in"] == set()
        assert grid.tables[2][0][-1]["text"] == "<i>|my_method&"

    def test_html_is_accessible_and_sortable(self):
        for head, *rows in Grid(render(results(), "html")).tables:
            assert all(cell["tag"] == "th" and cell["scope"] == "col" for cell in head)
            for row in rows:
                assert (row[0]["tag"], row[0]["scope"]) == ("th", "row")
                assert all(np.isfinite(float(cell["data-sort"])) for cell in row[1:])

    def test_markdown_is_a_grid(self, hostile):
        for text in (render(results(), "md"), render(hostile, "md")):
            for block in text.split("\n\n"):
                if block.startswith("|"):
                    bars = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
                    assert len(bars) == 1
        assert r"&lt;b&gt;R&amp;D" in render(hostile, "md")

    @pytest.mark.parametrize("call", [lambda f: render(results(2), f), render_published])
    def test_unknown_formats(self, call):
        with pytest.raises(ValueError, match="needs a format among text, md, csv, html"):
            call("pdf")
