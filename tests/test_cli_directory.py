"""cafe fit on directories of Parquet files and on arrays, which need not fit into memory."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

from cafelearn.cli import large_fit, large_reading, main
from cafelearn.datasets import load
from cafelearn.persistence import load_model

distributed = pytest.importorskip("distributed")
pytest.importorskip("pyarrow")

IRIS = load("iris").frame.rename(columns={"target": "species"})
QUICK = ("--n-init", "2", "--p", "2", "--jobs", "2")


@pytest.fixture
def cafe(capsys):
    """Run the command; gives exit code, standard output and standard error."""

    def run(*args):
        code = main([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def table():
    return IRIS.assign(
        kind=np.where(np.arange(150) % 3, "a", "b"),
        big=IRIS.iloc[:, 0] > 6,
        same=1,
        name=[f"flower{i}" for i in range(150)],
    )


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Each row group is a part of its own."""
    monkeypatch.setattr(large_reading, "PARTITION", 1)


def write_parts(frame, folder, sizes=(70, 50, 30), groups=40):
    folder.mkdir()
    first = 0
    for i, size in enumerate(sizes):
        part = frame.iloc[first : first + size]
        part.to_parquet(folder / f"part.{i}.parquet", index=False, row_group_size=groups)
        first += size
    return folder


@pytest.fixture
def parts(table, tmp_path):
    return write_parts(table, tmp_path / "iris")


def written(folder):
    return pd.concat([pd.read_parquet(f) for f in sorted(folder.iterdir())], ignore_index=True)


class TestFit:
    def test_the_same_as_of_one_file(self, table, parts, cafe, tmp_path):
        single = tmp_path / "iris.parquet"
        table.to_parquet(single)
        columns = ("--label", "species", "--id", "name", "--drop", "big")
        outputs = ("--out", tmp_path / "features", "--model", tmp_path / "model.skops")
        code, said, remarks = cafe("fit", parts, "-k", 3, "-r", 2, *QUICK, *columns, *outputs)
        assert code == 0, remarks
        assert "150 rows, 9 columns, to be read in 5 parts" in said
        assert "Left out, because they do not vary: 'same'" in remarks
        outputs = ("--out", tmp_path / "single.parquet", "--model", tmp_path / "single.skops")
        code, here, _ = cafe("fit", single, "-k", 3, "-r", 2, *QUICK, *columns, *outputs)
        assert code == 0
        # From the exponent to the doubtful rows the words are the same.
        assert said.splitlines()[2:-2] == here.splitlines()[2:-2]
        files = sorted(file.name for file in (tmp_path / "features").iterdir())
        assert files == [f"part-0000{i}.parquet" for i in range(5)]
        there, here = (
            written(tmp_path / "features"),
            pd.read_parquet(tmp_path / "single.parquet"),
        )
        assert list(there) == ["name", "cluster", "margin", "cafe0", "cafe1"]
        pd.testing.assert_frame_equal(there, here, rtol=1e-9)
        one, other = load_model(tmp_path / "model.skops"), load_model(tmp_path / "single.skops")
        np.testing.assert_allclose(one.transform(table), other.transform(table), atol=1e-9)
        assert not hasattr(one, "labels_")
        assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]

    def test_json_and_numbered_rows(self, parts, cafe, tmp_path):
        out = tmp_path / "features.parquet"
        code, said, _ = cafe(
            *("fit", parts, "-k", 3, *QUICK, "--drop", "name", "--label", "species"),
            *("--json", "--out", out),
        )
        facts = json.loads(said)
        assert code == 0
        assert facts["data"]["rows"] == 150
        assert facts["data"]["parts"] == 5
        assert sum(cluster["rows"] for cluster in facts["clusters"]) == 150
        assert set(facts["label"]) == {"column", "rows", "ari", "nmi"}
        assert facts["files"] == {"features": str(out)}
        features = written(out)
        np.testing.assert_array_equal(features["row"], range(150))
        counts = features["cluster"].value_counts().sort_index()
        assert [cluster["rows"] for cluster in facts["clusters"]] == counts.tolist()
        lowest = features.nsmallest(5, "margin")
        lowest = lowest[lowest["margin"] < 0.1]
        assert [row["row"] for row in facts["doubtful"]["lowest"]] == lowest["row"].tolist()

    def test_quiet(self, parts, cafe):
        code, out, err = cafe("fit", parts, "-k", 2, *QUICK, "--drop", "name", "--quiet")
        assert (code, out, err) == (0, "", "")

    def test_rows_without_a_class_do_not_count(self, table, cafe, tmp_path):
        table.loc[:9, "species"] = None
        folder = write_parts(table, tmp_path / "iris")
        code, out, _ = cafe(
            "fit", folder, "-k", 3, *QUICK, "--drop", "name", "--label", "species", "--json"
        )
        assert code == 0
        assert json.loads(out)["label"]["rows"] == 140

    def test_small_row_groups_are_read_together(self, parts, cafe, monkeypatch):
        monkeypatch.setattr(large_reading, "PARTITION", 2**20)
        code, out, _ = cafe("fit", parts, "-k", 2, *QUICK, "--drop", "name")
        assert code == 0
        assert "150 rows, 9 columns, to be read in 1 part\n" in out

    def test_large_row_groups_are_pointed_out(self, parts, cafe, monkeypatch):
        monkeypatch.setattr(large_reading, "LARGE", 100)
        code, _, err = cafe("fit", parts, "-k", 2, *QUICK, "--drop", "name")
        assert code == 0
        assert "remark: Row groups of up to" in err

    def test_the_report_is_of_a_sample(self, parts, cafe, tmp_path, monkeypatch):
        monkeypatch.setattr(large_fit, "REPORT_ROWS", 60)
        report = tmp_path / "report.html"
        code, out, err = cafe(
            *("fit", parts, "-k", 3, *QUICK, "--id", "name", "--label", "species"),
            *("--report", report, "--json"),
        )
        assert code == 0, err
        assert json.loads(out)["report_rows"] == 60
        text = report.read_text()
        assert "3 clusters in 150 rows" in text
        assert "from a sample of 60 rows" in text
        assert "about all rows of the fit" in text

    def test_the_report_of_few_rows_is_of_all(self, parts, cafe, tmp_path):
        report = tmp_path / "report.html"
        code, _, err = cafe("fit", parts, "-k", 3, *QUICK, "--drop", "name", "--report", report)
        assert code == 0, err
        assert "sample of" not in report.read_text()
        assert "Claims of the theory on the model" in report.read_text()

    def test_columns_in_another_order(self, table, parts, cafe, tmp_path):
        table[table.columns[::-1]].iloc[:70].to_parquet(parts / "part.0.parquet", index=False)
        outputs = ("--out", tmp_path / "features")
        code, _, err = cafe("fit", parts, "-k", 2, *QUICK, "--id", "name", *outputs)
        assert code == 0, err
        assert written(tmp_path / "features")["name"].tolist() == table["name"].tolist()

    def test_an_index_without_a_name_is_left_out(self, table, cafe, tmp_path):
        (tmp_path / "iris").mkdir()
        table.sample(frac=1, random_state=0).to_parquet(tmp_path / "iris" / "a.parquet")
        code, out, err = cafe(
            "fit", tmp_path / "iris", "-k", 2, *QUICK, "--drop", "name", "--json"
        )
        assert code == 0
        assert json.loads(out)["data"]["columns"] == 9
        assert "The index of the table has no name" in err

    def test_files_are_read_in_the_order_of_their_numbers(self, table, cafe, tmp_path):
        folder = write_parts(table, tmp_path / "iris", sizes=(10,) * 15)
        outputs = ("--out", tmp_path / "features")
        code, _, _ = cafe("fit", folder, "-k", 2, *QUICK, "--id", "name", *outputs)
        assert code == 0
        assert written(tmp_path / "features")["name"].tolist() == table["name"].tolist()

    @pytest.mark.parametrize("kind", ["npy", "zarr"])
    def test_arrays(self, cafe, tmp_path, kind):
        X = IRIS.iloc[:, :4].to_numpy()
        path = tmp_path / f"rows.{kind}"
        if kind == "npy":
            np.save(path, X)
        else:
            zarr = pytest.importorskip("zarr")
            zarr.open_array(path, mode="w", shape=X.shape, chunks=(40, 2), dtype="f8")[:] = X
        out = tmp_path / "features"
        code, said, err = cafe("fit", path, "-k", 3, *QUICK, "--json", "--out", out)
        assert code == 0, err
        top = json.loads(said)["clusters"][0]["top_features"]
        assert {feature["feature"] for feature in top} == {"x0", "x1", "x2", "x3"}
        assert len(written(out)) == 150


class TestCluster:
    def test_scheduler(self, parts, cafe, tmp_path):
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster:
            outputs = ("--out", tmp_path / "there", "--scheduler", cluster.scheduler_address)
            code, there, err = cafe("fit", parts, "-k", 3, *QUICK, "--id", "name", *outputs)
            assert code == 0, err
        outputs = ("--out", tmp_path / "here")
        code, here, _ = cafe("fit", parts, "-k", 3, *QUICK, "--id", "name", *outputs)
        assert there.splitlines()[2:-1] == here.splitlines()[2:-1]
        pd.testing.assert_frame_equal(
            written(tmp_path / "there"), written(tmp_path / "here"), rtol=1e-9
        )

    def test_nobody_answers(self, parts, cafe, monkeypatch):
        monkeypatch.setattr(large_fit, "SECONDS", 1)
        code, out, err = cafe("fit", parts, "-k", 3, "--scheduler", "tcp://127.0.0.1:9")
        assert (code, out) == (2, "")
        assert err == (
            "cafe fit: --scheduler tcp://127.0.0.1:9: no Dask scheduler answers there.\n"
        )

    def test_no_workers(self, parts, cafe, monkeypatch):
        monkeypatch.setattr(large_fit, "SECONDS", 1)
        with distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster:
            code, _, err = cafe("fit", parts, "-k", 3, "--scheduler", cluster.scheduler_address)
        assert code == 2
        assert err.endswith("the cluster has no workers.\n")

    def test_one_file_needs_no_cluster(self, table, cafe, tmp_path):
        table.to_csv(tmp_path / "iris.csv")
        code, _, err = cafe("fit", tmp_path / "iris.csv", "-k", 3, "--scheduler", "tcp://a:1")
        assert code == 2
        assert "--scheduler needs a directory" in err


class TestOutput:
    @pytest.fixture
    def fit(self, parts, cafe):
        def run(out, *more):
            return cafe("fit", parts, "-k", 2, *QUICK, "--drop", "name", "--out", out, *more)

        return run

    def test_force(self, fit, tmp_path):
        out = tmp_path / "features"
        assert fit(out)[0] == 0
        before = written(out)
        (out / "part-00077.parquet").write_bytes(b"of an older fit")
        code, _, err = fit(out)
        assert code == 2
        assert "exists already. Use --force" in err
        assert fit(out, "--force")[0] == 0
        pd.testing.assert_frame_equal(written(out), before)

    def test_what_is_no_directory_of_features_is_never_replaced(self, fit, tmp_path):
        out = tmp_path / "features"
        out.mkdir()
        (out / "thesis.doc").write_text("years of work")
        code, _, err = fit(out, "--force")
        assert code == 2
        assert "is no directory of .parquet files" in err
        assert (out / "thesis.doc").read_text() == "years of work"

    def test_the_data_is_never_replaced(self, fit, parts, tmp_path):
        for out in (parts, tmp_path):
            code, _, err = fit(out, "--force")
            assert code == 2
            assert "is where the data is read from" in err
        assert len(list(parts.iterdir())) == 3

    def test_other_formats(self, fit, tmp_path):
        code, _, err = fit(tmp_path / "features.csv")
        assert code == 2
        assert "directory of Parquet files" in err

    @pytest.mark.parametrize("old", [False, True])
    def test_interrupted(self, fit, tmp_path, monkeypatch, old):
        out = tmp_path / "features"
        if old:
            assert fit(out)[0] == 0
            before = written(out)
        survey = large_fit._survey_part

        def failing(frame, estimator, first, label, path):
            if first == 70:
                raise OSError("no space left")
            return survey(frame, estimator, first, label, path)

        monkeypatch.setattr(large_fit, "_survey_part", failing)
        code, _, err = fit(out, "--force")
        assert code == 1
        assert "no space left" in err
        left = [path.name for path in tmp_path.iterdir() if path.name != "iris"]
        assert left == (["features"] if old else [])
        if old:
            pd.testing.assert_frame_equal(written(out), before)


class TestRefusals:
    @pytest.fixture
    def refused(self, cafe):
        """The one line that a command says when it refuses."""

        def run(path, *more):
            code, out, err = cafe("fit", path, "-k", 2, *QUICK, *more)
            assert code == 2, (out, err)
            assert err.startswith("cafe fit: ")
            assert err.count("\n") == 1
            return err

        return run

    def test_empty_directory(self, refused, tmp_path):
        assert "is an empty directory" in refused(tmp_path)

    def test_no_parquet_files(self, refused, tmp_path):
        (tmp_path / "words.txt").write_text("hello")
        assert "without Parquet files (.parquet, .parq, .pq)." in refused(tmp_path)

    def test_parquet_files_below(self, refused, parts, tmp_path):
        assert "There are some in 'iris'; give one of these." in refused(tmp_path)

    def test_other_columns(self, refused, table, parts):
        table.drop(columns="kind").iloc[:5].to_parquet(parts / "part.3.parquet")
        assert "part.3.parquet lacks 'kind', compared with part.0.parquet" in refused(parts)
        table.assign(new=1).iloc[:5].to_parquet(parts / "part.3.parquet")
        assert "part.3.parquet also has 'new'" in refused(parts)

    def test_other_types(self, refused, table, parts):
        table.assign(same="1").iloc[:5].to_parquet(parts / "part.3.parquet")
        assert "'same' (" in refused(parts)

    def test_a_file_cut_off(self, refused, parts):
        file = parts / "part.1.parquet"
        file.write_bytes(file.read_bytes()[:-100])
        assert "part.1.parquet cannot be read as parquet" in refused(parts)

    def test_no_rows(self, refused, table, tmp_path):
        folder = write_parts(table.iloc[:0], tmp_path / "iris", sizes=(0, 0))
        assert "has Parquet files but no rows" in refused(folder)

    def test_missing_values(self, refused, table, tmp_path):
        table.loc[[3, 120], "kind"] = None
        table.loc[[1, 77, 140], "sepal_width"] = np.nan
        folder = write_parts(table, tmp_path / "iris")
        words = refused(folder, "--drop", "name")
        assert "'sepal_width' has 3, 'kind' has 2" in words
        assert "needs the table in memory" in refused(
            folder, "--drop", "name", "--impute", "median"
        )

    def test_too_many_words(self, refused, parts):
        words = refused(parts)
        assert "few distinct values, got 'name' (more than 100 in 150 rows)" in words

    def test_unusable_columns(self, refused, table, tmp_path):
        table["day"] = pd.Timestamp("2020-01-01")
        folder = write_parts(table, tmp_path / "iris")
        assert "got 'day' (datetime64" in refused(folder, "--drop", "name")

    def test_names_of_columns(self, refused, parts):
        assert "--label 'spices': there is no such column" in refused(
            parts, "--label", "spices"
        )
        assert "--id 'nam': there is no such column" in refused(parts, "--id", "nam")

    def test_a_label_that_is_no_class(self, refused, parts, monkeypatch):
        monkeypatch.setattr(large_fit, "MOST_CLASSES", 10)
        assert "--label 'name' needs fewer than 10 classes" in refused(parts, "--label", "name")

    def test_arrays(self, refused, tmp_path):
        path = tmp_path / "rows.npy"
        np.save(path, np.zeros(3))
        assert "2 dimensions" in refused(path)
        np.save(path, np.array([["a", "b"]]))
        assert "needs numbers" in refused(path)
        np.save(path, np.zeros((0, 3)))
        assert "has no rows" in refused(path)
        path.write_bytes(b"nothing")
        assert "cannot be read as an array" in refused(path)
        assert "there is no file" in refused(tmp_path / "none.npy")
        (tmp_path / "rows.zarr").mkdir()
        assert "cannot be read as a Zarr array" in refused(tmp_path / "rows.zarr")

    def test_without_dask(self, parts, cafe, monkeypatch):
        monkeypatch.setitem(sys.modules, "dask.dataframe", None)
        code, _, err = cafe("fit", parts, "-k", 2)
        assert code == 1
        assert "pip install 'cafelearn[dask]'" in err
