"""Minkowski weighted k-means and Cluster-Adaptive Feature Extraction."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cafelearn.base.versions import show_versions
    from cafelearn.estimators.cafe import CAFE, PAPER
    from cafelearn.estimators.mwkmeans import MinkowskiWeightedKMeans
    from cafelearn.estimators.scaling import RangeScaler
    from cafelearn.estimators.tabular import TabularCAFE
    from cafelearn.tables.encoding import TableEncoder

__version__ = "0.1.0"
__all__ = [
    "CAFE",
    "PAPER",
    "MinkowskiWeightedKMeans",
    "RangeScaler",
    "TableEncoder",
    "TabularCAFE",
    "show_versions",
]

# These names and modules are imported on first use, so that `cafe --help` does not wait for
# scikit-learn and Numba.
_NAMES = {
    "CAFE": "estimators.cafe",
    "PAPER": "estimators.cafe",
    "MinkowskiWeightedKMeans": "estimators.mwkmeans",
    "RangeScaler": "estimators.scaling",
    "TableEncoder": "tables.encoding",
    "TabularCAFE": "estimators.tabular",
    "show_versions": "base.versions",
}
_MODULES = (
    "datasets",
    "diagnosis",
    "distributed",
    "explanation",
    "extraction",
    "mixture",
    "persistence",
    "plotting",
    "report",
    "selection",
    "theory",
)


def __getattr__(name):
    if name in _NAMES:
        return getattr(import_module(f"cafelearn.{_NAMES[name]}"), name)
    if name in _MODULES:
        return import_module(f"cafelearn.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_NAMES, *_MODULES})
