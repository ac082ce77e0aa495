"""Progress: a bar where a line can be rewritten, lines elsewhere, one mechanism for all."""

import io

import numpy as np
import pytest

from cafelearn import CAFE, MinkowskiWeightedKMeans, TabularCAFE
from cafelearn.base import progress as _progress


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass as the test says."""

    class Clock:
        now = 0.0

        def monotonic(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(_progress, "time", clock)
    return clock


def screen(stream):
    """The lines that a terminal would show."""
    lines = []
    for line in stream.getvalue().split("\n"):
        seen = ""
        for part in line.split("\r"):
            seen = part + seen[len(part) :]
        lines.append(seen.rstrip())
    return lines


class TestBar:
    def test_the_line_is_rewritten(self, clock):
        stream = Terminal()
        bar = _progress.Bar(stream)
        for done in range(1, 6):
            clock.now = 10.0 * (done - 1)
            bar(done, 8, "starts")
            assert len(screen(stream)) == 1
        assert screen(stream)[0].endswith(" 5/8  0:24 left")
        clock.now = 45.6
        bar(8, 8, "starts")
        line, after = screen(stream)
        assert line == "starts " + "━" * _progress.WIDTH + " 8/8  45.6 s"
        assert after == ""

    def test_a_bar_that_is_not_kept_leaves_no_trace(self, clock):
        stream = Terminal()
        bar = _progress.Bar(stream, keep=False)
        bar(1, 3, "starts")
        bar.close()
        bar(3, 3, "starts")
        assert screen(stream) == [""]

    def test_phases_have_lines_of_their_own(self, clock):
        stream = Terminal()
        bar = _progress.Bar(stream)
        bar(1, 3, "starts")
        bar(1, 4, "parts")
        bar.close()
        assert [line.split()[0] for line in screen(stream)[:2]] == ["starts", "parts"]

    def test_it_is_not_drawn_for_every_step(self, clock):
        stream = Terminal()
        bar = _progress.Bar(stream)
        for done in range(1, 10_001):
            clock.now += 1e-4
            bar(done, 10_000, "starts")
        assert stream.getvalue().count("\r") < 20

    def test_it_fits_narrow_terminals(self, clock, monkeypatch):
        monkeypatch.setenv("COLUMNS", "30")
        stream = Terminal()
        _progress.Bar(stream)(5, 10, "starts", "0:07 left")
        assert len(screen(stream)[0]) <= 30

    def test_characters_that_the_stream_can_write(self, clock):
        stream = Terminal()
        stream.encoding = "ascii"
        _progress.Bar(stream)(5, 10, "starts")
        assert stream.getvalue().isascii()
        assert "####----" in stream.getvalue()


def test_lines_come_now_and_then(clock):
    told = []
    lines = _progress.Lines(told.append)
    for done in range(1, 31):
        clock.now += 1
        lines(done, 30, "starts")
    assert told == [
        "starts: 10 of 30",
        "starts: 20 of 30",
        "starts: 30 of 30, 29.0 s",
    ]


def test_notebooks_show_a_bar():
    class OutStream(io.StringIO):
        pass

    assert not _progress.can_rewrite(OutStream())
    OutStream.__module__ = "ipykernel.iostream"
    assert _progress.can_rewrite(OutStream())


X = np.random.default_rng(0).normal(size=(80, 4))
SETTINGS = {"n_init": 2, "random_state": 0}


@pytest.mark.filterwarnings("ignore::cafelearn.diagnosis.DiagnosisWarning")
@pytest.mark.parametrize("verbose", [1, True])
class TestFits:
    @pytest.fixture(autouse=True)
    def only_the_last_line(self, monkeypatch):
        monkeypatch.setattr(_progress, "SECONDS", 1e9)

    def test_cafe_shows_its_phases(self, verbose, capsys):
        CAFE(2, p=2.0, selection="likelihood", verbose=verbose, **SETTINGS).fit(X)
        lines = capsys.readouterr().err.splitlines()
        assert [line.split(":")[0] for line in lines] == ["starts"]
        assert lines[0].startswith("starts: 12 of 12, ")

    def test_mwkmeans(self, verbose, monkeypatch):
        stream = Terminal()
        monkeypatch.setattr("sys.stderr", stream)
        MinkowskiWeightedKMeans(2, n_init=7, verbose=verbose).fit(X)
        assert "7/7" in screen(stream)[0]

    def test_a_table(self, verbose, capsys):
        TabularCAFE(CAFE(2, p=2.0, verbose=verbose, **SETTINGS)).fit(X)
        assert capsys.readouterr().err.startswith("starts: 12 of 12, ")

    def test_the_line_is_ended_when_a_fit_fails(self, verbose, monkeypatch):
        stream = Terminal()
        monkeypatch.setattr("sys.stderr", stream)

        def init(X, n_clusters, random_state):
            init.calls += 1
            if init.calls > 2:
                raise RuntimeError("no more")
            return X[:n_clusters]

        init.calls = 0
        with pytest.raises(RuntimeError, match="no more"):
            MinkowskiWeightedKMeans(2, init=init, n_init=5, verbose=verbose).fit(X)
        assert stream.getvalue().endswith("\n")
        assert _progress.PROGRESS.get() is None

    def test_a_caller_that_shows_progress_is_not_interrupted(self, verbose, capsys):
        class Display:
            seen = []

            def __call__(self, done, total, words):
                self.seen.append((done, total, words))

            def close(self):
                self.seen.append("closed")

        with _progress.showing(Display()):
            MinkowskiWeightedKMeans(2, n_init=2, verbose=verbose).fit(X)
        assert capsys.readouterr().err == ""
        assert Display.seen[-3:] == [(1, 2, "starts"), (2, 2, "starts"), "closed"]


def test_without_standard_error(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    MinkowskiWeightedKMeans(2, n_init=2, verbose=1).fit(X)
