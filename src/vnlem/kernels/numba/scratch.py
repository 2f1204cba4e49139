"""Scratch of kernels that begins at a cache line: a vector that lies across two lines costs twice as much."""

import numpy as np

from vnlem.kernels.numba.jit import allocating

LINE = 64  # bytes


@allocating
def empty_lines(count):
    """So many float32 numbers, not set, from the beginning of a cache line on."""
    numbers = np.empty(count + LINE // 4, np.float32)
    skipped = -np.int64(numbers.ctypes.data) // 4 % (LINE // 4)
    return numbers[skipped : skipped + count]
