"""Runs of the paper's experiment: one method on one noisy data set."""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from cafelearn.base.seeds import seed_integer
from cafelearn.choice.selection import agreement_matrix, by_agreement, contingency_tables
from cafelearn.datasets import corrupt, load
from cafelearn.estimators.cafe import CAFE, PAPER
from cafelearn.estimators.candidates import fit_models, make_candidates, make_models
from cafelearn.estimators.scaling import RangeScaler
from cafelearn.extraction.rescaling import rescale_rows
from cafelearn.extraction.table import make_extractor
from cafelearn.kmeans.rows import InMemory
from reproduction.paper.plan import QUICK, Sample
from reproduction.runs.experiment import Experiment, measuring
from reproduction.runs.pool import run_all
from reproduction.runs.store import read_runs

# Expected seconds on one core per million entries of data; LITTLE is for all other methods.
# Only the ratios matter, and only until a run of the method on the same data set has succeeded.
PRIOR = {
    "autoencoder": 90.0,
    "umap": 80.0,
    "ica": 110.0,
    "cafe+ica": 80.0,
    "nmf": 10.0,
    "cafe+nmf": 10.0,
    "mwk-means": 25.0,
}
LITTLE = 2.0


class Record(NamedTuple):
    """The result of a run; missing values are None."""

    dataset: str
    noise_level: float
    noise_scale: float
    version: int
    method: str
    status: str  # "done" or "failed"
    ari: float | None = None
    nmi: float | None = None
    seconds: float | None = None  # including the sweep
    sweep_seconds: float | None = None  # time of the sweep, see Sweep
    p: float | None = None  # exponent that the sweep chose
    k_found: int | None = None  # number of clusters that are not empty
    warnings: str = ""
    traceback: str = ""
    libraries: str = ""


class Noisy(NamedTuple):
    """A scaled noisy data set, its classes and its corrupted (class, feature) pairs."""

    X: np.ndarray
    y: np.ndarray
    noise_pairs: np.ndarray


class Sweep(NamedTuple):
    """Result of the sweep, which fits mwk-means at each exponent and chooses a clustering.

    The method mwk-means and all variants of CAFE use the chosen clustering.
    """

    p: float
    labels: np.ndarray
    feature_weights: np.ndarray
    cluster_centers: np.ndarray
    seconds: float
    warnings: str


def noisy_data(sample: Sample) -> Noisy:
    """Make a noisy data set: scale, add the noise, scale again."""
    bunch = load(sample.dataset)
    X = RangeScaler().fit_transform(bunch.data)
    X, pairs = corrupt(
        X, bunch.target, sample.noise_level, sample.noise_scale, sample.seed("noise")
    )
    return Noisy(RangeScaler().fit_transform(X), bunch.target, pairs)


def find_sweep(sample, settings, data=None):
    """Fit mwk-means at each exponent, and choose a clustering as in the paper."""
    X, y, _ = noisy_data(sample) if data is None else data
    with measuring() as measured:
        k = _n_classes(y)
        paper = PAPER | {"p": settings.exponents, "n_init": settings.n_init}
        # The data is already scaled as in the paper.
        candidates = make_candidates(CAFE(k, **(paper | {"scaling": None})))
        models = make_models(
            candidates, sample.seed("sweep"), n_clusters=k, n_init=paper["n_init"], n_jobs=1
        )
        fit_models(models, [InMemory(X)] * len(models), n_jobs=1)
        tables = contingency_tables([m.labels_ for m in models], [k] * len(models))
        model = models[by_agreement(models, None, agreement_matrix(tables, len(models)))]
    return Sweep(
        model.p,
        model.labels_,
        model.feature_weights_,
        model.cluster_centers_,
        measured.seconds,
        measured.warnings,
    )


@dataclass(frozen=True)
class Grid(Experiment):
    """The paper's experiment."""

    file = "runs.sqlite"
    record = Record
    quick = QUICK

    def load(self, sample):
        """Make the noisy data set."""
        return noisy_data(sample)

    def shares(self, sample, method):
        """Check whether a method uses the sweep."""
        return method == "mwk-means" or method.startswith("cafe")

    def share(self, sample, settings, data):
        """Compute the sweep."""
        return find_sweep(sample, settings, data)

    def measure(self, sample, method, settings, data, shared):
        """Cluster the data with a method, and compare the clusters with the classes."""
        with measuring() as measured:
            labels = _labels(sample, method, settings, shared, data)
        swept = self.shares(sample, method)
        return {
            "ari": float(adjusted_rand_score(data.y, labels)),
            "nmi": float(normalized_mutual_info_score(data.y, labels)),
            "seconds": measured.seconds + (shared.seconds if swept else 0.0),
            "sweep_seconds": shared.seconds if swept else 0.0,
            "p": shared.p if swept else None,
            "k_found": len(np.unique(labels)),
            "warnings": "\n".join(
                filter(None, [shared.warnings if swept else "", measured.warnings])
            ),
        }

    def trial(self, sample):
        """Return a sample of Iris, which is small."""
        return Sample("iris", 0.2, 1.0, 0)

    def foresee(self, sample, method):
        """Predict a run time in proportion to the size of the data."""
        return PRIOR.get(method, LITTLE) * _size(sample.dataset)

    def own_seconds(self, record):
        """Return the run time; the sweep counts only in the record of mwk-means."""
        return record.seconds - (0 if record.method == "mwk-means" else record.sweep_seconds)


GRID = Grid()


def run_grid(plan, directory, **options):
    """Execute the runs of a plan that are not yet in the directory; see `run_all`."""
    todo = [(sample, plan.methods) for sample in plan.samples()]
    return run_all(GRID, todo, plan.settings, directory, **options)


def read_results(source):
    """Read the records from a directory written by `run_grid`, or from a CSV file."""
    return read_runs(source, GRID)


def _labels(sample, method, settings, found, data):
    """Cluster the data with a method; `found` is the sweep."""
    if method == "mwk-means":
        return found.labels
    seed, for_kmeans = (seed_integer(child) for child in sample.seed(method).spawn(2))
    features, name = data.X, method
    if GRID.shares(sample, method):
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


@cache
def _size(dataset):
    """Return the size of the data in millions of entries."""
    return load(dataset).data.size / 1e6
