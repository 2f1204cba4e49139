"""The median of a few numbers: NumPy's checks take longer than finding it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def median(values: NDArray[Any]) -> float:
    """``np.median(values)`` of numbers in one dimension, none of them NaN.

    >>> median(np.array([3.0, 1.0, 2.0])), median(np.array([4.0, 1.0, 2.0, 3.0]))
    (2.0, 2.5)
    """
    ordered = np.sort(values)
    return float(ordered[(values.size - 1) // 2] + ordered[values.size // 2]) / 2
