"""Fits to rows with missing values: against the reference, invariances, tables, errors."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

import reference
from cafelearn import (
    CAFE,
    PAPER,
    MinkowskiWeightedKMeans,
    RangeScaler,
    TableEncoder,
    TabularCAFE,
)
from cafelearn.datasets import load
from cafelearn.diagnosis import DiagnosisWarning
from cafelearn.explanation import explain
from cafelearn.kmeans import descent, placing
from cafelearn.persistence import load_model, save_model
from cafelearn.theory import certificate

QUICK = {"n_init": 3, "random_state": 0}
HARD = {"selection": "likelihood"}


def make_rows(seed=0, n=90, m=5, share=0.25, dtype=np.float64):
    """Three clusters with gaps, their classes, and the same rows without gaps."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = (rng.normal(size=(n, m)) + 3 * y[:, None]).astype(dtype)
    gaps = rng.random(X.shape) < share
    gaps[np.arange(n), rng.integers(m, size=n)] = False
    gaps[:3] = False
    return np.where(gaps, dtype(np.nan), X), y, X


class TestAgainstTheReference:
    @pytest.mark.parametrize("p", [1.2, 2.0, 3.0, 4.5])
    @pytest.mark.parametrize("offset", ["mean", 0.7])
    def test_descent(self, p, offset):
        X, _, _ = make_rows(seed=1)
        labels, centers, weights, full, path = reference.gapped_mwk_means(X, X[:3], p, offset)
        model = MinkowskiWeightedKMeans(3, p=p, dispersion_offset=offset, init=X[:3]).fit(X)
        np.testing.assert_array_equal(model.labels_, labels)
        np.testing.assert_allclose(model.cluster_centers_, centers, atol=1e-8)
        np.testing.assert_allclose(model.feature_weights_, weights, rtol=1e-6)
        np.testing.assert_allclose(model.dispersions_, full, rtol=1e-6)
        np.testing.assert_allclose(model.objective_path_, path, rtol=1e-6)

    @pytest.mark.parametrize("p", [1.5, 2.0, 3.0, 60.0])
    def test_distances(self, p):
        X, _, _ = make_rows(seed=2)
        model = MinkowskiWeightedKMeans(3, p=p, **QUICK).fit(X)
        means = model.dispersions_ / np.bincount(model.labels_)[:, None]
        logs = np.log(
            reference.gapped_distances(
                X, model.cluster_centers_, model.feature_weights_, p, means
            )
        )
        np.testing.assert_allclose(np.log(model.transform(X)), logs / p, atol=1e-9)

    def test_no_member_of_a_cluster_is_observed(self):
        X = np.array([[0.0, 1.0], [0.1, 2.0], [0.2, 1.5], [9.0, np.nan], [9.1, np.nan]])
        start = np.array([[0.0, 1.0], [9.0, 1.0]])
        model = MinkowskiWeightedKMeans(2, init=start, dispersion_offset=0.1).fit(X)
        np.testing.assert_array_equal(model.labels_, [0, 0, 0, 1, 1])
        # The mean dispersion of all rows, for two members.
        assert model.dispersions_[1, 1] == pytest.approx(2 * np.var([1.0, 2.0, 1.5]))
        assert np.isfinite(model.cluster_centers_).all()


class TestObjective:
    @pytest.mark.parametrize("p", [1.3, 2.0, 3.0])
    def test_it_is_the_sum_over_rows(self, p):
        X, _, _ = make_rows()
        model = MinkowskiWeightedKMeans(3, p=p, **QUICK).fit(X)
        assert model.stop_reason_ == "converged"
        assert model.inertia_ == pytest.approx(-model.score(X), rel=1e-9)
        whole = (model.feature_weights_**p * model.dispersions_).sum()
        assert model.inertia_ == pytest.approx(whole, rel=1e-9)

    def test_centres_and_weights_minimise_it(self):
        X, _, _ = make_rows(seed=3)
        p, c = 2.5, 0.5
        model = MinkowskiWeightedKMeans(3, p=p, dispersion_offset=c, **QUICK).fit(X)
        rng = np.random.default_rng(0)

        def value(centers, weights):
            total = 0.0
            for l in range(3):
                away = np.abs(X[model.labels_ == l] - centers[l]) ** p
                mean = np.nanmean(away, axis=0)
                total += (weights[l] ** p * (mean * len(away) + c)).sum()
            return total

        lowest = value(model.cluster_centers_, model.feature_weights_)
        for _ in range(50):
            centers = model.cluster_centers_ + 0.05 * rng.normal(size=(3, 5))
            weights = rng.dirichlet(np.full(5, 20.0), 3)
            assert value(centers, model.feature_weights_) > lowest
            assert value(model.cluster_centers_, weights) > lowest

    def test_an_assignment_may_raise_it(self):
        # A row that enters a cluster also changes what the gaps of its members count for.
        gap = np.nan
        X = np.array([[gap, 5], [3, gap], [2, 5], [gap, 2], [3, 9], [1, gap], [0, 4], [9, gap]])
        start = np.array([[2.0, 5.0], [3.0, 9.0]])
        path = reference.gapped_mwk_means(X, start, 2.0, 1.0)[-1]
        model = MinkowskiWeightedKMeans(2, dispersion_offset=1.0, init=start).fit(X)
        np.testing.assert_allclose(model.objective_path_, path)
        assert path[1] > 1.01 * path[0]
        assert model.stop_reason_ == "converged"

    def test_it_cannot_rise_where_gaps_are_of_one_feature_without_spread(self):
        X, _, _ = make_rows(share=0.0)
        X = np.column_stack([X, np.where(np.arange(len(X)) % 4 == 0, np.nan, 1.0)])
        model = MinkowskiWeightedKMeans(3, dispersion_offset=1.0, **QUICK).fit(X)
        assert (np.diff(model.objective_path_) <= 1e-12 * model.inertia_).all()


class TestInvariances:
    @pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
    def test_threads(self, p):
        X, _, _ = make_rows(n=9_000, m=40)
        options = {"p": p, "n_init": 2, "max_iter": 4, "random_state": 0}
        one = MinkowskiWeightedKMeans(3, n_jobs=1, **options).fit(X)
        two = MinkowskiWeightedKMeans(3, n_jobs=2, **options).fit(X)
        np.testing.assert_array_equal(one.labels_, two.labels_)
        np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)
        assert one.inertia_ == two.inertia_

    def test_weights_are_repetitions(self):
        X, _, _ = make_rows(seed=4)
        weight = np.random.default_rng(0).integers(0, 3, len(X))
        options = {"init": X[:3], "dispersion_offset": "fixed"}
        one = MinkowskiWeightedKMeans(3, **options).fit(X, sample_weight=weight)
        two = MinkowskiWeightedKMeans(3, **options).fit(np.repeat(X, weight, axis=0))
        np.testing.assert_allclose(one.cluster_centers_, two.cluster_centers_, atol=1e-9)
        assert one.inertia_ == pytest.approx(two.inertia_)

    @pytest.mark.parametrize("unit", [1e-100, 1e100])
    def test_units(self, unit):
        X, _, _ = make_rows()
        one = MinkowskiWeightedKMeans(3, p=3.0, **QUICK).fit(X)
        two = MinkowskiWeightedKMeans(3, p=3.0, **QUICK).fit(X * unit)
        np.testing.assert_array_equal(one.labels_, two.labels_)
        np.testing.assert_allclose(two.cluster_centers_ / unit, one.cluster_centers_, rtol=1e-8)
        np.testing.assert_array_equal(two.predict(X * unit), two.labels_)

    def test_single_precision(self):
        X, _, _ = make_rows(dtype=np.float32)
        model = MinkowskiWeightedKMeans(3, **QUICK).fit(X)
        assert model.cluster_centers_.dtype == np.float32
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        double = MinkowskiWeightedKMeans(3, **QUICK).fit(X.astype(np.float64))
        np.testing.assert_array_equal(model.labels_, double.labels_)

    def test_order_of_features(self):
        X, _, _ = make_rows()
        order = [3, 1, 4, 0, 2]
        one = MinkowskiWeightedKMeans(3, init=X[:3]).fit(X)
        two = MinkowskiWeightedKMeans(3, init=X[:3, order]).fit(X[:, order])
        np.testing.assert_array_equal(one.labels_, two.labels_)

    @pytest.mark.parametrize("init", ["random", "k-means++", "anomalous"])
    def test_starts(self, init):
        X, y, _ = make_rows(share=0.1)
        model = MinkowskiWeightedKMeans(3, init=init, **QUICK).fit(X)
        assert adjusted_rand_score(y, model.labels_) > 0.9

    def test_starts_on_a_sample(self):
        X, y, _ = make_rows(n=1_200, share=0.1)
        model = MinkowskiWeightedKMeans(3, subsample=200, **QUICK).fit(X)
        assert adjusted_rand_score(y, model.labels_) > 0.9
        assert len(model.init_objectives_) == 3

    def test_callables_are_shown_rows_without_gaps(self):
        X, _, _ = make_rows()
        seen = []

        def first(rows, n_clusters, random_state):
            seen.append(rows)
            return rows[:n_clusters]

        MinkowskiWeightedKMeans(3, init=first, n_init=1).fit(X)
        assert np.isfinite(seen[0]).all()
        np.testing.assert_array_equal(seen[0][~np.isnan(X)], X[~np.isnan(X)])

    def test_clusters_that_lose_their_rows_get_others(self):
        X, _, _ = make_rows(n=40, share=0.5)
        for seed in range(20):
            model = MinkowskiWeightedKMeans(9, n_init=1, random_state=seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DiagnosisWarning)
                assert len(np.unique(model.fit(X).labels_)) == 9

    def test_max_iter(self):
        X, _, _ = make_rows(share=0.4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MinkowskiWeightedKMeans(4, max_iter=1, **QUICK).fit(X)
        np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("subsample", [None, 100])
def test_complete_rows_take_the_plain_passes(subsample, monkeypatch):
    _, _, complete = make_rows(n=300)
    for name in ("gapped_assign_chunk", "stand_for_all"):
        monkeypatch.setattr(descent, name, lambda *_: pytest.fail("not complete"))
    monkeypatch.setattr(placing, "gapped_distances", lambda *_: pytest.fail("not complete"))
    model = MinkowskiWeightedKMeans(3, subsample=subsample, **QUICK).fit(complete)
    np.testing.assert_array_equal(model.predict(complete), model.labels_)
    CAFE(3, **QUICK).fit_transform(complete)


class TestInputs:
    def test_rows_without_a_value(self):
        X, _, _ = make_rows()
        X[[7, 12]] = np.nan
        for model in (MinkowskiWeightedKMeans(3), CAFE(3), CAFE("auto")):
            with pytest.raises(ValueError, match=r"in 2 rows \(counted from 0\): 7, 12\. Drop"):
                model.fit(X)
        model = MinkowskiWeightedKMeans(3, **QUICK).fit(X[20:])
        with pytest.raises(ValueError, match=r"MinkowskiWeightedKMeans .* 7, 12"):
            model.predict(X)

    def test_columns_without_a_value(self):
        X, _, _ = make_rows()
        frame = pd.DataFrame(X, columns=list("abcde")).assign(c=np.nan)
        for model in (MinkowskiWeightedKMeans(3), CAFE(3), CAFE([2, 3]), RangeScaler()):
            with pytest.raises(ValueError, match=r"in each column, .* in 1 column: 'c'\. Drop"):
                model.fit(frame)

    def test_kinds_of_missing(self):
        polars = pytest.importorskip("polars")
        X, _, _ = make_rows()
        X = np.round(X)
        expected = MinkowskiWeightedKMeans(3, **QUICK).fit(X).labels_
        names = list("abcde")
        nullable = pd.DataFrame(X, columns=names).astype("Int64")
        values = [[None if np.isnan(x) else int(x) for x in row] for row in X.tolist()]
        frames = [
            nullable,
            nullable.astype("float64"),
            pd.DataFrame(X, columns=names).astype(object).where(~np.isnan(X), None),
            polars.DataFrame(values, schema=names, orient="row"),
        ]
        for frame in frames:
            model = MinkowskiWeightedKMeans(3, **QUICK).fit(frame)
            np.testing.assert_array_equal(model.labels_, expected)
            np.testing.assert_array_equal(model.predict(frame), expected)

    def test_infinity_is_refused(self):
        X, _, _ = make_rows()
        X[1, 1] = np.inf
        with pytest.raises(ValueError, match="infinity"):
            MinkowskiWeightedKMeans(3).fit(X)

    def test_a_column_that_one_half_of_the_rows_lacks(self):
        X, _, _ = make_rows(n=120, share=0.1)
        X[1:, 4] = np.nan
        model = MinkowskiWeightedKMeans([2, 3, 4], **QUICK).fit(X)
        assert model.n_clusters_ == 3

    def test_certificate(self):
        X, _, _ = make_rows()
        model = MinkowskiWeightedKMeans(3, **QUICK).fit(X)
        with pytest.raises(ValueError, match="needs complete rows"):
            certificate(model, X)


class TestCAFE:
    @pytest.mark.parametrize("selection", ["mixture", "likelihood"])
    @pytest.mark.parametrize("rescaling", ["auto", "distances", "origin", "centroid"])
    def test_features(self, rescaling, selection):
        X, y, _ = make_rows()
        cafe = CAFE(3, rescaling=rescaling, selection=selection, **QUICK)
        features = cafe.fit_transform(X)
        assert np.isfinite(features).all()
        np.testing.assert_array_equal(features, cafe.transform(X))
        np.testing.assert_array_equal(cafe.predict(X), cafe.labels_)
        assert adjusted_rand_score(y, cafe.labels_) > 0.9
        assert not any(finding.severity == "severe" for finding in cafe.diagnosis_)

    def test_gaps_are_filled_by_the_probabilities(self):
        X, _, _ = make_rows()
        cafe = CAFE(3, **QUICK).fit(X)
        filled = np.where(np.isnan(X), cafe.predict_proba(X) @ cafe.cluster_centers_, X)
        rows = cafe.transform(X)[:, :5]
        slope = np.array([np.polyfit(a, b, 1) for a, b in zip(filled.T, rows.T, strict=True)])
        np.testing.assert_allclose(filled * slope[:, 0] + slope[:, 1], rows, atol=1e-9)
        np.testing.assert_allclose(np.where(np.isnan(X), 0, rows).mean(axis=0), 0, atol=1e-9)

    def test_gaps_are_filled_with_the_centre(self):
        X, _, _ = make_rows()
        cafe = CAFE(3, extractor=None, rescaling="centroid", **HARD, **QUICK).fit(X)
        filled = np.where(np.isnan(X), cafe.cluster_centers_[cafe.labels_], X)
        gaps = np.isnan(X)
        z = cafe.model_.cluster_centers_[cafe.labels_]
        np.testing.assert_allclose(cafe.rescale(X)[gaps], z[gaps], atol=1e-12)
        scaled = cafe.scaler_.transform(filled)
        weights = cafe.feature_weights_ / cafe.feature_weights_.max(axis=1, keepdims=True)
        expected = z + weights[cafe.labels_] * (scaled - z)
        np.testing.assert_allclose(cafe.rescale(X), expected, atol=1e-12)

    def test_distances_are_those_of_the_gaps(self):
        X, _, _ = make_rows()
        cafe = CAFE(3, extractor=None, **HARD, **QUICK).fit(X)
        shortest, _, scale = cafe._distance_scales
        found = np.exp(cafe.rescale(X)[:, 5:] * scale) - shortest
        expected = cafe.model_.transform(cafe.scaler_.transform(X))
        np.testing.assert_allclose(found, expected, rtol=1e-9)

    def test_new_rows_of_a_fit_to_complete_ones(self):
        X, y, complete = make_rows(share=0.15)
        cafe = CAFE(3, **QUICK).fit(complete)
        assert adjusted_rand_score(y, cafe.predict(X)) > 0.85
        assert np.isfinite(cafe.transform(X)).all()

    def test_number_of_clusters(self):
        X, _, _ = make_rows(n=180)
        assert CAFE("auto", random_state=0).fit(X).n_clusters_ == 3

    def test_the_paper(self):
        X, y, _ = make_rows()
        cafe = CAFE(3, **PAPER | QUICK).fit(X)
        assert adjusted_rand_score(y, cafe.labels_) > 0.9

    def test_starts_from_filled_rows_are_tried(self, monkeypatch):
        X, _, complete = make_rows()
        from cafelearn.estimators import cafe_fitting as _cafe

        calls = []

        def record(models, sources, n_jobs, verbose, filled):
            calls.append(filled)
            return fit(models, sources, n_jobs, verbose, filled)

        fit = _cafe.fit_models
        monkeypatch.setattr(_cafe, "fit_models", record)
        cafe = CAFE(3, **QUICK).fit(X)
        assert calls == [False, True]
        assert len(cafe.candidates_) == len(cafe.models_) == 12
        CAFE(3, **QUICK).fit(complete)
        assert calls == [False, True, False]

    def test_explanation(self):
        X, _, _ = make_rows()
        cafe = CAFE(3, **HARD, **QUICK).fit(X)
        row = int(np.flatnonzero(np.isnan(X).any(axis=1))[0])
        found = explain(cafe, X, row)
        p = found.attrs["p"]
        total = found.attrs["second_distance"] ** p - found.attrs["first_distance"] ** p
        assert found["contribution"].sum() == pytest.approx(total, rel=1e-8)
        assert found["value"].isna().sum() == np.isnan(X[row]).sum()

    def test_saved(self, tmp_path):
        X, _, _ = make_rows()
        cafe = CAFE(3, **QUICK).fit(X)
        loaded = load_model(save_model(cafe, tmp_path / "gaps.skops"))
        np.testing.assert_array_equal(loaded.transform(X), cafe.transform(X))

    def test_report(self, tmp_path):
        from cafelearn.report import write_fit_report

        X, _, _ = make_rows()
        path = tmp_path / "report.html"
        write_fit_report(CAFE(3, **QUICK).fit(X), X, path)
        page = path.read_text(encoding="utf-8")
        assert "complete rows" in page
        assert ">missing<" in page


class TestTables:
    def table(self):
        table = load("iris").frame.assign(
            kind=lambda t: np.where(t["petal_width"] > 1, "wide", "narrow")
        )
        table = table.drop(columns="target")
        table.loc[::7, "kind"] = None
        table.loc[3::9, "sepal_width"] = np.nan
        return table

    def test_a_missing_category_is_missing_in_all_of_its_columns(self):
        table = self.table()
        encoded = TableEncoder().fit_transform(table)
        gaps = encoded[["kind=narrow", "kind=wide"]].isna()
        np.testing.assert_array_equal(gaps, np.tile(table[["kind"]].isna(), 2))
        np.testing.assert_array_equal(
            encoded["sepal_width"].isna(), table["sepal_width"].isna()
        )

    def test_fit(self):
        table = self.table()
        model = TabularCAFE(CAFE(3, **QUICK)).fit(table)
        np.testing.assert_array_equal(model.predict(table), model.labels_)
        assert np.isfinite(model.transform(table)).all()
        assert explain(model, table, 0).loc["kind", "category"] is None
        assert explain(model, table, 1).loc["kind", "category"] == "narrow"
        shares = model.profile_frame(table).query("variable == 'kind'")
        assert shares.groupby("cluster")["center"].sum().to_numpy() == pytest.approx(1.0)

    def test_imputed(self):
        table = self.table()
        encoded = TableEncoder("median").fit_transform(table)
        assert not encoded.isna().to_numpy().any()
        assert encoded.loc[3, "sepal_width"] == table["sepal_width"].median()

    def test_empty_rows_and_columns(self):
        table = self.table()
        with pytest.raises(ValueError, match="without any value: 'empty'"):
            TabularCAFE(CAFE(3)).fit(table.assign(empty=np.nan))
        table.loc[5] = np.nan
        with pytest.raises(ValueError, match=r"in 1 row \(counted from 0\): 5\. Drop"):
            TabularCAFE(CAFE(3)).fit(table)


class TestDask:
    def test_new_rows(self):
        array = pytest.importorskip("dask.array")
        X, _, _ = make_rows()
        cafe = CAFE(3, **QUICK).fit(X)
        lazy = array.from_array(X, chunks=(30, 5))
        np.testing.assert_array_equal(cafe.predict(lazy).compute(), cafe.labels_)
        np.testing.assert_allclose(cafe.transform(lazy).compute(), cafe.transform(X))
