"""Show the progress of a command: as a bar on a terminal, else as occasional lines."""

import sys
from contextlib import contextmanager

from cafelearn import _progress
from cafelearn._compiling_note import note_compiling


def warm_up(session):
    """Compile or load the kernels before the time of the fit is measured."""
    import numpy as np

    from cafelearn._mwkmeans import MinkowskiWeightedKMeans

    note_compiling(session.note)
    X = np.random.default_rng(0).normal(size=(40, 2))
    for p in (1.5, 2.0):
        MinkowskiWeightedKMeans(2, p=p, n_init=1, max_iter=2, random_state=0).fit(X)


@contextmanager
def watch(session):
    """Show the progress of the fits in the body of the with statement."""
    if session.quiet:
        yield
        return
    note_compiling(session.note)
    with _progress.showing(_display(session)):
        yield


@contextmanager
def counting(session, words):
    """Yield a function update(done, total) that shows progress, described by `words`."""
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
