"""What the blocks of a plane show about its noise: the evidence for every estimate."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cpu.pixels import sum_powers
from vnlem.noise.levels import Blocks, Differences, Levels, by_brightness, cut, white_level
from vnlem.noise.median import median
from vnlem.noise.model import NoiseModel, each
from vnlem.pipeline.image import Planes, constant
from vnlem.pipeline.workers import Pool

Float = NDArray[np.float64]

SMALLEST_FOR_A_CURVE = 32
# At every brightness correlated noise has this much more power at middle frequencies than at high ones.
LEAST_TILT = 1.5
CHANCE = 0.1  # by which two estimates of one variance may differ
SAMPLED = 101  # every 101st pixel shows the mean of all roughly
# If every brightness has texture, the level at high frequencies is an upper bound: this share of its standard
# deviation is used, the first if almost no class looks like noise, else the second. Patterns are tilted more,
# and leave the high frequencies to the noise.
TAKEN_OF_TEXTURED, LEAST_LIKE_NOISE, MOST_TILTED_TEXTURE = (0.85, 0.95), 0.1, 4.0
MOST_EMPTY = 0.5  # of the pixels without a count: above this, sums of four pixels show more


class Seen(NamedTuple):
    """What the blocks of a plane show."""

    levels: Levels  # by brightness
    white: float  # variance of white noise
    bound: float  # what the flattest blocks show at high frequencies: no less than the noise
    contrast: float  # standard deviation of the plane
    dark: float | None  # a brightness that has no noise
    blocks: Blocks | None

    @classmethod
    def of(
        cls, plane: Float, pool: Pool, differences: Differences | None = None, limits: Float | None = None
    ) -> "Seen | None":
        """None if no block can hold noise. limits: the smallest and the largest pixel, if known."""
        blocks = cut(plane, differences, pool, limits)
        if blocks is None:
            return cls._of_few_counts(plane, pool)
        levels = by_brightness(blocks)
        bound, contrast = float(np.min(levels.high)), _deviation(plane)
        return cls(levels, white_level(blocks), bound, contrast, blocks.dark, blocks)

    def or_less(self, differences: Differences, pool: Pool) -> "Seen":
        """What differences of pages show, in which structure cancels; this one if they do not show less."""
        blocks = cut(differences.noise, differences, pool)
        if blocks is None:
            return self
        white = white_level(blocks)
        if white > self.white * (1 + CHANCE):
            return self
        levels = by_brightness(blocks)
        return self._replace(levels=levels, white=white, bound=float(np.min(levels.high)))

    @classmethod
    def _of_few_counts(cls, plane: Float, pool: Pool) -> "Seen | None":
        """What sums of four pixels show, if single pixels have almost no counts."""
        low = float(plane.min())
        if np.mean(plane == low) < MOST_EMPTY or min(plane.shape) < 2 * SMALLEST_FOR_A_CURVE:
            return None
        height, width = (2 * (size // 2) for size in plane.shape)
        four = plane[:height, :width].reshape(height // 2, 2, width // 2, 2).mean(axis=(1, 3))
        seen = cls.of(four, pool)
        if seen is None:
            return None
        # The mean of four pixels has a quarter of their variance. Only counts have a mode of zero.
        levels = replace(seen.levels, high=4 * seen.levels.high, middle=4 * seen.levels.middle)
        return cls(levels, 0.0, 4 * seen.bound, float(plane.std()), low, None)

    def share_of_possible(self, variance: Float | float, limits: Float) -> float:
        """A variance of noise over the largest one of values between two limits, by Bhatia and Davis.

        Values of noise are mostly near their mean; those of text and gratings are mostly near the limits.
        """
        level, (low, high) = self.levels.brightness, limits
        return median(variance / np.maximum((high - level) * (level - low), 1e-300))

    def level(self, caution: str) -> float:
        """Variance of white noise."""
        if caution == "strong":
            return max(self.bound, self.white)
        if caution == "safe":
            return min(self.white, float(np.min(self.levels.least())))
        like_noise = self.share >= LEAST_LIKE_NOISE
        # With text on clipped paper hardly any block is flat, and these may all be in one class.
        level = self.white if like_noise else min(self.white, self.bound)
        textured = self.is_tilted and self.tilt < MOST_TILTED_TEXTURE
        return level * TAKEN_OF_TEXTURED[like_noise] ** 2 if textured else level

    @property
    def is_tilted(self) -> bool:
        """Whether there is more power at middle frequencies than at high ones, at every brightness."""
        return self.least_tilt > LEAST_TILT

    @property
    def least_tilt(self) -> float:
        """The ratio of these powers that nearly all classes exceed."""
        return float(np.quantile(self._tilts, 0.05))

    @property
    def tilt(self) -> float:
        """The usual ratio of these powers."""
        return median(self._tilts)

    @property
    def _tilts(self) -> Float:
        return self.levels.middle / np.maximum(self.levels.high, 1e-300)

    @property
    def share(self) -> float:
        """Of the classes of brightness that look like white noise."""
        return float(np.mean(self.levels.like_noise()))


def _deviation(plane: Float) -> float:
    """Standard deviation of the pixels."""
    flat, sums = np.ascontiguousarray(plane).reshape(-1), np.empty(2)
    sum_powers(flat, float(flat[::SAMPLED].mean()), sums)  # about their mean, roughly
    first, second = sums / flat.size
    return float(np.sqrt(max(second - first**2, 0.0)))


def of_varied(
    estimate: Callable[..., NoiseModel],
    planes: Planes,
    differences: Sequence[Differences] | None,
    *options: Any,
) -> NoiseModel:
    """An estimate from the channels that are not constant, as a model of all; the others show no noise."""
    apart, count = constant(planes.data), len(planes.data)
    if not apart:
        return estimate(planes, differences, *options)
    kept = [channel for channel in range(count) if channel not in apart]
    own = differences and [differences[channel] for channel in kept]
    found = estimate(replace(planes, data=planes.data[kept], statistics=None), own, *options)
    curves: list[Any] = [found.curves[0]] * count
    for channel, curve in zip(kept, each(found.curves, len(kept)), strict=True):
        curves[channel] = curve
    # Components of these channels are not those of all.
    strength = float(np.mean(found.strengths))
    same = len(found.curves) == 1
    return replace(
        found,
        curves=found.curves if same else tuple(curves),
        spectra=found.spectra[:1],
        strengths=(strength,),
    )
