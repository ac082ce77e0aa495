"""ReconstructionICA: the objective, its gradient, the descent and the estimator."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import reference_extraction as reference
from cafelearn.extraction import ReconstructionICA, _rica, ica
from cafelearn.extraction._lbfgs import minimize_all


@parametrize_with_checks(
    [
        ReconstructionICA(n_init=2),
        ReconstructionICA(n_components=1, n_init=2, contrast=None),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def sparse_data(n_rows=60, n_features=5, n_sources=4, seed=0):
    rng = np.random.default_rng(seed)
    mixing = rng.normal(size=(n_sources, n_features))
    return rng.laplace(size=(n_rows, n_sources)) @ mixing


def random_directions(n_starts, n_components, n_features, seed=0):
    return np.random.default_rng(seed).normal(size=(n_starts, n_components, n_features))


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 3.0])
@pytest.mark.parametrize("weight", [0.3, 1.0, 20.0])
@pytest.mark.parametrize("contrast", [True, False])
def test_objective_is_the_definition(scale, weight, contrast):
    X = sparse_data() * scale
    directions = random_directions(3, 2, 5)
    problem = _rica.make_problem(X, weight, contrast)
    values, _ = _rica.objective(directions, problem)
    expected = [reference.rica_objective(X, start, weight, contrast) for start in directions]
    # The reference takes the logarithm of a number close to 1, and so loses digits.
    rtol = 1e-12 if scale >= 1 or not contrast else 1e-3
    np.testing.assert_allclose(values * problem.scale**2, expected, rtol=rtol)


def test_contrast_of_large_and_tiny_features():
    directions = np.array([[[1.0, 0.0]]])
    for size in (1e-120, 1e-9, 0.1, 19.0, 21.0, 1e6, 1e120):
        X = np.array([[size, 0.0]])
        values, _ = _rica.objective(directions, _rica.make_problem(X, 1.0, True))
        # log(cosh(2 z)) / 2 is z**2 for small z and z - log(2) / 2 for large z.
        if size < 1e-4:
            expected = 1.0
        elif size < 19:
            expected = np.log(np.cosh(2 * size)) / 2 / size**2
        else:
            expected = (size - np.log(2) / 2) / size / size
        np.testing.assert_allclose(values, expected, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("contrast", [True, False])
def test_gradient_against_finite_differences(scale, contrast):
    problem = _rica.make_problem(sparse_data() * scale, 0.7, contrast)
    directions = random_directions(2, 3, 5)
    _, slopes = _rica.objective(directions, problem)
    numeric = np.empty_like(slopes)
    for place in np.ndindex(directions.shape):
        moved = []
        for step in (-1e-5, 1e-5):
            there = directions.copy()
            there[place] += step
            moved.append(_rica.objective(there, problem)[0][place[0]])
        numeric[place] = (moved[1] - moved[0]) / 2e-5
    np.testing.assert_allclose(slopes, numeric, atol=1e-8 * np.abs(slopes).max())


def test_the_starts_of_a_batch_do_not_touch_each_other():
    problem = _rica.make_problem(sparse_data(), 1.0, True)
    starts = random_directions(6, 3, 5)
    together = ica.descend(starts, problem, 200, 1e-8)
    for start, result in zip(starts, together, strict=True):
        (alone,) = ica.descend(start[None], problem, 200, 1e-8)
        np.testing.assert_allclose(result.value, alone.value, rtol=1e-6)


def test_descent_reaches_the_minimum_of_the_reference():
    X = sparse_data(n_rows=25, n_features=3)
    problem = _rica.make_problem(X, 1.0, True)
    starts = random_directions(8, 2, 3)
    found = [r.value * problem.scale**2 for r in ica.descend(starts, problem, 1000, 1e-12)]
    expected = [reference.rica_minimum(X, start) for start in starts[:4]]
    np.testing.assert_allclose(min(found), min(expected), rtol=1e-7)


def test_descent_is_as_good_as_scipy(data):
    problem = _rica.make_problem(data, 1.0, True)
    starts = random_directions(5, 2, data.shape[1])
    ours = [result.value for result in ica.descend(starts, problem, 1000, 1e-10)]
    theirs = []
    for start in starts:
        unit = _rica.objective(start[None], problem)[0][0]

        def relative(flat, shape=start.shape, unit=unit):
            values, slopes = _rica.objective(flat.reshape(1, *shape), problem)
            return values[0] / unit, slopes.ravel() / unit

        options = {"ftol": 1e-10, "gtol": 1e-10, "maxiter": 1000}
        found = minimize(relative, start.ravel(), jac=True, method="L-BFGS-B", options=options)
        theirs.append(found.fun * unit)
    np.testing.assert_allclose(min(ours), min(theirs), rtol=1e-6)
    np.testing.assert_allclose(np.mean(ours), np.mean(theirs), rtol=0.05)


def test_lbfgs_on_functions_with_known_minima():
    def valley(points):  # Rosenbrock, with its minimum at (1, 1)
        x, y = points.T
        values = 100 * (y - x**2) ** 2 + (1 - x) ** 2
        slopes = np.stack([-400 * x * (y - x**2) - 2 * (1 - x), 200 * (y - x**2)], axis=1)
        return values, slopes

    starts = np.array([[-1.2, 1.0], [3.0, -2.0], [1.0, 1.0], [0.0, 40.0]])
    found = minimize_all(valley, starts, 500, 1e-16)
    np.testing.assert_allclose(found.points, 1, atol=1e-4)
    assert found.n_iter[2] == 0
    assert np.all(found.n_iter < 200)


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_without_contrast_the_components_span_the_principal_subspace(data, n_components):
    model = ReconstructionICA(
        n_components, contrast=None, n_init=3, tol=1e-14, random_state=0
    ).fit(data)
    principal = np.linalg.svd(data, full_matrices=False)[2][:n_components]
    span = np.linalg.svd(model.components_, full_matrices=False)[2]
    np.testing.assert_allclose(span.T @ span, principal.T @ principal, atol=1e-4)
    best = data - data @ principal.T @ principal
    assert model.reconstruction_error_ == pytest.approx(np.sqrt(np.mean(best**2)), rel=1e-7)


@pytest.mark.parametrize("scale", [1e-150, 1e-6, 1e-3, 1.0, 1e3])
def test_data_of_any_scale_is_fitted_thoroughly(scale):
    X = sparse_data(n_rows=200, n_features=6, n_sources=5) * scale
    problem = _rica.make_problem(X, 1.0, True)
    starts = random_directions(6, 3, 6)
    first, first_slopes = _rica.objective(
        starts / np.linalg.norm(starts, axis=2, keepdims=True), problem
    )
    for k, result in enumerate(ica.descend(starts, problem, 1000, 1e-8)):
        (further,) = ica.descend(result.components[None], problem, 1000, 1e-14)
        assert result.n_iter > 10
        assert result.value - further.value < 1e-4 * (first[k] - further.value)
        _, slope = _rica.objective(result.components[None], problem)
        assert np.linalg.norm(slope) < 1e-2 * np.linalg.norm(first_slopes[k])


def test_large_data_is_reconstructed():
    # The contrast grows with the scale of the data, the reconstruction with its square.
    X = sparse_data(n_rows=200, n_features=6, n_sources=3) * 1e3
    model = ReconstructionICA(3, n_init=5, random_state=0).fit(X)
    assert model.reconstruction_error_ < 0.01 * X.std()


def test_tiny_data_has_the_solution_of_the_quadratic_limit():
    X = sparse_data()
    small, smaller = (
        ReconstructionICA(2, n_init=10, tol=1e-12, random_state=0).fit(X * scale)
        for scale in (1e-5, 1e-9)
    )
    ratio = small.reconstruction_error_ / smaller.reconstruction_error_
    assert ratio == pytest.approx(1e4, rel=1e-4)


@pytest.mark.parametrize("n_init", [1, 7, 30])
def test_threads_do_not_change_the_result(data, n_init):
    one, two = (
        ReconstructionICA(2, n_init=n_init, n_jobs=n_jobs, random_state=3).fit(data)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.components_, two.components_)
    assert one.n_iter_ == two.n_iter_


def test_the_start_with_the_best_reconstruction_is_kept(data):
    problem = _rica.make_problem(data, 1.0, True)
    seeds = np.random.SeedSequence(5).spawn(6)
    shape = 2, data.shape[1]
    starts = np.stack([np.random.default_rng(seed).standard_normal(shape) for seed in seeds])
    results = ica.descend(starts, problem, 1000, 1e-8)
    model = ReconstructionICA(2, n_init=6, random_state=5).fit(data)
    best = min(results, key=lambda result: result.error)
    np.testing.assert_allclose(model.components_, best.components, atol=1e-12)
    assert model.reconstruction_error_ == pytest.approx(best.error * problem.scale)
    assert model.objective_ == pytest.approx(reference.rica_objective(data, best.components))


def test_transform_and_back(data):
    model = ReconstructionICA(n_components=data.shape[1], n_init=3, random_state=0)
    features = model.fit_transform(data)
    np.testing.assert_array_equal(features, model.transform(data))
    np.testing.assert_array_equal(features, data @ model.components_.T)
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
    rebuilt = model.inverse_transform(features)
    error = np.sqrt(np.mean((data - rebuilt) ** 2))
    assert model.reconstruction_error_ == pytest.approx(error)


def test_single_precision_is_kept(data):
    model = ReconstructionICA(2, n_init=3, random_state=0).fit(data.astype(np.float32))
    double = ReconstructionICA(2, n_init=3, random_state=0).fit(data)
    assert model.components_.dtype == np.float32
    assert model.transform(data.astype(np.float32)).dtype == np.float32
    assert model.inverse_transform(np.zeros((1, 2), np.float32)).dtype == np.float32
    assert model.reconstruction_error_ == pytest.approx(double.reconstruction_error_, rel=1e-3)


def test_zero_data():
    model = ReconstructionICA(n_init=2, random_state=0).fit(np.zeros((5, 4)))
    assert model.reconstruction_error_ == 0
    assert np.isfinite(model.components_).all()


def test_fewer_rows_than_components():
    X = sparse_data(n_rows=2)
    model = ReconstructionICA(4, n_init=5, random_state=0).fit(X)
    assert model.transform(X).shape == (2, 4)


def test_named_output(data):
    pytest.importorskip("pandas")
    model = ReconstructionICA(2, n_init=2, random_state=0).set_output(transform="pandas")
    assert list(model.fit_transform(data).columns) == [
        "reconstructionica0",
        "reconstructionica1",
    ]


def test_default_number_of_components():
    X = sparse_data(n_features=5)
    assert ReconstructionICA(n_init=1).fit(X).components_.shape == (2, 5)
    assert ReconstructionICA(n_init=1).fit(X[:, :1]).components_.shape == (1, 1)


def test_errors_and_warnings(data, capsys):
    m = data.shape[1]
    message = rf"ReconstructionICA needs n_components <= {m} features, got {m + 3}\."
    with pytest.raises(ValueError, match=message):
        ReconstructionICA(m + 3).fit(data)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        model = ReconstructionICA(2, n_init=2, max_iter=2, verbose=1).fit(data)
    assert capsys.readouterr().err.count("\n") == 2
    with pytest.raises(ValueError, match="inverse_transform needs 2 features"):
        model.inverse_transform(data[:, :3])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ReconstructionICA(2, n_init=2, tol=1e-4, random_state=0).fit(data)
