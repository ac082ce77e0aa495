"""Dates, identifiers and free text in tables: treatment, messages and overrides."""

import json
import re
import uuid

import numpy as np
import pandas as pd
import pytest

from cafelearn import CAFE, TableEncoder, TabularCAFE
from cafelearn.interpret.explanation import explain, values_shown
from cafelearn.persistence import load_model, save_model
from cafelearn.report import write_fit_report
from cafelearn.tables.columns import SKETCH, look_at, merge_looks
from cafelearn.tables.values import as_days

dd = pytest.importorskip("dask.dataframe")
pl = pytest.importorskip("polars")

N = 200
QUICK = ("--n-init", "2", "--p", "2", "--jobs", "1")


def dates(rng, n=N):
    return pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")


@pytest.fixture
def table():
    """Two kinds of customers, with columns of every kind."""
    rng = np.random.default_rng(0)
    kind = np.arange(N) % 2
    return pd.DataFrame(
        {
            "customer_id": rng.permutation(100_000)[:N],
            "line": rng.permutation(N) + 7,
            "name": [f"N{i}" for i in range(N)],
            "note": [f"they said {i} things to us" for i in range(N)],
            "spend": rng.normal(np.where(kind, 10, 40), 3),
            "visits": rng.integers(0, 60, N),
            "signup": dates(rng) + pd.to_timedelta(1000 * kind, "D"),
            "renewal": dates(rng).strftime("%Y-%m-%d"),
            "stay": pd.to_timedelta(rng.integers(0, 500, N), "h"),
            "plan": np.where(kind, "free", "paid"),
            "country": "x",
        }
    )


class TestTreatments:
    def test_each_kind(self, table):
        found = TableEncoder().fit(table).treatments_
        assert found["kind"].to_dict() == {
            "customer_id": "identifier",
            "line": "identifier",
            "name": "identifier",
            "note": "free text",
            "spend": "number",
            "visits": "number",
            "signup": "date",
            "renewal": "date",
            "stay": "duration",
            "plan": "category",
            "country": "constant",
        }
        assert found.loc["line", "reason"] == "row numbers from 7 to 206"
        assert found.loc["note"].tolist()[1:] == ["left out", "200 distinct values in 200 rows"]
        assert found.loc["signup", "reason"] == "dates, as days since 1970-01-01"

    @pytest.mark.parametrize("n_parts", [1, 3, 40])
    def test_the_same_for_all_frames(self, table, n_parts):
        lazy = dd.from_pandas(table, npartitions=n_parts)
        here, there = TableEncoder().fit(table), TableEncoder().fit(lazy)
        pd.testing.assert_frame_equal(here.treatments_, there.treatments_)
        encoded = here.transform(table)
        pd.testing.assert_frame_equal(encoded, there.transform(lazy).compute())
        frame = pl.from_pandas(table)
        pd.testing.assert_frame_equal(here.treatments_, TableEncoder().fit(frame).treatments_)
        pd.testing.assert_frame_equal(encoded, TableEncoder().fit_transform(frame))

    def test_overrides(self, table):
        encoder = TableEncoder(
            numeric=["customer_id"], categorical=["name", "line"], drop=["signup"]
        ).set_params(max_categories=N)
        found = encoder.fit(table).treatments_["treatment"]
        assert found[["customer_id", "name", "line"]].tolist() == [
            "number",
            "category",
            "category",
        ]
        assert found["signup"] == "left out"
        assert len(encoder.categories_["line"]) == N
        assert encoder.transform(table)["customer_id"].tolist() == table["customer_id"].tolist()
        as_categories = TableEncoder(categorical=["renewal"], max_categories=N).fit(table)
        assert "renewal" in as_categories.categories_

    def test_truth_values_and_categories_as_numbers(self):
        codes = pd.Categorical([1, 3, 1])
        frame = pd.DataFrame({"flag": [True, False, True], "code": codes, "t": ["7", "8", "9"]})
        for X in (frame, dd.from_pandas(frame, npartitions=2)):
            encoder = TableEncoder(numeric=["flag", "code", "t"]).fit(X)
            encoded = encoder.transform(frame)
            assert encoded.to_numpy().tolist() == [[1, 1, 7], [0, 3, 8], [1, 1, 9]]
            with pytest.raises(ValueError, match="needs numbers in column 't', got 'x'"):
                TableEncoder(numeric=["t"]).fit(X.assign(t="x"))

    def test_bad_names(self, table):
        with pytest.raises(ValueError, match=r"cannot find column 'lines'.*'line'"):
            TableEncoder(numeric=["lines"]).fit(table)
        with pytest.raises(
            ValueError, match=r"either numeric or categorical, got 'line' in both"
        ):
            TableEncoder(numeric=["line"], categorical=["line"]).fit(table)
        with pytest.raises(ValueError, match=r"left out 'name' \(identifier: 200 distinct"):
            TableEncoder().fit(table[["name"]])

    def test_numbers_that_are_no_identifiers(self):
        rng = np.random.default_rng(1)
        distinct = rng.permutation(10_000)[:N]
        frame = pd.DataFrame(
            {
                "salary": distinct,  # all different, under no such name
                "paid": distinct,  # the name ends in "id"
                "group_id": rng.integers(0, 5, N),  # such a name, not different
                "index": distinct + 0.5,  # no whole numbers
                "rank": np.r_[np.arange(N - 1), 0],  # one of them twice
            }
        )
        assert set(TableEncoder().fit(frame).treatments_["kind"]) == {"number"}
        few = pd.DataFrame({"id": range(10), "word": list("abcdefghij")})
        assert list(TableEncoder().fit(few).treatments_["kind"]) == ["number", "category"]

    @pytest.mark.parametrize("name", ["id", "ID", "order id", "orderId", "row_key"])
    def test_names_of_identifiers(self, name):
        frame = pd.DataFrame({name: np.arange(20) ** 2, "a": np.arange(20) % 4})
        assert TableEncoder().fit(frame).treatments_.loc[name, "kind"] == "identifier"

    def test_long_answers_to_few_questions_are_categories(self):
        answers = ["I agree with all of it", "I do not agree with it", "I have no idea at all"]
        frame = pd.DataFrame({"answer": answers * 20, "a": range(60)})
        assert list(TableEncoder().fit(frame).categories_) == ["answer"]

    def test_left_out_columns_need_not_be_there(self, table, recwarn):
        encoder = TableEncoder().fit(table)
        used = table.drop(columns=["customer_id", "line", "name", "note", "country"])
        pd.testing.assert_frame_equal(encoder.transform(used), encoder.transform(table))
        assert not recwarn.list


class TestNumbersAsText:
    def frame(self, texts):
        return pd.DataFrame({"age": texts, "a": np.arange(len(texts)) % 7})

    @pytest.mark.parametrize("n_parts", [None, 1, 5])
    def test_texts_that_are_all_numbers(self, n_parts, recwarn):
        frame = self.frame([f"{i}.5" for i in range(40)])
        X = frame if n_parts is None else dd.from_pandas(frame, npartitions=n_parts)
        encoder = TableEncoder().fit(X)
        assert encoder.treatments_.loc["age"].tolist() == [
            "number",
            "number",
            "numbers, as text",
        ]
        assert encoder.transform(frame)["age"].tolist() == [i + 0.5 for i in range(40)]
        assert not recwarn.list
        as_categories = TableEncoder(categorical=["age"]).fit(frame)
        assert len(as_categories.categories_["age"]) == 40

    @pytest.mark.parametrize("n_parts", [None, 1, 10])
    def test_markers_among_numbers_are_missing(self, n_parts, recwarn):
        texts = [str(i % 31) for i in range(40)]
        texts[:5] = ["N/A", "NA", "", "-", "?"]
        frame = self.frame(texts)
        X = frame if n_parts is None else dd.from_pandas(frame, npartitions=n_parts)
        encoder = TableEncoder().fit(X)
        reason = encoder.treatments_.loc["age", "reason"]
        assert reason == "numbers, as text; missing: '', '-', '?'"
        encoded = encoder.transform(frame)["age"]
        assert encoded.isna().tolist() == [True] * 5 + [False] * 35
        assert not recwarn.list

    @pytest.mark.parametrize("values", [[1 + 2j, 3, 4, 5], [np.complex64(1), 2, 3, 4]])
    def test_complex_objects(self, values):
        with pytest.raises(ValueError, match=r"got 'a' \((complex|mixed-integer) values\)"):
            TableEncoder().fit(pd.DataFrame({"a": pd.Series(values, dtype=object)}))

    @pytest.mark.parametrize(
        ("value", "kind"),
        [
            ([1], "list values"),
            ({"b": 1}, "dict values"),
            (uuid.UUID(int=1), "UUID values"),
            (("x", [1]), "str and other values"),
        ],
    )
    def test_objects_are_named_by_their_type(self, value, kind):
        values = value if isinstance(value, tuple) else (value, value)
        X = pd.DataFrame({"a": pd.Series(values, dtype=object)})
        with pytest.raises(ValueError, match=rf"got 'a' \({kind}\)"):
            TableEncoder().fit(X)

    def test_mixed_objects(self):
        frame = self.frame([*range(29), "N/A"])
        encoded = TableEncoder().fit_transform(frame)["age"]
        assert encoded.isna().sum() == 1
        flags = self.frame([True, False, "N/A"] * 10)
        assert "age" in TableEncoder().fit(flags).categories_

    @pytest.mark.parametrize("n_parts", [None, 3])
    def test_a_few_other_texts(self, n_parts):
        texts = [*map(str, range(38)), "unknown", "N/A"]
        frame = self.frame(texts)
        X = frame if n_parts is None else dd.from_pandas(frame, npartitions=n_parts)
        with pytest.warns(UserWarning, match="Column 'age' has 38 numbers and 2 other") as seen:
            encoder = TableEncoder().fit(X)
        (warning,) = seen
        assert warning.filename == __file__
        for words in ("'N/A', 'unknown'", "left out", 'errors="coerce"', "--missing"):
            assert words in str(warning.message)
        assert encoder.treatments_.loc["age", "kind"] == "identifier"

    @pytest.mark.parametrize("n_parts", [None, 7])
    @pytest.mark.parametrize(
        "form",
        [
            *("{:,}", "{:,}.50", "€{}", "${:,}", "{} €", "{}.5%", "{}.1 kg", "{}kg", "{},5"),
            *("\u2212{}", "{:,} km/h", "\u2212€ {}"),
        ],
    )
    def test_numbers_in_other_notations(self, form, n_parts):
        frame = self.frame([form.format(1000 + 37 * i) for i in range(40)])
        X = frame if n_parts is None else dd.from_pandas(frame, npartitions=n_parts)
        with pytest.warns(
            UserWarning, match="Column 'age' has numbers with separators"
        ) as seen:
            TableEncoder().fit(X)
        (warning,) = seen
        assert warning.filename == __file__
        assert f"such as '{form.format(1000)}', " in str(warning.message)
        assert "and is left out. Write them as plain" in str(warning.message)

    def test_plain_and_other_notations(self):
        frame = self.frame([f"{975 + i:,}" for i in range(40)])
        with pytest.warns(UserWarning, match="separators, symbols or units, such as '1,000'"):
            TableEncoder().fit(frame)
        few = self.frame(["10%", "20%", "n/a"] * 10)
        with pytest.warns(UserWarning, match="'10%', '20%', and is treated as categories"):
            TableEncoder().fit(few)

    @pytest.mark.parametrize(
        "texts",
        [
            [f"T{i}" for i in range(40)],
            [f"{i % 20}{'ABC'[i % 3]}" for i in range(40)],
            ["1st", "2nd", "3rd"] * 10,
            [f"10.0.{i}.{i * 3}" for i in range(40)],
            [f"2.{i}.7" for i in range(40)],
            [f"{i * 10}-{i * 10 + 9}" for i in range(40)],
            [f"{i} {['Elm', 'Oak', 'Ash'][i % 3]}" for i in range(40)],
            ["01,007", "60,601", "02116"] * 10,
            ["", "-", "?"] * 10,
        ],
    )
    def test_codes_are_no_numbers_in_other_notations(self, texts, recwarn):
        TableEncoder().fit(self.frame(texts))
        assert not recwarn.list

    def test_no_warning_if_the_treatment_is_chosen(self, recwarn):
        frame = self.frame([*map(str, range(38)), "unknown", "N/A"])
        TableEncoder(categorical=["age"]).fit(frame)
        TableEncoder(drop=["age"]).fit(frame)
        assert not recwarn.list

    def test_codes_with_leading_zeros_are_text(self, recwarn):
        codes = ["01007", "60601", "94110", "10001"] * 10
        assert list(TableEncoder().fit(self.frame(codes)).categories_) == ["age"]
        assert not recwarn.list

    def test_row_numbers_as_text(self):
        frame = self.frame([str(i) for i in range(40)])
        assert TableEncoder().fit(frame).treatments_.loc["age", "kind"] == "identifier"

    def test_only_markers_are_a_category(self):
        frame = self.frame(["NA", "-"] * 20)
        assert list(TableEncoder().fit(frame).categories_) == ["age"]


class TestDates:
    def test_days(self):
        text = ["1970-01-02", "1970-01-01 12:00", "1970-01-01T02:00+02:00", None, "9999-12-31"]
        days = as_days(pd.Series(text))
        assert days[:3].tolist() == [1, 0.5, 0]
        assert np.isnan(days[3])
        assert days[4] == 2932896
        zone = pd.Series(pd.to_datetime(["2020-06-01"])).dt.tz_localize("Europe/Berlin")
        assert as_days(zone) == as_days(pd.Series(["2020-05-31T22:00Z"]))
        assert as_days(zone) == pytest.approx(18414 - 1 / 12, rel=1e-12)
        assert as_days(pd.Series(pd.PeriodIndex(["1970-02"], freq="M"))) == 31
        with pytest.raises(ValueError, match="not dates"):
            as_days(pd.Series([3]))

    @pytest.mark.parametrize("other", ["2020-02-30", "soon", "31.12.2020", "1234-5678-90"])
    def test_text_with_something_else_is_text(self, other):
        frame = pd.DataFrame({"day": ["2020-01-01", "2020-01-02", other] * 8, "a": range(24)})
        assert list(TableEncoder().fit(frame).categories_) == ["day"]
        lazy = dd.from_pandas(frame, npartitions=8)
        assert list(TableEncoder().fit(lazy).categories_) == ["day"]

    @pytest.mark.parametrize("n_parts", [None, 3])
    def test_dates_with_the_year_last(self, n_parts):
        days = pd.date_range("2020-01-01", periods=40).strftime("%d/%m/%Y")
        frame = pd.DataFrame({"day": days, "a": np.arange(40) % 7})
        X = frame if n_parts is None else dd.from_pandas(frame, npartitions=n_parts)
        with pytest.warns(UserWarning, match="Column 'day' has dates such as '01/01") as seen:
            TableEncoder().fit(X)
        (warning,) = seen
        assert warning.filename == __file__
        assert "dayfirst=True" in str(warning.message)

    @pytest.mark.parametrize("n_parts", [None, 3])
    @pytest.mark.parametrize(
        ("form", "advice"),
        [
            ("%Y/%m/%d", "pd.to_datetime(X['day']); otherwise"),
            ("%Y.%m.%d %H:%M", "pd.to_datetime(X['day']); otherwise"),
            ("%d-%b-%Y", "pd.to_datetime(X['day']); otherwise"),
            ("%B %d, %Y", "pd.to_datetime(X['day']); otherwise"),
            ("%d/%m/%y", "dayfirst=True) or dayfirst=False; otherwise"),
            ("%d.%m.%y", "dayfirst=True) or dayfirst=False; otherwise"),
        ],
    )
    def test_dates_in_other_notations(self, form, advice, n_parts):
        days = pd.date_range("2019-12-01", periods=40).strftime(form)
        frame = pd.DataFrame({"day": days, "a": np.arange(40) % 7})
        X = frame if n_parts is None else dd.from_pandas(frame, npartitions=n_parts)
        with pytest.warns(UserWarning, match="Column 'day' has dates such as '") as seen:
            TableEncoder().fit(X)
        (warning,) = seen
        assert advice in str(warning.message)

    @pytest.mark.parametrize("n_parts", [None, 3])
    @pytest.mark.parametrize("other", ["NA", "unknown", "0000-00-00", "2020-02-30", "5"])
    def test_dates_with_another_text(self, other, n_parts):
        days = [*pd.date_range("2020-01-01", periods=39).strftime("%Y-%m-%d"), other]
        frame = pd.DataFrame({"day": days, "a": np.arange(40) % 7})
        X = frame if n_parts is None else dd.from_pandas(frame, npartitions=n_parts)
        with pytest.warns(UserWarning, match="Column 'day' has 39 dates such as") as seen:
            TableEncoder().fit(X)
        (warning,) = seen
        for words in (f"1 other text, such as '{other}', and", f"--missing {other};"):
            assert words in str(warning.message)
        assert "pd.to_datetime(X['day'], errors=\"coerce\")" in str(warning.message)

    def test_parts_that_differ(self):
        # The first half looks like dates, and a whole part has no values at all.
        days = ["2020-01-01", "2020-01-02"] * 10
        for rest, kind in ((days, "date"), (["a", "b"] * 10, "category")):
            frame = pd.DataFrame({"day": days + [None] * 20 + rest, "a": np.arange(60) % 7})
            for X in (frame, dd.from_pandas(frame, npartitions=6)):
                encoder = TableEncoder().fit(X)
                assert encoder.treatments_.loc["day", "kind"] == kind

    def test_new_rows(self, table):
        encoder = TableEncoder().fit(table)
        other = table.assign(signup=table["signup"].dt.strftime("%Y-%m-%d"))
        pd.testing.assert_frame_equal(encoder.transform(other), encoder.transform(table))
        with pytest.raises(ValueError, match="needs dates in column 'renewal', got 'soon'"):
            encoder.transform(table.assign(renewal="soon"))
        with pytest.raises(ValueError, match="needs dates in column 'signup', got '5'"):
            encoder.transform(table.assign(signup=5))

    @pytest.mark.parametrize("as_objects", [False, True])
    @pytest.mark.parametrize(
        ("name", "value", "needed"),
        [
            ("spend", pd.Timestamp("2024-01-01"), "numbers"),
            ("spend", pd.Timestamp("2024-01-01", tz="UTC"), "numbers"),
            ("spend", pd.Timedelta("3D"), "numbers"),
            ("spend", pd.Period("2024-05"), "numbers"),
            ("signup", pd.Timedelta("3D"), "dates"),
            ("renewal", pd.Timedelta("3D"), "dates"),
            ("stay", pd.Timestamp("2024-01-01"), "durations"),
            ("stay", 5, "durations"),
            ("stay", "3 days", "durations"),
        ],
    )
    def test_new_rows_in_other_units(self, table, name, value, needed, as_objects):
        encoder = TableEncoder().fit(table)
        new = table.assign(**{name: value})
        if as_objects:
            new[name] = new[name].astype(object)
        message = f"needs {needed} in column '{name}', got '{str(value)[:4]}"
        with pytest.raises(ValueError, match=message):
            encoder.transform(new)
        with pytest.raises(ValueError, match=message):
            encoder.transform(dd.from_pandas(new, npartitions=2)).compute()

    @pytest.mark.parametrize("name", ["spend", "signup", "stay"])
    def test_missing_times_are_gaps_everywhere(self, table, name):
        encoder = TableEncoder().fit(table)
        for gaps in (pd.NaT, pd.Series([pd.NaT] * N, dtype=object), np.nan):
            assert encoder.transform(table.assign(**{name: gaps}))[name].isna().all()

    def test_duration_objects(self, table):
        objects = table.assign(stay=table["stay"].astype(object))
        encoder = TableEncoder().fit(objects)
        assert encoder.treatments_.loc["stay", "kind"] == "duration"
        expected = TableEncoder().fit_transform(table)
        pd.testing.assert_frame_equal(encoder.transform(objects), expected)

    def test_gaps(self, table):
        table.loc[3, "signup"] = pd.NaT
        table.loc[[4, 5], "renewal"] = None
        kept = TableEncoder().fit_transform(table)
        assert kept["signup"].isna().sum() == 1
        assert kept["renewal"].isna().sum() == 2
        encoder = TableEncoder("median").fit(table)
        assert encoder.transform(table)["signup"].iloc[3] == encoder.fillings_["signup"]

    def test_single_precision_does_not_round_times(self):
        times = pd.to_datetime(["2020-01-01 00:00:01", "2020-01-01 00:00:02"])
        frame = pd.DataFrame({"a": np.float32([1, 2]), "time": times})
        encoded = TableEncoder().fit_transform(frame)["time"]
        assert encoded.diff().iloc[1] * 86_400 == pytest.approx(1, abs=1e-5)


class TestLooks:
    def test_estimates_do_not_depend_on_the_division(self):
        rng = np.random.default_rng(0)
        column = pd.Series(rng.integers(0, 60_000, 200_000))
        whole = look_at(column, "number")
        parts = [
            look_at(column.iloc[i : i + 9_000], "number") for i in range(0, 200_000, 9_000)
        ]
        merged = merge_looks(parts)
        assert len(whole.hashes) == SKETCH
        np.testing.assert_array_equal(whole.hashes, merged.hashes)
        assert merged[:4] == whole[:4]
        assert whole.n_distinct == pytest.approx(column.nunique(), rel=0.1)
        assert not whole.is_distinct
        assert look_at(pd.Series(np.arange(200_000)), "number").is_distinct

    def test_huge_whole_numbers(self):
        huge = pd.DataFrame(
            {"id": np.arange(20, dtype=np.uint64) * 2**12 + 2**63, "a": range(0, 40, 2)}
        )
        assert TableEncoder().fit(huge).treatments_["treatment"].tolist() == ["number"] * 2
        objects = pd.DataFrame({"o": [2**80 * i for i in range(20)], "a": range(0, 40, 2)})
        assert "o" in TableEncoder().fit(objects).numbers_


class TestModel:
    def test_profiles_speak_of_dates(self, table, tmp_path):
        model = TabularCAFE(CAFE(2, p=2.0, n_init=2, random_state=0)).fit(table)
        profile = model.profile_frame(table)
        words = profile.loc[profile["variable"] == "signup", "description"]
        assert words.str.fullmatch(
            r"signup 20\d\d-\d\d-\d\d \(overall 20\d\d-\d\d-\d\d\)"
        ).all()
        assert not {"customer_id", "line", "name"} & set(model.weights_frame())
        loaded = load_model(save_model(model, tmp_path / "model.skops"))
        pd.testing.assert_frame_equal(loaded.profile_frame(table), profile)
        pd.testing.assert_frame_equal(loaded.encoder_.treatments_, model.encoder_.treatments_)

    def test_explanations_and_reports_speak_of_dates(self, table, cafe, tmp_path):
        pytest.importorskip("jinja2")
        model = TabularCAFE(CAFE(2, p=2.0, n_init=2, random_state=0)).fit(table)
        found = explain(model, table, 0)
        assert found.attrs["units"] == {"signup": "date", "renewal": "date", "stay": "duration"}
        shown = values_shown(found)
        assert shown.loc["signup", "value"] == f"{table.loc[0, 'signup']:%Y-%m-%d}"
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", shown.loc["renewal", "first_center"])
        assert shown.loc["stay", "second_center"].endswith(" days")
        assert shown.loc["plan", "value"] == "paid"
        assert re.fullmatch(r"paid [<>]?\d+%", shown.loc["plan", "first_center"])
        gap = table.head(1).assign(signup=pd.NaT, plan=None)
        shown = values_shown(explain(model, gap, 0))
        assert shown.loc[["signup", "plan"], "value"].tolist() == ["missing"] * 2
        page = write_fit_report(model, table, tmp_path / "r.html").read_text(encoding="utf-8")
        first, last = (
            f"{day:%Y-%m-%d}" for day in (min(table["signup"]), max(table["signup"]))
        )
        assert f">{first}<" in page
        assert f">{last}<" in page
        assert " days<" in page
        assert "e+04<" not in page
        table.drop(columns="stay").to_csv(tmp_path / "t.csv", index=False)
        path, file = tmp_path / "t.csv", tmp_path / "m.skops"
        assert cafe("fit", path, "-k", 2, *QUICK, "--model", file)[0] == 0
        code, out, err = cafe("explain", file, path, "--row", 0)
        assert code == 0, err
        assert f"{table.loc[0, 'signup']:%Y-%m-%d}" in out
        assert re.search(r"paid [<>]?\d+%", out)

    def test_dates_within_a_day_have_times(self):
        kind = np.arange(60) % 2
        time = pd.Timestamp("2024-05-31") + pd.to_timedelta(8 + 9 * kind, "h")
        frame = pd.DataFrame({"time": time, "a": kind + np.linspace(0, 0.1, 60)})
        model = TabularCAFE(CAFE(2, p=2.0, n_init=2, random_state=0)).fit(frame)
        words = " ".join(model.profile_frame(frame)["description"])
        assert "time 2024-05-31 08:00 (overall 2024-05-31 12:30)" in words


class TestCommand:
    def test_said_in_one_line_each(self, table, cafe, tmp_path):
        path = tmp_path / "table.csv"
        table.drop(columns="stay").to_csv(path, index=False)
        code, _, err = cafe("fit", path, "-k", 2, *QUICK)
        assert code == 0, err
        lines = err.splitlines()
        (left_out,) = [line for line in lines if "Left out: " in line]
        assert "'customer_id' (identifier: distinct integers in a column named" in left_out
        assert "'note' (free text: 200 distinct values in 200 rows)" in left_out
        assert "--numeric or --category" in left_out
        (days,) = [line for line in lines if "days since 1970-01-01" in line]
        assert "'signup', 'renewal'" in days

    @pytest.mark.parametrize("name", ["revenue", "last", "renewal"])
    def test_only_bad_cells_are_named(self, table, name, cafe, tmp_path):
        table["revenue"] = [f"{1000 * x + 1000:,.2f}" for x in table["spend"]]
        table["last"] = table["signup"].dt.strftime("%d.%m.%Y")
        table = table.drop(columns=["stay", "signup"])
        path, model, out = tmp_path / "t.csv", tmp_path / "m.skops", tmp_path / "o.csv"
        table.to_csv(path, index=False)
        assert cafe("fit", path, "-k", 2, *QUICK, "--model", model)[0] == 0
        new = table.head(5).copy()
        new.loc[1, name] = "NA"
        new.to_csv(path, index=False)
        code, _, err = cafe("transform", model, path, "--out", out)
        assert code == 0, err
        assert pd.read_csv(out).notna().all(axis=None)
        new.loc[2, name] = "abc"
        new.to_csv(path, index=False)
        code, _, err = cafe("transform", model, path, "--out", tmp_path / "p.csv")
        assert code != 0
        assert re.search(f"needs (numbers|dates) in column '{name}', got 'abc'\\.\n", err)
        assert cafe("explain", model, path, "--row", 0)[0] == 0

    @pytest.mark.parametrize("in_parts", [False, True])
    def test_times_for_numbers(self, table, in_parts, cafe, tmp_path):
        table, model = table[["spend", "visits", "plan"]], tmp_path / "m.skops"
        for name, frame in (
            ("old", table),
            ("new", table.assign(visits=pd.Timestamp("2024-01-01"))),
        ):
            (tmp_path / name).mkdir()
            frame.to_parquet(tmp_path / name / "a.parquet", index=False)
        old, new = (
            tmp_path / name if in_parts else tmp_path / name / "a.parquet"
            for name in ("old", "new")
        )
        assert cafe("fit", old, "-k", 2, *QUICK, "--model", model)[0] == 0
        out = tmp_path / "out.parquet"
        code, _, err = cafe("transform", model, new, "--out", out)
        assert code != 0
        assert "needs numbers in column 'visits', got '2024-01-01 00:00:00'." in err

    def test_overrides_and_json(self, table, cafe, tmp_path):
        path = tmp_path / "table.csv"
        table.drop(columns="stay").to_csv(path, index=False)
        code, out, err = cafe(
            *("fit", path, "-k", 2, *QUICK, "--json", "--numeric", "line,customer_id"),
            *("--drop", "signup"),
        )
        assert code == 0, err
        columns = {row["column"]: row for row in json.loads(out)["columns"]}
        assert columns["line"]["treatment"] == columns["customer_id"]["treatment"] == "number"
        assert columns["signup"]["kind"] == "dropped"
        assert columns["renewal"]["kind"] == "date"
        assert columns["country"]["kind"] == "constant"
