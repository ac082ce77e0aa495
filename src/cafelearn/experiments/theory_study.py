"""Repeat the study behind the paper's Figures 1 and 2, and check every claim on its 800 fits.

The paper generates 10 data sets of 1,000 rows, with four features in which the rows form three
spherical Gaussian clusters, and four features of uniform noise. Each feature is scaled by
(x - mean) / range. mwk-means is fitted from 20 random starts at p = 1.1, 1.5, 2 and 5. This
module does the same, with one fit per start, and checks every claim of
:func:`cafelearn.theory.certificate` on each fit.

The paper leaves some details open. The choices here are:

- The paper states "zero mean and unit variance", which cannot hold for each of three distinct
  clusters. Here the coordinates of the centres are drawn from N(0, 1), and so are the
  deviations of the rows from their centres.
- Each row belongs to each of the three clusters with equal probability.
- The noise features are uniform on [0, 1]; the scaling makes this range irrelevant.
- Each of the 20 starts on a data set has the same initial centres at all exponents.
- The weights are those of Eq. 4 as printed (``dispersion_offset=0``), because the claims are
  about these weights.
- For Figure 1, the weights are sorted within each cluster and averaged over the clusters.

The normalised objective is the position of the objective between the bounds of Theorem 2. The
paper reports means from 0.10 to 0.82, depending on p; this study finds 0.10 to 0.67. The paper
does not specify the formula, so about 25 combinations of cluster separation, offset and formula
were tried. The closest gives means from 0.10 to 0.81. It fits the clusterings with
``dispersion_offset="mean"`` and computes the objective by Lemma 1, without the offset
(`lemma_objective`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from cafelearn._mwkmeans import MinkowskiWeightedKMeans
from cafelearn._scaling import RangeScaler
from cafelearn._seeds import seed_integer
from cafelearn.experiments.plan import named_seed
from cafelearn.theory import certificate, normalized_objective, objective_bounds
from cafelearn.theory.certificate import FAILS, HOLDS

__all__ = ["TheoryStudy", "mixture", "summary", "theory_study"]

EXPONENTS = (1.1, 1.5, 2.0, 5.0)
N_ROWS, N_CLUSTERS, N_INFORMATIVE, N_NOISE = 1000, 3, 4, 4
N_FEATURES = N_INFORMATIVE + N_NOISE
# Columns of the weights, in descending order of the weight.
WEIGHTS = tuple(f"weight_{rank}" for rank in range(1, N_FEATURES + 1))


@dataclass(frozen=True, eq=False)
class TheoryStudy:
    """The fits of a study and the verdicts on the claims; see :func:`theory_study`.

    Parameters
    ----------
    fits : pandas.DataFrame
        One row per fit, with these columns:

        - `dataset`, `start`, `p` : the data set, the start and the exponent of the fit;
        - `objective` : the objective of Eq. 3;
        - `lower_bound`, `upper_bound` : the bounds of Theorem 2;
        - `normalized_objective` : the position of the objective between the bounds, 0 at the
          lower and 1 at the upper bound, not clipped;
        - `lemma_objective` : the position of the objective of Lemma 1, which is computed from
          the dispersions alone and differs from that of Eq. 3 if there is an offset;
        - `n_iter`, `stop_reason` : number of iterations, and the reason why the fit stopped;
        - `smallest_cluster` : number of rows of the smallest cluster;
        - `weight_1` to `weight_8` : the weights, sorted within each cluster in descending
          order and averaged over the clusters;
        - `effective_features` : the mean of ``1 / sum(w**2)`` over the clusters, from 1 to 8;
        - `noise_weight` : total weight of the four noise features, averaged over the clusters.
    claims : pandas.DataFrame
        One row per claim, with these columns:

        - `checked` : number of fits to which the claim applies;
        - `holds`, `fails` : numbers of these fits in which it holds and in which it fails;
        - `worst_margin` : smallest distance to the bound of the claim over these fits; if the
          claim holds, a value slightly below 0 is due to rounding;
        - `worst_fit` : the fit with this margin; empty if all fits have the same margin.
    dispersion_offset : str or float
        The offset of the fits.

    Examples
    --------
    >>> from cafelearn.experiments.theory_study import theory_study
    >>> study = theory_study(n_datasets=1, n_starts=2, exponents=(1.5, 2.0))
    >>> study.fits[["dataset", "start", "p"]]
         dataset  start    p
    0  mixture-1      1  1.5
    1  mixture-1      1  2.0
    2  mixture-1      2  1.5
    3  mixture-1      2  2.0
    >>> study.claims.loc["Theorem 2: upper bound", ["checked", "holds", "fails"]].tolist()
    [4, 4, 0]
    """

    fits: pd.DataFrame
    claims: pd.DataFrame
    dispersion_offset: str | float = 0.0

    @property
    def within_bounds(self) -> bool:
        """Whether every normalised objective lies in [0, 1]."""
        return bool(self.fits["normalized_objective"].between(0, 1).all())

    @property
    def holds(self) -> bool:
        """Whether no claim fails and every normalised objective lies in [0, 1]."""
        return self.within_bounds and not self.claims["fails"].any()


def theory_study(
    n_datasets: int = 10,
    n_starts: int = 20,
    exponents: Sequence[float] = EXPONENTS,
    n_jobs: int | None = None,
    random_state: int = 0,
    progress: Callable[[int, int], object] | None = None,
    dispersion_offset: str | float = 0.0,
) -> TheoryStudy:
    """Fit mwk-means to random mixtures, and check every claim of the paper on every fit.

    Parameters
    ----------
    n_datasets : int, default=10
        Number of data sets, which are named "mixture-1", "mixture-2" and so on.
    n_starts : int, default=20
        Number of starts on each data set. Each start is a separate fit, and all fits are kept.
    exponents : sequence of float, default=(1.1, 1.5, 2.0, 5.0)
        Distinct Minkowski exponents above 1.
    n_jobs : int, default=None
        Number of threads, which does not affect the result. ``None`` means 1 unless in a
        :obj:`joblib.parallel_config` context; -1 means all cores.
    random_state : int, default=0
        Seed. Each data set and each start depends only on the seed and its own name, so a
        smaller study is part of a larger one.
    progress : callable, default=None
        Called as ``progress(done, total)`` after each fit.
    dispersion_offset : {"mean", "fixed"} or float, default=0.0
        See :class:`~cafelearn.MinkowskiWeightedKMeans`. The claims about Eq. 4 apply only if
        the offset is 0.

    Returns
    -------
    study : TheoryStudy
        The fits and the verdicts on the claims.

    See Also
    --------
    cafelearn.experiments.theory_figures.draw_figures : Draw Figures 1 and 2 from the study.

    Examples
    --------
    >>> from cafelearn.experiments.theory_study import theory_study
    >>> study = theory_study(n_datasets=2, n_starts=2)
    >>> len(study.fits)
    16
    >>> study.holds
    True
    """
    _check_counts(n_datasets=n_datasets, n_starts=n_starts)
    exponents = _check_exponents(exponents)
    names = [f"mixture-{i}" for i in range(1, n_datasets + 1)]
    # The random numbers of a fit depend only on its name, so fits may run in any order.
    workers = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    results = workers(
        delayed(_run)(X, name, start, p, random_state, dispersion_offset)
        for name, X in ((name, mixture(name, random_state)[0]) for name in names)
        for start in range(1, n_starts + 1)
        for p in exponents
    )
    total = n_datasets * n_starts * len(exponents)
    fits, tables = [], []
    for done, (fit, table) in enumerate(results, start=1):
        fits.append(fit)
        tables.append(table)
        if progress is not None:
            progress(done, total)
    return TheoryStudy(pd.DataFrame(fits), _count_claims(tables), dispersion_offset)


def mixture(name: str, random_state: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Generate one data set of the study.

    Parameters
    ----------
    name : str
        Name of the data set, such as "mixture-1". The random numbers depend on the name and on
        `random_state`.
    random_state : int, default=0
        Seed, at least 0.

    Returns
    -------
    X : ndarray of shape (1000, 8)
        Four features with clusters, then four features of noise, all scaled by
        :class:`~cafelearn.RangeScaler`.
    y : ndarray of shape (1000,)
        The cluster of each row: 0, 1 or 2.

    Examples
    --------
    >>> from cafelearn.experiments.theory_study import mixture
    >>> X, y = mixture("mixture-1")
    >>> X.shape, sorted(set(y.tolist()))
    ((1000, 8), [0, 1, 2])
    """
    generator = np.random.default_rng(_seed(random_state, name, "data"))
    centers = generator.standard_normal((N_CLUSTERS, N_INFORMATIVE))
    y = generator.integers(N_CLUSTERS, size=N_ROWS)
    informative = centers[y] + generator.standard_normal((N_ROWS, N_INFORMATIVE))
    noise = generator.uniform(size=(N_ROWS, N_NOISE))
    return RangeScaler().fit_transform(np.hstack([informative, noise])), y


def summary(study: TheoryStudy) -> str:
    """Summarise the study in a few lines.

    Parameters
    ----------
    study : TheoryStudy
        Result of :func:`theory_study`.

    Returns
    -------
    text : str
        The normalised objectives and the weights at each exponent, the number of claims that
        hold, and the claims that fail.

    Examples
    --------
    >>> from cafelearn.experiments.theory_study import summary, theory_study
    >>> text = summary(theory_study(n_datasets=1, n_starts=1, exponents=(2.0,)))
    >>> text.splitlines()[0]
    '1 fit of mwk-means (dispersion_offset=0): 1 data set, 1 start, p = 2.'
    """
    fits = study.fits
    exponents = fits["p"].unique()
    lines = [
        f"{_plural(len(fits), 'fit')} of mwk-means "
        f"(dispersion_offset={_shown(study.dispersion_offset)}): "
        f"{_plural(fits['dataset'].nunique(), 'data set')}, "
        f"{_plural(fits['start'].nunique(), 'start')}, "
        f"p = {', '.join(f'{p:g}' for p in exponents)}.",
        _ends(fits),
        "",
        "        normalised objective            weights, sorted     effective  weight of",
        "     p    mean     min     max  outside  largest  smallest   features      noise",
    ]
    lines += [_exponent_line(p, rows) for p, rows in fits.groupby("p", sort=False)]
    inside = "All" if study.within_bounds else "NOT all"
    lines += ["", f"{inside} normalised objectives lie in [0, 1].", *_claim_lines(study.claims)]
    return "\n".join(lines)


def _seed(random_state, *words):
    """Make a SeedSequence from the seed of the study and words."""
    if not isinstance(random_state, Integral) or random_state < 0:
        raise ValueError(
            f"theory_study needs random_state to be an int of at least 0, got {random_state!r}."
        )
    return named_seed("/".join(map(str, (int(random_state), *words))))


def _check_counts(**counts):
    for name, count in counts.items():
        if not isinstance(count, Integral) or count < 1:
            raise ValueError(f"theory_study needs {name} to be at least 1, got {count!r}.")


def _check_exponents(exponents):
    checked = [float(p) for p in exponents]
    above = all(1 < p < np.inf for p in checked)
    if not (checked and above and len(set(checked)) == len(checked)):
        raise ValueError(
            "theory_study needs at least one exponent, all of them above 1 and distinct, "
            f"got {exponents!r}."
        )
    return checked


def _run(X, name, start, p, random_state, dispersion_offset):
    """Run one fit; return its row of `TheoryStudy.fits` and its certificate."""
    model = MinkowskiWeightedKMeans(
        N_CLUSTERS,
        p=p,
        dispersion_offset=dispersion_offset,
        n_init=1,
        n_jobs=1,
        random_state=seed_integer(_seed(random_state, name, "start", start)),
    ).fit(X)
    D, w = model.dispersions_, model.feature_weights_
    lower, upper = objective_bounds(D, p)
    fit = {
        "dataset": name,
        "start": start,
        "p": p,
        "objective": model.inertia_,
        "lower_bound": lower,
        "upper_bound": upper,
        # theory.normalized_objective is not used here: it does not depend on the fitted
        # weights, and it clips rounding errors, so it would always be in [0, 1].
        "normalized_objective": (model.inertia_ - lower) / (upper - lower),
        "lemma_objective": normalized_objective(D, p),
        "n_iter": model.n_iter_,
        "stop_reason": model.stop_reason_,
        "smallest_cluster": int(np.bincount(model.labels_, minlength=N_CLUSTERS).min()),
        "effective_features": float((1 / (w**2).sum(axis=1)).mean()),
        "noise_weight": float(w[:, N_INFORMATIVE:].sum(axis=1).mean()),
        **dict(zip(WEIGHTS, np.sort(w, axis=1)[:, ::-1].mean(axis=0).tolist(), strict=True)),
    }
    table = pd.DataFrame(certificate(model, X)).reset_index()
    return fit, table.assign(fit=f"{name}, start {start}, p = {p:g}")


def _count_claims(tables):
    """Summarise the certificates of all fits in one row per claim, in the paper's order."""
    rows = pd.concat(tables, ignore_index=True)
    # The certificate sets negative slacks within rounding error to 0; recompute them.
    hidden = -(rows["measured"] - rows["bound"]).abs()
    rows["margin"] = rows["slack"].where(rows["slack"] != 0, hidden)
    return pd.DataFrame(
        [_claim(claim, of_claim) for claim, of_claim in rows.groupby("claim", sort=False)]
    ).set_index("claim")


def _claim(claim, rows):
    rows = rows[rows["verdict"].isin([HOLDS, FAILS])]
    margins = rows["margin"]
    # If all fits have the same margin, none is the worst.
    worst_fit = rows.loc[margins.idxmin(), "fit"] if margins.nunique() > 1 else ""
    return {
        "claim": claim,
        "checked": len(rows),
        "holds": int((rows["verdict"] == HOLDS).sum()),
        "fails": int((rows["verdict"] == FAILS).sum()),
        "worst_margin": margins.min() + 0.0,  # not -0.0
        "worst_fit": worst_fit,
    }


def _ends(fits):
    converged = int((fits["stop_reason"] == "converged").sum())
    return (
        f"{converged} of {len(fits)} converged, after {fits['n_iter'].median():.0f} iterations "
        f"(median) and at most {fits['n_iter'].max()}."
    )


def _exponent_line(p, rows):
    values = rows["normalized_objective"]
    return (
        f"{p:6g}  {values.mean():6.3f}  {values.min():6.3f}  {values.max():6.3f}  "
        f"{int((~values.between(0, 1)).sum()):7d}  {rows[WEIGHTS[0]].mean():7.3f}  "
        f"{rows[WEIGHTS[-1]].mean():8.3f}   {rows['effective_features'].mean():8.2f}  "
        f"{rows['noise_weight'].mean():9.3f}"
    )


def _claim_lines(claims):
    applied = claims[claims["checked"] > 0]
    failing = applied[applied["fails"] > 0]
    yield (
        f"{len(applied) - len(failing)} of {len(applied)} claims hold in every fit they apply "
        f"to ({applied['checked'].sum():,} checks)."
    )
    for claim, row in failing.iterrows():
        yield (
            f"FAILS: {claim}, in {row['fails']} of {row['checked']} fits; worst margin "
            f"{row['worst_margin']:.3g} ({row['worst_fit']})."
        )
    if len(applied) < len(claims):
        yield f"{len(claims) - len(applied)} claims about Eq. 4 do not apply to these weights."


def _shown(offset):
    return repr(offset) if isinstance(offset, str) else f"{offset:g}"


def _plural(count, noun):
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
