"""Model files with inconsistent parts, and attributes set by hand."""

import io
import json
import zipfile
from copy import deepcopy
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA, FastICA, TruncatedSVD
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from cafelearn import CAFE, MinkowskiWeightedKMeans, RangeScaler
from cafelearn.estimators.tabular import TabularCAFE
from cafelearn.files import mixture_checks as checks
from cafelearn.files.checks import SHAPES
from cafelearn.files.models import (
    HEADER,
    TRUSTED,
    ModelFileError,
    _pack,
    load_model,
    save_model,
)
from cafelearn.mixture import Mixture

X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 4)), columns=list("abcd"))
OPTIONS = {"n_components": 2, "n_init": 1, "p": (1.5, 2.0), "random_state": 0}


def mwkmeans():
    return MinkowskiWeightedKMeans(2, n_init=1, random_state=0).fit(X)


def cafe(**options):
    return CAFE(2, **(OPTIONS | {"selection": "likelihood"} | options)).fit(X)


@cache
def fitted_mixture():
    """A CAFE with a mixture of columns of all kinds."""
    rng = np.random.default_rng(1)
    y = np.arange(160) % 2
    table = pd.DataFrame(rng.normal(size=(160, 4)) + 4 * y[:, None], columns=list("abcd"))
    table["b"] += 2 * table["a"]
    table["c"] = np.where(rng.random(160) < 0.4, 0.0, table["c"])  # an atom
    table["d"] = np.where(rng.random(160) < 0.2, np.nan, table["d"])
    table["e"] = rng.normal(scale=0.5, size=160) + 8 * rng.integers(2, size=160)  # two modes
    table[["k=0", "k=1", "k=2"]] = np.eye(3)[rng.integers(2, size=160) + y]
    found = CAFE(2, n_init=1, p=2.0, random_state=0).fit(table)
    assert len(found.mixture_._fitted.columns.marginals.mode_column)
    assert len(found.mixture_._fitted.parameters.block)
    return found


def mixture():
    return deepcopy(fitted_mixture())


def tabular():
    table = X.assign(kind=np.where(np.arange(60) % 3, "a", "b"))
    return TabularCAFE(CAFE(2, selection="likelihood", **OPTIONS)).fit(table)


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


@pytest.mark.parametrize(
    "model",
    [
        mwkmeans,
        tabular,
        lambda: RangeScaler().fit(X),
        mixture,
        lambda: mixture().mixture_,
        lambda: CAFE(1, selection="mixture", **OPTIONS).fit(X),
    ],
)
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


RECORDS = {
    "no dictionary": 3,
    "nothing": {},
    "a number instead of a list": {"scaling": 1},
    "scalings that are numbers": {"scaling": [1.0] * 16},
    "exponents of text": {"p": ["2"] * 16},
    "an objective of text": {"objective": ["small"] * 16},
    "a dictionary in a list": {"score": [{}] * 16},
    "offsets in lists": {"dispersion_offset": [[]] * 16},
    "sizes of text": {"smallest": ["1"] * 16},
    "an agreement that is missing": {"agreement": [None] * 16},
    "another number of rows": {"p": [2.0]},
    "nobody chosen": {"chosen": [False] * 16},
    "all chosen": {"chosen": [True] * 16},
}


@pytest.mark.parametrize("value", RECORDS.values(), ids=RECORDS)
@pytest.mark.parametrize("make", [lambda: cafe(), mixture], ids=["cafe", "mixture"])
def test_damaged_candidates_are_refused(make, value, tmp_path):
    model = make()
    count = len(model.models_)
    if isinstance(value, dict) and value:
        value = {
            name: column[:count] if isinstance(column, list) else column
            for name, column in value.items()
        }
        value = model._candidates | value
    model._candidates = value
    with pytest.raises(ModelFileError, match="candidates_ of CAFE") as raised:
        load(model, tmp_path)
    assert "\n" not in str(raised.value)


ANSWERS = {
    "no dictionary": [1],
    "an unknown verdict": {"verdict": "perhaps"},
    "a verdict in a list": {"verdict": ["none"]},
    "a gain of text": {"gain": "much"},
    "an infinite gain": {"gain": float("inf")},
    "no stability": {"stability": None},
    "clusters that are no list": {"clusters": 1.0},
    "too few clusters": {"clusters": [0.5]},
    "clusters of text": {"clusters": ["a", "b"]},
    "a stability above 1": {"clusters": [1.0, 7.0]},
    "isolated rows of text": {"isolated": "few"},
    "more": {"more": 1},
}


@pytest.mark.parametrize("value", ANSWERS.values(), ids=ANSWERS)
def test_damaged_answers_are_refused(value, tmp_path):
    model = mixture()
    model._answer = model._answer | value if isinstance(value, dict) else value
    with pytest.raises(ModelFileError, match="the answer of CAFE") as raised:
        load(model, tmp_path)
    assert "\n" not in str(raised.value)


def state_changes():
    """Yield places in the state of a mixture, and how to damage them."""
    tables = {
        ("columns",): checks.COLUMNS,
        ("columns", "powers"): checks.POWERS,
        ("columns", "marginals"): checks.MARGINALS,
        ("parameters",): checks.PARAMETERS,
    }
    yield ("columns",), "missing", None
    yield ("columns",), "text", lambda value: "text"
    for table, arrays in tables.items():
        for name, (kind, _, _) in arrays.items():
            where = (*table, name)
            yield where, "missing", None
            yield where, "text", lambda value: "text"
            yield where, "longer", lambda value: np.concatenate([value, value[:1]])
            yield where, "flat", lambda value: value[None]
            yield where, "text inside", lambda value: value.astype(str)
            if kind == "f" and name not in ("event_value", "cuts"):
                yield where, "NaN", lambda value: np.full_like(value, np.nan)
                yield where, "infinite", lambda value: np.full_like(value, np.inf)
            if kind == "i":
                yield where, "beyond", lambda value: np.full_like(value, 99)
                yield where, "negative", lambda value: value - 100
            if name in POSITIVE:
                yield where, "zero", np.zeros_like
    yield ("parameters", "covariance"), "negative", lambda value: -value
    yield ("parameters", "log_weight"), "no sum", lambda value: value - 3
    yield ("parameters", "log_ratio"), "no sum", lambda value: value + 3
    yield ("parameters", "mean"), "overflow", lambda value: value + 1e300
    yield ("parameters", "n_parameters"), "infinite", lambda value: float("inf")
    yield ("parameters", "log_prior"), "NaN", lambda value: float("nan")
    yield ("columns", "event_share"), "no sum", lambda value: value / 3
    yield ("columns", "marginals", "mode_share"), "no sum", lambda value: value / 3
    yield ("columns", "marginals", "cuts"), "not sorted", lambda value: -value
    yield ("columns", "place"), "repeated", np.zeros_like
    yield ("columns", "low"), "high", lambda value: value + 1e9
    yield ("family", "covariance"), "unknown", lambda value: "round"
    yield ("family", "tails"), "number", lambda value: 3


POSITIVE = ("units", "width", "scale", "deviation", "variance")
CHANGES = list(state_changes())


@pytest.mark.parametrize("inside", [True, False], ids=["in a CAFE", "alone"])
@pytest.mark.parametrize(
    ("where", "change"),
    [(where, change) for where, _, change in CHANGES],
    ids=[f"{'.'.join(where)}-{word}" for where, word, _ in CHANGES],
)
def test_damaged_mixtures_are_refused(where, change, inside, tmp_path):
    model = mixture()
    table = model.mixture_._state
    *path, name = where
    for part in path:
        table = table[part]
    if change is None:
        del table[name]
    else:
        table[name] = change(table[name])
    with pytest.raises(ModelFileError, match="the mixture is damaged") as raised:
        load(model if inside else model.mixture_, tmp_path)
    assert "\n" not in str(raised.value)


MIXTURES = {
    "no state": ("_state", None),
    "a state of text": ("_state", "text"),
    "narrow means": ("means_", np.zeros((2, 1))),
    "more means": ("means_", np.zeros((3, 8))),
    "means that are NaN": ("means_", np.full((2, 8), np.nan)),
    "no shares": ("weights_", np.zeros(2)),
    "more components": ("n_components", 3),
    "another width": ("n_features_in_", 5),
    "labels beyond": ("labels_", np.full(160, 2, dtype=np.int32)),
    "a spread of 0": ("_spread", np.zeros(8)),
    "no centre": ("_center", None),
    "peaks of others": ("_peaks", np.zeros(3)),
    "a scale of text": ("_root_scale", "1"),
    "columns of text": ("_n_varying", "1"),
    "infinite iterations": ("n_iter_", float("inf")),
    "a bound that is NaN": ("lower_bound_", float("nan")),
    "groups of others": ("feature_groups_", np.array(["a"])),
    "an unknown covariance": ("covariance", "round"),
}


@pytest.mark.parametrize(("attribute", "value"), MIXTURES.values(), ids=MIXTURES)
def test_mixtures_with_attributes_that_do_not_fit_are_refused(attribute, value, tmp_path):
    model = mixture()
    setattr(model.mixture_, attribute, value)
    for damaged in (model, model.mixture_):
        with pytest.raises(ModelFileError) as raised:
            load(damaged, tmp_path)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("mixture_", None),
        ("mixture_", RangeScaler().fit(X)),
        ("selection", "likelihood"),
        ("selection", "agreement"),
        ("rescaling", "distances"),
        ("extractor_", PCA(1).fit(X)),
        ("extractor", "pca"),
        ("n_components", 2),
    ],
    ids=str,
)
def test_cafes_with_mixtures_that_do_not_fit_are_refused(attribute, value, tmp_path):
    model = mixture().set_params(rescaling="memberships")
    setattr(model, attribute, value)
    with pytest.raises(ModelFileError) as raised:
        load(model, tmp_path)
    assert "\n" not in str(raised.value)


def test_a_mixture_of_another_cafe_is_refused(tmp_path):
    model = mixture()
    model.mixture_ = Mixture(3, random_state=0).fit(
        np.random.default_rng(0).normal(size=(90, 8))
    )
    with pytest.raises(ModelFileError, match="does not match its feature_weights_"):
        load(model, tmp_path)


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
