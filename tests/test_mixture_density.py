"""The densities of mixtures, against a reference, scikit-learn, R's mclust and integrals."""

import json
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.mixture import GaussianMixture

import reference_mixture as reference
from cafelearn.mixture import Mixture
from cafelearn.mixture.columns import fit_columns, read_rows
from cafelearn.mixture.covariances import COVARIANCES
from cafelearn.mixture.descent import objective_of
from cafelearn.mixture.em import Family, e_step, sum_rows
from cafelearn.mixture.marginals import FALL
from cafelearn.mixture.maximise import m_step
from cafelearn.mixture.rows import Fitted
from cafelearn.mixture.settings import SETTINGS

NAMES = ["independent", *COVARIANCES]
FAMILIES = [Family(*words) for words in product(NAMES, [False, True], [False, True])]
# The last three columns of `mixed` are a variable, of which a fourth category has no column.
GROUPS = [*range(8), 8, 8, 8]


def mixed(seed, n=90, k=3):
    """A table with columns of all kinds: their values, weights and clusters."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    first, second = rng.normal(scale=3, size=(2, k))
    a = first[y] + rng.normal(size=n) * rng.uniform(0.4, 1.5, k)[y]
    b = second[y] + rng.normal(size=n)
    atoms = rng.normal(size=n)
    atoms[rng.random(n) < np.array([0.1, 0.5, 0.9])[y % 3]] = 0.0
    category = np.where(rng.random(n) < 0.6, y % 4, rng.integers(4, size=n))
    columns = [
        a,
        b,
        a - b + 0.5 * rng.normal(size=n),
        np.exp(0.5 * a + 0.3 * rng.normal(size=n)),
        np.where(rng.random(n) < np.array([0.1, 0.5, 0.9])[y % 3], -4, 4) + rng.normal(size=n),
        rng.uniform(size=n),
        atoms,
        rng.integers(3, size=n) * 1.0,
        *np.eye(4)[category].T[:3],
    ]
    X = np.column_stack(columns)
    gaps = rng.random(X.shape) < 0.1
    gaps[:, [0, 1, 2, 3, 8, 9, 10]] = False
    X[gaps] = np.nan
    X[rng.random(n) < 0.05, 8:] = np.nan
    return X, rng.choice([0.5, 1.0, 2.0, 3.0], n), y


def fit(X, k, family=None, **options):
    if family is not None:
        options |= family._asdict()
    if X.shape[1] == len(GROUPS):
        options["feature_groups"] = GROUPS
    return Mixture(k, n_init=0, random_state=0, **options).fit(X)


def described(model):
    """The description of a fitted mixture for the reference."""
    columns, parameters, family = model._fitted
    powers, marginals = columns.powers, columns.marginals
    assert (columns.units == 1).all()
    k, c = parameters.mean.shape
    probability = columns.share * np.exp(parameters.log_ratio)
    discrete = []
    for variable in range(columns.n_variables):
        events = np.flatnonzero(columns.event_variable == variable)
        names = {-np.inf: "none"}
        values = columns.event_value[events].tolist()
        values = ["other" if np.isnan(value) else names.get(value, value) for value in values]
        pairs = list(zip(columns.event_place[events].tolist(), values, strict=True))
        discrete.append({"events": pairs, "probability": probability[:, events]})
    in_block = np.isin(np.arange(c), parameters.block)
    continuous = []
    for v in range(c):
        place = columns.place[v]
        modes = np.flatnonzero(marginals.mode_column == v)
        ratios = np.zeros((k, marginals.weight.shape[1]))
        numbers = marginals.mode_number[modes]
        ratios[:, numbers] = parameters.log_ratio[:k, len(columns.event_share) + modes]
        continuous.append(
            {
                "column": place,
                "atoms": columns.event_value[columns.event_place == place],
                "transformation": [part[v] for part in powers],
                "marginal": {
                    "weight": marginals.weight[v],
                    "mean": marginals.mean[v],
                    "deviation": marginals.deviation[v],
                    "low": marginals.low[v],
                    "high": marginals.high[v],
                    "fall": FALL,
                },
                "ratio": {"cuts": marginals.cuts[v], "modes": marginals.modes[v]}
                | {"ratios": ratios},
                "own": (parameters.used[:, v] > 0) | in_block[v],
            }
        )
    means, covariances = (
        parameters.mean.copy(),
        np.stack(list(map(np.diag, parameters.variance))),
    )
    means[:, in_block] = parameters.block_mean
    covariances[:, parameters.block[:, None], parameters.block] = parameters.covariance
    weights = np.exp(parameters.log_weight)
    return {
        "weights": weights[:k],
        "background": weights[k] if family.background else 0.0,
        "degrees": SETTINGS.degrees if family.tails else None,
        "discrete": discrete,
        "continuous": continuous,
        "means": means,
        "covariances": covariances,
    }


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_density_and_probabilities_are_those_of_the_reference(family):
    X, _, _ = mixed(FAMILIES.index(family))
    model = fit(X, 3, family)
    assert (model.covariance_, model.tails_) == (family.covariance, family.tails)
    assert (model.background_ > 0) == family.background
    mixture = described(model)
    some = X[:25]
    far = some + 3 * np.eye(X.shape[1])[np.arange(25) % 5]
    for rows in (some, far):
        expected = reference.log_density(rows, mixture)
        np.testing.assert_allclose(model.score_samples(rows), expected, rtol=1e-9, atol=1e-8)
        probability = reference.responsibilities(rows, mixture)
        np.testing.assert_allclose(model.predict_proba(rows), probability, atol=1e-8)


@pytest.mark.parametrize("tails", [False, True])
def test_missing_values_in_new_rows_add_nothing(tails):
    """The density is then that of the observed columns alone."""
    X = mixed(3)[0][:, :4]
    model = fit(X, 3, Family("full", tails))
    assert len(model._fitted.parameters.block) > 1
    new = X[:30].copy()
    new[np.random.default_rng(0).random(new.shape) < 0.4] = np.nan
    new[np.isnan(new).all(axis=1), 0] = 0.5
    expected = reference.log_density(new, described(model))
    np.testing.assert_allclose(model.score_samples(new), expected, atol=1e-8)
    new[:, 1:] = np.nan
    expected = reference.responsibilities(new[:5], described(model))
    np.testing.assert_allclose(model.predict_proba(new[:5]), expected, atol=1e-8)


@pytest.mark.parametrize("covariance", ["spherical", "tied", "proportional", "full", "lowrank"])
def test_density_is_that_of_scikit_learns_mixture(covariance):
    X, _ = separated()
    model = fit(X, 3, covariance=covariance, tails=False, background=False)
    _, parameters, _ = model._fitted
    assert len(parameters.block) == X.shape[1]
    other = GaussianMixture(3)
    other.weights_ = np.exp(parameters.log_weight)
    other.means_ = parameters.block_mean
    other.covariances_ = model.covariances_
    roots = np.linalg.cholesky(other.covariances_)
    other.precisions_cholesky_ = np.linalg.inv(roots).transpose(0, 2, 1)
    values = model.transform_columns(X)
    slope = model._fitted.columns.powers.log_slope(X).sum(axis=1)
    np.testing.assert_allclose(model.score_samples(X), other.score_samples(values) + slope)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(values), atol=1e-9)


MCLUST = Path(__file__).parent / "data" / "mclust.json"
STRUCTURES = {
    "VVV": "full",
    "EEE": "tied",
    "VEE": "proportional",
    "VII": "spherical",
    "VVI": "independent",
}


@cache
def separated():
    """Three separated clusters, and what Mclust(X, 3) of R found, by structure."""
    stored = json.loads(MCLUST.read_text())
    models = {
        name: {key: np.array(value) for key, value in model.items()}
        for name, model in stored["models"].items()
    }
    return np.array(stored["X"]), models


@pytest.mark.parametrize("name", STRUCTURES)
def test_density_at_the_parameters_of_mclust_is_that_of_mclust(name):
    X, models = separated()
    found = models[name]
    model = fit(X, 3, covariance="full", tails=False, background=False)
    columns, parameters, family = model._fitted
    powers = columns.powers
    assert (powers.exponent == 1).all()
    center, scale = powers.edge + powers.width * powers.center, powers.width * powers.scale
    model._fitted = Fitted(
        columns,
        parameters._replace(
            log_weight=np.log(found["weights"]),
            block_mean=(found["means"] - center) / scale,
            covariance=found["covariances"] / np.outer(scale, scale),
        ),
        family,
    )
    np.testing.assert_allclose(model.score_samples(X), found["log_density"], atol=1e-6)
    np.testing.assert_array_equal(model.predict(X), found["labels"])


@pytest.mark.parametrize("name", STRUCTURES)
def test_fit_is_that_of_mclust_but_for_the_prior(name):
    """The prior counts as a tenth of a row in variances, and as a row in weights."""
    X, models = separated()
    found = models[name]
    model = fit(X, 3, covariance=STRUCTURES[name], tails=False, background=False)
    order = matching(model.labels_, found["labels"])
    np.testing.assert_array_equal(order[model.labels_], found["labels"])
    np.testing.assert_allclose(model.weights_, found["weights"][order], atol=0.01)
    np.testing.assert_allclose(
        model.means_, found["means"][order], atol=0.1 if name == "VVI" else 0.01
    )
    # VVI has a variance for each cluster and column, of which the mixture saves some.
    within = 0.04 if name == "VVI" else 0.01
    assert float(found["loglik"]) - within * len(X) < model.score_samples(X).sum()
    assert model.score_samples(X).sum() < found["loglik"] + 1e-6
    if name != "VVI":
        # A cluster of 30 rows and a variance of 0.01 gains a third of it by the prior.
        expected = found["covariances"][order]
        atol = 0.01 if name == "VEE" else 0.004
        np.testing.assert_allclose(model.covariances_, expected, atol=atol)


def matching(labels, others):
    """For each of the labels, the other label of most of its rows."""
    table = np.zeros((labels.max() + 1, others.max() + 1))
    np.add.at(table, (labels, others), 1)
    return linear_sum_assignment(-table)[1]


def start(rows, weight, labels, k, columns, family, isolated):
    """The parameters of a mixture whose components are given clusters."""
    memberships = np.eye(k)[labels]
    if family.background:
        share = np.where(isolated, 0.9, 0.01)[:, None]
        memberships = np.hstack([memberships * (1 - share), share])
    return m_step(sum_rows(rows, weight, memberships, columns, family), columns, family)


def plain_columns(X, weight):
    """Columns without transformations that are normal if they are irrelevant, and the rows."""
    columns = fit_columns(X, weight, np.zeros(len(X), dtype=np.int64))
    columns = columns._replace(
        powers=columns.powers._replace(
            side=np.ones(X.shape[1]),
            exponent=np.ones(X.shape[1]),
            edge=X.mean(axis=0),
            width=X.std(axis=0),
            center=np.zeros(X.shape[1]),
            scale=np.ones(X.shape[1]),
        ),
        marginals=columns.marginals._replace(
            weight=np.tile([1.0, 0, 0, 0], (X.shape[1], 1)),
            mean=np.zeros((X.shape[1], 4)),
            deviation=np.ones((X.shape[1], 4)),
            mode_column=np.empty(0, dtype=np.int64),
            mode_number=np.empty(0, dtype=np.int64),
            mode_share=np.empty(0),
        ),
    )
    return columns, read_rows(X, columns)


@pytest.mark.parametrize("tails", [False, True])
@pytest.mark.parametrize("covariance", ["independent", "full"])
def test_iteration_of_em_is_that_of_the_reference(covariance, tails):
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1, 2], 40)
    spreads = np.array([[0.8, 1.5, 2.4], [2.4, 0.8, 1.5], [1.5, 2.4, 0.8]])
    centers = 6 * np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]])
    X = centers[y] + rng.normal(size=(120, 3)) * spreads[y]
    weight = rng.choice([1.0, 2.0, 3.0], 120)
    columns, rows = plain_columns(X, weight)
    family = Family(covariance, tails)
    guess = np.where(rng.random(120) < 0.05, rng.integers(3, size=120), y)
    before = start(rows, weight, guess, 3, columns, family, None)
    _, sums = e_step(rows, weight, before, columns, family)
    after = m_step(sums, columns, family, before, choose_block=False)
    full = covariance == "full"
    if not full:
        for parameters in (before, after):
            assert parameters.used.all()
            assert (parameters.kind == 2).all()

    def plain(parameters):
        if full:
            assert parameters.block.tolist() == [0, 1, 2]
            return parameters.block_mean, parameters.covariance
        return parameters.mean, np.stack(list(map(np.diag, parameters.variance)))

    weights, means, covariances = reference.em_step(
        rows.values,
        weight,
        np.exp(before.log_weight),
        *plain(before),
        SETTINGS.prior,
        diagonal=not full,
        degrees=SETTINGS.degrees if tails else None,
    )
    np.testing.assert_allclose(np.exp(after.log_weight), weights)
    np.testing.assert_allclose(plain(after)[0], means, atol=1e-9)
    np.testing.assert_allclose(plain(after)[1], covariances, atol=1e-9)


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_objective_never_falls_while_the_block_is_fixed(family):
    """Two structures have no closed form; their M-step approximates the best covariances."""
    fall = {"proportional": 0.005, "lowrank": 0.06}.get(family.covariance, 1e-11)
    for seed in range(4):
        n, k = 50 + 20 * seed, 1 + seed
        X, weight, y = mixed(100 + seed, n, k)
        rng = np.random.default_rng(seed)
        columns = fit_columns(X, weight, np.zeros(n, dtype=np.int64))
        rows = read_rows(X, columns)
        labels = np.where(rng.random(n) < 0.3, rng.integers(k, size=n), y)
        isolated = rng.random(n) < 0.05
        parameters = start(rows, weight, labels, k, columns, family, isolated)
        values = []
        for iteration in range(18):
            memberships, sums = e_step(rows, weight, parameters, columns, family)
            np.testing.assert_allclose(memberships.sum(axis=1), 1)
            if iteration >= 3:
                values.append(objective_of(sums, parameters))
            parameters = m_step(sums, columns, family, parameters, choose_block=iteration < 2)
        assert np.isfinite(values).all()
        assert np.diff(values).min() > -fall * max(n, abs(values[-1])), seed


@pytest.mark.parametrize("family", FAMILIES[::3], ids=str)
def test_integer_weights_are_repeated_rows(family):
    X, _, y = mixed(7)
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    columns = fit_columns(X, np.ones(len(X)), y)
    isolated = np.arange(len(X)) % 20 == 0
    ends = []
    for times in (np.ones(len(X), dtype=int), weight):
        rows = np.repeat(np.arange(len(X)), times)
        counts = (weight if times is not weight else np.ones(len(X)))[rows] * 1.0
        prepared = read_rows(X[rows], columns)
        parameters = start(prepared, counts, y[rows], 3, columns, family, isolated[rows])
        for _ in range(8):
            memberships, sums = e_step(prepared, counts, parameters, columns, family)
            parameters = m_step(sums, columns, family, parameters)
        ends.append((objective_of(sums, parameters), parameters, memberships))
    (objective, mine, shares), (other_objective, others, other_shares) = ends
    assert objective == pytest.approx(other_objective, rel=1e-9)
    for name, one, other in zip(mine._fields, mine, others, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7, err_msg=name)
    np.testing.assert_allclose(np.repeat(shares, weight, axis=0), other_shares, atol=1e-7)


SHAPES = {
    "normal": lambda rng, y: rng.normal(size=len(y)) + 5 * y,
    "skewed": lambda rng, y: np.exp(rng.normal(size=len(y)) + 2 * y),
    "downwards": lambda rng, y: -rng.gamma(1.5, size=len(y)) - 6 * y,
    "bimodal": lambda rng, y: (
        np.where(rng.random(len(y)) < 0.2 + 0.3 * y, -5, 5) + rng.normal(size=len(y))
    ),
    "uniform": lambda rng, y: rng.uniform(size=len(y)),
    "heavy": lambda rng, y: rng.standard_t(2, size=len(y)) + 9 * y,
    "atoms": lambda rng, y: np.where(
        rng.random(len(y)) < 0.3, rng.integers(2, size=len(y)), rng.normal(size=len(y)) + 5 * y
    ),
}


def columns_of(shape, k, n=150):
    rng = np.random.default_rng([k, *map(ord, shape)])
    return SHAPES[shape](rng, rng.integers(k, size=n))


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_density_of_a_column_integrates_to_one(shape, k):
    column = columns_of(shape, k)
    for background in [True] if k == 2 else [False, True] if k == 3 else [False]:
        model = fit(column[:, None], k, background=background)
        x, mass = line(column)
        total = mass @ np.exp(model.score_samples(x[:, None]))
        atoms, counts = np.unique(column, return_counts=True)
        atoms = atoms[counts > 1]
        assert len(atoms) == (2 if shape == "atoms" else 0)
        if len(atoms):
            total += np.exp(model.score_samples(atoms[:, None])).sum()
        assert total == pytest.approx(1, abs=2e-3)


def line(column):
    """Points that cover the line, dense where the column has values, and their masses."""
    u = np.linspace(-45, 45, 20_001)
    width = np.ptp(column) / 20
    x = np.median(column) + width * np.sinh(u)
    return x, width * np.cosh(u) * (u[1] - u[0])


@pytest.mark.parametrize("background", [False, True])
def test_probabilities_of_all_categories_sum_to_one(background):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=120)
    number = np.where(rng.random(120) < 0.7, 2 * y, rng.integers(3, size=120)) * 1.0
    category = np.where(rng.random(120) < 0.7, y, rng.integers(4, size=120))
    one_hot = np.eye(4)[category][:, :3]  # the fourth category has no column
    groups = [0, 1, 1, 1]
    model = fit(
        np.column_stack([number, one_hot]), 2, background=background, feature_groups=groups
    )
    everything = [[a, *b] for a in range(3) for b in np.eye(4)[:, :3].tolist()]
    assert np.exp(model.score_samples(everything)).sum() == pytest.approx(1, abs=1e-9)
    # A missing variable is summed over.
    assert model.score_samples([[0, np.nan, np.nan, np.nan]]) == pytest.approx(
        np.log(np.exp(model.score_samples(everything[:4])).sum()), abs=1e-9
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_drawn_values_have_the_density(shape):
    column = columns_of(shape, 2)
    model = fit(column[:, None], 2, background=False)
    drawn, _ = model.sample(20_000)
    x, mass = line(column)
    below = np.cumsum(mass * np.exp(model.score_samples(x[:, None])))
    empirical = np.searchsorted(np.sort(drawn[:, 0]), x, side="right") / len(drawn)
    if shape == "atoms":
        for atom in (0.0, 1.0):
            probability = np.exp(model.score_samples([[atom]]))[0]
            assert (drawn == atom).mean() == pytest.approx(probability, abs=0.012)
            below += probability * (x >= atom)
    # Beyond the ends of a uniform column, the density is small, but no values are drawn there.
    assert np.abs(below - empirical).max() < (0.03 if shape == "uniform" else 0.015)


def test_drawn_rows_have_the_shares_means_and_covariances():
    X, _ = separated()
    for family in (
        Family("full"),
        Family("tied"),
        Family("independent", True),
        Family("full", True),
    ):
        model = fit(X, 3, family)
        drawn, labels = model.sample(20_000)
        assert drawn.shape == (20_000, 3)
        _, parameters, _ = model._fitted
        shares = np.bincount(labels, minlength=3) / len(labels)
        np.testing.assert_allclose(shares, np.exp(parameters.log_weight), atol=0.01)
        values = model.transform_columns(drawn)
        # A t distribution with 4 degrees of freedom has twice the variance of its scale matrix.
        more = 2.0 if family.tails else 1.0
        for l in range(3):
            mean = described(model)["means"][l]
            own = described(model)["continuous"]
            if not all(column["own"][l] for column in own):
                continue
            members = values[labels == l]
            np.testing.assert_allclose(members.mean(axis=0), mean, atol=0.03)
            expected = more * described(model)["covariances"][l]
            scale = np.sqrt(np.outer(*[np.diag(expected)] * 2))
            np.testing.assert_allclose(
                np.cov(members.T) / scale, expected / scale, atol=0.3 if family.tails else 0.05
            )


def test_drawn_rows_have_the_probabilities_of_events_in_each_component():
    X, _, _ = mixed(1, n=300)
    model = fit(X, 3, Family("full"))
    drawn, labels = model.sample(20_000)
    assert np.isfinite(drawn).all()
    mixture = described(model)
    for variable in mixture["discrete"]:
        for l in range(3):
            rows = drawn[labels == l]
            left = np.ones(len(rows), dtype=bool)
            for number, (column, value) in enumerate(variable["events"]):
                if isinstance(value, str):
                    found = left
                else:
                    found = rows[:, column] == value
                    left &= ~found
                expected = variable["probability"][l][number]
                assert found.mean() == pytest.approx(expected, abs=0.025)
    one_hot = drawn[:, 8:]
    assert set(np.unique(one_hot)) == {0.0, 1.0}
    assert set(one_hot.sum(axis=1)) == {0.0, 1.0}
    # A column of two peaks that differ in their probabilities.
    high = [(drawn[labels == l, 4] > 0).mean() for l in range(3)]
    observed = [
        np.nanmean(np.where(np.isnan(X[:, 4]), np.nan, X[:, 4] > 0)[model.labels_ == l])
        for l in range(3)
    ]
    np.testing.assert_allclose(high, observed, atol=0.1)


def test_drawn_rows_of_the_background_are_marked_and_within_the_range():
    X, _ = separated()
    model = fit(X, 3, Family("full", background=True))
    drawn, labels = model.sample(20_000)
    assert (labels == -1).mean() == pytest.approx(model.background_, abs=0.005)
    apart = drawn[labels == -1]
    assert len(apart)
    assert (apart >= X.min(axis=0)).all()
    assert (apart <= X.max(axis=0)).all()
    assert set(labels) == {-1, 0, 1, 2}


def test_drawn_rows_are_recognised():
    """On average, the probabilities of drawn rows are the shares of the components."""
    X, _, _ = mixed(1, n=300)
    model = fit(X, 3, Family("full", True))
    drawn, labels = model.sample(10_000)
    share = model.predict_proba(drawn)
    for l in range(3):
        sure = share[:, l] > 0.5
        assert (labels[sure] == l).mean() == pytest.approx(share[sure, l].mean(), abs=0.03)
    shares = np.bincount(labels, minlength=3) / len(labels)
    np.testing.assert_allclose(share.mean(axis=0), shares, atol=0.02)
