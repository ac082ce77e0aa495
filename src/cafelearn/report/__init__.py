"""Self-contained HTML report of a fit."""

from cafelearn.report.fit import write_fit_report

__all__ = ["write_fit_report"]
