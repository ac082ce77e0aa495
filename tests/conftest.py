"""Data shared by the tests."""

import math
import os
import signal

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from sklearn.datasets import load_iris, load_wine

# Compiling a kernel takes seconds the first time, which is no property of the test.
settings.register_profile(
    "cafelearn",
    deadline=None,
    max_examples=40,
    # Where nobody is there to look at a new counterexample, the same ones every time.
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("cafelearn")

# Shells may start what runs in the background with interrupts ignored, and the commands that
# tests start would inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def make_blobs(n_rows=400, n_features=6, n_clusters=3, n_noise=2, seed=0):
    """Gaussian clusters with some features that are pure noise."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(scale=4, size=(n_clusters, n_features))
    y = rng.integers(n_clusters, size=n_rows)
    X = centers[y] + rng.normal(size=(n_rows, n_features))
    X[:, n_features - n_noise :] = rng.normal(scale=4, size=(n_rows, n_noise))
    return X, y


def with_gaps(X, share=0.2, seed=0):
    """A copy with this share of the entries missing; every row keeps one."""
    rng = np.random.default_rng(seed)
    gaps = rng.random(X.shape) < share
    gaps[np.arange(len(X)), rng.integers(X.shape[1], size=len(X))] = False
    return np.where(gaps, np.nan, X)


FITTED = (
    "cluster_centers_",
    "feature_weights_",
    "dispersions_",
    "inertia_",
    "objective_path_",
    "init_objectives_",
    "n_iter_",
    "stop_reason_",
)


def same_bits(one, other, *names):
    """Compare labels, fitted numbers and attributes of these names of two models."""
    for name in (*FITTED, *names):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    np.testing.assert_array_equal(np.asarray(one.labels_), np.asarray(other.labels_))


@pytest.fixture
def blobs():
    return make_blobs()


@pytest.fixture(params=["iris", "wine", "blobs"])
def data(request):
    """Three small data sets, each feature brought to a range of 1."""
    X = {
        "iris": lambda: load_iris().data,
        "wine": lambda: load_wine().data,
        "blobs": lambda: make_blobs()[0],
    }[request.param]()
    return np.ascontiguousarray((X - X.mean(axis=0)) / np.ptp(X, axis=0))


@pytest.fixture
def cafe(capsys, monkeypatch):
    """Run the command; gives exit code, standard output and standard error.

    Lines about progress and compilation are removed, because they depend on the machine.
    """
    from cafelearn.base import progress as _progress
    from cafelearn.cli import main
    from cafelearn.kmeans import compiling_note as _compiling_note

    monkeypatch.setattr(_progress, "SECONDS", math.inf)
    monkeypatch.setattr(_compiling_note, "kernels_are_compiled", lambda: True)

    def run(*args):
        code = main([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return code, out, err

    return run
