"""Analysis of the records of the study: means, ranks, winners, bars and text."""

import numpy as np
import pandas as pd
import pytest

from reproduction.study import plan as study_plan
from reproduction.study.answers import (
    accuracies,
    by_dataset,
    by_regime,
    check_study,
    configuration_means,
    finding_shares,
    median_seconds,
)
from reproduction.study.plan import STUDY_METHODS, StudyPlan
from reproduction.study.regimes import REGIMES, STUDY_PAIRS
from reproduction.study.run import ACCURACIES
from reproduction.study.text import render, summarise
from reproduction.study.verdicts import must_hold, rank_answers, winners

KEY = ["dataset", "regime", "version", "task", "method"]


def made_up(scores):
    """Results of the whole plan, one version each, by a function of (sample, method)."""
    rows = []
    for sample in everything().samples():
        for place, method in enumerate(STUDY_METHODS[sample.task]):
            value = scores(sample, method)
            row = dict(zip(KEY, (*sample, method), strict=True), status="done", seconds=place)
            if sample.task == "labels":
                rows.append({**row, "ari": value})
            else:
                shifts = (-0.02, -0.01, 0.01, 0.02)
                named = {n: value + s for n, s in zip(ACCURACIES, shifts, strict=True)}
                rows.append({**row, **named})
    return pd.DataFrame(rows).assign(findings="")


def everything():
    """The plan with all optional data sets and methods, one version each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(study_plan, "missing", lambda name: "")
        patch.setattr(study_plan, "missing_method", lambda name: "")
        return StudyPlan(versions=1)


@pytest.fixture(scope="module")
def known():
    """CAFE leads by 0.3 under noise pairs and is behind k-means by 0.005 elsewhere."""

    def score(sample, method):
        if method == "trivial":
            return 0.95
        if method == "cafe":
            return 0.8 if sample.regime in STUDY_PAIRS else 0.495
        return 0.5 if method in ("kmeans-range", "pca") else 0.4

    return made_up(score)


N_CONFIGURATIONS = 9 * 9 + 3 * 5 + 9 * 5 + 18
N_PAIRS = 9 * 3 + 3 + 9


def test_means(known):
    means = configuration_means(known)
    assert len(means) == N_CONFIGURATIONS
    assert means.columns.tolist() == list(STUDY_METHODS["labels"])
    assert by_regime(known).index.tolist() == list(REGIMES)
    assert by_regime(known).loc["pairs 0.2/1", "cafe"] == pytest.approx(0.8)
    # Three of the nine regimes are noise pairs.
    assert by_dataset(known).loc["iris", "cafe"] == pytest.approx((3 * 0.8 + 6 * 0.495) / 9)
    table = accuracies(known).loc["clean", "cafe"]
    assert table["knn_5"] == pytest.approx(0.475)
    assert table["accuracy"] == pytest.approx(0.495)
    assert median_seconds(known).loc["cafe"].to_dict() == {"labels": 11, "features": 4}


def test_ranks_and_winners(known):
    ranking = rank_answers(known)
    assert "trivial" not in ranking.ranks
    assert ranking.n_blocks == N_CONFIGURATIONS
    n_others = N_CONFIGURATIONS - N_PAIRS
    assert ranking.ranks["cafe"] == pytest.approx((N_PAIRS + 2 * n_others) / N_CONFIGURATIONS)
    won = winners(known)
    assert (won.best == "cafe").sum() == N_PAIRS
    assert set(won[won.best != "cafe"].best) == {"kmeans-range"}
    assert won[won.best != "cafe"].behind.to_numpy() == pytest.approx(0.005)


def test_bars(known):
    bars = must_hold(known).set_index("what")
    over_rivals = "ARI minus that of the best rival, real sets, {}"
    assert bars.value[over_rivals.format("noise pairs")] == pytest.approx(0.3)
    assert bars.value[over_rivals.format("clean")] == pytest.approx(-0.005)
    assert bars.holds[over_rivals.format("noise pairs")]
    assert not bars.holds[over_rivals.format("clean")]
    features = "accuracy minus that of the best of raw, standardised and PCA, {}"
    assert bars.value[features.format("noise pairs")] == pytest.approx(0.3)
    assert not bars.holds[features.format("clean")]
    assert not bars.holds["ARI on digits, clean"]
    # A number for which runs are missing is no number.
    fewer = must_hold(known[known.dataset != "iris"]).what
    assert over_rivals.format("clean") not in set(fewer)


def test_a_version_on_which_a_method_failed_is_left_out_for_all(known):
    again = known.assign(version=1, ari=0.0)
    again.loc[again.method == "hdbscan", "status"] = "failed"
    both = pd.concat([known, again])
    pd.testing.assert_frame_equal(configuration_means(both), configuration_means(known))
    assert f"{N_CONFIGURATIONS} of them failed" in render(both)
    assert f"(HDBSCAN {N_CONFIGURATIONS})" in render(both)


def test_a_version_on_which_a_method_was_not_run_is_not_left_out(known):
    again = known[known.method != "mclust"].assign(version=1, ari=0.0)
    means = configuration_means(pd.concat([known, again]))
    assert means["cafe"].to_numpy() == pytest.approx(configuration_means(known)["cafe"] / 2)
    assert means["mclust"].to_numpy() == pytest.approx(0.4)


def test_means_are_over_configurations_with_all_methods(known):
    """A method that failed on hard data must not have its mean over the easy data only."""
    hard = known.dataset == "iris"
    given = known.assign(ari=known.ari - 0.1 * hard)
    given.loc[hard & (given.method == "mclust"), "status"] = "failed"
    means = by_regime(given)
    assert means.loc["clean", "cafe"] == pytest.approx(0.495)
    assert means.loc["clean", "mclust"] == pytest.approx(0.4)
    # Without the method, the set counts.
    assert by_regime(given[given.method != "mclust"]).loc["clean", "cafe"] < 0.4949
    # Alone, its other methods do.
    alone = by_regime(given, sets=("iris",))
    assert alone["mclust"].isna().all()
    assert alone.loc["clean", "cafe"] == pytest.approx(0.395)


def test_shares_of_findings(known):
    codes = np.where(known.regime == "clean", "uniform,offset", "")
    shares = finding_shares(known.assign(findings=codes))
    assert shares.loc["clean"].to_dict() == {"offset": 1.0, "uniform": 1.0}
    assert shares.loc["heavy"].sum() == 0


def test_text(known):
    text = render(known)
    row = next(line for line in text.splitlines() if line.startswith("| all pairs"))
    assert row.split(" | ")[1:] == ["0.950", "0.500", *["0.400"] * 9, "**0.800** |"]
    assert "Critical difference" in text
    assert "**no**" in text
    tables = summarise(known)
    assert list(tables) == [
        "Mean ARI of the labels",
        "Mean accuracy of the features for unseen rows",
        "Average ranks",
        "Median seconds",
    ]
    with pytest.raises(ValueError, match="regime not found"):
        check_study(known.drop(columns="regime"), "render")
    with pytest.raises(ValueError, match="repeated"):
        render(pd.concat([known, known]))
