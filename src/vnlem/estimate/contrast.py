"""Local contrast: how much of it an estimate lost, and how to restore it (`aim="perception"`).

The noisy image contains the contrast of the clean one plus that of the noise, which is known. If the noisy
image has more contrast than the estimate and the noise together, structure was smoothed away.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.pipeline.device import namespace

Float = NDArray[np.float64]
# Planes (channels, H, W) under a Gaussian of some width; on a device another function than `smooth`.
Smooth = Callable[[Any, float], Any]

DETAIL = 4.0  # pixels; contrast is measured on what a Gaussian of this width removes
WINDOW = 12.0  # pixels; and averaged with one of this width
CHANCE = (1.0, 5.0)  # standard errors of chance below which a loss counts as none, and above which as certain
STEADY = 0.05  # of the noise; contrasts far below it are not amplified
LARGEST_GAIN = 2.5
_CUT_OFF = 3.0  # times its width at which a Gaussian ends


class Contrast(NamedTuple):
    """The contrast of an estimate, (1, H, W) each, averaged over its channels; of NumPy or of a device."""

    detail: Any  # (channels, H, W): the estimate minus its smooth part
    energy: Any  # of the detail
    lost: Any  # estimated energy of the clean image's detail that the estimate lacks
    noise: Any  # energy of the noise's detail

    @classmethod
    def of(cls, estimate: Any, noisy: Any, variance: Any, smooth: Smooth) -> "Contrast":
        """Measure it, all (channels, H, W); the variance of the noise also (channels, 1, 1).

        >>> noisy = np.random.default_rng(0).normal(0, 1, (1, 96, 96))
        >>> found = Contrast.of(np.zeros((1, 96, 96)), noisy, np.ones((1, 1, 1)), smooth)
        >>> bool(abs(found.lost.mean()) < 0.02 * found.noise.mean())
        True
        """
        xp = namespace(estimate)

        def mean(planes: Any) -> Any:
            """Averaged over channels and the window."""
            return smooth(planes.mean(axis=0, keepdims=True), WINDOW)

        detail, noisy_detail = (planes - smooth(planes, DETAIL) for planes in (estimate, noisy))
        energy = mean(detail**2)
        level = xp.broadcast_to(variance.astype(np.float64), (len(estimate), *variance.shape[1:]))
        if level.shape[2] > 1:
            noise = detail_gain() * mean(level)
        else:
            noise = xp.full(energy.shape, detail_gain() * level.mean())
        return cls(detail, energy, mean(noisy_detail**2) - noise - energy, noise)

    def sureness(self) -> Any:
        """From 0 (nothing was lost, or it may be chance) to 1 (structure was certainly lost)."""
        # Number of pixels in a Gaussian window, over all channels.
        count = 4 * np.pi * WINDOW**2 * len(self.detail)
        errors = self.lost / (self.noise * np.sqrt(2 / count))
        low, high = CHANCE
        return ((errors - low) / (high - low)).clip(0, 1)


def restore_contrast(smoother: Any, sharper: Any, noisy: Any, variance: Any, smooth: Smooth) -> Any:
    """Blend a smoother and a sharper estimate by where the smoother lost structure, and restore the contrast.

    The smoother one has fewer specks in flat areas, the sharper one keeps texture. All (channels, H, W), the
    variance of the noise also (channels, 1, 1); arrays of NumPy, or of a device that `smooth` works on.

    >>> noisy = np.random.default_rng(0).normal(0, 1, (1, 40, 40)).astype(np.float32)
    >>> nothing = np.zeros((1, 40, 40), np.float32)
    >>> float(np.abs(restore_contrast(nothing, nothing, noisy, np.ones((1, 1, 1), np.float32), smooth)).max())
    0.0
    """
    smooth_one, sharp_one, wide = (planes.astype(np.float64) for planes in (smoother, sharper, noisy))
    sureness = Contrast.of(smooth_one, wide, variance, smooth).sureness()
    blend = smooth_one + sureness * (sharp_one - smooth_one)
    return restore(blend, Contrast.of(blend, wide, variance, smooth)).astype(np.float32)


def restore(estimate: Any, contrast: Contrast) -> Any:
    """Amplify the detail of an estimate to the contrast of the clean image, where some was surely lost.

    >>> y, x = np.mgrid[:64, :64]
    >>> clean = np.sin(1.3 * x + y)[None]
    >>> noisy = clean + np.random.default_rng(0).normal(0, 0.3, clean.shape)
    >>> faded = 0.5 * clean
    >>> back = restore(faded, Contrast.of(faded, noisy, np.full((1, 1, 1), 0.09), smooth))
    >>> round(float(back.std() / clean.std()), 1)
    1.0
    """
    steady = STEADY * contrast.noise
    gain = ((contrast.energy + contrast.lost.clip(0) + steady) / (contrast.energy + steady)) ** 0.5
    return estimate + contrast.sureness() * (gain.clip(None, LARGEST_GAIN) - 1) * contrast.detail


def reach() -> int:
    """How many pixels around a pixel `restore_contrast` uses; it measures contrast of contrast.

    >>> reach()
    96
    """
    return 2 * sum(len(gaussian(width)) // 2 for width in (DETAIL, WINDOW))


def gaussian(width: float) -> Float:
    """The taps of a Gaussian.

    >>> gaussian(0.5).round(3)
    array([0.   , 0.106, 0.787, 0.106, 0.   ])
    """
    half = int(np.ceil(_CUT_OFF * width))
    taps = np.exp(-0.5 * (np.arange(-half, half + 1) / width) ** 2)
    return np.asarray(taps / taps.sum())


def smooth(planes: Float, width: float) -> Float:
    """Planes (channels, H, W) under a Gaussian; images are mirrored at their borders.

    Every pixel is summed in the same order, wherever it lies in the array.
    """
    taps = gaussian(width)
    from scipy import ndimage  # here, because few calls need it and it takes a quarter of a second to load

    rows = ndimage.correlate1d(planes, taps, axis=1, mode="reflect")
    return np.asarray(ndimage.correlate1d(rows, taps, axis=2, mode="reflect"))


def detail_gain() -> float:
    """Factor on the variance of white noise from an image to its detail."""
    taps = gaussian(DETAIL)
    squares = float(np.sum(taps**2))
    return 1 - 2 * float(taps[len(taps) // 2]) ** 2 + squares**2
