"""Findings: each appears where it should, nowhere else, and warns once if it is severe."""

import pickle
import warnings
from contextlib import nullcontext

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from cafelearn import CAFE, PAPER, MinkowskiWeightedKMeans, RangeScaler
from cafelearn.data.variables import one_hot_groups
from cafelearn.diagnosis import DiagnosisWarning, Finding
from cafelearn.estimators.tabular import TabularCAFE
from cafelearn.persistence import load_model, save_model
from conftest import make_blobs

RNG = np.random.default_rng(0)
UNIFORM = RNG.uniform(size=(120, 4))
BLOBS = np.r_[RNG.normal(0, 1, (60, 4)), RNG.normal(6, 1, (60, 4))]


def codes(estimator):
    return [finding.code for finding in estimator.diagnosis_]


@pytest.fixture(autouse=True)
def _no_other_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def severe(pattern):
    return pytest.warns(DiagnosisWarning, match=pattern)


def test_nothing_is_found_in_clear_clusters():
    hard = CAFE(2, weighting="cluster", selection="likelihood", random_state=0)
    assert CAFE(2, random_state=0).fit(BLOBS).diagnosis_ == []
    assert hard.fit(BLOBS).diagnosis_ == []
    assert MinkowskiWeightedKMeans(2, random_state=0).fit(BLOBS).diagnosis_ == []


class TestFindings:
    def test_no_structure(self):
        for selection in ("mixture", "likelihood"):
            with severe("No cluster structure") as caught:
                cafe = CAFE(3, selection=selection, random_state=0).fit(UNIFORM)
            assert len(caught) == 1
            assert codes(cafe)[0] == "no-structure"
            assert cafe.diagnosis_[0].severity == "severe"

    def test_collapsed_as_the_paper_does_on_digits(self):
        digits = load_digits().data
        with severe("in one of 10 clusters"):
            cafe = CAFE(10, random_state=0, **PAPER | {"n_init": 5}).fit(digits)
        assert "collapsed" in codes(cafe)
        assert np.bincount(cafe.labels_).max() > 0.9 * len(digits)

    def test_the_default_does_not_collapse_on_digits(self):
        cafe = CAFE(10, n_init=3, selection="likelihood", random_state=0)
        cafe.fit(load_digits().data)
        assert "collapsed" not in codes(cafe)
        assert np.bincount(cafe.labels_).max() < 0.4 * len(cafe.labels_)

    def test_single_rows(self):
        X = np.r_[BLOBS, [[300.0] * 4], [[-400.0] * 4]]
        with severe("2 of 3 clusters have a single row"):
            model = MinkowskiWeightedKMeans(3, weighting="uniform", random_state=0).fit(X)
        assert "singletons" in codes(model)

    def test_one_single_row_of_many_clusters_is_a_note(self):
        X = np.r_[BLOBS, BLOBS + 40, [[300.0] * 4]]
        model = MinkowskiWeightedKMeans(5, weighting="uniform", random_state=0).fit(X)
        assert [(f.code, f.severity) for f in model.diagnosis_] == [("singletons", "note")]
        assert "1 of 5 clusters has a single row" in model.diagnosis_[0].message

    @pytest.mark.parametrize("weight", [0.01, 2.0, 1e300])
    def test_weights_are_not_counted_as_rows(self, weight):
        X = RNG.normal(size=(200, 2))
        X[0] = 1e6
        weights = np.full(201, weight)
        weights[200] = 0.0  # this row does not count
        X, lazy = np.r_[X, X[:1]], da.from_array(np.r_[X, X[:1]], chunks=(70, 2))
        model = MinkowskiWeightedKMeans(2, random_state=0)
        cafe = CAFE(2, selection="likelihood", random_state=0)
        for estimator, rows in ((model, X), (model, lazy), (cafe, X)):
            with severe("99% of the total sample weight is in one of 2 clusters"):
                estimator.fit(rows, sample_weight=weights)
            messages = [f.message for f in estimator.diagnosis_ if f.code == "singletons"]
            assert messages == ["1 of 2 clusters has a single row, perhaps an outlier."]
        with severe(r"99% of the rows \(200 of 201\) are in one of 2 clusters"):
            model.fit(np.r_[X[:200], X[1:2]])
        assert codes(model) == ["collapsed", "singletons"]

    def test_all_rows_in_one_cluster(self):
        with pytest.warns(ConvergenceWarning), severe("100% of the rows .* in one of 2"):
            MinkowskiWeightedKMeans(2, random_state=0).fit(np.ones((5, 2)))

    @pytest.mark.parametrize("n_clusters", ["auto", 1])
    def test_equal_rows_cause_no_other_warning(self, n_clusters):
        X = np.ones((10, 2))
        for rows in (X, da.from_array(X, chunks=5)):
            cafe = CAFE(n_clusters, n_components=1, random_state=0)
            with severe("No cluster") if n_clusters == "auto" else nullcontext():
                cafe.fit(rows)
            assert cafe.extractor_.explained_variance_ratio_ == [0]

    def test_weighting_does_not_help(self):
        wide = RNG.normal(size=(300, 2)) * [1, 30] + np.repeat([[0, 0], [400, 90]], 150, axis=0)
        hard = {"selection": "likelihood", "random_state": 0}
        cafe = CAFE(2, weighting=("cluster", "uniform"), **hard).fit(wide)
        chosen = cafe.candidates_[cafe.candidates_.chosen].weighting.item()
        assert ("uniform" in codes(cafe)) == (chosen == "uniform")
        only = CAFE(2, weighting="uniform", **hard).fit(wide)
        assert "uniform" not in codes(only)  # nothing else was tried

    def test_one_feature_takes_the_weight(self):
        X = pd.DataFrame(BLOBS, columns=["a", "b", "c", "target"])
        X["target"] = np.repeat([0.0, 1.0], 60) + 1e-6 * RNG.normal(size=120)
        with severe("'target'"):
            model = MinkowskiWeightedKMeans(
                2, p=1.5, dispersion_offset=1e-9, random_state=0
            ).fit(X)
        assert codes(model) == ["one-feature"]

    def test_features_of_different_scales(self):
        wine = load_wine(as_frame=True).data
        with severe("range of 'proline' is 2,645 times that of 'nonflavanoid_phenols'"):
            raw = MinkowskiWeightedKMeans(3, random_state=0).fit(wine)
        assert "scales" in codes(raw)
        lazy = da.from_array(wine.to_numpy(), chunks=(60, 13))
        with severe("range of feature 12 is 2,645 times that of feature 7"):
            MinkowskiWeightedKMeans(3, random_state=0).fit(lazy)
        for scaler in (RangeScaler(), StandardScaler()):
            model = MinkowskiWeightedKMeans(3, random_state=0).fit(scaler.fit_transform(wine))
            assert "scales" not in codes(model)
        unscaled = CAFE(3, scaling=None, selection="likelihood", random_state=0)
        with severe("The features have different scales"):
            unscaled.fit(wine)
        assert "scales" not in codes(CAFE(3, scaling=None, random_state=0).fit(wine))
        assert "scales" not in codes(MinkowskiWeightedKMeans(3).fit(load_iris().data))

    def test_offset_that_drowns_the_dispersions(self):
        with severe("times the mean dispersion"):
            model = MinkowskiWeightedKMeans(2, dispersion_offset=1e9, random_state=0).fit(BLOBS)
        assert codes(model) == ["offset"]

    def test_exponents_that_disagree(self):
        settings = {"scaling": "range", "weighting": "cluster", "dispersion_offset": 0.0}
        settings["selection"] = "likelihood"
        X = np.random.default_rng(3).normal(size=(60, 5))
        cafe = CAFE(4, p=(1.05, 2, 6), random_state=0, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DiagnosisWarning)
            cafe.fit(X)
        others = cafe.candidates_[~cafe.candidates_.chosen].agreement
        assert others.mean() < 0.5
        assert "disagreement" in codes(cafe)
        agreeing = CAFE(2, p=(2, 3), random_state=0, **settings).fit(BLOBS)
        assert "disagreement" not in codes(agreeing)


def severities(estimator):
    return {finding.code: finding.severity for finding in estimator.diagnosis_}


def message(estimator, code):
    (found,) = (f.message for f in estimator.diagnosis_ if f.code == code)
    return found


def correlated(rng):
    rows = rng.multivariate_normal([0, 0], [[4, 3.6], [3.6, 4]], 450)
    rows += np.repeat([[0, 0], [6, -5], [12, -10]], 150, axis=0)
    return np.c_[rows, rng.normal(size=(450, 2))]


# True clusters, and their number.
CLEAR = {
    "blobs": (lambda rng: make_blobs(seed=3)[0], 3),
    "correlated": (correlated, 3),
    "heavy tails": (
        lambda rng: (
            rng.standard_t(4, (400, 5))
            + 10 * np.repeat([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]], 200, axis=0)
        ),
        2,
    ),
    "a small cluster": (
        lambda rng: rng.normal(size=(500, 5)) + 8 * (np.arange(500) < 15)[:, None],
        2,
    ),
}


class TestMixture:
    """Findings about the answer of a mixture."""

    @pytest.fixture
    def cafe(self):
        """A fit without findings, to be changed."""
        return CAFE((2, 3), n_init=2, random_state=0).fit(BLOBS)

    @pytest.mark.parametrize("name", CLEAR)
    @pytest.mark.parametrize("seed", [0, 1])
    def test_true_clusters_have_no_severe_findings(self, name, seed):
        make, k = CLEAR[name]
        # A severe finding would be a warning, and so an error.
        cafe = CAFE(k, n_init=2, random_state=0).fit(make(np.random.default_rng(seed)))
        assert cafe.verdict_ == "structure"
        assert "severe" not in severities(cafe).values()

    @pytest.mark.parametrize(
        ("verdict", "severity", "said"),
        [
            ("none", "severe", "No cluster structure was found"),
            ("continuum", "note", "The 2 clusters are cuts through a cloud without gaps"),
            ("inconclusive", "note", "little evidence for or against clusters"),
        ],
    )
    def test_verdicts(self, cafe, verdict, severity, said):
        cafe._answer["verdict"] = verdict
        code = {"none": "no-structure"}.get(verdict, verdict)
        assert severities(cafe)[code] == severity
        assert said in message(cafe, code)

    def test_unstable(self, cafe):
        assert "unstable" not in codes(cafe)
        cafe._answer |= {"stability": 0.74, "clusters": [0.9, 0.4]}
        assert severities(cafe)["unstable"] == "note"
        assert message(cafe, "unstable").endswith("The least stable: cluster 1.")
        cafe._answer |= {"stability": 0.59, "clusters": [0.4, 0.4]}
        assert severities(cafe)["unstable"] == "severe"
        assert "agree with them by 0.59" in message(cafe, "unstable")
        assert "least" not in message(cafe, "unstable")

    def test_ties(self, cafe):
        cafe._numbers["table"]["tied"] = [False, True]
        assert message(cafe, "tied-numbers") == (
            "3 clusters are nearly as good as the 2 that were chosen."
        )

    def test_tiny_clusters(self, cafe):
        cafe._mass = np.array([996.0, 4.0])
        assert "very small (4 rows)" in message(cafe, "tiny-clusters")
        assert severities(cafe)["collapsed"] == "note"  # the verdict is "structure"
        cafe._mass = np.array([981.0, 19.0])
        assert "Cluster 1 is very small (19 rows)" in message(cafe, "tiny-clusters")
        cafe._mass = np.array([970.0, 30.0])
        assert "tiny-clusters" not in codes(cafe)
        cafe._mass, cafe._members = np.array([50.0, 50.0]), np.array([500.0, 3.0])
        assert "(3 rows)" in message(cafe, "tiny-clusters")
        cafe._mass, cafe._members = np.array([99.0, 1.0]), None
        assert codes(cafe)[:2] == ["collapsed", "singletons"]
        assert "tiny-clusters" not in codes(cafe)
        cafe._answer["verdict"] = "continuum"
        assert severities(cafe)["collapsed"] == "severe"
        cafe._mass = None  # unknown
        assert not {"collapsed", "singletons"} & set(codes(cafe))

    def test_weights_count(self):
        weights = np.repeat([3.0, 1.0], 60)
        weights[0] = 0.0
        cafe = CAFE(2, n_init=2, random_state=0).fit(BLOBS, sample_weight=weights)
        assert sorted(cafe._mass / cafe._mass.sum() * 237) == pytest.approx([60, 177])
        assert sorted(cafe._members) == [59, 60]
        cafe._mass = np.array([9.0, 91.0])
        assert "91% of the total sample weight" in message(cafe, "collapsed")

    def test_correlated_columns(self):
        cafe = CAFE(3, n_init=2, random_state=0).fit(correlated(np.random.default_rng(0)))
        assert severities(cafe) == {"correlated": "note"}
        assert "A weight only says how compact" in message(cafe, "correlated")

    def test_isolated_rows(self, cafe):
        cafe._answer["isolated"] = 0.02
        assert message(cafe, "isolated-rows").startswith("2.0% of the rows are far from all")
        X = np.r_[BLOBS, RNG.uniform(-40, 40, (6, 4))]
        cafe = CAFE(2, n_init=2, random_state=0).fit(X)
        assert severities(cafe)["isolated-rows"] == "note"

    def test_disagreement_with_all_candidates(self, cafe):
        for model in cafe.models_:
            model.labels_ = (np.arange(120) % 2).astype(np.int32)
        assert severities(cafe)["disagreement"] == "note"  # the confidence is high
        cafe._answer["stability"] = 0.7
        assert severities(cafe)["disagreement"] == "severe"
        cafe.models_[0].labels_ = None  # lazy
        assert "disagreement" not in codes(cafe)

    def test_one_cluster(self):
        assert CAFE(1, n_init=2, random_state=0).fit(UNIFORM).diagnosis_ == []
        with severe("so all are in one cluster"):
            cafe = CAFE("auto", n_init=2, random_state=0).fit(UNIFORM)
        assert codes(cafe) == ["no-structure"]


class TestEveryEstimator:
    def test_tables(self):
        table = pd.DataFrame(UNIFORM, columns=list("abcd"))
        with severe("No cluster structure"):
            model = TabularCAFE(CAFE(3, random_state=0)).fit(table)
        assert codes(model)[0] == "no-structure"

    def test_dask(self):
        with severe("No cluster structure") as caught:
            lazy = CAFE(3, selection="likelihood", random_state=0)
            lazy.fit(da.from_array(UNIFORM, chunks=(50, 4)))
        with severe("No cluster structure"):
            here = CAFE(3, selection="likelihood", random_state=0).fit(UNIFORM)
        assert len(caught) == 1
        assert lazy.diagnosis_ == here.diagnosis_
        with severe("times the mean dispersion"):
            model = MinkowskiWeightedKMeans(2, dispersion_offset=1e9, random_state=0).fit(
                da.from_array(BLOBS, chunks=(50, 4))
            )
        assert codes(model) == ["offset"]

    def test_copies_and_files(self, tmp_path):
        with severe("No cluster structure"):
            cafe = CAFE(3, random_state=0).fit(UNIFORM)
        assert pickle.loads(pickle.dumps(cafe)).diagnosis_ == cafe.diagnosis_
        again = load_model(save_model(cafe, tmp_path / "model.skops"))
        assert again.diagnosis_ == cafe.diagnosis_
        assert all(isinstance(finding, Finding) for finding in again.diagnosis_)

    def test_warnings_point_to_the_caller(self):
        for call in ("fit", "fit_predict", "fit_transform"):
            with severe("No cluster structure") as caught:
                getattr(CAFE(3, random_state=0), call)(UNIFORM)
            assert [warning.filename for warning in caught] == [__file__]


def test_one_hot_variables_are_found():
    colours, sizes = np.eye(3)[RNG.integers(0, 3, 50)], np.eye(2)[RNG.integers(0, 2, 50)]
    flag = (RNG.random((50, 1)) < 0.5).astype(float)
    number = RNG.normal(size=(50, 1))
    X = np.hstack([colours, sizes, number, flag, colours])
    assert one_hot_groups(X) == [[0, 1, 2], [3, 4], [5], [6], [7, 8, 9]]
    assert one_hot_groups(np.hstack([flag, colours])) == [[0], [1, 2, 3]]
