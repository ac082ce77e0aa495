"""Plan, run, store and evaluate the paper's experiment and the comparison study."""

from cafelearn.experiments.grid import WorkersLost, run_grid
from cafelearn.experiments.plan import METHODS, QUICK, Plan, Sample, Settings
from cafelearn.experiments.regimes import Case, case_data
from cafelearn.experiments.run import noisy_data
from cafelearn.experiments.store import StoreError, read_results
from cafelearn.experiments.study import read_study, run_study
from cafelearn.experiments.study_plan import STUDY_METHODS, StudyPlan, StudySettings

__all__ = [
    "METHODS",
    "QUICK",
    "STUDY_METHODS",
    "Case",
    "Plan",
    "Sample",
    "Settings",
    "StoreError",
    "StudyPlan",
    "StudySettings",
    "WorkersLost",
    "case_data",
    "noisy_data",
    "read_results",
    "read_study",
    "run_grid",
    "run_study",
]
