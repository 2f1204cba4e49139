"""Impulses: hot, dead and stuck pixels, salt and pepper, cosmic rays.

An impulse stands out from its surroundings: it is outside the range of its 24 neighbours by more than noise
explains and by a share of that range, and the adjacent pixels do not follow it, as they would next to a star
or a bead, which have a point spread. Photographs contain such pixels too, in eyes, on water and in texture.
So "auto" acts only if impulses are obvious: many of them, spread evenly, as many in flat areas as in textured
ones, in a picture that shows more than points.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cpu.impulses import OTHERS, find_extremes
from vnlem.kernels.cpu.pixels import take_ends
from vnlem.noise.model import NoiseModel
from vnlem.pipeline import checks
from vnlem.pipeline.workers import pool_for_pixels

Float = NDArray[np.float64]
Mask = NDArray[np.bool_]

REACH = 2  # pixels around one that decide whether it is an impulse
LEAST_DEVIATION = 2.0  # times the noise from the mean around it, for a pixel to be examined
LEAST_NOISE = 1e-3  # of the contrast: used if there is none
OUTER = 0.005  # of the pixels are outside the usual range at either end
SAMPLED = 2**13  # pixels that show roughly where that is
BAND = 256  # rows that are searched by one thread
PART = 2**14  # candidates that are decided together


class Limits(NamedTuple):
    """What an impulse must exceed."""

    noise: float  # standard deviations beyond the range of the neighbours
    spread: float  # of that range, beyond it
    contrast: float  # of the contrast of the image, beyond it
    wings: float  # the four nearest pixels may have this share of the peak
    wing_noise: float  # plus this many standard deviations of the noise


# Chosen on 86 photographs of the categories, with and without added noise. The first limits flag up to 23
# pixels of 100,000 there, few of them in flat areas; with 0.05 % hot pixels 23 to 62, spread evenly.
PLAIN = Limits(2.0, 1.0, 0.15, 0.1, 1.0)
USUAL = Limits(1.5, 0.5, 0.06, 0.15, 2.0)  # if there are many
FEWEST, LEAST_RATE, MOST_RATE = 8, 20e-5, 0.05
SMALLEST = 64  # least side in pixels, for impulses="auto"
LEAST_FLAT, LEAST_SPREAD = 0.28, 0.7  # shares: in the flatter half, and of the blocks that chance would hit
BLOCK = 16
# Squared steps between the counts of neighbouring rows, or columns, over the counts: 2 in the mean if chance
# put the impulses there, and as many as 2.7 were seen in pictures of 100 impulses. The dots of small letters
# lie on the same rows of every line: 3 to 28.
MOST_LINED, LINED_BY_CHANCE = 2.6, 2.0
BROKEN_LINES = 3  # rows, or columns, that may be full of them
# Share of the points that must be impulses: stars have a point spread, letters more than one pixel.
LEAST_ALONE, LEAST_ALONE_OF_MANY = 0.9, 0.93
# Pixels beyond the range of their neighbours by these shares of it lie between noise and impulses: at most
# 0.35 % of normal noise and of photographs, 0.37 to 1.2 % of speckle, 0.7 to 1 % with few photons.
BETWEEN, USUAL_BETWEEN, MOST_BETWEEN = (0.9, 1.3), 3e-3, 5e-3
MOST_LOOKED_AT = 40_000
ANY_WINGS = 1e9
# Steps between means of 4x4 pixels in a picture of more than points, times the noise and as a share of the
# contrast: photographs have 0.059 and more of that.
LEAST_STRUCTURE, LEAST_STRUCTURE_OF_CONTRAST = 0.5, 0.045
SAME_VALUE = 0.2  # of the plain impulses have one value: that of salt, of pepper or of a stuck pixel
LEAST_STUCK = 2.0  # standard deviations from the median around it, for a pixel of that value


@dataclass(frozen=True)
class ImpulseRule:
    """Which pixels are impulses. It holds plain values, and every decision uses REACH pixels around."""

    noise: NoiseModel
    contrast: float
    limits: Limits = USUAL
    stuck: tuple[float, ...] = ()

    def find(self, planes: Float, levels: Float | None = None, workers: int | None = 1) -> Mask:
        """The impulses of planes (C, H, W), or of a part of an image.

        levels: standard deviation of the noise of each pixel, if a map is known; broadcast to the planes.
        workers: number of threads.

        >>> image = np.full((1, 16, 16), 50.0)
        >>> image[0, 5, 7] = 200
        >>> int(ImpulseRule(NoiseModel.white(2.0), 100.0).find(image).sum())
        1
        """
        found = np.zeros(planes.shape, bool)
        known = None if levels is None else np.broadcast_to(levels, planes.shape)
        for number, plane in enumerate(planes):
            least = self._least(number, plane) if known is None else float(known[number].min())
            least = max(least, LEAST_NOISE * self.contrast)
            places = self._candidates(np.ascontiguousarray(plane), least, workers)
            for first in range(0, places.size, PART):
                at = np.divmod(places[first : first + PART], plane.shape[1])
                own = None if known is None else known[number][at]
                found[number][at] = self._decide(_Neighbourhood.at(plane, *at), number, own)
        return found

    def _candidates(self, plane: Float, least: float, workers: int | None) -> NDArray[np.int64]:
        """The pixels that may be impulses, as indices of the flattened plane."""
        limits = self.limits
        excess, noise = limits.contrast * self.contrast, limits.noise * least

        def look(top: int) -> NDArray[np.int64]:
            bottom = min(top + BAND, len(plane))
            found = np.empty((bottom - top) * plane.shape[1], np.int64)
            deviation = LEAST_DEVIATION * least
            count = find_extremes(plane, top, bottom, deviation, excess, noise, limits.spread, found)
            return found[:count]

        with pool_for_pixels(plane.size, workers) as pool:
            places = np.concatenate(pool.results(look, range(0, len(plane), BAND)))
        if not self.stuck:
            return places
        return np.union1d(places, np.flatnonzero(np.isin(plane, self.stuck)))

    def _least(self, channel: int, plane: Float) -> float:
        """The smallest noise of any pixel."""
        levels = [curve.levels for curve in self.noise.curves]
        if self.noise.varies:
            levels.append((float(plane.min()),))
        least = min(float(self.noise.variance(own, channel).min()) for own in levels)
        return float(np.sqrt(max(least, 0.0)))

    def _decide(self, seen: "_Neighbourhood", channel: int, levels: Float | None) -> Mask:
        limits = self.limits
        sigma = levels
        if sigma is None:
            sigma = np.sqrt(np.maximum(self.noise.variance(seen.median, channel), 0.0))
        sigma = np.maximum(sigma, LEAST_NOISE * self.contrast)
        beyond = np.maximum(
            limits.noise * sigma + limits.spread * (seen.high - seen.low), limits.contrast * self.contrast
        )
        excess = np.maximum(seen.value - seen.high, seen.low - seen.value)
        peak = np.abs(seen.value - seen.around)
        wings = (seen.nearest - seen.around) * np.sign(seen.value - seen.around)
        found = (excess > beyond) & (wings < limits.wings * peak + limits.wing_noise * sigma)
        if self.stuck:
            found |= np.isin(seen.value, self.stuck) & (
                np.abs(seen.value - seen.median)
                > LEAST_STUCK * sigma + limits.spread * (seen.high - seen.low) / 2
            )
        return np.asarray(found)

    def describe(self) -> dict[str, Any]:
        """Everything the decisions depend on, as plain values."""
        return {
            "noise": self.noise.to_dict(),
            "contrast": self.contrast,
            "limits": list(self.limits),
            "stuck": list(self.stuck),
        }


class _Neighbourhood(NamedTuple):
    """The surroundings of some pixels of a plane."""

    value: Float
    high: Float  # of the 24 neighbours without the OTHERS largest
    low: Float
    median: Float
    around: Float  # median of the outer 16
    nearest: Float  # mean of the middle two of the nearest four

    @classmethod
    def at(cls, plane: Float, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> "_Neighbourhood":
        """What is around some pixels."""
        away = range(-REACH, REACH + 1)
        steps = [(down, right) for down in away for right in away if (down, right) != (0, 0)]
        below, beside = (
            {step: _mirrored(at + step, size) for step in away}
            for at, size in zip((rows, columns), plane.shape, strict=True)
        )
        others = np.stack([plane[below[down], beside[right]] for down, right in steps])
        near = np.array([abs(down) + abs(right) == 1 for down, right in steps])
        outer = np.array([max(abs(down), abs(right)) == REACH for down, right in steps])
        ranked = np.sort(others, axis=0)
        return cls(
            plane[rows, columns],
            ranked[-1 - OTHERS],
            ranked[OTHERS],
            (ranked[11] + ranked[12]) / 2,
            np.sort(others[outer], axis=0)[7:9].mean(axis=0),
            np.sort(others[near], axis=0)[1:3].mean(axis=0),
        )


def _mirrored(index: NDArray[np.intp], size: int) -> NDArray[np.intp]:
    """Indices beyond an edge, mirrored about the outermost pixel."""
    if size == 1:
        return np.zeros_like(index)
    period = 2 * (size - 1)
    index = np.abs(index) % period
    return np.where(index >= size, period - index, index)


def check_impulses(impulses: Any) -> str | bool:
    """The option, checked, or a clear error.

    >>> check_impulses("auto")
    'auto'
    """
    if isinstance(impulses, bool | np.bool_):
        return bool(impulses)
    if not isinstance(impulses, str):
        raise TypeError(f"impulses must be 'auto', True or False, got {checks.shown(impulses)}")
    if impulses != "auto":
        raise ValueError(f"impulses must be 'auto', True or False, got {checks.shown(impulses)}")
    return impulses


def find_rule(
    planes: Float,
    noise: NoiseModel,
    asked: str | bool,
    missing: Mask | None = None,
    levels: Float | None = None,
    workers: int | None = 1,
) -> ImpulseRule | None:
    """How impulses of an image are found; None if there are none, or no obvious ones.

    planes: (C, H, W), the image or a sample of a large one; missing pixels are filled.
    noise: of the image, as far as it is known.
    asked: "auto", True or False; True: even if they are few or not obvious.
    missing: pixels that are not impulses, because nothing was measured there.
    levels: standard deviation of the noise of each pixel, if a map is known.
    workers: number of threads; all cores when None. They do not change the result.

    >>> rng = np.random.default_rng(0)
    >>> image = np.add.outer(np.arange(128.0), np.arange(128) // 16 * 20) + rng.normal(0, 3, (128, 128))
    >>> find_rule(image[None], NoiseModel.white(3.0), "auto") is None
    True
    >>> image[rng.random(image.shape) < 0.01] = 255
    >>> find_rule(image[None], NoiseModel.white(3.0), True).stuck
    (255.0,)
    """
    if asked is False or min(planes.shape[1:]) < 2 * REACH + 1:
        return None
    if asked == "auto" and noise.curves[0].law is not None:
        return None
    every = planes if missing is None or not missing.any() else planes[~missing]
    low, high = _usual_range(every)
    rule = ImpulseRule(noise, float(high - low), PLAIN)
    if not rule.contrast > 0:
        rule = replace(rule, contrast=float(np.ptp(every)))
        if not rule.contrast > 0:
            return None
    found = rule.find(planes, levels, workers)
    if missing is not None:
        found &= ~missing
    if asked == "auto":
        if not _is_plain(planes, found):
            return None  # as in most images; what follows takes as long again
        points = replace(rule, limits=PLAIN._replace(wings=ANY_WINGS)).find(planes, levels, workers)
        alone = float(found.sum()) / max(int(points.sum()), 1)
        if not (_stand_apart(planes, alone) and _has_structure(planes, points, rule)):
            return None
    values, counts = np.unique(planes[found], return_counts=True)
    stuck = values[(counts >= FEWEST) & (counts >= SAME_VALUE * np.count_nonzero(found))]
    rule = replace(rule, limits=USUAL, stuck=tuple(map(float, stuck)))
    return None if asked == "auto" and _lie_on_lines(rule.find(planes, levels, workers)) else rule


def _usual_range(values: Float) -> tuple[float, float]:
    """``np.percentile(values, [0.5, 99.5])``, from the values at the ends."""
    flat = np.ascontiguousarray(values).reshape(-1)
    sample = flat[:: flat.size // SAMPLED | 1]  # an odd step: not column by column
    below, above, counts = np.empty(flat.size), np.empty(flat.size), np.empty(2, np.int64)
    few = sample.size // 100
    low, high = np.partition(sample, (few, -1 - few))[[few, -1 - few]]
    take_ends(flat, low, high, below, above, counts)
    last, share = divmod(OUTER * (flat.size - 1), 1)
    at = int(last), int(last) + 1
    if counts.min() <= at[1]:
        return tuple(np.percentile(flat, [100 * OUTER, 100 - 100 * OUTER]))
    ends = np.partition(below[: counts[0]], at)[[*at]], -np.partition(-above[: counts[1]], at)[[*at]]
    low, high = (first + share * (second - first) for first, second in ends)
    return low, high


def _is_plain(planes: Float, found: Mask) -> bool:
    """Whether impulses are many, spread evenly and not caused by texture."""
    count = np.count_nonzero(found)
    if min(planes.shape[1:]) < SMALLEST:
        return False
    if not max(FEWEST, LEAST_RATE * found.size) <= count <= MOST_RATE * found.size:
        return False
    channels, height, width = planes.shape
    side = min(BLOCK, height, width)
    rows, columns = height // side, width // side
    blocks = (channels, rows, side, columns, side)
    kept = np.s_[:, : rows * side, : columns * side]
    hits = found[kept].reshape(blocks).sum(axis=(2, 4))
    hit = np.count_nonzero(hits)
    chance = hits.size * (1 - np.exp(-hits.sum() / hits.size))
    if hit < LEAST_SPREAD * chance:
        return False
    # Steps between neighbours: impulses do not change their median over a block.
    steps = np.abs(np.diff(planes, axis=2, append=planes[:, :, -1:]))[kept].reshape(blocks)
    activity = np.median(steps.transpose(0, 1, 3, 2, 4).reshape(*hits.shape, -1), axis=-1)
    flat = activity <= np.median(activity, axis=(1, 2), keepdims=True)
    return bool(hits[flat].sum() >= LEAST_FLAT * hits.sum()) and not _lie_on_lines(found)


def _lie_on_lines(found: Mask) -> bool:
    """Whether some rows or columns have far more impulses than their neighbours, as letters do.

    A few lines with many of them are broken columns of a detector, or tracks of cosmic rays.
    """
    for axis in (1, 2):
        counts = found.sum(axis=axis)
        full = (
            np.sort(counts, axis=1)[:, -BROKEN_LINES - 1, None] if counts.shape[1] > BROKEN_LINES else counts
        )
        counts = np.minimum(counts, full)
        steps, count = float((np.diff(counts, axis=1) ** 2).sum()), int(counts.sum())
        if steps > (MOST_LINED + LINED_BY_CHANCE / max(count, 1) ** 0.5) * count:
            return True
    return False


def _stand_apart(planes: Float, alone: float) -> bool:
    """Whether impulses are not the tail of noise such as speckle, nor points with a point spread, nor text.

    `alone` is the share of the points that have no point spread.
    """
    if alone < LEAST_ALONE:
        return False
    _, height, width = planes.shape
    step = max(1, int((height * width / MOST_LOOKED_AT) ** 0.5))
    rows, columns = (places.ravel() for places in np.mgrid[:height:step, :width:step])
    between = 0.0
    for plane in planes:
        seen = _Neighbourhood.at(plane, rows, columns)
        spread = np.maximum(seen.high - seen.low, 1e-300)
        beyond = np.maximum(seen.value - seen.high, seen.low - seen.value) / spread
        between = max(between, float(np.mean((beyond > BETWEEN[0]) & (beyond <= BETWEEN[1]))))
    return between < MOST_BETWEEN and (between < USUAL_BETWEEN or alone >= LEAST_ALONE_OF_MANY)


def _has_structure(planes: Float, points: Mask, rule: ImpulseRule) -> bool:
    """Whether a picture has more than points: means of blocks without them differ by more than noise."""
    from scipy.ndimage import binary_dilation

    for number, (plane, own) in enumerate(zip(planes, points, strict=True)):
        height, width = (size // 4 * 4 for size in plane.shape)
        blocks = (height // 4, 4, width // 4, 4)
        valid = ~binary_dilation(own, np.ones((2 * REACH + 1,) * 2))[:height, :width].reshape(blocks)
        sums = np.where(valid, plane[:height, :width].reshape(blocks), 0.0).sum(axis=(1, 3))
        count = valid.sum(axis=(1, 3))
        means = np.where(count >= 8, sums / np.maximum(count, 1), np.nan)
        steps = np.concatenate([np.diff(means, axis=axis).ravel() for axis in (0, 1)])
        steps = steps[np.isfinite(steps)]
        if not steps.size:
            continue
        sigma = max(float(rule.noise.variance(float(np.nanmedian(means)), number)), 0.0) ** 0.5
        least = max(LEAST_STRUCTURE * sigma, LEAST_STRUCTURE_OF_CONTRAST * rule.contrast)
        if float(np.sqrt(np.mean(steps**2))) > least:
            return True
    return False
