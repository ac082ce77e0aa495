"""Compare variants of the score and sets of candidates: the ablation study of CAFE's choice.

    python -m benchmarks.selection

The script clusters every tuning set with a wide grid of candidates. For each variant of the
likelihood score and each subset of the candidates, it determines which clustering would have
been chosen. It writes the mean adjusted Rand index of the chosen clusterings in each regime to
docs/results/ablation.csv and ablation.md. This takes a quarter of an hour on two cores. The
tuning sets are the paper's nine data sets, sets from scikit-learn and generated sets; no other
data was used.
"""

import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from cafelearn import datasets
from cafelearn._candidates import SCALINGS, Candidate, fit_models, make_models
from cafelearn._structure import one_hot_groups
from cafelearn.experiments._markdown import markdown_table
from cafelearn.experiments.regimes import BUNDLED, GENERATED, Case, case_data

OUT = Path(__file__).parent.parent / "docs" / "results" / "ablation.csv"
EXPONENTS = (1.1, 1.5, 2.0, 2.5, 3.0, 4.0)
DEFAULT_EXPONENTS = (2.0, 3.0)
GRID = [
    *(
        Candidate(scaling, "cluster", offset, p)
        for scaling in SCALINGS
        for offset in ("mean", "fixed")
        for p in EXPONENTS
    ),
    *(Candidate(scaling, "uniform", None, p) for scaling in SCALINGS for p in (1.5, 2.0, 3.0)),
]


class Form(NamedTuple):
    """A variant of the score; the defaults are those of `cafelearn.selection`.

    The smallest and the largest value of a feature are atoms if enough rows have them, or if
    the feature has only these two values. An atom has a probability in each cluster; the other
    values have a Gaussian density.
    """

    atom: float = 0.1  # smallest share of the rows that makes an extreme value an atom
    variance_prior: float = 3.0  # sum of squares that the prior adds to that of a cluster
    prior: float = 4.0  # number of rows that the prior adds to a cluster
    penalty: float = 1.0  # factor of the penalty, log(n) / 2 for each parameter
    sizes: float = 1.0  # factor of the term of the cluster sizes
    variances: str = "better"  # "own", "shared", or the better of the two for each feature
    irrelevant: bool = False  # whether a feature may have one distribution for all clusters
    multinomial: bool = False  # whether to model a one-hot variable as one distribution
    transform: str = "none"  # transformation of the values: "none", "winsorise" or "rank"


FORMS = {
    "the score": Form(),
    "no atoms (except in two-valued features)": Form(atom=2.0),
    "atoms from 2% of the rows": Form(atom=0.02),
    "atoms from 30% of the rows": Form(atom=0.3),
    "prior a tenth as strong": Form(variance_prior=0.3, prior=0.4),
    "prior a third as strong": Form(variance_prior=1.0, prior=4 / 3),
    "prior twice as strong": Form(variance_prior=6.0, prior=8.0),
    "no penalty": Form(penalty=0.0),
    "half the penalty": Form(penalty=0.5),
    "twice the penalty": Form(penalty=2.0),
    "no term for the cluster sizes": Form(sizes=0.0),
    "only separate variances": Form(variances="own"),
    "only shared variances": Form(variances="shared"),
    "irrelevant features allowed": Form(irrelevant=True),
    "multinomial for one-hot variables": Form(multinomial=True),
    "heavy tails: values winsorised": Form(transform="winsorise"),
    "heavy tails: normal scores of ranks": Form(transform="rank"),
}


def _is_default(c):
    return c.p in DEFAULT_EXPONENTS


# Subsets of GRID: functions that tell whether a candidate belongs to the subset.
SETS = {
    "the default": _is_default,
    "only p = 2": lambda c: c.p == 2,
    "only p = 3": lambda c: c.p == 3,
    "p = 1.5, 2, 3": lambda c: c.p in (1.5, 2, 3),
    "p = 2, 3, 4": lambda c: c.p in (2, 3, 4),
    "the whole grid": lambda c: True,
    "no uniform weights": lambda c: _is_default(c) and c.weighting == "cluster",
    "only range scaling": lambda c: _is_default(c) and c.scaling == "range",
    "only standard scaling": lambda c: _is_default(c) and c.scaling == "standard",
    "only offset mean": lambda c: _is_default(c) and c.dispersion_offset != "fixed",
    "only offset fixed": lambda c: _is_default(c) and c.dispersion_offset != "mean",
}


def tuning_cases():
    """Return the tuning sets, on which CAFE's candidates and score were chosen."""
    noisy = ("pairs 0.2/1", "pairs 0.4/1", "pairs 0.4/5", "columns", "heavy", "zeros")
    cases = [Case(name, "clean", 0) for name in datasets.names()]
    cases += [
        Case(name, regime, version)
        for version in range(2)
        for name in datasets.names()
        for regime in noisy
    ]
    cases += [Case(name, regime, 0) for name in BUNDLED for regime in ("clean", *noisy[:1])]
    return cases + [Case(name, "generated", v) for name in GENERATED for v in range(6)]


def score(X, labels, k, form=FORMS["the score"]):
    """Compute `likelihood_score` or a variant of it, in plain NumPy."""
    X = np.asarray(X, dtype=np.float64)
    X = X[:, X.min(axis=0) < X.max(axis=0)]
    clusters = [np.flatnonzero(labels == l) for l in range(k)]
    clusters = [rows for rows in clusters if len(rows)]
    n, price = len(X), form.penalty * 0.5 * np.log(len(X))
    total = form.sizes * sum(len(c) * np.log((len(c) + 1) / (n + k)) for c in clusters)
    groups = one_hot_groups(X) if form.multinomial else [[v] for v in range(X.shape[1])]
    for group in groups:
        if len(group) > 1:
            categories = [X[:, v] == 1 for v in group]
        else:
            x = X[:, group[0]]
            low, high = x == x.min(), x == x.max()
            two = (low | high).all()
            categories = [at for at in (low, high) if two or at.mean() >= form.atom]
            between = ~np.any(categories, axis=0) if categories else np.ones(n, dtype=bool)
            if between.any():
                categories.append(between)
                total += _gaussian(x, between, clusters, k, price, form)
        total += _categorical(categories, clusters, k, price, form)
    return total


def _categorical(categories, clusters, k, price, form):
    """Compute the penalised log-likelihood of a categorical distribution in each cluster."""
    fit = -price * k * (len(categories) - 1)
    alike = -price * (len(categories) - 1)
    for at in categories:
        alike += at.sum() * np.log(at.mean())
        for rows in clusters:
            there = at[rows].sum()
            if there:
                share = (there + form.prior * at.mean()) / (len(rows) + form.prior)
                fit += there * np.log(share)
    return max(fit, alike) if form.irrelevant else fit


def _gaussian(x, between, clusters, k, price, form):
    """Compute the penalised log-likelihood of the values in rows `between`, the non-atoms."""
    if form.transform != "none":
        x = _transform(x, between, form.transform)
    n = between.sum()
    x = (x - x[between].mean()) / max(x[between].std(), 1e-12)
    members = [rows[between[rows]] for rows in clusters]
    scatters = [((x[rows] - x[rows].mean()) ** 2).sum() for rows in members if len(rows)]
    sizes = [len(rows) for rows in members if len(rows)]
    own, pooled = -2 * k * price, sum(scatters) / n + 1e-9
    for size, scatter in zip(sizes, scatters, strict=True):
        variance = (scatter + form.variance_prior) / (size + form.prior)
        own -= 0.5 * (size * np.log(variance) + scatter / variance)
    shared = -0.5 * n * (np.log(pooled) + 1) - (k + 1) * price
    fit = {"own": own, "shared": shared, "better": max(own, shared)}[form.variances]
    return max(fit, -0.5 * n - 2 * price) if form.irrelevant else fit


def _transform(x, between, kind):
    """Reduce heavy tails of the values of the rows `between`."""
    from scipy.stats import norm, rankdata

    x = x.copy()
    if kind == "rank":
        x[between] = norm.ppf((rankdata(x[between]) - 0.5) / between.sum())
    else:
        low, middle, high = np.quantile(x[between], [0.25, 0.5, 0.75])
        reach = 4 * (high - low) or np.inf
        x[between] = np.clip(x[between], middle - reach, middle + reach)
    return x


def refine(X, labels, k):
    """Refine a clustering by classification EM, with Gaussians of diagonal covariance."""
    X = StandardScaler().fit_transform(X)
    for _ in range(100):
        density = np.full((len(X), k), -np.inf)
        for l in range(k):
            members = X[labels == l]
            if len(members):
                scatter = ((members - members.mean(axis=0)) ** 2).sum(axis=0)
                variance = (scatter + 1) / (len(members) + 2)
                density[:, l] = np.log(len(members)) - 0.5 * (
                    np.log(variance) + (X - members.mean(axis=0)) ** 2 / variance
                ).sum(axis=1)
        new = density.argmax(axis=1)
        if (new == labels).all():
            break
        labels = new
    return labels


def run_case(case):
    """Compute the adjusted Rand index of the clustering that each variant chooses."""
    X, y = case_data(case)
    k = len(np.unique(y))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scaled = {name: make().fit_transform(X) for name, make in SCALINGS.items()}
        models = make_models(GRID, case.seed("ablation"), n_clusters=k, n_init=10, n_jobs=1)
        fit_models(models, [scaled[candidate.scaling] for candidate in GRID], 1)
        labels = [model.labels_ for model in models]
        aris = np.array([adjusted_rand_score(y, found) for found in labels])
        mixture = GaussianMixture(k, covariance_type="diag", n_init=10, random_state=0)
        mixed = mixture.fit_predict(scaled["standard"])
    default = np.flatnonzero([_is_default(candidate) for candidate in GRID])
    scores = np.full(len(GRID), -np.inf)
    found = {}
    for name, form in FORMS.items():
        some = np.array([score(X, labels[i], k, form) for i in default])
        found["score", name] = aris[default[some.argmax()]]
        if form == Form():
            scores[default] = some
    for i in np.setdiff1d(np.arange(len(GRID)), default):
        scores[i] = score(X, labels[i], k)
    for name, has in SETS.items():
        tried = np.flatnonzero([has(candidate) for candidate in GRID])
        found["candidates", name] = aris[tried[scores[tried].argmax()]]
    best = default[scores[default].argmax()]
    found["after", "classification EM from the chosen clustering"] = adjusted_rand_score(
        y, refine(X, labels[best], k)
    )
    found["after", "a diagonal mixture among the candidates"] = (
        adjusted_rand_score(y, mixed) if score(X, mixed, k) > scores[best] else aris[best]
    )
    found["hindsight", "the best of the default candidates"] = aris[default].max()
    found["hindsight", "the best of the grid"] = aris.max()
    found["others", "diagonal Gaussian mixture"] = adjusted_rand_score(y, mixed)
    for scaling in SCALINGS:
        at = GRID.index(Candidate(scaling, "uniform", None, 2.0))
        found["others", f"k-means, {scaling} scaling"] = aris[at]
    return pd.Series(found, name=str(case))


def regime_of(case):
    """Return the column of the table for a case: its regime or its generator."""
    if case.regime == "generated":
        return case.dataset
    return ("bundled " if case.dataset in BUNDLED else "") + case.regime.split()[0]


def main():
    """Run all cases and write the tables."""
    cases = tuning_cases()
    rows = Parallel(n_jobs=2, verbose=5)(delayed(run_case)(case) for case in cases)
    table = pd.DataFrame(rows).groupby([regime_of(case) for case in cases]).mean().T
    table.insert(0, "mean", table.mean(axis=1))
    table.index.names = ["varied", "variant"]
    table.round(4).to_csv(OUT, lineterminator="\n")
    OUT.with_suffix(".md").write_text(render(pd.read_csv(OUT)), encoding="utf-8")
    print(table.round(3).to_string())


def render(table):
    """Render the table of the CSV file as Markdown for the documentation."""
    kinds = {"score": "score", "candidates": "candidates", "after": "afterwards"}
    kinds |= {"hindsight": "in hindsight", "others": "other methods"}
    columns = ("mean", "clean", "pairs", "columns", "heavy", "zeros", "counts")
    rows = [
        [kinds[row["varied"]], row["variant"], *(f"{row[name]:.3f}" for name in columns)]
        for _, row in table.iterrows()
    ]
    return markdown_table(["varied", "variant", *columns], rows) + "\n"


if __name__ == "__main__":
    main()
