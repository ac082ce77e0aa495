"""Progress of the command: a bar on a terminal, occasional lines elsewhere."""

import sys
from contextlib import contextmanager

from cafelearn import _progress
from cafelearn._compiling_note import NOTE, kernels_are_compiled


def note_compiling(session, n_rows=0):
    """Announce compilation if it is needed."""
    if not kernels_are_compiled(n_rows):
        session.note(NOTE)


def warm_up(session, n_rows=0):
    """Compile or load the kernels for a fit of `n_rows` before it is timed."""
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
    """Show the progress of the starts of the fits in the body, of `n_rows`."""
    if session.quiet:
        yield
        return
    note_compiling(session, n_rows)
    with _progress.showing(_display(session)):
        yield


@contextmanager
def counting(session, words):
    """Yield a function update(done, total) that shows the progress of the `words`."""
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
