"""Choose the number of clusters by stability and held-out likelihood of mixtures."""

from copy import copy
from numbers import Integral
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

from cafelearn._candidates import fit_models, make_models
from cafelearn._mixtures import (
    fit_mixture,
    log_sum,
    make_layout,
    merged_memberships,
    row_statistics,
)
from cafelearn._mwkmeans import MinkowskiWeightedKMeans
from cafelearn._progress import phase
from cafelearn._scaling import scale_rows
from cafelearn._seeds import seed_integer, seed_sequence
from cafelearn._structure import (
    QUICK,
    informative_rows,
    permute,
    permuted_groups,
    quick_scaler,
    vary,
    varying_columns,
)
from cafelearn._validation import (
    check_columns_observed,
    check_data,
    check_weights,
    distributed,
    is_dask,
)
from cafelearn._variables import codes_of, set_variables
from cafelearn.selection import adjusted_rand_index, contingency_tables, frame_of

# "auto" tries at most MOST clusters, and fewer if the halves would have fewer than
# ROWS_PER_CLUSTER rows per cluster. Components with fewer rows than this are not clusters.
MOST, ROWS_PER_CLUSTER = 10, 5
# If there are more rows, a random sample of this size is used.
ROWS = 4_000
# Number of random splits of the rows into halves. The first PERMUTED splits are also applied
# to permuted copies of the rows.
SPLITS, PERMUTED = 5, 2
# Number of initial clusters beyond the largest number to try. They are merged later. Without
# them, an initial cluster might cover two true clusters.
EXTRA = 8
# Largest number of starts, and of iterations of each, for the initial clusters.
STARTS, ITERATIONS = 4, 50
# Values more than this many interquartile ranges beyond the quartiles are moved closer to them.
FENCE = 5.0
# Every scored mixture includes a component fitted to all rows of its half, with this share. It
# limits how much a single row can lower the score.
BACKGROUND = 0.01
# Structure is found if the score exceeds that of permuted copies by more than this many
# standard deviations.
THRESHOLD = 3.0
# Columns of `n_clusters_table_` that hold measurements.
MEASURED = (
    "stability",
    "spread",
    "permuted_stability",
    "score",
    "permuted_score",
    "criterion",
)
# Spawn key of the seed of the choice. It is large, because the starts of the fit use the first
# children of the same seed.
CHILD = 2**31


class Trial(NamedTuple):
    """Rows, as given or with permuted columns, and one split of them into halves."""

    X: np.ndarray
    scaled: np.ndarray
    weight: np.ndarray | None
    halves: tuple  # two arrays of row positions
    is_permuted: bool


def fit_chosen(estimator, X, sample_weight=None):
    """Choose the number of clusters of an estimator, and fit it with that number.

    The fit is the same as if `n_clusters` were the chosen number.
    """
    owner, given = type(estimator).__name__, estimator.n_clusters
    numbers = _listed_numbers(owner, given)
    if not (isinstance(estimator.init, str) or callable(estimator.init)):
        raise ValueError(
            f"{owner} needs init to be a name or a callable for n_clusters={given!r}; an array "
            "of centres fixes the number of clusters."
        )
    model = copy(estimator)
    model.n_clusters = 1 if numbers is None else min(numbers)
    seed = seed_sequence(estimator.random_state)
    seed = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, CHILD))
    rows, weight = _rows(model, X, sample_weight, seed)
    set_variables(model)
    labels = model.feature_groups_
    numbers = _check_numbers(owner, given, numbers, len(rows))
    quick = estimator if isinstance(estimator, MinkowskiWeightedKMeans) else None
    with phase("number of clusters"):
        model._numbers = choose_number(
            rows, numbers, quick, seed, estimator.n_jobs, weight, labels
        )
    model.n_clusters = chosen_number(model._numbers)
    model._fit(X, sample_weight)
    vars(estimator).update(vars(model) | {"n_clusters": given})
    return estimator


def chosen_number(numbers):
    """Return the chosen number from the result of `choose_number`."""
    table = numbers["table"]
    return int(table["n_clusters"][table["chosen"].index(True)])


def number_frame(numbers):
    """Return the result of `choose_number` as a data frame, one row for each number."""
    return pd.DataFrame(numbers["table"]).set_index("n_clusters")


def _listed_numbers(owner, given):
    """Return the numbers of clusters to try in ascending order; None for "auto"."""
    if isinstance(given, str):
        return None
    numbers = list(given)
    if not numbers:
        raise ValueError(f"{owner} needs at least one number of clusters, got {given!r}.")
    for number in numbers:
        is_integer = isinstance(number, Integral) and not isinstance(number, bool)
        if not is_integer or number < 1:
            raise ValueError(
                f"{owner} needs n_clusters to be an integer >= 1, 'auto' or several integers; "
                f"got {number!r} in {given!r}."
            )
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"{owner} needs distinct numbers of clusters, got {given!r}.")
    return sorted(int(number) for number in numbers)


def _check_numbers(owner, given, numbers, n_rows):
    """Return the numbers to try on `n_rows` rows; raise if there are too few rows."""
    if numbers is None:
        most = min(MOST, max(2, n_rows // (2 * ROWS_PER_CLUSTER)))
        numbers = list(range(1, most + 1))
    if 2 * max(numbers) > n_rows and numbers != [1]:
        raise ValueError(
            f"{owner}(n_clusters={given!r}) fits halves of the rows, and needs at least "
            f"{2 * max(numbers)} rows for {max(numbers)} clusters; got {n_rows}."
        )
    return numbers


def _rows(estimator, X, sample_weight, seed):
    """Validate the data; return at most ROWS rows and their weights.

    The weights are None if none were given, and for Dask collections, where they are ignored.
    """
    (sampling,) = seed.spawn(1)
    if is_dask(X):
        X = distributed().sample_rows(estimator, X, sampling, ROWS)
        return X[informative_rows(X)], None
    X = check_data(estimator, X, gaps=True)
    check_columns_observed(estimator, X)
    weight, used = None, np.arange(len(X))
    if sample_weight is not None:
        weight = check_weights(sample_weight, X, estimator)
        used = np.flatnonzero(weight > 0)
    if len(used) > ROWS:
        chosen = np.random.default_rng(sampling).choice(used, ROWS, replace=False)
        used = np.sort(chosen)
    used = used[informative_rows(X[used])]
    if len(used) == len(X):
        return X, weight
    return X[used], None if weight is None else weight[used]


def choose_number(X, numbers, model, seed, n_jobs=None, sample_weight=None, labels=None):
    """Choose one of several numbers of clusters; return a dict for `number_frame`.

    The rows are split into halves several times. Each half is clustered into more clusters
    than the largest number, if it has enough rows. EM turns these clusters into a mixture, and
    its components are merged one pair at a time; see `cafelearn._mixtures`. Two quantities are
    measured for each number above 1:

    - The stability is the adjusted Rand index between two clusterings of all rows: the mixture
      of each half assigns every row to its most likely component.
    - The score is the log-likelihood of the rows of each half under the mixture of the other
      half, minus their log-likelihood under a single component.

    Both are also measured for copies of the rows in which the variables are permuted
    independently of each other.

    The criterion is the stability times the square root of the score, averaged over the
    splits. The smallest number whose criterion is within a standard error of the largest
    criterion is chosen. If the score of this number is not well above the score of the
    permuted copies, 1 is chosen instead if it is among the numbers.

    `numbers` are in ascending order. `model` is a MinkowskiWeightedKMeans with the settings of
    the initial clusters. None means the quick candidates of `cafelearn._structure`; in each
    half, the one whose mixture has the highest likelihood is used. `labels` has the variable of
    each column; None means that each column is a variable.
    """
    several = [k for k in numbers if k > 1]
    if not several or not vary(X).any():
        return _records(numbers, {}, numbers[0], found=not several)
    if model is None:
        X, labels = varying_columns(X, labels)
        X = np.ascontiguousarray(X)
    X = _draw_in(X)
    if sample_weight is not None:
        # Scale the weights to a mean of 1, because the priors of the mixtures count as rows.
        # Divide by the largest first, because the sum of huge weights would overflow.
        sample_weight = sample_weight / sample_weight.max()
        sample_weight = sample_weight / sample_weight.mean()
    codes = None if labels is None else codes_of(labels)
    layout = make_layout(X, frame_of(X, sample_weight, codes).one_hot)
    trials = _make_trials(X, model, sample_weight, seed, labels)
    most = _most_components(max(several), len(X))
    models = _fit_trials(trials, most, model, seed, n_jobs, labels)
    measured = np.array(
        [
            _measure(trial, layout, pair, several)
            for trial, pair in zip(trials, models, strict=True)
        ]
    )
    return _decide(numbers, several, measured, [trial.is_permuted for trial in trials])


def _draw_in(X):
    """Move outliers closer to the other values of their column.

    Otherwise a single outlier could hide all clusters. The fences of a column are FENCE
    interquartile ranges below and above its quartiles. Values beyond a fence are moved towards
    it, to at most 2 * FENCE interquartile ranges beyond it. Their order is kept.
    """
    low, high = np.nanquantile(X, (0.25, 0.75), axis=0)
    with np.errstate(all="ignore"):
        span = high - low
        fence = np.clip(X, low - FENCE * span, high + FENCE * span)
        beyond = np.log1p(np.abs(X / span - fence / span))
        drawn = fence + np.sign(X - fence) * span * beyond / (1 + beyond / (2 * FENCE))
    # Columns with an interquartile range of 0, such as those with many zeros, are not changed.
    keep = (span == 0) | ~np.isfinite(span) | (fence == X)
    return np.where(keep, X, drawn).astype(X.dtype)


def _most_components(most, n_rows):
    """Return the number of initial clusters: up to EXTRA more than the largest number."""
    return max(most, min(most + EXTRA, n_rows // (2 * ROWS_PER_CLUSTER)))


def _make_trials(X, model, sample_weight, seed, labels):
    """Make the Trials: splits of the rows, and of permuted copies of them."""
    splitting, *permuting = seed.spawn(1 + PERMUTED)
    rng, n = np.random.default_rng(splitting), len(X)
    groups = permuted_groups(X, None if labels is None else codes_of(labels))
    scaler = None if model is not None else quick_scaler(X, labels)
    trials = []
    for split in range(SPLITS):
        order = rng.permutation(n)
        halves = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
        trials.append(Trial(X, scale_rows(scaler, X), sample_weight, halves, False))
        if split < PERMUTED:
            copy = permute(X, groups, np.random.default_rng(permuting[split]))
            trials.append(Trial(copy, scale_rows(scaler, copy), sample_weight, halves, True))
    return trials


def _fit_trials(trials, k, model, seed, n_jobs, labels):
    """Fit models with k clusters; return, for each trial, the models of the two halves."""
    models, rows, weights, parts = [], [], [], []
    seeds = iter(seed.spawn(2 * len(trials)))
    for trial in trials:
        for half in trial.halves:
            some = _make_models(model, k, next(seeds), labels)
            parts.append(some)
            models += some
            rows += [_rows_to_fit(trial.scaled[half])] * len(some)
            weight = None if trial.weight is None else trial.weight[half]
            weights += [weight] * len(some)
    # There is no warning about a half with fewer than k distinct rows. The final fit warns if
    # there are too few distinct rows in all.
    fit_models(models, rows, n_jobs, weights=weights)
    return list(zip(parts[::2], parts[1::2], strict=True))


def _rows_to_fit(X):
    """Return contiguous rows, with zeros in columns that have no observed value.

    Models do not accept columns without observed values.
    """
    X = np.ascontiguousarray(X)
    X[:, np.isnan(X).all(axis=0)] = 0.0
    return X


def _make_models(model, k, seed, labels):
    """Make the models of one half: one for each quick candidate, or a copy of `model`."""
    if model is None:
        options = {"init": "k-means++", "n_init": STARTS, "max_iter": ITERATIONS}
        return make_models(QUICK, seed, n_clusters=k, feature_groups=labels, **options)
    return [
        clone(model).set_params(
            n_clusters=k,
            n_init=min(STARTS, model.n_init),
            max_iter=min(ITERATIONS, model.max_iter),
            feature_groups=labels,
            random_state=seed_integer(seed),
        )
    ]


def _measure(trial, layout, models, numbers):
    """Return (stability, score) of one trial for each number of clusters.

    `models` are the two lists of fitted models of the halves.
    """
    statistics = row_statistics(trial.X, layout)
    weight = np.ones(len(statistics)) if trial.weight is None else trial.weight
    mixtures = [
        _fit_mixtures(some, statistics[half], weight[half], layout, numbers)
        for some, half in zip(models, trial.halves, strict=True)
    ]
    others = trial.halves[::-1]
    measured = []
    for k in numbers:
        score = sum(
            weight[half] @ _gains(mixture[k], mixture[1], statistics[half])
            for mixture, half in zip(mixtures, others, strict=True)
        )
        labels = [of[k].log_densities(statistics).argmax(axis=1) for of in mixtures]
        table = contingency_tables(labels, [k, k])[1, 0]
        measured.append((adjusted_rand_index(table), score))
    return measured


def _gains(mixture, single, statistics):
    """Compute the log-likelihood of each row under a mixture, minus that under one component.

    `single` is the mixture of one component. It gets the share BACKGROUND in the mixture, so
    the result is at least log(BACKGROUND).
    """
    gain = log_sum(mixture.log_densities(statistics)) - single.log_densities(statistics)[:, 0]
    return np.logaddexp(np.log1p(-BACKGROUND) + gain, np.log(BACKGROUND))


def _fit_mixtures(models, statistics, weight, layout, numbers):
    """Return a dict of mixtures of these rows, with 1 and each of `numbers` components."""
    found = [
        fit_mixture(
            statistics,
            np.eye(len(model.cluster_centers_))[model.labels_] * weight[:, None],
            layout,
            weight,
        )
        for model in models
    ]
    mixture = max(found, key=lambda some: some.likelihood)
    mixtures = {}
    while True:
        k, memberships = len(mixture.offset), mixture.memberships
        mass = memberships.sum(axis=0)
        if k > 1 and mass.min() < _least_mass(weight, k):
            # This component is empty or consists of a few outliers: remove it.
            fewer = np.delete(memberships, mass.argmin(), axis=1)
        else:
            # A number skipped by a removal gets the mixture with the next smaller number.
            for number in (1, *numbers):
                if number >= k:
                    mixtures.setdefault(number, mixture)
            if k == 1:
                return mixtures
            fewer = merged_memberships(mixture, statistics, layout)
        mixture = fit_mixture(statistics, fewer, layout, weight)


def _least_mass(weight, k):
    """Return the mass that each of k components of these rows needs to count as a cluster."""
    return max(1.0, min(ROWS_PER_CLUSTER, len(weight) / (2 * k))) * weight.mean()


def _decide(numbers, several, measured, is_permuted):
    """Choose a number from the results of `_measure` for all trials; return `_records`."""
    is_permuted = np.array(is_permuted)
    stability, score = np.moveaxis(measured[~is_permuted], 2, 0)
    permuted, permuted_score = np.moveaxis(measured[is_permuted], 2, 0)
    criterion = stability * np.sqrt(np.maximum(score, 0.0))
    best = _smallest_as_good(criterion)
    mean_score = score.mean(axis=0)
    # A few splits give a poor estimate of the variance of the score, so the variances for the
    # best and all smaller numbers are averaged. For larger numbers the variance is larger.
    spread = np.sqrt(
        sum(
            scores[:, : best + 1].var(axis=0, ddof=1).mean()
            for scores in (score, permuted_score)
        )
    )
    gap = mean_score[best] - permuted_score[:, best].mean()
    found = mean_score[best] > 0 and gap > THRESHOLD * spread
    values = (
        stability.mean(axis=0),
        stability.std(axis=0, ddof=1),
        permuted.mean(axis=0),
        mean_score,
        permuted_score.mean(axis=0),
        criterion.mean(axis=0),
    )
    columns = {
        name: dict(zip(several, of_name, strict=True))
        for name, of_name in zip(MEASURED, values, strict=True)
    }
    chosen = several[best] if found or 1 not in numbers else 1
    return _records(numbers, columns, chosen, found)


def _smallest_as_good(criterion):
    """Return the index of the smallest number whose criterion is about equal to the largest.

    The mean of its difference from the largest criterion, over the splits, must be at most the
    standard error of this mean.
    """
    mean = criterion.mean(axis=0)
    behind = criterion[:, [np.argmax(mean)]] - criterion
    error = behind.std(axis=0, ddof=1) / np.sqrt(len(criterion))
    return int(np.argmax(behind.mean(axis=0) <= error))


def _records(numbers, columns, chosen, found):
    """Return the dict for `number_frame`; NaN where nothing was measured."""
    table = {"n_clusters": list(numbers)}
    for name in MEASURED:
        table[name] = [float(columns.get(name, {}).get(k, np.nan)) for k in numbers]
    table["chosen"] = [k == chosen for k in numbers]
    return {"found": bool(found), "table": table}
