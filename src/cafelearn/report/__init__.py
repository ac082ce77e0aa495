"""Reports: one HTML file, without network or server, from a fit or from an experiment."""

from cafelearn.report.experiment import write_experiment_report
from cafelearn.report.fit import write_fit_report

__all__ = ["write_experiment_report", "write_fit_report"]
