"""Scratch of kernels, and other views of their arrays: LLVM's instructions or NumPy's (see `jit.PLAIN`)."""

from typing import Any

import numpy as np

from vnlem.kernels.numba.jit import BOUNDSCHECK, PLAIN, allocating

arrays: Any
views: Any
if PLAIN or BOUNDSCHECK:  # only Numba's own views know where they end
    from vnlem.kernels.numba import loops as views
if PLAIN:
    arrays = views
else:
    from vnlem.kernels.numba import arrays

    if not BOUNDSCHECK:
        views = arrays

empty, zeros = arrays.empty, arrays.zeros
as_row, as_rows = arrays.as_row, arrays.as_rows
part, view_at, fill = views.part, views.view_at, views.fill
larger_of, smaller_of = arrays.larger_of, arrays.smaller_of
bits_as, bits_of, from_bits = arrays.bits_as, arrays.bits_of, arrays.from_bits


@allocating
def multiples(count, factor):
    """np.arange(count) * factor."""
    result = empty(count, np.int64)
    for i in range(count):
        result[i] = i * factor
    return result
