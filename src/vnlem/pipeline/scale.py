"""Units of an image: its mean, and the standard deviation its clean version seems to have."""

import math

import numpy as np
from numpy.typing import NDArray

from vnlem.pipeline.warn import warn


def standard_scale(planes: NDArray[np.float64], sigma: float) -> tuple[float, float]:
    """Mean of the image and the standard deviation its clean version seems to have.

    The clean variance is var(noisy) - sigma^2; it is clamped at (sigma/10)^2, with a warning, where the
    noise leaves nothing of it.

    Examples
    --------
    >>> mean, scale = standard_scale(np.array([[[0.0, 10.0]]]), sigma=3.0)
    >>> mean, scale
    (5.0, 4.0)
    """
    peak = float(abs(planes).max()) or 1.0
    mean = float((planes / peak).mean()) * peak
    spread = float(abs(planes - mean).max())
    noisy = spread * math.sqrt(float((((planes - mean) / spread) ** 2).mean())) if spread > 0 else 0.0
    if sigma == 0:
        return mean, noisy
    if sigma < 1e-9 * noisy:
        return mean, noisy  # to double precision the same, and no square of the ratio overflows
    signal_to_noise = (noisy / sigma) ** 2 - 1
    if signal_to_noise < 0.01:
        warn(
            f"sigma {sigma:g} accounts for all of the image's own standard deviation {noisy:g}: "
            "there may be nothing but noise; check the units of sigma"
        )
    return mean, sigma * math.sqrt(max(signal_to_noise, 0.01))
