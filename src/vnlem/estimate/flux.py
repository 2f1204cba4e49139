"""Restore the flux that small bright objects lost in an estimate (`aim="flux"`).

A combination of patches shrinks what is rare: stars come out about 1 % too faint. That is far less than the
noise of one star, so it is measured on many: around each pixel the residual (noisy image minus estimate) is
fitted by the peaks of the estimate. If the estimate is right, the slope is zero.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.estimate.contrast import Smooth, gaussian
from vnlem.pipeline.device import namespace

Float = NDArray[np.float64]

# Pixels: a peak is what a Gaussian of the first width keeps, minus what one of the second keeps.
PEAK, SURROUNDINGS = 1.5, 6.0
WINDOW = 12.0  # pixels; the slope is that of the peaks under a Gaussian of this width
# Standard errors of its height in the noisy image, above which a pixel of a peak counts a little, and fully.
SURE = (6.0, 12.0)
PRIOR = 100.0  # squared standard errors in favour of a slope of zero
LARGEST = 0.05  # slope


def restore_flux(estimate: Any, noisy: Any, variance: Any, smooth: Smooth) -> Any:
    """An estimate with its bright peaks raised to the flux that they have in the noisy image.

    All (channels, H, W), the variance of the noise also (channels, 1, 1); arrays of NumPy, or of a device
    that `smooth` works on. Slopes are fitted per channel.

    >>> from vnlem.estimate.contrast import smooth
    >>> y, x = np.mgrid[:96, :96] % 24 - 12
    >>> stars = 30 * np.exp(-(x**2 + y**2) / 6.0)[None]
    >>> noisy = stars + np.random.default_rng(0).normal(0, 1, stars.shape)
    >>> found = restore_flux(0.98 * stars, noisy, np.ones((1, 1, 1)), smooth)
    >>> bool(abs(found.sum() / stars.sum() - 1) < 0.004)
    True
    """
    xp = namespace(estimate)
    wide = estimate.astype(np.float64)
    noise = xp.sqrt(variance.astype(np.float64))
    peaks = (smooth(wide, PEAK) - smooth(wide, SURROUNDINGS)) / noise
    error = float(np.sum(gaussian(PEAK) ** 2))
    low, high = SURE
    peaks *= ((peaks / error - low) / (high - low)).clip(0, 1)
    residual = (noisy - wide) / noise
    # Sums over the pixels in a Gaussian window.
    count = 4 * np.pi * WINDOW**2
    fitted, energy = (count * smooth(values, WINDOW) for values in (residual * peaks, peaks * peaks))
    slope = (fitted / (energy + PRIOR)).clip(0, LARGEST)
    return (wide + slope * peaks * noise).astype(np.float32)


def reach() -> int:
    """How many pixels around a pixel `restore_flux` uses.

    >>> reach()
    54
    """
    return sum(len(gaussian(width)) // 2 for width in (SURROUNDINGS, WINDOW))
