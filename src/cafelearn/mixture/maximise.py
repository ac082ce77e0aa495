"""The M-step: parameters from sums, and which columns are relevant in which clusters.

Each choice between densities maximises the expected log-likelihood plus the prior minus
``price`` per parameter, where the price is half the logarithm of the number of rows, as in BIC.
"""

import numpy as np

from cafelearn.mixture.covariances import bounded
from cafelearn.mixture.em import Parameters
from cafelearn.mixture.marginals import LOG_2PI
from cafelearn.mixture.settings import SETTINGS, TINY

IRRELEVANT, SAME_SPREAD, OWN_SPREAD = 0, 1, 2


def m_step(sums, columns, family, before=None, choose_block=True):
    """Compute the `Parameters` of the highest penalised likelihood for given `Sums`.

    Parameters
    ----------
    sums : Sums
        Sums over all rows.
    columns : Columns
        Layout of the columns.
    family : Family
        Kind of mixture.
    before : Parameters, default=None
        Parameters of the iteration before.
    choose_block : bool, default=True
        Whether columns may enter or leave the block.

    Returns
    -------
    parameters : Parameters
        The parameters.
    """
    k = len(sums.present)
    price = 0.5 * np.log(max(sums.total, 2.0))
    log_weight = _log_weights(sums.mass, k, sums.total)
    n_parameters = float(len(sums.mass) - 1)
    own = log_weight[:k] - np.log(np.exp(log_weight[:k]).sum())
    log_prior = float((own + np.log(k)).sum())
    mean = sums.first / np.maximum(sums.scaled, TINY)

    block = np.empty(0, dtype=np.int64)
    covariance = np.empty((k, 0, 0))
    in_block = np.zeros(len(columns.place), dtype=bool)
    if family.structure is not None and columns.complete.any():
        scatter = _scatter(sums, columns, mean)
        before_block = None if before is None else before.block
        block = _choose_block(
            sums, columns, family.structure, scatter, price, before_block, choose_block
        )
        in_block[block] = True
        inside = np.flatnonzero(in_block[columns.complete])
        part = scatter[np.ix_(range(len(scatter)), inside, inside)]
        mass = sums.mass[:k]
        one = bounded(family.structure.estimate(part, mass))
        covariance = np.broadcast_to(one, (k, *one.shape[1:]))
        n_parameters += k * len(block) + family.structure.n_parameters(k, len(block))
        log_prior += _covariance_prior(one)

    log_ratio, gain, own_parameters, own_prior = _event_ratios(sums, columns, price)
    n_variables = columns.n_variables
    discrete, modes = gain[:, :n_variables] > 0, gain[:, n_variables:]
    modes = np.where(in_block, -np.inf, modes)
    states = _choose_states(sums, columns, mean, modes, price, in_block, before)
    relevant = np.hstack([discrete, states.by_modes])
    log_ratio = log_ratio * relevant[:, columns.variable] if columns.n_events else log_ratio
    n_parameters += (own_parameters * relevant).sum() + states.n_parameters
    log_prior += (own_prior * relevant).sum() + states.log_prior
    if family.background:
        ratios, prior = _background_ratios(sums, columns)
        log_ratio = np.vstack([log_ratio, ratios])
        log_prior += prior
        n_parameters += len(columns.event_share) - n_variables
    return Parameters(
        log_weight,
        log_ratio,
        states.used.astype(np.float64),
        mean,
        states.variance,
        np.where(in_block, 1 + getattr(family.structure, "own_spread", False), states.kind),
        block,
        mean[:, block],
        covariance,
        float(n_parameters),
        float(log_prior),
    )


def _log_weights(mass, k, total):
    """Compute the log mixing weights; the background has a bounded weight."""
    shares = (mass[:k] + 1) / (mass[:k].sum() + k)
    if len(mass) == k:
        return np.log(shares)
    background = np.clip(mass[k] / total, 1e-3, SETTINGS.background)
    return np.log(np.append(shares * (1 - background), background))


def _event_ratios(sums, columns, price):
    """Compute the log ratios of events and modes, and what each variable gains in each cluster.

    The ratio is that of the probability in the cluster to the share in all rows. The last two
    results are the parameters of each variable and its log prior.
    """
    k = len(sums.present)
    n_all = columns.n_variables + len(columns.place)
    if not columns.n_events:
        empty = np.zeros((k, n_all))
        return np.zeros((k, 0)), empty - np.inf, np.zeros(n_all), empty
    variable, share = columns.variable, np.maximum(columns.share, TINY)
    counts, prior = sums.events[:k], SETTINGS.prior
    observed = by_variable(counts, variable, n_all)
    ratio = np.log((counts + prior * share) / (observed[:, variable] + prior) / share)
    log_prior = by_variable(prior * share * ratio, variable, n_all)
    levels = np.bincount(variable, minlength=n_all)
    own_parameters = np.maximum(levels - 1, 0)
    gain = by_variable(counts * ratio, variable, n_all) + log_prior - price * own_parameters
    return ratio, np.where(levels > 1, gain, -np.inf), own_parameters, log_prior


def by_variable(table, variable, n_variables):
    """Add the columns of a table that belong to the same variable."""
    found = np.zeros((len(table), n_variables))
    np.add.at(found.T, variable, table.T)
    return found


def _background_ratios(sums, columns):
    """Compute the log ratios of the background, and their log prior.

    The prior is one row, divided equally between the events of each variable. The modes do not
    depend on the background.
    """
    count = len(columns.event_share)
    found, log_prior = np.zeros(columns.n_events), 0.0
    if count:
        variable, events = columns.event_variable, sums.events[-1, :count]
        levels = np.bincount(variable)
        observed = np.bincount(variable, events)
        share = (events + 1 / levels[variable]) / (observed[variable] + 1)
        found[:count] = np.log(share / np.maximum(columns.event_share, TINY))
        log_prior = float((np.log(share * levels[variable]) / levels[variable]).sum())
    return found, log_prior


class _States:
    """Densities of the columns outside the block."""

    def __init__(self, used, variance, kind, by_modes, n_parameters, log_prior):
        self.used, self.variance, self.kind = used, variance, kind
        self.by_modes = by_modes
        self.n_parameters, self.log_prior = n_parameters, log_prior


def _choose_states(sums, columns, mean, modes, price, in_block, before):
    """Choose the density of each column in each cluster.

    The choices for a column are one variance in all clusters, or a variance of its own in each
    cluster. In each cluster, the column may be irrelevant instead; with own variances, it may
    also be described by its modes, which gain `modes`.
    """
    scatter = np.maximum(sums.second - sums.first * mean, 0.0)
    free = 0.5 * sums.log_scale - 0.5 * LOG_2PI * sums.present - sums.log_marginal

    own = _variance(scatter, sums.present)
    own_prior = _variance_prior(own)
    own_gain = free - 0.5 * (sums.present * np.log(own) + scatter / own) + own_prior - 2 * price
    by_modes = modes > np.maximum(own_gain, 0.0)
    own_used = (own_gain > 0) & ~by_modes
    own_total = np.where(by_modes, modes, np.maximum(own_gain, 0.0)).sum(axis=0)

    def with_one(used):
        """Fit one variance to the clusters in which the columns are used; shape (..., k, c)."""
        variance = _variance((scatter * used).sum(axis=-2), (sums.present * used).sum(axis=-2))
        each = variance[..., None, :]
        gain = free - 0.5 * (sums.present * np.log(each) + scatter / each) - price
        total = (gain * used).sum(axis=-2) - price + _variance_prior(variance)
        return variance, gain, np.where(used.any(axis=-2), total, 0.0)

    trials = [np.ones(mean.shape, dtype=bool)]
    if before is not None:
        trials.append((before.used > 0) & (before.kind == SAME_SPREAD))
    _, gain, _ = with_one(trials[0])
    trials.append(gain > 0)
    _, gain, _ = with_one(trials[-1])
    trials.append(gain > 0)
    trials = np.stack(trials)
    variances, _, totals = with_one(trials)
    best = totals.argmax(axis=0)[None]
    same = np.take_along_axis(variances, best, axis=0)[0]
    same_used = np.take_along_axis(trials, best[:, None], axis=0)[0]
    same_total = np.take_along_axis(totals, best, axis=0)[0]

    is_same = (same_total > own_total) & ~in_block
    used = np.where(is_same, same_used, own_used) & ~in_block
    by_modes = by_modes & ~is_same & ~in_block
    variance = np.where(is_same, same, own)
    count = used.sum(axis=0)
    parameters = np.where(is_same, count + (count > 0), 2 * count).sum()
    prior = np.where(used & ~is_same, own_prior, 0.0).sum()
    prior += np.where(is_same & (count > 0), _variance_prior(same), 0.0).sum()
    kind = np.where(is_same, SAME_SPREAD, OWN_SPREAD) * (used | by_modes).any(axis=0)
    return _States(used, variance, kind, by_modes, parameters, prior)


def _variance(scatter, mass):
    """Compute variances with the prior."""
    prior = SETTINGS.prior
    return (scatter + prior) / (mass + prior)


def _variance_prior(variance):
    """Compute the log prior of variances; it is 0 for a variance of 1."""
    return -0.5 * SETTINGS.prior * (np.log(variance) + 1 / variance - 1)


def _covariance_prior(covariance):
    """Compute the log prior of covariance matrices of shape (k, b, b)."""
    # Rounding errors of enormous covariances may make the smallest eigenvalue 0.
    values = np.maximum(np.linalg.eigvalsh(covariance), SETTINGS.least_variance)
    return -0.5 * SETTINGS.prior * (np.log(values) + 1 / values - 1).sum()


def _scatter(sums, columns, mean):
    """Return the scatter matrices of the complete columns, by cluster or of all clusters."""
    mean = mean[:, columns.complete]
    if len(sums.products) == 1:
        centers = (mean * sums.scaled_mass[:, None]).T @ mean
        return sums.products - centers
    return sums.products - sums.scaled_mass[:, None, None] * mean[:, :, None] * mean[:, None, :]


def _choose_block(sums, columns, structure, scatter, price, before, may_change):
    """Choose the columns of the block among the complete columns.

    A column leaves the block if its density given the others is worth less than its free-form
    density and the parameters that are saved; the best of the other columns enters if it is
    worth more.
    """
    complete = np.flatnonzero(columns.complete)
    if before is not None and not may_change:
        return before
    k, mass = len(sums.present), sums.mass[: len(sums.present)]
    marginal = (sums.log_marginal - 0.5 * sums.log_scale)[:, complete].sum(axis=0)

    def count(b):
        return k * b + structure.n_parameters(k, b)

    def fit(inside):
        ix = np.ix_(range(len(scatter)), inside, inside)
        return bounded(structure.estimate(scatter[ix], mass))

    def worth(variances):
        """Return the log-likelihood of columns with these variances given other columns."""
        share = np.broadcast_to(mass[:, None], (k, variances.shape[-1]))
        if len(variances) == 1:
            share = share.sum(axis=0, keepdims=True)
        return -0.5 * (share * (LOG_2PI + 1 + np.log(variances))).sum(axis=0)

    most = _largest_block(mass.sum(), k, structure)
    inside = list(range(len(complete)))
    if before is not None:
        inside = np.searchsorted(complete, before).tolist()
    elif len(inside) > most:
        spread = np.einsum("lii->li", scatter) + SETTINGS.prior
        size = (mass if len(scatter) > 1 else mass.sum(keepdims=True))[:, None]
        gain = worth(spread / (size + SETTINGS.prior)) - marginal
        inside = np.sort(np.argsort(-gain, kind="stable")[:most]).tolist()
    precision, left = np.linalg.inv(fit(inside)), np.array(inside)
    while len(left) > 1:
        gain = worth(1 / np.einsum("lii->li", precision)) - marginal[left]
        gain -= price * (count(len(left)) - count(len(left) - 1))
        worst = int(np.argmin(gain))
        if gain[worst] >= 0:
            break
        # The precision without a column, from that with it.
        rest = np.delete(np.arange(len(left)), worst)
        column = precision[:, rest, worst]
        precision = precision[:, rest][:, :, rest] - (
            column[:, :, None] * column[:, None, :] / precision[:, worst, worst, None, None]
        )
        left = left[rest]
    inside = left.tolist()
    outside = [v for v in range(len(complete)) if v not in inside]
    if outside and len(inside) < most:
        gain = worth(_conditional(fit, scatter, mass, structure, inside, outside))
        gain += -marginal[outside] - price * (count(len(inside) + 1) - count(len(inside)))
        if gain.max() > 0:
            inside = sorted([*inside, outside[int(np.argmax(gain))]])
    return complete[inside]


def _conditional(fit, scatter, mass, structure, inside, outside):
    """Return the variances of the columns outside the block given those inside."""
    prior = SETTINGS.prior
    size = (mass if len(scatter) > 1 else mass.sum(keepdims=True))[:, None, None]
    matrices = (scatter + prior * np.eye(scatter.shape[-1])) / (size + prior)
    cross = matrices[:, inside][:, :, outside]
    explained = np.einsum("lbo,lbo->lo", cross, np.linalg.solve(fit(inside), cross))
    variances = np.einsum("lii->li", matrices)[:, outside] - explained
    return np.maximum(variances, SETTINGS.least_variance)


def _largest_block(total, k, structure):
    """Return the largest number of columns of a block, such that each cluster has three rows
    for each.
    """
    rows = total if structure.pooled else total / k
    return max(2, int(rows / 3))
