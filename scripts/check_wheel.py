"""Build the package, install its wheel in a new environment and test it there.

    python scripts/check_wheel.py

The test suite runs on the checkout, so it cannot detect files that the package lacks.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Some files that are not modules. Such files are the most likely to be missing from a package.
DATA_FILES = (
    "cafelearn/py.typed",
    "cafelearn/report/assets/report.css",
    "cafelearn/report/templates/fit.html.jinja",
    "cafelearn/datasets/data/iris.csv",
)
# Runs in the new environment.
TRIAL = """
import tempfile
from pathlib import Path

import cafelearn
from cafelearn import CAFE
from cafelearn.cli import main
from cafelearn.datasets import load, names
from cafelearn.persistence import load_model, save_model
from cafelearn.report import write_fit_report

assert "site-packages" in cafelearn.__file__, cafelearn.__file__
cafelearn.show_versions()
assert all(len(load(name).target) for name in names())
data = load("iris")
cafe = CAFE(3, n_components=2, n_init=2, random_state=0)
features = cafe.fit_transform(data.data)
assert features.shape == (150, 2)
here = Path(tempfile.mkdtemp())
again = load_model(save_model(cafe, here / "iris.skops"))
assert (again.transform(data.data) == features).all()
assert write_fit_report(cafe, data.data, here / "iris.html").stat().st_size > 10_000
assert main(["--version"]) == 0
"""


def main():
    """Build, install and test the package; exit with the code of the first step that fails."""
    with tempfile.TemporaryDirectory() as directory:
        there = Path(directory)
        run(sys.executable, "-m", "build", "--outdir", there / "dist", ROOT)
        (wheel,) = (there / "dist").glob("*.whl")
        (sdist,) = (there / "dist").glob("*.tar.gz")
        check_contents(wheel, sdist)
        venv.create(there / "env", with_pip=True)
        bin_directory = there / "env" / ("Scripts" if os.name == "nt" else "bin")
        python = bin_directory / ("python.exe" if os.name == "nt" else "python")
        constraints = ROOT / "constraints.txt"
        pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        run(*pip, "--constraint", constraints, f"{wheel}[report,cli]", cwd=there)
        run(python, "-c", TRIAL, cwd=there)
        run(bin_directory / "cafe", "--version", cwd=there)
    sys.stdout.write(f"{wheel.name} works after installation.\n")


def check_contents(wheel, sdist):
    """Exit with a message if an archive lacks a file of DATA_FILES, or the wheel has others.

    Only the package may be in the wheel: tests, benchmarks and experiments stay outside.
    """
    held = set(zipfile.ZipFile(wheel).namelist())
    if other := sorted({name.partition("/")[0] for name in held if not _is_expected(name)}):
        sys.exit(f"check_wheel: unexpected in the wheel: {', '.join(other)}")
    missing = [name for name in DATA_FILES if name not in held]
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    missing += [name for name in (f"src/{name}" for name in DATA_FILES) if name not in inside]
    if missing:
        sys.exit(f"check_wheel: missing from the wheel or the sdist: {', '.join(missing)}")


def _is_expected(name):
    return name.startswith(("cafelearn/", "cafelearn-"))


def run(*command, cwd=None):
    """Run a command without PYTHONPATH; exit with its code if it fails."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHONPATH")}
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=environment)
    if done.returncode:
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()
