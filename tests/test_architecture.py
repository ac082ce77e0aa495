"""Rules of the code: dependencies point one way, and every public name is documented."""

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import cafelearn
import cafelearn.distributed
import cafelearn.mixture
import cafelearn.plotting
import cafelearn.report
from numpydoc_lite import sections

SOURCE = Path(cafelearn.__file__).parent
# Each folder may import the ones before it.
ORDER = (
    "base",
    "data",
    "kmeans",
    "distributed",
    "mixture",
    "theory",
    "interpret",
    "choice",
    "extraction",
    "tables",
    "estimators",
    "files",
    "datasets",
    "plotting",
    "report",
    "cli",
)
# Modules beside the folders: the public names of a folder.
NAMES = ("diagnosis", "explanation", "persistence", "selection")


PUBLIC = (
    cafelearn,
    cafelearn.diagnosis,
    cafelearn.selection,
    cafelearn.mixture,
    cafelearn.theory,
    cafelearn.extraction,
    cafelearn.datasets,
    cafelearn.distributed,
    cafelearn.plotting,
    cafelearn.report,
)


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield f"{node.module}.{alias.name}"


def folder(module):
    parts = module.split(".")
    return parts[1] if parts[0] == "cafelearn" and len(parts) > 1 else None


@pytest.mark.parametrize("name", ORDER)
def test_dependencies_point_one_way(name):
    paths = list((SOURCE / name).rglob("*.py"))
    assert paths
    for path in paths:
        for module in imports(path):
            assert folder(module) not in NAMES, f"{path}: {module}"
            if folder(module) in ORDER:
                assert ORDER.index(folder(module)) <= ORDER.index(name), f"{path}: {module}"


def test_kernels_know_nothing_but_numpy_and_numba():
    standard = ("typing", "types", "inspect", "functools", "contextlib", "warnings")
    standard += ("concurrent.futures", "hashlib", "pathlib", "threading")
    allowed = ("numpy", "numba", "llvmlite", "cafelearn.kmeans.kernels", *standard)
    for path in (SOURCE / "kmeans" / "kernels").glob("*.py"):
        for module in imports(path):
            assert module.startswith(allowed), f"{path.name} imports {module}"


def test_the_package_does_not_import_the_experiments():
    for path in SOURCE.rglob("*.py"):
        assert not [name for name in imports(path) if name.startswith("reproduction")], path


def test_every_module_has_its_place():
    folders = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    modules = {path.stem for path in SOURCE.glob("*.py")}
    assert folders == set(ORDER)
    assert modules == {"__init__", "__main__", *NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_public_modules_only_name_what_is_elsewhere(name):
    assert len((SOURCE / f"{name}.py").read_text().splitlines()) <= 10


def public_objects():
    for info in pkgutil.walk_packages([str(SOURCE)], "cafelearn."):
        if "_" in {part[0] for part in info.name.split(".")}:
            continue
        importlib.import_module(info.name)
    for module in PUBLIC:
        for name in module.__all__:
            if callable(getattr(module, name)):
                yield pytest.param(getattr(module, name), id=f"{module.__name__}.{name}")


@pytest.mark.parametrize("thing", list(public_objects()))
def test_public_names_are_documented(thing):
    found = sections(inspect.getdoc(thing))
    if issubclass(type(thing), type) and not hasattr(thing, "fit"):
        return
    assert "Examples" in found
    assert ">>>" in found["Examples"]
    parameters = inspect.signature(thing).parameters
    for name in parameters:
        assert name in found.get("Parameters", ""), f"parameter {name} is not documented"


def test_import_does_not_load_optional_packages():
    code = (
        "import sys, cafelearn; cafelearn.CAFE, cafelearn.MinkowskiWeightedKMeans\n"
        "optional = {'matplotlib', 'dask', 'jinja2', 'typer', 'umap', 'polars', 'skops'}\n"
        "sys.exit(', '.join(optional & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
