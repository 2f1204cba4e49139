"""Weights of neighbours: exp(-squared distance / bandwidth^2)."""

import numpy as np


def inverse_square(bandwidth: float, factor: float = 1.0) -> np.float32:
    """factor / bandwidth^2 for the kernels' weights exp(-squared distance * this), finite in float32.

    The weight of a pixel's own patch is exp(-0 * this): an infinite factor would make it NaN.

    >>> inverse_square(0.5), inverse_square(1e-200)
    (np.float32(4.0), np.float32(1e+30))
    """
    return np.float32(factor / min(max(bandwidth, 1e-15), 1e15) ** 2)
