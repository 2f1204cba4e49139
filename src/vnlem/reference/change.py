"""How much of an estimate's change is kept, from its definition."""

import numpy as np
from scipy.ndimage import uniform_filter


def shrink_change(noisy, estimate, variance):
    """Keep all of a change half as large as the noise in the 17 x 17 pixels around, nothing at a tenth.

    noisy, estimate, variance : (channels, height, width)

    Examples
    --------
    >>> noisy = np.zeros((1, 30, 30))
    >>> shrink_change(noisy, noisy + 0.3, np.ones((1, 30, 30)))[0, 0, 0].round(6)
    np.float64(0.15)
    """
    energy = ((estimate - noisy) ** 2 / variance).mean(axis=0)
    size = np.sqrt(np.maximum(uniform_filter(energy, 17, mode="reflect"), 0))
    return noisy + np.clip((size - 0.1) / 0.4, 0, 1) * (estimate - noisy)
