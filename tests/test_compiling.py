"""Interrupts while kernels are compiled."""

import signal
import threading
import time

import numba
import pytest
from numba.extending import overload

from cafelearn.kmeans.kernels.compiling import ENTRY, njit

STARTED, MAY_END, THREADS = threading.Event(), threading.Event(), set()


def double(number):
    """Return twice a number; `compile_double` lasts until the test sets MAY_END."""
    return 2 * number


@overload(double)
def compile_double(number):
    THREADS.add(threading.current_thread())
    STARTED.set()
    MAY_END.wait(30)
    return lambda number: 2 * number


@njit(**(ENTRY | {"cache": False}))
def quadruple(number):
    return double(double(number))


@njit(**(ENTRY | {"cache": False}))
def add_one(number):
    return number + 1


def test_a_function_that_the_user_compiles_may_call_a_kernel():
    @numba.njit
    def add_two(number):
        return add_one(add_one(number))

    assert add_two(3) == 5


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs POSIX signals")
def test_an_interrupt_ends_the_call_but_not_the_compilation():
    main = threading.main_thread().ident

    def interrupt():
        STARTED.wait(30)
        signal.pthread_kill(main, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    # Raised in the thread that compiles, it could leave LLVM's memory corrupt.
    with pytest.raises(KeyboardInterrupt):
        quadruple(1)
    begin = time.monotonic()
    threading.Timer(0.2, MAY_END.set).start()
    assert quadruple(3) == 12
    assert time.monotonic() - begin >= 0.2  # the call waits for the same compilation
    assert len(THREADS) == len(quadruple.signatures) == 1
    assert threading.main_thread() not in THREADS
