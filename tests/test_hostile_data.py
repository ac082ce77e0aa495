"""Data, weights and rows at the ends of the floating-point range: no hang, no crash, no NaN."""

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from cafelearn import CAFE, MinkowskiWeightedKMeans, RangeScaler
from cafelearn.diagnosis import DiagnosisWarning

# A hang is a failure, and so is a crash; the first fit may have to compile.
SECONDS = 300
HEADER = """
import warnings
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from cafelearn import CAFE, MinkowskiWeightedKMeans
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)

def sound(model, X):
    for name in ("cluster_centers_", "feature_weights_", "inertia_", "dispersions_"):
        assert np.isfinite(getattr(model, name)).all(), name
    assert set(model.labels_) <= set(range(model.n_clusters))
    assert (model.predict(X) == model.labels_).all()
"""


def run(code):
    """Run code in a process of its own, within a limit of time."""
    done = subprocess.run(
        [sys.executable, "-c", HEADER + code],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        cwd=Path(__file__).parent,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_subnormal_range_counts_as_constant(dtype):
    cell = {"float64": 1e-310, "float32": 1e-39}[dtype]
    run(f"""
X = np.c_[rng.normal(size=(60, 2)), np.zeros(60)].astype({dtype!r})
plain = X.copy()
X[7, 2] = {cell}
for p in (1.1, 1.5, 2, 3, 50):
    for init in ("random", "k-means++", "anomalous"):
        for offset in ("mean", "fixed", 0):
            options = dict(p=p, init=init, n_init=3, dispersion_offset=offset, random_state=0)
            model = MinkowskiWeightedKMeans(3, **options).fit(X)
            sound(model, X)
            other = MinkowskiWeightedKMeans(3, **options).fit(plain)
            assert (model.labels_ == other.labels_).all()
""")


def test_cafe_ends_on_a_column_with_one_subnormal_cell():
    run("""
X = np.c_[rng.normal(size=(60, 2)), np.zeros(60)]
X[7, 2] = 1e-310
cafe = CAFE(3, n_init=3, random_state=0).fit(X)
assert np.isfinite(cafe.transform(X)).all()
""")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_members_of_a_cluster_may_have_a_subnormal_range(dtype):
    cell = {"float64": 5e-324, "float32": 1e-45}[dtype]
    run(f"""
X = np.repeat([0.0, 1.0], 40)[:, None].astype({dtype!r})
X[:5] = {cell}
for p in (1.1, 1.5, 2, 3, 50):
    sound(MinkowskiWeightedKMeans(2, p=p, n_init=3, random_state=0).fit(X), X)
""")


@pytest.mark.parametrize("swift", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_ranges_beyond_the_largest_float(dtype, swift):
    largest, n_rows = np.finfo(dtype).max, 6000 if swift else 60
    run(f"""
X = rng.normal(size=({n_rows}, 3)).astype({dtype!r})
X[:, 2] = np.where(X[:, 2] > 0, {0.97 * largest!r}, {-0.97 * largest!r})
X[:5, 2] /= 3
for p in (1.5, 2, 3, 50):
    model = MinkowskiWeightedKMeans(3, p=p, n_init=2, dispersion_offset=0, random_state=0)
    model.fit(X)
    assert np.isfinite(model.cluster_centers_).all()
    assert np.isfinite(model.feature_weights_).all()
    assert (model.predict(X) == model.labels_).all()
    assert np.isfinite(model.transform(X)).any(axis=1).all()
""")


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("p", [1.5, 2.0, 3.0, 40.0])
def test_extreme_units_change_nothing(dtype, p):
    """Powers of two near the ends of the format give the fit of ordinary data."""
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(80, 3)) + 4 * rng.integers(0, 3, (80, 1))).astype(dtype)
    exponents = (-900, 1018) if dtype == np.float64 else (-90, 122)
    plain = MinkowskiWeightedKMeans(3, p=p, n_init=3, random_state=0).fit(X)
    for exponent in exponents:
        scaled = np.ldexp(X, exponent)
        model = MinkowskiWeightedKMeans(3, p=p, n_init=3, random_state=0).fit(scaled)
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        np.testing.assert_allclose(model.feature_weights_, plain.feature_weights_, rtol=1e-5)
        centers = np.ldexp(plain.cluster_centers_, exponent)
        np.testing.assert_allclose(model.cluster_centers_, centers, rtol=1e-5, atol=0)
        np.testing.assert_array_equal(model.predict(scaled), model.labels_)


def test_given_centres_are_in_the_units_of_extreme_data():
    X = np.array([[0.0], [1.0], [10.0], [11.0]]) * 2.0**1000
    model = MinkowskiWeightedKMeans(2, init=X[[0, 2]]).fit(X)
    assert model.labels_.tolist() == [0, 0, 1, 1]
    shown = []
    MinkowskiWeightedKMeans(
        2, n_init=1, init=lambda X, k, random_state: shown.append(X) or X[[0, 2]]
    ).fit(X)
    np.testing.assert_array_equal(shown[0], X)
    with pytest.raises(ValueError, match="too far from the data"):
        MinkowskiWeightedKMeans(2, init=[[0.0], [1e300]]).fit(np.ldexp(X, -1900))


def test_offsets_are_in_the_units_of_extreme_data():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(50, 3)) * [1, 2, 3]
    plain = MinkowskiWeightedKMeans(2, dispersion_offset=5.0, random_state=0).fit(X)
    model = MinkowskiWeightedKMeans(2, dispersion_offset=5.0 * 2.0**1010, random_state=0)
    model.fit(X * 2.0**505)
    np.testing.assert_allclose(model.feature_weights_, plain.feature_weights_, rtol=1e-9)
    np.testing.assert_allclose(model.inertia_, plain.inertia_ * 2.0**1010, rtol=1e-9)


def test_range_scaler_names_a_column_whose_range_is_too_large():
    X = np.array([[0.0, -1.7e308], [1.0, 1.7e308]])
    with pytest.raises(ValueError, match="column 1: its range exceeds the largest float64"):
        RangeScaler().fit(X)
    with pytest.raises(ValueError, match="column 1: its range exceeds"):
        CAFE(2).fit(X)


def test_range_scaler_takes_a_subnormal_range_for_constant():
    X = np.array([[0.0], [5e-324], [1e-310]])
    scaled = RangeScaler().fit_transform(X)
    assert np.isfinite(scaled).all()
    assert np.abs(scaled).max() <= 1e-310


WEIGHTS = {
    "float64": [1e-320, 1e-300, 1e-45, 1e45, 1e300, 1e305],
    "float32": [1e-300, 1e-45, 1e-30, 1e30, 1e45, 1e300],
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_weights_far_from_one(dtype):
    run(f"""
X = (rng.normal(size=(90, 3)) + 5 * rng.integers(0, 3, (90, 1))).astype({dtype!r})
weights = rng.uniform(0.5, 2, 90)
for p in (1.5, 2, 3):
    for init in ("random", "k-means++", "anomalous"):
        options = dict(p=p, init=init, n_init=1, random_state=0)
        plain = MinkowskiWeightedKMeans(3, **options).fit(X, sample_weight=weights)
        for factor in {WEIGHTS[dtype]}:
            heavy = weights * factor
            model = MinkowskiWeightedKMeans(3, **options).fit(X, sample_weight=heavy)
            assert (model.labels_ == plain.labels_).all()
            close = dict(rtol=1e-3 if factor < 1e-310 else 1e-5)
            np.testing.assert_allclose(
                model.cluster_centers_, plain.cluster_centers_, **close)
            np.testing.assert_allclose(
                model.inertia_ / factor, plain.inertia_, rtol=2e-2)
""")


def test_weights_of_powers_of_two_keep_the_bits():
    rng = np.random.default_rng(4)
    X, weights = rng.normal(size=(90, 3)), rng.uniform(0.5, 2, 90)
    plain = MinkowskiWeightedKMeans(3, p=1.5, random_state=0).fit(X, sample_weight=weights)
    for exponent in (-900, 900):
        model = MinkowskiWeightedKMeans(3, p=1.5, random_state=0)
        model.fit(X, sample_weight=np.ldexp(weights, exponent))
        np.testing.assert_array_equal(model.cluster_centers_, plain.cluster_centers_)
        expected = np.ldexp(plain.dispersions_, exponent)
        np.testing.assert_allclose(model.dispersions_, expected, rtol=1e-12)
        np.testing.assert_allclose(
            model.objective_path_, np.ldexp(plain.objective_path_, exponent), rtol=1e-12
        )


def test_offsets_are_in_the_units_of_extreme_weights():
    X = np.random.default_rng(5).normal(size=(50, 3)) * [1, 2, 3]
    plain = MinkowskiWeightedKMeans(2, dispersion_offset=5.0, random_state=0).fit(X)
    model = MinkowskiWeightedKMeans(2, dispersion_offset=5e100, random_state=0)
    model.fit(X, sample_weight=np.full(50, 1e100))
    np.testing.assert_allclose(model.feature_weights_, plain.feature_weights_, rtol=1e-9)


def test_a_weight_that_single_precision_would_lose_counts_as_none():
    X = np.random.default_rng(6).normal(size=(40, 2)).astype(np.float32)
    X[0] = 1e6
    weights = np.ones(40)
    weights[0] = 1e-30
    options = {"n_init": 3, "random_state": 0}
    model = MinkowskiWeightedKMeans(2, **options).fit(X, sample_weight=weights)
    weights[0] = 0
    other = MinkowskiWeightedKMeans(2, **options).fit(X, sample_weight=weights)
    np.testing.assert_array_equal(model.cluster_centers_, other.cluster_centers_)


@pytest.mark.parametrize("factor", [1e-310, 1e-200, 1e200])
def test_weights_far_from_one_on_dask(factor):
    da = pytest.importorskip("dask.array")
    rng = np.random.default_rng(7)
    X, weights = rng.normal(size=(400, 3)), np.ldexp(1.0, rng.integers(0, 3, 400)) * factor
    blocks = da.from_array(X, chunks=(100, 3))
    options = {"n_init": 2, "random_state": 0}
    for init in ("random", "k-means++"):
        plain = MinkowskiWeightedKMeans(3, init=init, **options)
        plain.fit(X, sample_weight=weights)
        model = MinkowskiWeightedKMeans(3, init=init, **options)
        model.fit(blocks, sample_weight=da.from_array(weights, chunks=100))
        np.testing.assert_allclose(model.cluster_centers_, plain.cluster_centers_, rtol=1e-9)
        np.testing.assert_allclose(model.inertia_, plain.inertia_, rtol=1e-9)


def far_labels(X, model):
    """The nearest centres in extended precision, the lower index winning a tie."""
    X = X.astype(np.longdouble)[:, None]
    terms = model.feature_weights_ * np.abs(X - model.cluster_centers_)
    peak = terms.max(axis=2, keepdims=True)
    root = ((terms / peak) ** model.p).sum(axis=2) ** (1 / np.longdouble(model.p))
    return root * peak[:, :, 0]


@pytest.mark.parametrize("p", [1.1, 2.0, 3.0, 4.0, 20.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_far_rows_go_to_the_nearest_centre(dtype, p):
    rng = np.random.default_rng(8)
    X = (rng.normal(size=(90, 3)) * [1, 2, 3] + 5 * rng.integers(0, 3, (90, 1))).astype(dtype)
    model = MinkowskiWeightedKMeans(3, p=p, n_init=2, random_state=0).fit(X)
    top = 36.0 if dtype == np.float32 else 307.0
    exponents = np.append(np.linspace(10, top, 60), np.log10(9.96920996838687e36))
    rows = rng.normal(size=(len(exponents), 3)) * 10.0 ** exponents[:, None] / 4
    rows = np.vstack([X[:5].astype(np.float64), rows]).astype(dtype)
    expected = far_labels(rows, model)
    found = model.transform(rows)
    close = 1e-9 if dtype == np.float64 else 1e-4
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found, expected.astype(np.float64), rtol=close)
    # Distances that only rounding tells apart may be taken for ties.
    chosen = np.take_along_axis(expected, model.predict(rows)[:, None], axis=1)[:, 0]
    assert (chosen <= expected.min(axis=1) * (1 + close)).all()


def test_far_rows_leave_the_others_as_they_are():
    rng = np.random.default_rng(9)
    X = rng.normal(size=(300, 4))
    model = MinkowskiWeightedKMeans(3, p=3, random_state=0).fit(X)
    mixed = X.copy()
    mixed[::7] = 1e250
    kept = np.arange(300) % 7 > 0
    np.testing.assert_array_equal(model.transform(mixed)[kept], model.transform(X)[kept])
    np.testing.assert_array_equal(model.predict(mixed)[kept], model.predict(X)[kept])
    assert np.isfinite(model.transform(mixed)).all()


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("p", [2.0, 1.5])
def test_an_interrupt_is_heard_at_once(p, n_jobs):
    told = run(f"""
import os, signal, threading, time
X = rng.normal(size=(100_000, 20))
options = dict(p={p}, n_init=4, n_jobs={n_jobs}, random_state=0)
MinkowskiWeightedKMeans(2, max_iter=2, **options).fit(X)  # compiles
sent = []

def interrupt():
    time.sleep(1.5)
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    MinkowskiWeightedKMeans(60, **options).fit(X)
    print("too fast to be interrupted")
except KeyboardInterrupt:
    waited = time.monotonic() - sent[0]
    used = time.process_time()
    time.sleep(1)
    print(waited, time.process_time() - used)
""")
    waited, used = map(float, told.split())
    assert waited < 1
    assert used < 0.5  # nobody goes on in the background


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_weights_whose_sum_exceeds_the_largest_float(gaps):
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(40, 3)), rng.normal(size=(60, 3)) + 6]
    if gaps:
        X[::7, 1] = np.nan
    holed = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    holed[np.isnan(holed).all(axis=1)] = 0
    models = [
        MinkowskiWeightedKMeans(2, n_init=2, random_state=0).fit(X, sample_weight=weights)
        for weights in (np.full(100, 2.0**40), np.full(100, 2.0**1023))
    ]
    plain, heavy = models
    assert np.isfinite(heavy._mass.sum())
    np.testing.assert_allclose(heavy._mass / heavy._mass.sum(), plain._mass / plain._mass.sum())
    np.testing.assert_array_equal(heavy.labels_, plain.labels_)
    np.testing.assert_array_equal(heavy.feature_weights_, plain.feature_weights_)
    np.testing.assert_allclose(heavy.transform(holed), plain.transform(holed), rtol=1e-12)
    assert heavy.diagnosis_ == plain.diagnosis_
    assert heavy.score(X, sample_weight=np.full(100, 2.0**1023)) == -np.inf


def test_profiles_of_huge_weights():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = MinkowskiWeightedKMeans(2, n_init=2, random_state=0).fit(X)
    frame = model.profile_frame(X, sample_weight=np.full(60, 1e290))
    assert frame.groupby("cluster")["size"].first().sum() == pytest.approx(6e291)
    np.testing.assert_allclose(frame["center"], model.profile_frame(X)["center"])
    with pytest.raises(ValueError, match=r"needs sample weights that sum to at most 1e\+300"):
        model.profile_frame(X, sample_weight=np.full(60, 1e307))


def test_gaps_in_new_rows_where_dispersions_exceed_the_largest_float():
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[30:] += 8
    holed = np.where(np.eye(3)[np.arange(60) % 3], np.nan, X)
    plain, far = (
        MinkowskiWeightedKMeans(2, p=4.0, n_init=2, random_state=0).fit(np.ldexp(X, exponent))
        for exponent in (0, 400)
    )
    assert np.isinf(far.dispersions_).all()
    np.testing.assert_allclose(
        far.transform(np.ldexp(holed, 400)), np.ldexp(plain.transform(holed), 400), rtol=1e-12
    )


def test_k_means_plus_plus_where_powers_of_distances_nearly_vanish():
    X = np.array([[0.0], [2.0**-21], [2.0**-21 * 1.5], [1.0]])
    model = MinkowskiWeightedKMeans(3, p=50.0, init="k-means++", n_init=5, random_state=0)
    assert sorted(np.bincount(model.fit(X).labels_)) == [1, 1, 2]


def test_k_means_plus_plus_where_waiting_times_overflow():
    """More than 5,000 rows, whose times are drawn by codes; some powers are subnormal."""
    X = np.r_[np.linspace(0, 2.0**-19, 5_000), 1.0][:, None]
    model = MinkowskiWeightedKMeans(2, p=50.0, init="k-means++", n_init=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiagnosisWarning)
        warnings.simplefilter("error", RuntimeWarning)
        model.fit(X)
    assert sorted(np.bincount(model.labels_)) == [1, 5_000]


@pytest.mark.parametrize(
    ("dtype", "far"), [(np.float32, 1e12), (np.float32, 1e30), (np.float64, 1e120)]
)
@pytest.mark.parametrize("p", [1.5, 2.0, 3.92, 12.0])
def test_far_rows_of_weight_0_are_placed_as_new_rows(p, dtype, far):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(60, 3)) + 5 * rng.integers(3, size=(60, 1))).astype(dtype)
    X[::10] = far * np.array([1, -2, 3])
    weight = (np.arange(60) % 10 > 0).astype(float)
    model = MinkowskiWeightedKMeans(4, p=p, random_state=0).fit(X, sample_weight=weight)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    alone = MinkowskiWeightedKMeans(4, p=p, random_state=0).fit(X[weight > 0].astype(X.dtype))
    np.testing.assert_array_equal(alone.labels_, model.labels_[weight > 0])
