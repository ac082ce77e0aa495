"""Minkowski weighted k-means and Cluster-Adaptive Feature Extraction."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cafelearn._cafe import CAFE, PAPER
    from cafelearn._encoding import TableEncoder
    from cafelearn._mwkmeans import MinkowskiWeightedKMeans
    from cafelearn._scaling import RangeScaler
    from cafelearn._tabular import TabularCAFE
    from cafelearn._versions import show_versions

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
    "CAFE": "_cafe",
    "PAPER": "_cafe",
    "MinkowskiWeightedKMeans": "_mwkmeans",
    "RangeScaler": "_scaling",
    "TableEncoder": "_encoding",
    "TabularCAFE": "_tabular",
    "show_versions": "_versions",
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
