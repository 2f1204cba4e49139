"""Weights of the pixels of a patch where patches overlap."""

from functools import cache

import numpy as np
from numpy.typing import NDArray


@cache
def patch_window(patch_size: int, beta: float) -> NDArray[np.float32]:
    """The weights of a patch's rows, and of its columns: a Kaiser window.

    >>> patch_window(3, 4.0).round(3).tolist()
    [0.08799999952316284, 1.0, 0.08799999952316284]
    """
    taps = np.kaiser(patch_size, beta).astype(np.float32)
    taps.flags.writeable = False
    return taps
