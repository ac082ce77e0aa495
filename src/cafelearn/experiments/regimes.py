"""Data of the comparison study: data sets under several regimes of noise, and generators."""

from typing import NamedTuple

import numpy as np
from sklearn import datasets as sklearn_datasets
from sklearn.preprocessing import OneHotEncoder

from cafelearn import datasets
from cafelearn._scaling import RangeScaler
from cafelearn.datasets import corrupt, load
from cafelearn.experiments.plan import LEVELS, SCALES, Sample, named_seed
from cafelearn.experiments.run import noisy_data

# Share of corrupted (class, feature) pairs in the regimes "heavy" and "zeros".
LEVEL = 0.4
# The paper's noise settings, named by level and scale.
PAIRS = {f"pairs {level:g}/{scale:g}": (level, scale) for level in LEVELS for scale in SCALES}
REGIMES = ("clean", *PAIRS, "columns", "heavy", "zeros", "generated")
# Data sets from scikit-learn; wdbc is its breast cancer data.
BUNDLED = ("digits", "wdbc", "wine")
GENERATED = ("categories", "counts", "subspaces")


class Case(NamedTuple):
    """A version of a data set under a regime."""

    dataset: str
    regime: str
    version: int

    def __str__(self):
        return f"{self.dataset}/{self.regime}/{self.version}"

    def seed(self, purpose: str) -> np.random.SeedSequence:
        """Make a SeedSequence from the name of the case and the purpose."""
        return named_seed(f"study/{self}/{purpose}")


class Labelled(NamedTuple):
    """Rows and their classes."""

    X: np.ndarray
    y: np.ndarray


def case_data(case: Case) -> Labelled:
    """Make the data of a case.

    Parameters
    ----------
    case : Case
        Data set, regime and version. The regimes are:

        - "clean": the original data.
        - "pairs LEVEL/SCALE": the paper's noise, see :func:`~cafelearn.datasets.corrupt`. For
          the paper's data sets, the data are those of its experiment, see
          :func:`~cafelearn.experiments.noisy_data`.
        - "columns": columns of uniform noise are appended, as many as there are features.
        - "heavy": noise from Student's t distribution with 2 degrees of freedom, in units of
          the feature's range, is added to 40% of the (class, feature) pairs.
        - "zeros": in 40% of the (class, feature) pairs, each value is replaced, with
          probability 1/2, by the smallest value of the feature.
        - "generated": the data set is the name of a generator, which draws the rows. The
          version determines its random numbers.

    Returns
    -------
    data : Labelled
        The rows `X` and their classes `y`.

    Examples
    --------
    >>> from cafelearn.experiments.regimes import Case, case_data
    >>> case_data(Case("iris", "columns", 0)).X.shape
    (150, 8)
    """
    if case.regime == "generated":
        return GENERATORS[case.dataset](np.random.default_rng(case.seed("data")))
    level, scale = PAIRS.get(case.regime, (LEVEL, 0.0))
    if case.regime in PAIRS and case.dataset in datasets.names():
        noisy = noisy_data(Sample(case.dataset, level, scale, case.version))
        return Labelled(noisy.X, noisy.y)
    X, y = _load(case.dataset)
    rng = np.random.default_rng(case.seed("noise"))
    if case.regime == "clean":
        return Labelled(X, y)
    X = RangeScaler().fit_transform(X)
    if case.regime == "columns":
        return Labelled(np.column_stack([X, rng.uniform(-0.5, 0.5, X.shape)]), y)
    if case.regime in PAIRS:
        return Labelled(corrupt(X, y, level, scale, rng)[0], y)
    noisy = corrupt(X, y, level, scale, rng)[1][y]
    if case.regime == "heavy":
        return Labelled(X + noisy * rng.standard_t(2, X.shape), y)
    if case.regime == "zeros":
        return Labelled(np.where(noisy & (rng.random(X.shape) < 0.5), X.min(axis=0), X), y)
    raise ValueError(
        f"case_data needs a regime among {', '.join(REGIMES)}; got {case.regime!r}."
    )


def _load(name):
    if name in datasets.names():
        bunch = load(name)
        return bunch.data, bunch.target
    loader = {"wdbc": "load_breast_cancer"}.get(name, f"load_{name}")
    return getattr(sklearn_datasets, loader)(return_X_y=True)


def make_subspaces(rng):
    """Generate Gaussian clusters, each compact in its own subset of the features."""
    k, m = int(rng.integers(2, 9)), int(rng.integers(5, 41))
    y = _draw_classes(rng, k)
    compact = rng.random((k, m)) < rng.uniform(0.3, 0.7)
    compact[np.arange(k), rng.integers(0, m, k)] = True
    centers = rng.normal(0, 2, (k, m))
    spread = np.where(compact, rng.uniform(0.3, 1, (k, m)), rng.uniform(2, 4, (k, m)))
    return Labelled(
        np.where(compact, centers, 0)[y] + spread[y] * rng.normal(size=(len(y), m)), y
    )


def make_counts(rng):
    """Generate log(1 + count) for overdispersed counts with excess zeros.

    Some of the means differ by class.
    """
    k, m = int(rng.integers(2, 9)), int(rng.integers(10, 61))
    y = _draw_classes(rng, k)
    mean = rng.gamma(2, 2, m) * np.exp(rng.normal(0, 1, (k, m)) * (rng.random((k, m)) < 0.4))
    shape = rng.uniform(0.5, 3, m)
    counts = rng.poisson(rng.gamma(shape, mean[y] / shape))
    counts[rng.random(counts.shape) < rng.uniform(0.1, 0.5, (k, m))[y]] = 0
    return Labelled(np.log1p(counts), y)


def make_categories(rng):
    """Generate one-hot columns of categorical variables; some distributions differ by class."""
    k, m = int(rng.integers(2, 7)), int(rng.integers(5, 16))
    y = _draw_classes(rng, k)
    columns = []
    for _ in range(m):
        size = int(rng.integers(2, 8))
        common = rng.dirichlet(np.full(size, 2.0))
        separates = rng.random(k) < 0.6
        shares = np.where(separates[:, None], rng.dirichlet(np.full(size, 0.5), k), common)
        columns.append((shares.cumsum(axis=1)[y] < rng.random(len(y))[:, None]).sum(axis=1))
    codes = np.minimum(np.column_stack(columns), 7)
    return Labelled(OneHotEncoder(sparse_output=False).fit_transform(codes), y)


def _draw_classes(rng, k):
    """Draw the classes of 200 to 1,200 rows; expected sizes differ by a factor of up to 4."""
    shares = rng.uniform(1, 4, k)
    y = rng.choice(k, int(rng.integers(200, 1201)), p=shares / shares.sum())
    y[:k] = np.arange(k)
    return y


GENERATORS = {
    "categories": make_categories,
    "counts": make_counts,
    "subspaces": make_subspaces,
}
