"""feature_groups: columns of one variable share one weight per cluster."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score

from cafelearn import CAFE, MinkowskiWeightedKMeans, RangeScaler, TableEncoder, TabularCAFE
from cafelearn.data.source import InMemory
from cafelearn.data.variables import check_groups, codes_of
from cafelearn.estimators.candidates import Candidate
from cafelearn.estimators.variable_scaling import fit_scalers
from cafelearn.explanation import explain
from cafelearn.kmeans.kernels.cells import WEIGHT
from cafelearn.kmeans.kernels.weights import CLUSTER, cells_of, make_groups, update_weights
from cafelearn.persistence import ModelFileError, load_model, save_model
from cafelearn.plotting import WeightsDisplay
from cafelearn.selection import likelihood_score
from cafelearn.theory import certificate

FITTED = ("labels_", "feature_weights_", "cluster_centers_", "dispersions_", "objective_path_")


def wine():
    return RangeScaler().fit_transform(load_wine().data)


def table(n=240, seed=0):
    """Three clusters in a number and a category, with noise of both kinds."""
    rng = np.random.default_rng(seed)
    z = rng.integers(3, size=n)
    plans = np.array(["free", "pro", "team"])
    plan = np.where(rng.random(n) < 0.9, plans[z], rng.choice(plans, n))
    frame = pd.DataFrame(
        {
            "age": rng.normal(30 + 10 * z, 3, n),
            "noise": rng.normal(size=n),
            "plan": plan,
            "city": rng.choice(list("abcdefgh"), n),
        }
    )
    return frame, z


def reference_weights(D, codes, p, offset):
    """Eq. 4 over variables: sums of dispersions, one weight for all columns of each."""
    n_variables = max(codes) + 1
    totals = np.zeros((len(D), n_variables))
    for v, g in enumerate(codes):
        totals[:, g] += D[:, v]
    w = (totals + offset) ** (-1 / (p - 1))
    w /= w.sum(axis=1, keepdims=True)
    return w[:, codes]


@pytest.mark.parametrize("p", [1.3, 2.0, 3.5])
@pytest.mark.parametrize("offset", [0.0, 0.7])
def test_weight_update_against_plain_numpy(p, offset):
    rng = np.random.default_rng(1)
    D = rng.exponential(size=(4, 7))
    codes = np.array([0, 1, 0, 2, 1, 3, 0])
    cells = cells_of(np.log(D))
    log_offset = np.log(offset) if offset else -np.inf
    update_weights.from_python(cells, log_offset, p, CLUSTER, make_groups(7, codes), False)
    assert_allclose(cells[:, WEIGHT], reference_weights(D, codes, p, offset), rtol=1e-12)


def test_grouped_weights_minimise_the_objective():
    rng = np.random.default_rng(2)
    D, codes, p = rng.exponential(size=(1, 6)), np.array([0, 0, 1, 2, 2, 2]), 1.7
    best = (reference_weights(D, codes, p, 0.0) ** p * D).sum()
    for _ in range(200):
        w = rng.dirichlet(np.ones(3))[codes]
        assert (w**p * D).sum() >= best - 1e-12


@pytest.mark.parametrize("offset", ["mean", "fixed", 0, 0.3])
def test_fitted_weights_follow_from_summed_dispersions(offset):
    X, codes = wine(), np.repeat([0, 1, 2, 3], [4, 1, 5, 3])
    model = MinkowskiWeightedKMeans(
        3, p=1.5, dispersion_offset=offset, feature_groups=codes, n_init=3, random_state=0
    ).fit(X)
    totals = np.stack([model.dispersions_[:, codes == g].sum(axis=1) for g in range(4)], axis=1)
    if offset == "mean":
        constant = totals.mean()
    elif offset == "fixed":
        one = MinkowskiWeightedKMeans(1, p=1.5, n_init=1).fit(X).dispersions_[0]
        constant = one.sum() / 4 * 0.1 / 3
    else:
        constant = offset
    expected = reference_weights(model.dispersions_, codes, 1.5, constant)
    assert_allclose(model.feature_weights_, expected, rtol=1e-6)
    assert_allclose(model.weights_frame().sum(axis=1), 1, rtol=1e-12)
    assert_allclose(model.inertia_, (model.weights_frame() ** 1.5 * totals).sum().sum())
    assert certificate(model, X).all_hold


@pytest.mark.parametrize("p", [1.4, 2.0, 3.0])
@pytest.mark.parametrize("offset", ["mean", "fixed", 0.0])
@pytest.mark.parametrize("init", ["random", "anomalous"])
def test_groups_of_one_column_change_no_bit(p, offset, init):
    X = wine()
    plain = MinkowskiWeightedKMeans(
        3, p=p, dispersion_offset=offset, init=init, n_init=2, random_state=0
    )
    grouped = clone(plain).set_params(feature_groups=[f"g{13 - v}" for v in range(13)])
    plain.fit(X)
    grouped.fit(X)
    for name in FITTED:
        assert_array_equal(getattr(plain, name), getattr(grouped, name))


def test_groups_of_one_column_change_no_bit_of_cafe():
    X = load_wine().data
    plain = CAFE(3, n_init=2, random_state=0).fit(X)
    grouped = CAFE(3, n_init=2, random_state=0, feature_groups=range(13)).fit(X)
    assert_array_equal(plain.transform(X), grouped.transform(X))
    pd.testing.assert_frame_equal(plain.candidates_, grouped.candidates_, check_exact=True)
    assert plain._answer == grouped._answer


def test_fixed_offset_descends_with_groups():
    path = (
        MinkowskiWeightedKMeans(
            4, p=1.5, dispersion_offset="fixed", feature_groups=np.arange(13) // 3, n_init=1
        )
        .fit(wine())
        .objective_path_
    )
    assert (np.diff(path) <= 1e-12 * path[:-1]).all()


def test_auto_takes_variables_from_names():
    frame, _ = table()
    encoded = TableEncoder().fit(frame).transform(frame)
    model = MinkowskiWeightedKMeans(3, feature_groups="auto", n_init=1).fit(encoded)
    assert model.weights_frame().columns.tolist() == ["age", "noise", "plan", "city"]
    with pytest.raises(ValueError, match=r"feature_groups='auto'.*have no names"):
        model.fit(encoded.to_numpy())


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([0, 1], r"one label for each of 13 features, got an array of shape \(2,\)"),
        ([None, *range(12)], "the label of feature 0 is missing"),
        (np.zeros((13, 1)), r"shape \(13, 1\)"),
    ],
)
def test_unsound_groups_are_refused(groups, message):
    with pytest.raises(ValueError, match=message):
        MinkowskiWeightedKMeans(2, feature_groups=groups).fit(wine())


@pytest.mark.parametrize("n_categories", [2, 3, 9])
@pytest.mark.parametrize("p", [1.2, 2.0, 3.0])
def test_a_category_counts_as_one_variable(n_categories, p):
    X = np.eye(n_categories)[np.arange(60) % n_categories]
    X = np.column_stack([X, np.linspace(5, 25, 60)])
    codes = np.array([0] * n_categories + [1])
    for scaling in ("range", "standard"):
        candidate = Candidate(scaling, "cluster", "mean", p)
        (scaler,) = fit_scalers([candidate], InMemory(X), codes).values()
        scaled = scaler.transform(X)
        category, number = scaled[:, :-1], scaled[:, -1]
        if scaling == "range":
            apart = (np.abs(category[:, None] - category) ** p).sum(axis=2)
            assert_allclose(np.unique(apart.round(9)), [0, 1])
            assert_allclose(np.ptp(number), 1)
        else:
            assert_allclose(category.var(axis=0).sum(), 1)
            assert_allclose(number.var(), 1)
        assert_allclose(scaler.inverse_transform(scaled), X, atol=1e-12)


def test_score_of_a_category_is_that_of_one_feature():
    rng = np.random.default_rng(3)
    labels, number = rng.integers(2, size=80), rng.normal(size=80)
    has = (rng.random(80) < 0.2 + 0.6 * labels).astype(float)
    once = likelihood_score(np.column_stack([number, has]), labels)
    X = np.column_stack([number, has, 1 - has])
    assert_allclose(likelihood_score(X, labels, feature_groups=["n", "c", "c"]), once)
    assert_allclose(likelihood_score(X, labels), once)  # detected
    apart = likelihood_score(X, labels, feature_groups=["n", "c", "d"])
    assert abs(apart - once) > 1


def test_tabular_groups_categories_by_default():
    frame, _ = table()
    cafe = CAFE(3, selection="likelihood", n_init=3, random_state=0)
    model = TabularCAFE(cafe).fit(frame)
    assert model.weights_frame().columns.tolist() == ["age", "noise", "plan", "city"]
    assert model.cafe_.feature_groups_.tolist().count("city") == 8
    found = explain(model, frame, 0)
    assert sorted(found.index) == ["age", "city", "noise", "plan"]
    assert found.loc["plan", "category"] == frame["plan"][0]
    difference = found.attrs["second_distance"] ** model.cafe_.p_
    difference -= found.attrs["first_distance"] ** model.cafe_.p_
    assert_allclose(found["contribution"].sum(), difference, atol=1e-9)
    assert WeightsDisplay.from_estimator(model).im_.get_array().shape == (3, 4)
    words = model.profile_frame(frame)["description"]
    assert words.str.contains(r"plan: \w+ \d+% \(overall \d+%\)").any()
    apart = TabularCAFE(CAFE(3, n_init=1), group_categories=False).fit(frame)
    assert "plan=free" in apart.weights_frame().columns


def test_groups_of_the_mixture():
    """A category is one variable of the mixture: equal in all columns, or in none."""
    frame, z = table()
    model = TabularCAFE(CAFE(3, n_init=3, random_state=0)).fit(frame)
    assert model.weights_frame().columns.tolist() == ["age", "noise", "plan", "city"]
    assert adjusted_rand_score(z, model.labels_) > 0.6
    groups = model.cafe_.feature_groups_
    for name in ("plan", "city"):
        roles = model.relevance_[:, groups == name]
        assert (roles == roles[:, :1]).all()
    assert (model.relevance_[:, groups == "plan"] > 0).any()
    found = explain(model, frame, 0)
    assert sorted(found.index) == ["age", "city", "noise", "plan"]


def test_groups_survive_a_file(tmp_path):
    frame, _ = table()
    model = TabularCAFE(CAFE(3, n_init=1, random_state=0)).fit(frame)
    again = load_model(save_model(model, tmp_path / "model.skops"))
    assert_array_equal(again.predict(frame), model.predict(frame))
    pd.testing.assert_frame_equal(again.weights_frame(), model.weights_frame())
    model.cafe_.model_.feature_groups_ = model.cafe_.model_.feature_groups_[:-1]
    with pytest.raises(ModelFileError, match="feature_groups_"):
        load_model(save_model(model, tmp_path / "damaged.skops"))


@pytest.mark.parametrize("offset", ["mean", "fixed"])
def test_dask_gives_the_same_bits(offset):
    da = pytest.importorskip("dask.array")
    X, groups = wine(), np.arange(13) // 2
    model = MinkowskiWeightedKMeans(
        3, p=1.5, dispersion_offset=offset, feature_groups=groups, n_init=2, random_state=0
    )
    here = clone(model).fit(X)
    there = clone(model).fit(da.from_array(X, chunks=(len(X), 13)))
    assert_array_equal(there.feature_weights_, here.feature_weights_)
    assert_array_equal(there.cluster_centers_, here.cluster_centers_)


def test_dask_table_has_the_same_weights():
    dd = pytest.importorskip("dask.dataframe")
    frame, _ = table()
    model = TabularCAFE(CAFE(3, n_init=2, random_state=0))
    here = clone(model).fit(frame)
    there = clone(model).fit(dd.from_pandas(frame, npartitions=2))
    assert_allclose(there.weights_frame(), here.weights_frame(), rtol=1e-6)
    assert_allclose(there.cafe_.candidates_["score"], here.cafe_.candidates_["score"])


def test_labels_are_numbered_by_their_first_appearance():
    assert codes_of(check_groups(["b", "a", "b"], 3, "x")).tolist() == [0, 1, 0]
