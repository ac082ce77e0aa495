"""Progress: a bar on a terminal, now and then a line elsewhere."""

import time
from contextlib import contextmanager

from cafelearn._compiling_note import NOTE, kernels_are_compiled

SECONDS = 10  # between two lines


def note_compiling(session, n_rows=0):
    """Say why nothing happens for a while, if that is so."""
    if not kernels_are_compiled(n_rows):
        session.note(NOTE)


def warm_up(session, n_rows=0):
    """Compile or load the kernels that a fit of so many rows needs, before it is timed."""
    import numpy as np

    from cafelearn.machine import MANY_ROWS
    from cafelearn.mwkmeans import MinkowskiWeightedKMeans

    note_compiling(session, n_rows)
    for few in (40, MANY_ROWS + 1)[: 1 + (n_rows > MANY_ROWS)]:
        X = np.random.default_rng(0).normal(size=(few, 2))
        for p in (1.5, 2.0):
            MinkowskiWeightedKMeans(2, p=p, n_init=1, max_iter=2, random_state=0).fit(X)


@contextmanager
def watch(session, n_rows=0, words="starts"):
    """Show how many starts of the fits in the body, of so many rows, are done."""
    from cafelearn.starts import PROGRESS

    if session.quiet:
        yield
        return
    note_compiling(session, n_rows)
    with counting(session, words) as update:
        token = PROGRESS.set(update)
        try:
            yield
        finally:
            PROGRESS.reset(token)


@contextmanager
def counting(session, words):
    """A function update(done, total), which shows how many of the `words` are done."""
    if session.quiet:
        yield lambda done, total: None
        return
    with _bar(words) if session.is_terminal() else _lines(session, words) as update:
        yield update


@contextmanager
def _bar(words):
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(words, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def _lines(session, words):
    last = time.monotonic()

    def update(done, total):
        nonlocal last
        if time.monotonic() - last >= SECONDS:
            last = time.monotonic()
            session.note(f"{words}: {done} of {total}")

    yield update
