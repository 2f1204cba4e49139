"""Units of an image: its mean, the standard deviation its clean version seems to have, and its noise."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.pipeline import units_on_gpu
from vnlem.pipeline.warn import warn
from vnlem.pipeline.workers import for_each

_ROWS = 64  # converted together: temporaries stay in the cache
_MANY = 2**19  # numbers; with fewer, one thread finishes before others have started


def standard_scale(
    planes: NDArray[np.float64],
    sigma: float,
    statistics: units_on_gpu.Statistics | None = None,
    workers: int = 1,
    warns: bool = True,
) -> tuple[float, float]:
    """Mean of the image and the standard deviation its clean version seems to have.

    `statistics` are those of an image on a GPU, if known; `workers` are threads.
    The clean variance is var(noisy) - sigma^2; it is clamped at (sigma/10)^2 if the noise leaves nothing of
    it, with a warning unless `warns` is False because the user gave no sigma.

    >>> mean, scale = standard_scale(np.array([[[0.0, 10.0]]]), sigma=3.0)
    >>> mean, scale
    (5.0, 4.0)
    """
    if units_on_gpu.usable(planes):
        mean, noisy = units_on_gpu.moments(planes, statistics)
    else:
        mean, noisy = _moments(planes, workers)
    if sigma == 0:
        return mean, noisy
    if sigma < 1e-9 * noisy:
        return mean, noisy  # to double precision the same, and no square of the ratio overflows
    signal_to_noise = (noisy / sigma) ** 2 - 1
    if signal_to_noise < 0.01 and warns:
        warn(
            f"sigma {sigma:g} accounts for all of the image's own standard deviation {noisy:g}: "
            "there may be nothing but noise; check the units of sigma"
        )
    return mean, sigma * math.sqrt(max(signal_to_noise, 0.01))


def _moments(planes: NDArray[np.float64], workers: int) -> tuple[float, float]:
    """Mean and standard deviation, in any units."""

    def largest(shift: float) -> float:
        return max(_of_strips(lambda strip: abs(planes[strip] - shift).max(), planes, workers))

    peak = largest(0.0) or 1.0
    mean = sum(_of_strips(lambda strip: (planes[strip] / peak).sum(), planes, workers)) / planes.size * peak
    spread = largest(mean)
    if spread == 0:
        return mean, 0.0
    squares = _of_strips(lambda strip: (((planes[strip] - mean) / spread) ** 2).sum(), planes, workers)
    return mean, spread * math.sqrt(sum(squares) / planes.size)


def _of_strips(number: Callable[[Any], Any], planes: NDArray[Any], workers: int) -> list[float]:
    """A number for every strip of an array, in their order."""
    strips = _strips(planes)
    found = [0.0] * len(strips)

    def look(index: int) -> None:
        found[index] = float(number(strips[index]))

    for_each(look, range(len(strips)), workers if planes.size >= _MANY else 1)
    return found


def _strips(planes: NDArray[Any]) -> list[Any]:
    """Indices of parts of an array; one of fewer than three dimensions, such as a signal, has one part."""
    if planes.ndim < 3:
        return [...]
    tops = range(0, planes.shape[1], _ROWS)
    return [(channel, slice(top, top + _ROWS)) for channel in range(len(planes)) for top in tops]


class Scale(NamedTuple):
    """Mean, scale and noise of an image as a value: measured once, passed to every part of the image.

    Code below this level never measures statistics of the array it gets.

    >>> scale = Scale.measure(np.array([[[0.0, 10.0]]]), 3.0)
    >>> scale.sigma, scale.standardise(np.array([[[5.0, 9.0]]]))
    (0.75, array([[[0., 1.]]], dtype=float32))
    """

    mean: float
    scale: float  # standard deviation of the clean image
    noise: float  # standard deviation of the noise; its root mean square if it varies

    @classmethod
    def measure(
        cls,
        planes: NDArray[np.float64],
        noise: float,
        statistics: units_on_gpu.Statistics | None = None,
        workers: int = 1,
        warns: bool = True,
    ) -> "Scale":
        """The units of an image (channels, height, width), or of a sample of a large one."""
        return cls(*standard_scale(planes, noise, statistics, workers, warns), noise)

    @property
    def sigma(self) -> float:
        """Noise in units of the clean standard deviation."""
        return self.noise / self.scale

    def peak(self, statistics: units_on_gpu.Statistics | None) -> float | None:
        """The largest absolute value of the standardised pixels of an image on a GPU, if it is known.

        >>> Scale(5.0, 2.0, 1.0).peak(units_on_gpu.Statistics(5.0, 2.5, 2.0, 7.0))
        1.5
        """
        if statistics is None or self.scale == 0:
            return None
        ends = np.array([statistics.lowest, statistics.highest])
        return float(np.abs(self.standardise(ends)).max())

    def standardise(self, planes: NDArray[np.float64], workers: int = 1) -> NDArray[np.float32]:
        """Pixels in units of the clean standard deviation about the mean."""
        if units_on_gpu.usable(planes):
            result: NDArray[np.float32] = units_on_gpu.standardised(planes, self.mean, self.scale)
            return result
        pixels = np.empty(planes.shape, np.float32)

        def convert(strip: Any) -> None:
            pixels[strip] = (planes[strip] - self.mean) / self.scale

        for_each(convert, _strips(planes), workers if planes.size >= _MANY else 1)
        return pixels

    def restore(
        self,
        planes: NDArray[np.float64],
        pixels: NDArray[np.float32],
        denoised: NDArray[np.float32],
        dtype: np.dtype[Any] | None = None,
        workers: int = 1,
    ) -> NDArray[Any]:
        """The denoised image in the units of the pixels.

        The change is added to `planes`: single precision then rounds the noise, not the image. On a GPU a
        result of single precision is converted at once; `dtype` is that of the result.
        """
        if units_on_gpu.usable(planes):
            kind = np.float32 if dtype == np.float32 else np.float64
            restored: NDArray[Any] = units_on_gpu.with_change(planes, pixels, denoised, self.scale, kind)
            return restored
        result = np.empty(planes.shape)

        def convert(strip: Any) -> None:
            change = np.subtract(denoised[strip], pixels[strip], dtype=np.float64)
            result[strip] = planes[strip] + change * self.scale

        for_each(convert, _strips(planes), workers if planes.size >= _MANY else 1)
        return result
