"""The command line: options, output and files."""

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from cafelearn import CAFE, PAPER
from cafelearn.cli.reading import read_table
from cafelearn.datasets import load
from cafelearn.diagnosis import Finding
from cafelearn.estimators.tabular import TabularCAFE
from cafelearn.interpret import placed
from cafelearn.persistence import load_model
from cafelearn.tables.encoding import TableEncoder

IRIS = load("iris").frame
QUICK = ("--n-init", "2", "--p", "2", "--jobs", "1")


@pytest.fixture
def iris(tmp_path):
    """A file with numbers, text, booleans, a constant, names and classes."""
    frame = IRIS.rename(columns={"target": "species"}).assign(
        kind=np.where(np.arange(150) % 3, "a", "b"),
        big=IRIS.iloc[:, 0] > 6,
        same=1,
        name=[f"=flower{i}" for i in range(150)],
    )
    path = tmp_path / "iris.csv"
    frame.to_csv(path, index=False)
    return path


class TestFit:
    def test_files_and_words(self, iris, cafe, tmp_path):
        out, model = tmp_path / "features.parquet", tmp_path / "model.skops"
        options = ("--label", "species", "--id", "name", "--out", out, "--model", model)
        code, said, remarks = cafe("fit", iris, "-k", 3, "-r", 2, *QUICK, *options)
        assert code == 0
        assert "150 rows, 6 of 9 columns" in said
        assert "Read" in remarks
        assert "ARI" in said
        assert "Left out as constant: 'same'" in remarks
        features = pd.read_parquet(out)
        assert list(features) == ["name", "cluster", "margin", "cafe0", "cafe1"]
        # The same as by hand.
        fitted = load_model(model)
        table = read_table(iris)
        encoded = TableEncoder(drop=["species", "name"]).fit(table).transform(table)
        by_hand = CAFE(
            3, n_components=2, p=2, n_init=2, feature_groups="auto", random_state=0
        ).fit(encoded)
        np.testing.assert_array_equal(features["cluster"], by_hand.labels_)
        np.testing.assert_array_equal(features[["cafe0", "cafe1"]], by_hand.transform(encoded))
        np.testing.assert_array_equal(features["margin"], by_hand.assignment_margin(encoded))
        np.testing.assert_array_equal(fitted.transform(table), by_hand.transform(encoded))
        ari = adjusted_rand_score(table["species"], by_hand.labels_)
        assert f"ARI {ari:.3f}" in said

    def test_a_table_is_encoded_predicted_and_profiled_once(
        self, iris, cafe, tmp_path, monkeypatch
    ):
        calls = []

        def count(owner, name):
            original = getattr(owner, name)

            def counted(*args, **options):
                calls.append(name)
                return original(*args, **options)

            monkeypatch.setattr(owner, name, counted)

        count(TableEncoder, "fit_transform")
        count(TableEncoder, "transform")
        for name in ("predict", "predict_proba", "transform"):
            count(CAFE, name)
        for name in ("make_profile", "portraits"):
            count(placed, name)
        files = ("--out", tmp_path / "o.csv", "--report", tmp_path / "r.html")
        assert cafe("fit", iris, "-k", 3, "--label", "species", *QUICK, *files)[0] == 0
        once = ["fit_transform", "make_profile", "portraits", "predict_proba", "transform"]
        assert sorted(calls) == once

    def test_only_a_report_loads_what_draws_it(self, iris):
        code = (
            "import sys; from cafelearn.cli import main; main(sys.argv[1:]); "
            "slow = ('cafelearn.report', 'cafelearn.plotting', 'matplotlib', 'jinja2'); "
            "sys.exit(', '.join(name for name in sys.modules if name.startswith(slow)) or 0)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, "fit", str(iris), "-k", "3", "--quiet", *QUICK],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr

    def test_labels_that_are_missing_are_counted(self, tmp_path, cafe):
        X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0], [9]], 30, axis=0)
        table = pd.DataFrame(X, columns=["a", "b"]).assign(lab=np.repeat(["u", "v"], 30))
        table.loc[::4, "lab"] = None
        table.to_csv(tmp_path / "t.csv", index=False)
        some = ("fit", tmp_path / "t.csv", "-k", 2, "--n-init", 1, "--label", "lab")
        assert "with 'lab' (45 of 60 rows have a label): ARI 1.000" in cafe(*some)[1]
        table.dropna().to_csv(tmp_path / "t.csv", index=False)
        assert "with 'lab': ARI 1.000" in cafe(*some)[1]

    def test_json_is_one_object_and_nothing_else(self, iris, cafe):
        code, out, _ = cafe(
            *("fit", iris, "-k", 3, "--drop", "name", "--label", "species", "--json"),
            *("--p", 1.5, "--p", 2, "--n-init", 2),
        )
        facts = json.loads(out)
        assert code == 0
        assert out.count("\n") == 1
        assert facts["answer"].startswith(f"3 clusters, {facts['confidence']} confidence: ")
        assert facts["verdict"] in ("structure", "none", "inconclusive", "continuum")
        assert 0 <= facts["stability"] <= 1
        assert len(facts["cluster_stability"]) == len(facts["relevance"]) == 3
        assert set(facts["relevance"][0]) >= {"sepal_length", "kind=a", "kind=b"}
        assert facts["mixture"]["covariance"] in ("independent", "proportional", "full")
        assert facts["exponents"] == [1.5, 2.0]
        assert facts["p"] in (1.5, 2.0)
        assert sum(cluster["rows"] for cluster in facts["clusters"]) == 150
        assert facts["constant"] == ["same"]
        assert set(facts["label"]) == {"column", "rows", "ari", "nmi"}
        assert "Left out as constant" in facts["remarks"][0]
        for cluster in facts["clusters"]:
            assert cluster["share"] == pytest.approx(cluster["rows"] / 150)
            first = cluster["profile"][0]
            assert str(first["variable"]) in first["description"]
            sizes = [abs(row["difference"]) for row in cluster["profile"]]
            assert sizes == sorted(sizes, reverse=True)
            assert sizes[-1] >= 0.2

    def test_profiles(self, iris, cafe, tmp_path):
        options = ("-k", 3, "--drop", "name", "--label", "species", *QUICK)
        path, model = tmp_path / "profile.csv", tmp_path / "m.skops"
        code, said, _ = cafe("fit", iris, *options, "--profile", path, "--model", model)
        assert code == 0
        assert f"Wrote the profile to {path}" in said
        written = pd.read_csv(path)
        expected = load_model(model).profile_frame(read_table(iris))
        assert list(written) == list(expected)
        np.testing.assert_allclose(written["center"], expected["center"])
        assert written["description"].tolist() == expected["description"].tolist()
        for row in expected.groupby("cluster").head(1).itertuples():
            assert row.description in said
            assert f"{row.size} ({row.share:.0%})" in said
        kinds = ("tsv.gz", "parquet", "feather", "jsonl")
        for kind in kinds:
            path = tmp_path / f"profile.{kind}"
            assert cafe("fit", iris, *options, "--profile", path, "--quiet")[0] == 0
            np.testing.assert_allclose(read_table(path)["center"], expected["center"])

    def test_the_profile_is_checked_before_computing(self, iris, cafe, tmp_path, monkeypatch):
        monkeypatch.setattr(TabularCAFE, "fit", None)
        taken = tmp_path / "taken.csv"
        taken.write_text("mine")
        for more, message in [
            (("--profile", tmp_path / "a.xyz"), "a.xyz"),
            (("--profile", taken), "taken.csv"),
            (("--profile", tmp_path / "a.csv", "--out", tmp_path / "a.csv"), "the same file"),
            (("--profile", iris, "--force"), "the same file as the input file"),
        ]:
            code, _, err = cafe("fit", iris, "-k", 3, *more)
            assert code == 2
            assert message in err
        assert taken.read_text() == "mine"

    def test_the_number_of_clusters_is_chosen(self, iris, cafe, tmp_path):
        path = tmp_path / "m.skops"
        fit = ("fit", iris, "--drop", "name", "--drop", "kind", "--label", "species", *QUICK)
        code, out, _ = cafe(*fit, "-k", "2-4", "--model", path)
        model = load_model(path)
        k = model.n_clusters_
        assert code == 0
        assert f"Chose k = {k} by the gain over a single cloud (tried 2 to 4)" in out
        assert [
            line.split()[0] for line in out.splitlines() if line.rstrip().endswith(" chosen")
        ] == [str(k)]
        facts = json.loads(cafe(*fit, "-k", "2,3,4", "--json")[1])
        assert facts["n_clusters"] == k == len(facts["clusters"])
        assert [row["n_clusters"] for row in facts["n_clusters_table"]] == [2, 3, 4]
        assert [row["n_clusters"] for row in facts["n_clusters_table"] if row["chosen"]] == [k]
        for name in ("gain", "tied", "counts"):
            found = model.n_clusters_table_[name].tolist()
            assert [row[name] for row in facts["n_clusters_table"]] == found

    def test_no_structure_is_one_cluster(self, cafe, tmp_path):
        path = tmp_path / "noise.csv"
        noise = np.random.default_rng(0).uniform(size=(60, 3))
        pd.DataFrame(noise, columns=list("abc")).to_csv(path, index=False)
        code, out, _ = cafe("fit", path, "-k", "auto", *QUICK)
        assert code == 0
        first, second = out.splitlines()[:2]
        assert first == "1 cluster: no cluster structure was found"
        assert second.startswith("Warning: No cluster structure was found")
        assert "Chose k = 1 by the gain over a single cloud (tried 1 to 6)" in out
        facts = json.loads(cafe("fit", path, "-k", "auto", *QUICK, "--json")[1])
        assert facts["n_clusters"] == 1
        assert facts["n_clusters_table"][0]["gain"] == 0

    def test_options_reach_the_model(self, iris, cafe, tmp_path):
        path = tmp_path / "m.skops"
        code, out, err = cafe(
            *("fit", iris, "-k", 2, "--drop", "name", "--drop", "kind", "--label", "species"),
            *("--extractor", "ica", "--rescaling", "centroid", "--scaling", "none"),
            *("--offset", "0.25", "--n-init", 3, "--p", 3, "--seed", 7, "--jobs", 2),
            *("--category", "same", "--impute", "median", "--model", path, "--quiet"),
        )
        assert (code, out, err) == (0, "", "")
        model = load_model(path)
        assert model.drop == ["name", "kind", "species"]
        assert (model.impute, model.categorical) == ("median", ["same"])
        chosen = model.cafe_.get_params(deep=False)
        assert (
            chosen
            | {
                "n_clusters": 2,
                "extractor": "ica",
                "rescaling": "centroid",
                "scaling": None,
                "dispersion_offset": 0.25,
                "n_init": 3,
                "p": (3.0,),
                "random_state": 7,
                "n_jobs": 2,
            }
            == chosen
        )

    def test_settings_to_try(self, iris, cafe):
        fit = ("fit", iris, "-k", 3, "--drop", "name", "--label", "species", "--n-init", 1)
        fit += ("--selection", "likelihood")
        code, out, _ = cafe(
            *(*fit, "--json", "--p", "1.5, 2", "--p", 3, "--scaling", "none", "--scaling"),
            *("standard", "--offset", "mean,0.5", "--weighting", "cluster,uniform"),
        )
        facts = json.loads(out)
        assert code == 0
        assert facts["exponents"] == [1.5, 2.0, 3.0]
        assert facts["selection"] == "likelihood"
        tried = [
            (row["scaling"], row["weighting"], row["dispersion_offset"], row["p"])
            for row in facts["candidates"]
        ]
        assert tried == [
            (scaling, weighting, offset, p)
            for scaling in ("none", "standard")
            for weighting, offset in [("cluster", "mean"), ("cluster", 0.5), ("uniform", None)]
            for p in (1.5, 2.0, 3.0)
        ]
        assert len(facts["agreement"]) == 18
        (chosen,) = (row for row in facts["candidates"] if row["chosen"])
        best = max(row["score"] for row in facts["candidates"])
        assert chosen["score"] == pytest.approx(best, rel=1e-9)
        for name in ("candidate", "scaling", "weighting", "dispersion_offset", "p", "score"):
            assert facts["chosen"][name] == chosen[name]
        assert facts["p"] == chosen["p"]

    def test_the_choice_in_words(self, iris, cafe):
        fit = ("fit", iris, "-k", 3, "--drop", "name", "--label", "species", "--n-init", 1)
        fit += ("--selection", "likelihood")
        only = ("--scaling", "range", "--weighting", "cluster", "--offset", "mean")
        _, said, _ = cafe(*fit, *only, "--p", 2)
        words = "range scaling, one weight per cluster and feature (offset mean), p = 2"
        assert f"Settings: {words}; score " in said
        _, said, _ = cafe(*fit, *only, "--p", "1.5,2")
        facts = json.loads(cafe(*fit, *only, "--p", "1.5,2", "--json")[1])
        assert f"Chose 1 of 2 candidates by likelihood: {facts['chosen']['words']}" in said
        (other,) = (row for row in facts["candidates"] if not row["chosen"])
        assert (
            f"Score {facts['chosen']['score']:,.1f}; next best: {other['score']:,.1f} " in said
        )
        assert f"(ARI with this candidate: {other['agreement']:.3f})" in said

    def test_paper(self, iris, cafe, tmp_path):
        path = tmp_path / "m.skops"
        fit = ("fit", iris, "-k", 3, "--drop", "name", "--label", "species", "--paper")
        # What says the same is no conflict.
        same = ("--p", "1.1,1.5,2,3", "--selection", "agreement", "--n-init", 50)
        code, said, _ = cafe(*fit, *same, "--model", path)
        assert code == 0
        assert "Chose 1 of 4 candidates by agreement: range scaling" in said
        model = load_model(path)
        chosen = model.cafe_.get_params(deep=False)
        assert chosen | PAPER == chosen
        table = read_table(iris)
        by_hand = CAFE(3, random_state=0, feature_groups="auto", **PAPER)
        by_hand.fit(model.encode(table))
        np.testing.assert_array_equal(model.labels_, by_hand.labels_)
        mean = (by_hand.agreement_[by_hand.models_.index(by_hand.model_)].sum() - 1) / 3
        assert f"Mean agreement with the others {mean:.3f} (ARI)" in said

    def test_findings_come_first(self, cafe, tmp_path, monkeypatch):
        found = [
            Finding("disagreement", "note", "The exponents disagree."),
            Finding("collapsed", "severe", "97% of the rows are in one of 3 clusters."),
        ]
        monkeypatch.setattr(TabularCAFE, "diagnosis_", found, raising=False)
        path = tmp_path / "flowers.csv"
        IRIS.to_csv(path, index=False)
        code, said, _ = cafe("fit", path, "-k", 3, *QUICK)
        lines = said.splitlines()
        assert code == 0
        assert lines[0].startswith("3 clusters, ")
        assert lines[1] == "Warning: 97% of the rows are in one of 3 clusters. [collapsed]"
        assert lines[-1] == "Note: The exponents disagree. [disagreement]"
        facts = json.loads(cafe("fit", path, "-k", 3, *QUICK, "--json")[1])
        assert facts["diagnosis"] == [
            {"code": code, "severity": severity, "message": message}
            for code, severity, message in found
        ]

    def test_a_finding_is_not_said_twice(self, cafe, tmp_path):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
        frame.iloc[0] += 1e4
        path = tmp_path / "outlier.csv"
        frame.to_csv(path, index=False)
        options = ("--p", 2, "--scaling", "none", "--weighting", "uniform", "--n-init", 2)
        options += ("--selection", "likelihood")
        code, said, remarks = cafe("fit", path, "-k", 2, *options)
        assert code == 0
        assert said.splitlines()[1].startswith("Warning: ")
        assert said.count("[collapsed]") == 1
        assert remarks == f"Read {path}: 200 rows, 3 columns\n"
        facts = json.loads(cafe("fit", path, "-k", 2, *options, "--json")[1])
        assert facts["remarks"] == []
        assert "collapsed" in {finding["code"] for finding in facts["diagnosis"]}

    def test_missing_values(self, cafe, tmp_path):
        frame = IRIS.drop(columns="target").assign(kind=["a", "b", "b"] * 50)
        frame.loc[[3, 5], "sepal_width"] = np.nan
        frame.loc[7, "kind"] = np.nan
        path = tmp_path / "holes.csv"
        frame.to_csv(path, index=False)
        model = tmp_path / "gaps.skops"
        assert cafe("fit", path, "-k", 3, "--model", model, *QUICK)[0] == 0
        encoded = load_model(model).encode(frame)
        assert encoded.loc[3, ["sepal_width"]].isna().all()
        assert encoded.loc[7, ["kind=a", "kind=b"]].isna().all()
        model = tmp_path / "m.skops"
        assert (
            cafe("fit", path, "-k", 3, "--impute", "median", "--model", model, *QUICK)[0] == 0
        )
        encoded = load_model(model).encode(frame)
        assert encoded.loc[3, "sepal_width"] == frame["sepal_width"].median()
        assert encoded.loc[7, ["kind=a", "kind=b"]].tolist() == [0, 1]

    def test_outputs_are_checked_before_computing(self, iris, cafe, tmp_path, monkeypatch):
        monkeypatch.setattr(CAFE, "fit", lambda *_: pytest.fail("computed"))
        old = tmp_path / "old.csv"
        old.write_text("keep")
        fit = ("fit", iris, "-k", 3, "--drop", "name")
        for options, message in [
            (("--out", old), "exists already"),
            (("--out", tmp_path / "no" / "f.csv"), "no does not exist"),
            (("--out", tmp_path / "f.xlsx"), "unsupported extension '.xlsx'; expected .csv"),
            (("--model", tmp_path), "it is a directory"),
            (("--out", iris, "--force"), "same file as the input file"),
            (("--out", tmp_path / "f.csv", "--report", tmp_path / "f.csv"), "same file as"),
            (("--extractor", "umap", "--model", tmp_path / "m.skops"), "cannot save"),
        ]:
            code, _, err = cafe(*fit, *options)
            assert code == 2, options
            assert message in err
        assert old.read_text() == "keep"
        assert "species" in iris.read_text()

    def test_report(self, iris, cafe, tmp_path):
        path = tmp_path / "report.html"
        fit = ("fit", iris, "-k", 3, "--id", "name", "--label", "species", *QUICK)
        assert cafe(*fit, "--report", path)[0] == 0
        assert "<html" in path.read_text(encoding="utf-8")
        assert cafe(*fit, "--report", path)[0] == 2
        assert cafe(*fit, "--report", path, "--force")[0] == 0

    def test_a_column_that_counts_is_left_out(self, cafe, tmp_path):
        path = tmp_path / "index.csv"
        IRIS.to_csv(path)  # with its index, under an empty name
        code, _, err = cafe("fit", path, "-k", 3, *QUICK)
        assert code == 0
        assert "'' (column 1) is now 'column 1'" in err
        assert "Left out: 'column 1' (identifier: row numbers from 0 to 149)" in err


class TestErrors:
    def test_one_line_and_exit_code_2(self, iris, cafe, tmp_path):
        for args, message in [
            (("fit", tmp_path / "no.csv", "-k", 2), "there is no file"),
            (("fit", tmp_path, "-k", 2), "is a directory"),
            (("fit", iris), "Missing option '-k'"),
            (("fit", iris, "-k", "two"), "-k needs a number of clusters (3), 'auto', a range"),
            (("fit", iris, "-k", 0), "got '0'"),
            (("fit", iris, "-k", "8-2"), "got '8-2'"),
            (("fit", iris, "-k", "2,"), "got '2,'"),
            (("fit", iris, "-k", "2-4,3"), "distinct numbers of clusters, got '2-4,3'"),
            (("fit", iris, "-k", 3, "--category", "name"), "'name' (150 in 150 rows)"),
            (("fit", iris, "-k", 3, "--drop", "nam"), "did you mean 'name'?"),
            (("fit", iris, "-k", 3, "--label", "specie"), "did you mean 'species'?"),
            (("fit", iris, "-k", 3, "--drop", "name", "--offset", "much"), "--offset needs"),
            (("fit", iris, "-k", 3, "--drop", "name", "--p", 0.5), "numbers above 1; got"),
            (("fit", iris, "-k", 3, "--p", "2,two"), "--p needs numbers, got 'two'"),
            (("fit", iris, "-k", 3, "--p", "2,"), "--p needs numbers, got ''"),
            (("fit", iris, "-k", 3, "--scaling", "none,x"), "range, standard, none, got 'x'"),
            (("fit", iris, "-k", 3, "--weighting", "x"), "cluster, uniform"),
            (
                ("fit", iris, "-k", 3, "--selection", "x"),
                "'mixture', 'likelihood', 'agreement'",
            ),
            (("fit", iris, "-k", 3, "--paper", "--p", 2), "--p 1.1,1.5,2,3, but --p 2 is"),
            (("fit", iris, "-k", 3, "--paper", "--scaling", "none"), "but --scaling none is"),
            (("fit", iris, "-k", 3, "--paper", "--n-init", 9), "--n-init 50, but --n-init 9"),
            (("fit", iris, "-k", 3, "--drop", "name", "--rescaling", "x"), "'rescaling' par"),
            (("fit", iris, "-k", 3, "--drop", "name", "-r", 99, *QUICK), "n_components <="),
            (("fit", iris, "-k", 3, "--delimiter", "ab"), "one character"),
            (("brew", iris), "No such command 'brew'"),
            (("explain", iris, iris, "--row", 1), "is not a model"),
        ]:
            code, out, err = cafe(*args, "--json") if args[0] != "brew" else cafe(*args)
            lines = [line for line in err.splitlines() if not line.startswith("remark")]
            assert code == 2, args
            assert out == ""
            assert len(lines) == 1
            assert message in lines[0]

    def test_our_own_failures_are_1(self, iris, cafe, monkeypatch):
        def fail(*_):
            raise RuntimeError("broken\nin two")

        monkeypatch.setattr(CAFE, "fit", fail)
        code, _, err = cafe("fit", iris, "-k", 3, "--drop", "name")
        assert code == 1
        read, *error = err.splitlines()
        assert read == f"Read {iris}: 150 rows, 9 columns"
        assert error == ["cafe fit: RuntimeError: broken in two (--debug shows where)"]
        code, _, err = cafe("fit", iris, "-k", 3, "--drop", "name", "--debug")
        assert code == 1
        assert "Traceback" in err

    def test_interrupted(self, iris, cafe, monkeypatch):
        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(CAFE, "fit", interrupt)
        code, out, err = cafe("fit", iris, "-k", 3, "--drop", "name", "--json")
        assert (code, out, err) == (130, "", "cafe fit: interrupted\n")

    def test_interrupted_where_exceptions_are_ignored(self, iris, cafe, monkeypatch):
        @ctypes.CFUNCTYPE(None)
        def callback():
            raise KeyboardInterrupt

        def fit(*_):
            callback()
            for _ in range(1000):
                time.sleep(0.01)
            raise AssertionError("nobody heard it")

        monkeypatch.setattr(CAFE, "fit", fit)
        hook = sys.unraisablehook
        code, out, err = cafe("fit", iris, "-k", 3, "--drop", "name", "--json")
        assert (code, out, err) == (130, "", "cafe fit: interrupted\n")
        assert sys.unraisablehook is hook

    def test_names_cannot_touch_the_terminal(self, cafe, tmp_path):
        frame = IRIS.drop(columns="target")
        frame.columns = ["\x1b[31mred", "[bold]x[/bold]", "<script>", '"quoted", \u202eback']
        path = tmp_path / "evil.csv"
        frame.to_csv(path, index=False)
        code, out, _ = cafe("fit", path, "-k", 3, *QUICK)
        assert code == 0
        assert "\x1b" not in out
        assert "\u202e" not in out
        for name in ("\\x1b[31mred", "[bold]x[/bold]", "<script>", '"quoted", \\u202eback'):
            assert name in out


class TestProcess:
    def run(self, *args, **options):
        return subprocess.run(
            [sys.executable, "-m", "cafelearn", *map(str, args)],
            capture_output=True,
            text=True,
            **options,
        )

    def test_streams_and_codes(self, iris):
        done = self.run("fit", iris, "-k", 3, "--drop", "name", "--json", *QUICK)
        assert done.returncode == 0
        assert json.loads(done.stdout)["p"] == 2
        assert done.stderr.startswith("remark:")
        done = self.run("fit", iris, "-k", 3, "--category", "name")
        assert done.returncode == 2
        assert "Traceback" not in done.stderr

    def test_a_narrow_encoding(self, iris, tmp_path):
        path = tmp_path / "greek.csv"
        IRIS.rename(columns={"sepal_width": "πλάτος"}).to_csv(path, index=False)
        env = os.environ | {"PYTHONIOENCODING": "ascii"}
        done = self.run("fit", path, "-k", 3, *QUICK, env=env)
        assert done.returncode == 0, done.stderr

    @pytest.mark.skipif(os.name == "nt", reason="signals are different on Windows")
    def test_ctrl_c(self, tmp_path):
        path = tmp_path / "large.csv"
        rng = np.random.default_rng(0)
        pd.DataFrame(rng.normal(size=(3000, 30))).add_prefix("v").to_csv(path, index=False)
        command = ["fit", path, "-k", "20", "--n-init", "5000", "--out", tmp_path / "f.csv"]
        process = subprocess.Popen(
            [sys.executable, "-m", "cafelearn", *map(str, command)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        process.stderr.readline()  # "Read ...": the fit begins
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 130
        assert err.splitlines()[-1] == "cafe fit: interrupted"
        assert list(tmp_path.iterdir()) == [path]

    def test_without_the_extra(self):
        code = (
            "import sys; sys.modules['typer'] = None\n"
            "from cafelearn.cli import main; sys.exit(main([]))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 1
        assert "pip install 'cafelearn[cli]'" in done.stderr


class TestPlace:
    @pytest.fixture
    def model(self, iris, cafe, tmp_path):
        path = tmp_path / "m.skops"
        fit = ("fit", iris, "-k", 3, "--id", "name", "--label", "species", *QUICK)
        assert cafe(*fit, "--model", path, "--out", tmp_path / "fitted.feather")[0] == 0
        return path

    def test_transform_gives_what_fit_gave(self, model, iris, cafe, tmp_path):
        for suffix in ("csv", "tsv.gz", "jsonl", "jsonl.gz", "parquet", "feather"):
            out = tmp_path / f"again.{suffix}"
            code, said, _ = cafe("transform", model, iris, "--out", out)
            assert code == 0
            assert "Wrote" in said
            again = read_table(out)
            fitted = pd.read_feather(tmp_path / "fitted.feather")
            if "sv" in suffix:  # text for spreadsheets
                fitted["name"] = "'" + fitted["name"]
            pd.testing.assert_frame_equal(again, fitted, check_dtype=False)

    def test_transform_of_other_tables(self, model, iris, cafe, tmp_path):
        table = read_table(iris).drop(columns="name").assign(extra=1)
        table.loc[0, "kind"] = "new"
        other, out = tmp_path / "other.csv", tmp_path / "out.csv"
        table.to_csv(other, index=False)
        code, _, err = cafe("transform", model, other, "--out", out)
        assert code == 0
        assert "columns that were not in the fit: 'extra'" in err
        assert "Column 'kind' has unknown categories in 1 row: 'new'" in err
        assert list(pd.read_csv(out))[:3] == ["row", "cluster", "margin"]
        table.drop(columns=["kind", "big"]).to_csv(other, index=False)
        code, _, err = cafe("transform", model, other, "--out", out, "--force")
        assert code == 2
        assert "'kind', 'big' are missing from the table" in err

    def test_explain(self, model, iris, cafe):
        code, said, _ = cafe("explain", model, iris, "--row", 70)
        assert code == 0
        assert "Row 70 is in cluster" in said
        assert "petal_width" in said
        assert re.search(r"Shares of the log ratio: \d+% for cluster \d", said)
        assert re.search(r"Probabilities \d\.\d+ and \S+, margin \d\.\d+; log ratio", said)
        assert re.search(r"petal_width .* [+-]\d+\.\d%", said)
        by_row, by_id = (
            json.loads(cafe("explain", model, iris, *which, "--json")[1])
            for which in (("--row", 70), ("--id", "=flower70"))
        )
        assert by_row["features"] == by_id["features"]
        share = by_row["first_probability"], by_row["second_probability"]
        assert by_row["log_ratio"] == pytest.approx(np.log(share[0] / share[1]), rel=1e-6)
        assert sum(abs(feature["share"]) for feature in by_row["features"]) == pytest.approx(1)

    def test_explain_needs_one_row(self, model, iris, cafe):
        for which, message in [
            ((), "either --row or --id"),
            (("--row", 1, "--id", "=flower1"), "either --row or --id"),
            (("--row", 150), "rows 0 to 149"),
            (("--id", "nobody"), "no row has this value"),
        ]:
            code, _, err = cafe("explain", model, iris, *which)
            assert code == 2
            assert message in err


def test_demo(cafe, tmp_path):
    code, said, _ = cafe("demo", "--out", tmp_path, "--json", "--jobs", 1)
    facts = json.loads(said)
    assert code == 0
    assert facts["ari"]["CAFE"] > 0.9 > 0.3 > max(facts["ari"]["PCA"], facts["ari"]["k-means"])
    for cultivar, blurred in facts["noise_pairs"].items():
        weights = facts["weights"][cultivar]
        clean = [weight for name, weight in weights.items() if name not in blurred]
        assert min(clean) > 2 * max(weights[name] for name in blurred)
    assert (tmp_path / "cafe-demo.html").stat().st_size > 10_000
    code, said, _ = cafe("demo", "--out", tmp_path, "--jobs", 1, "--force")
    assert code == 0
    assert "~~~~" in said
    assert "████" in said
    assert str(tmp_path / "cafe-demo.html") in said
    assert cafe("demo", "--out", tmp_path)[0] == 2


def test_many_columns(tmp_path, cafe):
    rng = np.random.default_rng(0)
    path = tmp_path / "wide.csv"
    frame = pd.DataFrame(rng.normal(size=(30, 10_000))).add_prefix("gene")
    frame.to_csv(path, index=False)
    hard = ("--n-init", 1, "--p", 2, "--selection", "likelihood")
    code, out, _ = cafe("fit", path, "-k", 2, "-r", 2, *hard, "--json")
    assert code == 0
    assert json.loads(out)["features"] == 10_000
