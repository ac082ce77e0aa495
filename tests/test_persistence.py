"""Saving and loading models, and rejection of harmful files."""

import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler

from cafelearn import CAFE, PAPER, MinkowskiWeightedKMeans, RangeScaler
from cafelearn.datasets import load
from cafelearn.estimators.tabular import TabularCAFE
from cafelearn.files.atomic import atomic_directory, atomic_path, check_output
from cafelearn.files.models import HEADER, ModelFileError, _pack, load_model, save_model
from cafelearn.mixture import Mixture

X = load("iris").frame.drop(columns="target")


@pytest.fixture(scope="module")
def model():
    return CAFE(3, n_components=2, n_init=2, random_state=0).fit(X)


@pytest.fixture
def saved(model, tmp_path):
    return save_model(model, tmp_path / "model.skops")


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize(
    "options",
    [
        *({"extractor": name} for name in ("pca", "nmf", "ica", "fastica", "autoencoder")),
        {"extractor": TruncatedSVD(2), "n_components": None},
        {"scaling": MinMaxScaler()},
        {"scaling": None, "rescaling": "centroid"},
        {"scaling": ("range", None, MinMaxScaler()), "dispersion_offset": ("mean", 0.5)},
        PAPER | {"n_init": 2},
        pytest.param({"random_state": np.random.RandomState(0)}, id="RandomState"),
        {"p": np.array([1.5, 2.0])},
        {"p": [np.float64(1.5)], "dispersion_offset": np.float64(0.5)},
        {"init": X.to_numpy()[::60], "scaling": None},
        *({"rescaling": name} for name in ("memberships", "distances", "origin")),
        {"n_clusters": [2, 3], "n_components": None},
        {"extractor": None, "n_components": None},
    ],
    ids=str,
)
@pytest.mark.parametrize("selection", ["mixture", "likelihood"])
def test_cafe_survives(options, selection, tmp_path):
    if selection != "mixture" and options.get("rescaling") == "memberships":
        pytest.skip("there are none")
    defaults = {"n_clusters": 3, "n_components": 2, "n_init": 2, "random_state": 0}
    cafe = CAFE(**(defaults | {"selection": selection} | options)).fit(X)
    again = load_model(save_model(cafe, tmp_path / "cafe.skops"))
    np.testing.assert_array_equal(again.transform(X), cafe.transform(X))
    np.testing.assert_array_equal(again.labels_, cafe.labels_)
    assert [model.inertia_ for model in again.models_] == [m.inertia_ for m in cafe.models_]
    # The chosen model is one of the models, not a copy of it.
    assert again.models_.index(again.model_) == cafe.models_.index(cafe.model_)
    assert again.model_ is again.models_[cafe.models_.index(cafe.model_)]
    pd.testing.assert_frame_equal(again.candidates_, cafe.candidates_)
    assert type(again.p_) is float
    if cafe.selection == "mixture":
        np.testing.assert_array_equal(again.predict_proba(X), cafe.predict_proba(X))
        np.testing.assert_array_equal(again.relevance_, cafe.relevance_)
        assert again._answer == cafe._answer
    assert again.diagnosis_ == cafe.diagnosis_
    assert list(again.feature_names_in_) == list(X.columns)
    pd.testing.assert_frame_equal(again.weights_frame(), cafe.weights_frame())


def test_other_models_survive(tmp_path):
    scaler = RangeScaler().fit(X)
    model = MinkowskiWeightedKMeans(3, p=1.5, n_init=2, random_state=0).fit(X)
    table = X.assign(kind=np.where(np.arange(150) % 3, "a", "b"), name=np.arange(150))
    table.loc[3, "sepal_width"] = np.nan
    tabular = TabularCAFE(CAFE(3, p=2.0, n_init=2, random_state=0), impute="median")
    tabular.set_params(id_column="name").fit(table)
    for number, (fitted, data) in enumerate([(scaler, X), (model, X), (tabular, table)]):
        again = load_model(save_model(fitted, tmp_path / f"{number}.skops"))
        np.testing.assert_array_equal(again.transform(data), fitted.transform(data))
    pd.testing.assert_frame_equal(again.encode(table), tabular.encode(table))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_components": 1},
        {"covariance": ["lowrank", "tied"], "tails": True, "background": False},
        {"covariance": "independent", "feature_groups": list("aabb")},
    ],
    ids=str,
)
def test_mixtures_survive(options, tmp_path):
    rng = np.random.default_rng(0)
    rows = X.assign(
        few=rng.integers(3, size=150), gaps=np.where(rng.random(150) < 0.3, np.nan, 1)
    )
    rows = X if "feature_groups" in options else rows
    mixture = Mixture(**({"n_components": 3, "random_state": 0} | options)).fit(rows)
    again = load_model(save_model(mixture, tmp_path / "mixture.skops"))
    np.testing.assert_array_equal(again.score_samples(rows), mixture.score_samples(rows))
    np.testing.assert_array_equal(again.predict_proba(rows), mixture.predict_proba(rows))
    for one, other in zip(again.sample(20), mixture.sample(20), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(again.covariances_, mixture.covariances_)


def test_files_of_an_earlier_format_are_refused():
    with pytest.raises(ModelFileError, match=r"in format 1; .* fit and save the model again"):
        load_model(Path(__file__).parent / "data" / "cafe_default.skops")


def test_float32_survives(tmp_path):
    cafe = CAFE(3, p=2.0, n_init=1, random_state=0).fit(X.astype(np.float32))
    again = load_model(save_model(cafe, tmp_path / "cafe.skops"))
    assert again.transform(X.astype(np.float32)).dtype == np.float32


class TestWhatCannotBeSaved:
    def test_not_fitted(self, tmp_path):
        with pytest.raises(NotFittedError):
            save_model(CAFE(2), tmp_path / "m.skops")

    def test_another_estimator(self, tmp_path):
        with pytest.raises(TypeError, match=r"save_model needs a CAFE.*got KMeans"):
            save_model(KMeans(2, n_init=1).fit(X), tmp_path / "m.skops")

    @pytest.mark.parametrize(("name", "found"), [("a.pkl", "extension '.pkl'"), ("a", "no ")])
    def test_a_suffix_other_than_skops(self, name, found, tmp_path):
        model = RangeScaler().fit(X)
        with pytest.raises(ValueError, match=rf"save_model .*{found}.*expected \.skops"):
            save_model(model, str(tmp_path / name))
        assert not list(tmp_path.iterdir())

    def test_an_extractor_with_state_that_no_file_holds(self, tmp_path):
        # UMAP has generators inside.
        settings = {"n_components": 2, "n_init": 1, "random_state": 0}
        cafe = CAFE(3, p=2.0, scaling="range", **settings).fit(X)
        cafe.extractor_.left = (row for row in ())
        with pytest.raises(ModelFileError, match="cannot save this CAFE with PCA and Range"):
            save_model(cafe, tmp_path / "m.skops")
        assert not list(tmp_path.iterdir())

    def test_what_loading_would_refuse(self, tmp_path):
        cafe = CAFE(2, scaling=FunctionTransformer(np.sqrt), p=2.0, n_init=1).fit(X)
        with pytest.raises(ModelFileError, match="FunctionTransformer"):
            save_model(cafe, tmp_path / "m.skops")
        assert not list(tmp_path.iterdir())


class TestHostileFiles:
    @pytest.mark.parametrize("evil", [os.system, eval, FunctionTransformer(os.system)], ids=str)
    def test_code_is_refused_by_name(self, evil, tmp_path):
        cafe = CAFE(2, p=2.0, n_init=1).fit(X)
        cafe.extractor_ = evil
        path = tmp_path / "evil.skops"
        path.write_bytes(_pack(cafe))
        name = "system|eval"
        with pytest.raises(ModelFileError, match=f"types that are not trusted.*({name})"):
            load_model(path)

    def test_a_trusted_name_with_another_loader(self, saved, tmp_path):
        def edit(schema):
            schema["__loader__"] = "ReduceNode"

        with pytest.raises(ModelFileError, match=r"not trusted.*CAFE \(ReduceNode\)"):
            load_model(_edited(saved, tmp_path, edit))

    def test_a_module_is_not_even_imported(self, saved, tmp_path, monkeypatch):
        (tmp_path / "trap.py").write_text("raise SystemExit('imported')")
        monkeypatch.syspath_prepend(tmp_path)

        def edit(schema):
            schema["content"]["content"]["scaler_"] |= {"__module__": "trap"}

        with pytest.raises(ModelFileError, match=r"trap\.RangeScaler"):
            load_model(_edited(saved, tmp_path, edit))

    def test_cut_off(self, saved):
        data = saved.read_bytes()
        for length in (0, 3, 10, len(data) // 2, len(data) - 1):
            saved.write_bytes(data[:length])
            with pytest.raises(ModelFileError, match=r"is damaged or truncated|is not a model"):
                load_model(saved)

    def test_changed_bytes_are_noticed(self, saved, model):
        data = saved.read_bytes()
        rng = np.random.default_rng(0)
        refused = 0
        for place in rng.integers(len(data), size=60):
            changed = bytearray(data)
            changed[place] ^= 1 << int(rng.integers(8))
            saved.write_bytes(changed)
            try:
                again = load_model(saved)
            except ModelFileError:
                refused += 1
            else:  # in a date, say
                np.testing.assert_array_equal(again.transform(X), model.transform(X))
        assert refused > 30

    def test_deep_nesting(self, saved, tmp_path):
        path = tmp_path / "deep.skops"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(HEADER, '{"format": 2, "cafelearn": "0"}')
            archive.writestr("schema.json", "[" * 100_000)
        with pytest.raises(ModelFileError, match="damaged"):
            load_model(path)

    def test_no_model(self, tmp_path):
        path = tmp_path / "model.skops"
        path.write_text("a,b\n1,2\n")
        with pytest.raises(ModelFileError, match="is not a model"):
            load_model(path)
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("hello.txt", "hello")
        with pytest.raises(ModelFileError, match="not a model that save_model has written"):
            load_model(path)
        with pytest.raises(FileNotFoundError, match="cannot find"):
            load_model(tmp_path / "nothing.skops")
        with pytest.raises(IsADirectoryError, match="is a directory"):
            load_model(tmp_path)

    def test_a_later_format(self, saved, tmp_path):
        path = tmp_path / "later.skops"
        later = {"format": 99, "cafelearn": "9.0"}
        with zipfile.ZipFile(saved) as old, zipfile.ZipFile(path, "w") as new:
            for name in old.namelist():
                new.writestr(name, json.dumps(later) if name == HEADER else old.read(name))
        with pytest.raises(
            ModelFileError, match=r"by cafelearn 9\.0 in format 99; .* format 2"
        ):
            load_model(path)

    def test_no_estimator_inside(self, saved, tmp_path):
        def edit(schema):
            inner = dict(schema["content"]["content"]["p"])
            schema |= {key: schema[key] for key in ("protocol", "_skops_version")} | inner
            schema.pop("__id__", None)

        with pytest.raises(ModelFileError):
            load_model(_edited(saved, tmp_path, edit))


def _edited(saved, tmp_path, edit):
    """A copy of a model file whose schema was changed."""
    path = tmp_path / "edited.skops"
    with zipfile.ZipFile(io.BytesIO(saved.read_bytes())) as old:
        schema = json.loads(old.read("schema.json"))
        edit(schema)
        with zipfile.ZipFile(path, "w") as new:
            for name in old.namelist():
                text = json.dumps(schema) if name == "schema.json" else old.read(name)
                new.writestr(name, text)
    return path


class TestWriting:
    def test_existing_files_need_force(self, saved, model):
        before = saved.read_bytes()
        with pytest.raises(FileExistsError, match="exists already"):
            save_model(model, saved)
        assert saved.read_bytes() == before
        save_model(model, saved, force=True)
        assert load_model(saved).p_ == model.p_

    def test_a_failure_leaves_the_old_file(self, tmp_path):
        path = tmp_path / "a.txt"
        path.write_text("old")

        def fail():
            with atomic_path(path, force=True) as temporary:
                temporary.write_text("half")
                raise RuntimeError

        with pytest.raises(RuntimeError):
            fail()
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]

    def test_a_failure_leaves_the_old_directory(self, tmp_path, monkeypatch):
        path, rename = tmp_path / "parts", Path.rename
        path.mkdir()
        (path / "a.txt").write_text("old")

        def fail(self, target):
            # The new directory cannot be moved into place.
            if target == path and (self / "a.txt").read_text() == "new":
                raise PermissionError
            return rename(self, target)

        def write():
            with atomic_directory(path, ".txt", force=True) as temporary:
                (temporary / "a.txt").write_text("new")
                monkeypatch.setattr(Path, "rename", fail)

        with pytest.raises(PermissionError):
            write()
        assert (path / "a.txt").read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]

    def test_somebody_else_was_faster(self, tmp_path):
        path = tmp_path / "a.txt"

        def write():
            with atomic_path(path) as temporary:
                temporary.write_text("mine")
                path.write_text("theirs")

        with pytest.raises(FileExistsError):
            write()
        assert path.read_text() == "theirs"
        assert list(tmp_path.iterdir()) == [path]

    def test_where_nothing_can_be_written(self, tmp_path):
        with pytest.raises(IsADirectoryError, match="it is a directory"):
            check_output(tmp_path)
        with pytest.raises(FileNotFoundError, match=r"the directory .* does not exist"):
            check_output(tmp_path / "no" / "file.txt")
