"""The paper's experiment: plan, run, store, compare."""

from cafelearn.experiments.grid import WorkersLost, run_grid
from cafelearn.experiments.plan import METHODS, QUICK, Plan, Sample, Settings
from cafelearn.experiments.run import noisy_data
from cafelearn.experiments.store import StoreError, read_results

__all__ = [
    "METHODS",
    "QUICK",
    "Plan",
    "Sample",
    "Settings",
    "StoreError",
    "WorkersLost",
    "noisy_data",
    "read_results",
    "run_grid",
]
