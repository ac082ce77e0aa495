"""Log a message before a fit compiles kernels."""

import logging
from pathlib import Path

LOGGER = logging.getLogger("cafelearn")
NOTE = "Compiling the kernels, once; this takes about a minute."
_noted: set[str] = set()


def kernels_are_compiled(n_rows=0):
    """Check whether the compiled kernels are in the cache."""
    from cafelearn._solver.descent import _descend
    from cafelearn._solver.iteration import MANY_ROWS

    if _descend.stats.cache_path is None:  # no writable cache
        return False
    cache = Path(_descend.stats.cache_path)
    needed = ("_descend", "_descend_swiftly") if n_rows > MANY_ROWS else ("_descend",)
    return all(any(cache.glob(f"descent.{name}-*.nbi")) for name in needed)


def note_compiling(n_rows=0, tell=LOGGER.warning):
    """Announce compilation if it is needed, once per process."""
    if not _noted and not kernels_are_compiled(n_rows):
        _noted.add(NOTE)
        tell(NOTE)
