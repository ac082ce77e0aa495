"""Progress of fits and of the `cafe` command.

It is shown as a bar on terminals and in notebooks, and as occasional lines on other streams.
"""

import shutil
import sys
import time
from contextlib import contextmanager
from contextvars import ContextVar

SECONDS = 10  # seconds between two lines, if there is no bar
REDRAW = 0.1  # seconds between two updates of a bar
WIDTH = 32  # length of a bar in characters; on narrow terminals it is shorter
# Function that shows the progress, or None. Its arguments are the number of completed steps,
# the total number of steps and the name of the phase. It is called in the thread that called
# `fit`.
PROGRESS: ContextVar = ContextVar("progress", default=None)
# Name of the current phase of the fit.
PHASE: ContextVar = ContextVar("phase", default="starts")


def report(done, total):
    """Report that `done` of `total` steps of the current phase are complete."""
    if (show := PROGRESS.get()) is not None:
        show(done, total, PHASE.get())


@contextmanager
def phase(words):
    """Set the name of the phase for reports within the `with` block."""
    token = PHASE.set(words)
    try:
        yield
    finally:
        PHASE.reset(token)


@contextmanager
def shown(verbose):
    """Show the progress of fits in the `with` block if `verbose` is 1.

    Do nothing if a caller already shows it.
    """
    if int(verbose) != 1 or PROGRESS.get() is not None or sys.stderr is None:
        yield
        return
    with showing(bar_or_lines(sys.stderr)):
        yield


@contextmanager
def showing(display):
    """Show the progress of fits in the `with` block with a Bar or Lines."""
    token = PROGRESS.set(display)
    try:
        yield
    finally:
        PROGRESS.reset(token)
        display.close()


def bar_or_lines(stream):
    """Return a Bar if `stream` can show one, else Lines."""
    if can_rewrite(stream):
        return Bar(stream)

    def tell(text):
        stream.write(text + "\n")
        stream.flush()

    return Lines(tell)


def can_rewrite(stream):
    """Check whether a stream is a terminal or a notebook, where a line can be rewritten."""
    return stream.isatty() or type(stream).__module__.startswith("ipykernel.")


class Bar:
    """A progress bar on a line that is rewritten.

    With `keep`, the line of a completed phase stays and shows the duration of the phase.
    """

    def __init__(self, stream, keep=True):
        self.stream, self.keep = stream, keep
        self.words, self.drawn, self.length = None, -float("inf"), 0

    def __call__(self, done, total, words, more=None):
        """Show `done` of `total` steps, and the time left or, if given, the text `more`."""
        now = time.monotonic()
        if words != self.words:
            self.close()
            self.words, self.begin, self.drawn = words, now, -float("inf")
        is_end = done >= total
        if not is_end and now - self.drawn < REDRAW:
            return
        self.drawn = now
        if more is None:
            more = _time(done, total, now - self.begin)
        self._write(self._line(done, total, words, more))
        if is_end:
            self._end(keep=self.keep)

    def close(self):
        """End the line, or remove it if lines are not kept."""
        if self.length:
            self._end(keep=self.keep)

    def _line(self, done, total, words, more):
        counts = f"{done:,}/{total:,}  {more}"
        space = shutil.get_terminal_size().columns - len(words) - len(counts) - 3
        width = max(0, min(WIDTH, space))
        full, rest = ("━", "╌") if _draws(self.stream, "━╌") else ("#", "-")
        filled = round(width * done / total) if total else width
        return f"{words} {full * filled}{rest * (width - filled)} {counts}"

    def _write(self, text):
        self.stream.write("\r" + text.ljust(self.length))
        self.stream.flush()
        self.length = len(text)

    def _end(self, keep):
        if keep:
            self.stream.write("\n")
        else:
            self.stream.write("\r" + " " * self.length + "\r")
        self.stream.flush()
        self.words, self.length = None, 0


class Lines:
    """Progress as occasional lines; with `keep`, also one line at the end of each phase."""

    def __init__(self, tell, keep=True, seconds=None):
        self.tell, self.keep = tell, keep
        self.seconds = SECONDS if seconds is None else seconds
        self.words = None
        self.last = time.monotonic()

    def __call__(self, done, total, words, more=None):
        """Print a line if the interval has passed or, with `keep`, the phase is complete."""
        now = time.monotonic()
        if words != self.words:
            self.words, self.begin = words, now
        is_end = done >= total
        if now - self.last >= self.seconds or (is_end and self.keep):
            self.last = now
            if more is None and is_end and self.keep:
                more = _time(done, total, now - self.begin)
            self.tell(f"{words}: {done:,} of {total:,}" + (f", {more}" if more else ""))
        if is_end:
            self.words = None

    def close(self):
        """Do nothing: no line is left open."""


def _time(done, total, seconds):
    """Format the estimated time left, or the duration if all steps are complete."""
    if done >= total:
        return f"{seconds:.1f} s" if seconds < 60 else span(seconds)
    # The first step gives no estimate, because it may include compilation.
    return "" if done < 2 else f"{span(seconds / done * (total - done))} left"


def span(seconds):
    """Format seconds as 1:02:03 or 2:03."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def _draws(stream, characters):
    try:
        characters.encode(getattr(stream, "encoding", None) or "ascii")
    except UnicodeEncodeError:
        return False
    return True
