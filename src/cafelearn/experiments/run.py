"""One noisy data set and one method make one record."""

import importlib.metadata
import time
import traceback
import warnings
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from threadpoolctl import threadpool_limits

from cafelearn._seeds import seed_integer
from cafelearn.consensus import choose, make_models, sweep
from cafelearn.datasets import corrupt, load
from cafelearn.experiments.plan import Sample
from cafelearn.extraction.names import make_extractor
from cafelearn.rescaling import rescale_rows
from cafelearn.scaling import RangeScaler

LIBRARIES = ("cafelearn", "numpy", "scipy", "scikit-learn", "numba", "umap-learn")


class Record(NamedTuple):
    """The outcome of a run; what it could not find out is None."""

    dataset: str
    noise_level: float
    noise_scale: float
    version: int
    method: str
    status: str  # "done" or "failed"
    ari: float | None = None
    nmi: float | None = None
    seconds: float | None = None  # of the method alone, its sweep included
    sweep_seconds: float | None = None  # part of them that all CAFE variants share
    p: float | None = None
    k_found: int | None = None
    warnings: str = ""
    traceback: str = ""
    libraries: str = ""


class Noisy(NamedTuple):
    """A noisy data set, scaled, with its classes and the pairs that are noise."""

    X: np.ndarray
    y: np.ndarray
    noise_pairs: np.ndarray


class Sweep(NamedTuple):
    """What the CAFE variants share: the clustering that was chosen, and what it cost."""

    p: float
    labels: np.ndarray
    feature_weights: np.ndarray
    cluster_centers: np.ndarray
    seconds: float
    warnings: str


def noisy_data(sample: Sample) -> Noisy:
    """Make a noisy data set: scale, add the noise, scale again.

    Parameters
    ----------
    sample : Sample
        Which one.

    Returns
    -------
    noisy : Noisy
        With `X`, the classes `y` and the boolean array `noise_pairs` of shape (k, m).

    Examples
    --------
    >>> from cafelearn.experiments import Sample, noisy_data
    >>> noisy = noisy_data(Sample("iris", 0.4, 2.0, version=0))
    >>> noisy.X.shape, int(noisy.noise_pairs.sum())
    ((150, 4), 5)
    """
    bunch = load(sample.dataset)
    X = RangeScaler().fit_transform(bunch.data)
    X, pairs = corrupt(
        X, bunch.target, sample.noise_level, sample.noise_scale, sample.seed("noise")
    )
    return Noisy(RangeScaler().fit_transform(X), bunch.target, pairs)


def find_sweep(sample, settings, data=None):
    """Run mwk-means at every exponent and choose the clustering, on one thread."""
    X, y, _ = noisy_data(sample) if data is None else data
    start = time.perf_counter()
    with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        models = make_models(
            settings.exponents,
            sample.seed("sweep"),
            n_clusters=_n_classes(y),
            n_init=settings.n_init,
            n_jobs=1,
        )
        sweep(models, X, n_jobs=1)
        p, _ = choose(models)
    model = models[settings.exponents.index(p)]
    return Sweep(
        p,
        model.labels_,
        model.feature_weights_,
        model.cluster_centers_,
        time.perf_counter() - start,
        _told(caught),
    )


def try_sweep(sample, settings, data=None):
    """The sweep, or the traceback of what went wrong."""
    try:
        return find_sweep(sample, settings, data)
    except Exception:
        return traceback.format_exc()


def needs_sweep(method):
    """Whether a method starts from the sweep of mwk-means."""
    return method == "mwk-means" or method.startswith("cafe")


def run_method(sample, method, settings, found=None, data=None):
    """Run one method on one noisy data set; an exception becomes a failed record.

    Parameters
    ----------
    sample : Sample
        The noisy data set.
    method : str
        The method.
    settings : Settings
        How hard it tries.
    found : Sweep or str, optional
        What `try_sweep` has found for this sample, if the method needs a sweep.
    data : Noisy, optional
        The data of this sample, if at hand.

    Returns
    -------
    record : Record
    """
    shared = needs_sweep(method)
    if shared and found is None:
        found = try_sweep(sample, settings, data)
    if shared and isinstance(found, str):
        return failed_record(sample, method, found)
    try:
        data = noisy_data(sample) if data is None else data
        start = time.perf_counter()
        with threadpool_limits(1), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            labels = _labels(sample, method, settings, found, data)
        seconds = time.perf_counter() - start
    except Exception:
        return failed_record(sample, method, traceback.format_exc())
    return Record(
        *sample,
        method,
        "done",
        ari=float(adjusted_rand_score(data.y, labels)),
        nmi=float(normalized_mutual_info_score(data.y, labels)),
        seconds=seconds + (found.seconds if shared else 0.0),
        sweep_seconds=found.seconds if shared else 0.0,
        p=found.p if shared else None,
        k_found=len(np.unique(labels)),
        warnings="\n".join(filter(None, [found.warnings if shared else "", _told(caught)])),
        libraries=libraries(),
    )


def run_sample(sample, methods, settings, emit):
    """Run several methods on one noisy data set, and emit each record as it is made."""
    data, found = noisy_data(sample), None
    for method in methods:
        if needs_sweep(method) and found is None:
            found = try_sweep(sample, settings, data)
        emit(run_method(sample, method, settings, found, data))


def failed_record(sample, method, reason):
    """The record of a run that went wrong."""
    return Record(*sample, method, "failed", traceback=reason, libraries=libraries())


def _labels(sample, method, settings, found, data):
    """The clustering that a method ends in."""
    if method == "mwk-means":
        return found.labels
    seed, for_kmeans = (seed_integer(child) for child in sample.seed(method).spawn(2))
    features, name = data.X, method
    if needs_sweep(method):
        kind, name = method.split("+")
        features = rescale_rows(
            data.X,
            found.labels,
            found.feature_weights,
            found.cluster_centers,
            "centroid" if kind == "cafe-centroid" else "origin",
        )
    if name != "kmeans":
        n_components = max(1, data.X.shape[1] // 2)
        extractor = make_extractor(name, n_components, seed, n_jobs=1)
        if "n_init" in extractor.get_params():
            extractor.set_params(n_init=settings.n_init)
        features = extractor.fit_transform(features)
    kmeans = KMeans(
        _n_classes(data.y),
        init="random",
        n_init=settings.kmeans_n_init,
        random_state=for_kmeans,
    )
    return kmeans.fit_predict(features)


def _n_classes(y):
    return len(np.unique(y))


def _told(caught):
    """The distinct warnings, one line each."""
    lines = (f"{w.category.__name__}: {' '.join(str(w.message).split())}" for w in caught)
    return "\n".join(dict.fromkeys(lines))


@lru_cache(maxsize=1)
def libraries():
    """Versions of the libraries that the numbers depend on."""
    versions = []
    for name in LIBRARIES:
        try:
            versions.append(f"{name}=={importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return " ".join(versions)
