"""Plans of the comparison study: data sets, regimes, versions, tasks and methods."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from cafelearn import datasets
from cafelearn.experiments.plan import check_versions, choose_names
from cafelearn.experiments.regimes import BUNDLED, GENERATED, PAIRS, REGIMES, Case

STUDY_DATASETS = (*datasets.names(), *BUNDLED, *GENERATED)
# "hindsight" is not a clustering method: it selects the candidate of "cafe" that agrees best
# with the classes. Its score is an upper bound for every selection rule.
STUDY_METHODS = {
    "labels": (
        *("kmeans-range", "kmeans-standard", "gmm-diag", "gmm-full", "hdbscan"),
        *("paper", "cafe", "hindsight"),
    ),
    "features": ("raw-range", "raw-standard", "pca", "paper", "cafe"),
}
TASKS = tuple(STUDY_METHODS)
# Numbers of versions under each regime, by source of the data. Versions of "clean" differ only
# in the seeds of the methods.
PACKAGED_VERSIONS = {
    "clean": 3,
    **dict.fromkeys(PAIRS, 20),
    **dict.fromkeys(("columns", "heavy", "zeros"), 5),
}
BUNDLED_VERSIONS = {"clean": 3, "columns": 5, "pairs 0.2/1": 5, "pairs 0.4/5": 5}
# Digits has fewer versions, because it is by far the largest data set.
DIGITS_VERSIONS = {"clean": 2, "columns": 1, "pairs 0.2/1": 1, "pairs 0.4/5": 1}
GENERATED_VERSIONS = {"generated": 20}
# Largest number of versions for the task "features".
FEATURE_VERSIONS = 3


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
    """Numbers of starts of the methods of the study.

    Parameters
    ----------
    n_init : int, default=None
        Number of starts of every method; ``None`` means 20 for k-means, 5 for Gaussian
        mixtures, the default of CAFE for "cafe", and the number in ``cafelearn.PAPER`` for
        "paper".

    Examples
    --------
    >>> from cafelearn.experiments import StudySettings
    >>> StudySettings(n_init=2).n_init
    2
    """

    n_init: int | None = None


@dataclass(frozen=True)
class StudyPlan:
    """The runs of the study "How good are the answers".

    Parameters
    ----------
    datasets : sequence of str, default=all fifteen
        The nine sets of :func:`cafelearn.datasets.names`, "digits", "wdbc" and "wine" of
        scikit-learn, and the generators "categories", "counts" and "subspaces".
    regimes : sequence of str, default=all eleven
        "clean", "pairs 0.2/1" and the other five settings of the paper's noise, "columns",
        "heavy", "zeros" and "generated"; see :func:`~cafelearn.experiments.case_data`.
    methods : sequence of str, default=all eleven
        Names as in ``cafelearn.experiments.STUDY_METHODS``.
    tasks : sequence of str, default=("labels", "features")
        - "labels": cluster all rows; the number of classes is given.
        - "features": fit to one half of the rows and extract features; then train classifiers
          on a few labelled rows of this half, and classify the other half.
    versions : int, default=20
        Largest number of versions. The study has 1 to 20 versions, depending on the data set,
        the regime and the task.
    settings : StudySettings, default=StudySettings()
        Numbers of starts of the methods.

    Examples
    --------
    >>> from cafelearn.experiments import StudyPlan
    >>> plan = StudyPlan(["iris"], ["clean", "columns"], tasks=["labels"], versions=2)
    >>> len(plan.samples()), len(plan)
    (4, 32)
    >>> str(plan.samples()[0])
    'iris/clean/0/labels'
    """

    datasets: tuple[str, ...] = STUDY_DATASETS
    regimes: tuple[str, ...] = REGIMES
    methods: tuple[str, ...] = tuple(dict.fromkeys(sum(STUDY_METHODS.values(), ())))
    tasks: tuple[str, ...] = TASKS
    versions: int = 20
    settings: StudySettings = StudySettings()

    def __post_init__(self):
        for name, known in (
            ("datasets", STUDY_DATASETS),
            ("regimes", REGIMES),
            ("methods", StudyPlan.methods),
            ("tasks", TASKS),
        ):
            object.__setattr__(self, name, choose_names(name, getattr(self, name), known))
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
            for dataset in self.datasets
            for regime in self.regimes
            for task in self.tasks
            if version < count_versions(dataset, regime, task)
            and self.methods_of(StudySample(dataset, regime, version, task))
        ]

    def methods_of(self, sample: Any) -> tuple[str, ...]:
        """Return the methods to run on a sample, in the order of ``STUDY_METHODS``.

        "paper" is left out for samples of the paper's experiment, whose method "mwk-means"
        computes the same labels.
        """
        return tuple(
            name
            for name in STUDY_METHODS[sample.task]
            if name in self.methods and not (name == "paper" and is_in_grid(sample))
        )

    def __len__(self):
        """Return the number of runs."""
        return sum(len(self.methods_of(sample)) for sample in self.samples())


def is_in_grid(sample):
    """Check whether a sample is part of the paper's experiment."""
    return (
        sample.task == "labels"
        and sample.regime in PAIRS
        and sample.dataset in datasets.names()
    )


def count_versions(dataset, regime, task):
    """Return the number of versions; 0 if the data set is not studied under the regime."""
    if dataset in GENERATED:
        versions = GENERATED_VERSIONS
    else:
        versions = BUNDLED_VERSIONS if dataset in BUNDLED else PACKAGED_VERSIONS
        versions = DIGITS_VERSIONS if dataset == "digits" else versions
    number = versions.get(regime, 0)
    return min(number, FEATURE_VERSIONS) if task == "features" else number
