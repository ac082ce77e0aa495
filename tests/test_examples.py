"""Every example runs as written."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path):
    done = subprocess.run(
        [sys.executable, path],
        capture_output=True,
        text=True,
        env=os.environ | {"MPLBACKEND": "Agg"},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert "Warning" not in done.stderr, done.stderr


def test_the_readme():
    readme = (EXAMPLES[0].parent.parent / "README.md").read_text()
    blocks = [part.split("```")[0] for part in readme.split("```python\n")[1:]]
    assert blocks
    exec("\n".join(blocks), {})
