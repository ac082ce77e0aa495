"""Log a message before a fit compiles the kernels."""

import logging
from pathlib import Path

LOGGER = logging.getLogger("cafelearn")
NOTE = "Compiling the kernels; this is done once and takes about 15 seconds."
_noted: set[str] = set()


def kernels_are_compiled():
    """Check whether compiled kernels are in the cache or compilation is disabled."""
    from cafelearn.kmeans.descent import run_passes

    if not hasattr(run_passes, "stats"):
        return True
    if run_passes.stats.cache_path is None:  # there is no writable cache directory
        return False
    return any(Path(run_passes.stats.cache_path).glob("descent.run_passes-*.nbi"))


def note_compiling(tell=LOGGER.warning):
    """Log, once per process, that the kernels are about to be compiled."""
    if not _noted and not kernels_are_compiled():
        _noted.add(NOTE)
        tell(NOTE)
