"""Does simulated noise look like that of the image? A check of a noise model that needs no clean image.

Noise is drawn from the model and added to the denoised image. If the model is right, the sum has the energy
of the input block by block, at high and at middle frequencies, up to the difference of two draws. If texture
was mistaken for noise, the quiet blocks of the input have less. If noise was left, the result contains it
too, evenly, and the added noise dominates hardly any block.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.noise import blocks as block
from vnlem.noise.components import to_components
from vnlem.noise.model import NoiseModel
from vnlem.noise.simulate import add_noise
from vnlem.pipeline import checks
from vnlem.pipeline.device import namespace, to_host
from vnlem.pipeline.image import Planes, to_planes
from vnlem.pipeline.tiles import Tile

Float = NDArray[np.float64]

SIDE = 16  # of the blocks
TILE, TILES = 128, 3  # side of a tile in pixels, and tiles along each side, for large images
FEWEST = 24  # blocks; with fewer the verdict is "unknown"
SEED = 20
QUIET = 0.05  # quantile of the blocks that shows whether the quiet ones have the noise
FLAT = 0.1  # quantile of the blocks, for the least energy of the image
LEAST_VARIANCE = 1.0  # in steps of the values: weaker noise is lost in a rounded result
# In units of the noise of one draw: energies below this are not compared.
LEAST_ENERGY = 1e-3


class Limits(NamedTuple):
    """Beyond the first of each pair a model mostly fits, beyond the second it does not."""

    quietest: tuple[float, float]
    usual: tuple[float, float]
    spread: tuple[float, float]


# Chosen on photographs with white noise of sigma 2, 5 and 10 and on real pairs; benchmarks/predictive.py
# measures both. Right models without correlation have quietest above -0.05, usual from -0.02 to 0.3 and a
# spread below 1.35. Twice the noise has quietest below -0.5.
PLAIN = Limits((-0.12, -0.3), (0.4, 0.8), (1.4, 2.0))
# Noise after demosaicking and compression is less even than noise drawn from a spectrum, and hardly any of it
# lies at high frequencies; its level is known within a factor of two. So only middle frequencies are judged,
# and the quiet blocks against the usual ones. Real noise has -0.38 to 0.14 there, texture mistaken for noise
# -1.8 to 0.04, half of it below -0.23.
CORRELATED = Limits((-0.15, -0.4), (0.9, 1.3), (1.4, 2.2))
# If even the flattest blocks hold this much more than the noise (logarithm of the energy), and as much more
# at middle frequencies, give or take the last, the image has white noise that the model does not describe.
UNKNOWN_NOISE, AS_WHITE = (0.35, 0.6), 0.5
# Share of the blocks in which the noise is stronger than what the result holds at high frequencies.
LEAST_SHOWN = 0.05

UNKNOWN = "unknown"
VERDICTS = ("yes", "mostly", "no")
NO_NOISE = "no noise was found, so there is none to simulate"
TOO_SMALL = f"the image is smaller than {2 * SIDE}x{2 * SIDE} pixels"
NOTHING_TO_SEE = "almost all areas are clipped or constant"
ROUNDED = "the noise is weaker than the rounding of the result; a float image would show it"


@dataclass(frozen=True)
class Band:
    """Blocks of the image compared with those of the result plus simulated noise, at some frequencies.

    Differences of the logarithms of their energies, minus those between two draws of the noise.

    quietest: of the 5 % of the blocks with the least energy relative to their draw. Negative: the noise is
        weaker there.
    usual: the median. Positive: most blocks hold more than the result and the noise.
    spread: the standard deviation relative to that of two draws; one if the blocks differ only by chance.
    floor: energy of the flattest 10 % of the blocks relative to the noise alone. Positive if everything is
        textured.
    """

    quietest: float
    usual: float
    spread: float
    floor: float


@dataclass(frozen=True)
class NoiseCheck:
    """Whether simulated noise of a model, added to the denoised image, looks like the image.

    Attributes
    ----------
    verdict : {"yes", "mostly", "no", "unknown"}
    reason : str
        What speaks against the model, or why the verdict is "unknown"; empty for "yes".
    high, middle : Band or None
        The figures at high and at middle frequencies; None if the verdict is "unknown".
    shown : float
        Share of the blocks in which the noise is stronger than what the result holds at high frequencies.

    Examples
    --------
    >>> NoiseCheck("no", "the quiet areas have less").describe()
    'simulated noise of this kind looks like your image: no (the quiet areas have less)'
    """

    verdict: str
    reason: str = ""
    high: Band | None = None
    middle: Band | None = None
    shown: float = 0.0

    def describe(self) -> str:
        """The verdict as a sentence without a full stop."""
        if self.verdict == UNKNOWN:
            return f"cannot tell whether simulated noise of this kind looks like your image: {self.reason}"
        why = f" ({self.reason})" if self.reason else ""
        return f"simulated noise of this kind looks like your image: {self.verdict}{why}"


def worst(checks: list[NoiseCheck]) -> NoiseCheck:
    """The worst check of several channels.

    >>> worst([NoiseCheck("yes"), NoiseCheck("no"), NoiseCheck("unknown")]).verdict
    'no'
    """
    return max(checks, key=lambda check: (UNKNOWN, *VERDICTS).index(check.verdict))


def predictive_check(
    noisy: ArrayLike, denoised: ArrayLike, noise: NoiseModel, channel_axis: int | None = None
) -> NoiseCheck:
    """Check whether simulated noise of a model, added to the denoised image, looks like the image.

    Parameters
    ----------
    noisy, denoised : array_like
        The image before and after, of one shape.
    noise : NoiseModel
        The noise model that was used.
    channel_axis : int, optional
        The axis of the channels.

    Returns
    -------
    NoiseCheck

    Notes
    -----
    Noise is drawn twice, with a fixed seed. Blocks of 16x16 pixels of the image are compared with those of
    the first draw, and so are those of the second. Clipped, constant and painted blocks are left out. Images
    of more than 384 pixels a side are judged by nine tiles.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = np.tile(np.linspace(0, 200, 128), (128, 1))
    >>> noisy = clean + rng.normal(0, 10, clean.shape)
    >>> [predictive_check(noisy, clean, NoiseModel.white(sigma)).verdict for sigma in (10.0, 20.0)]
    ['yes', 'no']
    """
    before = to_planes(noisy, channel_axis)
    if np.shape(noisy) != np.shape(denoised):
        raise ValueError(
            f"the images differ in shape: {np.shape(noisy)} and {np.shape(denoised)}; "
            "compare an image with its own result"
        )
    check_model("noise", noise, before)
    return check_result(before, np.asarray(denoised), noise)


def check_model(name: str, model: Any, planes: Planes) -> None:
    """Refuse what is no model, or does not describe the image."""
    if not isinstance(model, NoiseModel):
        raise TypeError(
            f"{name} must be a NoiseModel, such as vnlem.estimate_noise(image), got {checks.shown(model)}"
        )
    model.check(planes)


def check_result(planes: Planes, denoised: NDArray[Any], model: NoiseModel) -> NoiseCheck:
    """:func:`predictive_check` of an image and of its result in the same layout, which may lie on a GPU.

    >>> constant = np.full((64, 64), 7.0)
    >>> check_result(to_planes(constant), constant, NoiseModel.white(2.0)).reason
    'almost all areas are clipped or constant'
    """
    if planes.ndim == 1:
        return NoiseCheck(UNKNOWN, TOO_SMALL)
    axis = planes.channel_axis
    channels = denoised[None] if axis is None else namespace(denoised).moveaxis(denoised, axis, 0)
    return _check(planes, model, lambda tile: to_host(channels[:, *tile.slices]).astype(np.float64))


def check_by_tiles(
    planes: Planes, model: NoiseModel, denoise: Callable[[NDArray[Any], NoiseModel], NDArray[Any]]
) -> NoiseCheck:
    """The check of a model before denoising: only some tiles of the image are denoised.

    denoise: a tile in the layout of the image, as floats, and the model of it -> the tile, denoised.

    >>> image = to_planes(np.random.default_rng(0).normal(100, 5, (64, 64)))
    >>> check_by_tiles(image, NoiseModel.white(5.0), lambda tile, _: np.full_like(tile, 100)).verdict
    'yes'
    """

    def of_tile(tile: Tile) -> Float:
        part = planes.layout(planes.data[:, *tile.slices])
        return to_planes(denoise(part, model.part(*tile.slices)), planes.channel_axis).data

    return _check(replace(planes, dtype=planes.data.dtype), model, of_tile)


def _check(planes: Planes, model: NoiseModel, result_of: Callable[[Tile], Float]) -> NoiseCheck:
    """The check; a result of integers counts as rounded."""
    if model.sigma == 0:
        return NoiseCheck(UNKNOWN, NO_NOISE)
    if min(planes.data.shape[1:]) < 2 * SIDE:
        return NoiseCheck(UNKNOWN, TOO_SMALL)
    sample = tiles(*planes.data.shape[1:])
    results = [result_of(tile) for tile in sample]
    if planes.dtype.kind in "iu" and _mean_variance(model, results) < LEAST_VARIANCE:
        return NoiseCheck(UNKNOWN, ROUNDED)
    look = _Look(planes.data, model)
    found = [
        look(planes.data[:, *tile.slices], result, model.part(*tile.slices))
        for tile, result in zip(sample, results, strict=True)
    ]
    energies = np.concatenate(found, axis=-1)
    if energies.shape[-1] < FEWEST:
        return NoiseCheck(UNKNOWN, NOTHING_TO_SEE)
    high, middle = (_compare(*energies[:, band]) for band in (0, 1))
    shown = float(np.mean(energies[3, 0] < energies[4, 0]))
    rank, reason = _judge(high, middle, shown, correlated=model.is_correlated)
    return NoiseCheck(VERDICTS[rank], reason, high, middle, shown)


def _mean_variance(model: NoiseModel, results: list[Float]) -> float:
    return float(
        np.mean([model.variance(plane, n).mean() for result in results for n, plane in enumerate(result)])
    )


def tiles(height: int, width: int) -> list[Tile]:
    """The whole of a small image, tiles spread over a large one.

    >>> tiles(100, 200)
    [Tile(top=0, bottom=100, left=0, right=128), Tile(top=0, bottom=100, left=72, right=200)]
    """

    def spans(size: int) -> list[tuple[int, int]]:
        count, side = min(TILES, -(-size // TILE)), min(TILE, size)
        return [(int(at), int(at) + side) for at in np.linspace(0, size - side, count)]

    return [Tile(*rows, *columns) for rows in spans(height) for columns in spans(width)]


def _bands() -> NDArray[np.bool_]:
    """Coefficients of a block at high and at middle frequencies."""
    rows, columns = np.indices((SIDE, SIDE))
    high = (rows >= SIDE // 2) & (columns >= SIDE // 2)
    frequency = block.frequency(SIDE)
    return np.stack([high, (frequency >= 0.2) & (frequency < 0.45) & ~high])


BANDS = _bands()


class _Look:
    """The energies of the blocks of a tile, before and after noise is added."""

    def __init__(self, planes: Float, model: NoiseModel) -> None:
        self._rng = np.random.default_rng(SEED)
        self._low, self._high = (np.array(end(planes, axis=(1, 2))) for end in (np.min, np.max))
        self._steps = [block.lattice(plane) for plane in planes]
        # The colours of compressed images have less noise than their brightness, and they have texture.
        self._components = 1 if model.is_correlated and len(planes) == 3 else len(planes)

    def __call__(self, image: Float, result: Float, model: NoiseModel) -> Float:
        """Of the image, two draws, the result, and the noise of both draws, (6, bands, blocks)."""
        drawn = [self._stored(add_noise(model, result, self._rng)) for _ in range(2)]
        usable = self._usable(image)
        found = []
        for parts in zip(*(to_components(planes) for planes in (image, *drawn, result)), strict=True):
            seen, first, second, clean = (block.cosine(block.cut(part, SIDE, SIDE // 2)) for part in parts)
            six = (seen, first, second, clean, first - clean, second - clean)
            found.append([[np.mean(one[band] ** 2, axis=0)[usable] for band in BANDS] for one in six])
        return np.concatenate(found[: self._components], axis=-1)

    def _stored(self, planes: Float) -> Float:
        """Planes with the values that pixels of the image can have."""
        stored = planes.copy()
        for plane, low, high, step in zip(stored, self._low, self._high, self._steps, strict=True):
            if step > 0:
                plane[:] = np.clip(low + step * np.round((plane - low) / step), low, high)
        return stored

    def _usable(self, image: Float) -> NDArray[np.bool_]:
        """Blocks that are neither clipped nor constant nor painted in any channel."""
        usable = []
        for plane, low, high, step in zip(image, self._low, self._high, self._steps, strict=True):
            blocks = block.cut(plane, SIDE, SIDE // 2)
            variance = (block.cosine(blocks)[BANDS[0]] ** 2).mean(axis=0)
            clipped = block.share_of((blocks == low) | (blocks == high)) > block.CLIPPED_SHARE
            usable.append(~clipped & ~block.painted(blocks, variance, step))
        return np.asarray(np.all(usable, axis=0))


def _compare(
    image: Float, first: Float, second: Float, result: Float, noise: Float, other_noise: Float
) -> Band:
    """The figures of one band from the energies of its blocks."""
    del result
    least = LEAST_ENERGY * float(np.median(noise)) + 1e-300
    logs = [np.log(energy + least) for energy in (image, first, second, noise, other_noise)]
    seen, chance = logs[0] - logs[1], logs[2] - logs[1]
    quietest, usual = (float(np.quantile(seen, share) - np.quantile(chance, share)) for share in (QUIET, 0.5))
    floor = float(np.quantile(logs[0] - logs[3], FLAT) - np.quantile(logs[4] - logs[3], FLAT))
    return Band(quietest, usual, float(seen.std() / max(float(chance.std()), 1e-12)), floor)


def _judge(high: Band, middle: Band, shown: float, *, correlated: bool) -> tuple[int, str]:
    """How far a model does not fit, 0 to 2, and why."""
    limits = CORRELATED if correlated else PLAIN
    judged = (middle,) if correlated else (high, middle)
    quiet = min(band.quietest - (max(band.usual, 0.0) if correlated else 0.0) for band in judged)
    against = [
        (
            _beyond(-quiet, [-limit for limit in limits.quietest]),
            "the quiet areas of the image have less noise than this",
        ),
        (
            max(_beyond(band.usual, limits.usual) for band in (high, middle)),
            "most areas of the image vary more than with this noise",
        ),
        (
            max(_beyond(band.spread, limits.spread) for band in judged),
            "areas of the image differ more than simulated noise does",
        ),
        (
            0 if correlated or middle.floor - high.floor > AS_WHITE else _beyond(high.floor, UNKNOWN_NOISE),
            "even the flat areas of the image have more noise than this",
        ),
        (int(shown < LEAST_SHOWN), "hardly any area shows this noise: texture or stronger noise hides it"),
    ]
    rank, reason = max(against, key=lambda one: one[0])
    return rank, reason if rank else ""


def _beyond(value: float, limits: Any) -> int:
    """How many of the limits a value exceeds."""
    return sum(value > limit for limit in limits)
