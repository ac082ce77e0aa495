"""Cluster profiles: the numbers of pandas, mergeable, weighted, and in plain words."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError

from cafelearn import CAFE, MinkowskiWeightedKMeans
from cafelearn.estimators.tabular import TabularCAFE
from cafelearn.interpret.profiles import (
    amount,
    make_profile,
    merge_sums,
    percent,
    portraits,
    profile_sums,
)

QUICK = {"p": 2.0, "n_init": 2, "random_state": 0}
COLUMNS = [
    "cluster",
    "size",
    "share",
    "variable",
    "category",
    "center",
    "spread",
    "overall",
    "overall_spread",
    "difference",
    "weight",
    "description",
]


@pytest.fixture(scope="module")
def wine():
    return load_wine(as_frame=True).data


def customers(n=300, seed=0):
    """A table of numbers, text and booleans, with two kinds of rows."""
    rng = np.random.default_rng(seed)
    paying = rng.random(n) < 0.4
    return pd.DataFrame(
        {
            "spend": np.where(paying, rng.normal(80, 5, n), rng.normal(10, 5, n)).round(2),
            "age": rng.normal(40, 10, n).round(),
            "plan": np.where(paying, rng.choice(["gold", "basic"], n), "free"),
            "active": paying ^ (rng.random(n) < 0.05),
            "same": 1.0,
        }
    )


@pytest.mark.parametrize(
    "estimator",
    [MinkowskiWeightedKMeans(3, n_init=2, random_state=0), CAFE(3, **QUICK)],
    ids=lambda estimator: type(estimator).__name__,
)
class TestNumbers:
    def test_the_same_as_by_pandas(self, estimator, wine):
        profile = estimator.fit(wine).profile_frame(wine)
        assert list(profile) == COLUMNS
        assert len(profile) == 3 * 13
        weights = estimator.weights_frame()
        for row in profile.itertuples():
            values = wine[row.variable]
            own = values[estimator.labels_ == row.cluster]
            rest = values[estimator.labels_ != row.cluster]
            assert row.size == len(own)
            assert row.share == pytest.approx(len(own) / 178)
            assert row.center == pytest.approx(own.mean())
            assert row.spread == pytest.approx(own.std(ddof=0))
            assert row.overall == pytest.approx(values.mean())
            assert row.overall_spread == pytest.approx(values.std(ddof=0))
            difference = (own.mean() - rest.mean()) / values.std(ddof=0)
            assert row.difference == pytest.approx(difference)
            assert row.weight == weights.loc[f"cluster {row.cluster}", row.variable]
        assert profile["category"].isna().all()

    def test_the_most_different_come_first(self, estimator, wine):
        profile = estimator.fit(wine).profile_frame(wine)
        for _, rows in profile.groupby("cluster"):
            assert rows["difference"].abs().is_monotonic_decreasing

    def test_weights_are_repetitions(self, estimator, wine):
        estimator.fit(wine)
        counts = np.arange(178) % 3
        weighted = estimator.profile_frame(wine, sample_weight=counts)
        repeated = estimator.profile_frame(wine.loc[np.repeat(wine.index, counts)])
        pd.testing.assert_frame_equal(weighted, repeated)

    def test_arrays_have_no_names(self, estimator, wine):
        profile = estimator.fit(wine.to_numpy()).profile_frame(wine.to_numpy())
        assert set(profile["variable"]) == {f"x{v}" for v in range(13)}

    def test_dask(self, estimator, wine):
        da = pytest.importorskip("dask.array")
        X = wine.to_numpy()
        estimator.fit(X)
        blocks = da.from_array(X, chunks=(9, 13))  # more blocks than are merged at once
        pd.testing.assert_frame_equal(
            estimator.profile_frame(blocks), estimator.profile_frame(X)
        )
        weight = np.linspace(0, 1, 178)
        pd.testing.assert_frame_equal(
            estimator.profile_frame(blocks, sample_weight=da.from_array(weight, chunks=9)),
            estimator.profile_frame(X, sample_weight=weight),
        )

    def test_refusals(self, estimator, wine):
        from sklearn.base import clone

        with pytest.raises(NotFittedError):
            clone(estimator).profile_frame(wine)
        estimator.fit(wine)
        with pytest.raises(ValueError, match="feature names"):
            estimator.profile_frame(wine.rename(columns={"ash": "sand"}))
        with pytest.raises(ValueError, match=r"sample_weight\.shape"):
            estimator.profile_frame(wine, sample_weight=[1.0])
        with pytest.raises(ValueError, match="at least one non-zero"):
            estimator.profile_frame(wine, sample_weight=np.zeros(178))


@pytest.fixture(scope="module")
def fitted():
    table = customers()
    return TabularCAFE(CAFE(2, **QUICK)).fit(table), table


class TestTables:
    def test_shares_of_categories(self, fitted):
        model, table = fitted
        profile = model.profile_frame(table)
        # A constant column has no difference.
        assert set(profile["variable"]) == {"spend", "age", "plan", "active"}
        plans = profile[profile["variable"] == "plan"]
        assert len(plans) == 2 * 3
        for row in plans.itertuples():
            is_it = table["plan"] == row.category
            assert row.center == pytest.approx(is_it[model.labels_ == row.cluster].mean())
            assert row.overall == pytest.approx(is_it.mean())
            assert np.isnan(row.spread)
            assert row.description == (
                f"plan: {row.category} {percent(row.center)} (overall {row.overall:.0%})"
            )
        for _, shares in plans.groupby("cluster"):
            assert shares["center"].sum() == pytest.approx(1)

    def test_what_to_say(self, fitted):
        model, table = fitted
        free = int(model.labels_[(table["plan"] == "free").argmax()])
        said = portraits(model.profile_frame(table))[free]
        lines = said.different["description"].tolist()
        assert lines[0].startswith(("plan: free 100%", "spend 10 (overall 3"))
        # Each variable has one line, though both of its values differ.
        assert said.different["variable"].is_unique
        assert "age" not in said.different["variable"].tolist()
        assert said.share == (model.labels_ == free).mean()

    def test_imputed_values_count_as_in_the_fit(self):
        table = customers()
        table.loc[::7, "spend"] = np.nan
        model = TabularCAFE(CAFE(2, **QUICK), impute="median").fit(table)
        profile = model.profile_frame(table)
        filled = table["spend"].fillna(table["spend"].median())
        rows = profile[(profile["variable"] == "spend") & (profile["cluster"] == 0)]
        assert rows["center"].item() == pytest.approx(filled[model.labels_ == 0].mean())

    def test_dask_dataframe(self, fitted):
        dd = pytest.importorskip("dask.dataframe")
        model, table = fitted
        parts = dd.from_pandas(table, npartitions=3)
        pd.testing.assert_frame_equal(model.profile_frame(parts), model.profile_frame(table))


class TestSums:
    def test_merged_in_any_division(self):
        rng = np.random.default_rng(0)
        # Far from zero, where sums of squares would cancel.
        X, labels = 1e8 + rng.normal(size=(200, 3)), rng.integers(3, size=200)
        whole = profile_sums(X, labels, 3)
        parts = [
            profile_sums(X[rows], labels[rows], 3) for rows in np.split(np.arange(200), [1, 70])
        ]
        for one, other in zip(whole, merge_sums(parts), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-7)
        np.testing.assert_allclose(
            whole.squares[1],
            1.0 * np.square(X[labels == 1] - X[labels == 1].mean(0)).sum(0),
            rtol=1e-6,
        )

    def test_constant_columns_do_not_differ(self):
        X = np.full((7, 1), 0.1)
        frame = make_profile(
            profile_sums(X, np.array([0, 0, 1, 1, 1, 1, 1]), 2), np.ones((2, 1)), [("a", None)]
        )
        assert frame["difference"].tolist() == [0, 0]
        assert frame["spread"].tolist() == [0, 0]
        assert portraits(frame)[0].different.empty

    def test_one_cluster_has_no_rest(self, wine):
        model = MinkowskiWeightedKMeans(1).fit(wine)
        profile = model.profile_frame(wine)
        assert profile["difference"].isna().all()
        assert profile["variable"].tolist() == list(wine)
        (said,) = portraits(profile)
        assert said.different.empty

    def test_a_cluster_without_rows(self, wine):
        model = MinkowskiWeightedKMeans(3, n_init=1, random_state=0).fit(wine)
        profile = model.profile_frame(wine[model.labels_ == 1])
        assert profile.groupby("cluster")["size"].first().tolist()[0] == 0
        assert set(profile.loc[profile["cluster"] == 0, "description"]) == {""}
        assert profile.loc[profile["cluster"] == 1, "center"].notna().all()

    def test_equal_weights_are_not_called_compact(self, wine):
        equal = MinkowskiWeightedKMeans(2, weighting="uniform", random_state=0).fit(wine)
        assert all(said.compact.empty for said in portraits(equal.profile_frame(wine)))
        scaled = wine / wine.max()
        weighted = MinkowskiWeightedKMeans(2, random_state=0).fit(scaled)
        for l, said in enumerate(portraits(weighted.profile_frame(scaled))):
            top = weighted.weights_frame().iloc[l].nlargest(3)
            assert said.compact["variable"].tolist() == top.index.tolist()


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (13.744, 1, "13.7"),
        (1115.7, 0, "1,116"),
        (-0.001, 1, "0.0"),
        (1.5e12, 0, "1.5e+12"),
        (3e-9, 10, "3e-09"),
        (np.inf, 1, "unknown"),
        (5.0, None, "5"),
    ],
)
def test_amounts(value, decimals, text):
    assert amount(value, decimals) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0%"), (0.005, "<1%"), (0.41, "41%"), (0.995, ">99%"), (1, "100%")],
)
def test_percents(share, text):
    assert percent(share) == text
