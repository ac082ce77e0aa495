"""The study behind Figures 1 and 2: its data, its fits, its verdict and its drawings."""

import dataclasses
from xml.etree import ElementTree

import matplotlib
import matplotlib.figure
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import reference
from cafelearn import MinkowskiWeightedKMeans
from cafelearn.theory import certificate
from reproduction.theory import figures as theory_figures
from reproduction.theory import fits as module
from reproduction.theory.figures import draw_figures
from reproduction.theory.fits import WEIGHTS, mixture, summary, theory_study

EXPONENTS = (1.1, 1.5, 2.0, 5.0)


@pytest.fixture(scope="module")
def study():
    return theory_study(n_datasets=2, n_starts=3)


@pytest.fixture(scope="module")
def with_mean():
    return theory_study(n_datasets=1, n_starts=3, dispersion_offset="mean")


def test_data_are_what_the_paper_describes():
    X, y = mixture("mixture-1")
    assert X.shape == (1000, 8)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.ptp(X, axis=0), 1)
    assert (np.bincount(y) > 250).all()
    within = np.array([X[y == l].std(axis=0) for l in range(3)])
    # Noise is uniform and the same in every cluster; the others are Gaussian and spherical:
    # on each feature all clusters are equally wide.
    np.testing.assert_allclose(within[:, 4:], 1 / np.sqrt(12), rtol=0.08)
    np.testing.assert_allclose(within / within.mean(axis=0), 1, atol=0.15)
    between = np.array([X[y == l].mean(axis=0) for l in range(3)]).std(axis=0)
    assert between[4:].max() < 0.03 < between[:4].max()


def test_data_depend_on_their_name_alone():
    X, y = mixture("mixture-2", random_state=3)
    again, same = mixture("mixture-2", random_state=3)
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, same)
    for other in (mixture("mixture-3", 3), mixture("mixture-2", 4)):
        assert not np.allclose(X, other[0])


def test_one_row_per_fit(study):
    fits = study.fits
    assert len(fits) == 2 * 3 * 4
    assert not fits.duplicated(["dataset", "start", "p"]).any()
    assert set(fits["dataset"]) == {"mixture-1", "mixture-2"}
    assert set(fits["p"]) == set(EXPONENTS)
    assert (fits["stop_reason"] == "converged").all()
    assert not fits.isna().any(axis=None)


def test_a_fit_against_the_formulas_of_the_paper(monkeypatch):
    seen = []

    class Spy(MinkowskiWeightedKMeans):
        def fit(self, X, *arguments):
            seen.append((super().fit(X, *arguments), X))
            return self

    monkeypatch.setattr(module, "MinkowskiWeightedKMeans", Spy)
    fits = theory_study(n_datasets=1, n_starts=2, exponents=(1.5, 5.0)).fits
    assert len(seen) == len(fits) == 4
    for (model, X), row in zip(seen, fits.itertuples(), strict=True):
        assert (model.p, model.n_init, model.dispersion_offset) == (row.p, 1, 0)
        D = np.zeros((3, 8))
        for l in range(3):
            for v in range(8):
                x = X[model.labels_ == l, v]
                D[l, v] = (np.abs(x - reference.center(x, row.p)) ** row.p).sum()
        w = reference.feature_weights(D, row.p)
        W = reference.objective(D, w, row.p)
        lower = D.min(axis=1).sum() / 8 ** (row.p - 1)
        upper = (D.prod(axis=1) ** (1 / 8)).sum() / 8 ** (row.p - 1)
        expected = (W, lower, upper, (W - lower) / (upper - lower))
        found = (row.objective, row.lower_bound, row.upper_bound, row.normalized_objective)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        assert row.lemma_objective == pytest.approx(row.normalized_objective, abs=1e-9)
        sorted_weights = -np.sort(-w, axis=1).mean(axis=0)
        np.testing.assert_allclose([getattr(row, name) for name in WEIGHTS], sorted_weights)
        assert row.noise_weight == pytest.approx(w[:, 4:].sum() / 3)
        assert row.smallest_cluster == np.bincount(model.labels_).min()
    # All exponents begin at the same rows; another start at others.
    seeds = [model.random_state for model, _ in seen]
    assert seeds[0] == seeds[1] != seeds[2] == seeds[3]


def test_every_claim_holds_in_every_fit(study):
    assert study.holds
    assert study.within_bounds
    model = MinkowskiWeightedKMeans(3, dispersion_offset=0, n_init=1, random_state=0)
    X, _ = mixture("mixture-1")
    assert list(study.claims.index) == list(certificate(model.fit(X), X).index)
    assert (study.claims["checked"] == len(study.fits)).all()
    assert (study.claims["holds"] == len(study.fits)).all()
    assert (study.claims["fails"] == 0).all()
    # Rounding, not leniency: errors stay far below what the certificate tolerates, and the
    # bounds of Theorem 2 are kept with room.
    assert (study.claims["worst_margin"] > -1e-8).all()
    assert (study.claims.filter(like="Theorem 2", axis=0)["worst_margin"] > 0).all()


def test_what_the_paper_says_about_its_figures(study):
    means = study.fits.groupby("p")[["normalized_objective", "effective_features"]].mean()
    # Sparse for small p, more uniform for large p.
    assert (np.diff(means["effective_features"]) > 0).all()
    assert means["effective_features"].iloc[0] < 1.1
    assert means["effective_features"].iloc[-1] > 6
    # Nearest to the lower bound at the smallest p, nearest to the upper at the largest.
    assert (np.diff(means["normalized_objective"]) > 0).all()
    assert means["normalized_objective"].iloc[0] == pytest.approx(0.10, abs=0.03)


def test_the_added_mean_leaves_the_bounds_at_p_5(with_mean):
    values = with_mean.fits.set_index("p")["normalized_objective"]
    assert (values.loc[5.0] > 1).all()
    assert values.drop(5.0).between(0, 1).all()
    assert not with_mean.within_bounds
    assert not with_mean.holds
    # Not because a claim fails: those about Eq. 4 do not apply.
    assert not with_mean.claims["fails"].any()
    unchecked = with_mean.claims.loc["Theorem 2: upper bound"]
    assert unchecked["checked"] == 0
    assert np.isnan(unchecked["worst_margin"])
    # Lemma 1 knows no offset; what it computes from the dispersions is always within.
    assert with_mean.fits["lemma_objective"].between(0, 1).all()


def test_limit_of_refitted_weights_is_not_uniform():
    """Corollary 3 keeps the dispersions; they grow with p, and the limit is 1 / range."""
    X, _ = mixture("mixture-1")
    model = MinkowskiWeightedKMeans(3, p=500, dispersion_offset=0, n_init=1, random_state=0)
    model.fit(X)
    ranges = np.array([np.ptp(X[model.labels_ == l], axis=0) for l in range(3)])
    limit = (1 / ranges) / (1 / ranges).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.feature_weights_, limit, atol=1e-3)
    assert np.abs(model.feature_weights_ - 1 / 8).max() > 0.02


def test_result_does_not_depend_on_jobs_or_on_the_size_of_the_study(study):
    parallel = theory_study(n_datasets=2, n_starts=3, n_jobs=2)
    pd.testing.assert_frame_equal(parallel.fits, study.fits, check_exact=True)
    pd.testing.assert_frame_equal(parallel.claims, study.claims, check_exact=True)
    part = theory_study(n_datasets=1, n_starts=2, exponents=(2.0, 1.5)).fits
    key = ["dataset", "start", "p"]
    whole = study.fits.set_index(key).loc[part.set_index(key).index].reset_index()
    pd.testing.assert_frame_equal(part, whole, check_exact=True)


def test_another_seed_is_another_study(study):
    other = theory_study(n_datasets=1, n_starts=1, random_state=1).fits
    assert not np.isclose(other["objective"], study.fits["objective"][:4]).any()


def test_a_value_out_of_bounds_or_a_failing_claim_is_told(study):
    for value in (-1e-12, 1 + 1e-12, np.nan):
        fits = study.fits.copy()
        fits.loc[3, "normalized_objective"] = value
        broken = dataclasses.replace(study, fits=fits)
        assert not broken.holds
        assert "NOT all normalised objectives" in summary(broken)
    claims = study.claims.copy()
    claims.loc["Theorem 4: suppression", ["holds", "fails"]] = [23, 1]
    broken = dataclasses.replace(study, claims=claims)
    assert not broken.holds
    assert "FAILS: Theorem 4: suppression, in 1 of 24 fits" in summary(broken)
    assert "19 of 20 claims" in summary(broken)


def test_a_claim_that_fails_in_one_fit_is_counted(monkeypatch):
    calls = []

    def doctored(model, X):
        table = certificate(model, X)
        calls.append(model.p)
        if model.p == 2:
            table.loc["Theorem 2: upper bound", ["slack", "verdict"]] = [-0.5, "does not hold"]
            # Within the tolerance: the certificate says 0, the study the true margin.
            table.loc["Lemma 1: objective from dispersions", ["measured", "slack"]] = [4e-8, 0]
            table.loc["Lemma 2: objective from power means", "verdict"] = "does not apply"
        return table

    monkeypatch.setattr(module, "certificate", doctored)
    study = theory_study(n_datasets=1, n_starts=1, exponents=(1.5, 2.0))
    assert calls == [1.5, 2.0]
    bound, first, second = (
        study.claims.loc[name]
        for name in (
            "Theorem 2: upper bound",
            "Lemma 1: objective from dispersions",
            "Lemma 2: objective from power means",
        )
    )
    assert bound[["checked", "holds", "fails"]].tolist() == [2, 1, 1]
    assert bound["worst_margin"] == -0.5
    assert bound["worst_fit"] == "mixture-1, start 1, p = 2"
    assert first["worst_margin"] == -4e-8
    assert first["fails"] == 0
    assert second["checked"] == 1
    assert not study.holds


def test_summary_tells_the_numbers(study, with_mean):
    text = summary(study)
    assert text.startswith("24 fits of mwk-means (dispersion_offset=0): 2 data sets, 3 starts")
    assert "24 of 24 converged" in text
    assert "All normalised objectives lie in [0, 1]." in text
    assert "20 of 20 claims hold in every fit they apply to (480 checks)." in text
    for p, rows in study.fits.groupby("p"):
        (line,) = [line for line in text.splitlines() if line.split()[:1] == [f"{p:g}"]]
        values = rows["normalized_objective"]
        expected = [values.mean(), values.min(), values.max()]
        np.testing.assert_allclose(
            [float(number) for number in line.split()[1:4]], expected, atol=6e-4
        )
    text = summary(with_mean)
    assert "dispersion_offset='mean'" in text
    assert "12 claims about Eq. 4 do not apply" in text


def test_figures_are_written_and_the_same_each_time(study, tmp_path):
    open_before = plt.get_fignums()
    paths = draw_figures(study, tmp_path / "new" / "figures")
    assert [path.name for path in paths] == [
        "figure-1-weights.png",
        "figure-1-weights.svg",
        "figure-2-objective.png",
        "figure-2-objective.svg",
    ]
    assert sorted(paths) == sorted((tmp_path / "new" / "figures").iterdir())
    assert plt.get_fignums() == open_before
    for path in paths:
        if path.suffix == ".png":
            height, width, _ = matplotlib.image.imread(path).shape
            assert (width, height) == (1280, 840)
        else:
            assert ElementTree.parse(path).getroot().tag.endswith("svg")
    before = [path.read_bytes() for path in paths]
    with matplotlib.rc_context({"font.size": 30}):
        draw_figures(study, tmp_path / "new" / "figures")
    assert [path.read_bytes() for path in paths] == before


def test_figures_show_the_numbers(study):
    axes = matplotlib.figure.Figure().subplots()
    theory_figures._draw_weights(axes, study)
    _, labels = axes.get_legend_handles_labels()
    assert labels == [f"$p = {p:g}$" for p in EXPONENTS]
    for p, line in zip(EXPONENTS, axes.lines, strict=False):
        weights = study.fits.loc[study.fits["p"] == p, list(WEIGHTS)].mean()
        np.testing.assert_allclose(line.get_ydata(), weights)
    axes = matplotlib.figure.Figure().subplots()
    theory_figures._draw_objectives(axes, study)
    dots = [c for c in axes.collections if isinstance(c, matplotlib.collections.PathCollection)]
    for p, collection in zip(EXPONENTS, dots, strict=True):
        values = study.fits.loc[study.fits["p"] == p, "normalized_objective"]
        np.testing.assert_allclose(collection.get_offsets()[:, 1], values)
        assert f"{values.mean():.2f}" in [text.get_text() for text in axes.texts]


def test_figure_2_has_room_for_values_out_of_bounds(with_mean):
    axes = matplotlib.figure.Figure().subplots()
    theory_figures._draw_objectives(axes, with_mean)
    assert axes.get_ylim()[1] > with_mean.fits["normalized_objective"].max() > 1
    assert "offset mean" in axes.get_title()


def test_a_failed_write_leaves_the_old_figure(study, tmp_path, monkeypatch):
    (path,) = draw_figures(study, tmp_path, formats=["svg"])[:1]
    before = path.read_bytes()

    def fail(self, target, **options):
        target.write_text("half a fig")
        raise OSError("disk full")

    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", fail)
    with pytest.raises(OSError, match="disk full"):
        draw_figures(study, tmp_path, formats=["svg"])
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 2
