"""Progress of the command: a bar on a terminal, now and then a line elsewhere."""

import sys
from contextlib import contextmanager

from cafelearn import _progress
from cafelearn._compiling_note import NOTE, kernels_are_compiled


def note_compiling(session, n_rows=0):
    """Say why nothing happens for a while, if that is so."""
    if not kernels_are_compiled(n_rows):
        session.note(NOTE)


def warm_up(session, n_rows=0):
    """Compile or load the kernels that a fit of so many rows needs, before it is timed."""
    import numpy as np

    from cafelearn._mwkmeans import MinkowskiWeightedKMeans
    from cafelearn._solver.iteration import MANY_ROWS

    note_compiling(session, n_rows)
    for few in (40, MANY_ROWS + 1)[: 1 + (n_rows > MANY_ROWS)]:
        X = np.random.default_rng(0).normal(size=(few, 2))
        for p in (1.5, 2.0):
            MinkowskiWeightedKMeans(2, p=p, n_init=1, max_iter=2, random_state=0).fit(X)


@contextmanager
def watch(session, n_rows=0):
    """Show how many starts of the fits in the body, of so many rows, are done."""
    if session.quiet:
        yield
        return
    note_compiling(session, n_rows)
    with _progress.showing(_display(session)):
        yield


@contextmanager
def counting(session, words):
    """A function update(done, total), which shows how many of the `words` are done."""
    if session.quiet:
        yield lambda done, total: None
        return
    display = _display(session)
    try:
        yield lambda done, total: display(done, total, words)
    finally:
        display.close()


def _display(session):
    if session.is_terminal():
        return _progress.Bar(sys.stderr, keep=False)
    return _progress.Lines(session.note, keep=False)
