"""Noise that neighbouring pixels share: its spectrum, from flat blocks, and the filter that whitens it.

Demosaicking, binning, resampling and compression spread the noise of a pixel over its neighbours, so its
energy lies at low frequencies. Divided by the root of the spectrum it is white, and any method for white
noise applies; patches are then compared, and combinations weighted, by the actual noise at every frequency
[1]_.

.. [1] Y. Makinen, L. Azzari, A. Foi, "Collaborative filtering of correlated noise", IEEE Transactions on
   Image Processing 29, 2020. :DOI:`10.1109/TIP.2020.3014721`
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.noise import blocks as block
from vnlem.noise.tiled_filter import filtered, finite, frequencies
from vnlem.pipeline.regions import Region
from vnlem.pipeline.workers import Pool

Float = NDArray[np.float64]

SIDE = 16  # of the blocks, and so the number of frequencies per direction
SMALLEST_IMAGE = 4 * SIDE
FLAT_SHARE = 0.1  # of the blocks
STRATA = 8  # of brightness, each with separate flat blocks
FLAT_STRATA = 0.4  # of the strata are used: those with the least structure
FEWEST_IN_STRATUM = 64
ROUNDS = 3
FEWEST_GOOD = 32  # usable blocks; with fewer all blocks are used
ALONE = 256  # columns that BLAS multiplies in one thread
LINES = 16  # coefficients whose quartile one worker finds at a time
# Image structure always reaches the lowest frequencies, even of flat blocks. The spectrum of noise flattens
# there, so its logarithm rises no faster than between these two rings.
NEAR_RING, FAR_RING = (3.5, 4.5), (6.0, 8.0)
MOST_MIDDLE = 0.45  # frequencies below it are middle ones, where structure of flat blocks is weak
# Frequencies with less power than this multiple of the mean count as having that much: their little noise
# must not decide which patches are similar, and its estimate is the least certain.
FLOOR = 1.5
CEILING = 16.0  # in the same units: more at low frequencies is more likely structure than noise


@dataclass(frozen=True)
class Spectrum:
    """Power of the noise at the frequencies of a cosine transform of SIDE x SIDE pixels; its mean is one.

    >>> white = Spectrum.white()
    >>> (white.correlation(2).round(3) + 0.0).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """

    power: tuple[tuple[float, ...], ...]

    @classmethod
    def white(cls) -> "Spectrum":
        """The same power at every frequency."""
        return cls(((1.0,) * SIDE,) * SIDE)

    @classmethod
    def of(cls, power: ArrayLike) -> "Spectrum":
        """From an array of powers of any scale."""
        values = np.asarray(power, np.float64)
        if not values.any():
            return cls.white()
        values = values / values.mean()
        return cls(tuple(tuple(map(float, row)) for row in values))

    @property
    def is_white(self) -> bool:
        """Whether every frequency has the same power."""
        return max(map(max, self.power)) - min(map(min, self.power)) < 1e-9

    def correlation(self, reach: int) -> Float:
        """Correlation of the noise of two pixels that lie 0 to `reach` rows and columns apart."""
        # Every entry represents its whole step of the frequency axis; zero has half a step.
        power = np.asarray(self.power)
        ends = np.pi * (np.arange(len(power) + 1) - 0.5).clip(0) / (len(power) - 0.5)
        lag = np.maximum(np.arange(reach + 1), 1e-9)[:, None]
        waves = np.diff(np.sin(lag * ends) / lag, axis=1)
        values: Float = waves @ power @ waves.T
        values /= values[0, 0]
        return values

    def whiten(self, plane: Float, floor: float = FLOOR, region: Region | None = None) -> Float:
        """The plane with noise that is white where its power lies above `floor` times the mean.

        If the plane is the part of an image that a region reads, the result is what it writes.
        """
        return self._filtered(plane, -0.5, floor, region)

    def colour(self, plane: Float, region: Region | None = None) -> Float:
        """Undo :meth:`whiten`."""
        return self._filtered(plane, 0.5, FLOOR, region)

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Float:
        """Noise of this spectrum, (H, W), of variance one.

        >>> noise = Spectrum.of(np.exp(-np.add.outer(np.arange(16), np.arange(16)) / 8)).draw(
        ...     (200, 200), np.random.default_rng(0)
        ... )
        >>> bool(abs(noise.var() - 1) < 0.1), bool(np.mean(noise[1:] * noise[:-1]) > 0.3)
        (True, True)
        """
        white = rng.standard_normal(shape)
        return white if self.is_white else filtered(white, _of_variance_one(self), Region.whole(*shape))

    def _filtered(self, plane: Float, exponent: float, floor: float, region: Region | None) -> Float:
        whole = region or Region.whole(*plane.shape)
        if self.is_white:
            return plane[whole.written()]
        return filtered(plane, _response(self, exponent, floor), whole)


@lru_cache(maxsize=16)
def _response(spectrum: Spectrum, exponent: float, floor: float, ceiling: float = CEILING) -> Float:
    """Response of a filter that multiplies each frequency by a power of the noise's own power."""
    from scipy import ndimage

    power = np.clip(np.asarray(spectrum.power), floor, ceiling)
    at = np.broadcast_arrays(*(2 * len(power) * frequency for frequency in frequencies()))
    return finite(ndimage.map_coordinates(power, at, order=1, mode="nearest") ** exponent)


@lru_cache(maxsize=16)
def _of_variance_one(spectrum: Spectrum) -> Float:
    """Response of the filter that turns white noise of variance one into noise of this spectrum."""
    response = _response(spectrum, 0.5, 0.0, np.inf)
    # All columns but the first and the last represent two frequencies.
    energy = 2 * np.abs(response) ** 2
    energy[:, [0, -1]] /= 2
    return np.asarray(response * np.sqrt(response.shape[0] ** 2 / energy.sum()))


@dataclass(frozen=True)
class PowerEstimate:
    """What the flat blocks of an image show."""

    power: Float  # (C, SIDE, SIDE), of the noise at every frequency
    share: float  # of the blocks that look like noise and nothing else
    unevenness: float  # scatter of the flat blocks' energies over that of noise, which has one


def estimate_power(
    planes: Float, keep: "NDArray[np.bool_] | None" = None, pool: Pool | None = None
) -> PowerEstimate:
    """Power of the noise of stabilised planes at every frequency.

    Blocks are chosen by one half of their coefficients, a chess board, and read at the other half. Image
    structure has energy in both halves; noise that is high in one by chance is not high in the other.

    planes: (C, H, W), H and W at least SMALLEST_IMAGE.
    keep: (H, W), pixels that may be used.
    pool: the threads to use; they do not change the result.

    >>> noise = np.random.default_rng(0).normal(0, 2, (1, 256, 256))
    >>> found = estimate_power(noise)
    >>> bool(abs(found.power.mean() / 4 - 1) < 0.05), bool(found.share > 0.5)
    (True, True)
    >>> bool(0.8 < found.unevenness < 1.2)
    True
    """
    pool = pool or Pool(1)
    energy, brightness = _energies(planes, keep, pool)
    # A start: the lower quartile of each coefficient, corrected for its bias with normal noise.
    power = _smooth(_lower_quartile(energy, pool) / 0.1015)
    order = np.argsort(brightness, kind="stable")
    strata = np.array_split(order, max(1, min(STRATA, order.size // FEWEST_IN_STRATUM)))
    for _ in range(ROUNDS):
        found, uneven, share = _read_strata(energy, power[0], strata, pool)
        best = _flattest(found, power)
        power = _smooth(found[best].mean(axis=0))
    return PowerEstimate(power, share, float(uneven[best].mean()))


def _read_strata(
    energy: Float, expected: Float, strata: list[NDArray[np.intp]], pool: Pool
) -> tuple[Float, Float, float]:
    """What the flat blocks of every stratum show.

    Returns the power (strata, C, SIDE, SIDE), the unevenness (strata, 2) of the blocks chosen by either half,
    and the share of all blocks that look like noise.
    """
    rows, columns = np.indices((SIDE, SIDE))
    beyond = np.hypot(rows, columns) >= NEAR_RING[0]
    middle = beyond & (block.frequency(SIDE) < MOST_MIDDLE)
    halves = [(rows + columns) % 2 == parity for parity in (0, 1)]
    halves[0][0, 0] = False
    # A gradient in the image is not evidence against the noise: the lowest frequencies are left out.
    judges = [*halves, *(half & beyond for half in halves)]
    # The first component chooses for all: it has the most structure, and its noise is independent of theirs.
    weights = np.stack([judge / judge.sum() / np.maximum(expected, 1e-300) for judge in judges])
    scores = _weighed(energy[0].reshape(SIDE**2, -1), weights, pool)
    limits = [1 + 3 * np.sqrt(2.0 / judge.sum()) for judge in judges[2:]]
    share = min(float(np.mean(clear < limit)) for clear, limit in zip(scores[2:], limits, strict=True))
    found = np.empty((len(strata), *energy.shape[:-1]))
    uneven = np.empty((len(strata), 2))

    def look(one: tuple[int, int]) -> None:
        number, half = one
        stratum, reader = strata[number], halves[1 - half]
        count = max(8, int(FLAT_SHARE * stratum.size))
        flat = energy[..., stratum[np.argsort(scores[half][stratum], kind="stable")[:count]]]
        found[number][:, reader] = flat.mean(axis=-1)[:, reader]
        uneven[number, half] = _unevenness(flat[0, reader & middle])

    pool.for_each(look, [(number, half) for number in range(len(strata)) for half in (0, 1)])
    found[:, :, 0, 0] = (found[:, :, 0, 1] + found[:, :, 1, 0]) / 2
    return found, uneven, share


def _energies(planes: Float, keep: "NDArray[np.bool_] | None", pool: Pool) -> tuple[Float, Float]:
    """Squared coefficients (C, SIDE, SIDE, blocks), and the first coefficient of the first component."""
    views = [block.windows(plane, SIDE, SIDE // 2) for plane in (*planes, keep) if plane is not None]

    def look(*blocks: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        coefficients = np.stack([block.cosine(some) for some in blocks[: len(planes)]])
        kept = [some.mean(axis=(0, 1)) > 1 - block.CLIPPED_SHARE for some in blocks[len(planes) :]]
        return coefficients**2, coefficients[0, 0, 0], *kept

    energy, brightness, *kept = block.in_parts(look, views, pool)
    # A block of one value shows no noise.
    varied = energy[0].sum(axis=(0, 1)) > (1 + 1e-12) * energy[0, 0, 0]
    for good in (varied & kept[0] if kept else varied, varied):
        if np.count_nonzero(good) >= FEWEST_GOOD:
            return energy[..., good], brightness[good]
    return energy, brightness


def _lower_quartile(energy: Float, pool: Pool) -> Float:
    """np.quantile(energy, 0.25, axis=-1), which sorts more than it needs.

    >>> _lower_quartile(np.array([[3.0, 1.0, 2.0, 9.0]]), Pool(1))
    array([1.75])
    """
    values = energy.reshape(-1, energy.shape[-1])
    at = 0.25 * (values.shape[1] - 1)
    below, part = int(at), at - int(at)
    above = min(below + 1, values.shape[1] - 1)
    quartile = np.empty(len(values))

    def look(first: int) -> None:
        lines = values[first : first + LINES].copy()
        lines.partition((below, above), axis=1)
        low, high = lines[:, below], lines[:, above]
        quartile[first : first + LINES] = (
            low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)
        )

    pool.for_each(look, range(0, len(values), LINES))
    return quartile.reshape(energy.shape[:-1])


def _weighed(energy: Float, weights: Float, pool: Pool) -> Float:
    """Sums over the coefficients of blocks (coefficients, n), each under some weights (count, SIDE, SIDE).

    In parts that BLAS handles in one thread: its own threads would wait for those of the pool.
    """
    weights = weights.reshape(len(weights), -1)
    sums = np.empty((len(weights), energy.shape[1]))

    def look(first: int) -> None:
        for part in range(first, min(first + block.PART, sums.shape[1]), ALONE):
            sums[:, part : part + ALONE] = weights @ energy[:, part : part + ALONE]

    pool.for_each(look, range(0, sums.shape[1], block.PART))
    return sums


def _unevenness(energy: Float) -> float:
    """Scatter of the energy of blocks (coefficients, n), over that of normal noise."""
    relative = (energy / np.maximum(energy.mean(axis=1, keepdims=True), 1e-300)).mean(axis=0)
    return float(relative.std() / np.sqrt(2.0 / len(energy)))


def _flattest(found: Float, power: Float) -> NDArray[np.intp]:
    """The strata with the least energy at low frequencies, where structure adds to the noise."""
    low = np.hypot(*np.indices(power.shape[1:])) < NEAR_RING[1]
    level = (found / np.maximum(power, 1e-300))[:, 0, low].mean(axis=1)
    return np.argsort(level, kind="stable")[: max(1, int(FLAT_STRATA * len(found)))]


def _smooth(power: Float) -> Float:
    """Average neighbouring frequencies; limit the lowest ones by what the others suggest."""
    from scipy import ndimage

    smooth: Float = ndimage.gaussian_filter(power, (0, 0.7, 0.7), mode="nearest")
    radius = np.maximum(np.hypot(*np.indices(power.shape[1:])), 1.0)
    for plane in smooth:
        near, far = (
            float(plane[(radius >= low) & (radius < high)].mean()) for low, high in (NEAR_RING, FAR_RING)
        )
        distance = np.mean(FAR_RING) - np.mean(NEAR_RING)
        slope = max(np.log(max(near, 1e-300) / max(far, 1e-300)) / distance, 0.0)
        most = near * np.exp(slope * (np.mean(NEAR_RING) - radius))
        inner = radius < NEAR_RING[0]
        plane[inner] = np.minimum(plane[inner], most[inner])
    return smooth


def floor_and_rise(power: Float) -> tuple[float, float]:
    """Power above 0.45 and below 0.06 cycles per pixel, relative to 0.14 to 0.22: one for white noise.

    >>> floor_and_rise(np.ones((SIDE, SIDE)))
    (1.0, 1.0)
    """
    cycles = np.hypot(*np.indices(power.shape)) / (2 * len(power))
    usual = max(float(power[(cycles >= 0.14) & (cycles < 0.22)].mean()), 1e-300)
    lowest = power[(cycles > 0) & (cycles < 0.06)]
    return float(power[cycles >= 0.45].mean()) / usual, float(lowest.mean()) / usual


def check_spectrum(power: Any) -> Spectrum:
    """A valid spectrum, or a clear error.

    >>> check_spectrum([[1.0] * SIDE] * SIDE).is_white
    True
    """
    values = np.asarray(power, np.float64)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or len(values) < 2:
        raise ValueError(f"a noise spectrum must be a square table, got shape {values.shape}")
    if not np.isfinite(values).all() or not (values > 0).all():
        raise ValueError(
            f"a noise spectrum must be positive, its least value is {np.nanmin(values):g}; "
            "estimate the noise again"
        )
    return Spectrum.of(values)
