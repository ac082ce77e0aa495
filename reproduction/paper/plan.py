"""Plans of the paper's experiment: noisy data sets, methods and settings."""

import hashlib
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from cafelearn import datasets

# The paper's eight methods in the order of its tables, then three others.
METHODS = (
    "autoencoder",
    "umap",
    "pca",
    "cafe+pca",
    "nmf",
    "cafe+nmf",
    "ica",
    "cafe+ica",
    "kmeans",
    "mwk-means",
    "cafe-centroid+pca",
)
LEVELS = (0.2, 0.4)
SCALES = (1.0, 2.0, 5.0)
VERSIONS = 20


def named_seed(name):
    """Make a SeedSequence from a name."""
    digest = hashlib.sha256(name.encode()).digest()
    return np.random.SeedSequence(np.frombuffer(digest, dtype="<u4").tolist())


class Sample(NamedTuple):
    """One noisy version of a data set."""

    dataset: str
    noise_level: float
    noise_scale: float
    version: int

    def __str__(self):
        return f"{self.dataset}/{self.noise_level:g}/{self.noise_scale:g}/{self.version}"

    def seed(self, purpose: str) -> np.random.SeedSequence:
        """Make a SeedSequence from the name of the sample and the purpose."""
        return named_seed(f"{self}/{purpose}")


@dataclass(frozen=True)
class Settings:
    """Exponents and numbers of starts of the methods."""

    n_init: int = 50  # of NMF, ICA, the autoencoder, and mwk-means at each exponent
    kmeans_n_init: int = 100
    exponents: tuple[float, ...] = (1.1, 1.5, 2.0, 3.0)  # mwk-means chooses among them


QUICK = Settings(n_init=5, kmeans_n_init=10)


@dataclass(frozen=True)
class Plan:
    """The runs of an experiment: every method on every noisy data set."""

    datasets: tuple[str, ...] = field(default_factory=datasets.names)
    methods: tuple[str, ...] = METHODS
    levels: tuple[float, ...] = LEVELS  # shares of the (class, feature) pairs with noise
    scales: tuple[float, ...] = SCALES  # standard deviations, in ranges of the feature
    versions: int = VERSIONS  # of each data set at each level and scale
    settings: Settings = Settings()

    def __post_init__(self):
        put = object.__setattr__
        put(self, "datasets", choose_names("datasets", self.datasets, datasets.names()))
        put(self, "methods", choose_names("methods", self.methods, METHODS))
        put(self, "levels", _numbers("levels", self.levels, 0, 1))
        put(self, "scales", _numbers("scales", self.scales, 0, np.inf))
        check_versions(self.versions)

    def samples(self) -> list:
        """List all samples: the first version of each data set, then the second, and so on."""
        return [
            Sample(dataset, level, scale, version)
            for version in range(self.versions)
            for dataset in self.datasets
            for level in self.levels
            for scale in self.scales
        ]

    def __len__(self):
        """Return the number of runs."""
        n_cells = len(self.datasets) * len(self.levels) * len(self.scales)
        return n_cells * self.versions * len(self.methods)


def choose_names(what, chosen, known):
    """Validate the chosen names and return them in the order of `known`."""
    chosen = [chosen] if isinstance(chosen, str) else list(chosen)
    for name in chosen:
        if name not in known:
            raise ValueError(f"Plan needs {what} among {', '.join(known)}; got {name!r}.")
    if not chosen:
        raise ValueError(f"Plan needs at least one entry in {what}, got none.")
    return tuple(name for name in known if name in chosen)


def check_versions(versions):
    """Raise unless `versions` is an integer of at least 1."""
    if not isinstance(versions, int) or versions < 1:
        raise ValueError(f"Plan needs versions to be at least 1, got {versions!r}.")


def _numbers(what, values, low, high):
    values = tuple(sorted({float(value) for value in np.atleast_1d(values)}))
    if not values:
        raise ValueError(f"Plan needs at least one entry in {what}, got none.")
    for value in values:
        if not low <= value <= high or value == np.inf:
            raise ValueError(
                f"Plan needs finite {what} between {low:g} and {high:g}, got {value:g}."
            )
    return values
