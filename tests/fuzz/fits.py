"""Run one fit and check it against the oracle."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from tests.fuzz import cases, oracle

from cafelearn import MinkowskiWeightedKMeans

# Accuracy of each kind of number: distances and dispersions (relative), centres (of their
# members' range; see docs/guarantees.md for p > 2), and the rise of the objective.
ROUNDING = {"float64": 1e-10, "float32": 2e-5}
CENTER = {"float64": 1e-9, "float32": 4e-6}
# Near p = 1 and with two values alike the gradient is flat; with outliers at p > 2 it bends.
FLAT = {"float64": 1e-12, "float32": 2e-6}
HEAVY = {"float64": 3e-8, "float32": 1e-5}
HEAVY_WEIGHTS = {"float64": 1e-7, "float32": 1e-4}
# How much less accurate weights are with the "fixed" offset, which has an error of its own.
FIXED = 10
RISE = {"float64": 1e-7, "float32": 1e-5}
# Base-2 logarithms of terms of distances that count as nothing: those of powers below the
# smallest normal number, apart from factors of up to 2^(3p), and those of relative differences.
# The last line has the exponents up to which powers are taken as they are.
VANISHING = {"float64": -1022, "float32": -126}
VANISHING_RELATIVE = {"float64": -1000, "float32": -120}
LARGEST_PLAIN = {"float64": 8, "float32": 4}


def fit(case, X, weights, n_jobs):
    """The fitted model of a case and whether it says that clusters were lost."""
    model = MinkowskiWeightedKMeans(
        case["n_clusters"],
        p=case["p"],
        dispersion_offset=case["offset"],
        weighting=case["weighting"],
        init=case["init"],
        n_init=2,
        n_jobs=n_jobs,
        random_state=case["seed"] % 2**31,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, sample_weight=weights)
    for warning in caught:
        if issubclass(warning.category, RuntimeWarning):
            raise AssertionError(f"RuntimeWarning: {warning.message}")
    return model, any(issubclass(w.category, ConvergenceWarning) for w in caught)


def run(case):
    """How a case ended, and its findings, each a line."""
    return "fitted", _findings(case)


def _findings(case):
    X, weights = cases.data(case)
    # What the rows weigh: those that are almost nothing beside the largest count as nothing.
    mass = np.ones(len(X)) if weights is None else weights
    model, lost = fit(case, X, weights, case["n_jobs"])
    findings = [*_sound(model, X, mass, lost)]
    if findings:
        return findings
    # The range that counts as none is that of the type in which the rows were fitted.
    X = X.astype(model.cluster_centers_.dtype)
    away = _distances(case, model, X)
    findings += [*_nearest(case, model, *away), *_path(case, model, *away)]
    if case["n_jobs"] > 1:
        findings += _same_bits(model, fit(case, X, weights, 1)[0])
    if oracle.is_doubtful(X, model.labels_, mass):
        return findings
    log_d = oracle.log_dispersions(X, model.labels_, model.cluster_centers_, case["p"], mass)
    findings += _dispersions(case, model, log_d, mass)
    if model.stop_reason_ == "converged":
        findings += [*_centres(case, model, X, mass), *_weights(case, model, X, mass, log_d)]
    elif model.stop_reason_ == "cycle" and case["offset"] != "mean":
        # Possible only among labels whose objectives are the same up to rounding.
        # A path of one objective: an emptied cluster was reseeded, and gave the first labels.
        path = model.objective_path_
        if len(path) > 1 and 1 - path[-1] / path[-2] > RISE[case["dtype"]]:
            findings.append("a cycle with a constant offset while the objective falls")
    return findings


def _sound(model, X, mass, lost):
    for name in ("cluster_centers_", "feature_weights_"):
        if not np.isfinite(getattr(model, name)).all():
            yield f"{name} is not finite"
    for name in ("dispersions_", "inertia_", "objective_path_"):
        if np.isnan(getattr(model, name)).any():
            yield f"{name} is NaN"
    if not np.isin(model.labels_, np.arange(model.n_clusters)).all():
        yield "a label is no cluster"
    n_found = len(np.unique(model.labels_[mass > 0]))
    if n_found < model.n_clusters and not lost:
        yield f"{n_found} clusters without a warning"
    moved = int((model.predict(X) != model.labels_).sum())
    if moved:
        yield f"predict differs from labels_: {moved} rows"


def _distances(case, model, X):
    """Distances of all rows from all centres, and that up to which they may count as zero."""
    spans = X.max(axis=0).astype(oracle.Number) - X.min(axis=0)
    varies = spans >= oracle.SMALLEST_SPAN[X.dtype.name]  # the others count as constant
    weights = model.feature_weights_ * varies
    away = oracle.distances(X, model.cluster_centers_, weights, case["p"])
    exponent, p = VANISHING_RELATIVE[case["dtype"]], case["p"]
    if p <= LARGEST_PLAIN[case["dtype"]]:
        exponent = VANISHING[case["dtype"]] / p + 3
    return away, spans.max() * len(spans) * oracle.Number(2) ** exponent


def _nearest(case, model, away, vanishing):
    chosen = np.take_along_axis(away, model.labels_[:, None].astype(int), axis=1)[:, 0]
    excess = (chosen / np.maximum(away.min(axis=1), np.finfo(oracle.Number).tiny)) - 1
    # Where only distances are left whose powers vanish, all centres are equally near.
    excess[chosen <= vanishing] = 0
    if (excess > ROUNDING[case["dtype"]]).any():
        row = int(np.argmax(excess))
        yield f"labels: row {row} is {float(excess[row]):.2g} farther than from its nearest"


def _path(case, model, away, vanishing):
    path = model.objective_path_
    constant = case["offset"] != "mean" or case["weighting"] == "uniform"
    # Objectives outside of the range of floats have no digits left to compare.
    if not constant or not ((path > 1e-290) & (path < 1e300)).all():
        return
    # A row at a distance of zero from several centres may move to the worse one, even from a
    # cluster that is lost by that.
    alike = away <= vanishing
    lost = len(np.unique(model.labels_)) < model.n_clusters
    if (alike.sum(axis=1) > 1).any() or (lost and (alike & (away > 0)).any()):
        return
    rise = np.diff(path) / path[:-1]
    if len(rise) and rise.max() > RISE[case["dtype"]]:
        yield f"the objective rises by {rise.max():.2g} of itself"


def _same_bits(model, other):
    for name in ("labels_", "cluster_centers_", "feature_weights_", "dispersions_"):
        if not np.array_equal(getattr(model, name), getattr(other, name)):
            yield f"{name} depends on n_jobs"


def _dispersions(case, model, log_d, mass):
    found = model.dispersions_.astype(oracle.Number)
    ordinary = (np.abs(log_d) < 600) | np.isneginf(log_d)
    error = np.abs(found - np.exp(log_d)) / np.maximum(found, np.exp(log_d))
    # Members that are nearer to the centre than this count as equal to it.
    nearest = np.log(oracle.SMALLEST_SPAN[model.cluster_centers_.dtype.name])
    vanishes = log_d <= np.log(_sizes(model, mass)) + case["p"] * nearest
    error = np.where((found == 0) & vanishes, 0, error)
    allowed = case["p"] * (
        10 * ROUNDING[case["dtype"]] + 10 * _rounding(case, model, log_d, mass)
    )
    excess = np.where(ordinary, error / allowed, 0)
    if (excess > 1).any():
        l, v = np.unravel_index(np.argmax(excess), error.shape)
        yield f"dispersion [{l}, {v}] is {found[l, v]:.6g}, not {np.exp(log_d[l, v]):.6g}"
    with np.errstate(over="ignore", divide="ignore"):
        terms = case["p"] * np.log(model.feature_weights_.astype(oracle.Number)) + log_d
        inertia = np.exp(terms[~np.isneginf(terms)]).sum()
    if 1e-280 < inertia < 1e280:
        error = abs(model.inertia_ / inertia - 1)
        # The errors of the terms, each as much as the term is of the sum.
        parts = np.where(np.isneginf(terms), 0, np.exp(terms) / inertia)
        if error > np.where(parts > 0, parts * allowed, 0).sum():
            yield f"inertia_ is {model.inertia_:.6g}, not {inertia:.6g}"


def _sizes(model, mass):
    """The sum of the weights of each cluster, 1 for empty clusters, as a column."""
    sizes = [
        mass[model.labels_ == l].astype(oracle.Number).sum() for l in range(model.n_clusters)
    ]
    return np.array([[size if size > 0 else 1] for size in sizes], dtype=oracle.Number)


def _rounding(case, model, log_d, mass):
    """The rounding of each centre, a float, beside the distances of its members."""
    typical = np.exp((log_d - np.log(_sizes(model, mass))) / case["p"])
    smallest = np.finfo(oracle.Number).tiny
    return np.spacing(np.abs(model.cluster_centers_)) / np.maximum(typical, smallest)


def _centres(case, model, X, mass):
    accuracy = CENTER[case["dtype"]] + FLAT[case["dtype"]] / (case["p"] - 1)
    if case["p"] > 2:
        heavy = HEAVY_WEIGHTS if case["weights"] == "wide" else HEAVY
        accuracy = max(accuracy, heavy[case["dtype"]])
    for l in range(model.n_clusters):
        members = (model.labels_ == l) & (mass > 0)
        if not members.any():
            continue
        for v in range(X.shape[1]):
            x, z = X[members, v], model.cluster_centers_[l, v]
            span = x.max().astype(oracle.Number) - x.min()
            if span == 0:
                if z != x[0]:
                    yield f"centre [{l}, {v}] of one value is {z!r}, not {x[0]!r}"
                continue
            allowed = accuracy + 2 * np.spacing(np.abs(z)) / span
            if oracle.center_error(x, z, case["p"], mass[members], allowed):
                yield f"centre [{l}, {v}] is off by more than {float(allowed):.2g} of its range"


def _weights(case, model, X, mass, log_d):
    used, expected = oracle.varying(X, mass), np.zeros(log_d.shape, dtype=oracle.Number)
    if case["weighting"] == "uniform":
        expected[:, used] = oracle.Number(1) / used.sum()
    else:
        offset = oracle.log_offset(case, X[:, used], log_d[:, used], mass)
        expected[:, used] = np.exp(oracle.log_weights(log_d[:, used], offset, case["p"]))
    rounding = np.where(np.isneginf(log_d), 0, _rounding(case, model, log_d, mass))
    # Of a cluster's own dispersions and, weighted by their sizes, of those in the offset.
    sizes = np.exp(log_d - log_d.max()) if np.isfinite(log_d.max()) else np.zeros_like(log_d)
    shared = (sizes * rounding).sum() / max(sizes.sum(), 1) if case["offset"] == "mean" else 0
    rounding = case["p"] * (rounding.max(axis=1, keepdims=True) + shared)
    allowed = 10 * (ROUNDING[case["dtype"]] + rounding) * max(1, 1 / (case["p"] - 1))
    if case["offset"] == "fixed":
        # Its dispersions are about a centre of all rows, which is as accurate as any centre.
        allowed = FIXED * allowed
    error = np.abs(model.feature_weights_ - expected)
    if (error > allowed).any():
        worst = float(np.max(error - allowed))
        yield f"weights differ from Eq. 4 by {worst:.2g} more than allowed"
