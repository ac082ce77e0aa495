"""Settings of the tests, and processes that find this package."""

import os
from pathlib import Path

import conftest  # noqa: F401  the profile of Hypothesis and the handler of interrupts

ROOT = Path(__file__).parents[2]
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")])
)
