"""The command when its streams break and its files are damaged."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cafelearn
from cafelearn import CAFE, MinkowskiWeightedKMeans, theory
from cafelearn.cli import main
from cafelearn.cli.reading import read_table
from cafelearn.estimators.tabular import TabularCAFE
from cafelearn.files.atomic import atomic_path
from cafelearn.persistence import save_model

CAFE_COMMAND = [sys.executable, "-m", "cafelearn"]
SECONDS = 300  # for a process that may have to compile


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with a table and a model of it."""
    folder = tmp_path_factory.mktemp("place")
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 4)), columns=list("abcd"))
    table.to_csv(folder / "data.csv", index=False)
    estimator = TabularCAFE(CAFE(2, n_components=2, n_init=1, p=2.0, random_state=0))
    save_model(estimator.fit(table), folder / "model.skops")
    return folder


def transform(place, out, redirection, options=""):
    out = place / out
    command = f"{' '.join(CAFE_COMMAND)} transform model.skops data.csv --out {out} {options}"
    done = subprocess.run(
        ["bash", "-c", f"{command} {redirection}; echo $? >code"],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    return out, int((place / "code").read_text()), done.stderr


class TestStandardOutput:
    """Requested files are written even if standard output fails."""

    @pytest.mark.parametrize("options", ["", "--json"])
    def test_a_reader_that_goes(self, place, options):
        out, code, errors = transform(
            place, f"pipe{options}.csv", "1> >(sleep 0.1; true)", options
        )
        assert len(pd.read_csv(out)) == 60
        assert code == 0
        assert "Traceback" not in errors

    def test_closed(self, place):
        out, code, errors = transform(place, "closed.csv", ">&-")
        assert len(pd.read_csv(out)) == 60
        assert code == 0
        assert "Traceback" not in errors

    def test_all_closed(self, place):
        out, code, _ = transform(place, "silent.csv", ">&- 2>&-")
        assert len(pd.read_csv(out)) == 60
        assert code == 0

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    def test_full(self, place):
        out, code, errors = transform(place, "full.csv", ">/dev/full")
        assert len(pd.read_csv(out)) == 60
        assert code == 1
        assert "standard output: No space left on device" in errors

    def test_the_session_goes_on(self, monkeypatch, tmp_path):
        from cafelearn.cli.session import session

        reading, writing = os.pipe()
        os.close(reading)
        with open(writing, "w") as stream:
            monkeypatch.setattr(sys, "stdout", stream)
            with session("test") as run:
                run.say("a line that nobody reads")
                (tmp_path / "written").touch()
        assert (tmp_path / "written").exists()


def test_a_full_disk_is_named(tmp_path):
    def fill():
        with atomic_path(tmp_path / "features.csv"):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match=r"No space left on device: '.*features.csv'"):
        fill()


class TestCache:
    """Compiled code is cached if possible, and compiled again if the cache is damaged."""

    CODE = (
        "import numpy as np; from cafelearn.kmeans.kernels.assign import hash_of; "
        "print(hash_of.from_python(np.uint64(0)))"
    )

    def run(self, source, home, **variables):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA")}
        environment |= {"PYTHONPATH": str(source), "HOME": str(home), **variables}
        environment.pop("XDG_CACHE_HOME", None)
        done = subprocess.run(
            [sys.executable, "-c", self.CODE],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env=environment,
            cwd=source,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stdout == "16294208416658607535\n"
        return done.stderr

    @pytest.fixture
    def source(self, tmp_path):
        package = Path(cafelearn.__file__).parent
        shutil.copytree(
            package, tmp_path / "cafelearn", ignore=shutil.ignore_patterns("__pycache__")
        )
        return tmp_path

    def test_nowhere_to_keep_it(self, source):
        # Directories that cannot be made, for the superuser as well: files are in their place.
        for folder in list((source / "cafelearn").glob("**/")):
            (folder / "__pycache__").write_text("")
        (source / "home").write_text("")
        told = self.run(source, source / "home", PYTHONDONTWRITEBYTECODE="1")
        assert told.count("cannot keep its compiled code") == 1

    @pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
    def test_cut_off(self, source, suffix):
        self.run(source, source)
        files = list(source.glob(f"cafelearn/kmeans/kernels/__pycache__/*{suffix}"))
        assert files
        for file in files:
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        assert self.run(source, source) == ""
        assert self.run(source, source) == ""

    def test_an_edit_of_another_file_is_noticed(self, source):
        code = (
            "import numpy as np; from cafelearn.kmeans.draws import _row_codes;"
            "print(_row_codes(np.eye(1), np.zeros(1), np.ones(1))[0])"
        )

        def run():
            done = subprocess.run(
                [sys.executable, "-c", code],
                capture_output=True,
                text=True,
                timeout=SECONDS,
                cwd=source,
                env=os.environ | {"PYTHONPATH": str(source)},
            )
            assert done.returncode == 0, done.stderr[-2000:]
            return done.stdout

        before = run()
        assert run() == before
        edited = source / "cafelearn" / "kmeans" / "kernels" / "assign.py"
        text = edited.read_text()
        assert "np.uint64(30)" in text
        edited.write_text(text.replace("np.uint64(30)", "np.uint64(31)"))
        assert run() != before


def test_a_certificate_of_tiny_data():
    X = np.random.default_rng(0).normal(size=(60, 3)) * 1e-100
    for offset in (0, 1.0, "fixed", "mean"):
        model = MinkowskiWeightedKMeans(
            2, p=4, dispersion_offset=offset, n_init=2, random_state=0
        ).fit(X)
        assert theory.certificate(model, X).all_hold


class TestTables:
    def test_utf_32(self, tmp_path):
        text = "a,b\n1,x\n2,ü\n"
        for encoding in ("utf-32", "utf-16", "utf-8"):
            (tmp_path / "t.csv").write_text(text, encoding=encoding)
            frame = read_table(tmp_path / "t.csv")
            assert frame.columns.tolist() == ["a", "b"]
            assert frame["b"].tolist() == ["x", "ü"]

    def test_a_broken_zarr_block(self, tmp_path, capsys):
        zarr = pytest.importorskip("zarr")
        path = tmp_path / "t.zarr"
        array = zarr.open_array(str(path), mode="w", shape=(100, 3), chunks=(50, 3), dtype="f8")
        array[:] = np.random.default_rng(0).normal(size=(100, 3))
        blocks = [f for f in path.rglob("*") if f.is_file() and f.suffix != ".json"]
        blocks = [f for f in blocks if not f.name.startswith(".")]
        blocks[0].write_bytes(b"broken")
        assert main(["fit", str(path), "-k", "2", "--n-init", "1", "--p", "2"]) == 2
        errors = capsys.readouterr().err
        assert "t.zarr cannot be read as a Zarr array" in errors
