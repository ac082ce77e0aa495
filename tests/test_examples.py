"""Every example runs as written, without a warning, and `make run` has something to run."""

import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import matplotlib as mpl
import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, capsys, tmp_path, monkeypatch):
    mpl.use("Agg")
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Told by matplotlib, because nothing can be shown here.
        warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
        try:
            runpy.run_path(str(path), run_name="__main__")
            assert mpl.pyplot.get_fignums(), "an example of the gallery draws something"
        finally:
            mpl.pyplot.close("all")
    assert capsys.readouterr().out.strip()


def test_every_example_has_a_title_and_prose():
    for path in EXAMPLES:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert lines[0] == '"""', path
        assert lines[2] == "=" * len(lines[1]), path
        assert sum(line == "# %%" for line in lines) >= 2, path


def test_make_run(tmp_path):
    """The command of the Makefile, as a newcomer runs it: a result, and a report."""
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    first = lines.index("run: $(READY)") + 1
    assert lines[first] == "\t@mkdir -p build"
    command = lines[first + 1].split()
    assert command[:2] == ["$(BIN)/cafe", "demo"]
    (tmp_path / "build").mkdir()
    for _ in range(2):  # a report of the first time is replaced by the second
        done = subprocess.run(
            [sys.executable, "-m", "cafelearn", *command[1:]],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
    assert "adjusted Rand index" in done.stdout
    assert "</html>" in (tmp_path / "build" / "cafe-demo.html").read_text(encoding="utf-8")
