"""Read and check the headers of NumPy files, before any memory is allocated for the arrays."""

import io
import math

import numpy as np

# Number of bytes read to find the header; NumPy refuses headers of more than 10,000 bytes.
LONGEST = 2**14
READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_header(file, size):
    """Return shape and dtype of the array at the current position of a file.

    `size` is the number of bytes of the array and its header. Raise a ValueError with a short
    reason if the array is damaged, contains objects or is not of this size.
    """
    start = io.BytesIO(file.read(LONGEST))
    try:
        version = np.lib.format.read_magic(start)
    except ValueError:
        raise ValueError("it does not begin like a NumPy array") from None
    if version not in READERS:
        raise ValueError(f"its format version {version} is not supported")
    try:
        shape, _, dtype = READERS[version](start)
    except Exception:  # Python's tokenizer and parser may raise exceptions of any type
        raise ValueError("its header is damaged") from None
    if dtype.hasobject:
        raise ValueError("it contains objects")
    sound = all(type(length) is int and length >= 0 for length in shape)
    if not sound or math.prod(shape) * dtype.itemsize + start.tell() != size:
        raise ValueError("its size does not match its header")
    return shape, dtype
