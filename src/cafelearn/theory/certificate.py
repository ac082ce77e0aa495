"""Check every claim of the paper on one fit.

Most claims are about the weights of Eq. 4 and the dispersions from which they are computed. The
dispersions are computed again from the data and the fitted labels and centres. Only the check
of Theorem 1 uses values recorded during the fit.
"""

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from cafelearn.base.typing import Estimator, MatrixLike, VectorLike
from cafelearn.data.gaps import has_gaps
from cafelearn.data.validation import check_data, check_weights
from cafelearn.data.variables import (
    sum_over_variables,
)
from cafelearn.kmeans.descent import one_cluster
from cafelearn.kmeans.scales import data_scale
from cafelearn.kmeans.starts import uses_offset
from cafelearn.theory import formulas, noise
from cafelearn.theory.facts import Facts

HOLDS, FAILS, NOT_APPLICABLE = "holds", "does not hold", "does not apply"


class Certificate(pd.DataFrame):
    """Result of :func:`certificate`: a data frame with one row per claim, printed in full."""

    @property
    def _constructor(self):
        return Certificate

    @property
    def all_hold(self) -> bool:
        """Whether every claim that applies holds."""
        return not (self["verdict"] == FAILS).any()

    def __repr__(self):
        if "verdict" not in self.columns:
            return super().__repr__()
        return self.to_string(
            float_format=lambda x: f"{x:.3g}", na_rep="", justify="left", max_colwidth=60
        )


def certificate(
    model: Estimator, X: MatrixLike, sample_weight: VectorLike | None = None
) -> Certificate:
    """Check every claim of the paper on a fitted model and its training data.

    For a model with `feature_groups` the claims are checked for variables instead of features.
    The dispersion of a variable is the sum of the dispersions of its features. Eq. 4 and its
    consequences hold for these sums.

    Parameters
    ----------
    model : MinkowskiWeightedKMeans
        A fitted model.
    X : array-like of shape (n_samples, n_features)
        The data to which the model was fitted, without missing values.
    sample_weight : array-like of shape (n_samples,), default=None
        The sample weights of the fit.

    Returns
    -------
    table : Certificate
        A :class:`pandas.DataFrame` with one row per claim. The index has the names of the
        claims. The columns are `measured`, `bound`, `slack` (distance to the bound, negative
        if the claim does not hold), `verdict` ("holds", "does not hold" or "does not apply")
        and `note` (the quantity that is measured, the number of clusters left out because of a
        dispersion of 0, or the reason why the claim does not apply).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cafelearn import MinkowskiWeightedKMeans
    >>> from cafelearn.theory import certificate
    >>> X = load_iris().data
    >>> model = MinkowskiWeightedKMeans(3, p=1.5, dispersion_offset=0, random_state=0).fit(X)
    >>> table = certificate(model, X)
    >>> bool(table.all_hold)
    True
    >>> table.loc["Theorem 2: lower bound", "verdict"]
    'holds'
    """
    check_is_fitted(model)
    # `predict` checks the column names, so it gets X before `check_data` removes them.
    nearest, X = model.predict(X), check_data(model, X, reset=False, gaps=True)
    if has_gaps(X):
        raise ValueError(
            "certificate needs complete rows, as the theorems do, but X has missing values "
            "(NaN)."
        )
    sample_weight = check_weights(sample_weight, X, model)
    facts = Facts(model, X, sample_weight, nearest)
    rows = [*_descent_rows(facts), *_weight_rows(facts), *_objective_rows(facts)]
    rows += [*_suppression_rows(facts), *_rescaling_rows(facts)]
    table = pd.DataFrame(
        rows, columns=["claim", "measured", "bound", "slack", "verdict", "note"]
    )
    return Certificate(table.set_index("claim"))


def _row(claim, measured, bound, slack, why_not=None, note=""):
    if why_not:
        return claim, measured, bound, slack, NOT_APPLICABLE, why_not
    return claim, measured, bound, slack, HOLDS if slack >= 0 else FAILS, note


def _at_most(claim, measured, bound, tolerance=0.0, **options):
    """Return the row of the claim "measured <= bound", up to a tolerance for rounding."""
    slack = bound - measured
    if 0 > slack >= -tolerance:
        slack = 0.0
    return _row(claim, float(measured), float(bound), float(slack), **options)


def _descent_rows(facts):
    model = facts.model
    path = model.objective_path_
    with np.errstate(divide="ignore", invalid="ignore"):
        rises = np.nan_to_num(path[1:] / path[:-1] - 1)
    moving = isinstance(model.dispersion_offset, str) and model.dispersion_offset == "mean"
    moving = moving and uses_offset(model)
    yield _at_most(
        "Theorem 1: descent is monotone",
        rises.max(initial=0.0),
        0.0,
        tolerance=facts.exact,
        why_not="the offset 'mean' changes with the dispersions" if moving else None,
        note="largest relative rise of the objective",
    )
    # A monotone descent cannot return to an earlier clustering.
    yield _at_most(
        "Theorem 1: no clustering recurs",
        model.stop_reason_ == "cycle",
        0,
        why_not="the offset 'mean' changes with the dispersions" if moving else None,
        note=f"{model.n_iter_} iterations, stop reason: {model.stop_reason_}",
    )
    yield _at_most(
        "Fixed point: labels",
        facts.moved,
        0,
        note="rows nearer to another centre",
    )
    yield _at_most(
        "Proposition 1: fixed point, centres",
        _center_error(facts),
        0.0,
        tolerance=facts.exact,
        why_not=facts.unfinished,
        note="distance to the Minkowski centre, relative to the range",
    )
    error = np.abs(
        formulas.feature_weights(facts.D, facts.p, facts.offset) - facts.weights
    ).max()
    yield _at_most(
        "Eq. 4: fixed point, weights",
        error,
        0.0,
        tolerance=facts.exact,
        why_not=facts.why_not if facts.other_weighting else facts.unfinished,
        note="largest difference from Eq. 4 with the offset",
    )


def _center_error(facts):
    error = 0.0
    for l in range(len(facts.centers)):
        members = (facts.labels == l) & (facts.sample_weight > 0)
        if not members.any():
            continue
        X = np.ascontiguousarray(facts.X[members])
        span = np.ptp(X, axis=0)
        _, scale = data_scale(X.min(axis=0), X.max(axis=0))
        center, _ = one_cluster(X, facts.sample_weight[members], scale, facts.p)
        away = np.abs(center - facts.centers[l]) / np.where(span > 0, span, 1.0)
        error = max(error, away.max())
    return error


def _weight_rows(facts):
    w, p = facts.weights, facts.p
    yield _at_most(
        "Eq. 4: weights sum to 1",
        np.abs(w.sum(axis=1) - 1).max(),
        0.0,
        tolerance=facts.exact,
        note="largest difference from 1",
    )
    D, w = facts.D[facts.positive], w[facts.positive]
    note = _left_out(facts)
    # Ratios of weights near underflow are inaccurate, so they are not checked.
    visible = (w > 1e-150)[:, :, None] & (w > 1e-150)[:, None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        log_w, log_D = np.log(w), np.log(D)
        excess = np.abs(_differences(log_w) + _differences(log_D) / (p - 1))
    yield _at_most(
        "Proposition 2: power law of ratios",
        np.where(visible, excess, 0.0).max(initial=0.0),
        0.0,
        tolerance=facts.exact / (p - 1) * 100,
        why_not=facts.why_not,
        note=note or "largest error of log(w_u / w_v)",
    )
    wrong = (_differences(D) < -1e-9 * D[:, None, :]) & (_differences(w) < 0) & visible
    yield _at_most(
        "Proposition 2: order is reversed",
        wrong.sum(),
        0,
        why_not=facts.why_not,
        note=note or "pairs in the wrong order",
    )
    tiny = formulas.feature_weights(D, 1 + 1e-9)
    yield _at_most(
        "Corollary 2: selection as p nears 1",
        np.abs(tiny - formulas.selective_limit(D)).max(initial=0.0),
        0.0,
        tolerance=_tie_share(D),
        note=note or "difference from the limit at p = 1 + 1e-9",
    )
    large = formulas.feature_weights(D, 1e9)
    yield _at_most(
        "Corollary 3: uniform weights as p grows",
        np.abs(large - 1 / facts.D.shape[1]).max(initial=0.0),
        0.0,
        tolerance=1e-6,
        note=note or "difference from 1 / m at p = 1e9",
    )
    exponents = (1.01, 1.1, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0)
    spreads = [
        np.ptp(np.log(np.maximum(formulas.feature_weights(D, q), 1e-300)), axis=1)
        for q in exponents
    ]
    yield _at_most(
        "Corollary 3: contrast falls with p",
        np.diff(spreads, axis=0).max(initial=0.0) if len(D) else 0.0,
        0.0,
        tolerance=1e-9,
        note=note or "largest rise of log(max w / min w) over p",
    )


def _differences(values):
    return values[:, :, None] - values[:, None, :]


def _tie_share(D):
    """Return the tolerance for Corollary 2.

    At p = 1 + 1e-9, features whose dispersions nearly tie still share the weight. The weights
    may then differ from their limit by any amount.
    """
    with np.errstate(divide="ignore"):
        gaps = np.log(D) - np.log(D).min(axis=1, keepdims=True)
    return 1.0 if ((gaps > 0) & (gaps < 1e-7)).any() else 1e-9


def _left_out(facts):
    count = int((~facts.positive).sum())
    return f"clusters left out because of a dispersion of 0: {count}" if count else ""


def _objective_rows(facts):
    D, p = facts.D, facts.p
    W = float((facts.weights**p * D).sum())
    for claim, value in (
        ("Lemma 1: objective from dispersions", formulas.objective(D, p)),
        ("Lemma 2: objective from power means", formulas.power_mean_objective(D, p)),
    ):
        yield _at_most(
            claim,
            abs(W - value) / max(W, value) if max(W, value) > 0 else 0.0,
            0.0,
            tolerance=facts.exact * 10,
            why_not=facts.why_not,
            note="relative difference from the sum of w^p D",
        )
    lower, upper = formulas.objective_bounds(D, p)
    tolerance = facts.exact * max(upper, W)
    yield _row(
        "Theorem 2: lower bound",
        W,
        lower,
        W - lower if W - lower < -tolerance else max(W - lower, 0.0),
        facts.why_not,
        "objective, in units of the data's range",
    )
    yield _at_most(
        "Theorem 2: upper bound",
        W,
        upper,
        tolerance=tolerance,
        why_not=facts.why_not,
        note="objective, in units of the data's range",
    )


def _suppression_rows(facts):
    positive = facts.positive
    D, w, p = facts.D[positive], facts.weights[positive], facts.p
    m = facts.D.shape[1]
    C = D[:, :, None] / D[:, None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = w[:, :, None] / (w[:, None, :] * formulas.weight_ratio_bound(C, p))
    ratio = np.where((C > 1) & (w[:, None, :] > 1e-150) & np.isfinite(ratio), ratio, 0.0)
    yield _at_most(
        "Theorem 3: ratio of weights",
        ratio.max(initial=0.0),
        1.0,
        tolerance=facts.exact / (p - 1) * 100,
        why_not=facts.why_not,
        note=_left_out(facts) or "largest w_u / (C^(-1/(p-1)) w_v)",
    )
    feature, C = noise.dominance(D) if m > 1 else (np.zeros(len(D), int), np.ones(len(D)))
    dominated = C > 1
    why_not = facts.why_not or (
        None if dominated.any() else "no cluster has a single largest dispersion"
    )
    rows = np.flatnonzero(dominated)
    heaviest, bound = w[rows, feature[rows]], noise.suppression_bound(C[rows], max(m, 2), p)
    yield _at_most(
        "Theorem 4: suppression",
        _largest_ratio(heaviest, bound),
        1.0,
        tolerance=facts.exact * 100,
        why_not=why_not,
        note="largest ratio of a weight to its bound",
    )
    noisy = D[rows, feature[rows]]
    limit = noise.noise_suppression_bound(noisy, C[rows], max(m, 2), p)
    yield _at_most(
        "Corollary 4: noise suppression",
        _largest_ratio(heaviest**p * noisy, limit),
        1.0,
        tolerance=facts.exact * 100,
        why_not=why_not,
        note="largest ratio of a rescaled dispersion to its bound",
    )


def _largest_ratio(values, bounds):
    seen = bounds > 1e-290
    return float((values[seen] / bounds[seen]).max(initial=0.0))


def _rescaling_rows(facts):
    """Yield the rows of Lemma 3, measured on rescaled data and rescaled centres."""
    w, D, p = facts.weights, facts.D, facts.p
    columns = facts.column_weights
    rescaled = facts.X * columns[facts.labels]
    measured = formulas.dispersions(
        rescaled, facts.labels, columns * facts.centers, p, facts.sample_weight
    )
    measured = sum_over_variables(measured, facts.codes)
    expected = w**p * D
    top = expected.max(initial=0.0)
    yield _at_most(
        "Lemma 3: rescaled dispersions are w^p D",
        np.abs(measured - expected).max(initial=0.0) / top if top > 0 else 0.0,
        0.0,
        tolerance=facts.exact,
        note="largest relative difference",
    )
    positive = facts.positive
    D, measured, w = D[positive], measured[positive], w[positive]
    visible = (measured > 1e-290)[:, :, None] & (measured > 1e-290)[:, None, :]
    wrong = (_differences(D) > 1e-9 * D[:, None, :]) & (_differences(measured) > 0) & visible
    yield _at_most(
        "Lemma 3: dispersion reversal",
        wrong.sum(),
        0,
        why_not=facts.why_not,
        note=_left_out(facts) or "pairs of features whose order is not reversed",
    )
