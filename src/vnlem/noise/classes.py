"""Classes of brightness: what the flat blocks of an image say of its noise at each.

Blocks of 8x8 pixels show most. Where objects are so small and dense that no such block of their brightness is
flat, blocks of 4x4 pixels still are, inside the objects.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.noise import blocks as block
from vnlem.pipeline.workers import Pool

Float = NDArray[np.float64]

BLOCK_SIDE = 8
SMALL_SIDE = 4
CLASSES = 24  # of equal numbers of blocks, by brightness
FLAT_SHARE = 0.15  # of the blocks of a class, by their energy at low frequencies
FEWEST_IN_CLASS = 48
# The energies of flat blocks scatter as a chi-squared variable does if they hold noise alone. Classes where
# they scatter this much more hold texture: their variance is no more than a bound.
MOST_UNEVEN = 2.0
# Compression and demosaicking make noise itself uneven: a class counts while it is not much worse than the
# even ones of its image, up to the second limit.
UNEVEN_BESIDE, MOST_UNEVEN_BESIDE = 1.6, 3.0
PLAINLY_EVEN = 1.4
MOST_TILTED = 1.5  # excess at low frequencies in classes of white noise
LEAST_PLAIN = 0.4  # of the classes must lie below it for the others to be left out
# White noise has 0.6 to 0.8 of its energy at high frequencies at low ones in flat blocks, less in small ones.
PLAINLY_WHITE = 0.9
# Of the range of the brightness: classes without structure that cover so much of it show the noise.
LEAST_RANGE = 0.5


@dataclass(frozen=True)
class Classes:
    """What the blocks of one brightness say."""

    brightness: Float
    variance: Float
    error: Float  # standard error of the variance, relative
    unevenness: Float  # scatter of the blocks' energies over that of noise: about one
    tilt: Float  # energy at low frequencies over that at high ones: about one for white noise

    def even(self) -> NDArray[np.bool_]:
        """Classes whose blocks hold noise alone.

        Examples
        --------
        >>> unevenness = np.array([1.0, 1.1, 0.9, 5.0])
        >>> Classes(np.arange(4.0), np.ones(4), np.ones(4), unevenness, np.ones(4)).even()
        array([ True,  True,  True, False])
        """
        usual = UNEVEN_BESIDE * float(np.quantile(self.unevenness, 0.2))
        even = np.asarray(self.unevenness <= np.clip(usual, MOST_UNEVEN, MOST_UNEVEN_BESIDE))
        # Where white noise is plain to see, structure shows as an excess at low frequencies. Small objects
        # have it too; their noise is even, and nothing else shows the noise of bright pixels.
        plain = even & ((self.tilt <= MOST_TILTED) | (self.unevenness <= PLAINLY_EVEN))
        return plain if np.count_nonzero(plain) >= max(4, LEAST_PLAIN * self.tilt.size) else even

    def some(self, chosen: NDArray[Any]) -> "Classes":
        """Some of the classes."""
        return Classes(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    def beside(self, other: "Classes") -> "Classes":
        """These and others, sorted by brightness."""
        order = np.argsort(np.concatenate([self.brightness, other.brightness]), kind="stable")
        names = self.__dataclass_fields__
        return Classes(*(np.concatenate([getattr(self, n), getattr(other, n)])[order] for n in names))

    def range(self) -> float:
        """From the darkest to the brightest."""
        return float(np.ptp(self.brightness)) if self.brightness.size else 0.0


def measure(plane: Float, brightness: Float | None = None, pool: Pool | None = None) -> Classes:
    """Variance at high frequencies in the flat blocks of every class of brightness.

    Where white noise is plain to see, but only in a small part of the range of the brightness, small blocks
    are looked at too. If these show it in more of the range, classes with structure are left out.

    Parameters
    ----------
    plane : ndarray
        (H, W)
    brightness : ndarray, optional
        (H, W), what the blocks are sorted by; the plane itself when None.
    pool : Pool, optional
        The threads to use; they do not change the result.

    Examples
    --------
    >>> noisy = np.random.default_rng(0).normal(100, 5, (128, 128))
    >>> bool(abs(measure(noisy).variance.mean() / 25 - 1) < 0.1)
    True
    """
    pool = pool or Pool(1)
    found = _measure(plane, brightness, BLOCK_SIDE, pool)
    if float(np.quantile(found.tilt, 0.05)) > PLAINLY_WHITE:
        return found
    plain = found.some(found.tilt <= MOST_TILTED)
    if plain.range() >= LEAST_RANGE * found.range() or min(plane.shape) < BLOCK_SIDE:
        return found
    small = _measure(plane, brightness, SMALL_SIDE, pool)
    beyond = (small.brightness < plain.brightness[0]) | (small.brightness > plain.brightness[-1])
    both = plain.beside(small.some(beyond & (small.tilt <= PLAINLY_WHITE)))
    return both if both.range() >= LEAST_RANGE * found.range() else found


def _measure(plane: Float, brightness: Float | None, side: int, pool: Pool) -> Classes:
    """:func:`measure` with blocks of one size."""
    low, high = float(plane.min()), float(plane.max())
    is_high = block.frequency(side) >= 0.5
    is_low = ~is_high
    is_low[0, 0] = False

    def look(blocks: Float, *bright: Float) -> tuple[Any, ...]:
        coefficients = block.cosine(blocks)
        means = bright[0].mean(axis=(0, 1)) if bright else coefficients[0, 0] / side
        texture = np.sum(coefficients[is_low] ** 2, axis=0)
        energies = coefficients[is_high] ** 2
        return means, texture, energies, block.painted(blocks), block.clipped(blocks, low, high)

    views = [block.windows(of, side, side // 2) for of in (plane, brightness) if of is not None]
    means, texture, high_energies, painted, clipped = block.in_parts(look, views, pool)
    usable = np.flatnonzero(block.usable(painted, clipped, FEWEST_IN_CLASS))
    means, texture = means[usable], texture[usable]
    order = np.argsort(means, kind="stable")
    parts = np.array_split(order, max(1, min(CLASSES, means.size // FEWEST_IN_CLASS)))
    flats = []
    for part in parts:
        count = max(8, int(FLAT_SHARE * part.size))
        flats.append(part[np.argsort(texture[part], kind="stable")[:count]])
    energies = [high_energies[:, usable[flat]] for flat in flats]
    # Half of each block is shared with its neighbours, in both directions.
    error = [np.sqrt(2.0 / (is_high.sum() * max(flat.size / 4, 1.0))) for flat in flats]
    return Classes(
        np.array([means[flat].mean() for flat in flats]),
        np.array([energy.mean() for energy in energies]),
        np.array(error),
        _unevenness(energies),
        np.array(
            [
                texture[flat].mean() / is_low.sum() / max(float(energy.mean()), 1e-300)
                for flat, energy in zip(flats, energies, strict=True)
            ]
        ),
    )


def _unevenness(energies: list[Float]) -> Float:
    """Scatter of the energy of the blocks (coefficients, n) of each class, over that of normal noise.

    Coefficients are weighed by their usual energy, so that correlated noise, which has little at the highest
    frequencies, scatters like white noise.
    """
    means = [energy.mean(axis=1) / max(float(energy.mean()), 1e-300) for energy in energies]
    usual = np.maximum(np.median(means, axis=0), 0.05)
    relative = [(energy / usual[:, None]).mean(axis=0) for energy in energies]
    expected = np.sqrt(2.0 / usual.size)
    return np.array([np.std(r) / max(float(r.mean()), 1e-300) / expected for r in relative])
