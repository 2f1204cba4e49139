"""Turned copies of the surroundings of a tile, in plain NumPy: the oracle of the sheets of "so2"."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

TURNS = (15.0, 30.0, 45.0, 60.0, 75.0)
TILE = 64
TAPS = 12


def shear_rows(square: Float, slope: float) -> Float:
    """Shift row y by slope * (y - centre) pixels to the right, by a windowed sinc of 12 taps.

    Examples
    --------
    >>> square = np.ones((40, 40))
    >>> bool(np.allclose(shear_rows(square, 0.3)[20, 10:30], 1))
    True
    """
    side = len(square)
    result = np.zeros_like(square)
    columns = np.arange(side)
    for y in range(side):
        shift = slope * (y - (side - 1) / 2)
        base = int(np.floor(shift))
        at = shift - base + np.arange(-(TAPS // 2), TAPS // 2)
        taps = np.sinc(at) * np.i0(2.5 * np.sqrt(np.maximum(1 - (at / (TAPS / 2)) ** 2, 0)))
        taps /= taps.sum()
        for m, tap in enumerate(taps):
            source = columns - base + m - TAPS // 2
            inside = (source >= 0) & (source < side)
            result[y, inside] += tap * square[y, source[inside]]
    return result


def turn_square(square: Float, degrees: float) -> Float:
    """A square turned about its centre, counter-clockwise on the screen, by 0 to 90 degrees."""
    if degrees > 45:
        square, degrees = np.rot90(square), degrees - 90
    angle = np.deg2rad(degrees)
    first = shear_rows(square, np.tan(angle / 2))
    second = shear_rows(first.T, -np.sin(angle)).T
    return shear_rows(second, np.tan(angle / 2))


@dataclass(frozen=True)
class Copy:
    """One copy, turned about the tile's centre."""

    first: int  # its first row in the tall array
    side: int
    degrees: float

    def to_image(self, i: Float, j: Float) -> tuple[Float, Float]:
        """The place in the image, from the tile's centre, of a place in the copy, from the copy's centre."""
        c, s = np.cos(np.deg2rad(self.degrees)), np.sin(np.deg2rad(self.degrees))
        return c * i + s * j, -s * i + c * j

    def from_image(self, v: float, h: float) -> tuple[float, float]:
        """The inverse of `to_image`."""
        c, s = np.cos(np.deg2rad(self.degrees)), np.sin(np.deg2rad(self.degrees))
        return c * v - s * h, s * v + c * h


class Copies:
    """The image with copies of the surroundings of one tile below it, in one tall array.

    Parameters
    ----------
    shape : (int, int)
        Size of the image.
    corner : (int, int)
        Top left corner of a reference patch in the tile.
    radius, patch_size : int
        The search radius in copies, and the patch size.
    """

    def __init__(self, shape: tuple[int, int], corner: tuple[int, int], radius: int, patch_size: int) -> None:
        self._shape, self.radius = shape, radius
        self._middle = [at // TILE * TILE + (TILE - 1) / 2 for at in corner]
        farthest = 0.7072 * TILE + 1.4143 * (radius + patch_size)
        turned = 2 * (int(np.ceil(1.09 * farthest)) + TAPS)
        self.copies = [Copy(shape[0] + turned * i, turned, degrees) for i, degrees in enumerate(TURNS)]
        self._size = (shape[0] + turned * len(TURNS), max(shape[1], turned))
        self._stacked: dict[int, tuple[Float, Float]] = {}
        self._variance: tuple[Float, Float] | None = None

    def stack(self, image: Float) -> Float:
        """(channels, H, W) -> the tall array."""
        known = self._stacked.get(id(image))
        if known is not None:
            return known[1]
        tall = np.zeros((len(image), *self._size))
        tall[:, : self._shape[0], : self._shape[1]] = image
        for copy in self.copies:
            for c, plane in enumerate(image):
                tall[c, copy.first : copy.first + copy.side, : copy.side] = self._turned(plane, copy)
        # The image is kept with its copies: while it lives, no other array can get its id.
        self._stacked[id(image)] = (image, tall)
        return tall

    def _turned(self, plane: Float, copy: Copy) -> Float:
        rows, columns = (
            self._mirrored(int(middle - (copy.side - 1) / 2) + np.arange(copy.side), count)
            for middle, count in zip(self._middle, self._shape, strict=True)
        )
        return turn_square(plane[np.ix_(rows, columns)], copy.degrees)

    def stack_variance(self, variance: Float) -> Float:
        """The noise variance in the tall array."""
        if self._variance is not None and self._variance[0] is variance:
            return self._variance[1]
        # Turning must not make a variance negative.
        tall: Float = np.maximum(self.stack(variance), variance.min())
        self._variance = (variance, tall)
        return tall

    @staticmethod
    def _mirrored(positions: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        positions = positions % (2 * count)
        return np.where(positions < count, positions, 2 * count - 1 - positions)

    def outside(self) -> NDArray[np.bool_]:
        """Pixels of the tall array that show nothing of the image."""
        height, width = self._shape
        result = np.ones(self._size, bool)
        result[:height, :width] = False
        for copy in self.copies:
            i, j = np.mgrid[: copy.side, : copy.side] - (copy.side - 1) / 2
            v, h = (place + middle for place, middle in zip(copy.to_image(i, j), self._middle, strict=True))
            shown = (v >= 0) & (v <= height - 1) & (h >= 0) & (h <= width - 1)
            result[copy.first : copy.first + copy.side, : copy.side] = ~shown
        return result

    def centres(self, corner: tuple[int, int], patch_size: int) -> list[tuple[int, int]]:
        """Top left corners, in the tall array, of the patches that show what a patch of the image shows."""
        half = (patch_size - 1) / 2
        v, h = (at + half - middle for at, middle in zip(corner, self._middle, strict=True))
        found = []
        for copy in self.copies:
            row, column = (int(np.rint(at + (copy.side - 1) / 2 - half)) for at in copy.from_image(v, h))
            found.append((copy.first + row, column))
        return found
