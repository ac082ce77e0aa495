"""Plans of the comparison study: data sets, regimes, versions, tasks and methods."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from cafelearn import datasets
from reproduction.paper.plan import check_versions, choose_names
from reproduction.study.public_data import missing
from reproduction.study.regimes import (
    BUNDLED,
    DISTURBED,
    PUBLIC,
    REGIMES,
    STUDY_PAIRS,
    Case,
)
from reproduction.study.rivals import RIVALS, missing_method
from reproduction.study.worlds import GENERATORS, WORLDS

SYNTHETIC = (*GENERATORS, *WORLDS)
STUDY_DATASETS = (*datasets.names(), *BUNDLED, *PUBLIC, *SYNTHETIC)
STUDY_METHODS = {
    "labels": (*RIVALS, "paper", "cafe"),
    "features": ("raw-range", "raw-standard", "pca", "paper", "cafe"),
}
ALL_METHODS = tuple(dict.fromkeys(sum(STUDY_METHODS.values(), ())))
TASKS = tuple(STUDY_METHODS)
# Numbers of versions under each regime, by source of the data. Versions of "clean" differ only
# in the seeds of the methods.
PACKAGED_VERSIONS = {"clean": 2, **dict.fromkeys((*STUDY_PAIRS, *DISTURBED), 3)}
OTHER_REGIMES = ("pairs 0.4/1", "resampled", "columns", "outliers")
BUNDLED_VERSIONS = {"clean": 2, **dict.fromkeys(OTHER_REGIMES, 3)}
PUBLIC_VERSIONS = dict.fromkeys(("clean", *OTHER_REGIMES), 2)
# Digits has fewer versions, because it is by far the largest data set.
DIGITS_VERSIONS = dict.fromkeys(("clean", *OTHER_REGIMES), 1)
GENERATED_VERSIONS = {"generated": 5}
# Largest number of versions for the task "features".
FEATURE_VERSIONS = 2


class StudySample(NamedTuple):
    """A case (a version of a data set under a regime) and a task."""

    dataset: str
    regime: str
    version: int
    task: str

    def __str__(self):
        return f"{self.case}/{self.task}"

    @property
    def case(self):
        """The case."""
        return Case(self.dataset, self.regime, self.version)

    def seed(self, purpose):
        """Make a SeedSequence from the name of the sample and the purpose."""
        return self.case.seed(f"{self.task}/{purpose}")


@dataclass(frozen=True)
class StudySettings:
    """Number of starts of every method.

    None means 20 for k-means, 5 for mixtures, the default of CAFE for "cafe", and the number in
    ``cafelearn.PAPER`` for "paper".
    """

    n_init: int | None = None


@dataclass(frozen=True)
class StudyPlan:
    """The runs of the study "How good are the answers".

    `datasets` and `methods` default to all that are installed. The tasks are:

    - "labels": cluster all rows; the number of classes is given.
    - "features": fit to one half of the rows and extract features; then train classifiers on a
      few labelled rows of this half, and classify the other half.

    The study has 1 to 5 versions, depending on the data set, the regime and the task, and no
    more than `versions`.
    """

    datasets: tuple[str, ...] | None = None
    regimes: tuple[str, ...] = REGIMES
    methods: tuple[str, ...] | None = None
    tasks: tuple[str, ...] = TASKS
    versions: int = 5
    settings: StudySettings = StudySettings()

    def __post_init__(self):
        put = object.__setattr__
        put(self, "datasets", _installed("datasets", self.datasets, STUDY_DATASETS, _missing))
        put(self, "regimes", choose_names("regimes", self.regimes, REGIMES))
        put(self, "methods", _installed("methods", self.methods, ALL_METHODS, missing_method))
        put(self, "tasks", choose_names("tasks", self.tasks, TASKS))
        check_versions(self.versions)
        if not len(self):
            raise ValueError(
                f"StudyPlan has no runs: no data set among {', '.join(self.datasets)} has a "
                f"regime among {', '.join(self.regimes)}, or no task among "
                f"{', '.join(self.tasks)} has a method among {', '.join(self.methods)}."
            )

    def samples(self) -> list:
        """List all samples: the first version of each data set, then the second, and so on."""
        return [
            StudySample(dataset, regime, version, task)
            for version in range(self.versions)
            for dataset in self.datasets or ()
            for regime in self.regimes
            for task in self.tasks
            if version < count_versions(dataset, regime, task)
            and self.methods_of(StudySample(dataset, regime, version, task))
        ]

    def methods_of(self, sample: Any) -> tuple[str, ...]:
        """Return the methods to run on a sample, in the order of ``STUDY_METHODS``.

        "mclust" runs on the first version only, because it needs up to a minute.
        """
        left_out = {"mclust"} if sample.version else set()
        return tuple(
            name
            for name in STUDY_METHODS[sample.task]
            if name in (self.methods or ()) and name not in left_out
        )

    def __len__(self):
        """Return the number of runs."""
        return sum(len(self.methods_of(sample)) for sample in self.samples())


def _installed(what, chosen, known, needed):
    """Return the chosen names, or all names that are installed; refuse those that are not.

    `needed` returns what a name needs, "" if nothing is missing.
    """
    if chosen is None:
        return tuple(name for name in known if not needed(name))
    names = choose_names(what, chosen, known)
    for name in names:
        if needed(name):
            raise ImportError(f"StudyPlan: {name!r} among the {what} needs {needed(name)}.")
    return names


def _missing(dataset):
    return missing(dataset) if dataset in PUBLIC else ""


def count_versions(dataset, regime, task):
    """Return the number of versions; 0 if the data set is not studied under the regime."""
    if dataset == "digits":
        versions = DIGITS_VERSIONS
    elif dataset in SYNTHETIC:
        versions = GENERATED_VERSIONS
    elif dataset in BUNDLED:
        versions = BUNDLED_VERSIONS
    else:
        versions = PUBLIC_VERSIONS if dataset in PUBLIC else PACKAGED_VERSIONS
    number = versions.get(regime, 0)
    return min(number, FEATURE_VERSIONS) if task == "features" else number
