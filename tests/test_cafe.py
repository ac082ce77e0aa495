"""CAFE: the steps of Algorithm 2, as a transformer, on new rows, and on bad input."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA, FastICA, TruncatedSVD
from sklearn.manifold import TSNE
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import reference
from cafelearn import CAFE, PAPER, MinkowskiWeightedKMeans, RangeScaler, theory
from cafelearn.extraction import Autoencoder, ReconstructionICA, ReplicatedNMF
from cafelearn.extraction.fitting import oriented
from conftest import make_blobs

WIDE = (
    "The check has more features than distinct rows, so the last of the components are "
    "arbitrary; and NMF takes no weights."
)


HARD = {"selection": "likelihood"}


# Two clusters: some checks have four distinct rows.
@parametrize_with_checks(
    [
        CAFE(2, n_init=1),
        CAFE(2, **PAPER | {"n_init": 2}, n_components=1),
        CAFE(2, **HARD, n_init=1, p=(1.5, 2.0), n_components=0.7),
        CAFE(2, **HARD, n_init=2, rescaling="centroid", p=1.5, scaling="standard"),
        CAFE(2, n_init=1, extractor="nmf", p=(1.3, 2.0), scaling=None, selection="agreement"),
    ],
    expected_failed_checks=lambda cafe: (
        {"check_sample_weight_equivalence_on_dense_data": WIDE}
        if cafe.n_components is None and cafe.selection != "mixture"
        else {}
    ),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def noisy():
    """Clusters, some of whose (cluster, feature) pairs carry noise; and the pairs."""
    X, y = make_blobs(400, 10, 3, n_noise=0, seed=2)
    X = RangeScaler().fit_transform(X)
    rng = np.random.default_rng(0)
    pairs = np.zeros((3, 10), dtype=bool)
    pairs.flat[rng.choice(30, 9, replace=False)] = True
    for l, v in np.argwhere(pairs):
        X[y == l, v] += rng.normal(size=(y == l).sum())
    return X, y, pairs


def test_the_steps_of_algorithm_2(noisy):
    X, _, _ = noisy
    exponents = (1.2, 1.6, 2.0, 3.0)
    settings = PAPER | {"p": exponents, "n_init": 6}
    cafe = CAFE(3, n_components=4, random_state=0, **settings).fit(X)
    scaled = (X - X.mean(axis=0)) / np.ptp(X, axis=0)
    assert [model.p for model in cafe.models_] == list(exponents)
    for p, model in zip(exponents, cafe.models_, strict=True):
        alone = clone(model).fit(scaled)
        np.testing.assert_array_equal(alone.labels_, model.labels_)
        np.testing.assert_allclose(alone.feature_weights_, model.feature_weights_)
        assert len(model.init_objectives_) == 6
        assert model.p == p
    labels = [model.labels_ for model in cafe.models_]
    direct = np.array([[adjusted_rand_score(a, b) for b in labels] for a in labels])
    np.testing.assert_allclose(cafe.agreement_, direct)
    totals = direct.sum(axis=1) - 1
    assert totals[exponents.index(cafe.p_)] == pytest.approx(totals.max())
    model = cafe.models_[exponents.index(cafe.p_)]
    assert model is cafe.model_
    rescaled = scaled * model.feature_weights_[model.labels_]
    np.testing.assert_allclose(cafe.rescale(X), rescaled, atol=1e-14)
    expected = PCA(4, svd_solver="full").fit_transform(rescaled)
    np.testing.assert_allclose(np.abs(cafe.transform(X)), np.abs(expected), atol=1e-10)


def test_centroid_rescaling(noisy):
    X, _, _ = noisy
    settings = PAPER | {"p": 1.5, "rescaling": "centroid", "n_init": 3}
    cafe = CAFE(3, random_state=0, **settings).fit(X)
    model, scaled = cafe.model_, RangeScaler().fit_transform(X)
    for i in range(0, len(X), 37):
        z, w = (a[cafe.labels_[i]] for a in (model.cluster_centers_, model.feature_weights_))
        np.testing.assert_allclose(
            cafe.rescale(X)[i], z + w / w.max() * (scaled[i] - z), atol=1e-12
        )


def test_one_candidate_needs_no_choice(noisy):
    X, _, _ = noisy
    for selection in ("likelihood", "agreement"):
        settings = PAPER | {"p": 2.5, "n_init": 2, "selection": selection}
        cafe = CAFE(3, random_state=0, **settings).fit(X)
        assert cafe.p_ == 2.5
        np.testing.assert_array_equal(cafe.agreement_, [[1.0]])
        assert cafe.candidates_["chosen"].tolist() == [True]


def test_lemma_3_and_corollary_4_on_the_output(noisy):
    X, _, _ = noisy
    for p in (1.2, 1.5, 2.0, 3.0):
        settings = PAPER | {"p": p, "dispersion_offset": 0, "n_init": 5}
        cafe = CAFE(3, random_state=0, **settings).fit(X)
        scaled, rescaled = RangeScaler().fit_transform(X), cafe.rescale(X)
        for l in range(3):
            rows = cafe.labels_ == l
            before, after = (
                np.array(
                    [np.sum(np.abs(x - reference.center(x, p)) ** p) for x in data[rows].T]
                )
                for data in (scaled, rescaled)
            )
            np.testing.assert_allclose(after, theory.rescaled_dispersions(before, p), rtol=1e-6)
            np.testing.assert_array_equal(np.argsort(before), np.argsort(-after))
            (u,), (C,) = theory.dominance(before[None])
            bound = theory.noise_suppression_bound(before[u], C, 10, p)
            assert after[u] <= bound * (1 + 1e-9)


def test_it_does_what_it_is_for():
    wine = load_wine()
    X, y = RangeScaler().fit_transform(wine.data), wine.target
    rng = np.random.default_rng(0)
    pairs = np.zeros((3, 13), dtype=bool)
    pairs.flat[rng.choice(39, size=12, replace=False)] = True
    for l, v in np.argwhere(pairs):
        X[y == l, v] += rng.normal(size=(y == l).sum())

    def score(features):
        labels = KMeans(3, n_init=20, random_state=0).fit_predict(features)
        return adjusted_rand_score(y, labels)

    plain = score(PCA(6).fit_transform(RangeScaler().fit_transform(X)))
    assert adjusted_rand_score(y, CAFE(3, random_state=0).fit_predict(X)) > 0.9
    cafe = CAFE(3, random_state=0, **PAPER | {"n_init": 20})
    assert score(cafe.fit_transform(X)) > plain + 0.2
    assert adjusted_rand_score(y, cafe.labels_) > 0.9
    centroid = CAFE(3, random_state=0, **PAPER | {"rescaling": "centroid", "n_init": 20})
    assert score(centroid.fit_transform(X)) > plain + 0.2
    # In the cluster of its class a noise pair weighs less than most others.
    for label in range(3):
        weights = cafe.feature_weights_[np.bincount(cafe.labels_[y == label]).argmax()]
        assert (weights[pairs[label]] < np.median(weights[~pairs[label]])).all()


NAMED = {
    "pca": PCA,
    "nmf": ReplicatedNMF,
    "ica": ReconstructionICA,
    "fastica": FastICA,
    "autoencoder": Autoencoder,
}


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize(
    "settings",
    [{}, {"rescaling": "centroid"}, HARD | {"rescaling": "origin"}],
    ids=["memberships", "centroid", "hard-origin"],
)
@pytest.mark.parametrize("name", NAMED)
def test_every_extractor_by_name(name, settings, noisy):
    X, _, _ = noisy
    cafe = CAFE(3, extractor=name, p=2.0, n_init=2, random_state=0, **settings)
    features = cafe.fit_transform(X)
    assert isinstance(cafe.extractor_, NAMED[name])
    assert features.shape == (400, 5)
    assert np.isfinite(features).all()
    np.testing.assert_array_equal(features, cafe.transform(X))
    np.testing.assert_array_equal(features, clone(cafe).set_params(n_jobs=2).fit_transform(X))


def test_umap(noisy):
    X, _, _ = noisy
    cafe = CAFE(3, extractor="umap", n_components=2, p=2.0, n_init=2, random_state=0)
    features = cafe.fit_transform(X[:150])
    assert features.shape == (150, 2)
    np.testing.assert_array_equal(features, cafe.transform(X[:150]))
    assert cafe.transform(X[150:170]).shape == (20, 2)


def test_umap_is_named_when_missing(noisy, monkeypatch):
    X, _, _ = noisy
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(ImportError, match=r"pip install 'cafelearn\[umap\]'"):
        CAFE(3, extractor="umap", n_init=1).fit(X)


def test_a_transformer_of_the_users_own(noisy):
    X, _, _ = noisy
    mine = TruncatedSVD(3, random_state=0)
    cafe = CAFE(3, extractor=mine, p=2.0, n_init=2, random_state=0)
    assert cafe.fit_transform(X).shape == (400, 3)
    assert not hasattr(mine, "components_")
    assert clone(cafe).set_params(n_components=2).fit_transform(X).shape == (400, 2)
    pipeline = make_pipeline(StandardScaler(), PCA(4))
    assert CAFE(3, extractor=pipeline, p=2.0, n_init=2).fit_transform(X).shape == (400, 4)


@pytest.mark.parametrize("scaling", ["range", "standard", None, MinMaxScaler()])
def test_scaling(scaling, noisy):
    X, _, _ = noisy
    settings = PAPER | {"scaling": scaling, "p": 2.0, "n_init": 2}
    cafe = CAFE(3, random_state=0, **settings).fit(X)
    by_hand = {"range": RangeScaler(), "standard": StandardScaler()}.get(
        scaling if isinstance(scaling, str) else None, scaling
    )
    scaled = X if by_hand is None else clone(by_hand).fit_transform(X)
    np.testing.assert_allclose(
        cafe.rescale(X), scaled * cafe.feature_weights_[cafe.labels_], atol=1e-13
    )
    assert (cafe.scaler_ is None) == (scaling is None)


def test_unseen_rows(noisy):
    X, _, _ = noisy
    cafe = CAFE(3, random_state=0, **PAPER | {"n_init": 5}).fit(X[:300])
    new = X[300:]
    model = cafe.model_
    scaled = cafe.scaler_.transform(new)
    labels = reference.assign(scaled, model.cluster_centers_, model.feature_weights_, cafe.p_)
    np.testing.assert_array_equal(cafe.predict(new), labels)
    rescaled = scaled * model.feature_weights_[labels]
    np.testing.assert_allclose(cafe.rescale(new), rescaled, atol=1e-14)
    np.testing.assert_allclose(cafe.transform(new), cafe.extractor_.transform(rescaled))
    # One row at a time or all at once.
    np.testing.assert_allclose(cafe.transform(new[:1]), cafe.transform(new)[:1], atol=1e-12)


@pytest.mark.parametrize("selection", ["mixture", "likelihood"])
@pytest.mark.parametrize("scaling", [None, "range", FunctionTransformer()])
def test_the_input_is_left_alone(scaling, selection, noisy):
    X, _, _ = noisy
    before = X.copy()
    settings = {"selection": selection, "scaling": scaling, "p": 2.0, "n_init": 1}
    cafe = CAFE(3, random_state=0, **settings).fit(X)
    cafe.transform(X)
    np.testing.assert_array_equal(X, before)


def test_a_scaler_that_breaks_numbers_is_caught(noisy):
    X, _, _ = noisy
    broken = FunctionTransformer(lambda X: np.where(X > 0, np.inf, X))
    with pytest.raises(ValueError, match="infinity"):
        CAFE(3, scaling=broken, p=2.0, n_init=1).fit(X)


def test_large_data_is_transformed_by_parts(noisy, monkeypatch):
    X, _, _ = noisy
    for name in ("pca", "nmf"):
        cafe = CAFE(3, extractor=name, p=2.0, n_init=1, random_state=0).fit(X)
        whole = cafe.transform(X)
        monkeypatch.setattr("cafelearn.estimators.cafe_fitted.ROWS", 37)
        np.testing.assert_allclose(cafe.transform(X), whole, atol=1e-12)
        monkeypatch.undo()


@pytest.mark.parametrize("settings", [{}, HARD, {"rescaling": "origin"}])
def test_labels_agree_everywhere(settings, noisy):
    X, _, _ = noisy
    cafe = CAFE(3, n_init=3, random_state=0, **settings)
    labels = cafe.fit_predict(X)
    assert labels.dtype == np.int32
    np.testing.assert_array_equal(labels, cafe.labels_)
    np.testing.assert_array_equal(labels, cafe.predict(X))


class TestMixture:
    """The default: labels, probabilities and features come from a mixture."""

    @pytest.fixture(scope="class")
    @staticmethod
    def fitted():
        X, y = make_blobs(240, 5, 3, n_noise=1, seed=1)
        return CAFE(3, random_state=0).fit(X), X, y

    def test_it_finds_the_clusters(self, fitted):
        cafe, X, y = fitted
        assert cafe.selection == "mixture"
        assert adjusted_rand_score(y, cafe.labels_) > 0.95
        np.testing.assert_array_equal(cafe.labels_, cafe.mixture_.predict(X))
        np.testing.assert_array_equal(cafe.labels_, cafe.predict_proba(X).argmax(axis=1))
        assert cafe.verdict_ == "structure"
        assert cafe.confidence_ == "high"
        assert cafe.cluster_stability_.shape == (3,)
        assert cafe.stability_ > 0.9
        assert cafe.relevance_.shape == (3, 5)
        assert (cafe.relevance_[:, 4] == 0).all()
        assert cafe.n_iter_ > 0

    def test_features(self, fitted):
        """Standardised rows, membership probabilities, roots of log densities."""
        cafe, X, _ = fitted
        features = cafe.transform(X)
        assert features.shape == (240, 5 + 2 * 3)
        assert cafe.extractor_ is None
        np.testing.assert_array_equal(features, cafe.rescale(X))
        np.testing.assert_allclose(features[:, :5], StandardScaler().fit_transform(X))
        half = np.sqrt(5 / 2)
        np.testing.assert_allclose(features[:, 5:8], half * cafe.predict_proba(X))
        assert features[:, 8:].var(axis=0).sum() == pytest.approx(5 / 2)
        assert (features[:, 8:] <= 0).all()
        np.testing.assert_array_equal(features, clone(cafe).fit_transform(X))
        assert cafe.get_feature_names_out().tolist() == [f"cafe{i}" for i in range(11)]

    def test_components_are_extracted_only_if_asked_for(self, fitted):
        cafe, X, _ = fitted
        two = clone(cafe).set_params(n_components=2).fit(X)
        assert isinstance(two.extractor_, PCA)
        expected = PCA(2).fit_transform(cafe.transform(X))
        np.testing.assert_allclose(np.abs(two.transform(X)), np.abs(expected), atol=1e-8)
        np.testing.assert_array_equal(two.labels_, cafe.labels_)

    def test_margin(self, fitted):
        cafe, X, _ = fitted
        share = np.sort(cafe.predict_proba(X), axis=1)
        margin = cafe.assignment_margin(X)
        np.testing.assert_allclose(margin, 1 - share[:, 1] / share[:, 2])
        assert ((margin >= 0) & (margin <= 1)).all()

    def test_weights_are_those_of_the_paper(self, fitted):
        """Eq. 4 with p = 2 and the mean of the dispersions as offset, for the labels."""
        cafe, X, _ = fitted
        scaled = cafe.scaler_.transform(X)
        rows = [scaled[cafe.labels_ == l] for l in range(3)]
        D = np.array([((part - part.mean(axis=0)) ** 2).sum(axis=0) for part in rows])
        inverse = 1 / (D + D.mean())
        expected = inverse / inverse.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(cafe.feature_weights_, expected)

    def test_threads_units_and_order_of_columns(self, fitted):
        cafe, X, _ = fitted
        other = clone(cafe).set_params(n_jobs=2).fit(X)
        np.testing.assert_array_equal(other.transform(X), cafe.transform(X))
        scaled = X * [1e-100, 1e100, 1.0, -3.0, 1.0] + [0, 0, 1e4, 0, 0]
        other = clone(cafe).fit(scaled)
        # Other starts of equal value may be kept, which number the clusters otherwise.
        assert adjusted_rand_score(other.labels_, cafe.labels_) == 1
        np.testing.assert_array_equal(other.predict(scaled), other.labels_)
        order = [3, 1, 4, 0, 2]
        other = clone(cafe).fit(X[:, order])
        assert adjusted_rand_score(other.labels_, cafe.labels_) > 0.95

    def test_single_rows_and_none(self, fitted):
        cafe, X, _ = fitted
        np.testing.assert_allclose(cafe.transform(X[:1]), cafe.transform(X)[:1], atol=1e-12)
        np.testing.assert_array_equal(cafe.predict(X[5:6]), cafe.labels_[5:6])

    def test_probabilities_are_those_of_a_mixture_only(self, fitted):
        cafe, X, _ = fitted
        assert hasattr(cafe, "predict_proba")
        hard = CAFE(3, **HARD, n_init=1, random_state=0).fit(X)
        assert not hasattr(hard, "predict_proba")
        for name in ("mixture_", "confidence_", "stability_", "relevance_"):
            assert hasattr(cafe, name)
            assert not hasattr(hard, name)
        assert hard.verdict_ == cafe.verdict_ == "structure"
        assert hard.transform(X).shape == (240, 2)

    def test_candidates_are_starts(self, fitted):
        cafe, _, _ = fitted
        assert all(len(model.init_objectives_) == 3 for model in cafe.models_)
        hard = CAFE(3, **HARD, random_state=0).fit(fitted[1])
        assert all(len(model.init_objectives_) == 10 for model in hard.models_)

    @pytest.mark.filterwarnings("ignore::cafelearn.diagnosis.DiagnosisWarning")
    @pytest.mark.parametrize("n_rows", [2, 3, 5])
    def test_one_row_per_cluster(self, n_rows):
        X = np.random.default_rng(0).normal(size=(n_rows, 3))
        cafe = CAFE(n_rows, random_state=0).fit(X)
        assert np.isfinite(cafe.transform(X)).all()
        np.testing.assert_allclose(cafe.predict_proba(X).sum(axis=1), 1)
        np.testing.assert_array_equal(cafe.predict(X), cafe.labels_)

    def test_one_cluster(self, fitted):
        _, X, _ = fitted
        cafe = CAFE(1, random_state=0).fit(X)
        assert (cafe.labels_ == 0).all()
        np.testing.assert_array_equal(cafe.predict_proba(X), 1)
        assert cafe.transform(X).shape == (240, 7)
        assert cafe.diagnosis_ == []

    @pytest.mark.filterwarnings("ignore::cafelearn.diagnosis.DiagnosisWarning")
    def test_columns_of_one_value(self, fitted):
        cafe, X, _ = fitted
        other = clone(cafe).fit(np.c_[X, np.full(240, 7.0)])
        np.testing.assert_array_equal(other.labels_, cafe.labels_)
        assert np.isfinite(other.transform(np.c_[X, np.full(240, 9.0)])).all()
        constant = CAFE(1, random_state=0).fit(np.ones((20, 2)))
        assert np.isfinite(constant.transform(np.ones((20, 2)))).all()

    def test_far_rows(self, fitted):
        cafe, _, _ = fitted
        far = np.array([[1e200, -1e300, 1e250, 3.0, 0.0], [1.7e308] * 5, [-1e10] * 5])
        assert np.isfinite(cafe.predict_proba(far)).all()
        assert np.isfinite(cafe.transform(far)).all()


def test_assignment_margin(noisy):
    X, _, _ = noisy
    cafe = CAFE(3, **HARD, p=2.0, n_init=3, random_state=0).fit(X)
    margin = cafe.assignment_margin(X)
    distances = np.sort(cafe.model_.transform(cafe.scaler_.transform(X)), axis=1)
    np.testing.assert_allclose(margin, 1 - distances[:, 0] / distances[:, 1])
    assert ((margin >= 0) & (margin <= 1)).all()
    centers = cafe.scaler_.inverse_transform(cafe.model_.cluster_centers_)
    np.testing.assert_allclose(cafe.assignment_margin(centers), 1)
    for settings in (HARD, {}):
        one = CAFE(1, **settings, p=2.0, n_init=1).fit(X)
        np.testing.assert_array_equal(one.assignment_margin(X), 1)


def test_names_and_frames(noisy):
    X, _, _ = noisy
    names = [f"gene {v}" for v in range(10)]
    frame = pd.DataFrame(X, columns=names, index=np.arange(400) + 7)
    cafe = CAFE(3, n_components=2, n_init=2, random_state=0)
    plain = clone(cafe).fit_transform(X)
    table = clone(cafe).fit(frame).weights_frame()
    assert list(table.columns) == names
    assert list(table.index) == ["cluster 0", "cluster 1", "cluster 2"]
    np.testing.assert_allclose(table.sum(axis=1), 1)
    assert list(clone(cafe).fit(X).weights_frame().columns[:2]) == ["x0", "x1"]
    out = clone(cafe).set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == ["cafe0", "cafe1"]
    assert (out.index == frame.index).all()
    np.testing.assert_array_equal(out, plain)
    out = clone(cafe).set_output(transform="polars").fit_transform(pl.DataFrame(frame))
    assert out.columns == ["cafe0", "cafe1"]
    np.testing.assert_array_equal(out.to_numpy(), plain)


def test_pipeline_and_grid_search(noisy):
    X, y, _ = noisy
    pipeline = make_pipeline(CAFE(3, n_init=2, random_state=0), KMeans(3, n_init=3))
    assert len(pipeline.fit_predict(X)) == 400

    def score(estimator, X, y):
        return adjusted_rand_score(y, estimator.predict(X))

    search = GridSearchCV(
        pipeline,
        {"cafe__n_components": [2, 5], "cafe__p": [2.0, (1.5, 2.0)]},
        scoring=score,
        cv=2,
    ).fit(X, y)
    assert search.best_score_ > 0.3


def test_seeds_and_threads(noisy):
    X, _, _ = noisy
    cafe = CAFE(3, n_init=4, random_state=5)
    one = clone(cafe).fit(X)
    for other in (clone(cafe).fit(X), clone(cafe).set_params(n_jobs=3).fit(X)):
        np.testing.assert_array_equal(one.transform(X), other.transform(X))
        assert one.p_ == other.p_
    different = clone(cafe).set_params(random_state=6).fit(X)
    a, b = (np.sort(c.models_[0].init_objectives_) for c in (one, different))
    assert not np.array_equal(a, b)


def test_single_precision(noisy):
    X, _, _ = noisy
    cafe = CAFE(3, n_init=2, random_state=0).fit(X.astype(np.float32))
    assert cafe.transform(X.astype(np.float32)).dtype == np.float32
    assert cafe.rescale(X.astype(np.float32)).dtype == np.float32


def test_verbose_counts_all_starts(noisy, capsys):
    X, _, _ = noisy
    settings = PAPER | {"p": (1.5, 2.0), "n_init": 3}
    CAFE(3, verbose=2, random_state=0, **settings).fit(X)
    assert "start 6/6 (p=2)" in capsys.readouterr().err


class TestBadInput:
    X = np.random.default_rng(0).normal(size=(30, 6))

    @pytest.mark.parametrize("n", [0, -2, 1.5, "two"])
    def test_n_components(self, n):
        with pytest.raises(ValueError, match="'n_components' parameter of CAFE"):
            CAFE(2, n_components=n, n_init=1).fit(self.X)

    @pytest.mark.parametrize("extractor", ["pca", "nmf", PCA()])
    def test_more_components_than_features(self, extractor):
        with pytest.raises(ValueError, match=r"CAFE\(extractor=.*\) needs n_components <= 6"):
            CAFE(2, n_components=7, extractor=extractor, n_init=1).fit(self.X)

    def test_fewer_rows_than_components(self):
        with pytest.raises(ValueError, match="n_components=5, n_samples=3"):
            CAFE(2, n_components=5, n_init=1).fit(self.X[:3])

    @pytest.mark.parametrize(
        ("name", "value", "choices"),
        [
            ("extractor", "svd", "autoencoder.*fastica.*umap"),
            ("rescaling", "center", "centroid.*origin"),
            ("scaling", "minmax", "range.*standard"),
            ("weighting", "row", "cluster.*uniform"),
            ("dispersion_offset", "median", "fixed.*mean"),
            ("selection", "silhouette", "agreement.*likelihood.*mixture"),
        ],
    )
    def test_unknown_names_list_the_choices(self, name, value, choices):
        with pytest.raises(ValueError, match=f"'{name}' parameter of CAFE") as error:
            CAFE(2, n_init=1, **{name: value}).fit(self.X)
        for choice in choices.split(".*"):
            assert choice in str(error.value)

    def test_an_extractor_without_transform(self):
        with pytest.raises(ValueError, match=r"'extractor' .* 'transform'"):
            CAFE(2, extractor=TSNE(), n_init=1).fit(self.X)

    def test_a_transformer_without_n_components(self):
        with pytest.raises(ValueError, match=r"StandardScaler.* has no parameter n_components"):
            CAFE(2, extractor=StandardScaler(), n_components=2, n_init=1).fit(self.X)

    @pytest.mark.parametrize(
        ("name", "values", "message"),
        [
            ("p", (), "CAFE needs at least one value of p, got none"),
            ("p", (1.5, 1.5), "CAFE needs distinct values of p, got"),
            ("p", (1.5, 0.9), "finite numbers above 1; got .*0.9.* in"),
            ("p", (1.5, np.nan), "above 1; got .*nan.* in"),
            ("p", (1.5, np.inf), "above 1; got .*inf.* in"),
            ("p", (1.5, True), "above 1; got"),
            ("p", 1.0, "'p' parameter of CAFE"),
            ("p", "two", "'p' parameter of CAFE"),
            ("scaling", (), "at least one value of scaling"),
            ("scaling", ["range", "range"], "distinct values of scaling"),
            ("scaling", (None, None), "distinct values of scaling"),
            ("scaling", (None, "minmax"), "'range', 'standard', None or transformers; got 'm"),
            ("dispersion_offset", [], "at least one value of dispersion_offset"),
            ("dispersion_offset", (0.5, 0.5), "distinct values of dispersion_offset"),
            ("dispersion_offset", ("mean", "mean"), "distinct values of dispersion_offset"),
            ("dispersion_offset", ("mean", -1), "or numbers >= 0; got -1 in"),
            ("dispersion_offset", ("mean", "median"), "'mean', 'fixed' .* got 'median'"),
            ("weighting", (), "at least one value of weighting"),
            ("weighting", ("cluster", "cluster"), "distinct values of weighting"),
            ("weighting", ("cluster", "row"), "'uniform'.*; got 'row'"),
        ],
    )
    def test_values_to_try(self, name, values, message):
        with pytest.raises(ValueError, match=message):
            CAFE(2, n_init=1, **{name: values}).fit(self.X)

    def test_too_few_distinct_rows(self):
        X = np.repeat([[0.0, 1.0], [2.0, 5.0]], 10, axis=0)
        with pytest.raises(ValueError, match="found only 2 of n_clusters=3 clusters in every"):
            CAFE(3, n_init=2).fit(X)

    def test_text(self):
        frame = pd.DataFrame(self.X).assign(sex=["f", "m"] * 15)
        frame.columns = frame.columns.astype(str)
        with pytest.raises(ValueError, match="CAFE needs numeric features, but column 'sex'"):
            CAFE(2, n_init=1).fit(frame)

    def test_not_fitted(self):
        from sklearn.exceptions import NotFittedError

        for call in ("predict", "transform", "rescale", "assignment_margin"):
            with pytest.raises(NotFittedError):
                getattr(CAFE(2), call)(self.X)
        with pytest.raises(NotFittedError):
            CAFE(2).weights_frame()
        with pytest.raises(NotFittedError):
            CAFE(2).candidates_  # noqa: B018


def test_mwk_means_labels_are_those_of_the_estimator(noisy):
    X, _, _ = noisy
    scaled = RangeScaler().fit_transform(X)
    cafe = CAFE(3, random_state=0, **PAPER | {"p": 1.5, "n_init": 3}).fit(X)
    seed = cafe.model_.random_state
    model = MinkowskiWeightedKMeans(3, p=1.5, n_init=3, random_state=seed).fit(scaled)
    np.testing.assert_array_equal(model.labels_, cafe.labels_)


def test_rounding_does_not_decide_the_signs_of_features():
    components = np.array([[0.5, -0.7, 0.7], [-0.2, 0.9, 0.1], [0.0, 0.0, 0.0]])
    near = components * (1 + 1e-12 * np.array([1, -1, 1]))
    for signs in (1, -1):
        found = oriented(signs * near)
        np.testing.assert_allclose(
            found, [[-0.5, 0.7, -0.7], [-0.2, 0.9, 0.1], [0, 0, 0]], atol=1e-9
        )
    assert oriented(components.astype(np.float32)).dtype == np.float32
