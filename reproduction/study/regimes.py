"""Data of the comparison study: data sets under several regimes of noise, and generators."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn import datasets as sklearn_datasets

from cafelearn import datasets
from cafelearn.datasets import corrupt, load
from cafelearn.estimators.scaling import RangeScaler
from reproduction.paper.plan import LEVELS, SCALES, named_seed
from reproduction.study.public_data import SOURCES, load_public
from reproduction.study.worlds import GENERATORS, WORLDS, Labelled

# Share of corrupted (class, feature) pairs in the regimes "resampled", "heavy" and "zeros".
LEVEL = 0.4
# Every cell is moved by uniform noise of this width, as a share of the range of its feature,
# where noise in some of the cells would otherwise leak the classes.
JITTER = 0.02
# Share of additional rows in the regime "outliers".
OUTLIERS = 0.05
# The paper's noise settings, named by level and scale; the study has three of them.
PAIRS = {f"pairs {level:g}/{scale:g}": (level, scale) for level in LEVELS for scale in SCALES}
STUDY_PAIRS = ("pairs 0.2/1", "pairs 0.4/1", "pairs 0.4/5")
DISTURBED = ("resampled", "columns", "heavy", "zeros", "outliers")
REGIMES = ("clean", *STUDY_PAIRS, *DISTURBED, "generated")
# Data sets from scikit-learn; wdbc is its breast cancer data.
BUNDLED = ("digits", "wdbc", "wine")
PUBLIC = tuple(SOURCES)
# Generators on which CAFE's defaults were chosen.
GENERATED = tuple(GENERATORS)


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


def case_data(case: Case) -> Labelled:
    """Make the data of a case; rows of class -1 do not count in the scores.

    The regimes are as follows; all but "clean" leave out constant features.

    - "clean": the original data.
    - "pairs LEVEL/SCALE": the paper's noise on jittered cells, see
      :func:`~cafelearn.datasets.corrupt`. Every cell is first moved by at most 1% of the range
      of its feature; otherwise the noise would leak the classes.
    - "resampled": the cells of 40% of the (class, feature) pairs are drawn anew from all values
      of the feature. A drawn value that is unique in its feature is moved like a jittered cell,
      so that it stays unique.
    - "columns": columns of uniform noise are appended, as many as there are features.
    - "heavy": noise from Student's t distribution with 2 degrees of freedom, in units of the
      feature's range, is added to 40% of the (class, feature) pairs, on jittered cells.
    - "zeros": in 40% of the (class, feature) pairs, each value is replaced, with probability
      1/2, by the smallest value of the feature. Then every cell is jittered.
    - "outliers": 5% additional rows, uniform between the extremes of each feature, are
      appended; their class is -1.
    - "generated": the data set is the name of a generator, which draws the rows. The version
      determines its random numbers.
    """
    if case.regime == "generated":
        make = {**GENERATORS, **WORLDS}[case.dataset]
        world = make(np.random.default_rng(case.seed("data")))
        return Labelled(world.X, world.y)
    regimes = ("clean", *PAIRS, *DISTURBED, "generated")
    if case.regime not in regimes:
        raise ValueError(
            f"case_data needs a regime among {', '.join(regimes)}; got {case.regime!r}."
        )
    X, y = _load(case.dataset)
    if case.regime == "clean":
        return Labelled(X, y)
    # A constant feature has no range to jitter its cells by, so noise in it would leak.
    X = RangeScaler().fit_transform(X[:, np.ptp(X, axis=0) > 0])
    return _disturb(X, y, case.regime, np.random.default_rng(case.seed("noise")))


def _disturb(X, y, regime, rng):
    """Add the noise of a regime to scaled rows."""
    if regime == "columns":
        return Labelled(np.column_stack([X, rng.uniform(-0.5, 0.5, X.shape)]), y)
    if regime == "outliers":
        n_outliers = max(1, round(OUTLIERS * len(X)))
        outliers = rng.uniform(X.min(axis=0), X.max(axis=0), (n_outliers, X.shape[1]))
        return Labelled(np.vstack([X, outliers]), np.append(y, np.full(n_outliers, -1)))
    if regime in PAIRS:
        return Labelled(corrupt(X, y, *PAIRS[regime], rng, jitter=JITTER)[0], y)
    # With a scale of 0, corrupt draws the pairs and adds nothing.
    jittered, pairs = corrupt(X, y, LEVEL, 0.0, rng, jitter=JITTER)
    noisy = pairs[y]
    if regime == "heavy":
        return Labelled(jittered + noisy * rng.standard_t(2, X.shape), y)
    if regime == "zeros":
        # The jitter comes last: exact zeros among jittered cells would mark the pairs.
        lowered = np.where(noisy & (rng.random(X.shape) < 0.5), X.min(axis=0), X)
        return Labelled(lowered + (jittered - X), y)
    drawn = rng.integers(len(X), size=X.shape)
    values = np.take_along_axis(X, drawn, axis=0)
    # A unique value that is drawn would no longer be unique, and would tell a noisy cell. Moved
    # a little it is; the share of unique values is then the same in noisy and other cells.
    moved = np.take_along_axis(unique_cells(X), drawn, axis=0)
    return Labelled(np.where(noisy, np.where(moved, values + (jittered - X), values), X), y)


def unique_cells(X: np.ndarray) -> np.ndarray:
    """Tell which cells hold a value that no other row has in the same column."""
    return np.column_stack([~pd.Series(column).duplicated(keep=False) for column in X.T])


def unique_patterns(X: np.ndarray) -> np.ndarray:
    """Group the rows by which of their cells hold a value that is unique in its column.

    This "trivial rule" looks at no value. If it finds classes in noisy data that it does not
    find in the clean data, the noise leaks them.
    """
    return np.unique(unique_cells(X), axis=0, return_inverse=True)[1].ravel()


def _load(name):
    if name in datasets.names():
        bunch = load(name)
        return bunch.data, bunch.target
    if name in PUBLIC:
        return load_public(name)
    loader = {"wdbc": "load_breast_cancer"}.get(name, f"load_{name}")
    return getattr(sklearn_datasets, loader)(return_X_y=True)
