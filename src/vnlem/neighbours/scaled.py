"""Scaled copies of what lies around a tile: sheets that widen the search to dilations (group "similarity").

A copy is made with the taps of a windowed sinc, which for a smaller copy is wider, so that nothing aliases.
Noise: a copy of factor f < 1 averages noise, its variance falls by about f^2 and stays nearly white; a copy
with f > 1 has the variance of the image, shared by neighbouring pixels.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cpu.copies import Stretch, StretchPlace, stretch_into
from vnlem.kernels.cpu.sheets import Images, Tall
from vnlem.neighbours.sheets import TILE, Reach, Sheet, Whole
from vnlem.pipeline.tiles import Tile

# Factors of the copies that "similarity" searches beside the image and its turned copies.
FACTORS = (0.5, 0.6, 0.7, 0.84)
LOBES = 6  # of the sinc on each side of its centre
_KAISER = 2.5


def side_of(factor: float, radius: int, patch_size: int) -> int:
    """Side of the copy in which all windows of a tile's reference patches lie."""
    return 2 * (int(np.ceil(factor * TILE / 2)) + radius + patch_size)


def reach(radius: int, patch_size: int) -> int:
    """How far from a reference patch the image is read to make the copies of what it looks at."""
    smallest = min(FACTORS)
    return int(np.ceil((radius + patch_size + 1) / smallest + LOBES / min(smallest, 1.0))) + 1


def sheets(reach: Reach, tile: Tile, least_variance: float) -> list[Sheet]:
    """A scaled copy for each factor."""
    return [ScaledSheet(reach, tile, factor, least_variance) for factor in FACTORS]


def _taps(at: NDArray[np.floating], factor: float) -> tuple[Whole, NDArray[np.float64]]:
    """First source pixels and weights of a windowed sinc about source positions."""
    low_pass = min(factor, 1.0)
    half = int(np.ceil(LOBES / low_pass))
    bases = np.floor(at).astype(np.int64) - half + 1
    offsets = (bases[:, None] + np.arange(2 * half) - at[:, None]) * low_pass
    window = np.i0(_KAISER * np.sqrt(np.maximum(1 - (offsets / LOBES) ** 2, 0))) / np.i0(_KAISER)
    taps = np.where(np.abs(offsets) <= LOBES, np.sinc(offsets) * window, 0)
    return bases, taps / taps.sum(axis=1, keepdims=True)


@lru_cache(maxsize=64)
def make_stretch(factor: float, side: int) -> Stretch:
    """A square of `side` target pixels about the centre of a tile.

    Examples
    --------
    >>> smaller = make_stretch(0.5, 20)
    >>> smaller.taps.shape, round(float(smaller.noise), 2)
    ((20, 24), 0.24)
    """
    # Source positions, from the tile's pixel TILE // 2: the centre of a tile lies half a pixel before it.
    bases, taps = _taps((np.arange(side) - (side - 1) / 2) / factor - 0.5, factor)
    noise = (taps**2).sum(axis=1).mean() ** 2
    return Stretch(factor, bases, taps.astype(np.float32), float(noise))


def resized(image: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    """An image (H, W) scaled about its centre, of the same size.

    A larger copy is cut; around a smaller one its mirror image is seen.

    Examples
    --------
    >>> x = np.arange(-30.0, 31.0)
    >>> hill = np.exp(-np.add.outer(x**2, x**2) / 72)
    >>> bool(np.allclose(resized(hill, 0.5)[16:45, 16:45], hill[16:45, 16:45] ** 4, atol=0.02))
    True
    """
    height, width = image.shape
    return np.asarray(_resizing(height, factor) @ image @ _resizing(width, factor).T)


def stretched(image: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    """An image (H, W) scaled as a whole: its size is scaled too, rounded up.

    Examples
    --------
    >>> stretched(np.ones((10, 21)), 1.5).shape, bool(np.allclose(stretched(np.ones((10, 21)), 0.7), 1))
    ((15, 32), True)
    """
    rows, columns = (_resizing(count, factor, int(np.ceil(factor * count))) for count in image.shape)
    return np.asarray(rows @ image @ columns.T)


def _resizing(count: int, factor: float, scaled: int | None = None) -> NDArray[np.float64]:
    """The matrix that scales `count` pixels about their centre to `scaled` pixels, to as many when None.

    The image is mirrored at its ends.
    """
    size = count if scaled is None else scaled
    matrix = np.zeros((size, count))
    bases, taps = _taps((count - 1) / 2 + (np.arange(size) - (size - 1) / 2) / factor, factor)
    for row, base, weights in zip(matrix, bases, taps, strict=True):
        at = (base + np.arange(weights.size)) % (2 * count)
        np.add.at(row, np.where(at < count, at, 2 * count - 1 - at), weights)
    return matrix


class ScaledSheet:
    """What lies around a tile, scaled about the tile's centre."""

    put_back, same_noise = False, True

    def __init__(self, reach: Reach, tile: Tile, factor: float, least_variance: float) -> None:
        self._reach, self._tile = reach, tile
        self._floor = least_variance
        self.height = self.width = side_of(factor, reach.radius, reach.patch_size)
        self._stretch = make_stretch(factor, self.height)
        self.candidates = (2 * reach.radius + 1, 2 * reach.radius + 1)

    def corners(self, references: Whole) -> Whole:
        """Windows around the scaled places of the references."""
        half, centre = (self._reach.patch_size - 1) / 2, (self.height - 1) / 2
        middle = np.array([self._tile.top, self._tile.left]) + (TILE - 1) / 2
        scaled = self._stretch.factor * (references + half - middle) + centre - half
        corners: Whole = np.rint(scaled).astype(np.int64) - self._reach.radius
        return corners

    def fill(self, images: Images, weights: NDArray[np.float32], tall: Tall, first: int) -> None:
        """Scale the square."""
        height, width = self._reach.region.shape
        read = self._reach.region.read
        place = StretchPlace(
            centre_y=self._tile.top + TILE // 2,
            centre_x=self._tile.left + TILE // 2,
            height=height,
            width=width,
            origin_y=read.top,
            origin_x=read.left,
            first=first,
        )
        stretch_into(images, weights, self._floor, self._stretch, place, tall)
