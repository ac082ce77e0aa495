"""Findings about a fit, each with a code, a severity and a message."""

from typing import NamedTuple

import numpy as np

from cafelearn.base.warning import warn_caller
from cafelearn.data.variables import fitted_variables, of_variables, variable_codes
from cafelearn.interpret.labels import is_correlated
from cafelearn.mixture.settings import FEW, SETTINGS

__all__ = ["DiagnosisWarning", "Finding"]

SEVERE, NOTE = "severe", "note"

# Finding "collapsed": one cluster has at least this share of the rows.
COLLAPSED = 0.9
# Finding "one-feature": one feature has at least this share of the weight of a cluster.
DOMINANT = 0.9
# Finding "disagreement": the mean agreement (adjusted Rand index) of the chosen candidate with
# those that differ from it only in p is below this.
DISAGREE = 0.5
# Finding "scales": both the ranges and the spreads of the features differ by this factor or
# more. After RangeScaler the ranges are equal, after StandardScaler the spreads.
UNSCALED = 20.0
# Finding "offset": a constant offset is more than this many times the mean dispersion.
DROWNED = 100.0
# Finding "unstable" names the clusters whose own stability is below this.
CLUSTER_STABLE = 0.5
# Finding "tiny-clusters": a cluster has less than this share of the rows, or fewer than FEW.
TINY = 0.02
# Finding "disagreement" of a mixture: the mean agreement with the candidates is below this.
UNLIKE = 0.1
# Finding "isolated-rows": more than this share is isolated, or in the background.
# Of normal rows, up to 0.8% are isolated.
ISOLATED, BACKGROUND = 0.01, 0.01
# Advice of the finding "scales".
SCALE = (
    "Scale the features, for instance with RangeScaler, or use CAFE, which scales them by "
    "default."
)
SCALE_IN_CAFE = "Use a scaling, such as the default, instead of None."


class DiagnosisWarning(UserWarning):
    """Warning about the severe findings of a fit; see ``diagnosis_`` of the estimator.

    Examples
    --------
    >>> import warnings
    >>> from cafelearn.diagnosis import DiagnosisWarning
    >>> warnings.simplefilter("ignore", DiagnosisWarning)
    """


class Finding(NamedTuple):
    """One finding about a fit.

    Parameters
    ----------
    code : str
        Identifier of the finding. About the answer of a mixture: "no-structure", "continuum",
        "inconclusive", "unstable", "tied-numbers", "tiny-clusters", "correlated",
        "isolated-rows" and "disagreement". About the sizes of clusters: "collapsed" and
        "singletons". About Minkowski weighted k-means: "uniform", "one-feature", "offset",
        "scales", "disagreement" and "no-structure".
    severity : {"severe", "note"}
        Severe findings are also issued as a :class:`DiagnosisWarning`.
    message : str
        The finding in words, in some cases with advice.

    Examples
    --------
    >>> from cafelearn.diagnosis import Finding
    >>> finding = Finding("collapsed", "severe", "97% of the rows are in one cluster.")
    >>> finding.code
    'collapsed'
    """

    code: str
    severity: str
    message: str


def check_sizes(model):
    """Yield findings about the sizes of the clusters of a MinkowskiWeightedKMeans."""
    # Without sample weights, the mass of a cluster is the number of its members.
    weighted = model._members is not None
    mass, members = model._mass, model._members if weighted else model._mass
    # Masses are divided by the largest, because the sum of huge sample weights may overflow.
    k, largest = len(mass), float(mass.max())
    parts = float((mass / largest).sum())
    if k > 1 and 1 / parts >= COLLAPSED:
        # Only one cluster that contains all rows has 100%.
        share = "100%" if parts == 1 else f"{min(1 / parts, 0.99):.0%}"
        rows = f"the rows ({largest:,.0f} of {largest * parts:,.0f}) are"
        what = "the total sample weight is" if weighted else rows
        yield Finding("collapsed", SEVERE, f"{share} of {what} in one of {k} clusters.")
    single = int((members == 1).sum())
    if single and members.sum() > 2 * k:
        yield Finding(
            "singletons",
            SEVERE if 2 * single >= k else NOTE,
            f"{single} of {k} clusters {'has' if single == 1 else 'have'} a single row, "
            "perhaps an outlier.",
        )


def check_weights(model, names=None):
    """Yield findings about the weights of a fitted MinkowskiWeightedKMeans."""
    if model.weighting == "uniform":
        return
    codes = variable_codes(model)
    weights = of_variables(model.feature_weights_, codes)
    used, D = fitted_variables(model)
    if codes is not None:
        names = list(dict.fromkeys(model.feature_groups_.tolist()))
    k, m = used.shape
    alone = np.flatnonzero(weights.max(axis=1) >= DOMINANT)
    if m > 2 and len(alone):
        heaviest = weights.argmax(axis=1)[alone]
        shown = [str(v) if names is None else repr(str(names[v])) for v in heaviest[:3]]
        shown = ", ".join(dict.fromkeys(shown))
        what = "feature" if codes is None else "variable"
        yield Finding(
            "one-feature",
            SEVERE if 2 * len(alone) >= k else NOTE,
            f"In {len(alone)} of {k} clusters, a single {what} has at least {DOMINANT:.0%} of "
            f"the weight ({what} {shown}{', ...' if len(alone) > 3 else ''}); a larger p or "
            "dispersion_offset spreads the weight.",
        )
    offset, finite = model.dispersion_offset, D[np.isfinite(D)]
    # Divide first: the sum of huge dispersions may overflow.
    mean = float((finite / max(finite.size, 1)).sum())
    if not isinstance(offset, str) and mean > 0 and offset > DROWNED * mean:
        yield Finding(
            "offset",
            SEVERE,
            f"dispersion_offset={offset:g} is {offset / mean:,.0f} times the mean dispersion, "
            "so the weights are nearly equal; the offsets 'mean' and 'fixed' adapt to the "
            "scale of the data.",
        )


def check_scales(model, names=None, advice=SCALE):
    """Yield a finding if the features of a MinkowskiWeightedKMeans have different scales."""
    ranges = getattr(model, "_ranges", None)  # older model files lack it
    if ranges is None:
        return
    mass, centers, p = model._mass[:, None], model.cluster_centers_, float(model.p)
    with np.errstate(over="ignore", invalid="ignore"):
        within = (model.dispersions_.sum(axis=0) / mass.sum()) ** (1 / p)
        mean = (mass * centers).sum(axis=0) / mass.sum()
        between = (mass * (centers - mean) ** 2).sum(axis=0) / mass.sum()
        spread = np.sqrt(within**2 + between)
    vary = np.flatnonzero((ranges > 0) & (spread > 0) & np.isfinite(spread))
    if len(vary) < 2:
        return
    wide, narrow = (int(vary[pick(ranges[vary])]) for pick in (np.argmax, np.argmin))
    with np.errstate(over="ignore"):
        ratio = ranges[wide] / ranges[narrow]
        least = min(ratio, spread[vary].max() / spread[vary].min())
    if least >= UNSCALED:
        first, second = (
            f"feature {v}" if names is None else repr(str(names[v])) for v in (wide, narrow)
        )
        yield Finding(
            "scales",
            SEVERE,
            f"The features have different scales: the range of {first} is {ratio:,.0f} times "
            f"that of {second}, so the clusters depend on the units. {advice}",
        )


def check_choice(candidates, family):
    """Yield findings about the choice among the candidates of CAFE.

    `candidates` is the data frame ``CAFE.candidates_``. `family` has the positions of the
    chosen candidate and of those that differ from it only in p.
    """
    chosen = candidates[candidates["chosen"]].iloc[0]
    if chosen["weighting"] == "uniform" and candidates["weighting"].nunique() > 1:
        yield Finding(
            "uniform",
            NOTE,
            "Weighting does not help here: equal weights were chosen, so the clusters are "
            "those of (Minkowski) k-means without weights.",
        )
    others = candidates.iloc[family]
    others = others[~others["chosen"]]
    if len(others) and others["agreement"].mean() < DISAGREE:
        yield Finding(
            "disagreement",
            NOTE,
            "Other exponents give different clusters: the mean agreement between the chosen "
            "candidate and those that differ from it only in p is "
            f"{others['agreement'].mean():.2f} (adjusted Rand index; 1 means equal clusters).",
        )


def check_answer(cafe, agreement=None):
    """Yield findings about the mixture of a CAFE.

    `agreement` is the mean adjusted Rand index of its labels with those of the candidates, or
    None if it is unknown.
    """
    answer, k, mixture = cafe._answer, cafe.n_clusters_, cafe.mixture_
    if k == 1:
        yield from check_number(cafe._numbers)
        return
    yield from check_verdict(answer["verdict"], k)
    yield from _check_stability(answer)
    yield from check_ties(cafe._numbers)
    yield from _check_masses(cafe)
    yield from _check_starts(cafe, agreement)
    if is_correlated(mixture) and answer["verdict"] != "none":
        yield Finding(
            "correlated",
            NOTE,
            "Columns are correlated within clusters. A weight only says how compact a cluster "
            "is on a column by itself; clusters may be apart in a combination of columns whose "
            "weights are low.",
        )
    isolated, background = answer["isolated"], mixture.background_
    if isolated > ISOLATED or background > BACKGROUND:
        parts = []
        if isolated > ISOLATED:
            parts.append(f"{isolated:.1%} of the rows are far from all other rows")
        if background > BACKGROUND:
            parts.append(f"{background:.1%} of the rows fit in no cluster (the background)")
        yield Finding(
            "isolated-rows",
            NOTE,
            f"{' and '.join(parts)}. They have the label of the most likely cluster, but may "
            "be outliers.",
        )


def check_verdict(verdict, k):
    """Yield a finding unless the verdict on k clusters is "structure"."""
    if verdict == "none":
        yield Finding(
            "no-structure",
            SEVERE,
            "No cluster structure was found: a single cloud with correlated and skewed columns "
            f"describes the rows as well as {k} clusters.",
        )
    elif verdict == "continuum":
        yield Finding(
            "continuum",
            NOTE,
            f"The {k} clusters are cuts through a cloud without gaps: other cuts may be as "
            "good.",
        )
    elif verdict == "inconclusive":
        yield Finding(
            "inconclusive",
            NOTE,
            "There is little evidence for or against clusters: a single cloud describes the "
            "rows nearly as well.",
        )


def _check_stability(answer):
    if answer["stability"] >= SETTINGS.high_stability:
        return
    weak = [l for l, value in enumerate(answer["clusters"]) if value < CLUSTER_STABLE]
    least = ""
    if 0 < len(weak) < len(answer["clusters"]):
        least = f" The least stable: cluster{'' if len(weak) == 1 else 's'} {_joined(weak)}."
    severe = answer["stability"] < SETTINGS.low_stability
    yield Finding(
        "unstable",
        SEVERE if severe else NOTE,
        f"The clusters are {'not' if severe else 'only fairly'} stable: mixtures fitted to "
        f"random halves of the rows agree with them by {answer['stability']:.2f} (adjusted "
        f"Rand index; 1 means equal clusters).{least}",
    )


def check_ties(numbers):
    """Yield a finding if other numbers of clusters are nearly as good as the chosen one."""
    tied = near_ties(numbers)
    if tied:
        table = numbers["table"]
        chosen = table["n_clusters"][table["chosen"].index(True)]
        some = "cluster is" if tied == [1] else "clusters are"
        yield Finding(
            "tied-numbers",
            NOTE,
            f"{_joined(tied, 'or')} {some} nearly as good as the {chosen} that were chosen.",
        )


def near_ties(numbers):
    """Return the numbers of clusters that are nearly as good as the chosen one.

    `numbers` is the result of `choose_number`, or None if the number was given.
    """
    if numbers is None:
        return []
    table = numbers["table"]
    return [k for k, tied in zip(table["n_clusters"], table["tied"], strict=True) if tied]


def _check_masses(cafe):
    """Yield findings about the sizes of the final clusters."""
    if cafe._mass is None:
        return
    for finding in check_sizes(cafe):
        # A large and a small cluster may well be the truth.
        if finding.code == "collapsed" and cafe.verdict_ == "structure":
            finding = finding._replace(severity=NOTE)
        yield finding
    members = cafe._mass if cafe._members is None else cafe._members
    share = cafe._mass / cafe._mass.max()
    share = share / share.sum()
    tiny = np.flatnonzero((members != 1) & ((share < TINY) | (members < FEW)))
    if len(tiny):
        sizes = _joined([f"{members[l]:,.0f}" for l in tiny])
        one = len(tiny) == 1
        yield Finding(
            "tiny-clusters",
            NOTE,
            f"Cluster{'' if one else 's'} {_joined(tiny.tolist())} {'is' if one else 'are'} "
            f"very small ({sizes} rows).",
        )


def _check_starts(cafe, agreement):
    """Yield a finding if the clusters have nothing in common with those of mwk-means."""
    if agreement is None or agreement >= UNLIKE:
        return
    # Long parallel clusters are invisible to k-means, but clear to a mixture.
    sure = cafe.confidence_ == "high"
    yield Finding(
        "disagreement",
        NOTE if sure else SEVERE,
        "The clusters have little in common with those of Minkowski weighted k-means (mean "
        f"adjusted Rand index {agreement:.2f}; 0 is chance)"
        f"{', as is the case for long clusters side by side' if sure else ''}.",
    )


def _joined(items, word="and"):
    *others, last = map(str, items)
    return f"{', '.join(others)} {word} {last}" if others else last


def check_number(numbers):
    """Yield a finding if the choice of the number of clusters found no structure.

    `numbers` is the result of `choose_number`, or None if the number was given.
    """
    if numbers is not None and not numbers["found"]:
        tried, chosen = numbers["table"]["n_clusters"], numbers["table"]["chosen"]
        k = tried[chosen.index(True)]
        yield Finding(
            "no-structure",
            SEVERE,
            f"No cluster structure was found: with up to {max(tried)} clusters, no mixture "
            "describes the rows better than a single cloud with correlated and skewed columns"
            f"{', so all are in one cluster' if k == 1 else ''}.",
        )


def warn_of(findings, owner):
    """Issue one warning for all severe findings, at the caller's line."""
    severe = [finding.message for finding in findings if finding.severity == SEVERE]
    if severe:
        warn_caller(f"{owner}: {' '.join(severe)} See diagnosis_.", DiagnosisWarning)
