"""The packaged data sets against their published shapes, corrupt against its definition."""

import csv
import hashlib
import importlib.util
import math
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

from cafelearn import RangeScaler
from cafelearn.datasets import corrupt, load, names

DATA = files("cafelearn.datasets") / "data"

# Rows, columns after one-hot encoding, rows per class in the order of the codes.
EXPECTED = {
    "australian_credit": (690, 42, [383, 307]),
    "balance_scale": (625, 20, [288, 49, 288]),
    "breast_cancer": (683, 9, [444, 239]),
    "car_evaluation": (1728, 21, [1210, 384, 69, 65]),
    "ecoli": (336, 7, [143, 77, 52, 35, 20, 5, 2, 2]),
    "glass": (214, 9, [70, 76, 17, 13, 9, 29]),
    "ionosphere": (351, 33, [126, 225]),
    "iris": (150, 4, [50, 50, 50]),
    "teaching_assistant": (151, 56, [49, 50, 52]),
}
CATEGORICAL = {
    "australian_credit": ["a1", "a4", "a5", "a6", "a8", "a9", "a11", "a12"],
    "balance_scale": ["left_weight", "left_distance", "right_weight", "right_distance"],
    "car_evaluation": ["buying", "maint", "doors", "persons", "lug_boot", "safety"],
    "teaching_assistant": ["native_speaker", "instructor", "course", "semester"],
}


def raw_rows(name):
    with (DATA / f"{name}.csv").open("r", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_names():
    assert names() == tuple(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_shapes_and_classes(name):
    n_rows, n_columns, counts = EXPECTED[name]
    dataset = load(name)
    assert dataset.name == name
    assert dataset.data.shape == (n_rows, n_columns)
    assert dataset.data.dtype == np.float64
    assert np.isfinite(dataset.data).all()
    assert np.ptp(dataset.data, axis=0).min() > 0
    assert np.issubdtype(dataset.target.dtype, np.integer)
    assert np.bincount(dataset.target).tolist() == counts
    assert len(set(dataset.target_names)) == len(counts)
    assert len(set(dataset.feature_names)) == n_columns
    assert dataset.categorical_features == CATEGORICAL.get(name, [])
    assert "UCI" in dataset.description
    assert "CC BY 4.0" in dataset.description


@pytest.mark.parametrize("name", EXPECTED)
def test_frame_holds_data_and_target(name):
    dataset = load(name)
    assert list(dataset.frame.columns) == [*dataset.feature_names, "target"]
    np.testing.assert_array_equal(dataset.frame[dataset.feature_names], dataset.data)
    np.testing.assert_array_equal(dataset.frame["target"], dataset.target)


@pytest.mark.parametrize("name", EXPECTED)
def test_every_value_is_the_one_in_the_file(name):
    dataset = load(name)
    rows = raw_rows(name)
    assert [dataset.target_names[code] for code in dataset.target] == [
        row["target"] for row in rows
    ]
    for column, feature in enumerate(dataset.feature_names):
        attribute, _, category = feature.partition("=")
        values = [row[attribute] for row in rows]
        if attribute in dataset.categorical_features:
            expected = [float(value == category) for value in values]
        else:
            assert feature == attribute
            expected = [float(value) for value in values]
        assert dataset.data[:, column].tolist() == expected


@pytest.mark.parametrize("name", CATEGORICAL)
def test_binary_columns_of_an_attribute_sum_to_one(name):
    dataset = load(name)
    for attribute in dataset.categorical_features:
        columns = [
            column
            for column, feature in enumerate(dataset.feature_names)
            if feature.startswith(f"{attribute}=")
        ]
        assert len(columns) == len({row[attribute] for row in raw_rows(name)})
        assert columns == list(range(columns[0], columns[-1] + 1))
        np.testing.assert_array_equal(np.unique(dataset.data[:, columns]), [0, 1])
        np.testing.assert_array_equal(dataset.data[:, columns].sum(axis=1), 1)


def test_balance_scale_follows_its_law():
    for row in raw_rows("balance_scale"):
        left = int(row["left_weight"]) * int(row["left_distance"])
        right = int(row["right_weight"]) * int(row["right_distance"])
        law = "balanced" if left == right else "left" if left > right else "right"
        assert row["target"] == law


def test_iris_is_the_one_of_scikit_learn():
    ours, theirs = load("iris"), load_iris()
    np.testing.assert_array_equal(ours.data, theirs.data)
    np.testing.assert_array_equal(ours.target, theirs.target)
    assert ours.target_names == theirs.target_names.tolist()


def test_checksums_of_the_packaged_files():
    listed = dict(
        reversed(line.split("  ")) for line in (DATA / "SHA256SUMS").read_text().splitlines()
    )
    assert set(listed) == {f"{name}.csv" for name in EXPECTED}
    for file, expected in listed.items():
        assert hashlib.sha256((DATA / file).read_bytes()).hexdigest() == expected, file


def test_attribution_names_every_file():
    text = (DATA / "ATTRIBUTION.md").read_text(encoding="utf-8")
    assert "CC BY 4.0" in text
    for name in EXPECTED:
        assert f"`{name}.csv`" in text


def test_loads_are_independent():
    first = load("iris")
    first.data[:] = 0
    first.frame.iloc[:, :] = 0
    assert load("iris").data.min() > 0
    dataset = load("iris")
    dataset.data[:] = 0
    assert dataset.frame[dataset.feature_names].to_numpy().min() > 0


@pytest.mark.parametrize("name", ["wine", "Iris", "", None, 3, ["iris"]])
def test_unknown_name(name):
    with pytest.raises(ValueError, match=r"load needs .*australian_credit, .*iris.*, got"):
        load(name)


@pytest.fixture(scope="module")
def script():
    path = Path(__file__).parents[1] / "scripts" / "build_datasets.py"
    spec = importlib.util.spec_from_file_location("build_datasets", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_script_rebuilds_iris(script):
    assert script.build_iris() == (DATA / "iris.csv").read_bytes()


def test_script_knows_the_other_sets(script):
    assert sorted([*script.SOURCES, "iris"]) == sorted(EXPECTED)


def test_script_reads_both_formats(script):
    text = "@relation r\r\n@data\r\n1.0, -0.0070, b\r\n2.0, 0.5, a\r\n"
    frame = script.read_table(text, ["first", "second", "target"])
    assert script.write_table(frame) == b"first,second,target\n1,-0.007,b\n2,0.5,a\n"
    frame = script.read_table("ID1  0.50   cp\nID2  0.25   im\n", [None, "score", "target"])
    assert script.write_table(frame) == b"score,target\n0.5,cp\n0.25,im\n"


def test_script_refuses_missing_values(script):
    with pytest.raises(ValueError, match="expected 3 columns"):
        script.read_table("1,2\n", ["first", "second", "target"])
    with pytest.raises(ValueError, match="complete rows"):
        script.write_table(pd.DataFrame({"first": ["1", "?"], "target": ["a", "b"]}))
    with pytest.raises(ValueError, match="known classes"):
        script.write_table(pd.DataFrame({"first": ["1", "2"], "target": ["a", None]}))


# The noise.


def small(n_rows=60, n_features=5, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_features)), np.arange(n_rows) % n_classes


@pytest.mark.parametrize(
    ("level", "n_pairs"),
    # Of 20 pairs. 0.125 and 0.225 are the halves: 2.5 and 4.5.
    [
        (0, 1),
        (0.01, 1),
        (0.05, 1),
        (0.12, 2),
        (0.125, 3),
        (0.2, 4),
        (0.225, 5),
        (0.4, 8),
        (1, 20),
    ],
)
def test_number_of_pairs(level, n_pairs):
    X, y = small()
    _, pairs = corrupt(X, y, level, 1.0, random_state=0)
    assert pairs.shape == (4, 5)
    assert pairs.dtype == bool
    assert pairs.sum() == n_pairs


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("level", [0.2, 0.4])
def test_only_the_pairs_change(name, level):
    dataset = load(name)
    X, y = dataset.data, dataset.target
    before = X.copy()
    noisy, pairs = corrupt(X, y, level, 2.0, random_state=1)
    np.testing.assert_array_equal(X, before)
    assert not np.shares_memory(X, noisy)
    k, m = len(dataset.target_names), X.shape[1]
    # None of the paper's cells lies on a half.
    assert pairs.sum() == round(level * k * m)
    for l in range(k):
        for v in range(m):
            assert ((noisy[y == l, v] != X[y == l, v]) == pairs[l, v]).all()


@pytest.mark.parametrize("scale", [0.5, 1.0, 5.0])
def test_noise_is_normal_with_the_scale(scale):
    X, y = small(n_rows=40_000, n_features=3, n_classes=2)
    noisy, pairs = corrupt(X, y, 1.0, scale, random_state=0)
    noise = noisy - X
    for l, v in np.argwhere(pairs):
        sample = noise[y == l, v]
        # Four standard errors of a mean and of a standard deviation.
        assert abs(sample.mean()) < 4 * scale / math.sqrt(len(sample))
        assert abs(sample.std() / scale - 1) < 4 / math.sqrt(2 * len(sample))
        assert stats.kstest(sample / scale, "norm").pvalue > 1e-3
    for l in range(2):
        correlation = np.corrcoef(noise[y == l], rowvar=False)[np.triu_indices(3, 1)]
        assert np.abs(correlation).max() < 4 / math.sqrt(20_000)


def test_pairs_are_chosen_uniformly():
    X, y = small(n_rows=8, n_features=3, n_classes=2)
    n_seeds = 3000
    counts = np.zeros((2, 3))
    together = np.zeros((6, 6))
    for seed in range(n_seeds):
        _, pairs = corrupt(X, y, 1 / 3, 1.0, random_state=seed)
        counts += pairs
        together += np.outer(pairs.ravel(), pairs.ravel())
    # Each of the 15 sets of two pairs is equally likely.
    sets = together[np.triu_indices(6, 1)]
    assert sets.sum() == n_seeds
    assert stats.chisquare(sets).pvalue > 1e-3
    np.testing.assert_allclose(counts / n_seeds, 1 / 3, atol=4 * math.sqrt(2 / 9 / n_seeds))


def test_scale_does_not_change_the_pairs_nor_the_draws():
    X, y = small()
    one, pairs_one = corrupt(X, y, 0.4, 1.0, random_state=3)
    five, pairs_five = corrupt(X, y, 0.4, 5.0, random_state=3)
    np.testing.assert_array_equal(pairs_one, pairs_five)
    np.testing.assert_allclose(five - X, 5 * (one - X), atol=1e-12)


def test_scale_zero_adds_nothing():
    X, y = small()
    noisy, pairs = corrupt(X, y, 0.4, 0.0, random_state=0)
    np.testing.assert_array_equal(noisy, X)
    assert pairs.sum() == 8


def test_without_jitter_the_draws_are_those_of_the_paper():
    """Pinned: the data of the reproduction."""
    dataset = load("iris")
    noisy, _ = corrupt(dataset.data, dataset.target, 0.4, 1.0, random_state=0)
    again, _ = corrupt(dataset.data, dataset.target, 0.4, 1.0, random_state=0, jitter=0.0)
    np.testing.assert_array_equal(noisy, again)
    digest = hashlib.sha256(noisy.round(9).tobytes()).hexdigest()
    assert digest == "5ce7da5ee162d21b3186f514d076c218656a4cfb81b119143c27ded1352224e7"
    stream = np.random.default_rng(0)
    corrupt(dataset.data, dataset.target, 0.4, 1.0, stream)
    expected = np.random.default_rng(0)
    expected.choice(12, size=5, replace=False)
    expected.standard_normal(5 * 50)
    assert stream.random() == expected.random()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_jitter_by_its_definition(dtype):
    X, y = small(n_rows=20_000, n_features=3, n_classes=2)
    X = (X.round() * [1, 10, 0] + [0, 0, 7]).astype(dtype)
    plain, pairs = corrupt(X, y, 0.4, 2.0, random_state=3)
    noisy, same = corrupt(X, y, 0.4, 2.0, random_state=3, jitter=0.5)
    assert noisy.dtype == dtype
    np.testing.assert_array_equal(pairs, same)
    moved = (noisy - plain) / 0.5 / np.maximum(np.ptp(X, axis=0), 1e-9)
    assert np.abs(moved).max() <= 0.5 + 1e-5
    # A constant feature has no range, so it has no jitter either.
    np.testing.assert_array_equal(moved[:, 2], 0)
    for v in range(2):
        assert stats.kstest(moved[:, v], stats.uniform(-0.5, 1).cdf).pvalue > 1e-3
    assert abs(np.corrcoef(moved[:, 0], moved[:, 1])[0, 1]) < 4 / math.sqrt(20_000)


@pytest.mark.parametrize("name", EXPECTED)
def test_jitter_stops_the_leak(name):
    """Which values of a row are unique tells nothing about its class."""
    dataset = load(name)
    X = RangeScaler().fit_transform(dataset.data)

    def leak(jitter):
        noisy, _ = corrupt(X, dataset.target, 0.4, 1.0, random_state=0, jitter=jitter)
        shared = [pd.Series(column).duplicated(keep=False) for column in noisy.T]
        patterns = np.unique(np.array(shared).T, axis=0, return_inverse=True)[1].ravel()
        return adjusted_rand_score(dataset.target, patterns)

    assert leak(0.02) == pytest.approx(0, abs=1e-3)
    if name in ("balance_scale", "car_evaluation", "breast_cancer"):
        assert leak(0.0) > 0.95


def test_seeds():
    X, y = small()

    def run(random_state):
        noisy, pairs = corrupt(X, y, 0.4, 1.0, random_state=random_state)
        return noisy.tobytes() + pairs.tobytes()

    assert run(5) == run(5) == run(np.int64(5)) == run(np.random.SeedSequence(5))
    assert run(5) == run(np.random.default_rng(np.random.SeedSequence(5)))
    assert run(5) != run(6)
    assert run(None) != run(None)
    assert run(np.random.RandomState(0)) == run(np.random.RandomState(0))
    sequence = np.random.SeedSequence(7)
    assert run(sequence) == run(sequence)
    for stream in (np.random.default_rng(0), np.random.RandomState(0)):
        assert run(stream) != run(stream)


def test_global_state_is_left_alone():
    X, y = small()
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    corrupt(X, y, 0.4, 1.0, random_state=0)
    corrupt(X, y, 0.4, 1.0)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_any_labels():
    X, y = small()
    expected, pairs = corrupt(X, y, 0.4, 1.0, random_state=0)
    letters = np.array(["ant", "bee", "cat", "dog"])[y]
    for labels in (letters, letters.astype(object), pd.Series(letters), y * 10 - 7, y / 2):
        noisy, found = corrupt(X, labels, 0.4, 1.0, random_state=0)
        np.testing.assert_array_equal(noisy, expected)
        np.testing.assert_array_equal(found, pairs)


def test_kinds_of_data():
    X, y = small()
    expected, _ = corrupt(X, y, 0.4, 1.0, random_state=0)
    for same in (X.tolist(), pd.DataFrame(X), np.asfortranarray(X), X.astype(object)):
        noisy, _ = corrupt(same, y, 0.4, 1.0, random_state=0)
        assert type(noisy) is np.ndarray
        np.testing.assert_array_equal(noisy, expected)
    single, _ = corrupt(X.astype(np.float32), y, 0.4, 1.0, random_state=0)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=1e-5)
    whole, pairs = corrupt(np.ones((60, 5), dtype=int), y, 0.4, 1.0, random_state=0)
    assert whole.dtype == np.float64
    np.testing.assert_array_equal(whole != 1, pairs[y])


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"noise_level": 1.4}, ValueError, "noise_level between 0 and 1, got 1.4."),
        ({"noise_level": np.float64(-0.1)}, ValueError, "between 0 and 1, got -0.1."),
        ({"noise_level": math.nan}, ValueError, "between 0 and 1, got nan."),
        ({"noise_level": "0.2"}, TypeError, "noise_level to be a number, got '0.2'."),
        ({"noise_level": True}, TypeError, "noise_level to be a number, got True."),
        ({"noise_scale": -1}, ValueError, "a finite noise_scale >= 0, got -1."),
        ({"noise_scale": math.inf}, ValueError, "a finite noise_scale >= 0, got inf."),
        ({"noise_scale": None}, TypeError, "noise_scale to be a number, got None."),
        ({"jitter": -0.1}, ValueError, "a finite jitter >= 0, got -0.1."),
        ({"jitter": math.nan}, ValueError, "a finite jitter >= 0, got nan."),
        ({"jitter": "0.02"}, TypeError, "jitter to be a number, got '0.02'."),
        ({"y": np.zeros(59)}, ValueError, "one label per row of X, got 59 labels for 60 rows."),
        ({"y": np.zeros((60, 1))}, ValueError, "a one-dimensional y, got 2 dimension(s)."),
        ({"y": [None] * 60}, ValueError, "a label for every row, got missing values in y."),
        ({"y": [math.nan] * 60}, ValueError, "a label for every row, got missing values in y."),
        ({"y": np.array([1, "a"] * 30, dtype=object)}, ValueError, "labels that can be sorted"),
        ({"X": np.zeros(60)}, ValueError, "a two-dimensional X, got 1 dimension(s)."),
        ({"X": np.zeros((60, 0))}, ValueError, "one row and one feature, got shape (60, 0)."),
        ({"X": np.full((60, 2), "a")}, ValueError, "a numeric X, got dtype <U1."),
        ({"X": np.full((60, 2), "a", dtype=object)}, ValueError, "a numeric X, but could not"),
        ({"X": np.zeros((60, 2), dtype=complex)}, ValueError, "a numeric X, got dtype complex"),
        ({"X": np.full((60, 2), math.nan)}, ValueError, "a finite X, got missing or infinite"),
        ({"X": sparse.eye_array(60, format="csr")}, TypeError, "a dense X, got a sparse"),
        ({"random_state": -1}, ValueError, "random_state to be a non-negative int"),
        ({"random_state": "seed"}, ValueError, "or None, got 'seed'."),
    ],
)
def test_bad_input(change, error, message):
    X, y = small()
    arguments = {"X": X, "y": y, "noise_level": 0.2, "noise_scale": 1.0} | change
    with pytest.raises(error) as caught:
        corrupt(**arguments)
    assert str(caught.value).startswith("corrupt needs ")
    assert message in str(caught.value)
