"""Loadings: coefficients of the inputs in the features of linear extractors."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import NMF, PCA, KernelPCA
from sklearn.pipeline import make_pipeline

from cafelearn import CAFE
from cafelearn.estimators.tabular import TabularCAFE
from cafelearn.plotting import LoadingsDisplay
from cafelearn.report import write_fit_report
from conftest import make_blobs
from test_profiles import QUICK, customers
from test_report import read


@pytest.fixture(scope="module")
def frame():
    X, _ = make_blobs(150, 5, 3, n_noise=1, seed=2)
    return pd.DataFrame(X, columns=[f"gene {v}" for v in range(5)])


def fit(frame, extractor="pca", rescaling="distances", **settings):
    settings = {"selection": "likelihood"} | settings
    cafe = CAFE(3, n_components=2, extractor=extractor, rescaling=rescaling, **QUICK | settings)
    return cafe.fit(frame)


@pytest.mark.parametrize("extractor", ["pca", "fastica", "ica", PCA(whiten=True)], ids=str)
@pytest.mark.filterwarnings("ignore:FastICA did not converge")
class TestLinear:
    def test_distances(self, extractor, frame):
        cafe = fit(frame, extractor)
        loadings = cafe.loadings_
        distances = [f"log distance to cluster {l}" for l in range(3)]
        assert loadings.index.tolist() == [*frame, *distances]
        assert loadings.columns.tolist() == ["cafe0", "cafe1"]
        # Features differ by what the loadings make of the inputs, whatever the centre.
        inputs, features = cafe.rescale(frame), cafe.transform(frame)
        made = (inputs - inputs[0]) @ loadings.to_numpy()
        np.testing.assert_allclose(made, features - features[0], atol=1e-8)

    @pytest.mark.parametrize("rescaling", ["origin", "centroid"])
    def test_by_cluster(self, extractor, rescaling, frame):
        cafe = fit(frame, extractor, rescaling, weighting="cluster")
        loadings = cafe.loadings_
        assert loadings.index.names == ["cluster", "input"]
        assert loadings.shape == (3 * 5, 2)
        scaled = cafe.scaler_.transform(frame.to_numpy())
        features = cafe.transform(frame)
        for l in range(3):
            members = np.flatnonzero(cafe.labels_ == l)
            made = (scaled[members] - scaled[members[0]]) @ loadings.loc[l].to_numpy()
            expected = features[members] - features[members[0]]
            np.testing.assert_allclose(made, expected, atol=1e-8)


def test_memberships(frame):
    cafe = fit(frame, selection="mixture", rescaling="auto")
    loadings = cafe.loadings_
    parts = ("membership in cluster", "log density in cluster")
    more = [f"{part} {l}" for part in parts for l in range(3)]
    assert loadings.index.tolist() == [*frame, *more]
    inputs, features = cafe.rescale(frame), cafe.transform(frame)
    made = (inputs - inputs[0]) @ loadings.to_numpy()
    np.testing.assert_allclose(made, features - features[0], atol=1e-8)


def test_nmf_has_its_parts(frame):
    cafe = fit(frame, "nmf")
    np.testing.assert_array_equal(cafe.loadings_.to_numpy().T, cafe.extractor_.components_)
    positive = frame - frame.min()
    cafe = fit(positive, NMF(max_iter=2000), "origin", scaling=None, weighting="uniform")
    np.testing.assert_allclose(
        cafe.loadings_.loc[1].to_numpy().T * 5, cafe.extractor_.components_
    )


@pytest.mark.parametrize(
    "extractor", ["autoencoder", KernelPCA(), make_pipeline(PCA(2))], ids=str
)
def test_other_extractors_have_none(extractor, frame, tmp_path):
    settings = {} if not hasattr(extractor, "steps") else {"n_components": None}
    cafe = CAFE(3, extractor=extractor, **QUICK | {"n_components": 2} | settings).fit(frame)
    assert not hasattr(cafe, "loadings_")
    with pytest.raises(AttributeError, match="loadings_ needs a linear extractor"):
        cafe.loadings_  # noqa: B018
    with pytest.raises(AttributeError, match=f"got {type(cafe.extractor_).__name__}"):
        LoadingsDisplay.from_estimator(cafe)
    page = read(write_fit_report(cafe, frame, tmp_path / "a.html"))
    assert "loadings-table" not in page.tables
    assert "Loadings" not in page.text


def test_not_fitted():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        CAFE().loadings_  # noqa: B018


def test_of_a_table():
    table = customers()
    model = TabularCAFE(CAFE(2, n_components=3, **QUICK)).fit(table)
    pd.testing.assert_frame_equal(model.loadings_, model.cafe_.loadings_)
    assert "plan=free" in model.loadings_.index
    display = LoadingsDisplay.from_estimator(model)
    assert display.ims_[0].get_array().shape == model.loadings_.shape


class TestDisplay:
    def test_one_panel(self, frame):
        cafe = fit(frame)
        display = LoadingsDisplay.from_estimator(cafe, max_features=3)
        largest = cafe.loadings_.abs().max(axis=1).nlargest(3).index
        shown = [label.get_text() for label in display.ax_.get_yticklabels()]
        assert shown == [name for name in cafe.loadings_.index if name in largest]
        top = cafe.loadings_.loc[shown].abs().max().max()
        assert display.ims_[0].get_clim() == (-top, top)
        assert display.colorbar_ is not None
        assert "3 of 8 inputs" in display.figure_._supxlabel.get_text()

    def test_a_panel_for_each_cluster(self, frame):
        cafe = fit(frame, rescaling="centroid")
        display = LoadingsDisplay.from_estimator(cafe)
        assert [ax.get_title() for ax in display.axes_] == [f"cluster {l}" for l in range(3)]
        for l, image in enumerate(display.ims_):
            np.testing.assert_array_equal(image.get_array(), cafe.loadings_.loc[l])

    def test_refusals(self, frame):
        with pytest.raises(TypeError, match="as a DataFrame"):
            LoadingsDisplay([[1.0]])
        with pytest.raises(
            ValueError, match="max_features to be an int above 0 or None, got 0"
        ):
            LoadingsDisplay.from_estimator(fit(frame), max_features=0)


class TestReport:
    def test_table(self, frame, tmp_path):
        cafe = fit(frame)
        table = read(write_fit_report(cafe, frame, tmp_path / "a.html")).frame("loadings-table")
        table = table.set_index("input")
        assert sorted(table.index) == sorted(cafe.loadings_.index)
        shown = table.loc[cafe.loadings_.index].astype(float)
        np.testing.assert_allclose(shown, cafe.loadings_, atol=0.006)

    def test_by_cluster(self, frame, tmp_path):
        cafe = fit(frame, rescaling="origin", weighting="cluster")
        table = read(write_fit_report(cafe, frame, tmp_path / "a.html")).frame("loadings-table")
        assert len(table) == 15
        row = table[(table["cluster"] == "cluster 1") & (table["input"] == "gene 3")].iloc[0]
        value = float(row["extracted feature 2"])
        # Two digits of the largest are shown.
        largest = cafe.loadings_.abs().max().max()
        expected = cafe.loadings_.loc[(1, "gene 3"), "cafe1"]
        assert value == pytest.approx(expected, abs=largest / 10)
