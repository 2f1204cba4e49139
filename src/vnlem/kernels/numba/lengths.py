"""How many numbers are worked on together, by vector instructions and by the loops that stand in for them."""

from typing import NamedTuple

import numpy as np

LANES = 8  # numbers in a vector of `simd`
BLOCK = 16  # numbers that are compared at once
COLUMNS = 16  # of a panel
HALF = 8  # columns of a narrow one
FEW_ROWS = 4  # of a panel, where a vector of the processor holds at most 8 numbers


class Left(NamedTuple):
    """The left factor of a product: where the rows of a panel begin in it, and the steps to take."""

    data: np.ndarray
    at: int
    step: int  # to the next row
    along: int  # to the next term of the sum
