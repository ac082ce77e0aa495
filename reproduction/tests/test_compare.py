"""Comparison with the paper: z, wins, tests and ranks, against numbers computed by hand."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from cafelearn import datasets
from reproduction.paper.compare import (
    compare,
    configurations_won,
    improvement,
    pair_differences,
    summary,
)
from reproduction.paper.published import (
    CELL,
    CONFIGURATION,
    against_published,
    agreement,
    cell_means,
    paper_methods,
    published,
)
from reproduction.ranking import (
    average_ranks,
    cliques,
    critical_difference,
    holm,
    paired_tests,
    rank_methods,
    signed_rank,
)

# J. Demšar, JMLR 7 (2006), Table 5(a) for k = 2 to 10, and Table 6.
NEMENYI = {
    0.05: (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164),
    0.10: (1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920),
}
AUC = pd.DataFrame(
    [
        (0.763, 0.768, 0.771, 0.798),
        (0.599, 0.591, 0.590, 0.569),
        (0.954, 0.971, 0.968, 0.967),
        (0.628, 0.661, 0.654, 0.657),
        (0.882, 0.888, 0.886, 0.898),
        (0.936, 0.931, 0.916, 0.931),
        (0.661, 0.668, 0.609, 0.685),
        (0.583, 0.583, 0.563, 0.625),
        (0.775, 0.838, 0.866, 0.875),
        (1.000, 1.000, 1.000, 1.000),
        (0.940, 0.962, 0.965, 0.962),
        (0.619, 0.666, 0.614, 0.669),
        # Printed as a tie, but ranked 2 and 3 in the article.
        (0.972, 0.981, 0.97501, 0.975),
        (0.957, 0.978, 0.946, 0.970),
    ],
    columns=["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"],
)


def runs(method, values, dataset="iris", level=0.4, scale=1.0, versions=None):
    """The runs of one cell; None is a run that failed."""
    return pd.DataFrame(
        {
            "dataset": dataset,
            "noise_level": level,
            "noise_scale": scale,
            "version": range(len(values)) if versions is None else versions,
            "method": method,
            "status": ["failed" if value is None else "done" for value in values],
            "ari": np.array(values, dtype=float),
        }
    )


def as_results(cells, n=1):
    """Runs whose means are those of the cells: one run, or n that scatter about the mean."""
    offsets = np.linspace(-1, 1, n) if n > 1 else [0.0]
    return pd.concat(
        cells.assign(version=version, status="done", ari=cells["mean_ari"] + 0.05 * offset)
        for version, offset in enumerate(offsets)
    )


class TestRanking:
    def test_average_ranks_of_a_published_example(self):
        ranks = average_ranks(AUC)
        assert list(ranks.index) == ["C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5"]
        np.testing.assert_allclose(ranks, [1.964, 2.000, 2.893, 3.143], atol=5e-4)

    @pytest.mark.parametrize("alpha", NEMENYI)
    def test_critical_difference_of_published_tables(self, alpha):
        for k, quantile in zip(range(2, 11), NEMENYI[alpha], strict=True):
            factor = np.sqrt(k * (k + 1) / (6 * 54))
            assert critical_difference(k, 54, alpha) / factor == pytest.approx(
                quantile, abs=1.1e-3
            )
        assert critical_difference(4, 14) == pytest.approx(1.25, abs=5e-3)

    def test_cliques_by_brute_force(self):
        rng = np.random.default_rng(0)
        for _ in range(50):
            ranks = pd.Series(rng.integers(1, 20, size=6) / 2, index=list("abcdef"))
            alike = [
                set(group)
                for size in range(2, 7)
                for group in combinations(ranks.index, size)
                if ranks[list(group)].max() - ranks[list(group)].min() < 2
            ]
            largest = [group for group in alike if not any(group < other for other in alike)]
            found = [set(group) for group in cliques(ranks, 2.0)]
            assert sorted(map(sorted, found)) == sorted(map(sorted, largest))

    def test_a_gap_of_the_critical_difference_tells_apart(self):
        assert cliques(pd.Series({"a": 1.0, "b": 2.0}), 1.0) == []
        assert cliques(pd.Series({"b": 1.99, "a": 1.0}), 1.0) == [("a", "b")]

    def test_rank_methods(self):
        ranking = rank_methods(AUC)
        assert ranking.n_blocks == 14
        assert ranking.groups == [("C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5")]
        # As the article says: at 0.10 the plain tree is worse than the two with +m.
        assert rank_methods(AUC, alpha=0.1).groups == [
            ("C4.5+m+cf", "C4.5+m", "C4.5+cf"),
            ("C4.5+cf", "C4.5"),
        ]
        two = rank_methods(AUC[["C4.5", "C4.5+m"]])
        assert two.groups == []
        assert np.isnan(rank_methods(AUC[["C4.5"]]).difference)

    def test_bad_input(self):
        with pytest.raises(ValueError, match=r"average_ranks needs .* with 1 missing"):
            average_ranks(pd.DataFrame({"a": [1, np.nan], "b": [1, 2]}))
        with pytest.raises(ValueError, match="at least one block"):
            average_ranks(pd.DataFrame({"a": []}))
        for bad in ((1, 5, 0.05), (3, 0, 0.05), (3, 5, 0.0)):
            with pytest.raises(ValueError, match="critical_difference needs n_methods >= 2"):
                critical_difference(*bad)

    def test_holm(self):
        # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1, then never falling.
        np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
        np.testing.assert_allclose(holm([0.6, 0.7]), [1, 1])
        assert holm([]).shape == (0,)
        with pytest.raises(ValueError, match="holm needs p-values between 0 and 1"):
            holm([0.5, np.nan])

    def test_signed_rank(self):
        # All of n differences on one side: 2 of the 2^n sign patterns are as extreme.
        assert signed_rank(np.arange(1, 9) / 10)[1] == pytest.approx(2 / 2**8)
        assert signed_rank([0.0, 0.0]) == (0.0, 1.0)
        values = np.random.default_rng(1).normal(0.3, size=54)
        found = stats.wilcoxon(values)
        assert signed_rank(values) == pytest.approx((found.statistic, found.pvalue))
        assert signed_rank([*values, 0.0]) == pytest.approx((found.statistic, found.pvalue))

    def test_paired_tests(self):
        rng = np.random.default_rng(2)
        a, b = pd.Series(rng.normal(0.5, size=20)), pd.Series(rng.normal(size=20))
        pairs = {("x", "y"): a, ("x", "z"): b, ("none", "y"): a[:0]}
        tests = paired_tests(pairs)
        assert list(tests["other"]) == ["y", "z"]
        p_values = [stats.wilcoxon(a).pvalue, stats.wilcoxon(b).pvalue]
        np.testing.assert_allclose(tests["p_value"], p_values)
        np.testing.assert_allclose(tests["p_holm"], holm(p_values))
        assert tests["wins"][0] == (a > 0).sum()
        assert tests["loses"][0] == (a < 0).sum()
        assert tests["median_difference"][1] == pytest.approx(np.median(b))


class TestPublished:
    def test_all_cells(self):
        cells = published()
        assert len(cells) == len(cells.drop_duplicates(CELL)) == 9 * 2 * 3 * 8
        assert not cells.isna().to_numpy().any()
        assert set(cells["dataset"]) == set(datasets.names())
        assert paper_methods() == (
            *("autoencoder", "umap", "pca", "cafe+pca"),
            *("nmf", "cafe+nmf", "ica", "cafe+ica"),
        )
        assert (cells["mean_ari"].round(3) == cells["mean_ari"]).all()
        assert (cells["std_ari"] >= 0.01).all()

    def test_the_caller_cannot_change_them(self):
        cells = published()
        cells["mean_ari"] = 0.0
        assert published()["mean_ari"].max() == 0.862


class TestCells:
    def test_failed_runs_are_counted_and_left_out(self):
        results = pd.concat([runs("pca", [0.2, None, 0.5, 0.5]), runs("nmf", [None])])
        # A run that says it is done but has no ARI is no better than one that failed, and the
        # ARI of a failed run is not to be trusted.
        results = pd.concat([results, runs("ica", [0.1, 0.2, 0.3])])
        results.loc[results["method"].eq("ica") & results["version"].eq(0), "ari"] = np.nan
        results.loc[results["method"].eq("ica") & results["version"].eq(1), "status"] = "failed"
        cells = cell_means(results).set_index("method")
        assert list(cells["n"]) == [3, 0, 1]
        assert list(cells["failed"]) == [1, 1, 2]
        assert cells.loc["pca", "mean_ari"] == pytest.approx(0.4)
        assert cells.loc["pca", "std_ari"] == pytest.approx(np.sqrt(0.03))
        assert np.isnan(cells.loc["ica", "std_ari"])
        assert list(against_published(results)["method"]) == ["pca", "ica"]

    def test_other_types_of_columns(self):
        results = runs("pca", [0.2, 0.4])
        typed = results.astype({"dataset": "category", "method": "category", "ari": object})
        typed["noise_scale"] = 1
        pd.testing.assert_frame_equal(cell_means(typed), cell_means(results))
        assert len(against_published(typed)) == 1

    def test_z_by_hand(self):
        cell = against_published(runs("cafe+pca", [0.5, 0.6, 0.8])).iloc[0]
        assert (cell["published"], cell["published_std"]) == (0.649, 0.20)
        mean, variance = 1.9 / 3, (0.5**2 + 0.6**2 + 0.8**2 - 1.9**2 / 3) / 2
        ours, theirs = variance / 3, (0.04 + 0.01**2 / 12) / 20
        error = np.sqrt(ours + theirs + 0.001**2 / 12)
        assert cell["z"] == pytest.approx((mean - 0.649) / error)
        freedom = (ours + theirs) ** 2 / (ours**2 / 2 + theirs**2 / 19)
        assert cell["degrees_of_freedom"] == pytest.approx(freedom)

    def test_one_version_has_no_z_and_no_scatter_has(self):
        assert np.isnan(against_published(runs("pca", [0.3]))["z"]).all()
        still = against_published(runs("pca", [0.4, 0.4, 0.4])).iloc[0]
        error = np.sqrt((0.14**2 + 0.01**2 / 12) / 20 + 0.001**2 / 12)
        assert still["z"] == pytest.approx((0.4 - 0.303) / error)
        assert still["degrees_of_freedom"] == pytest.approx(19)

    @pytest.mark.parametrize("n", [3, 20])
    def test_a_repetition_is_within_2_as_often_as_expected(self, n):
        rng = np.random.default_rng(n)
        cells, found = published(), []
        for _ in range(5):
            truth = cells["mean_ari"] + rng.normal(scale=cells["std_ari"] / np.sqrt(20))
            results = pd.concat(
                cells.assign(version=v, status="done", ari=rng.normal(truth, cells["std_ari"]))
                for v in range(n)
            )
            found.append(agreement(against_published(results)).iloc[0])
        found = pd.DataFrame(found)
        # 2160 cells: the standard error of the share is half a percent. The scatter of the
        # published deviations is not part of the simulation, hence the tolerance.
        assert found["within_2"].mean() == pytest.approx(found["expected"].mean(), abs=0.025)
        assert found["expected"].iloc[0] + 0.01 * (n == 20) > 0.95 or n == 3

    def test_agreement_by_hand(self):
        cells = published().head(4).rename(columns={"mean_ari": "published"})
        cells = cells.assign(ours=cells["published"] + 0.1, z=[1.0, -2.0, 3.0, np.nan])
        table = agreement(cells.assign(degrees_of_freedom=[30.0, 30, 10, np.nan]))
        whole = table.iloc[0]
        assert (whole["by"], whole["cells"]) == ("all", 3)
        assert whole["within_2"] == pytest.approx(2 / 3)
        assert whole["rms_z"] == pytest.approx(np.sqrt(14 / 3))
        assert whole["mean_difference"] == pytest.approx(0.1)
        expected = 1 - 2 * stats.t.sf(2, np.array([30, 30, 10]))
        assert whole["expected"] == pytest.approx(expected.mean())
        assert dict(zip(table["by"], table["group"], strict=True)) == {
            "all": "",
            "method": "pca",
            "dataset": "australian_credit",
            "noise_level": "0.2",
            "noise_scale": "1",
        }


class TestWins:
    def test_the_papers_count(self):
        pairs = pair_differences(as_results(published()))
        won = configurations_won(pairs)
        assert len(won) == 54
        # The text says 22 of 27 and five exceptions, but lists these six.
        assert won.groupby("noise_level")["won"].sum().to_dict() == {0.2: 21, 0.4: 27}
        lost = won[~won["won"]]
        assert set(zip(lost["dataset"], lost["noise_scale"], strict=True)) == {
            ("australian_credit", 1),
            ("australian_credit", 2),
            ("car_evaluation", 1),
            ("car_evaluation", 2),
            ("ionosphere", 1),
            ("iris", 5),
        }
        # Each extractor alone wins 48 as well, but not the same 48.
        assert pairs.groupby("extractor")["won"].sum().to_dict() == dict.fromkeys(
            ("pca", "nmf", "ica"), 48
        )
        assert won["shared"].all()
        assert pairs["shared"].all()
        assert won["wins"].value_counts().to_dict() == {3: 46, 2: 2, 1: 2, 0: 4}

    def test_a_draw_is_no_win_and_verdicts_may_differ(self):
        # The paper: 0.303 and 0.649 for PCA, 0.293 and 0.556 for NMF.
        results = pd.concat(
            [
                *(runs("pca", [0.5, 0.6]), runs("cafe+pca", [0.5, 0.6])),
                *(runs("nmf", [0.2, 0.2]), runs("cafe+nmf", [0.3, 0.5])),
            ]
        )
        pairs = pair_differences(results).set_index("extractor")
        assert pairs["won"].to_dict() == {"pca": False, "nmf": True}
        assert pairs["shared"].to_dict() == {"pca": False, "nmf": True}
        assert pairs.loc["nmf", "difference"] == pytest.approx(0.2)
        assert pairs.loc["nmf", "standard_error"] == pytest.approx(0.1)
        won = configurations_won(pairs.reset_index()).iloc[0]
        assert (won["wins"], won["pairs"], won["won"]) == (1, 2, False)
        assert (won["published_won"], won["shared"]) == (True, False)

    def test_only_versions_that_both_have_are_compared(self):
        results = pd.concat(
            [
                runs("pca", [0.1, 0.9, None], versions=[0, 1, 2]),
                runs("cafe+pca", [0.2, 0.0], versions=[0, 2]),
            ]
        )
        pair = pair_differences(results).iloc[0]
        assert (pair["n"], pair["won"]) == (1, True)
        assert pair["difference"] == pytest.approx(0.1)
        assert np.isnan(pair["standard_error"])

    def test_data_that_the_paper_lacks(self):
        results = pd.concat(
            [runs("pca", [0.1], dataset="mine"), runs("cafe+pca", [0.2], dataset="mine")]
        )
        assert pair_differences(results)["shared"].isna().all()
        won = configurations_won(pair_differences(results))
        assert won["won"].all()
        assert won[["published_won", "shared"]].isna().to_numpy().all()
        text = summary(compare(results))
        assert "no cell of its tables" in text
        assert text.count("paper") == 1


class TestImprovement:
    def test_by_hand(self):
        def pair(name, gains, scale):
            base = np.linspace(0.1, 0.3, len(gains))
            return [
                runs(name, base, scale=scale),
                runs(f"cafe+{name}", base + gains, scale=scale),
            ]

        results = pd.concat(
            [
                *pair("pca", np.array([0.1, 0.3]), 1.0),
                *pair("nmf", np.array([0.3, 0.1]), 1.0),
                *pair("pca", np.array([0.0, 0.2]), 2.0),
                *pair("nmf", np.array([0.0, 0.4]), 2.0),
            ]
        )
        table = improvement(results).set_index(["by", "group", "extractor"])
        row = table.loc[("noise_scale", "1", "pca")]
        assert row["difference"] == pytest.approx(0.2)
        assert row["standard_error"] == pytest.approx(0.1)
        assert row["published"] == pytest.approx(0.649 - 0.303)
        # The gains of PCA and NMF cancel version by version: the mean has no scatter.
        assert table.loc[("noise_scale", "1", "all"), "standard_error"] == pytest.approx(0)
        whole = table.loc[("all", "", "pca")]
        assert whole["configurations"] == 2
        assert whole["difference"] == pytest.approx(0.15)
        assert whole["standard_error"] == pytest.approx(np.sqrt(0.1**2 + 0.1**2) / 2)
        assert whole["published"] == pytest.approx((0.649 - 0.303 + 0.567 - 0.328) / 2)

    def test_the_papers_gain_grows_with_level_and_scale(self):
        table = improvement(as_results(published()))
        np.testing.assert_allclose(table["difference"], table["published"])
        assert table["standard_error"].isna().all()
        means = table[table["extractor"] == "all"]
        for by in ("noise_level", "noise_scale"):
            gains = means[means["by"] == by]
            assert gains["difference"].is_monotonic_increasing
            assert gains["configurations"].sum() == 54


class TestCompare:
    def test_everything_on_the_published_table(self):
        results = as_results(published(), n=3)
        found = compare(results)
        assert len(found.cells) == 432
        np.testing.assert_allclose(found.cells["z"], 0, atol=1e-9)
        assert (found.means["n"] == 3).all()
        wide = published().pivot(index=CONFIGURATION, columns="method", values="mean_ari")
        tests = found.tests.set_index("method")
        for name in ("pca", "nmf", "ica"):
            expected = stats.wilcoxon(wide[f"cafe+{name}"].round(3), wide[name].round(3))
            assert tests.loc[f"cafe+{name}", "p_value"] == pytest.approx(
                expected.pvalue, rel=0.05
            )
        assert (tests["p_holm"] < 1e-6).all()
        np.testing.assert_allclose(found.published_ranking.ranks, average_ranks(wide))
        assert found.ranking.n_blocks == found.paper_ranking.n_blocks == 54
        assert found.ranking.difference == pytest.approx(3.031 * np.sqrt(72 / 324), abs=2e-3)
        assert list(found.ranking.ranks.index[:2]) == ["cafe+pca", "cafe+ica"]

    def test_methods_beyond_the_paper(self):
        base = published().query("method == 'cafe+pca'")
        better = base.assign(method="mwk-means", mean_ari=base["mean_ari"] + 0.1)
        worse = base.assign(method="kmeans", mean_ari=base["mean_ari"] - 0.1)
        found = compare(as_results(pd.concat([published(), better, worse])))
        pairs = list(zip(found.tests["method"], found.tests["other"], strict=True))
        assert pairs[3:] == [("mwk-means", other) for other in ("cafe+pca", "pca", "kmeans")]
        assert found.tests["mean_difference"].iloc[-1] == pytest.approx(0.2)
        assert found.tests["wins"].iloc[-1] == 54
        assert len(found.ranking.ranks) == 10
        assert len(found.paper_ranking.ranks) == 8
        assert "mwk-means - kmeans +0.200" in summary(found)

    def test_ranks_need_versions_that_all_methods_have(self):
        results = pd.concat(
            [
                runs("pca", [0.9, 0.1], versions=[0, 1]),
                runs("umap", [0.2], versions=[1]),
                runs("pca", [0.9], scale=2.0),
                runs("nmf", [None], scale=2.0),
            ]
        )
        ranking = compare(results).ranking
        assert (ranking.n_blocks, list(ranking.ranks.index)) == (1, ["umap", "pca"])
        apart = pd.concat([runs("pca", [0.9]), runs("umap", [0.2], scale=2.0)])
        assert compare(apart).ranking is None
        assert "no configuration has a version that all methods" in summary(compare(apart))

    def test_summary(self):
        results = as_results(published(), n=2)
        results.loc[results["method"].eq("umap") & results["version"].eq(1), "status"] = (
            "failed"
        )
        text = summary(compare(results))
        assert all(len(line) <= 100 for line in text.splitlines())
        flat = " ".join(text.split())
        for part in (
            "8 methods in 54 configurations, 1 to 2 versions per cell; 54 runs failed",
            "100% of 378 cells are within two standard errors",
            "48 of 54 (the paper: 48 of 54; same verdict in 54)",
            "At level 0.2: 21 of 27 (the paper: 21 of 27",
            "Pairs won: 144 of 162; the paper has the same winner in 162 of 162",
            "+0.154 ± 0.000 (paper +0.154) at level 0.4",
            "cafe+pca - pca +0.107",
            "Critical difference 1.43",
        ):
            assert part in flat

    @pytest.mark.parametrize("some", ["umap", "pca", "mwk-means"])
    def test_a_single_run(self, some):
        found = compare(runs(some, [0.5]))
        assert found.pairs.empty
        assert found.configurations.empty
        assert found.tests.empty
        assert found.improvement.empty
        assert "no extractor was run with and without CAFE" in summary(found)

    def test_bad_input(self):
        with pytest.raises(ValueError, match=r"compare needs results .* status not found"):
            compare(runs("pca", [0.5]).drop(columns="status"))
        with pytest.raises(ValueError, match="compare needs one row per run; 1 are repeated"):
            compare(pd.concat([runs("pca", [0.5]), runs("pca", [0.6])]))
        with pytest.raises(
            ValueError, match=r"at least one run that is done .* got none in 2 runs"
        ):
            compare(runs("pca", [None, None]))
