"""Runs of the comparison study: one method on one sample (a case and a task)."""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cafelearn._cafe import CAFE, PAPER
from cafelearn._labels import chosen_position, settings_words
from cafelearn._scaling import RangeScaler
from cafelearn._seeds import seed_integer
from cafelearn.experiments.experiment import Experiment, measuring
from cafelearn.experiments.regimes import Case, case_data
from cafelearn.experiments.study_plan import StudySample, StudySettings

# Numbers of labelled rows per class that the classifiers are trained on.
N_LABELLED = (5, 20)
ACCURACIES = tuple(f"{kind}_{n}" for kind in ("knn", "logistic") for n in N_LABELLED)
# Expected seconds on one core per million entries of data; LITTLE is for all other methods.
# Only the ratios matter, and only until a run of the method on a similar sample has succeeded.
PRIOR = {"paper": 30.0, "cafe": 60.0, "hindsight": 0.0, "gmm-full": 20.0, "gmm-diag": 5.0}
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
    choice: str = ""  # settings that CAFE chose
    findings: str = ""  # codes of the findings in CAFE's diagnosis, separated by commas
    warnings: str = ""
    traceback: str = ""
    libraries: str = ""


class Fit(NamedTuple):
    """The fit of CAFE that the methods "cafe" and "hindsight" share."""

    labels: np.ndarray
    candidates: list[np.ndarray]  # labels of each candidate
    choice: str
    findings: str
    seconds: float
    warnings: str


class Halves(NamedTuple):
    """Row numbers of the two halves of a data set."""

    first: np.ndarray  # rows to fit to
    second: np.ndarray  # rows to classify
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

    def shares(self, sample, method):
        """Check whether a method uses the shared fit of CAFE to all rows."""
        return sample.task == "labels" and method in ("cafe", "hindsight")

    def share(self, sample, settings, data):
        """Fit CAFE to all rows."""
        with measuring() as measured:
            cafe = _cafe(sample, "cafe", settings, data.y).fit(data.X)
        return Fit(
            cafe.labels_,
            [model.labels_ for model in cafe.models_],
            *_choice_of(cafe),
            measured.seconds,
            measured.warnings,
        )

    def measure(self, sample, method, settings, data, shared):
        """Run a method and score its labels or its features."""
        score = {"labels": _score_labels, "features": _score_features}[sample.task]
        sizes = dict(zip(("n_rows", "n_features"), data.X.shape, strict=True))
        found = score(sample, method, settings, data, shared)
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

    def own_seconds(self, record):
        """Return the run time; the shared fit counts only in the record of "cafe"."""
        return 0.0 if record.method == "hindsight" else record.seconds


STUDY = Study()


def _score_labels(sample, method, settings, data, shared):
    """Cluster all rows, and compute the adjusted Rand index of labels and classes."""
    if shared is None or not STUDY.shares(sample, method):
        with measuring() as measured:
            labels = _cluster(sample, method, settings, data)
        ari = _compare(data.y, labels)
        return {"ari": ari, "seconds": measured.seconds, "warnings": measured.warnings}
    common = {"seconds": shared.seconds, "warnings": shared.warnings}
    if method == "hindsight":
        return {"ari": max(_compare(data.y, labels) for labels in shared.candidates), **common}
    extra = {"choice": shared.choice, "findings": shared.findings}
    return {"ari": _compare(data.y, shared.labels), **extra, **common}


def _compare(y, labels):
    return float(adjusted_rand_score(y, labels))


def _cluster(sample, method, settings, data):
    """Cluster the rows with a method; the noise points of HDBSCAN form one more cluster."""
    if method == "paper":
        return _cafe(sample, method, settings, data.y).fit(data.X).labels_
    k, seed = _n_classes(data.y), seed_integer(sample.seed(method))
    kind, _, variant = method.partition("-")
    scaler = RangeScaler() if variant == "range" else StandardScaler()
    if kind == "kmeans":
        model = KMeans(k, n_init=settings.n_init or 20, random_state=seed)
    elif kind == "gmm":
        model = GaussianMixture(
            k, covariance_type=variant, n_init=settings.n_init or 5, random_state=seed
        )
    else:
        model = HDBSCAN(copy=True)
    return model.fit_predict(scaler.fit_transform(data.X))


def _score_features(sample, method, settings, data, shared):
    """Extract features, and compute the accuracies of classifiers on the second half."""
    halves = split(sample.case, data.y)
    with measuring() as measured:
        extractor = _extractor(sample, method, settings, data, len(halves.first))
        first = extractor.fit(data.X[halves.first]).transform(data.X[halves.first])
        second = extractor.transform(data.X[halves.second])
    features = np.empty((len(data.y), first.shape[1]))
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
    # The scaler needs no labels, so it is fitted to all rows of the first half.
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
    """Divide each class at random into halves, and draw labelled rows from the first half."""
    rng = np.random.default_rng(case.seed("split"))
    orders = [rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y)]
    firsts = [rows[: (len(rows) + 1) // 2] for rows in orders]
    seconds = [rows[(len(rows) + 1) // 2 :] for rows in orders]
    return Halves(
        np.sort(np.concatenate(firsts)),
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
    """Return the settings that a fit chose, and the codes of the findings about it."""
    row = cafe.candidates_.iloc[chosen_position(cafe.candidates_)]
    findings = getattr(cafe, "diagnosis_", [])
    return settings_words(row), ",".join(finding.code for finding in findings)


def _n_classes(y):
    return len(np.unique(y))


@cache
def _size(dataset, regime):
    """Return the size of the data in millions of entries."""
    return case_data(Case(dataset, regime, 0)).X.size / 1e6
