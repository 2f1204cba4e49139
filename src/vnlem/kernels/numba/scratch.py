"""Scratch of kernels, and other views of their arrays: LLVM's instructions or NumPy's (see `jit.PLAIN`)."""

from typing import Any

import numpy as np

from vnlem.kernels.numba.jit import PLAIN, allocating

arrays: Any
if PLAIN:
    from vnlem.kernels.numba import loops as arrays
else:
    from vnlem.kernels.numba import arrays

empty, zeros = arrays.empty, arrays.zeros
as_row, as_rows = arrays.as_row, arrays.as_rows
bits_as, bits_of, from_bits = arrays.bits_as, arrays.bits_of, arrays.from_bits


@allocating
def multiples(count, factor):
    """np.arange(count) * factor."""
    result = empty(count, np.int64)
    for i in range(count):
        result[i] = i * factor
    return result
