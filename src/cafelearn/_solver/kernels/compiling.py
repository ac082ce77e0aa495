"""Numba compilation options, ``@njit(**EXACT)`` and the like, and a cache of compiled code."""

import hashlib
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path

import numba
import numpy as np
from numba.core.caching import FunctionCache
from numba.core.options import DefaultOptions


class _SturdyCache(FunctionCache):
    """A cache that does without files that are damaged or cannot be written."""

    def load_overload(self, sig, target_context):
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # whatever unpickling a damaged file raises
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig, data):
        with suppress(OSError, EOFError, ValueError):
            super().save_overload(sig, data)


@cache
def _source_hash():
    """A hash of all sources that compiled functions may stand in."""
    package, found = Path(__file__).parents[1], hashlib.sha256()
    for directory in (package, package / "kernels", package / "distributed"):
        for path in sorted(directory.glob("*.py")):
            found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


def njit(**options):
    """`numba.njit` with a cache that is never stale and survives damage.

    Numba looks at the file of a function alone, but other files' functions are compiled into
    it; so the cache is for the sources of the whole package. What it cannot load is compiled
    again.
    """

    def compile_lazily(function):
        dispatcher = numba.njit(**options)(function)
        kept = getattr(dispatcher, "_cache", None)
        if type(kept) is FunctionCache:
            kept.__class__ = _SturdyCache
            kept._cache_file._source_stamp = _source_hash()
        return dispatcher

    return compile_lazily


def _can_cache():
    """Whether Numba finds a directory where it may keep compiled code."""
    try:
        numba.njit(cache=True)(lambda: None)
    except RuntimeError:
        warnings.warn(
            "cafelearn cannot keep its compiled code, because neither its own directory nor "
            "the user's cache directory is writable: every process compiles for about a "
            "minute. Set NUMBA_CACHE_DIR to a writable directory.",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    return True


CACHED = _can_cache()

# Arithmetic is IEEE's as written, so that bits do not depend on the callers that a function is
# inlined into. error_model="numpy" drops the division checks that block vectorisation.
_COMMON = dict(nogil=True, cache=CACHED, error_model="numpy")
# Numba counts the references to every array of every tuple that a function touches, with locked
# instructions; that took up to half of a pass. What only borrows arrays needs no count, and
# a function that makes or returns one (MAKES) is refused by the compiler if it has none.
_CAN_BORROW = hasattr(DefaultOptions, "_nrt")
EXACT = dict(_COMMON, _nrt=False) if _CAN_BORROW else _COMMON
MAKES = dict(_COMMON, _nrt=True) if _CAN_BORROW else _COMMON
# Vector loops may fuse multiplications and additions; what else is fast would destroy the
# rounding by magic numbers of kernels.power. Such functions call `prefer_wide_vectors`, which
# keeps them out of their callers, so each is compiled in one way only.
VECTOR = dict(EXACT, fastmath={"contract", "nsz"})
# The same for plain sums and extrema of finite numbers, in an order that the compiler chooses.
SUMS = dict(EXACT, fastmath={"contract", "nsz", "reassoc", "nnan"})
# For outer functions with one caller each, and for small ones that return parts of what they
# are given: they are compiled as a part of their caller, not for themselves before. A function
# is optimised again inside each caller, so every level of calls costs as much as the first.
PART = dict(MAKES, inline="always")
# A function is compiled again for every literal number it is called with, and so are those it
# calls; these are no literals.
ZERO, ONE = np.int64(0), np.int64(1)
