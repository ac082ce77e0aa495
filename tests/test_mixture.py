"""The estimator Mixture: labels, invariances, relevance, input, scikit-learn."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from cafelearn.mixture import Mixture
from conftest import make_blobs, with_gaps

PLAIN = {"covariance": "independent", "tails": False, "background": False}


@parametrize_with_checks(
    [Mixture(), Mixture(2, n_init=0, **PLAIN)],
    expected_failed_checks=lambda mixture: (
        {
            "check_sample_weight_equivalence_on_dense_data": "a value is an atom if several "
            "rows have it, so repeated rows have atoms, but one heavy row has none"
        }
        if mixture.n_components > 1
        else {}
    ),
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def fit(X, k=3, weight=None, **options):
    return Mixture(k, **({"random_state": 0, "n_init": 0} | options)).fit(
        X, sample_weight=weight
    )


def clusters(n=150, m=4, seed=0):
    """Three clusters at a distance of 9 from each other, and their labels."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    centers = 6.4 * np.eye(3)[:, np.arange(m) % 3]
    return centers[y] + rng.normal(size=(n, m)), y


def with_categories(seed=0):
    X, y = clusters(seed=seed)
    rng = np.random.default_rng(seed)
    category = np.where(rng.random(len(y)) < 0.8, y, rng.integers(3, size=len(y)))
    atoms = np.where(rng.random(len(y)) < 0.3, 0.0, rng.normal(size=len(y)))
    return np.column_stack([X, np.eye(3)[category], atoms]), y


def same_clusters(labels, others):
    assert adjusted_rand_score(labels, others) == 1


TABLES = {
    "blobs": lambda: make_blobs(120)[0],
    "gaps": lambda: with_gaps(make_blobs(120)[0]),
    "categories": lambda: with_categories()[0],
    "iris": lambda: load_iris().data,
    "wide": lambda: np.random.default_rng(0).normal(size=(12, 30)),
    "outlier": lambda: np.vstack([make_blobs(80)[0], np.full((1, 6), 1e9)]),
}


@pytest.mark.parametrize("table", TABLES)
def test_labels_are_the_most_likely_components(table):
    X = TABLES[table]()
    model = fit(X)
    share = model.predict_proba(X)
    assert share.shape == (len(X), 3)
    assert np.isfinite(share).all()
    assert (share >= 0).all()
    np.testing.assert_allclose(share.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X), share.argmax(axis=1))
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    again = Mixture(3, n_init=0, random_state=0).fit_predict(X)
    np.testing.assert_array_equal(again, model.labels_)
    sound(model, X)
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())
    np.testing.assert_allclose(model.weights_, share.mean(axis=0))
    assert model.icl(X) >= model.bic(X)


def sound(model, X):
    """All results of a mixture are finite."""
    for found in (
        model.score_samples(X),
        model.predict_proba(X),
        model.means_,
        model.weights_,
        model.covariances_,
        model.lower_bound_,
        model.sample(50)[0],
    ):
        assert np.isfinite(found).all()
    assert (np.linalg.eigvalsh(model.covariances_) > 0).all()


def test_means_are_those_of_the_members():
    X = with_gaps(clusters()[0])
    model = fit(X)
    share = model.predict_proba(X)
    observed = share.T @ ~np.isnan(X)
    np.testing.assert_allclose(model.means_, share.T @ np.nan_to_num(X) / observed)


def test_rows_are_treated_one_by_one(monkeypatch):
    X = with_categories()[0]
    model = fit(X)
    whole = model.score_samples(X), model.predict_proba(X)
    monkeypatch.setattr("cafelearn.mixture.rows.ROWS", 7)
    np.testing.assert_allclose(model.score_samples(X), whole[0])
    np.testing.assert_allclose(model.predict_proba(X), whole[1], atol=1e-12)


def test_same_seed_gives_the_same_mixture_and_rows():
    X = make_blobs(80)[0]
    one, two = fit(X, n_init=2, random_state=5), fit(X, n_init=2, random_state=5)
    np.testing.assert_array_equal(one.score_samples(X), two.score_samples(X))
    for mine, other in zip(one.sample(100), two.sample(100), strict=True):
        np.testing.assert_array_equal(mine, other)
    other = fit(X, n_init=2, random_state=6)
    assert (other.sample(100)[0] != one.sample(100)[0]).any()


def test_fitted_mixture_survives_pickling():
    X = with_categories()[0]
    model = fit(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.score_samples(X), model.score_samples(X))
    np.testing.assert_array_equal(again.relevance_, model.relevance_)


def test_rows_beyond_those_of_the_search_are_fitted_too(monkeypatch):
    monkeypatch.setattr("cafelearn.mixture.model.search_sample", lambda w, _: np.arange(90))
    X, y = clusters(300)
    X[100:, 3] += 0.5
    model = fit(X, **PLAIN)
    same_clusters(model.labels_, y)
    all_rows = np.stack([X[y == l].mean(axis=0) for l in range(3)])
    order = [model.labels_[l] for l in range(3)]
    np.testing.assert_allclose(model.means_[order], all_rows, atol=1e-3)
    sound(model, X)


@pytest.mark.parametrize("seed", range(3))
def test_order_of_rows_does_not_matter(seed):
    X, _ = with_categories(seed)
    order = np.random.default_rng(seed).permutation(len(X))
    one, two = fit(X), fit(X[order])
    assert adjusted_rand_score(one.labels_[order], two.labels_) > 0.95
    # The random starts differ.
    assert two.score(X) == pytest.approx(one.score(X), abs=0.1)


@pytest.mark.parametrize("power", [-8, 3])
def test_units_and_origins_of_columns_do_not_matter(power):
    X = with_categories()[0]
    model = fit(X)
    factor = 10.0 ** np.array([power, 0, -power, power, 0, 0, 0, power])
    shift = np.array([3, -5, 0, 1, 0, 0, 0, 2]) * factor
    other = fit(X * factor + shift)
    np.testing.assert_array_equal(other.labels_, model.labels_)
    np.testing.assert_array_equal(other.relevance_, model.relevance_)
    np.testing.assert_allclose(other.means_, model.means_ * factor + shift, rtol=1e-4)
    # The density is per unit; that of an atom is a probability.
    slope = np.log(factor[:4]).sum() + np.where(X[:, 7] == 0, 0.0, np.log(factor[7]))
    found = other.score_samples(X * factor + shift)
    np.testing.assert_allclose(found, model.score_samples(X) - slope, atol=1e-3)


@pytest.mark.parametrize("unit", [1e-300, 1e-100, 1e300])
def test_extreme_units_do_not_matter(unit):
    X, y = clusters(90)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fit(X * unit)
        sound(model, X * unit)
    same_clusters(model.labels_, y)
    same = fit(X)
    orders = [np.argsort(each.means_[:, 0]) for each in (model, same)]
    found, expected = model.means_[orders[0]] / unit, same.means_[orders[1]]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    shift = X.shape[1] * np.log(unit)
    np.testing.assert_allclose(model.score_samples(X * unit) + shift, same.score_samples(X))


def test_columns_of_different_extreme_units_do_not_matter():
    X, y = clusters(90)
    X = X * np.array([1e300, 1e-300, 1.0, 1e-30])
    model = fit(X)
    sound(model, X)
    same_clusters(model.labels_, y)


def test_single_precision_is_enough():
    X, _ = with_categories()
    model = fit(X.astype(np.float32))
    same_clusters(model.labels_, fit(X).labels_)
    np.testing.assert_array_equal(model.relevance_, fit(X.astype(np.float32) * 1.0).relevance_)
    assert model.score_samples(X.astype(np.float32)).dtype == np.float64


def test_frames_give_the_same_mixture():
    X = with_categories()[0]
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    model = fit(frame)
    np.testing.assert_array_equal(model.labels_, fit(X).labels_)
    assert model.feature_names_in_.tolist() == list("abcdefgh")


def test_rows_of_weight_zero_do_not_count():
    X, _ = clusters()
    others = np.random.default_rng(1).normal(size=(50, 4)) * 40
    weight = np.append(np.ones(len(X)), np.zeros(50))
    model = fit(np.vstack([X, others]), weight=weight)
    np.testing.assert_array_equal(model.score_samples(X), fit(X).score_samples(X))


def test_weights_count_as_rows():
    X, y = clusters()
    weight = np.where(y == 0, 4.0, 1.0)
    model = fit(X, weight=weight, **PLAIN)
    shares = np.bincount(y, weight) / weight.sum()
    np.testing.assert_allclose(model.weights_[model.labels_[:3]], shares, atol=0.01)


def test_constant_columns_change_nothing():
    X, _ = clusters()
    more = np.column_stack([np.full(len(X), 7.0), X, np.zeros(len(X))])
    one, two = fit(X), fit(more)
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_allclose(one.score_samples(X), two.score_samples(more))
    assert not two.relevance_[:, [0, 5]].any()
    np.testing.assert_allclose(two.means_[:, [0, 5]], [[7, 0]] * 3)


@pytest.mark.parametrize(
    "covariance",
    ["auto", "independent", "spherical", "tied", "proportional", "full", "lowrank"],
)
def test_repeated_columns_are_no_harm(covariance):
    X, y = clusters(90, 3)
    more = np.column_stack([X, X[:, 0], 2 * X[:, 1] - 5])
    model = fit(more, covariance=covariance)
    same_clusters(model.labels_, y)
    sound(model, more)
    sound(fit(X[:, :1], 2, covariance=covariance), X[:, :1])


def line_up(n):
    return np.random.default_rng(n).normal(size=(n, 3))


HARD = {
    "one row": (line_up(1), 1),
    "two rows": (line_up(2), 2),
    "as many components as rows": (line_up(25), 25),
    "nearly as many, with isolated rows": (
        np.vstack([line_up(27), 50 + 9 * np.arange(9).reshape(3, 3)]),
        28,
    ),
    "more columns than rows": (np.random.default_rng(0).normal(size=(8, 40)), 2),
    "equal rows": (np.ones((12, 3)), 1),
    "equal rows, three components": (np.ones((12, 3)), 3),
    "equal rows but one": (np.eye(20)[:, :2] * 5 + 1, 2),
    "one row per category": (np.eye(10), 3),
    "one row per category and component": (np.eye(10), 10),
    "one row per number": (np.arange(10.0)[:, None], 3),
    "two values": (np.arange(20)[:, None] % 2 * 1.0, 2),
    "one observed value": (np.column_stack([line_up(20), np.r_[[1.0], [np.nan] * 19]]), 2),
    "values near each other": (1 + 1e-15 * np.arange(30)[:, None], 2),
    "far from zero": (1e15 + line_up(40), 2),
    "an enormous value": (np.r_[line_up(40), [[1e300, 0, 0]]], 2),
    "an enormous negative value": (np.r_[line_up(40), [[-1e200, 0, 0]]], 2),
    "numbers beyond squares": (np.exp(150 * line_up(40)), 2),
}


@pytest.mark.parametrize("case", HARD)
def test_hard_tables_give_sound_mixtures(case):
    X, k = HARD[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # k-means says so if there are fewer different rows than components.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = fit(X, k)
        sound(model, X)
    assert model.weights_.sum() == pytest.approx(1)
    np.testing.assert_array_equal(model.labels_, model.predict(X))


@pytest.mark.parametrize("tails", [False, True])
@pytest.mark.parametrize("covariance", ["independent", "full"])
def test_new_rows_may_be_arbitrarily_far(covariance, tails):
    X = np.exp(np.random.default_rng(3).normal(size=(60, 2)))
    model = fit(X, 2, covariance=covariance, tails=tails)
    for far in (1e10, 1e80, 1e160, 1e300):
        new = far * np.array([[1, 0], [0, 1], [-1, 0], [0, -1], [1, -1]])
        assert np.isfinite(model.score_samples(new)).all()
        np.testing.assert_allclose(model.predict_proba(new).sum(axis=1), 1)
        assert (model.score_samples(new) < model.score_samples(X).min()).all()


def test_density_of_a_far_row_is_exact():
    """The log density of a t distribution falls by 5 per factor of e, however far the row."""
    X, _ = clusters(90, 2)
    model = fit(X[:, :1], 1, covariance="full", tails=True, background=False)
    near, far = model.score_samples([[1e6], [1e12]])
    assert near - far == pytest.approx(5 * np.log(1e6), abs=1e-4)


# Columns that tell nothing about the clusters.
IRRELEVANT = {
    "uniform": lambda rng, n: rng.uniform(size=n),
    "skewed": lambda rng, n: np.exp(rng.normal(size=n)),
    "bimodal": lambda rng, n: np.where(rng.random(n) < 0.5, -4, 4) + rng.normal(size=n),
    "discrete": lambda rng, n: rng.integers(3, size=n) * 1.0,
    "atoms": lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, rng.normal(size=n)),
    "gaps": lambda rng, n: np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
}


@pytest.mark.parametrize("shape", IRRELEVANT)
@pytest.mark.parametrize("options", [{}, PLAIN], ids=["auto", "plain"])
def test_irrelevant_columns_are_found_and_change_no_label(shape, options):
    X, y = clusters(240, 6)
    more = np.column_stack([X, IRRELEVANT[shape](np.random.default_rng(1), len(X))])
    model = fit(more, **options)
    same_clusters(model.labels_, y)
    assert model.relevance_[:, 6].tolist() == [0, 0, 0]
    assert (model.relevance_[:, :6] > 0).any(axis=0).all()


def by_cluster(model, y):
    """Relevance of the last column in each cluster."""
    return [int(model.relevance_[model.labels_[y == l][0], -1]) for l in range(3)]


def test_column_may_be_relevant_in_one_cluster_only():
    X, y = clusters(300)
    rng = np.random.default_rng(1)
    column = np.where(y == 1, 4 + 0.2 * rng.normal(size=300), rng.uniform(-5, 5, size=300))
    model = fit(np.column_stack([X, column]), **PLAIN)
    same_clusters(model.labels_, y)
    found = by_cluster(model, y)
    assert found[1] == 2
    peaked = np.sqrt(model.covariances_[model.labels_[1], -1, -1])
    assert peaked < 0.2
    assert 0 in found or model.relevance_[:, -1].max() == 2


def test_clusters_of_the_same_spread_share_it():
    X, y = clusters(300)
    column = 6 * y + np.random.default_rng(2).normal(size=300)
    model = fit(np.column_stack([X, column]), **PLAIN)
    assert by_cluster(model, y) == [1, 1, 1]
    assert len(set(model.covariances_[:, -1, -1])) == 1


def test_clusters_of_different_spreads_have_their_own():
    X, y = clusters(300)
    spread = np.array([0.2, 1.0, 5.0])
    column = 6 * y + np.random.default_rng(2).normal(size=300) * spread[y]
    model = fit(np.column_stack([X, column]), **PLAIN)
    assert by_cluster(model, y) == [2, 2, 2]
    # The narrow cluster is a peak of the column, and may be described by it.
    order = [model.labels_[l] for l in (1, 2)]
    one, other = np.sqrt(model.covariances_[order, -1, -1])
    assert other / one == pytest.approx(5, rel=0.35)


@pytest.mark.parametrize("groups", [None, [0, 1, 2, 3, "kind", "kind", "kind"]])
def test_columns_of_a_variable_are_relevant_together(groups):
    X, y = clusters(240)
    rng = np.random.default_rng(0)
    telling = np.where(rng.random(240) < 0.8, y, rng.integers(3, size=240))
    idle = rng.integers(3, size=240)
    model = fit(np.column_stack([X, np.eye(3)[telling]]), feature_groups=groups)
    assert (model.relevance_[:, 4:] == 2).all()
    order = [model.labels_[l] for l in range(3)]
    shares = np.stack([np.eye(3)[telling][y == l].mean(axis=0) for l in range(3)])
    np.testing.assert_allclose(model.means_[order][:, 4:], shares, atol=0.02)  # a row or two
    model = fit(np.column_stack([X, np.eye(3)[idle]]), feature_groups=groups)
    assert not model.relevance_[:, 4:].any()


def test_column_with_two_peaks_may_differ_by_their_shares():
    X, y = clusters(300)
    rng = np.random.default_rng(0)
    share = np.array([0.1, 0.5, 0.9])[y]
    column = np.where(rng.random(300) < share, 5, -5) + rng.normal(size=300)
    model = fit(np.column_stack([X, column]), **PLAIN)
    same_clusters(model.labels_, y)
    assert by_cluster(model, y)[::2] == [2, 2]
    drawn, labels = model.sample(5_000)
    for l in (0, 1, 2):
        high = (drawn[labels == model.labels_[l], -1] > 0).mean()
        assert high == pytest.approx((column[y == l] > 0).mean(), abs=0.06)


def test_background_takes_scattered_rows():
    X, y = clusters(300, 2)
    scattered = np.random.default_rng(0).uniform(-30, 40, size=(15, 2))
    model = fit(np.vstack([X, scattered]), covariance="full", tails=False, background=True)
    assert adjusted_rand_score(model.labels_[:300], y) > 0.97
    assert model.background_ == pytest.approx(15 / 315, abs=0.03)
    assert set(model.labels_) == {0, 1, 2}
    assert fit(X, **PLAIN).background_ == 0.0


BAD = {
    "n_components": (dict(n_components=0), np.eye(4), "n_components"),
    "too many components": (dict(n_components=5), line_up(4), "n_components=5"),
    "covariance": (dict(covariance="round"), np.eye(4), "covariance"),
    "covariance in a list": (dict(covariance=["full", "round"]), np.eye(4), "covariance"),
    "empty list": (dict(covariance=[]), np.eye(4), "covariance"),
    "tails": (dict(tails="heavy"), np.eye(4), "tails"),
    "n_init": (dict(n_init=-1), np.eye(4), "n_init"),
    "groups": (dict(feature_groups=[0, 1]), np.eye(4), "feature_groups"),
    "column of gaps": ({}, np.column_stack([np.eye(3), [np.nan] * 3]), "missing .* 3"),
    "row of gaps": ({}, np.r_[np.eye(3), [[np.nan] * 3]], "missing .* row"),
    "infinity": ({}, np.array([[1.0, np.inf], [0, 1]]), "infinity"),
    "strings": ({}, np.array([["a", "b"], ["c", "d"]]), "could not convert"),
    "column of strings": ({}, pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), "'b'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_with_its_reason(case):
    options, X, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        Mixture(**options).fit(X)


def test_bad_weights_and_new_rows_are_refused():
    X, _ = clusters(30)
    with pytest.raises(ValueError, match="weight"):
        fit(X, weight=np.zeros(30))
    with pytest.raises(ValueError, match="n_components=3"):
        fit(X, weight=np.r_[[1.0, 1.0], np.zeros(28)])
    gaps = np.where(np.arange(30)[:, None] < 25, X, np.nan)
    gaps[25:, 0] = X[:25, :1].mean()
    gaps[:25, 3] = np.nan
    gaps[25:, 3] = 1.0
    with pytest.raises(ValueError, match=r"missing .* 3"):
        fit(gaps, weight=np.r_[np.ones(25), np.zeros(5)])
    model = fit(X)
    for method in ("predict", "predict_proba", "score_samples", "transform_columns"):
        with pytest.raises(ValueError, match="features"):
            getattr(model, method)(X[:, :2])
        with pytest.raises(NotFittedError):
            getattr(clone(model), method)(X)
    for n in (0, -1, 1.5):
        with pytest.raises(ValueError, match="n_samples"):
            model.sample(n)
