"""Model files with inconsistent parts, and attributes set by hand."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA, FastICA, TruncatedSVD
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from cafelearn import CAFE, MinkowskiWeightedKMeans, RangeScaler
from cafelearn._model_checks import SHAPES
from cafelearn._tabular import TabularCAFE
from cafelearn.persistence import (
    HEADER,
    TRUSTED,
    ModelFileError,
    _pack,
    load_model,
    save_model,
)

X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 4)), columns=list("abcd"))
OPTIONS = {"n_components": 2, "n_init": 1, "p": (1.5, 2.0), "random_state": 0}


def mwkmeans():
    return MinkowskiWeightedKMeans(2, n_init=1, random_state=0).fit(X)


def cafe(**options):
    return CAFE(2, **(OPTIONS | options)).fit(X)


def tabular():
    table = X.assign(kind=np.where(np.arange(60) % 3, "a", "b"))
    return TabularCAFE(CAFE(2, **OPTIONS)).fit(table)


def load(model, tmp_path):
    """Pack a model as it is, and load it."""
    path = tmp_path / "model.skops"
    path.write_bytes(_pack(model))
    return load_model(path)


def test_every_trusted_estimator_has_its_shapes():
    estimators = {name.rpartition(".")[2] for name in TRUSTED if "numpy" not in name}
    assert estimators - {"bool", "dict", "float", "int", "list", "str", "tuple"} == set(SHAPES)


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize(
    "options",
    [
        *({"extractor": name} for name in ("pca", "nmf", "ica", "fastica", "autoencoder")),
        {"extractor": TruncatedSVD(2), "n_components": None},
        {"extractor": make_pipeline(StandardScaler(), FastICA(2)), "n_components": None},
        *({"scaling": scaler} for scaler in (MinMaxScaler(), MaxAbsScaler(), RobustScaler())),
        {"scaling": StandardScaler(with_std=False)},
        {"scaling": None},
    ],
    ids=str,
)
def test_sound_models_are_loaded(options, tmp_path):
    model = cafe(**options)
    np.testing.assert_array_equal(load(model, tmp_path).transform(X), model.transform(X))


@pytest.mark.parametrize("model", [mwkmeans, tabular, lambda: RangeScaler().fit(X)])
def test_other_sound_models_are_loaded(model, tmp_path):
    load(model(), tmp_path)


BAD = {
    "many centres": ("cluster_centers_", np.zeros((2_000_000, 4))),
    "narrow centres": ("cluster_centers_", np.zeros((2, 1))),
    "no centres": ("cluster_centers_", np.zeros((0, 4))),
    "flat centres": ("cluster_centers_", np.zeros(8)),
    "centres of integers": ("cluster_centers_", np.zeros((2, 4), dtype=int)),
    "centres of text": ("cluster_centers_", np.full((2, 4), "a")),
    "centres in a list": ("cluster_centers_", [[0.0] * 4] * 2),
    "centres that are NaN": ("cluster_centers_", np.full((2, 4), np.nan)),
    "infinite centres": ("cluster_centers_", np.full((2, 4), np.inf)),
    "narrow weights": ("feature_weights_", np.ones((2, 1))),
    "negative weights": ("feature_weights_", -np.ones((2, 4))),
    "a width of nothing": ("n_features_in_", 0),
    "another width": ("n_features_in_", 7),
    "a width of text": ("n_features_in_", "4"),
    "no exponent": ("p", "2"),
    "an exponent of 1": ("p", 1.0),
    "more clusters": ("n_clusters", 5),
    "a scale of 0": ("_scale", 0.0),
    "an infinite scale": ("_scale", float("inf")),
    "labels beyond": ("labels_", np.full(60, 9, dtype=np.int32)),
    "negative labels": ("labels_", np.full(60, -1, dtype=np.int32)),
    "names of others": ("feature_names_in_", np.array(["a"], dtype=object)),
    "distances of gaps": ("_typical", np.ones((1, 1))),
    "negative distances of gaps": ("_typical", -np.ones((2, 4))),
    "dispersions that are NaN": ("dispersions_", np.full((2, 4), np.nan)),
}


@pytest.mark.parametrize(("attribute", "value"), BAD.values(), ids=BAD)
def test_arrays_that_do_not_fit_are_refused(attribute, value, tmp_path):
    model = mwkmeans()
    setattr(model, attribute, value)
    with pytest.raises(ModelFileError) as raised:
        load(model, tmp_path)
    assert "\n" not in str(raised.value)
    inside = cafe(p=2.0)
    setattr(inside.model_, attribute, value)
    with pytest.raises(ModelFileError):
        load(inside, tmp_path)


PARTS = {
    "scaler": ("scaler_", RangeScaler().fit(X[["a"]])),
    "scaler of text": ("scaler_", "range"),
    "extractor": ("extractor_", PCA(1).fit(X[["a", "b"]])),
    "no extractor": ("extractor_", None),
    "model": ("model_", RangeScaler().fit(X)),
    "other model": ("model_", MinkowskiWeightedKMeans(2, n_init=1).fit(X)),
    "models": ("models_", [1, 2]),
    "agreement": ("agreement_", np.eye(9)),
    "weights": ("feature_weights_", np.ones((3, 4))),
}


@pytest.mark.parametrize(("attribute", "value"), PARTS.values(), ids=PARTS)
def test_parts_that_do_not_fit_are_refused(attribute, value, tmp_path):
    model = cafe()
    setattr(model, attribute, value)
    with pytest.raises(ModelFileError):
        load(model, tmp_path)
    inside = tabular()
    setattr(inside.cafe_, attribute, value)
    with pytest.raises(ModelFileError):
        load(inside, tmp_path)


def test_a_scaler_of_range_zero_is_refused(tmp_path):
    scaler = RangeScaler().fit(X)
    scaler.range_ = np.zeros(4)
    with pytest.raises(ModelFileError, match="range_ of RangeScaler has values that are not"):
        load(scaler, tmp_path)


def test_an_encoder_of_other_columns_is_refused(tmp_path):
    model = tabular()
    model.encoder_._names_out = model.encoder_._names_out[:-1]
    with pytest.raises(ModelFileError, match="TableEncoder has 5 features"):
        load(model, tmp_path)


def test_an_encoder_of_dates_without_treatment_is_refused(tmp_path):
    model = tabular()
    encoder = model.encoder_
    encoder.dates_ = [encoder.numbers_[0]]
    del encoder._treatments[encoder.numbers_[0]]
    with pytest.raises(ModelFileError, match="treatments_ of TableEncoder are damaged"):
        load(model, tmp_path)


def rewritten(path, change):
    """Write a model file anew, each member as `change(name, data)` says."""
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as old:
        members = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, data in members.items():
            new.writestr(name, change(name, data))
    return path


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999, 4), }",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, ((((((((( }",
        b"{'descr': '|O', 'fortran_order': False, 'shape': (2, 4), }",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (-2, -4), }",
        b"'",
        b"",
    ],
)
def test_damaged_array_headers_are_refused(header, tmp_path):
    path = save_model(mwkmeans(), tmp_path / "model.skops")

    def change(name, data):
        if not name.endswith(".npy"):
            return data
        text = header.ljust(117) + b"\n"
        return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(64)

    with pytest.raises(ModelFileError) as raised:
        load_model(rewritten(path, change))
    assert "\n" not in str(raised.value)


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path):
    path = save_model(mwkmeans(), tmp_path / "model.skops")

    def change(name, data):
        if not name.endswith(".npy"):
            return data
        buffer = io.BytesIO()
        np.save(buffer, np.zeros(2**22))
        return buffer.getvalue()

    with pytest.raises(ModelFileError, match=r"would unpack to .* bytes"):
        load_model(rewritten(path, change))


def test_an_array_by_another_name_is_checked(tmp_path):
    """The description names the member of an array, and any name would do."""
    path = save_model(mwkmeans(), tmp_path / "model.skops")
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as old:
        members = {name: old.read(name) for name in old.namelist()}
    name = next(name for name in members if name.endswith(".npy"))
    other = name.replace(".npy", ".dat")
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999, 4), }".ljust(117)
    members["schema.json"] = members["schema.json"].replace(name.encode(), other.encode())
    members[other] = b"\x93NUMPY\x01\x00v\x00" + header + b"\n" + bytes(64)
    del members[name]
    with zipfile.ZipFile(path, "w") as new:
        for name, data in members.items():
            new.writestr(name, data)
    with pytest.raises(
        ModelFileError, match=r"\.dat is damaged: its size does not match its header"
    ):
        load_model(path)


def test_an_endless_file_is_not_read(tmp_path):
    if not Path("/dev/zero").exists():
        pytest.skip("needs /dev/zero")
    with pytest.raises(ModelFileError, match="it is not a skops file"):
        load_model("/dev/zero")


def test_a_long_description_is_refused(tmp_path):
    path = tmp_path / "model.skops"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(HEADER, json.dumps({"format": 1, "cafelearn": "0"}))
        archive.writestr("schema.json", "[" + "1," * 2**24 + "1]")
    with pytest.raises(ModelFileError, match=r"schema.json has .* bytes, more than"):
        load_model(path)


def test_labels_that_compress_well_are_saved_all_the_same(tmp_path):
    model = mwkmeans()
    model.labels_ = np.zeros(40_000_000, dtype=np.int32)
    again = load_model(save_model(model, tmp_path / "model.skops"))
    assert again.labels_.shape == (40_000_000,)


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("cluster_centers_", np.zeros((2_000_000, 4)), "of the same shape"),
        ("cluster_centers_", np.zeros((2, 1)), "of the same shape"),
        ("feature_weights_", np.ones((2, 1)), "of the same shape"),
        ("cluster_centers_", np.zeros(8), "must be a matrix"),
        ("cluster_centers_", np.full((2, 4), np.nan), "must be finite"),
        ("cluster_centers_", np.full((2, 4), "a"), "must be numbers"),
        ("feature_weights_", -np.ones((2, 4)), "must not be negative"),
        ("p", 0.5, "out of range"),
        ("_scale", 0.0, "out of range"),
    ],
)
def test_attributes_set_by_hand_are_checked(attribute, value, message):
    model = mwkmeans()
    setattr(model, attribute, value)
    for method in (model.predict, model.transform, model.score):
        with pytest.raises(ValueError, match=message):
            method(X)


def test_centres_and_weights_set_by_hand_need_the_width_of_the_rows():
    model = mwkmeans()
    model.cluster_centers_, model.feature_weights_ = np.zeros((2, 9)), np.ones((2, 9))
    with pytest.raises(ValueError, match="rows of 4 features cannot be placed"):
        model.predict(X)
