"""Show the progress of a command: as a bar on a terminal, else as occasional lines."""

import sys
from contextlib import contextmanager

from cafelearn.base import progress as _progress
from cafelearn.kmeans.compiling_note import note_compiling


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
