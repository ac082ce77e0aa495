"""Self-contained HTML reports of a fit or an experiment."""

from cafelearn.report.experiment import write_experiment_report
from cafelearn.report.fit import write_fit_report

__all__ = ["write_experiment_report", "write_fit_report"]
