"""Headers of arrays in NumPy's format, checked before anything is allocated."""

import io
import math

import numpy as np

# NumPy itself refuses headers of more than 10,000 bytes.
LONGEST = 2**14
READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_header(file, size):
    """Return shape and type of the array that starts at the file position and has `size` bytes.

    Raise ValueError, with a short reason, if it is damaged, holds objects or has another size.
    """
    start = io.BytesIO(file.read(LONGEST))
    try:
        version = np.lib.format.read_magic(start)
    except ValueError:
        raise ValueError("it does not begin like an array of NumPy") from None
    if version not in READERS:
        raise ValueError(f"its format {version} is unknown")
    try:
        shape, _, dtype = READERS[version](start)
    except Exception:  # including those of Python's tokenizer and parser
        raise ValueError("its header is damaged") from None
    if dtype.hasobject:
        raise ValueError("it holds objects")
    sound = all(type(length) is int and length >= 0 for length in shape)
    if not sound or math.prod(shape) * dtype.itemsize + start.tell() != size:
        raise ValueError("its size does not match its header")
    return shape, dtype
