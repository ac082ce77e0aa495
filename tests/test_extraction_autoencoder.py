"""Autoencoder: the loss, its gradient, the training of all starts and the estimator."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import reference_extraction as reference
from cafelearn.extraction import Autoencoder, _network, _scg


@parametrize_with_checks([Autoencoder(n_init=2, max_iter=20)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def unit_problem(
    n_rows=30, n_features=5, n_components=3, l2=0.01, weight=0.7, sparsity=0.1, seed=0
):
    X = np.random.default_rng(seed).uniform(size=(n_rows, n_features))
    return X, _network.make_problem(X, n_components, l2, weight, sparsity)


def random_points(problem, n_starts, scale=10.0):
    seeds = np.random.SeedSequence(0).spawn(n_starts)
    points = np.stack([_network.initial_point(seed, problem, scale) for seed in seeds])
    return points + np.random.default_rng(1).normal(scale=0.3, size=points.shape)


def value_and_slope(problem, n_at_a_time=2):
    workspace = _network.make_workspace(n_at_a_time, problem)
    return lambda points: _network.loss(points, problem, workspace)[:2]


def test_loss_is_the_definition():
    X, problem = unit_problem()
    points = random_points(problem, 5)
    workspace = _network.make_workspace(2, problem)
    values, _, errors = _network.loss(points, problem, workspace)
    for k in range(5):
        first, second = (layer[k] for layer in _network.layers(points, problem))
        weights = first[:, :-1], first[:, -1], second[:, :-1], second[:, -1]
        expected = reference.autoencoder_loss(X, *weights, 0.01, 0.7, 0.1)
        np.testing.assert_allclose(values[k], expected, rtol=1e-12)
        plain = reference.autoencoder_loss(X, *weights, 0.0, 0.0, 0.1)
        np.testing.assert_allclose(errors[k], plain / X.shape[1], rtol=1e-12)


@pytest.mark.parametrize(
    "penalties", [(0.0, 0.0), (0.5, 0.0), (0.0, 1.0), (1e-3, 1.0)], ids=str
)
def test_gradient_against_finite_differences(penalties):
    _, problem = unit_problem(l2=penalties[0], weight=penalties[1])
    function = value_and_slope(problem)
    points = random_points(problem, 3)
    _, slopes = function(points)
    numeric = np.empty_like(slopes)
    for j in range(points.shape[1]):
        step = np.zeros(points.shape[1])
        step[j] = 1e-5
        numeric[:, j] = (function(points + step)[0] - function(points - step)[0]) / 2e-5
    np.testing.assert_allclose(slopes, numeric, atol=1e-8)


def test_extreme_weights_give_finite_numbers():
    _, problem = unit_problem()
    values, slopes = value_and_slope(problem)(1e5 * random_points(problem, 3))
    assert np.isfinite(values).all()
    assert np.isfinite(slopes).all()


def test_a_batch_trains_each_start_as_if_alone():
    _, problem = unit_problem()
    starts = random_points(problem, 6, scale=0.1)
    points, values = _scg.minimize_all(value_and_slope(problem, 4), starts, 25)
    for k, start in enumerate(starts):
        alone, value = _scg.minimize_all(value_and_slope(problem, 1), start[None], 25)
        np.testing.assert_allclose(points[k], alone[0], atol=1e-6)
        np.testing.assert_allclose(values[k], value[0], rtol=1e-8)


def test_scaled_conjugate_gradients_against_the_reference():
    _, problem = unit_problem()
    starts = random_points(problem, 4, scale=0.1)
    function = value_and_slope(problem)
    points, _ = _scg.minimize_all(function, starts, 20)
    for k, start in enumerate(starts):
        expected = reference.scaled_conjugate_gradients(
            lambda w: function(w[None])[0][0], lambda w: function(w[None])[1][0], start, 20
        )
        np.testing.assert_allclose(points[k], expected, atol=1e-6)


def valley(points):
    """Rosenbrock's function, with its minimum at (1, 1): many steps are rejected."""
    x, y = points.T
    values = 100 * (y - x**2) ** 2 + (1 - x) ** 2
    return values, np.stack([-400 * x * (y - x**2) - 2 * (1 - x), 200 * (y - x**2)], axis=1)


def test_scaled_conjugate_gradients_on_a_curved_valley():
    starts = np.array([[-1.2, 1.0], [3.0, -2.0], [1.0, 1.0], [0.0, 4.0]])
    for n_epochs in (1, 5, 30):
        points, values = _scg.minimize_all(valley, starts, n_epochs)
        assert (values <= valley(starts)[0]).all()
        np.testing.assert_array_equal(points[2], [1, 1])
        for start, point in zip(starts[[0, 1, 3]], points[[0, 1, 3]], strict=True):
            expected = reference.scaled_conjugate_gradients(
                lambda w: valley(w[None])[0][0],
                lambda w: valley(w[None])[1][0],
                start,
                n_epochs,
            )
            np.testing.assert_allclose(point, expected, rtol=1e-6)
    points, _ = _scg.minimize_all(valley, starts, 2000)
    np.testing.assert_allclose(points, 1, atol=1e-3)


def test_training_lowers_the_loss(data):
    losses = [
        Autoencoder(2, n_init=1, max_iter=n_epochs, random_state=0).fit(data).loss_
        for n_epochs in (1, 5, 20, 100)
    ]
    assert (np.diff(losses) < 0).all()


def test_the_start_with_the_smallest_error_is_kept(data):
    model = Autoencoder(2, n_init=6, max_iter=30, random_state=7).fit(data)
    scaled = (data - data.min(axis=0)) / np.ptp(data, axis=0)
    problem = _network.make_problem(scaled, 2, 1e-3, 1.0, 0.05)
    seeds = np.random.SeedSequence(7).spawn(6)
    starts = np.stack([_network.initial_point(seed, problem, 0.1) for seed in seeds])
    points, values = _scg.minimize_all(value_and_slope(problem, 6), starts, 30)
    errors = _network.loss(points, problem, _network.make_workspace(6, problem))[2]
    assert model.loss_ == pytest.approx(values[np.argmin(errors)], rel=1e-6)
    rebuilt = model.inverse_transform(model.transform(data))
    error = np.mean(((data - rebuilt) / np.ptp(data, axis=0)) ** 2)
    assert error == pytest.approx(errors.min(), rel=1e-6)


def test_initial_weights_are_small():
    _, problem = unit_problem(n_features=40, n_components=20)
    point = _network.initial_point(np.random.SeedSequence(0), problem, 0.1)
    first, second = _network.layers(point[None], problem)
    limit = 0.1 * np.sqrt(6 / 60)
    for layer in (first, second):
        assert np.abs(layer[:, :, :-1]).max() <= limit
        assert np.abs(layer[:, :, :-1]).max() > 0.95 * limit
        assert (layer[:, :, -1] == 0).all()


def test_sparsity_draws_the_mean_activation():
    X = np.random.default_rng(0).uniform(size=(80, 6))
    means = [
        Autoencoder(3, n_init=3, sparsity_weight=weight, sparsity=0.2, random_state=0)
        .fit_transform(X)
        .mean(axis=0)
        for weight in (0.0, 1.0, 100.0)
    ]
    distance = [np.abs(mean - 0.2).max() for mean in means]
    assert distance[2] < 0.01
    assert distance[2] < distance[1] < distance[0]


def test_transform_and_back(data):
    model = Autoencoder(2, n_init=4, random_state=0, sparsity_weight=0)
    features = model.fit_transform(data)
    np.testing.assert_array_equal(features, model.transform(data))
    assert ((features > 0) & (features < 1)).all()
    scaled = (data - model.minimum_) / model.range_
    expected = reference.logistic(scaled @ model.components_.T + model.hidden_offset_)
    np.testing.assert_allclose(features, expected)
    rebuilt = model.inverse_transform(features)
    assert (rebuilt >= data.min(axis=0)).all()
    assert (rebuilt <= data.max(axis=0)).all()
    error = np.sqrt(np.mean((data - rebuilt) ** 2))
    assert model.reconstruction_error_ == pytest.approx(error)
    assert error < 0.8 * np.sqrt(np.mean((data - data.mean(axis=0)) ** 2))


@pytest.mark.parametrize("scale", [1e-100, 1e-3, 1e100])
def test_scale_of_the_data_does_not_matter(data, scale):
    plain, scaled = (
        Autoencoder(2, n_init=2, max_iter=30, random_state=0).fit_transform(X)
        for X in (data, data * scale - scale)
    )
    np.testing.assert_allclose(scaled, plain, atol=1e-4)


@pytest.mark.parametrize("n_init", [3, 60])
def test_threads_do_not_change_the_result(data, n_init):
    one, two = (
        Autoencoder(2, n_init=n_init, max_iter=20, n_jobs=n_jobs, random_state=3).fit(data)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.components_, two.components_)
    assert one.loss_ == two.loss_


def test_single_precision_is_kept(data):
    single = data.astype(np.float32)
    model = Autoencoder(2, n_init=2, max_iter=20, random_state=0)
    features = model.fit_transform(single)
    assert features.dtype == model.components_.dtype == model.decoder_.dtype == np.float32
    assert model.inverse_transform(features).dtype == np.float32
    double = Autoencoder(2, n_init=2, max_iter=20, random_state=0).fit_transform(data)
    np.testing.assert_allclose(features, double, atol=1e-3)


def test_constant_features():
    X = np.column_stack([np.full(20, 4.0), np.arange(20.0)])
    model = Autoencoder(1, n_init=2, random_state=0).fit(X)
    np.testing.assert_array_equal(model.range_, [1, 19])
    assert np.isfinite(model.transform(X)).all()


def test_named_output(data):
    pytest.importorskip("pandas")
    model = Autoencoder(2, n_init=1, max_iter=5).set_output(transform="pandas")
    assert list(model.fit_transform(data).columns) == ["autoencoder0", "autoencoder1"]


def test_errors_and_reports(data, capsys):
    m = data.shape[1]
    message = rf"Autoencoder needs n_components <= {m} features, got {m + 1}\."
    with pytest.raises(ValueError, match=message):
        Autoencoder(m + 1).fit(data)
    model = Autoencoder(2, n_init=4, max_iter=3, verbose=1).fit(data)
    assert capsys.readouterr().err.count("\n") == 4
    with pytest.raises(ValueError, match="inverse_transform needs 2 features"):
        model.inverse_transform(data[:, :3])
