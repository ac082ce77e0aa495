"""Reading tables from files of unknown origin, and writing tables."""

import gzip
import os

import pandas as pd
import pytest

from cafelearn.cli.options import Reading
from cafelearn.cli.reading import read_table
from cafelearn.cli.writing import write_table


class TestReading:
    def read(self, tmp_path, content, name="t.csv", **options):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        remarks = []
        return read_table(path, Reading(**options), remarks.append), " ".join(remarks)

    @pytest.mark.parametrize(
        ("delimiter", "word"), [(";", "semi"), ("\t", "tabs"), ("|", "bars")]
    )
    def test_another_delimiter(self, tmp_path, delimiter, word):
        text = "a,b,c\n1,2,x\n3,4,y\n".replace(",", delimiter)
        frame, remarks = self.read(tmp_path, text)
        assert frame.to_dict("list") == {"a": [1, 3], "b": [2, 4], "c": ["x", "y"]}
        assert word in remarks
        frame, _ = self.read(tmp_path, "a!b\n1!2\n", delimiter="!")
        assert list(frame) == ["a", "b"]

    def test_a_header_with_a_comma_and_semicolons(self, tmp_path):
        frame, _ = self.read(tmp_path, "weight, kg;height\n1;2\n3;4\n")
        assert list(frame) == ["weight, kg", "height"]

    def test_encodings(self, tmp_path):
        text = "naïve,b\né,1\n"
        for encoding, word in [("utf-8-sig", ""), ("latin-1", "Latin-1"), ("utf-16", "")]:
            frame, remarks = self.read(tmp_path, text.encode(encoding))
            assert list(frame) == ["naïve", "b"]
            assert frame["naïve"].tolist() == ["é"]
            assert word in remarks

    def test_names_are_repaired(self, tmp_path):
        frame, remarks = self.read(tmp_path, "a,a,,a (2), b ,\n1,2,3,4,5,6\n")
        assert list(frame) == ["a", "a (3)", "column 3", "a (2)", "b", "column 6"]
        assert "'a' (column 2) is now 'a (3)'" in remarks
        assert frame.iloc[0].tolist() == [1, 2, 3, 4, 5, 6]

    def test_strange_names_and_values(self, tmp_path):
        text = '"<script>alert(1)</script>","say ""hi"", x"\n"=cmd()|x","two\nlines"\n'
        frame, _ = self.read(tmp_path, text)
        assert list(frame) == ["<script>alert(1)</script>", 'say "hi", x']
        assert frame.iloc[0].tolist() == ["=cmd()|x", "two\nlines"]

    @pytest.mark.parametrize(
        ("header", "names"),
        [
            ('"t\nu",y', ["t\nu", "y"]),
            ('"t\r\n\r\nu","y\nz"', ["t\r\n\r\nu", "y\nz"]),
            ('\n"t\nu",5" pipe', ["t\nu", '5" pipe']),
            ('"t\nu","t\nu"', ["t\nu", "t\nu (2)"]),
            ("  \n\na,b", ["a", "b"]),
        ],
    )
    def test_lines_before_the_first_row(self, tmp_path, header, names):
        path, trace = tmp_path / "t.csv", {}
        path.write_bytes(f"{header}\n1,2\n3,4\n5,6\n".encode())
        frame = read_table(path, trace=trace)
        assert frame.to_dict("list") == dict(zip(names, ([1, 3, 5], [2, 4, 6]), strict=True))
        pd.testing.assert_frame_equal(eval(trace["code"], {"pd": pd}), frame)

    def test_row_names_are_as_in_the_file(self, tmp_path):
        for names in (
            ["9007199254740993", "", "1993"],
            ["1e1", "8.50", "8.5"],
            ["TRUE", "FALSE", "true"],
            ["01", "12", "NA"],
        ):
            text = "n,x\n" + "".join(f"{name},1\n" for name in names)
            frame, remarks = self.read(tmp_path, text, row_id="n", unused=("n",))
            assert frame["n"].fillna("").tolist() == names
            assert remarks == ""
        # Integers stay integers.
        text = "n,x\n9007199254740993,1\n8,2\n"
        frame, _ = self.read(tmp_path, text, row_id="n", unused=("n",))
        assert frame["n"].tolist() == [9007199254740993, 8]

    def test_integers_among_missing_row_names(self, tmp_path):
        names = [9007199254740993, None, 1993]
        frame = pd.DataFrame({"n": pd.Series(names, dtype=object), "x": [1, 2, 3]})
        for name in ("t.parquet", "t.feather", "t.jsonl"):
            path = write_table(frame, tmp_path / name)
            found = read_table(path, Reading(row_id="n"))["n"]
            assert found.isna().tolist() == [False, True, False]
            assert found.dropna().tolist() == [9007199254740993, 1993]

    @pytest.mark.parametrize(
        ("categories", "texts"),
        [
            (["FALSE", "TRUE", "maybe"], {"TRUE": "TRUE", "true": "true", "maybe": "maybe"}),
            (["False", "True"], {"TRUE": "True", "false": "False", "maybe": "maybe"}),
            (["1.0", "2.10", "beta"], {"1.0": "1.0", "2.10": "2.10", "1": "1", "1e3": "1e3"}),
            (["1", "2.1", "1000"], {"1.": "1", "2.10": "2.1", "+1": "1", "9" * 5000: "inf"}),
            (["01007", "60601"], {"01007": "01007", "60601": "60601", "1007": "1007"}),
        ],
    )
    def test_known_categories(self, tmp_path, categories, texts):
        known = {"used": ("c", "x"), "categories": {"c": categories}}
        for more in ("", "other,1\n", "3,1\n", "true,1\n"):
            for text, expected in texts.items():
                frame, _ = self.read(tmp_path, f"c,x\n{text},1\n{more}", **known)
                assert frame["c"][0] == expected

    def test_known_categories_with_decimal_commas(self, tmp_path):
        known = {"used": ("c", "x"), "categories": {"c": ["1", "2.1"]}, "decimal": ","}
        frame, _ = self.read(tmp_path, "c;x\n2,10;1\n2.10;1\n1,0;3\n", **known)
        assert frame["c"].tolist() == ["2.1", "2.1", "1"]

    def test_delimiters_that_are_not_detected(self, tmp_path):
        for delimiter, word in ((" ", "spaces"), (":", "colons")):
            text = "x,y,z\n1,2,3\n3,4,1\n".replace(",", delimiter)
            frame, remarks = self.read(tmp_path, text)
            assert frame.shape == (2, 1)
            assert f"one column. If {word} separate the columns, use --delimiter" in remarks
            frame, remarks = self.read(tmp_path, text, delimiter=delimiter)
            assert frame.shape == (2, 3)
            assert remarks == ""
        assert self.read(tmp_path, "city\nNew York\nLondon\n")[1] == ""

    def test_rows_with_too_few_fields(self, tmp_path):
        text = 'a,b,c\n1,"2\n  \nx",3\n4\n   \n\n5,6\n7,8,\n'
        frame, remarks = self.read(tmp_path, text)
        assert frame["c"].isna().tolist() == [False, True, True, True]
        assert remarks == (
            "2 rows have fewer than 3 fields, the first in line 5; the missing fields are read "
            "as missing values."
        )
        assert self.read(tmp_path, "a,b\n1,2\n3,\n\n")[1] == ""

    def test_a_long_cell(self, tmp_path):
        frame, _ = self.read(tmp_path, f"a,b\n1,{'x' * 200_000}\n2,y\n3\n")
        assert frame["b"].str.len().tolist()[:2] == [200_000, 1]

    def test_a_pipe(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ValueError, match="pipe is a pipe or a device; a file is needed"):
            read_table(tmp_path / "pipe")

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("", "is empty"),
            ("\n\n", "only empty lines"),
            ("a,b\n", "a header but no rows"),
            ("a,b\n1,2\n1,2,3\n", "line 3 has 3 fields, but the header has 2"),
            ("a,b\n" + "1,2\n" * 50 + "1,2,3\n", "line 52 has 3 fields, but the header has 2"),
            ('a,b\n1,"open\n', "opened and never closed"),
            (b"a,b\n1,\0\n", "is not text"),
            ("a;b\n1,5;2,5\n3,5;1,0\n", "decimal commas.*--decimal ','"),
        ],
    )
    def test_refused(self, tmp_path, content, message):
        with pytest.raises(ValueError, match=message):
            self.read(tmp_path, content)

    def test_decimal_commas_and_words_for_missing(self, tmp_path):
        frame, _ = self.read(tmp_path, "a;b\n1,5;2\n3,5;1\n", decimal=",")
        assert frame["a"].tolist() == [1.5, 3.5]
        frame, _ = self.read(tmp_path, "a,b\n1,2\nx1,1\n3,4\n")
        assert frame["a"].tolist() == ["1", "x1", "3"]
        frame, _ = self.read(tmp_path, "a,b\n1,2\nx1,1\n3,4\n", missing=("x1",))
        assert frame["a"].isna().tolist() == [False, True, False]

    def test_thousands(self, tmp_path):
        text = 'sales,n\n"2,093",1.5\n880,2.5\n"1,234,567",3\n"-4,000.5",4\n'
        frame, remarks = self.read(tmp_path, text)
        assert frame["sales"].tolist() == [2093, 880, 1234567, -4000.5]
        assert "'sales' ('2,093' is 2093)" in remarks
        assert "--thousands none" in remarks
        assert "--decimal" not in remarks
        frame, remarks = self.read(tmp_path, text, thousands=",")
        assert frame["sales"].sum() == 2093 + 880 + 1234567 - 4000.5
        assert remarks == ""
        frame, _ = self.read(tmp_path, text, thousands="none")
        assert frame["sales"].tolist() == ["2,093", "880", "1,234,567", "-4,000.5"]
        frame, _ = self.read(tmp_path, 'sales,n\n"2,093",1\n880,2\n')
        assert frame["sales"].dtype.kind == "i"

    def test_commas_of_another_kind(self, tmp_path):
        three = "a;b\n1,234;1\n2,345;2\n"
        with pytest.raises(ValueError, match=r"may separate thousands or decimals in 'a'"):
            self.read(tmp_path, three)
        assert self.read(tmp_path, three, thousands=",")[0]["a"].tolist() == [1234, 2345]
        assert self.read(tmp_path, three, decimal=",")[0]["a"].tolist() == [1.234, 2.345]
        for text in ("a;b\n1,234;1\n0,345;2\n", "a;b\n1,234;1\n7,5;2\n"):
            with pytest.raises(ValueError, match=r"decimal commas.*--decimal ','"):
                self.read(tmp_path, text)
        frame, _ = self.read(tmp_path, 'names,b\n"Smith, J",1\n"Doe, J",2\n')
        assert frame["names"].tolist() == ["Smith, J", "Doe, J"]

    def test_points_with_decimal_commas(self, tmp_path):
        text = "a;b;c\n1,5;2.5;1.234,5\n3,5;10.25;2,5\n"
        frame, remarks = self.read(tmp_path, text, decimal=",")
        assert frame.to_dict("list") == {"a": [1.5, 3.5], "b": [2.5, 10.25], "c": [1234.5, 2.5]}
        assert "decimal points, in spite of --decimal ',': 'b' ('2.5')" in remarks
        assert "'c' ('1.234,5' is 1234,5)" in remarks
        with pytest.raises(
            ValueError, match=r"contrary to --decimal ',', in 'a' \('1,234,567'"
        ):
            self.read(tmp_path, 'a,b\n"1,234,567",1\n880,2\n', decimal=",")

    def test_dropped_columns_are_not_examined(self, tmp_path):
        text = "a;b\n1,5;2\n3,5;1\n"
        frame, remarks = self.read(tmp_path, text, unused=("a",))
        assert frame["a"].tolist() == ["1,5", "3,5"]
        assert "decimal" not in remarks

    def test_markers_of_missing_values(self, tmp_path):
        text = "n,region,flag,day\n" + "1,EU,true,2020-01-01\n" * 3 + "NA,NA,NA,NA\n,,,\n"
        frame, remarks = self.read(tmp_path, text)
        assert frame["n"].isna().tolist() == [False] * 3 + [True] * 2
        assert frame["region"].tolist()[:4] == ["EU"] * 3 + ["NA"]
        assert frame["region"].isna().sum() == 1
        assert frame["flag"].tolist()[:3] == [True] * 3
        assert frame["flag"].isna().sum() == frame["day"].isna().sum() == 2
        assert remarks == (
            "Read as text, not as missing values: 'NA' in 'region' (1 row). Use --missing if "
            "they mark missing values."
        )
        frame, remarks = self.read(tmp_path, text, missing=("NA",))
        assert frame["region"].isna().sum() == 2
        assert remarks == ""

    def test_a_few_texts_among_numbers(self, tmp_path):
        text = "age,b\n" + "".join(f"{i},{i}\n" for i in range(30)) + "unknown,1\n"
        frame, remarks = self.read(tmp_path, text)
        assert frame["age"].isna().sum() == 1
        assert "'age' ('unknown', 1 row)" in remarks
        assert "--category" in remarks
        frame, remarks = self.read(tmp_path, text, category=("age",))
        assert frame["age"].iloc[-1] == "unknown"
        assert remarks == ""
        # A text with digits may be a value.
        frame, remarks = self.read(tmp_path, text.replace("unknown", "30+"))
        assert frame["age"].iloc[-1] == "30+"

    def test_codes_with_leading_zeros(self, tmp_path):
        for encoding in ("utf-8", "utf-16"):
            text = 'zip,n,time\n01007,1,09:30\n60601,2,10:30\n"00501",3,11:00\n,4,12:00\n'
            frame, remarks = self.read(tmp_path, text.encode(encoding))
            assert frame["zip"].tolist()[:3] == ["01007", "60601", "00501"]
            assert frame["zip"].isna().sum() == 1
            assert frame["n"].tolist() == [1, 2, 3, 4]
            assert "leading zeros: 'zip' ('01007')" in remarks
            frame, remarks = self.read(tmp_path, text.encode(encoding), numeric=("zip",))
            assert frame["zip"].tolist()[:2] == [1007, 60601]
            assert remarks == ""

    @pytest.mark.parametrize(
        ("texts", "expected"),
        [
            (["31/12/2020", "01/02/2021"], ["2020-12-31", "2021-02-01"]),
            (["12/31/2020", "01/02/2021"], ["2020-12-31", "2021-01-02"]),
            (["3.4.2020", "1.2.2021"], ["2020-04-03", "2021-02-01"]),
            (["31-12-2020 23:15", "01-02-2021 00:00"], ["2020-12-31 23:15", "2021-02-01"]),
            (["31/12/2020", "NA"], ["2020-12-31", None]),
        ],
    )
    def test_dates_with_the_year_last(self, tmp_path, texts, expected):
        text = "day,b\n" + "".join(f"{each},1\n" for each in texts)
        frame, remarks = self.read(tmp_path, text)
        assert frame["day"].dtype.kind == "M"
        expected = pd.to_datetime(pd.Series(expected), format="ISO8601")
        assert frame["day"].equals(expected.astype(frame["day"].dtype))
        assert f"Read as dates: 'day' ('{texts[0]}' is {expected[0]:%Y-%m-%d})" in remarks
        frame, remarks = self.read(tmp_path, text, category=("day",))
        assert frame["day"].tolist()[0] == texts[0]

    @pytest.mark.parametrize(
        "texts", [["03/04/2020", "01/02/2021"], ["31/12/2020", "12/31/2020"], ["31/02/2020"]]
    )
    def test_dates_that_are_not_clear_are_text(self, tmp_path, texts):
        frame, remarks = self.read(tmp_path, "day,b\n" + "".join(f"{t},1\n" for t in texts))
        assert frame["day"].tolist() == texts
        assert remarks == ""

    def test_no_header(self, tmp_path):
        frame, remarks = self.read(tmp_path, "1,2\n3,4\n")
        assert "--no-header" in remarks
        assert len(frame) == 1
        frame, _ = self.read(tmp_path, "1,2\n3,4\n", header=False)
        assert frame.to_dict("list") == {"column 1": [1, 3], "column 2": [2, 4]}

    def test_json_lines(self, tmp_path):
        frame, _ = self.read(tmp_path, '{"a": 1, "b": "x"}\n\n{"a": 2.5}\n', "t.jsonl")
        assert frame["a"].tolist() == [1, 2.5]
        assert frame["b"].isna().tolist() == [False, True]
        for content, message in [
            ('{"a": 1}\n{"a": \n', "line 2 is not JSON"),
            ("[1, 2]\n", "line 1 is not a JSON object"),
            ("[" * 100_000, "line 1 is nested too deeply"),
            ("\n", "has no rows"),
            (b'{"a": "\xe9"}\n', "is not UTF-8"),
        ]:
            with pytest.raises(ValueError, match=message):
                self.read(tmp_path, content, "t.jsonl")

    def test_compressed(self, tmp_path):
        frame, _ = self.read(tmp_path, gzip.compress(b"a,b\n1,2\n"), "t.csv.gz")
        assert frame.to_dict("list") == {"a": [1], "b": [2]}
        for content in (b"a,b\n1,2\n", gzip.compress(b"a,b\n1,2\n" * 1000)[:-20]):
            with pytest.raises(ValueError, match="truncated or not a gzip file"):
                self.read(tmp_path, content, "t.csv.gz")

    def test_columnar_files(self, tmp_path):
        frame = pd.DataFrame({"a": [1, 2], "b": pd.Categorical(["x", "y"])}, index=["r", "s"])
        frame.to_parquet(tmp_path / "t.parquet")
        remarks = []
        found = read_table(tmp_path / "t.parquet", remark=remarks.append)
        assert list(found) == ["index", "a", "b"]
        assert "index of the table is read as a column" in remarks[0]
        for name in ("t.parquet", "t.feather"):
            with pytest.raises(ValueError, match=f"cannot be read as {name[2:]}"):
                self.read(tmp_path, "a,b\n1,2\n", name)
        with pytest.raises(ValueError, match=r"unsupported extension '\.xlsx'"):
            self.read(tmp_path, "a,b\n1,2\n", "t.xlsx")


def test_written_csv_has_no_formulas(tmp_path):
    frame = pd.DataFrame({"=n": ["=cmd()", "+1", "-x", "@a", "\tb", "fine"], "v": [-1.5] * 6})
    written = pd.read_csv(write_table(frame, tmp_path / "f.csv"))
    assert written["'=n"].tolist() == ["'=cmd()", "'+1", "'-x", "'@a", "'\tb", "fine"]
    assert written["v"].tolist() == [-1.5] * 6
    kept = pd.read_parquet(write_table(frame, tmp_path / "f.parquet"))
    assert kept["=n"].tolist() == frame["=n"].tolist()
