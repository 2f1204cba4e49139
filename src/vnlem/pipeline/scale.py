"""Units of an image: its mean, the standard deviation its clean version seems to have, and its noise."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.pipeline import units_on_gpu
from vnlem.pipeline.warn import warn

_ROWS = 64  # converted together: temporaries stay in the cache


def standard_scale(
    planes: NDArray[np.float64], sigma: float, statistics: units_on_gpu.Statistics | None = None
) -> tuple[float, float]:
    """Mean of the image and the standard deviation its clean version seems to have.

    `statistics` are those of an image on a GPU, where they are known.
    The clean variance is var(noisy) - sigma^2; it is clamped at (sigma/10)^2, with a warning, where the
    noise leaves nothing of it.

    Examples
    --------
    >>> mean, scale = standard_scale(np.array([[[0.0, 10.0]]]), sigma=3.0)
    >>> mean, scale
    (5.0, 4.0)
    """
    if units_on_gpu.usable(planes):
        mean, noisy = units_on_gpu.moments(planes, statistics)
    else:
        mean, noisy = _moments(planes)
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


def _moments(planes: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and standard deviation, whatever the units."""
    peak = _largest(planes, 0.0) or 1.0
    mean = sum(float((part / peak).sum()) for part in _strips(planes)) / planes.size * peak
    spread = _largest(planes, mean)
    if spread == 0:
        return mean, 0.0
    squares = sum(float((((part - mean) / spread) ** 2).sum()) for part in _strips(planes))
    return mean, spread * math.sqrt(squares / planes.size)


def _largest(planes: NDArray[np.float64], shift: float) -> float:
    """The largest absolute difference from `shift`."""
    return max(float(abs(part - shift).max()) for part in _strips(planes))


def _strips(planes: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """Parts of an array; one of fewer than three dimensions, such as a signal, is a part by itself."""
    if planes.ndim < 3:
        yield planes
        return
    for plane in planes:
        for top in range(0, len(plane), _ROWS):
            yield plane[top : top + _ROWS]


class Scale(NamedTuple):
    """Mean, scale and noise of an image as a value: measured once, handed to every part of the image.

    Nothing below it looks at statistics of the array it was given.

    Examples
    --------
    >>> scale = Scale.measure(np.array([[[0.0, 10.0]]]), 3.0)
    >>> scale.sigma, scale.standardise(np.array([[[5.0, 9.0]]]))
    (0.75, array([[[0., 1.]]], dtype=float32))
    """

    mean: float
    scale: float  # standard deviation of the clean image
    noise: float  # standard deviation of the noise; its root mean square where it varies

    @classmethod
    def measure(
        cls, planes: NDArray[np.float64], noise: float, statistics: units_on_gpu.Statistics | None = None
    ) -> "Scale":
        """The units of an image (channels, height, width), or of a sample of a large one."""
        return cls(*standard_scale(planes, noise, statistics), noise)

    @property
    def sigma(self) -> float:
        """Noise in units of the clean standard deviation."""
        return self.noise / self.scale

    def standardise(self, planes: NDArray[np.float64]) -> NDArray[np.float32]:
        """Pixels in units of the clean standard deviation about the mean."""
        if units_on_gpu.usable(planes):
            result: NDArray[np.float32] = units_on_gpu.standardised(planes, self.mean, self.scale)
            return result
        pixels = np.empty(planes.shape, np.float32)
        for line, to in zip(planes, pixels, strict=True):
            for top in range(0, len(line), _ROWS):
                to[top : top + _ROWS] = (line[top : top + _ROWS] - self.mean) / self.scale
        return pixels

    def restore(
        self,
        planes: NDArray[np.float64],
        pixels: NDArray[np.float32],
        denoised: NDArray[np.float32],
        dtype: np.dtype[Any] | None = None,
    ) -> NDArray[Any]:
        """The denoised image in the units of the pixels.

        The change is added to `planes`, so that single precision rounds the noise and not the image. On a GPU
        an image that will be single precision becomes so at once; `dtype` says what it will be.
        """
        if units_on_gpu.usable(planes):
            kind = np.float32 if dtype == np.float32 else np.float64
            restored: NDArray[Any] = units_on_gpu.with_change(planes, pixels, denoised, self.scale, kind)
            return restored
        result = np.empty(planes.shape)
        for channel in range(len(planes)):
            for top in range(0, planes.shape[1], _ROWS):
                rows = slice(top, top + _ROWS)
                change = np.subtract(denoised[channel, rows], pixels[channel, rows], dtype=np.float64)
                result[channel, rows] = planes[channel, rows] + change * self.scale
        return result
