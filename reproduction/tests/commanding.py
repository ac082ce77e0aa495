"""Runs of the command for its tests."""

import subprocess
import sys


def command(*args, **options):
    """Run `python -m reproduction` with these arguments to its end."""
    return subprocess.run(
        [sys.executable, "-m", "reproduction", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=300,
        **options,
    )
