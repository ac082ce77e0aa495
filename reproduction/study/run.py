"""Runs of the comparison study: one method on one sample (a case and a task)."""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cafelearn.base.seeds import seed_integer
from cafelearn.estimators.cafe import CAFE, PAPER
from cafelearn.estimators.scaling import RangeScaler
from reproduction.runs.experiment import Experiment, measuring
from reproduction.runs.pool import run_all
from reproduction.runs.store import read_runs
from reproduction.study.plan import StudySample, StudySettings
from reproduction.study.regimes import Case, case_data
from reproduction.study.rivals import RIVALS, cluster

# Numbers of labelled rows per class that the classifiers are trained on.
N_LABELLED = (5, 20)
ACCURACIES = tuple(f"{kind}_{n}" for kind in ("knn", "logistic") for n in N_LABELLED)
# Expected seconds on one core per million entries of data; LITTLE is for all other methods.
# Only the ratios matter, and only until a run of the method on a similar sample has succeeded.
PRIOR = {"paper": 30.0, "cafe": 60.0, "gmm-bic": 40.0, "gmm-full": 20.0, "mclust": 500.0}
LITTLE = 2.0


class StudyRecord(NamedTuple):
    """The result of a run; missing values are None."""

    dataset: str
    regime: str
    version: int
    task: str
    method: str
    status: str  # "done" or "failed"
    ari: float | None = None
    knn_5: float | None = None  # accuracy of nearest neighbours, trained on 5 rows per class
    knn_20: float | None = None
    logistic_5: float | None = None
    logistic_20: float | None = None
    seconds: float | None = None  # without the classifiers
    n_rows: int | None = None
    n_features: int | None = None
    n_classes: int | None = None
    choice: str = ""  # settings or model that the method chose
    findings: str = ""  # codes of the findings in CAFE's diagnosis, separated by commas
    warnings: str = ""
    traceback: str = ""
    libraries: str = ""


class Halves(NamedTuple):
    """Row numbers of the two halves of a data set."""

    first: np.ndarray  # rows to fit to, with half of the rows of no class
    second: np.ndarray  # rows to classify, all of some class
    labelled: dict[int, np.ndarray]  # labelled rows of `first`, by their number per class


@dataclass(frozen=True)
class Study(Experiment):
    """The comparison study."""

    file = "study.sqlite"
    record = StudyRecord
    quick = StudySettings(n_init=2)

    def load(self, sample):
        """Make the data of the case."""
        return case_data(sample.case)

    def measure(self, sample, method, settings, data, shared):
        """Run a method and score its labels or its features."""
        score = {"labels": _score_labels, "features": _score_features}[sample.task]
        sizes = dict(zip(("n_rows", "n_features"), data.X.shape, strict=True))
        found = score(sample, method, settings, data)
        return {**found, **sizes, "n_classes": _n_classes(data.y)}

    def trial(self, sample):
        """Return a sample of Iris, which is small, with the same task."""
        return StudySample("iris", "clean", 0, sample.task)

    def similar(self, sample):
        """Return the data set, the regime and the task."""
        return sample.dataset, sample.regime, sample.task

    def foresee(self, sample, method):
        """Predict a run time in proportion to the size of the data."""
        return PRIOR.get(method, LITTLE) * _size(sample.dataset, sample.regime)


STUDY = Study()


def run_study(plan, directory, **options):
    """Execute the runs of a plan that are not yet in the directory; see `run_all`."""
    todo = [(sample, plan.methods_of(sample)) for sample in plan.samples()]
    return run_all(STUDY, todo, plan.settings, directory, **options)


def read_study(source):
    """Read the records from a directory written by `run_study`, or from a CSV file.

    In text columns such as `warnings`, "" stands for a missing value.
    """
    results = read_runs(source, STUDY)
    texts = [name for name, default in STUDY.record._field_defaults.items() if default == ""]
    texts = [name for name in texts if name in results.columns]
    return results.assign(**{name: results[name].astype(object).fillna("") for name in texts})


def _score_labels(sample, method, settings, data):
    """Cluster all rows, and compare the labels of those of some class with the classes."""
    choice = findings = ""
    with measuring() as measured:
        if method in RIVALS:
            k, seed = _n_classes(data.y), seed_integer(sample.seed(method))
            labels, choice = cluster(method, data.X, k, seed, settings.n_init)
        else:
            cafe = _cafe(sample, method, settings, data.y).fit(data.X)
            labels = cafe.labels_
    if method == "cafe":
        choice, findings = _choice_of(cafe)
    inside = data.y >= 0
    return {
        "ari": float(adjusted_rand_score(data.y[inside], labels[inside])),
        "seconds": measured.seconds,
        "choice": choice,
        "findings": findings,
        "warnings": measured.warnings,
    }


def _score_features(sample, method, settings, data):
    """Extract features, and compute the accuracies of classifiers on the second half."""
    halves = split(sample.case, data.y)
    with measuring() as measured:
        extractor = _extractor(sample, method, settings, data, len(halves.first))
        first = extractor.fit(data.X[halves.first]).transform(data.X[halves.first])
        second = extractor.transform(data.X[halves.second])
    features = np.full((len(data.y), first.shape[1]), np.nan)
    features[halves.first], features[halves.second] = first, second
    choice, findings = _choice_of(extractor) if method == "cafe" else ("", "")
    with measuring() as classifying:
        accuracies = _accuracies(features, data.y, halves)
    lines = "\n".join(filter(None, (measured.warnings, classifying.warnings)))
    return {
        **accuracies,
        "seconds": measured.seconds,
        "choice": choice,
        "findings": findings,
        "warnings": lines,
    }


def _accuracies(features, y, halves):
    """Compute the accuracies of the classifiers on the second half."""
    # The scaler needs no labels, so it is fitted to all rows of the first half. Rows of no
    # class that are not in this half have no features.
    standard = StandardScaler().fit(features[halves.first]).transform(features)
    found = {}
    for kind, model, X in (
        ("knn", KNeighborsClassifier(3), features),
        ("logistic", LogisticRegression(max_iter=1000), standard),
    ):
        for n, rows in halves.labelled.items():
            right = model.fit(X[rows], y[rows]).score(X[halves.second], y[halves.second])
            found[f"{kind}_{n}"] = float(right)
    return found


def split(case, y):
    """Divide each class at random into halves, and draw labelled rows from the first half.

    Rows of no class are divided, too, but are neither labelled nor classified.
    """
    rng = np.random.default_rng(case.seed("split"))
    orders = [rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y[y >= 0])]
    outside = rng.permutation(np.flatnonzero(y < 0))
    firsts = [rows[: (len(rows) + 1) // 2] for rows in orders]
    seconds = [rows[(len(rows) + 1) // 2 :] for rows in orders]
    return Halves(
        np.sort(np.concatenate([*firsts, outside[: (len(outside) + 1) // 2]])),
        np.sort(np.concatenate(seconds)),
        {n: np.sort(np.concatenate([rows[:n] for rows in firsts])) for n in N_LABELLED},
    )


def _extractor(sample, method, settings, data, n_rows):
    if method in ("cafe", "paper"):
        return _cafe(sample, method, settings, data.y)
    if method == "raw-range":
        return RangeScaler()
    if method == "raw-standard":
        return StandardScaler()
    n_components = min(max(1, data.X.shape[1] // 2), n_rows)
    seed = seed_integer(sample.seed(method))
    return make_pipeline(StandardScaler(), PCA(n_components, random_state=seed))


def _cafe(sample, method, settings, y):
    options = dict(PAPER) if method == "paper" else {}
    if settings.n_init is not None:
        options["n_init"] = settings.n_init
    seed = seed_integer(sample.seed(method))
    return CAFE(_n_classes(y), n_jobs=1, random_state=seed, **options)


def _choice_of(cafe):
    """Return what a fit chose, and the codes of the findings about it."""
    mixture = cafe.mixture_
    extras = ["t" * mixture.tails_, "background" * (mixture.background_ > 0)]
    words = [mixture.covariance_, *extras, cafe.verdict_, cafe.confidence_]
    choice = ", ".join(filter(None, words))
    return choice, ",".join(finding.code for finding in cafe.diagnosis_)


def _n_classes(y):
    return len(np.unique(y[y >= 0]))


@cache
def _size(dataset, regime):
    """Return the size of the data in millions of entries."""
    return case_data(Case(dataset, regime, 0)).X.size / 1e6
