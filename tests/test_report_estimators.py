"""Reports of every estimator: profiles first, and code that runs on the fitted table."""

import html
import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA

from cafelearn import CAFE, MinkowskiWeightedKMeans, RangeScaler
from cafelearn.cli.reading import read_table
from cafelearn.estimators.tabular import TabularCAFE
from cafelearn.report import write_fit_report
from conftest import make_blobs
from test_profiles import QUICK, customers
from test_report import read


def snippet(path):
    text = path.read_text(encoding="utf-8")
    found = re.search(r'<pre id="snippet".*?<code>(.*?)</code>', text, re.DOTALL)
    return html.unescape(found.group(1))


def run(path, **names):
    exec(snippet(path), names)
    return names


@pytest.fixture(scope="module")
def scaled():
    X, y = make_blobs(120, 5, 3, n_noise=1, seed=3)
    frame = pd.DataFrame(X, columns=[f"gene {v}" for v in range(5)])
    return RangeScaler().set_output(transform="pandas").fit_transform(frame), y


class TestKMeans:
    @pytest.fixture
    def fitted(self, scaled):
        X, _ = scaled
        return MinkowskiWeightedKMeans(3, p=1.5, n_init=3, random_state=0).fit(X), X

    def test_sections(self, fitted, scaled, tmp_path):
        model, X = fitted
        path = write_fit_report(model, X, tmp_path / "a.html", y=scaled[1])
        page = read(path)
        assert "Minkowski weighted k-means was fitted with 3 clusters to 120 rows" in page.text
        assert "candidates-table" not in page.tables
        assert "agreement-table" not in page.tables
        assert "Candidates and their scores" not in page.text
        assert len(page.frame("restarts-table")) == 1
        assert len(page.frame("weights-table")) == 5
        points = json.loads(page.json["points"])
        axes = [axis["name"] for axis in points["axes"]]
        assert axes == [*(f"distance to cluster {l}" for l in range(3)), "assignment margin"]
        distances = model.transform(X)
        shown = np.array([axis["values"] for axis in points["axes"]]).T
        np.testing.assert_allclose(shown[:, :3], distances, rtol=1e-4)
        two = np.sort(distances, axis=1)[:, :2]
        np.testing.assert_allclose(shown[:, 3], 1 - two[:, 0] / two[:, 1], rtol=1e-4, atol=1e-6)
        assert (page.frame("certificate-table")["verdict"] == "holds").any()
        assert not (page.frame("certificate-table")["verdict"] == "does not hold").any()

    def test_the_snippet(self, fitted, tmp_path):
        model, X = fitted
        found = run(write_fit_report(model, X, tmp_path / "a.html"), X=X)
        np.testing.assert_array_equal(found["labels"], model.labels_)
        np.testing.assert_array_equal(found["distances"], model.transform(X))

    def test_weighted_rows_have_no_certificate(self, scaled, tmp_path):
        X, _ = scaled
        model = MinkowskiWeightedKMeans(2, random_state=0)
        model.fit(X, sample_weight=np.linspace(0.5, 3, len(X)))
        page = read(write_fit_report(model, X, tmp_path / "a.html"))
        assert "had sample weights" in page.text

    def test_one_cluster(self, scaled, tmp_path):
        X, _ = scaled
        page = read(write_fit_report(MinkowskiWeightedKMeans(1).fit(X), X, tmp_path / "a.html"))
        assert "no row is doubtful" in page.text
        assert "Different from the rest" not in page.text


class TestTable:
    @pytest.fixture(scope="class")
    @classmethod
    def table(cls):
        return customers().assign(kind="x", name=[f"c{i}" for i in range(300)])

    @pytest.fixture(scope="class")
    @classmethod
    def model(cls, table):
        return TabularCAFE(CAFE(2, **QUICK), drop=["kind"], id_column="name").fit(table)

    def test_profiles_come_first(self, model, table, tmp_path):
        path = write_fit_report(model, table, tmp_path / "a.html")
        page = read(path)
        assert "300 rows of 7 columns (4 used, encoded as 7 features)" in page.text
        assert "Left out: 'same' (constant: the same in all rows), 'kind' (dropped" in page.text
        sections = re.findall(r'<section id="(\w+)"', path.read_text(encoding="utf-8"))
        assert sections[:3] == ["summary", "clusters", "weights"]
        profile = page.frame("profile-table").set_index("variable")
        free = model.labels_[(table["plan"] == "free").argmax()]
        share = (table["plan"][model.labels_ == free] == "free").mean()
        assert share > 0.99
        assert profile.loc["plan: free", f"cluster {free}"] in ("100%", ">99%")
        assert profile.loc["plan: free", "overall"] == f"{(table['plan'] == 'free').mean():.0%}"
        means = table["spend"].groupby(model.labels_).mean()
        shown = profile.loc["spend", ["cluster 0", "cluster 1"]].astype(float)
        np.testing.assert_allclose(shown, means, atol=0.5)
        text = " ".join(page.text.split())
        for portrait in model.profile_frame(table).groupby("cluster").head(1).itertuples():
            assert portrait.description in text
        assert json.loads(page.json["points"])["ids"][0] == "c0"

    def test_the_snippet_without_a_file(self, model, table, tmp_path):
        found = run(write_fit_report(model, table, tmp_path / "a.html"), X=table)
        np.testing.assert_array_equal(found["features"], model.transform(table))
        np.testing.assert_array_equal(found["margin"], model.assignment_margin(table))


class TestUsage:
    @pytest.mark.parametrize(
        ("suffix", "options"),
        [
            ("csv", {}),
            ("csv", {"sep": ";", "decimal": ","}),
            ("tsv", {"sep": "\t"}),
            ("csv.gz", {}),
            ("csv", {"encoding": "latin-1"}),
        ],
    )
    def test_text_files(self, suffix, options, cafe, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        table = customers().assign(target="é", **{" padded ": range(300)})
        table.to_csv(f"t.{suffix}", index=False, **options)
        decimal = ("--decimal", options["decimal"]) if "decimal" in options else ()
        self.check(cafe, f"t.{suffix}", *decimal)

    @pytest.mark.parametrize("suffix", ["parquet", "feather", "jsonl", "jsonl.gz"])
    def test_other_files(self, suffix, cafe, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        table = customers().assign(target="a")
        if "jsonl" in suffix:
            table.to_json(f"t.{suffix}", orient="records", lines=True)
        else:
            getattr(table, f"to_{suffix}")(f"t.{suffix}")
        self.check(cafe, f"t.{suffix}")

    def test_repaired_names_and_an_index(self, cafe, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        table = customers().assign(target="a")
        lines = table.to_csv(index=False).split("\n")
        lines[0] = lines[0].replace("age", "spend")
        (tmp_path / "t.csv").write_text("\n".join(["", *lines]))
        self.check(cafe, "t.csv")
        table.set_index("age").to_parquet("t.parquet")
        self.check(cafe, "t.parquet")

    def test_without_a_header_and_with_words_for_missing(self, cafe, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        table = customers()[["spend", "age", "plan"]].astype({"spend": object})
        table.loc[:3, "spend"] = "?"
        table.to_csv("t.csv", index=False, header=False)
        options = ("--no-header", "--missing", "?", "--impute", "median")
        self.check(cafe, "t.csv", *options, label=None)

    def test_texts_that_pandas_reads_otherwise(self, cafe, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        table = customers()[["spend", "age"]].astype({"age": object})
        table.loc[:3, "age"] = "unknown"
        n = len(table)
        table["sales"] = [f"{i * 37:,}" for i in range(n)]
        table["region"] = (["EU", "NA"] * n)[:n]
        table["first day"] = pd.date_range("2020-01-01", periods=n).strftime("%d/%m/%Y")
        table["zip"] = (["01007", "60601", "00501"] * n)[:n]
        table.to_csv("t.csv", index=False)
        self.check(cafe, "t.csv", label=None)

    def check(self, cafe, name, *options, label="target"):
        """The code of the report gives the labels and features that the command wrote."""
        labels = ("--label", label) if label else ()
        files = ("--report", "r.html", "--out", "f.parquet", "--force", "--quiet")
        quick = ("--p", 2, "--n-init", 2)
        code, _, said = cafe("fit", name, "-k", 2, *labels, *options, *quick, *files)
        assert code == 0, said
        from pathlib import Path

        found = run(Path("r.html"))
        written = read_table("f.parquet")
        np.testing.assert_array_equal(found["new_labels"], written["cluster"])
        np.testing.assert_allclose(found["features"], written.filter(like="cafe"))

    @pytest.mark.parametrize("kind", ["parquet", "npy", "zarr"])
    def test_large_data(self, kind, cafe, tmp_path, monkeypatch):
        pytest.importorskip("dask.dataframe")
        monkeypatch.chdir(tmp_path)
        X = make_blobs(200, 4, 2, n_noise=0)[0]
        if kind == "parquet":
            (tmp_path / "t").mkdir()
            frame = pd.DataFrame(X, columns=list("abcd"))
            frame[:90].to_parquet("t/0.parquet")
            frame[90:].to_parquet("t/1.parquet")
            name = "t"
        elif kind == "npy":
            np.save("t.npy", X)
            name = "t.npy"
        else:
            zarr = pytest.importorskip("zarr")
            zarr.save("t.zarr", X)
            name = "t.zarr"
        files = ("--report", "r.html", "--profile", "p.csv", "--out", "f", "--quiet")
        code, _, said = cafe("fit", name, "-k", 2, "--p", 2, "--n-init", 2, *files)
        assert code == 0, said
        from pathlib import Path

        found = run(Path("r.html"))
        labels = np.asarray(found["new_labels"])
        np.testing.assert_array_equal(labels, pd.read_parquet("f")["cluster"])
        written = pd.read_csv("p.csv")
        assert written["size"].iloc[0] == (labels == 0).sum()
        expected = found["profile"].drop(columns="category")
        pd.testing.assert_frame_equal(written.drop(columns="category"), expected)

    def test_estimators_among_the_settings(self, tmp_path):
        X, _ = make_blobs(60, 4, 2, n_noise=0)
        cafe = CAFE(
            2,
            extractor=PCA(2, whiten=True),
            scaling=[RangeScaler(), None],
            p=np.float64(2.5),
            n_init=2,
            random_state=np.int64(3),
        ).fit(X)
        path = write_fit_report(cafe, X, tmp_path / "a.html")
        assert "from sklearn.decomposition import PCA" in snippet(path)
        np.testing.assert_array_equal(run(path, X=X)["features"], cafe.transform(X))

    def test_settings_that_cannot_be_written_down(self, tmp_path):
        X, _ = make_blobs(60, 4, 2, n_noise=0)
        model = MinkowskiWeightedKMeans(2, init=X[:2]).fit(X)
        code = snippet(write_fit_report(model, X, tmp_path / "a.html"))
        assert "# init: a ndarray, as given to the fit" in code
        assert "without random_state, results may differ" in code
        exec(code, {"X": X})

    def test_columns_of_a_file_for_plain_cafe(self, tmp_path):
        table = customers()
        table.to_csv(tmp_path / "t.csv", index=False)
        X = table[["spend", "age"]]
        cafe = CAFE(2, **QUICK).fit(X)
        source = f"pd.read_csv({str(tmp_path / 't.csv')!r})"
        found = run(write_fit_report(cafe, X, tmp_path / "a.html", read=source))
        np.testing.assert_array_equal(found["features"], cafe.transform(X))
