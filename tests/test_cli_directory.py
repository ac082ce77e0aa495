"""cafe on directories of Parquet files and on arrays, for data larger than memory."""

import json
import re
import sys
import time
from threading import Event

import numpy as np
import pandas as pd
import pytest

from cafelearn.base import progress as _progress
from cafelearn.cli import large
from cafelearn.cli import parts as placing
from cafelearn.datasets import load
from cafelearn.persistence import load_model

distributed = pytest.importorskip("distributed")
pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

IRIS = load("iris").frame.rename(columns={"target": "species"})
NUMBERS = re.compile(r"\b\d+\b")
QUICK = ("--n-init", "2", "--p", "2", "--jobs", "2")


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
    monkeypatch.setattr(large, "PARTITION", 1)


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
    def test_dates_and_identifiers(self, table, cafe, tmp_path):
        days = pd.to_timedelta(np.arange(150) % 40, "D")
        folder = write_parts(table.assign(day=pd.Timestamp("2020") + days), tmp_path / "iris")
        code, _, err = cafe("fit", folder, "-k", 1, *QUICK)
        assert code == 0, err
        assert "Left out: 'name' (identifier: 150 distinct values in 150 rows)" in err
        assert "Converted dates to days since 1970-01-01, and durations to days: 'day'" in err

    def test_the_same_as_of_one_file(self, table, parts, cafe, tmp_path):
        single = tmp_path / "iris.parquet"
        table.to_parquet(single)
        columns = ("--label", "species", "--id", "name", "--drop", "big")
        outputs = ("--out", tmp_path / "features", "--model", tmp_path / "model.skops")
        code, said, remarks = cafe("fit", parts, "-k", 3, "-r", 2, *QUICK, *columns, *outputs)
        assert code == 0, remarks
        found, *remarks = remarks.splitlines()
        assert found.endswith("150 rows, 9 columns, to be read in 5 parts")
        assert remarks == ["remark: Left out as constant: 'same'."]
        outputs = ("--out", tmp_path / "single.parquet", "--model", tmp_path / "single.skops")
        code, here, _ = cafe("fit", single, "-k", 3, "-r", 2, *QUICK, *columns, *outputs)
        assert code == 0
        # From the chosen candidate to the doubtful rows the words are the same.
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

    def test_the_same_candidates_as_of_one_file(self, table, parts, cafe, tmp_path):
        path = tmp_path / "iris.parquet"
        table.to_parquet(path, index=False)
        options = ("-k", 3, "--n-init", 2, "--drop", "name", "--label", "species", "--json")
        tried = ("--p", "1.5,2", "--weighting", "cluster,uniform", "--scaling", "none,range")
        here, there = (
            json.loads(cafe("fit", data, *options, *tried)[1]) for data in (path, parts)
        )
        assert len(here["candidates"]) == len(there["candidates"])
        for one, other in zip(here["candidates"], there["candidates"], strict=True):
            assert one == pytest.approx(other)
        assert here["chosen"] == pytest.approx(there["chosen"])
        codes = [[finding["code"] for finding in facts["diagnosis"]] for facts in (here, there)]
        assert codes[0] == codes[1]

    def test_missing_values_are_kept_as_in_one_file(self, table, cafe, tmp_path):
        table.loc[[3, 120], "kind"] = None
        table.loc[[1, 77, 140], "sepal_width"] = np.nan
        table.loc[:39, "petal_length"] = np.nan  # all of the first row group
        table.to_parquet(tmp_path / "iris.parquet")
        folder, found = write_parts(table, tmp_path / "iris"), []
        for data in (folder, tmp_path / "iris.parquet"):
            out = tmp_path / f"features-{len(found)}.parquet"
            fit = ("fit", data, "-k", 3, "-r", 2, *QUICK, "--drop", "name", "--out", out)
            code, said, err = cafe(*fit, "--label", "species", "--json")
            assert code == 0, err
            features = written(out) if out.is_dir() else pd.read_parquet(out)
            found.append((json.loads(said), features))
        (there, lazily), (here, at_once) = found
        assert there["label"] == pytest.approx(here["label"])
        tried = [pd.DataFrame(facts["candidates"]) for facts in (there, here)]
        pd.testing.assert_frame_equal(*tried, rtol=1e-8)
        pd.testing.assert_frame_equal(lazily, at_once, atol=1e-8)

    def test_paper(self, parts, cafe):
        fit = ("fit", parts, "-k", 3, "--drop", "name", "--label", "species", "--paper")
        code, said, _ = cafe(*fit)
        assert code == 0
        assert "Chose 1 of 4 candidates by agreement: range scaling" in said
        assert cafe(*fit, "--p", 2)[0] == 2

    def test_quiet(self, parts, cafe):
        code, out, err = cafe("fit", parts, "-k", 1, *QUICK, "--drop", "name", "--quiet")
        assert (code, out, err) == (0, "", "")

    def test_rows_without_a_class_do_not_count(self, table, cafe, tmp_path):
        table.loc[:9, "species"] = None
        folder = write_parts(table, tmp_path / "iris")
        code, out, _ = cafe(
            "fit", folder, "-k", 1, *QUICK, "--drop", "name", "--label", "species", "--json"
        )
        assert code == 0
        assert json.loads(out)["label"]["rows"] == 140

    def test_small_row_groups_are_read_together(self, parts, cafe, monkeypatch):
        monkeypatch.setattr(large, "PARTITION", 2**20)
        code, _, err = cafe("fit", parts, "-k", 1, *QUICK, "--drop", "name")
        assert code == 0
        assert "150 rows, 9 columns, to be read in 1 part\n" in err

    def test_the_report_is_of_a_sample(self, parts, cafe, tmp_path, monkeypatch):
        monkeypatch.setattr(placing, "REPORT_ROWS", 60)
        report = tmp_path / "report.html"
        code, out, err = cafe(
            *("fit", parts, "-k", 3, *QUICK, "--id", "name", "--label", "species"),
            *("--report", report, "--json"),
        )
        assert code == 0, err
        assert json.loads(out)["report_rows"] == 60
        text = report.read_text()
        assert "3 clusters to 150 rows" in text
        assert "from a sample of 60 rows" in text
        assert "about all rows of the fit" in text

    def test_the_report_of_few_rows_is_of_all(self, parts, cafe, tmp_path):
        report = tmp_path / "report.html"
        code, _, err = cafe("fit", parts, "-k", 3, *QUICK, "--drop", "name", "--report", report)
        assert code == 0, err
        assert "sample of" not in report.read_text()
        assert "Claims of the theory on the start" in report.read_text()

    def test_columns_in_another_order(self, table, parts, cafe, tmp_path):
        table[table.columns[::-1]].iloc[:70].to_parquet(parts / "part.0.parquet", index=False)
        outputs = ("--out", tmp_path / "features")
        code, _, err = cafe("fit", parts, "-k", 1, *QUICK, "--id", "name", *outputs)
        assert code == 0, err
        assert written(tmp_path / "features")["name"].tolist() == table["name"].tolist()

    def test_an_index_without_a_name_is_left_out(self, table, cafe, tmp_path):
        (tmp_path / "iris").mkdir()
        table.sample(frac=1, random_state=0).to_parquet(tmp_path / "iris" / "a.parquet")
        code, out, err = cafe(
            "fit", tmp_path / "iris", "-k", 1, *QUICK, "--drop", "name", "--json"
        )
        assert code == 0
        assert json.loads(out)["data"]["columns"] == 9
        assert "The index of the table has no name" in err

    def test_files_are_read_in_the_order_of_their_numbers(self, table, cafe, tmp_path):
        folder = write_parts(table, tmp_path / "iris", sizes=(10,) * 15)
        outputs = ("--out", tmp_path / "features")
        code, _, _ = cafe("fit", folder, "-k", 1, *QUICK, "--id", "name", *outputs)
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
        code, said, err = cafe("fit", path, "-k", 1, *QUICK, "--json", "--out", out)
        assert code == 0, err
        top = json.loads(said)["clusters"][0]["top_features"]
        assert {feature["feature"] for feature in top} == {"x0", "x1", "x2", "x3"}
        assert len(written(out)) == 150


class TestTransform:
    @pytest.fixture
    def model(self, table, cafe, tmp_path):
        def fit(*options, data=None):
            path = tmp_path / "model.skops"
            table.to_parquet(tmp_path / "fitted.parquet")
            outputs = ("--model", path, "--force")
            data = data or tmp_path / "fitted.parquet"
            code, _, err = cafe("fit", data, "-k", 3, "-r", 2, *QUICK, *options, *outputs)
            assert code == 0, err
            return path

        return fit

    @pytest.fixture
    def both(self, cafe, tmp_path):
        """Return the output for a table in one file and for the same table in several."""

        def run(model, frame, *more):
            single, folder = tmp_path / "new.parquet", write_parts(frame, tmp_path / "new")
            frame.to_parquet(single, index=False)
            outs = tmp_path / "single.parquet", tmp_path / "features"
            for data, out in zip((single, folder), outs, strict=True):
                code, said, err = cafe("transform", model, data, "--out", out, *more)
                said, err = said.splitlines()[:-1], err.splitlines()[1:]
                yield code, said, err, out

        return run

    @pytest.fixture
    def same(self, both):
        def run(model, frame, *more):
            here, there = both(model, frame, *more)
            assert here[:2] == there[:2]
            assert there[0] == 0
            # A remark that counts rows is about one of the parts.
            assert [NUMBERS.split(line)[0] for line in here[2]] == [
                NUMBERS.split(line)[0] for line in there[2]
            ]
            one, other = pd.read_parquet(here[3]), written(there[3])
            pd.testing.assert_frame_equal(one, other, rtol=1e-9)
            # The parts fit together.
            assert len(pd.read_parquet(there[3])) == len(one)
            return other, "\n".join(there[2])

        return run

    NAMED = ("--id", "name", "--label", "species")

    def test_as_in_the_fit(self, model, table, same):
        features, remarks = same(model(*self.NAMED), table)
        assert list(features) == ["name", "cluster", "margin", "cafe0", "cafe1"]
        assert features["name"].tolist() == table["name"].tolist()
        assert remarks == ""

    def test_after_a_fit_to_parts(self, model, parts, cafe, tmp_path):
        fitted = model("--id", "name", "--out", tmp_path / "fitted", data=parts)
        code, _, err = cafe("transform", fitted, parts, "--out", tmp_path / "features")
        assert code == 0, err
        pd.testing.assert_frame_equal(
            written(tmp_path / "features"), written(tmp_path / "fitted")
        )

    def test_other_columns(self, model, table, same):
        new = table[table.columns[::-1]].drop(columns=["name", "species"])
        features, remarks = same(model(*self.NAMED), new.assign(extra=1))
        assert features["row"].tolist() == list(range(150))
        assert remarks == "remark: Ignoring columns that were not in the fit: 'extra'."

    def test_other_names(self, model, table, same):
        # Whole numbers become others where one is missing, and nothing where all are.
        new = table.assign(number=pd.array(range(150), dtype="Int64"))
        new.loc[[3, *range(120, 150)], "number"] = None
        features, _ = same(model(*self.NAMED), new, "--id", "number")
        assert features["number"].count() == 119

    def test_missing_names_among_large_ones(self, model, table, same, tmp_path):
        new = table.assign(number=pd.array(range(2**53 + 1, 2**53 + 151), dtype="Int64"))
        new.loc[3, "number"] = None
        same(model(*self.NAMED), new, "--id", "number")
        parts = map(parquet.read_table, sorted((tmp_path / "features").iterdir()))
        names = pa.concat_tables(parts)["number"].to_pylist()
        assert names == [None if i == 3 else 2**53 + 1 + i for i in range(150)]

    @pytest.mark.parametrize("impute", [(), ("--impute", "median")])
    def test_values_that_were_not_there(self, model, table, same, impute):
        new = table.copy()
        new.loc[[4, 5, 80, 81, 149], "kind"] = ["n", "p", "n", "m", "o"]
        new["sepal_width"] = new["sepal_width"].astype(str)
        if impute:
            new.loc[[0, 60], "petal_width"] = None
            new.loc[[1, 100], "kind"] = None
        _, remarks = same(model(*self.NAMED, *impute), new)
        assert "Column 'kind' has unknown categories in " in remarks
        assert remarks.endswith("They are encoded as zeros. Other parts may have others.")

    def test_what_every_part_warns_of(self, model, table, both):
        fitted = model(*self.NAMED, "--extractor", "nmf")
        _, (code, _, remarks, _) = both(fitted, table.assign(sepal_width=-9.0))
        assert code == 0
        assert len(remarks) == 1
        assert remarks[0].endswith("treated as this minimum.")

    @pytest.mark.parametrize(("kind", "dtype"), [("npy", "f8"), ("npy", "f4"), ("zarr", "f8")])
    def test_arrays(self, model, cafe, tmp_path, kind, dtype):
        X = IRIS.iloc[:, :4].to_numpy(dtype)
        single, path = tmp_path / "rows.parquet", tmp_path / f"rows.{kind}"
        frame = pd.DataFrame(X, columns=["x0", "x1", "x2", "x3"])
        frame.astype("f8").to_parquet(single)
        fitted, outs = model(data=single), (tmp_path / "a.parquet", tmp_path / "a")
        frame.to_parquet(single)
        if kind == "npy":
            np.save(path, X)
        else:
            zarr = pytest.importorskip("zarr")
            zarr.open_array(path, mode="w", shape=X.shape, chunks=(40, 2), dtype=dtype)[:] = X
        for data, out in zip((single, path), outs, strict=True):
            code, _, err = cafe("transform", fitted, data, "--out", out)
            assert code == 0, err
        here, there = pd.read_parquet(outs[0]), written(outs[1])
        pd.testing.assert_frame_equal(there, here, rtol=1e-9 if dtype == "f8" else 1e-4)

    def test_json_and_quiet(self, model, parts, cafe, tmp_path):
        fitted, out = model(*self.NAMED), tmp_path / "features"
        code, said, _ = cafe("transform", fitted, parts, "--out", out, "--json")
        facts, counts = json.loads(said), written(out)["cluster"].value_counts().sort_index()
        assert code == 0
        assert facts["data"] == {"path": str(parts), "rows": 150, "columns": 9, "parts": 5}
        assert facts["clusters"] == [{"cluster": l, "rows": n} for l, n in counts.items()]
        assert facts["files"] == {"features": str(out)}
        said = cafe("transform", fitted, parts, "--out", out, "--force", "--quiet")
        assert said == (0, "", "")

    def test_progress(self, model, parts, cafe, tmp_path, monkeypatch):
        fitted = model(*self.NAMED)
        monkeypatch.setattr(_progress, "SECONDS", 0)
        _, _, err = cafe("transform", fitted, parts, "--out", tmp_path / "features")
        assert err.splitlines()[1:] == [f"parts: {i} of 5" for i in range(1, 6)]

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"drop": ["kind", "big"]}, "'kind', 'big' are missing from the table"),
            (
                {"sepal_width": np.inf, "missing": "big"},
                "got infinite values (inf) in 'sepal_width' (",
            ),
            ({"sepal_width": "wide", "missing": "kind"}, "'sepal_width', got 'wide'"),
            ({"sepal_width": "name"}, "'sepal_width', got 'flower"),
            ({"id": "nam"}, "--id 'nam': there is no such column"),
        ],
    )
    def test_refusals(self, model, table, both, tmp_path, changes, message):
        new = table.drop(columns=changes.get("drop", []))
        if "sepal_width" in changes:
            new["sepal_width"] = new.get(changes["sepal_width"], changes["sepal_width"])
        if "missing" in changes:
            new.loc[[1, 77, 140], "sepal_width"] = None
            new[changes["missing"]] = new[changes["missing"]].where(~new.index.isin([3, 120]))
        more = ("--id", changes["id"]) if "id" in changes else ()
        here, there = both(model(*self.NAMED), new, *more)
        # An error is about the part in which it occurs.
        for code, said, errors, _ in (here, there):
            assert (code, said) == (2, [])
            assert len(errors) == 1
            assert message in errors[0]
        assert not [path for path in tmp_path.iterdir() if "features" in path.name]

    def test_outputs(self, model, table, parts, cafe, tmp_path):
        fitted, out = model(*self.NAMED), tmp_path / "features"
        for where, message in (
            (parts, "is or contains the data to read"),
            (tmp_path, "is or contains the data to read"),
            (fitted, "its name must end in .parquet, .parq or .pq, or have no extension"),
            (tmp_path / "features.csv", ".parq or .pq, or have no extension"),
        ):
            code, _, err = cafe("transform", fitted, parts, "--out", where, "--force")
            assert code == 2
            assert message in err
        for code, more in ((0, ()), (2, ()), (0, ("--force",))):
            assert cafe("transform", fitted, parts, "--out", out, *more)[0] == code
        single = tmp_path / "fitted.parquet"
        for more, message in (
            (("--scheduler", "tcp://a:1"), "--scheduler needs a directory"),
            (("--jobs", 0), "'--jobs' / '-j': needs a number >= 1, or -1"),
        ):
            outputs = ("--out", tmp_path / "a.csv")
            code, _, err = cafe("transform", fitted, single, *outputs, *more)
            assert code == 2
            assert message in err

    @pytest.mark.parametrize("old", [False, True])
    @pytest.mark.parametrize("failure", [OSError("no space left"), KeyboardInterrupt()])
    def test_interrupted(self, model, parts, cafe, tmp_path, monkeypatch, failure, old):
        fitted, out = model(*self.NAMED), tmp_path / "features"
        if old:
            assert cafe("transform", fitted, parts, "--out", out)[0] == 0
            before = written(out)
        place, begun, ended = placing._place_part, Event(), Event()

        def failing(frame, first, *more):
            if first == 40:
                assert begun.wait(10)
                raise failure
            begun.set()
            time.sleep(0.2)  # it is still at work when the other fails
            try:
                return place(frame, first, *more)
            finally:
                ended.set()

        monkeypatch.setattr(placing, "_place_part", failing)
        code, said, err = cafe("transform", fitted, parts, "--out", out, "--force", "-j", 2)
        assert ended.wait(10)
        is_interrupt = isinstance(failure, KeyboardInterrupt)
        assert (code, said) == (130 if is_interrupt else 1, "")
        words = "interrupted" if is_interrupt else "no space left"
        assert err.splitlines()[1:] == [f"cafe transform: {words}"]
        left = {path.name for path in tmp_path.iterdir()}
        assert left == {"iris", "fitted.parquet", "model.skops", *(["features"] if old else [])}
        if old:
            pd.testing.assert_frame_equal(written(out), before)


class TestCluster:
    def test_scheduler(self, table, parts, cafe, tmp_path, monkeypatch):
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0"
        ) as cluster:
            scheduler = ("--scheduler", cluster.scheduler_address)
            outputs = ("--out", tmp_path / "there", "--model", tmp_path / "model.skops")
            code, there, err = cafe(
                "fit", parts, "-k", 3, *QUICK, "--id", "name", *outputs, *scheduler
            )
            assert code == 0, err
            table["kind"] = np.where(np.arange(150) % 50, table["kind"], "new")
            outputs = ("--out", tmp_path / "placed", *scheduler)
            new = write_parts(table, tmp_path / "new")
            monkeypatch.setattr(_progress, "SECONDS", 0)
            code, _, err = cafe("transform", tmp_path / "model.skops", new, *outputs)
            assert code == 0, err
            table.loc[[1, 149], "petal_width"] = np.inf
            new = write_parts(table, tmp_path / "bad")
            outputs = ("--out", tmp_path / "refused", *scheduler)
            code, _, err = cafe("transform", tmp_path / "model.skops", new, *outputs)
            assert code == 2
            assert "(inf) in 'petal_width' (1)." in err
            assert not [path for path in tmp_path.iterdir() if "refused" in path.name]
        single = tmp_path / "new.parquet"
        written(tmp_path / "new").to_parquet(single)
        outputs = ("--out", tmp_path / "placed.parquet")
        assert cafe("transform", tmp_path / "model.skops", single, *outputs)[0] == 0
        pd.testing.assert_frame_equal(
            written(tmp_path / "placed"), pd.read_parquet(outputs[1]), rtol=1e-9
        )
        outputs = ("--out", tmp_path / "here")
        code, here, _ = cafe("fit", parts, "-k", 3, *QUICK, "--id", "name", *outputs)
        assert there.splitlines()[2:-2] == here.splitlines()[2:-1]
        pd.testing.assert_frame_equal(
            written(tmp_path / "there"), written(tmp_path / "here"), rtol=1e-9
        )

    def test_nobody_answers(self, parts, cafe, monkeypatch):
        monkeypatch.setattr(placing, "SECONDS", 1)
        code, out, err = cafe("fit", parts, "-k", 3, "--scheduler", "tcp://127.0.0.1:9")
        assert (code, out) == (2, "")
        assert err == (
            "cafe fit: --scheduler tcp://127.0.0.1:9: cannot connect to a Dask scheduler.\n"
        )

    def test_no_workers(self, parts, cafe, monkeypatch):
        monkeypatch.setattr(placing, "SECONDS", 1)
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
        assert "is not a directory of .parquet files" in err
        assert (out / "thesis.doc").read_text() == "years of work"

    def test_the_data_is_never_replaced(self, fit, parts, tmp_path):
        for out in (parts, tmp_path):
            code, _, err = fit(out, "--force")
            assert code == 2
            assert "is or contains the data to read" in err
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
        place = placing._place_part

        def failing(frame, first, *more):
            if first == 70:
                raise OSError("no space left")
            return place(frame, first, *more)

        monkeypatch.setattr(placing, "_place_part", failing)
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
        """Return the one-line error of a command."""

        def run(path, *more):
            code, out, err = cafe("fit", path, "-k", 2, *QUICK, *more)
            assert code == 2, (out, err)
            *before, last = err.splitlines()
            assert all(line.startswith(f"Found {path}: ") for line in before)
            assert len(before) <= 1
            assert last.startswith("cafe fit: ")
            assert out == ""
            return last

        return run

    def test_empty_directory(self, refused, tmp_path):
        assert "is a directory without Parquet files" in refused(tmp_path)

    def test_no_parquet_files(self, refused, tmp_path):
        (tmp_path / "words.txt").write_text("hello")
        assert "without Parquet files (.parquet, .parq, .pq)." in refused(tmp_path)

    def test_other_columns(self, refused, table, parts):
        table.drop(columns="kind").iloc[:5].to_parquet(parts / "part.3.parquet")
        assert "part.3.parquet differs from part.0.parquet in 'kind'" in refused(parts)
        table.assign(new=1).iloc[:5].to_parquet(parts / "part.3.parquet")
        assert "part.3.parquet differs from part.0.parquet in 'new'" in refused(parts)

    def test_other_types(self, refused, table, parts):
        table.assign(same="1").iloc[:5].to_parquet(parts / "part.3.parquet")
        assert "part.3.parquet differs from part.0.parquet in 'same'" in refused(parts)

    def test_a_file_cut_off(self, refused, parts):
        file = parts / "part.1.parquet"
        file.write_bytes(file.read_bytes()[:-100])
        assert "part.1.parquet cannot be read as parquet" in refused(parts)

    def test_no_rows(self, refused, table, tmp_path):
        folder = write_parts(table.iloc[:0], tmp_path / "iris", sizes=(0, 0))
        assert "has Parquet files but no rows" in refused(folder)

    def test_missing_values(self, refused, table, tmp_path):
        table.loc[[1, 77, 140], "sepal_width"] = np.nan
        folder = write_parts(table.assign(big=None), tmp_path / "iris")
        assert "without any value: 'big'" in refused(folder, "--drop", "name")
        assert "needs the table in memory" in refused(
            folder, "--drop", "name", "--impute", "median"
        )

    def test_too_many_words(self, refused, parts):
        words = refused(parts, "--category", "name")
        assert "at most 100 distinct values (max_categories), got 'name' (150 in 150" in words

    def test_words_for_numbers(self, refused, parts):
        assert "needs numbers in column 'kind', got '" in refused(
            parts, "--drop", "name", "--numeric", "kind"
        )

    def test_names_of_columns(self, refused, parts):
        assert "--label 'spices': there is no such column" in refused(
            parts, "--label", "spices"
        )
        assert "--id 'nam': there is no such column" in refused(parts, "--id", "nam")

    def test_arrays(self, refused, tmp_path):
        path = tmp_path / "rows.npy"
        np.save(path, np.zeros(3))
        assert "2 dimensions" in refused(path)
        np.save(path, np.array([["a", "b"]]))
        assert "needs numbers" in refused(path)
        np.save(path, np.zeros((0, 3)))
        assert "needs rows and columns of numbers, but has the shape (0, 3)" in refused(path)
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
