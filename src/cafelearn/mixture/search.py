"""The search for the best mixture over families and starts."""

from cafelearn.mixture.descent import begin, descend
from cafelearn.mixture.em import Family
from cafelearn.mixture.settings import LIMITS

# Covariance structures that "auto" tries.
AUTO = ("independent", "proportional", "full")


def families_of(covariance, tails, background, columns):
    """List the families to try, by covariance structure.

    The first one of each structure is the one with which the starts descend.
    """
    names = AUTO if covariance == "auto" else covariance
    names = [names] if isinstance(names, str) else names
    if not columns.may_depend:
        names = ["independent"]
    found = []
    for name in dict.fromkeys(names):
        heavy = [name != "independent", name == "independent"] if tails == "auto" else [tails]
        found.append([Family(name, tail, bool(background)) for tail in heavy])
    return found


def search(prepared, k, labellings, families, drop_background=False, finished=None):
    """Find the mixture of the best criterion.

    Every start descends for a few iterations with one family per covariance structure. The best
    starts of each structure then go on with each of its families. The best families descend to
    the end, and the two best of them perhaps again without a background.

    Parameters
    ----------
    prepared : Prepared
        The rows.
    k : int
        Number of components.
    labellings : list of ndarray
        Starting labels.
    families : list of list of Family
        Families to try, by covariance structure; see `families_of`.
    drop_background : bool, default=False
        Whether the best families are tried without a background, too.
    finished : int, default=None
        Number of families that descend to the end; ``None`` means that of the limits.

    Returns
    -------
    descents : list of Descent
        One for each family, by descending criterion.
    """
    first, last = LIMITS.first_iterations, LIMITS.last_iterations
    most = LIMITS.families if finished is None else finished
    found = []
    for variants in families:
        firsts = [begin(prepared, labels, k, variants[0], first) for labels in labellings]
        firsts.sort(key=lambda descent: -descent.objective)
        for family in variants:
            if len(families) == len(variants) == 1:
                tried = firsts
            else:
                tried = [
                    _go_on(prepared, some, family, first) for some in firsts[: LIMITS.starts]
                ]
            found.append(max(tried, key=lambda descent: descent.objective))
    found = _sorted(found)
    found = _sorted([_go_on(prepared, best, best.family, last) for best in found[:most]])
    if drop_background:
        for best in found[:2]:
            without = best.family._replace(background=False)
            if without != best.family:
                found.append(_go_on(prepared, best, without, last))
    return _sorted(found)


def _sorted(descents):
    return sorted(descents, key=lambda descent: -descent.criterion)


def _go_on(prepared, descent, family, most):
    """Go on with a descent, perhaps with another family."""
    if family != descent.family:
        return begin(prepared, descent.labels, len(descent.parameters.mean), family, most)
    return descend(prepared, descent.parameters, family, most, descent.n_iter)
