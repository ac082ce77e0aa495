"""What Numba is told of compiled functions: ``@njit(**EXACT)`` and the like."""

import numpy as np
from numba.core.options import DefaultOptions

# Magic-number rounding (kernels.power) is destroyed by re-association, so loops allow
# fused multiply-adds and nothing else. error_model="numpy" drops the division checks
# that block vectorisation.
_COMMON = dict(nogil=True, cache=True, error_model="numpy", fastmath={"contract", "nsz"})
# Numba counts the references to every array of every tuple that a function touches, with locked
# instructions; that took up to half of a pass. What only borrows arrays needs no count, and
# a function that makes or returns one (MAKES) is refused by the compiler if it has none.
_CAN_BORROW = hasattr(DefaultOptions, "_nrt")
EXACT = dict(_COMMON, _nrt=False) if _CAN_BORROW else _COMMON
MAKES = dict(_COMMON, _nrt=True) if _CAN_BORROW else _COMMON
# For plain sums and extrema of finite numbers, whose order is fixed by the machine code.
SUMS = dict(EXACT, fastmath={"contract", "nsz", "reassoc", "nnan"})
# For outer functions with one caller each, and for small ones that return parts of what they
# are given: they are compiled as a part of their caller, not for themselves before. A function
# is optimised again inside each caller, so every level of calls costs as much as the first.
PART = dict(MAKES, inline="always")
# A function is compiled again for every literal number it is called with, and so are those it
# calls; these are no literals.
ZERO, ONE = np.int64(0), np.int64(1)
