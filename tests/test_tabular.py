"""Estimators for tables of numbers and text, and explanations of rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from cafelearn import CAFE, MinkowskiWeightedKMeans
from cafelearn.datasets import load
from cafelearn.estimators.tabular import TabularCAFE
from cafelearn.interpret.explanation import explain, log_joint_without
from cafelearn.persistence import ModelFileError, load_model, save_model
from cafelearn.tables.encoding import TableEncoder

IRIS = load("iris").frame


class TestEncoder:
    def test_kinds_of_columns(self):
        frame = pd.DataFrame(
            {
                "whole": [1, 2, 3],
                "nullable": pd.array([1, 2, 4], dtype="Int64"),
                "objects": pd.Series([1, 2.5, 3], dtype=object),
                "flag": [True, False, True],
                "level": pd.Categorical(["low", "high", "low"], ["low", "high"], ordered=True),
                "text": ["x", "y", "z"],
            }
        )
        encoded = TableEncoder().fit_transform(frame)
        assert list(encoded) == [
            *("whole", "nullable", "objects", "flag=False", "flag=True"),
            *("level=low", "level=high", "text=x", "text=y", "text=z"),
        ]
        assert encoded.loc[1].tolist() == [2, 2, 2.5, 1, 0, 0, 1, 0, 1, 0]
        codes = TableEncoder(categorical=["whole"]).fit_transform(frame)
        assert list(codes)[2:5] == ["whole=1", "whole=2", "whole=3"]

    def test_refused_columns(self):
        with pytest.raises(ValueError, match="'lists'"):
            TableEncoder().fit(pd.DataFrame({"lists": [[1], [2]]}))
        with pytest.raises(ValueError, match=r"infinite.*'a' \(1\)"):
            TableEncoder().fit(pd.DataFrame({"a": [1, np.inf]}))
        with pytest.raises(ValueError, match="columns that vary"):
            TableEncoder().fit(pd.DataFrame({"a": [1, 1]}))
        with pytest.raises(ValueError, match="without any value: 'a'"):
            TableEncoder("median").fit(pd.DataFrame({"a": [np.nan] * 2, "b": [1, 2]}))
        many = pd.DataFrame({"zip": [f"z{i % 120}" for i in range(1000)]})
        with pytest.raises(ValueError, match=r"'zip' \(120 in 1000 rows\)"):
            TableEncoder().fit(many)
        assert TableEncoder(max_categories=120).fit_transform(many).shape == (1000, 120)
        collision = pd.DataFrame({"a=x": [1, 2], "a": ["x", "y"]})
        with pytest.raises(ValueError, match="two features the name 'a=x'"):
            TableEncoder().fit(collision)

    def test_new_rows(self):
        frame = pd.DataFrame({"n": [1.0, 2.0, 4.0], "c": ["x", "y", "x"]})
        encoder = TableEncoder("median").fit(frame)
        new = pd.DataFrame({"c": ["z", None], "n": [np.nan, 9.0]})
        with pytest.warns(UserWarning, match="unknown categories in 1 row: 'z'"):
            encoded = encoder.transform(new)
        assert encoded.to_numpy().tolist() == [[2, 0, 0], [9, 1, 0]]
        with pytest.raises(ValueError, match="needs numbers in column 'n', got 'many'"):
            encoder.transform(pd.DataFrame({"n": ["1", "many"], "c": ["x", "x"]}))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert encoder.transform(frame.iloc[:, ::-1]).columns[0] == "n"

    def test_single_precision(self):
        frame = pd.DataFrame({"n": np.float32([1, 2]), "c": ["x", "y"]})
        assert set(TableEncoder().fit_transform(frame).dtypes) == {np.dtype(np.float32)}


@parametrize_with_checks(
    [TableEncoder(), TabularCAFE(CAFE(2, p=2.0, n_init=1, random_state=0))]
)
def test_tables_estimators_are_scikit_learns(estimator, check):
    check(estimator)


class TestExplain:
    @pytest.mark.parametrize("p", [1.1, 2.0, 5.0])
    def test_contributions_add_up(self, p, data):
        model = MinkowskiWeightedKMeans(3, p=p, n_init=2, random_state=0).fit(data)
        for row in (0, 57, -1):
            found = explain(model, data, row)
            two = np.sort(model.transform(data)[row])[:2]
            total = found["contribution"].sum()
            assert total == pytest.approx(two[1] ** p - two[0] ** p, rel=1e-8, abs=1e-14)
            assert found.attrs["first"] == model.labels_[row]
            assert found.attrs["margin"] == pytest.approx(1 - two[0] / two[1])
            size = found["contribution"].abs().to_numpy()
            assert (np.diff(size) <= 0).all()
            np.testing.assert_allclose(found["share"], found["contribution"] / size.sum())
            assert found["share"].abs().sum() == pytest.approx(1)

    def test_units_are_those_of_the_data(self):
        X = IRIS.drop(columns="target")
        hard = {"p": 2.0, "n_init": 2, "selection": "likelihood", "random_state": 0}
        cafe = CAFE(3, **hard).fit(X)
        found = explain(cafe, X, 10).loc[list(X.columns)]
        np.testing.assert_allclose(found["value"], X.iloc[10])
        # At p = 2 the centre is the mean of the members.
        mine = X[cafe.labels_ == found.attrs["first"]].mean()
        np.testing.assert_allclose(found["first_center"], mine, rtol=1e-9)
        plain = explain(CAFE(3, **hard).fit(X.to_numpy()), X.to_numpy(), 10)
        assert set(plain.index) == {"x0", "x1", "x2", "x3"}
        assert plain.attrs == found.attrs

    def test_frames_of_mwkmeans_keep_their_names(self, recwarn):
        X = IRIS.drop(columns="target")
        model = MinkowskiWeightedKMeans(3, n_init=2, random_state=0).fit(X)
        assert set(explain(model, X, 3).index) == set(X.columns)
        assert not recwarn.list

    def test_no_difference_has_no_shares(self):
        # The third row is half way between two clusters, and differs in nothing else.
        X = np.array([[0.0, 1.0], [2.0, 1.0], [1.0, 1.0]])
        model = MinkowskiWeightedKMeans(2, weighting="uniform", init=X[:2]).fit(X[:2])
        assert explain(model, X, 2)["share"].tolist() == [0, 0]

    def test_bad_calls(self):
        X = IRIS.drop(columns="target")
        cafe = CAFE(1, p=2.0, n_init=1).fit(X)
        for one in (cafe, CAFE(1, selection="likelihood", p=2.0, n_init=1).fit(X)):
            with pytest.raises(ValueError, match="at least two clusters"):
                explain(one, X, 0)
        with pytest.raises(IndexError, match="needs -150 <= row < 150, got 150"):
            explain(cafe, X, 150)
        with pytest.raises(TypeError, match="an integer"):
            explain(cafe, X, "first")
        with pytest.raises(TypeError, match="got RangeScaler"):
            explain(cafe.scaler_, X, 0)


class TestExplainMixture:
    def test_independent_columns_add_up(self):
        rng = np.random.default_rng(0)
        X = np.r_[rng.normal(0, 1, (60, 4)), rng.normal(3, 1, (60, 4))]
        cafe = CAFE(2, n_init=2, random_state=0).fit(X)
        assert (cafe.mixture_.covariance_, cafe.mixture_.tails_) == ("independent", False)
        for row in (0, 70, -1):
            found = explain(cafe, X, row)
            total = found["contribution"].sum() + found.attrs["prior"]
            assert total == pytest.approx(found.attrs["log_ratio"], rel=1e-9)
            terms = found["first_term"] - found["second_term"]
            np.testing.assert_allclose(found["contribution"], terms)
        share = cafe.predict_proba(X)[-1]
        assert found.attrs["first"] == cafe.labels_[-1]
        assert found.attrs["first_probability"] == pytest.approx(share.max())
        assert found.attrs["margin"] == pytest.approx(cafe.assignment_margin(X)[-1])
        np.testing.assert_allclose(found.loc["x2", "first_center"], X[60:, 2].mean(), atol=0.2)

    def test_correlated_columns(self):
        # The clusters are apart in the difference of two columns, not in either of them.
        rng = np.random.default_rng(1)
        both = rng.normal(scale=4, size=(300, 1))
        X = both + rng.normal(scale=0.5, size=(300, 2))
        X[:150, 0] += 4
        X = np.c_[X, rng.normal(size=(300, 1))]
        cafe = CAFE(2, n_init=2, random_state=0).fit(X)
        assert cafe.mixture_.covariance_ != "independent"
        found = explain(cafe, X, 0)
        assert found.index[-1] == "x2"
        assert (found["contribution"].iloc[:2] > 3).all()
        # Without one of them, the other one says little.
        ratio = log_joint_without(cafe.mixture_, X[:1], [0, 2])
        assert abs(ratio[0] - ratio[1]) < 3
        whole = log_joint_without(cafe.mixture_, X[:1])
        share = np.exp(whole - whole.max())
        np.testing.assert_allclose(share / share.sum(), cafe.predict_proba(X[:1])[0], atol=1e-9)

    def test_a_variable_of_several_columns(self):
        rng = np.random.default_rng(2)
        table = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"])
        table.loc[:59, "a"] += 6
        table["kind"] = np.where(np.arange(120) < 60, "x", "y")
        model = TabularCAFE(CAFE(2, n_init=2, random_state=0)).fit(table)
        found = explain(model, table, 0)
        assert sorted(found.index) == ["a", "b", "kind"]
        assert found.loc["kind", "category"] == "x"
        assert found.loc["kind", "contribution"] > 1
        gap = table.head(1).assign(kind=None)
        assert explain(model, gap, 0).loc["kind", "contribution"] == 0


def test_answers_of_the_mixture():
    table = IRIS.drop(columns="target")
    model = TabularCAFE(CAFE(3, n_init=2, random_state=0)).fit(table)
    share = model.predict_proba(table)
    np.testing.assert_array_equal(share.argmax(axis=1), model.labels_)
    names = ("mixture_", "confidence_", "stability_", "cluster_stability_", "relevance_")
    for name in (*names, "verdict_"):
        assert str(getattr(model, name)) == str(getattr(model.cafe_, name))
    hard = TabularCAFE(CAFE(3, n_init=2, selection="likelihood", random_state=0)).fit(table)
    assert hard.verdict_ == "structure"
    for name in names:
        assert not hasattr(hard, name)


def test_features_have_the_names_of_cafe():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 4)), columns=list("abcd"))
    model = TabularCAFE(CAFE(2, n_components=2, n_init=2, random_state=0))
    found = model.set_output(transform="pandas").fit_transform(frame)
    assert list(found) == list(model.get_feature_names_out()) == ["cafe0", "cafe1"]
    assert list(found) == list(model.loadings_)


class TestIntegerNames:
    def frame(self):
        values = np.random.default_rng(0).normal(size=(60, 3))
        return pd.DataFrame(values, columns=[2019, 2020, 2021])

    def test_are_shown_as_text(self):
        frame = self.frame()
        model = TabularCAFE(CAFE(2, p=2.0, n_init=2, random_state=0)).fit(frame)
        assert set(model.profile_frame(frame)["variable"]) == {"2019", "2020", "2021"}
        assert list(model.weights_frame()) == ["2019", "2020", "2021"]
        expected = model.transform(frame)
        np.testing.assert_array_equal(model.transform(frame.to_numpy()), expected)
        np.testing.assert_array_equal(model.transform(frame[[2021, 2019, 2020]]), expected)
        with pytest.raises(ValueError, match="'2020' is missing from the table"):
            model.transform(frame.drop(columns=2020))

    def test_of_default_columns(self):
        encoder = TableEncoder().fit(self.frame().set_axis(range(3), axis=1))
        assert list(encoder.get_feature_names_out()) == ["x0", "x1", "x2"]

    def test_repeated(self):
        with pytest.raises(ValueError, match="needs columns with distinct names"):
            TableEncoder().fit(self.frame().set_axis([2019, 2019, 2020], axis=1))

    def test_options_and_model_files(self, tmp_path):
        frame = self.frame()
        model = TabularCAFE(CAFE(2, p=2.0, n_init=2, random_state=0), drop=["2019"]).fit(frame)
        assert list(model.weights_frame()) == ["2020", "2021"]
        loaded = load_model(save_model(model, tmp_path / "m.skops"))
        np.testing.assert_array_equal(loaded.transform(frame), model.transform(frame))
        model.encoder_._names_in = ["2019"]
        save_model(model, tmp_path / "bad.skops")
        with pytest.raises(ModelFileError, match="_names_in of TableEncoder"):
            load_model(tmp_path / "bad.skops")
