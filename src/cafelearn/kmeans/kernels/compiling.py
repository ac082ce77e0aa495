"""Numba compilation options, and a cache of compiled code that is never stale."""

import hashlib
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from pathlib import Path

import numba
from numba._dynfunc import make_function
from numba.core.caching import FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.options import DefaultOptions


class _InnerLibrary(JITCodeLibrary):
    """Code that is only linked into its callers and optimised together with them."""

    def add_llvm_module(self, ll_module):
        self._final_module.link_in(ll_module)

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalized = True


class _InnerCompiler(Compiler):
    """Compile a function that only compiled functions call.

    Numba optimises and assembles every function on its own and then once more inside each
    caller. Doing so only for the outermost function halves the compilation time. The classes
    overridden here are internal to Numba and undocumented.
    """

    def compile_extra(self, function):
        self.state.flags.no_compile = True  # no machine code for this function alone
        self.state.library = _InnerLibrary(self.state.targetctx.codegen(), function.__name__)
        result = super().compile_extra(function)
        # Compiled callers link the library that is registered under this key.
        module = result.fndesc.lookup_module()
        key = make_function(module, "", "", 0, result.environment, ())
        result.target_context.insert_user_function(key, result.fndesc, [result.library])
        return result._replace(entry_point=key)


class _SturdyCache(FunctionCache):
    """A cache that ignores damaged files and files that cannot be written."""

    def load_overload(self, sig, target_context):
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # unpickling a damaged file can raise any exception
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig, data):
        with suppress(OSError, EOFError, ValueError):
            super().save_overload(sig, data)


@cache
def _source_hash():
    """Return a hash of all source files of the solver."""
    package, found = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


def njit(**options):
    """Apply `numba.njit`, with a cache keyed by the sources of the whole solver.

    Numba's own key is the file of the function alone, although the compiled code includes
    functions from other files.
    """

    def compile_lazily(function):
        dispatcher = numba.njit(**options)(function)
        kept = getattr(dispatcher, "_cache", None)
        if type(kept) is FunctionCache:
            kept.__class__ = _SturdyCache
            kept._cache_file._source_stamp = _source_hash()
        if hasattr(dispatcher, "compile"):  # not if the compiler is disabled
            dispatcher.compile = _off_the_main_thread(dispatcher.compile)
        return dispatcher

    return compile_lazily


def _off_the_main_thread(compile_signature):
    """Let the main thread wait while another thread compiles.

    Python raises KeyboardInterrupt in the main thread only. Raised inside Numba, it could leave
    an LLVM module with two owners, and the process would crash. After an interrupt, the other
    thread finishes the compilation before the process exits.
    """

    def compile_here_or_there(signature):
        is_main = threading.current_thread() is threading.main_thread()
        # A caller that is being compiled on this thread holds the lock of the compiler.
        if not is_main or global_compiler_lock.is_locked():
            return compile_signature(signature)
        pool = ThreadPoolExecutor(1, thread_name_prefix="cafelearn-compile")
        try:
            compiled = pool.submit(compile_signature, signature)
            # An interrupt just before an unlimited wait would be handled only after the wait.
            while not compiled.done():
                wait([compiled], timeout=0.2)
            return compiled.result()
        finally:
            pool.shutdown(wait=False)

    return compile_here_or_there


def callable_from_python(inner):
    """Add `from_python`, a version for calls from Python, to a compiled function."""
    inner.from_python = njit(**ENTRY)(getattr(inner, "py_func", inner))
    return inner


def _can_cache():
    """Check whether Numba finds a writable cache directory; warn if not."""
    try:
        numba.njit(cache=True)(lambda: None)
    except RuntimeError:
        warnings.warn(
            "cafelearn cannot keep its compiled code, because neither its own directory nor "
            "the user's cache directory is writable. Every process will compile it again, "
            "which takes about 15 seconds. Set NUMBA_CACHE_DIR to a writable directory.",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    return True


CACHED = _can_cache()

# Arithmetic follows IEEE 754 as written, so that results are bitwise the same in every caller
# that a function is inlined into. error_model="numpy" drops checks of divisors, which would
# prevent vectorisation.
_COMMON = dict(nogil=True, cache=CACHED, error_model="numpy")
# Numba counts the references to every array that a function touches, with locked instructions,
# which took up to half the time of a pass. Functions that allocate no arrays are therefore
# compiled without reference counting; those that do (MAKES) cannot be compiled without it.
# The option `_nrt` is undocumented; if it is absent, everything works, but slower.
_CAN_BORROW = hasattr(DefaultOptions, "_nrt")
_BORROWS = dict(_COMMON, _nrt=False) if _CAN_BORROW else _COMMON
_MAKES = dict(_COMMON, _nrt=True) if _CAN_BORROW else _COMMON
# A wrapper for calls from Python takes a quarter of the compilation time, so only ENTRY and
# MAKES functions have one.
ENTRY = dict(_BORROWS, no_cfunc_wrapper=True)
MAKES = dict(_MAKES, no_cfunc_wrapper=True)
EXACT = dict(ENTRY, no_cpython_wrapper=True, cache=False, pipeline_class=_InnerCompiler)
# Vector loops may fuse multiplications and additions and ignore the sign of 0; other fast-math
# flags would break the rounding by magic numbers in kernels.power. Functions with such loops
# call `prefer_wide_vectors`, which also prevents inlining, so each is compiled in one way only.
VECTOR = dict(EXACT, fastmath={"contract", "nsz"})
# For sums and extrema of finite numbers the compiler may also choose the order of the terms.
SUMS = dict(EXACT, fastmath={"contract", "nsz", "reassoc", "nnan"})
# Functions that return part of an array are inlined: a caller that counts references would
# otherwise release a reference that was never taken.
INLINE = dict(EXACT, inline="always")
