"""CAFE: sample weights, shares of variance, no extractor, wide data, centres."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import FunctionTransformer, RobustScaler, StandardScaler

from cafelearn import CAFE, MinkowskiWeightedKMeans, RangeScaler
from cafelearn.diagnosis import DiagnosisWarning
from cafelearn.extraction import ReplicatedNMF
from cafelearn.persistence import load_model, save_model
from cafelearn.selection import likelihood_score

WINE = load_wine(as_frame=True).data
QUICK = {"p": 2.0, "n_init": 2, "random_state": 0}
HARD = {"selection": "likelihood"}


def test_the_default_number_of_components_is_capped_by_the_rows():
    X = np.random.default_rng(0).normal(size=(30, 300))
    X[:15, :100] += 3
    cafe = CAFE(2, extractor="pca", **QUICK)
    assert cafe.fit_transform(X).shape == (30, 30)
    assert clone(cafe).set_params(extractor="auto").fit_transform(X).shape == (30, 304)
    with pytest.raises(ValueError, match=r"n_components=31, n_samples=30"):
        CAFE(2, n_components=31, **QUICK).fit(X)


class TestShareOfVariance:
    @pytest.mark.parametrize("rescaling", ["distances", "origin"])
    def test_is_that_of_pca(self, rescaling):
        cafe = CAFE(3, n_components=0.9, rescaling=rescaling, **QUICK).fit(WINE)
        expected = PCA(0.9).fit(cafe.rescale(WINE))
        assert cafe.transform(WINE).shape == (178, expected.n_components_)
        assert 0.9 < cafe.extractor_.explained_variance_ratio_.sum() < 1
        assert len(cafe.get_feature_names_out()) == expected.n_components_

    @pytest.mark.parametrize("extractor", ["nmf", "ica", "autoencoder", ReplicatedNMF(2)])
    def test_other_extractors_refuse_it(self, extractor):
        cafe = CAFE(3, n_components=0.5, extractor=extractor, **QUICK)
        with pytest.raises(ValueError, match=r"to be an integer, got 0.5; only PCA"):
            cafe.fit(WINE)

    def test_on_dask(self):
        X = WINE.to_numpy()
        cafe = CAFE(3, n_components=0.8, **QUICK)
        one, other = clone(cafe).fit(X), clone(cafe).fit(da.from_array(X, chunks=(60, 13)))
        np.testing.assert_allclose(one.transform(X), other.transform(X), atol=1e-8)


class TestNoExtractor:
    @pytest.mark.parametrize("rescaling", ["auto", "distances", "origin", "centroid"])
    def test_gives_the_rescaled_rows(self, rescaling, tmp_path):
        cafe = CAFE(3, extractor=None, rescaling=rescaling, **QUICK).fit(WINE)
        features = cafe.transform(WINE)
        np.testing.assert_array_equal(features, cafe.rescale(WINE))
        assert len(cafe.get_feature_names_out()) == features.shape[1]
        loaded = load_model(save_model(cafe, tmp_path / "wine.skops"))
        np.testing.assert_array_equal(loaded.transform(WINE), features)

    def test_takes_no_number_of_components(self):
        with pytest.raises(ValueError, match=r"extractor=None\) returns the rescaled rows"):
            CAFE(3, extractor=None, n_components=2, **QUICK).fit(WINE)

    def test_on_dask(self):
        X = WINE.to_numpy()
        cafe = CAFE(3, extractor=None, **QUICK)
        lazy = da.from_array(X, chunks=(60, 13))
        one, other = clone(cafe).fit(X), clone(cafe).fit(lazy)
        features = other.transform(lazy)
        assert features.shape == (178, 19)
        np.testing.assert_allclose(one.transform(X), features, atol=1e-8)


class TestSampleWeight:
    @pytest.mark.parametrize("scaling", ["range", "standard", RobustScaler(), None])
    @pytest.mark.parametrize("rescaling", ["distances", "origin"])
    def test_is_the_same_as_repeating_rows_for_hard_candidates(self, scaling, rescaling):
        weight = np.random.default_rng(0).integers(0, 3, len(WINE))
        if isinstance(scaling, RobustScaler):
            weight = np.minimum(
                weight, 1
            )  # quantiles take no weights, but rows may be left out
        options = {"scaling": scaling, "rescaling": rescaling, "n_components": 4}
        options |= HARD | QUICK
        weighed = CAFE(3, **options).fit(WINE, sample_weight=weight)
        repeated = CAFE(3, **options).fit(WINE.loc[WINE.index.repeat(weight)])
        unweighed = CAFE(3, **options).fit(WINE)
        np.testing.assert_array_equal(weighed.predict(WINE), repeated.predict(WINE))
        np.testing.assert_array_equal(weighed.labels_, weighed.predict(WINE))
        np.testing.assert_allclose(
            weighed.transform(WINE), repeated.transform(WINE), rtol=1e-6, atol=1e-8
        )
        assert not np.allclose(weighed.transform(WINE), unweighed.transform(WINE), atol=1e-3)
        sizes = ["smallest", "largest"]
        pd.testing.assert_frame_equal(weighed.candidates_[sizes], repeated.candidates_[sizes])

    @pytest.mark.parametrize("n_clusters", [3, [2, 3]])
    def test_is_much_the_same_as_repeating_rows(self, n_clusters):
        """Starts draw other rows, and a rare row is isolated only if it has the weight 1."""
        weight = np.random.default_rng(0).integers(0, 3, len(WINE))
        weighed = CAFE(n_clusters, **QUICK).fit(WINE, sample_weight=weight)
        repeated = CAFE(n_clusters, **QUICK).fit(WINE.loc[WINE.index.repeat(weight)])
        np.testing.assert_array_equal(weighed.labels_, weighed.predict(WINE))
        assert adjusted_rand_score(weighed.predict(WINE), repeated.predict(WINE)) > 0.9
        assert weighed.verdict_ == repeated.verdict_
        assert weighed._mass.sum() == repeated._mass.sum() == weight.sum()

    @pytest.mark.parametrize("factor", [1e-320, 1e-300, 2.0**-10, 0.25])
    def test_small_weights_are_relative(self, factor):
        rng = np.random.default_rng(0)
        X = np.r_[rng.normal(size=(40, 3)), rng.normal(size=(40, 3)) + 5]
        weight = np.ldexp(1.0, rng.integers(0, 2, 80))
        weight[:5] = 0
        plain = CAFE(2, **QUICK).fit(X, sample_weight=weight / weight[weight > 0].mean())
        other = CAFE(2, **QUICK).fit(X, sample_weight=weight * factor)
        np.testing.assert_array_equal(other.labels_, plain.labels_)
        assert other.verdict_ == plain.verdict_ == "structure"
        np.testing.assert_allclose(other.transform(X), plain.transform(X), rtol=1e-3, atol=1e-3)

    def test_rows_of_weight_zero_change_nothing(self):
        weight = np.r_[np.ones(178), np.zeros(10)]
        extended = np.r_[WINE, WINE[:10] * 100.0]
        plain, other = CAFE(3, **QUICK).fit(WINE.to_numpy()), CAFE(3, **QUICK)
        other.fit(extended, sample_weight=weight)
        np.testing.assert_array_equal(other.labels_[:178], plain.labels_)
        np.testing.assert_array_equal(other.predict(extended), other.labels_)
        np.testing.assert_allclose(other.transform(WINE), plain.transform(WINE), rtol=1e-9)
        assert other.verdict_ == plain.verdict_

    @pytest.mark.parametrize("weighted", [False, True])
    def test_too_few_rows_of_positive_weight(self, weighted):
        X = WINE if weighted else WINE.iloc[[0, 1] * 20]
        weight = [1, 1] + [0] * (len(X) - 2) if weighted else None
        rows = "distinct rows of positive weight" if weighted else "distinct rows"
        with pytest.raises(ValueError, match=f"X has too few {rows}. Use fewer clusters"):
            CAFE(3, **QUICK).fit(X, sample_weight=weight)

    def test_reaches_the_score(self):
        weight = np.random.default_rng(1).integers(0, 3, len(WINE))
        cafe = CAFE(3, **QUICK).fit(WINE, sample_weight=weight)
        for model, score in zip(cafe.models_, cafe.candidates_["score"], strict=True):
            expected = likelihood_score(WINE, model.labels_, sample_weight=weight)
            assert score == pytest.approx(expected)

    def test_reaches_an_extractor_that_takes_it(self):
        class Mean(PCA):
            def fit(self, X, y=None, sample_weight=None):
                self.seen_ = sample_weight
                return super().fit(X)

        weight = np.arange(len(WINE)) % 3
        cafe = CAFE(3, extractor=Mean(2), **QUICK).fit(WINE, sample_weight=weight)
        np.testing.assert_array_equal(cafe.extractor_.seen_, weight[weight > 0])

    def test_fractions_need_no_mass_of_one(self):
        cafe = CAFE(3, n_components=2, **HARD, **QUICK)
        cafe.fit(WINE, sample_weight=np.full(178, 0.25))
        chosen = cafe.candidates_[cafe.candidates_["chosen"]].iloc[0]
        assert chosen["largest"] == np.bincount(cafe.labels_).max() / 4
        assert np.isfinite(cafe.transform(WINE)).all()

    def test_of_ones_changes_no_label(self):
        one, other = CAFE(3, **QUICK), CAFE(3, **QUICK)
        one.fit(WINE), other.fit(WINE, sample_weight=np.ones(178))
        np.testing.assert_array_equal(one.labels_, other.labels_)
        np.testing.assert_allclose(one.transform(WINE), other.transform(WINE), atol=1e-8)

    def test_is_refused_where_it_has_no_meaning(self):
        with pytest.raises(ValueError, match="no sample_weight for Dask collections"):
            CAFE(3).fit(da.from_array(WINE.to_numpy()), sample_weight=np.ones(178))
        with pytest.raises(ValueError, match="at least one"):
            CAFE(3).fit(WINE, sample_weight=np.zeros(178))


class TestCenters:
    @pytest.mark.parametrize("scaling", ["range", "standard", RobustScaler(), None])
    def test_are_in_the_units_of_the_data(self, scaling):
        cafe = CAFE(3, scaling=scaling, weighting="uniform", **HARD, **QUICK).fit(WINE)
        means = WINE.groupby(cafe.labels_).mean()
        np.testing.assert_allclose(cafe.cluster_centers_, means, rtol=1e-6)

    def test_of_a_mixture_are_weighted_by_the_probabilities(self):
        cafe = CAFE(3, **QUICK).fit(WINE)
        share = cafe.predict_proba(WINE)
        means = share.T @ WINE.to_numpy() / share.sum(axis=0)[:, None]
        np.testing.assert_allclose(cafe.cluster_centers_, means, rtol=1e-9)
        np.testing.assert_array_equal(cafe.cluster_centers_, cafe.mixture_.means_)

    def test_need_a_scaler_that_can_go_back(self):
        class OneWay(StandardScaler):
            inverse_transform = property()

        cafe = CAFE(3, scaling=OneWay(), **HARD, **QUICK).fit(WINE)
        with pytest.raises(AttributeError, match="OneWay has no inverse_transform"):
            _ = cafe.cluster_centers_
        identity = CAFE(3, scaling=FunctionTransformer(), **HARD, **QUICK).fit(WINE)
        np.testing.assert_array_equal(
            identity.cluster_centers_, identity.model_.cluster_centers_
        )


def test_tolerance_reaches_the_models():
    loose = CAFE(3, tol=0.5, p=(1.5, 2.0), n_init=1, random_state=0).fit(WINE)
    tight = CAFE(3, p=(1.5, 2.0), n_init=1, random_state=0).fit(WINE)
    assert all(model.tol == 0.5 for model in loose.models_)
    assert sum(m.n_iter_ for m in loose.models_) < sum(m.n_iter_ for m in tight.models_)


def test_mwk_means_has_margins_and_a_table_of_weights():
    X = RangeScaler().set_output(transform="pandas").fit_transform(WINE)
    model = MinkowskiWeightedKMeans(3, random_state=0).fit(X)
    frame = model.weights_frame()
    assert list(frame.columns) == list(WINE.columns)
    np.testing.assert_array_equal(frame, model.feature_weights_)
    margin = model.assignment_margin(X)
    two = np.sort(model.transform(X), axis=1)[:, :2]
    np.testing.assert_allclose(margin, 1 - two[:, 0] / two[:, 1])
    lazy = model.assignment_margin(da.from_array(X.to_numpy(), chunks=(60, 13)))
    np.testing.assert_allclose(margin, lazy.compute())
    one = MinkowskiWeightedKMeans(1, random_state=0).fit(X)
    assert (one.assignment_margin(X) == 1).all()
    assert one.weights_frame().index.tolist() == ["cluster 0"]


class TestMessages:
    @pytest.fixture
    def X(self):
        return np.random.default_rng(0).normal(size=(10, 3))

    @pytest.mark.parametrize("kind", [CAFE, MinkowskiWeightedKMeans])
    def test_true_is_no_number_of_clusters(self, kind, X):
        with pytest.raises(ValueError, match=r"needs n_clusters to be an integer >= 1.*True"):
            kind(True).fit(X)

    def test_too_few_rows(self, X):
        with pytest.raises(ValueError, match=r"^CAFE needs at least as many rows as clusters"):
            CAFE(11).fit(X)

    def test_no_scaling(self, X):
        with pytest.warns(DiagnosisWarning, match="different scales") as seen:
            CAFE(2, **HARD, p=2.0, scaling=None, n_init=2).fit(X * [1, 1000, 1])
        (message,) = [str(w.message) for w in seen if "different scales" in str(w.message)]
        assert "use CAFE" not in message
        assert "instead of None" in message

    @pytest.mark.parametrize("weight", [None, [2.0]])
    def test_one_row(self, X, weight, recwarn, tmp_path):
        cafe = CAFE(1, random_state=0).fit(X[:1], sample_weight=weight)
        assert not recwarn.list
        assert np.isfinite(cafe.transform(X[:1])).all()
        save_model(cafe, tmp_path / "one.skops")
        load_model(tmp_path / "one.skops")

    @pytest.mark.parametrize("kind", ["array", "list", "frame"])
    def test_missing_values_of_pandas_among_objects(self, X, kind):
        with_nan = X.copy()
        with_nan[0, 0] = np.nan
        objects = X.astype(object)
        objects[0, 0] = pd.NA
        given = objects
        if kind == "list":
            given = objects.tolist()
        elif kind == "frame":
            given = pd.DataFrame(objects)
        cafe = MinkowskiWeightedKMeans(2, n_init=2, random_state=0)
        found = np.asarray(cafe.fit(given).predict(given))
        np.testing.assert_array_equal(found, cafe.fit(with_nan).predict(with_nan))
