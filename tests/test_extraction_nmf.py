"""ReplicatedNMF: alternating least squares, the shift, unseen values and the estimator."""

import warnings

import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.decomposition import NMF
from sklearn.utils.estimator_checks import parametrize_with_checks

import reference_extraction as reference
from cafelearn.extraction import ReplicatedNMF, _als


@parametrize_with_checks(
    [
        ReplicatedNMF(n_init=3),
        ReplicatedNMF(n_components=1, solver="mu", n_init=2),
        ReplicatedNMF(n_components=1, solver="cd", n_init=2),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def parts_data(n_rows=60, n_features=7, n_parts=3, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    amounts = rng.uniform(size=(n_rows, n_parts)) * (rng.uniform(size=(n_rows, n_parts)) < 0.6)
    parts = rng.uniform(size=(n_parts, n_features))
    parts *= rng.uniform(size=(n_parts, n_features)) < 0.6
    X = amounts @ parts + noise * rng.uniform(size=(n_rows, n_features))
    X[0] = 0  # so that the shift is none
    return X


def starts_of(n_starts, n_components, n_rows, seed=0):
    return np.random.default_rng(seed).uniform(size=(n_starts, n_components, n_rows))


@pytest.mark.parametrize("n_components", [1, 2, 4])
@pytest.mark.parametrize("noise", [0.05, 0.5])
def test_alternating_least_squares_against_the_reference(n_components, noise):
    X = parts_data(noise=noise)
    starts = starts_of(9, n_components, len(X))
    found = _als.factorize_all(X, starts, 100, 1e-4)
    for k, start in enumerate(starts):
        W, H, n_iter = reference.nmf_als(X, start.T)
        assert found.n_iter[k] == n_iter
        np.testing.assert_allclose(found.loadings[k], H, atol=1e-8 * H.max())
        np.testing.assert_allclose(_als.clipped_scores(X, H), W, atol=1e-8 * W.max())
        np.testing.assert_allclose(
            found.errors[k], np.sqrt(np.mean((X - W @ H) ** 2)), rtol=1e-8
        )


def test_the_whole_estimator_against_the_reference(data):
    shifted = data - data.min(axis=0)
    peak = shifted.max()
    seeds = np.random.SeedSequence(4).spawn(8)
    shape = 2, len(data)
    runs = []
    for seed in seeds:
        start = np.random.default_rng(seed).uniform(size=shape).T
        W, H, n_iter = reference.nmf_als(shifted / peak, start)
        runs.append((np.linalg.norm(shifted / peak - W @ H), n_iter, W * peak, H))
    _, n_iter, W, H = min(runs, key=lambda run: run[0])
    W, H = reference.unit_rows(W, H)

    model = ReplicatedNMF(2, n_init=8, random_state=4)
    features = model.fit_transform(data)
    assert model.n_iter_ == n_iter
    np.testing.assert_allclose(model.components_, H, atol=1e-8)
    np.testing.assert_allclose(features, W, atol=1e-8 * W.max())
    error = np.sqrt(np.mean((shifted - W @ H) ** 2))
    assert model.reconstruction_error_ == pytest.approx(error)


def test_gram_systems_of_any_rank():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(5, 20, 4))
    A[1, :, 2] = 0
    A[2, :, 3] = A[2, :, 0]
    A[3] = 0
    A[4, :, 1] *= 1e-9
    b = rng.normal(size=(5, 20, 3))
    transposed = A.transpose(0, 2, 1)
    for group in ([0], [1], [2], [3], [4], [0, 1, 4], [0, 1, 2, 3, 4]):
        found = _als.solve_gram((transposed @ A)[group], (transposed @ b)[group])
        for k, x in zip(group, found, strict=True):
            expected = np.linalg.lstsq(A[k], b[k], rcond=1e-12)[0]
            # A duplicated column may share its coefficient in any way: compare the fits.
            np.testing.assert_allclose(A[k] @ x, A[k] @ expected, atol=1e-7)
            assert np.isfinite(x).all()


def test_exact_factors_are_found():
    X = parts_data(n_rows=80)
    model = ReplicatedNMF(3, max_iter=500, tol=1e-10, random_state=0).fit(X)
    assert model.reconstruction_error_ < 1e-3 * X.std()


@pytest.mark.parametrize("solver", ["als", "mu", "cd"])
def test_normalisation_and_order(data, solver):
    model = ReplicatedNMF(3, solver=solver, n_init=4, random_state=0)
    features = model.fit_transform(data)
    assert (features >= 0).all()
    assert (model.components_ >= 0).all()
    np.testing.assert_allclose(np.linalg.norm(model.components_, axis=1), 1)
    lengths = np.linalg.norm(features, axis=0)
    assert (np.diff(lengths) <= 1e-12 * lengths[0]).all()
    np.testing.assert_array_equal(model.minimum_, data.min(axis=0))


@pytest.mark.parametrize("solver", ["als", "mu", "cd"])
def test_transform_and_back(data, solver):
    model = ReplicatedNMF(solver=solver, n_init=4, random_state=0)
    features = model.fit_transform(data)
    fitted = ReplicatedNMF(solver=solver, n_init=4, random_state=0).fit(data)
    np.testing.assert_array_equal(features, fitted.transform(data))
    rebuilt = model.inverse_transform(features)
    np.testing.assert_allclose(rebuilt, features @ model.components_ + data.min(axis=0))
    error = np.sqrt(np.mean((data - rebuilt) ** 2))
    assert model.reconstruction_error_ == pytest.approx(error)
    assert error < np.sqrt(np.mean((data - data.min(axis=0)) ** 2))


def test_scores_of_the_other_solvers_are_non_negative_least_squares(data):
    model = ReplicatedNMF(2, solver="cd", n_init=2, random_state=0).fit(data)
    shifted = data - model.minimum_
    expected = [nnls(model.components_.T, row)[0] for row in shifted[:20]]
    np.testing.assert_allclose(model.transform(data[:20]), expected)


@pytest.mark.parametrize("solver", ["mu", "cd"])
def test_other_solvers_are_those_of_scikit_learn(data, solver):
    model = ReplicatedNMF(2, solver=solver, n_init=3, max_iter=30, random_state=1).fit(data)
    shifted = data - data.min(axis=0)
    errors = []
    for seed in np.random.SeedSequence(1).spawn(3):
        state = np.random.RandomState(np.random.MT19937(seed))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            single = NMF(2, init="random", solver=solver, max_iter=30, random_state=state).fit(
                shifted / shifted.max()
            )
        errors.append(single.reconstruction_err_ * shifted.max() / np.sqrt(data.size))
    assert model.reconstruction_error_ <= min(errors) * (1 + 1e-9)
    assert model.reconstruction_error_ > 0.9 * min(errors)


@pytest.mark.parametrize("solver", ["als", "cd"])
def test_threads_do_not_change_the_result(data, solver):
    one, two = (
        ReplicatedNMF(2, solver=solver, n_init=30, n_jobs=n_jobs, random_state=3).fit(data)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.components_, two.components_)
    assert one.n_iter_ == two.n_iter_


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1e100])
def test_scale_of_the_data_does_not_matter(data, scale):
    plain = ReplicatedNMF(2, n_init=5, random_state=0).fit(data)
    scaled = ReplicatedNMF(2, n_init=5, random_state=0).fit(data * scale)
    np.testing.assert_allclose(scaled.components_, plain.components_, atol=1e-6)
    np.testing.assert_allclose(
        scaled.transform(data * scale) / scale, plain.transform(data), atol=1e-6
    )


def test_unseen_values_below_the_minimum(data):
    model = ReplicatedNMF(2, n_init=3, random_state=0).fit(data)
    rows = data[:10].copy()
    rows[2, 1] = model.minimum_[1] - 5
    rows[7, 0] = model.minimum_[0] - 1e-3
    clipped = np.maximum(rows, model.minimum_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = model.transform(clipped)
    with pytest.warns(UserWarning, match="ReplicatedNMF: values below the minimum of their"):
        features = model.transform(rows)
    np.testing.assert_array_equal(features, expected)


def test_single_precision_is_kept(data):
    single = data.astype(np.float32)
    model = ReplicatedNMF(2, n_init=3, random_state=0)
    features = model.fit_transform(single)
    assert features.dtype == model.components_.dtype == model.minimum_.dtype == np.float32
    assert model.inverse_transform(features).dtype == np.float32
    np.testing.assert_array_equal(features, model.transform(single))
    double = ReplicatedNMF(2, n_init=3, random_state=0).fit_transform(data)
    np.testing.assert_allclose(features, double, atol=1e-3 * double.max())


@pytest.mark.parametrize("solver", ["als", "mu", "cd"])
def test_constant_data(solver):
    X = np.full((6, 4), 3.0)
    model = ReplicatedNMF(solver=solver, n_init=2, random_state=0).fit(X)
    assert (model.transform(X) == 0).all()
    assert model.reconstruction_error_ == 0


@pytest.mark.parametrize("solver", ["als", "mu", "cd"])
def test_fewer_rows_than_components(solver):
    X = parts_data(n_rows=3)
    model = ReplicatedNMF(5, solver=solver, n_init=5, random_state=0)
    features = model.fit_transform(X)
    assert features.shape == (3, 5)
    assert np.isfinite(features).all()
    assert model.reconstruction_error_ < X.std()


def test_components_beyond_the_rank_of_the_data():
    X = np.repeat(np.random.default_rng(0).uniform(size=(40, 2)), 4, axis=1)
    model = ReplicatedNMF(6, n_init=10, random_state=0).fit(X)
    assert np.isfinite(model.components_).all()
    assert model.reconstruction_error_ < 0.2 * X.std()


def test_named_output(data):
    pytest.importorskip("polars")
    model = ReplicatedNMF(2, n_init=2, random_state=0).set_output(transform="polars")
    assert model.fit_transform(data).columns == ["replicatednmf0", "replicatednmf1"]


def test_errors_and_reports(data, capsys):
    m = data.shape[1]
    message = rf"ReplicatedNMF needs n_components <= {m} features, got {m + 1}\."
    with pytest.raises(ValueError, match=message):
        ReplicatedNMF(m + 1).fit(data)
    with pytest.raises(ValueError, match="solver"):
        ReplicatedNMF(solver="nndsvd").fit(data)
    model = ReplicatedNMF(2, n_init=5, verbose=1).fit(data)
    assert capsys.readouterr().err.count("\n") == 5
    with pytest.raises(ValueError, match="inverse_transform needs 2 features"):
        model.inverse_transform(data[:, :3])
