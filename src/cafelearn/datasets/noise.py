"""Add the noise of the paper's experiments to some (class, feature) pairs."""

import math
from numbers import Integral, Real

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from cafelearn.base.typing import MatrixLike, Seed, VectorLike


def corrupt(
    X: MatrixLike,
    y: VectorLike,
    noise_level: float,
    noise_scale: float,
    random_state: Seed = None,
    *,
    jitter: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Add Gaussian noise to randomly chosen (class, feature) pairs.

    With k classes and m features there are k * m pairs. Of these,
    ``max(1, round(noise_level * k * m))`` are chosen at random, without replacement. For each
    chosen pair, independent values from N(0, noise_scale^2) are added to the feature in the
    rows of the class. All other values are unchanged, unless `jitter` moves them a little.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The data: dense, numeric and finite. It is not modified.
    y : array-like of shape (n_samples,)
        The class of each row: integers or any labels that can be sorted.
    noise_level : float
        Share of the pairs to corrupt, between 0 and 1. At least one pair is corrupted, even
        at 0.
    noise_scale : float
        Standard deviation of the noise, in the units of `X`; must be at least 0.
    random_state : int, Generator, SeedSequence, RandomState or None, default=None
        Source of randomness. An int or a SeedSequence gives the same result in each call. A
        Generator or a RandomState is advanced by each call. None gives a new result in each
        call.
    jitter : float, default=0.0
        Every value is moved by independent noise, uniform between ``-jitter / 2`` and
        ``jitter / 2`` times the range of its feature; must be at least 0. The pairs and their
        noise are the same for every `jitter`. The paper has no jitter.

    Returns
    -------
    X_noisy : ndarray of shape (n_samples, n_features)
        The corrupted copy: float32 if `X` is float32, else float64.
    noise_pairs : ndarray of bool of shape (n_classes, n_features)
        True for the corrupted pairs. The rows are the classes in sorted order.

    See Also
    --------
    cafelearn.theory.noise_suppression_bound : Bound on a noise pair's rescaled dispersion.

    Notes
    -----
    Halves are rounded up, as in MATLAB: 2.5 pairs become 3. Python's :func:`round` would round
    to the even neighbour, 2.

    The noise scale is in the units of `X`, so scale the features to a common range first. The
    paper's scales (1, 2 and 5) are multiples of that range.

    **Without jitter the noise leaks the classes.** In a feature whose values are shared by many
    rows (categories, counts, rounded measurements), a value with noise is unique, and a value
    without noise is not. Grouping the rows by which of their values are unique therefore finds
    the classes of some data sets, whatever the values are. With jitter, all values of all
    features that vary are unique; leave out constant features, which have no range and hence no
    jitter. A jitter of 0.02 moves each value by at most 1% of the range,
    as if the range had been divided into 50 steps and rounding to these steps were undone.

    Examples
    --------
    >>> from cafelearn import RangeScaler
    >>> from cafelearn.datasets import corrupt, load
    >>> iris = load("iris")
    >>> X = RangeScaler().fit_transform(iris.data)
    >>> X_noisy, noise_pairs = corrupt(X, iris.target, 0.2, 1.0, random_state=0)
    >>> noise_pairs.shape, int(noise_pairs.sum())
    ((3, 4), 2)
    >>> changed = X_noisy != X
    >>> bool((changed == noise_pairs[iris.target]).all())
    True

    With jitter, all values of a feature are different:

    >>> X_noisy, _ = corrupt(X, iris.target, 0.2, 1.0, random_state=0, jitter=0.02)
    >>> len(set(X[:, 0])), len(set(X_noisy[:, 0]))
    (35, 150)
    """
    X = _check_data(X)
    codes, n_classes = _check_labels(y, n_samples=len(X))
    _check_noise(noise_level, noise_scale, jitter)
    generator = _generator(random_state)
    ranges = np.ptp(X, axis=0)

    n_pairs = n_classes * X.shape[1]
    n_noisy = max(1, math.floor(noise_level * n_pairs + 0.5))
    noise_pairs = np.zeros((n_classes, X.shape[1]), dtype=bool)
    noise_pairs.flat[generator.choice(n_pairs, size=n_noisy, replace=False)] = True

    noisy = noise_pairs[codes]
    X[noisy] += (noise_scale * generator.standard_normal(np.count_nonzero(noisy))).astype(
        X.dtype
    )
    if jitter:
        # Drawn last, so that the pairs and the noise are those of the same seed without jitter.
        X += (jitter * ranges * generator.uniform(-0.5, 0.5, X.shape)).astype(X.dtype)
    return X, noise_pairs


def _check_data(X):
    """Validate X and return a copy as floats."""
    if issparse(X):
        raise TypeError("corrupt needs a dense X, got a sparse matrix. Use X.toarray().")
    X = np.asarray(X)
    if X.dtype.kind not in "biufO":
        raise ValueError(f"corrupt needs a numeric X, got dtype {X.dtype}.")
    if X.ndim != 2:
        raise ValueError(f"corrupt needs a two-dimensional X, got {X.ndim} dimension(s).")
    if 0 in X.shape:
        raise ValueError(
            f"corrupt needs at least one row and one feature, got shape {X.shape}."
        )
    try:
        X = np.array(X, dtype=np.float32 if X.dtype == np.float32 else np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ValueError(f"corrupt needs a numeric X, but {error}.") from error
    if not np.isfinite(X).all():
        raise ValueError("corrupt needs a finite X, got missing or infinite values.")
    return X


def _check_labels(y, n_samples):
    y = np.asarray(y)
    if y.ndim != 1:
        raise ValueError(f"corrupt needs a one-dimensional y, got {y.ndim} dimension(s).")
    if len(y) != n_samples:
        raise ValueError(
            f"corrupt needs one label per row of X, got {len(y)} labels for {n_samples} rows."
        )
    if pd.isna(y).any():
        raise ValueError("corrupt needs a label for every row, got missing values in y.")
    try:
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"corrupt needs labels that can be sorted, but {error}.") from error
    return codes, len(classes)


def _check_noise(noise_level, noise_scale, jitter):
    amounts = {"noise_level": noise_level, "noise_scale": noise_scale, "jitter": jitter}
    for name, value in amounts.items():
        if not isinstance(value, Real) or isinstance(value, bool):
            raise TypeError(f"corrupt needs {name} to be a number, got {value!r}.")
    if not 0 <= noise_level <= 1:
        raise ValueError(f"corrupt needs noise_level between 0 and 1, got {noise_level}.")
    for name in ("noise_scale", "jitter"):
        if not 0 <= amounts[name] < math.inf:
            raise ValueError(f"corrupt needs a finite {name} >= 0, got {amounts[name]}.")


def _generator(random_state):
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        random_state = np.random.SeedSequence(random_state.randint(2**31, size=4).tolist())
    if random_state is None or isinstance(random_state, np.random.SeedSequence):
        return np.random.default_rng(random_state)
    if isinstance(random_state, Integral) and random_state >= 0:
        return np.random.default_rng(np.random.SeedSequence(int(random_state)))
    raise ValueError(
        "corrupt needs random_state to be a non-negative int, Generator, SeedSequence, "
        f"RandomState or None, got {random_state!r}."
    )
