"""Data and weights in extreme units: score, scaling, CAFE and explanations stay the same."""

import numpy as np
import pytest
from sklearn.base import clone

from cafelearn import CAFE, MinkowskiWeightedKMeans, RangeScaler
from cafelearn.explanation import explain
from cafelearn.persistence import load_model, save_model
from cafelearn.selection import likelihood_score

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
EXPONENTS = (-1000, -600, 600, 1015)
HARD = {"selection": "likelihood"}
OPTIONS = {"n_init": 2, "n_components": 2, "random_state": 0}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(90, 4)) + 5 * rng.integers(0, 3, (90, 1))


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_the_score_does_not_depend_on_units(X, exponent):
    labels, others = X[:, 0] > 3, np.arange(90) % 2
    for given in (labels, others):
        plain = likelihood_score(X, given)
        assert likelihood_score(np.ldexp(X, exponent), given) == pytest.approx(plain, rel=1e-12)
    mixed = np.where(np.arange(4) == 1, np.ldexp(X, exponent), X)
    assert likelihood_score(mixed, labels) == pytest.approx(likelihood_score(X, labels))


def test_the_score_of_a_range_beyond_the_largest_float():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (60, 2)) * [1.0, 1.7e308]
    scaled = X / [1.0, 1.7e308]
    for labels in (X[:, 1] > 0, np.arange(60) % 2):
        expected = likelihood_score(scaled, labels)
        assert likelihood_score(X, labels) == pytest.approx(expected)


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("options", [{}, HARD, {"scaling": "standard"}, {"extractor": "nmf"}])
def test_cafe_does_not_depend_on_units(X, exponent, options):
    plain = CAFE(3, **OPTIONS, **options).fit(X)
    other = CAFE(3, **OPTIONS, **options).fit(np.ldexp(X, exponent))
    np.testing.assert_array_equal(other.labels_, plain.labels_)
    np.testing.assert_allclose(
        other.transform(np.ldexp(X, exponent)), plain.transform(X), rtol=1e-9, atol=1e-12
    )
    assert other.candidates_.equals(plain.candidates_)


def test_no_warning_of_sums_beyond_the_largest_float(X):
    X = np.where(X > 3, 1.7e308, -1.7e308)
    model = MinkowskiWeightedKMeans(2, n_init=2, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_a_model_of_standard_scaling_in_extreme_units_is_kept(X, tmp_path):
    X = X * 1e200
    cafe = CAFE(3, scaling="standard", **OPTIONS).fit(X)
    assert np.isfinite(cafe.scaler_.scale_).all()
    again = load_model(save_model(cafe, tmp_path / "model.skops"))
    np.testing.assert_array_equal(again.transform(X), cafe.transform(X))


@pytest.mark.parametrize("exponent", [-1000, 600])
def test_groups_of_columns_in_extreme_units(X, exponent):
    options = OPTIONS | {"scaling": "standard", "feature_groups": ["a", "a", "b", "b"]}
    plain = CAFE(3, **options).fit(X)
    other = CAFE(3, **options).fit(np.ldexp(X, exponent))
    np.testing.assert_array_equal(other.labels_, plain.labels_)
    np.testing.assert_allclose(
        np.ldexp(plain.scaler_.scale_, exponent), other.scaler_.scale_, rtol=1e-12
    )


def test_extreme_values_that_nothing_scales_are_an_error(X):
    mixed = X * [1.0, 1.0, 1e200, 1.0]
    for rows, column in ((mixed, 2), (X * 1e-200, int(np.abs(X).max(axis=0).argmax()))):
        with pytest.raises(
            ValueError, match=rf"scaling=None\) cannot use column {column}: its"
        ):
            CAFE(3, scaling=None, **OPTIONS).fit(rows)
    # Beside others, a column of almost nothing does no harm.
    assert np.isfinite(
        CAFE(3, scaling=None, **OPTIONS).fit(X * [1, 1e-200, 1, 1]).transform(X)
    ).all()


def test_cafe_takes_weights_far_above_one(X):
    weights = np.random.default_rng(2).integers(1, 4, 90).astype(float)
    plain = CAFE(3, **OPTIONS).fit(X, sample_weight=weights * 2.0**190)
    for exponent in (400, 1000):
        heavy = np.ldexp(weights, exponent)
        model = CAFE(3, **OPTIONS).fit(X, sample_weight=heavy)
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        np.testing.assert_allclose(model.transform(X), plain.transform(X), rtol=1e-9)
        assert np.isfinite(likelihood_score(X, model.labels_, sample_weight=heavy))


@pytest.mark.parametrize("p", [1.5, 3.0, 20.0])
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_explanations_do_not_depend_on_units(X, exponent, p):
    expected = explain(MinkowskiWeightedKMeans(3, p=p, n_init=2, random_state=0).fit(X), X, 5)
    scaled = np.ldexp(X, exponent)
    model = MinkowskiWeightedKMeans(3, p=p, n_init=2, random_state=0).fit(scaled)
    found = explain(model, scaled, 5)
    assert found.index.tolist() == expected.index.tolist()
    np.testing.assert_allclose(found["share"], expected["share"], rtol=1e-6)
    assert not found.isna().any(axis=None)
    assert found.attrs["margin"] == pytest.approx(expected.attrs["margin"], rel=1e-6)


def test_explanations_of_far_rows(X):
    cafe = CAFE(3, p=3.0, **HARD, **OPTIONS).fit(X)
    found = explain(cafe, np.array([[1e200, -1e300, 1e250, 3.0]]), 0)
    assert found["share"].abs().sum() == pytest.approx(1)
    assert found.index[0] == "x1"
    assert not found.isna().any(axis=None)


def test_the_mean_of_a_column_near_the_largest_float(X):
    X = np.abs(X)
    for exponent in (-1000, 1019):
        scaler = RangeScaler().fit(np.ldexp(X, exponent))
        np.testing.assert_array_equal(
            np.ldexp(RangeScaler().fit(X).mean_, exponent), scaler.mean_
        )


def test_extreme_values_beside_gaps_that_nothing_scales(X):
    mixed = X * [1.0, 1.0, 1e200, 1.0]
    mixed[3, 0] = np.nan
    with pytest.raises(ValueError, match=r"CAFE\(scaling=None\) cannot use column 2"):
        CAFE(3, scaling=None, **OPTIONS).fit(mixed)


class TestDask:
    """Dask collections in extreme units: the fit of rows in memory."""

    @pytest.fixture
    def lazy(self):
        return pytest.importorskip("dask.array").from_array

    @pytest.mark.parametrize("exponent", EXPONENTS)
    @pytest.mark.parametrize("scaling", ["range", "standard"])
    def test_cafe_of_dask_collections(self, X, exponent, scaling, lazy):
        X = np.ldexp(X, exponent)
        options = OPTIONS | {"scaling": scaling, "p": (1.5, 2.0)}
        memory = CAFE(3, **options).fit(X)
        cafe = CAFE(3, **options).fit(lazy(X, chunks=(30, 4)))
        np.testing.assert_array_equal(cafe.labels_, memory.labels_)
        np.testing.assert_allclose(cafe.scaler_.mean_, memory.scaler_.mean_, rtol=1e-12)
        np.testing.assert_allclose(
            cafe.candidates_["score"], memory.candidates_["score"], rtol=1e-9
        )

    def test_values_that_nothing_scales_are_an_error(self, X, lazy):
        mixed = lazy(X * [1.0, 1.0, 1e200, 1.0], chunks=(30, 4))
        with pytest.raises(ValueError, match=r"CAFE\(scaling=None\) cannot use column 2"):
            CAFE(3, scaling=None, **OPTIONS).fit(mixed)

    def test_range_scaler(self, X, lazy):
        X = np.ldexp(np.abs(X), 1019)
        memory, other = (RangeScaler().fit(rows) for rows in (X, lazy(X, chunks=(30, 4))))
        np.testing.assert_allclose(other.mean_, memory.mean_, rtol=1e-12)
        np.testing.assert_array_equal(other.range_, memory.range_)

    @pytest.mark.parametrize("p", [1.01, 2.0, 3.0, 20.0])
    @pytest.mark.parametrize("exponent", EXPONENTS)
    @pytest.mark.parametrize("init", ["random", "array", "callable"])
    def test_mwkmeans_of_dask_collections(self, X, p, exponent, init, lazy):
        X = np.ldexp(X * [1.0, 1.0, 0.1, 0.5], exponent)
        inits = {"array": X[[0, 30, 60]], "callable": lambda X, k, random_state: X[:k]}
        options = {"p": p, "n_init": 2, "random_state": 0, "init": inits.get(init, init)}
        same_fit(MinkowskiWeightedKMeans(3, **options), X, lazy)

    @pytest.mark.parametrize("offset", ["fixed", 2.0**40])
    def test_offsets(self, X, offset, lazy):
        model = MinkowskiWeightedKMeans(3, dispersion_offset=offset, n_init=2, random_state=0)
        same_fit(model, np.ldexp(X, 600), lazy)

    @pytest.mark.parametrize("p", [1.5, 2.0, 8.0])
    def test_single_precision_of_dask_collections(self, X, p, lazy):
        for rows in (X + 1e6, X * [1e-15, 1.0, 1.0, 1e15]):
            model = MinkowskiWeightedKMeans(3, p=p, n_init=2, random_state=0)
            same_fit(model, rows.astype(np.float32), lazy)


def same_fit(model, X, lazy):
    memory, other = clone(model).fit(X), clone(model).fit(lazy(X, chunks=(len(X), 4)))
    for name in ("labels_", "cluster_centers_", "feature_weights_", "dispersions_", "inertia_"):
        np.testing.assert_array_equal(getattr(other, name), getattr(memory, name), name)
