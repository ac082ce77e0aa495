"""Workers that die, and damaged files of records."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reproduction.paper.plan import Settings
from reproduction.paper.run import GRID
from reproduction.runs.store import Store, StoreError

COMMAND = [sys.executable, "-m", "reproduction", "paper"]
SECONDS = 300  # for a process that may have to compile


def reproduce(directory, *options):
    words = "--quick --jobs 2 --datasets iris --methods mwk-means,cafe+pca --levels 0.2,0.4"
    words += " --scales 1,2"
    return subprocess.Popen(
        [*COMMAND, *words.split(), "--out", str(directory), *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


SLOW_IMPORT = """
import sys, time

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "sklearn" and any("popen_loky" in word for word in sys.orig_argv):
            time.sleep(30)

sys.meta_path.insert(0, Slow())
"""


def workers_of(pid):
    """Processes that a process has started and that run tasks."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            words = (folder / "cmdline").read_text()
        except OSError:
            continue
        if parent == pid and "popen_loky" in words:
            found.append(int(folder.name))
    return found


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.1)
    raise AssertionError("it did not happen in time")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
class TestWorkers:
    def test_they_end_with_the_command(self, tmp_path):
        command = reproduce(tmp_path, "--versions", "20")
        wait_for(lambda: len(workers_of(command.pid)) == 2, SECONDS)
        workers = workers_of(command.pid)
        wait_for(lambda: _ended(tmp_path), SECONDS)
        os.kill(command.pid, signal.SIGKILL)
        command.wait()
        wait_for(lambda: not any(_is_alive(pid) for pid in workers), 10)

    def test_they_end_with_the_command_while_they_start(self, tmp_path, monkeypatch):
        """On a machine so busy that importing scikit-learn takes half a minute."""
        (tmp_path / "sitecustomize.py").write_text(SLOW_IMPORT)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
        command = reproduce(tmp_path / "results", "--versions", "20")
        workers = wait_for(lambda: workers_of(command.pid), SECONDS)
        os.kill(command.pid, signal.SIGKILL)
        command.wait()
        wait_for(lambda: not any(_is_alive(pid) for pid in workers), 10)

    def test_they_watch_before_they_import_what_takes_time(self):
        code = (
            "import reproduction.runs.parent, sys; print({'numpy', 'sklearn'} & {*sys.modules})"
        )
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        assert done.stdout.strip() == "set()"

    def test_they_end_if_the_command_did_before_their_first_task(self):
        code = "import sys, time; from reproduction.runs.parent import end_with; "
        code += "end_with(int(sys.argv[1])); time.sleep(30); print('alive')"
        ended = subprocess.Popen(["true"])
        ended.wait()
        done = subprocess.run(
            [sys.executable, "-c", code, str(ended.pid)],
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert (done.returncode, done.stdout) == (1, "")

    def test_one_that_is_killed_at_once_does_not_end_the_command(self, tmp_path):
        command = reproduce(tmp_path)
        victims = wait_for(lambda: workers_of(command.pid), SECONDS)
        os.kill(victims[0], signal.SIGKILL)
        _, errors = command.communicate(timeout=SECONDS)
        assert command.returncode == 0, errors
        with Store(tmp_path, GRID) as store:
            assert len(store.ended()) == 16


def _ended(directory):
    try:
        with Store(directory, GRID) as store:
            return store.ended()
    except StoreError:
        return False


def _is_alive(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


class TestRuns:
    def test_a_damaged_file_is_not_called_safe(self, tmp_path):
        (tmp_path / "runs.sqlite").write_bytes(b"this is no database" * 100)
        with pytest.raises(StoreError, match="The file is damaged") as raised:
            Store(tmp_path, GRID, Settings())
        assert "safe" not in str(raised.value)

    def test_damaged_pages_are_not_called_safe(self, tmp_path):
        Store(tmp_path, GRID, Settings()).close()
        path = tmp_path / "runs.sqlite"
        data = bytearray(path.read_bytes())
        data[100:] = b"\xff" * (len(data) - 100)
        path.write_bytes(data)
        with pytest.raises(StoreError, match="The file is damaged") as raised:
            Store(tmp_path, GRID, Settings())
        assert "safe" not in str(raised.value)
        assert isinstance(raised.value.__cause__, sqlite3.DatabaseError)

    @pytest.mark.parametrize(("at", "byte"), [(None, 0xFF), (44, 0x09)])
    def test_damaged_text_and_format_are_not_called_safe(self, at, byte, tmp_path):
        Store(tmp_path, GRID, Settings()).close()
        path = tmp_path / "runs.sqlite"
        data = bytearray(path.read_bytes())
        # A letter of the settings, or the number of the file format.
        data[data.index(b'{"format"') + 3 if at is None else at] = byte
        if at is not None:
            data[at : at + 4] = bytes([byte]) * 4
        path.write_bytes(data)
        with pytest.raises(StoreError) as raised:
            Store(tmp_path, GRID, Settings())
        assert "safe" not in str(raised.value)
        assert "\n" not in str(raised.value)
