"""Versions of this package and of its required and optional dependencies."""

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

__all__ = ["show_versions"]

NEEDED = ("numpy", "scipy", "scikit-learn", "numba", "pandas", "joblib", "threadpoolctl")
OPTIONAL = (
    "matplotlib",
    "jinja2",
    "typer",
    "rich",
    "pyarrow",
    "skops",
    "polars",
    "umap-learn",
    "dask",
    "distributed",
    "zarr",
)


def show_versions() -> None:
    """Print the versions of this package and its dependencies, for bug reports.

    Examples
    --------
    >>> import cafelearn
    >>> cafelearn.show_versions()  # doctest: +ELLIPSIS
    cafelearn     0.1.0
    python        3...
    """
    import cafelearn

    lines = {
        "cafelearn": cafelearn.__version__,
        "python": sys.version.split()[0],
        "executable": sys.executable,
        "platform": platform.platform(),
        **{name: _version(name) for name in (*NEEDED, *OPTIONAL)},
    }
    width = max(map(len, lines)) + 1
    for name, value in lines.items():
        sys.stdout.write(f"{name:<{width}} {value}\n")


def _version(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
