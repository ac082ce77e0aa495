"""The weightings: one table, uniform weights and their effects."""

import dask.array as da
import numpy as np
import pytest
from sklearn.cluster import KMeans

import reference
from cafelearn import MinkowskiWeightedKMeans
from cafelearn.kmeans.kernels.geometry import chunk_rows
from cafelearn.kmeans.kernels.weights import WEIGHTINGS
from cafelearn.theory import certificate
from conftest import make_blobs


def uniform(n_clusters, **options):
    return MinkowskiWeightedKMeans(n_clusters, weighting="uniform", **options)


@pytest.mark.parametrize("seed", range(5))
def test_uniform_weights_at_p_2_are_k_means_from_the_same_centres(seed, data):
    start = data[np.random.default_rng(seed).choice(len(data), 3, replace=False)]
    ours = uniform(3, init=start).fit(data)
    theirs = KMeans(3, init=start, n_init=1, tol=0, algorithm="lloyd").fit(data)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_)
    np.testing.assert_array_equal(ours.predict(data + 0.01), theirs.predict(data + 0.01))
    assert (ours.feature_weights_ == 1 / data.shape[1]).all()


@pytest.mark.parametrize("p", [1.2, 1.5, 3.0])
def test_uniform_weights_follow_the_reference(p, data):
    start, m = data[[3, 70, 140]], data.shape[1]
    model = uniform(3, p=p, init=start).fit(data)
    Z, labels = start, None
    for _ in range(300):
        new = reference.assign(data, Z, np.full((3, m), 1 / m), p)
        if labels is not None and (new == labels).all():
            break
        labels = new
        Z = reference.centers(data, labels, 3, p)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_allclose(model.cluster_centers_, Z, atol=1e-9)


@pytest.mark.parametrize("offset", ["mean", "fixed", 0.0, 2.0])
def test_the_offset_has_no_effect_on_uniform_weights(offset, data):
    one = uniform(3, p=1.5, n_init=2, random_state=0).fit(data)
    other = uniform(3, p=1.5, n_init=2, random_state=0, dispersion_offset=offset).fit(data)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_array_equal(one.objective_path_, other.objective_path_)
    assert (np.diff(other.objective_path_) <= 1e-12).all()


@pytest.mark.parametrize("init", ["random", "k-means++", "anomalous"])
def test_every_init_takes_uniform_weights(init, data):
    model = uniform(3, init=init, n_init=2, random_state=0).fit(data)
    assert (model.feature_weights_ == 1 / data.shape[1]).all()
    np.testing.assert_array_equal(model.labels_, model.predict(data))


@pytest.mark.parametrize("weighting", sorted(WEIGHTINGS))
@pytest.mark.parametrize("p", [1.4, 2.0, 3.0])
def test_large_data_and_dask_have_the_bits_of_one_thread(weighting, p):
    X, _ = make_blobs(12_000, 6, 4)
    model = MinkowskiWeightedKMeans(
        4, p=p, weighting=weighting, n_init=2, max_iter=15, random_state=1
    )
    here = model.fit(X)
    labels, centers = here.labels_.copy(), here.cluster_centers_
    lazy = da.from_array(X, (chunk_rows(6), 6))
    for other in (model.set_params(n_jobs=2).fit(X), model.fit(lazy)):
        np.testing.assert_array_equal(np.asarray(other.labels_), labels)
        np.testing.assert_array_equal(other.cluster_centers_, centers)
    assert (weighting == "uniform") == (model.feature_weights_ == 1 / 6).all()


def test_claims_about_weights_do_not_apply_to_uniform_ones(data):
    model = uniform(3, p=1.5, dispersion_offset=0, n_init=2, random_state=0).fit(data)
    table = certificate(model, data)
    assert table.all_hold
    assert table.loc["Eq. 4: fixed point, weights", "verdict"] == "does not apply"
    assert table.loc["Theorem 1: descent is monotone", "verdict"] == "holds"


@pytest.mark.parametrize("p", [1.3, 2.0, 3.0])
@pytest.mark.parametrize("offset", [0.0, 2.0])
def test_weights_of_features_minimise_the_sum_over_clusters(p, offset, data):
    model = MinkowskiWeightedKMeans(
        3, p=p, weighting="feature", dispersion_offset=offset, n_init=2, random_state=0
    ).fit(data)
    sums = (model.dispersions_ + offset).sum(axis=0)
    expected = sums ** (-1 / (p - 1))
    for weights in model.feature_weights_:
        np.testing.assert_allclose(weights, expected / expected.sum(), rtol=1e-6)
    assert (np.diff(model.objective_path_) <= 1e-9 * model.objective_path_[0]).all()
    np.testing.assert_array_equal(model.labels_, model.predict(data))


def test_unknown_weightings_are_refused(data):
    with pytest.raises(ValueError, match="'weighting' parameter"):
        MinkowskiWeightedKMeans(3, weighting="features").fit(data)
