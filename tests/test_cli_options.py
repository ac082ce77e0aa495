"""Options of the command: commas, suffixes, suggestions and remarks."""

import json
from copy import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from cafelearn.cli import main
from cafelearn.cli.options import column_names, split_commas
from cafelearn.persistence import load_model, save_model

QUICK = ("--n-init", 2, "--p", "2", "--scaling", "standard", "-j", 1)


@pytest.fixture
def cafe(capsys):
    def run(*args):
        code = main([str(arg) for arg in args])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def table(tmp_path):
    """Numbers, a constant, a constant text, and a column whose name has a comma."""
    frame = load_iris(as_frame=True).data.set_axis(["a", "b", "c", "d"], axis=1)
    frame = frame.assign(same=1.0, unit="cm", **{"x,y": np.arange(150) % 7})
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    return path


class TestCommas:
    def test_split(self):
        assert split_commas(["a, b", "c"]) == ["a", "b", "c"]
        assert split_commas([",", "?,NA"]) == [",", "?", "NA"]
        assert column_names(["x,y", "a,b", "a"], ["x,y", "a", "b"]) == ["x,y", "a", "b"]

    def test_drop_and_category(self, table, cafe):
        for drop in (("--drop", "a,x,y"), ("--drop", "x,y", "--drop", "a")):
            code, out, err = cafe("fit", table, "-k", 1, *QUICK, *drop, "--json")
            if drop[1] == "a,x,y":
                assert code == 2
                assert "cannot find column 'x'" in err
            else:
                assert json.loads(out)["features"] == 3
        code, out, _ = cafe(
            "fit", table, "-k", 1, *QUICK, "--drop", "x,y", "--drop", "a,b", "--json"
        )
        assert json.loads(out)["features"] == 2
        code, out, _ = cafe(
            "fit", table, "-k", 1, *QUICK, "--drop", "c,d", "--category", "x,y", "--json"
        )
        assert json.loads(out)["features"] == 2 + 7

    def test_missing(self, tmp_path, cafe):
        path = tmp_path / "gaps.csv"
        text = load_iris(as_frame=True).data.to_csv(index=False).splitlines()
        path.write_text("\n".join([*text[:-2], "?,1,2,3", "1,none,2,3"]))
        code, said, _ = cafe("fit", path, "-k", 1, *QUICK, "--missing", "?,none")
        assert code == 0
        assert "150 rows, 4 columns" in said
        given = ("--missing", "?,none", "--impute", "median")
        assert cafe("fit", path, "-k", 1, *QUICK, *given)[0] == 0


class TestTexts:
    """Numbers, missing values and codes in text files."""

    def write(self, tmp_path, name="t.csv", **columns):
        frame = load_iris(as_frame=True).data.set_axis(["a", "b", "c", "d"], axis=1)
        path = tmp_path / name
        frame.assign(**columns).to_csv(path, index=False)
        return path

    def columns(self, cafe, *args):
        code, out, err = cafe("fit", *args, "-k", 1, *QUICK, "--json")
        assert code == 0, err
        facts = json.loads(out)
        return {row["column"]: row["kind"] for row in facts["columns"]}, facts["remarks"]

    def test_thousands(self, cafe, tmp_path):
        sales = [f"{i * 37:,}" for i in range(150)]
        path = self.write(tmp_path, sales=sales)
        found, remarks = self.columns(cafe, path)
        assert found["sales"] == "number"
        assert any("thousands separators: 'sales' ('1,036' is 1036)" in r for r in remarks)
        found, remarks = self.columns(cafe, path, "--thousands", ",")
        assert found["sales"] == "number"
        assert not any("thousands" in r for r in remarks)
        assert self.columns(cafe, path, "--thousands", "none")[0]["sales"] == "identifier"
        for given in ("--thousands", ";"), ("--thousands", ",", "--decimal", ","):
            assert cafe("fit", path, "-k", 3, *given)[0] == 2

    def test_a_dropped_column_does_not_matter(self, cafe, tmp_path):
        path = self.write(tmp_path, price=[f"{i},5" for i in range(150)])
        code, _, err = cafe("fit", path, "-k", 3, *QUICK)
        assert code == 2
        assert "decimal commas in 'price'" in err
        assert self.columns(cafe, path, "--drop", "price")[0]["price"] == "dropped"
        assert self.columns(cafe, path, "--id", "price")[0]["price"] == "dropped"

    def test_texts_among_numbers(self, cafe, tmp_path):
        ages = [str(i % 60) for i in range(150)]
        ages[3] = ages[80] = "unknown"
        found, remarks = self.columns(cafe, self.write(tmp_path, age=ages))
        assert found["age"] == "number"
        assert any("'age' ('unknown', 2 rows)" in remark for remark in remarks)
        many = [age if i % 3 else "unknown" for i, age in enumerate(ages)]
        path = self.write(tmp_path, age=many)
        _, remarks = self.columns(cafe, path)
        assert any("use --missing unknown" in remark for remark in remarks)
        found, _ = self.columns(cafe, path, "--missing", "unknown")
        assert found["age"] == "number"

    def test_transform_reads_as_fit_did(self, cafe, tmp_path):
        ages = [str(i % 60) for i in range(150)]
        ages[3] = ages[80] = "unknown"
        options = {"age": ages, "e": ["?!"] * 2 + ["1,5", "2,5"] * 74}
        options["day"] = pd.date_range("2020-01-01", periods=150).strftime("%d/%m/%Y")
        path = self.write(tmp_path, **options, region=["EU", "NA", "AP"] * 50)
        frame = pd.read_csv(path, keep_default_na=False)
        frame.to_csv(path, index=False, sep=";")
        model, out = tmp_path / "m.skops", tmp_path / "out.csv"
        given = ("--decimal", ",", "--missing", "?!")
        code, _, err = cafe("fit", path, "-k", 3, *QUICK, *given, "--model", model)
        assert code == 0, err
        code, _, err = cafe("transform", model, path, "--out", out)
        assert code == 0, err
        assert "unknown categories" not in err
        new = tmp_path / "new.csv"
        frame[frame["age"] == "unknown"].to_csv(new, index=False, sep=";")
        code, _, err = cafe("transform", model, new, "--out", out, "--force")
        assert code == 0, err
        assert "remark: Read" not in err.replace("Read with decimal points", "")
        code, _, err = cafe("explain", model, new, "--row", 0)
        assert code == 0, err
        # Options of the command still count.
        code, _, err = cafe("transform", model, new, "--out", out, "--force", "--decimal", ".")
        assert code == 2
        assert "decimal commas" in err

    def test_row_names_with_a_gap(self, cafe, tmp_path):
        names = [str(i) if i else "" for i in range(1900, 2050)]
        names[7] = ""
        path, model, out = (
            self.write(tmp_path, n=names),
            tmp_path / "m.skops",
            tmp_path / "o.csv",
        )
        fit = ("fit", path, "-k", 3, *QUICK, "--id", "n", "--model", model, "--out", out)
        assert cafe(*fit)[0] == 0
        assert pd.read_csv(out, dtype=str)["n"].fillna("").tolist() == names
        for given in ((), ("--id", "n")):
            done = cafe("transform", model, path, "--out", out, "--force", *given)
            assert done[0] == 0
            assert pd.read_csv(out, dtype=str)["n"].fillna("").tolist() == names
        code, said, err = cafe("explain", model, path, "--id", "1995")
        assert code == 0, err
        assert "Row 95 (1995)" in said

    def test_integers_among_missing_row_names(self, cafe, tmp_path):
        frame = pd.DataFrame(np.random.default_rng(0).normal(size=(150, 3)), columns=[*"abc"])
        out = tmp_path / "o.jsonl"
        frame["n"] = pd.array(range(2**53 + 1, 2**53 + 151), dtype="Int64")
        frame.loc[::2, "n"] = None
        names = [None if i % 2 == 0 else 2**53 + 1 + i for i in range(150)]
        frame.to_parquet(tmp_path / "t.parquet")
        (tmp_path / "parts").mkdir()
        frame.to_parquet(tmp_path / "parts" / "t.parquet")
        found = []
        for name, more in (("t.parquet", ("--out", out)), ("parts", ())):
            code, said, err = cafe(
                "fit", tmp_path / name, "-k", 3, *QUICK, "--id", "n", "--json", *more
            )
            assert code == 0, err
            found.append(json.loads(said)["doubtful"]["lowest"])
        assert [json.loads(line)["n"] for line in out.read_text().splitlines()] == names
        for lowest in found:
            assert [row["id"] for row in lowest] == [names[row["row"]] for row in lowest]
            assert len({row["id"] is None for row in lowest}) == 2

    def test_a_row_is_encoded_the_same_alone(self, cafe, tmp_path):
        columns = {"smoker": ["TRUE", "FALSE", "maybe"], "version": ["1.0", "2.10", "beta"]}
        path = self.write(tmp_path, **{name: texts * 50 for name, texts in columns.items()})
        model, out = tmp_path / "m.skops", tmp_path / "out.csv"
        fit = ("fit", path, "-k", 3, *QUICK, "--model", model, "--out", out)
        assert cafe(*fit)[0] == 0
        fitted, lines = pd.read_csv(out), path.read_text().splitlines()
        new = tmp_path / "new.csv"
        for row in range(3):
            new.write_text(f"{lines[0]}\n{lines[row + 1]}\n")
            code, _, err = cafe("transform", model, new, "--out", out, "--force")
            assert code == 0, err
            assert "unknown categories" not in err
            alone = pd.read_csv(out).drop(columns="row")
            pd.testing.assert_frame_equal(alone, fitted.iloc[[row], 1:].reset_index(drop=True))

    def test_empty_text_in_other_files(self, cafe, tmp_path):
        path = self.write(tmp_path, gender=["f", "m", ""] * 50)
        frame, words = pd.read_csv(path, keep_default_na=False), "Empty text is a category"
        assert words not in " ".join(self.columns(cafe, path)[1])
        frame.to_parquet(tmp_path / "t.parquet")
        (tmp_path / "parts").mkdir()
        frame.to_parquet(tmp_path / "parts" / "t.parquet")
        for name in ("t.parquet", "parts"):
            _, remarks = self.columns(cafe, tmp_path / name)
            assert f"{words} in 'gender'; in a CSV file it would be a missing" in str(remarks)

    def test_a_damaged_record_of_the_options(self, cafe, tmp_path):
        path = self.write(tmp_path)
        model = tmp_path / "m.skops"
        assert cafe("fit", path, "-k", 3, *QUICK, "--model", model)[0] == 0
        loaded = load_model(model)
        for damage in (
            {"decimal": "x"},
            {"missing": [1]},
            {"texts": {"a": 3}},
            {"dates": {"a": "%c"}},
            {"more": 1},
        ):
            broken = copy(loaded)
            broken._reading = loaded._reading | damage
            save_model(broken, tmp_path / "broken.skops", force=True)
            code, _, err = cafe("explain", tmp_path / "broken.skops", path, "--row", 0)
            assert code == 2
            assert "reading options of TabularCAFE are damaged" in err


@pytest.mark.parametrize("command", [("fit", "t.csv", "-k", 3), ("demo",)])
def test_no_threads(command, cafe):
    code, _, err = cafe(*command, "--jobs", 0)
    assert code == 2
    assert "'--jobs' / '-j': needs a number >= 1, or -1 for all processors; got 0" in err


def test_a_short_option_with_two_dashes(table, cafe):
    code, _, err = cafe("fit", table, "--k", 3)
    assert code == 2
    assert "--k" in err
    assert "did you mean -k?" in err
    assert "did you mean -" not in cafe("fit", table, "-k", 3, "--nonsense", 3)[2]


@pytest.mark.parametrize(
    ("option", "name", "expected"),
    [
        ("--report", "report.pdf", "unsupported extension '.pdf'; expected .html or .htm"),
        ("--report", "report", "no extension; expected .html"),
        ("--model", "model.pkl", "unsupported extension '.pkl'; expected .skops"),
    ],
)
def test_suffixes_are_checked_before_anything_is_read(option, name, expected, tmp_path, cafe):
    missing = tmp_path / "not-there.csv"
    code, _, err = cafe("fit", missing, "-k", 3, option, tmp_path / name)
    assert code == 2
    assert expected in err


def test_transform_needs_only_the_columns_that_were_used(table, tmp_path, cafe):
    model, out = tmp_path / "m.skops", tmp_path / "out.csv"
    fit = ("fit", table, "-k", 1, *QUICK, "--drop", "x,y", "--drop", "a", "--model", model)
    assert cafe(*fit)[0] == 0
    frame = pd.read_csv(table)
    for kept in (["b", "c", "d"], list(frame.columns)):
        frame[kept].to_csv(tmp_path / "new.csv", index=False)
        code, _, err = cafe("transform", model, tmp_path / "new.csv", "--out", out, "--force")
        assert code == 0, err
        assert "remark" not in err
        assert len(pd.read_csv(out)) == 150
        (tmp_path / "parts").mkdir(exist_ok=True)
        frame[kept].to_parquet(tmp_path / "parts" / "part.0.parquet")
        there = tmp_path / "features"
        code, _, err = cafe("transform", model, tmp_path / "parts", "--out", there, "--force")
        assert code == 0, err
        assert "remark" not in err
    frame[["b", "c"]].to_csv(tmp_path / "new.csv", index=False)
    code, _, err = cafe("transform", model, tmp_path / "new.csv", "--out", out, "--force")
    assert code == 2
    assert "'d' is missing" in err


@pytest.mark.parametrize("as_text", [False, True])
def test_a_target_left_in_the_table_is_remarked_upon(as_text, tmp_path, cafe):
    iris = load_iris(as_frame=True)
    frame, path = iris.data.copy(), tmp_path / "iris.csv"
    frame["kind"] = iris.target_names[iris.target] if as_text else iris.target
    frame.to_csv(path, index=False)
    code, _, err = cafe("fit", path, "-k", 3, *QUICK)
    assert code == 0
    assert "Column 'kind' agrees almost completely with the clusters" in err
    assert "--label" in err
    assert "almost completely" not in cafe("fit", path, "-k", 3, *QUICK, "--label", "kind")[2]


def test_too_few_rows(tmp_path, cafe):
    path = tmp_path / "few.csv"
    path.write_text("a,b\n1,2\n3,5\n")
    code, _, err = cafe("fit", path, "-k", 3)
    assert code == 2
    assert "as many rows as clusters" in err


def test_the_rules_of_choice_are_those_of_cafe():
    from cafelearn.choice.selection import SELECTIONS
    from cafelearn.cli.fit import Selection

    assert {each.value for each in Selection} == set(SELECTIONS)
