"""Worker processes that take one case at a time, within limits of time and memory."""

import json
import select
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The first case of a kind may have to compile what it needs.
SECONDS, FIRST_SECONDS = 60, 900
LARGE = 5_000


class Worker:
    """A process that runs cases, started again after it has hung or crashed."""

    def __init__(self):
        self.process, self.errors, self.compiled = None, None, set()

    def run(self, case):
        """How a case ended and its findings; a hang and a crash are findings, too."""
        if self.process is None:
            self._start()
        key = case["what"], case.get("dtype"), case.get("rows", 0) > LARGE
        limit = SECONDS if key in self.compiled else FIRST_SECONDS
        try:
            self.process.stdin.write(json.dumps(case).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return "crashed", [self._end()]
        ready, _, _ = select.select([self.process.stdout], [], [], limit)
        if not ready:
            self.process.kill()
            self._end()
            return "hung", [f"hangs: no answer within {limit} seconds"]
        self.compiled.add(key)
        answer = self.process.stdout.readline()
        return json.loads(answer) if answer else ("crashed", [self._end()])

    def close(self):
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self._end()

    def _start(self):
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the process)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            cwd=ROOT,
        )

    def _end(self):
        code = self.process.wait()
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        self.process = None
        return f"crashes with code {code}: {lines[-1] if lines else 'no message'}"
