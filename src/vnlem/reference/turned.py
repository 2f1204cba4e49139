"""Turned copies of what lies around a tile, in plain NumPy: the oracle of the sheets that "so2" searches."""

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


class TurnedCopies:
    """The image with turned copies of what lies around one tile below it, in one tall array.

    Parameters
    ----------
    shape : (int, int)
        Size of the image.
    corner : (int, int)
        Top left corner of a reference patch in the tile.
    radius, patch_size : int
        How far its reference patches look.
    """

    def __init__(self, shape: tuple[int, int], corner: tuple[int, int], radius: int, patch_size: int) -> None:
        self._shape = shape
        farthest = 0.7072 * TILE + 1.4143 * (radius + patch_size)
        self.side = 2 * (int(np.ceil(1.09 * farthest)) + TAPS)
        # Where the square begins in the image, so that both have the same centre as the tile.
        self._begin = [at // TILE * TILE + (TILE - self.side) // 2 for at in corner]
        self._stacked: dict[int, tuple[Float, Float]] = {}

    def firsts(self) -> list[int]:
        """First row of each copy."""
        return [self._shape[0] + i * self.side for i in range(len(TURNS))]

    def stack(self, image: Float) -> Float:
        """(channels, H, W) -> the tall array."""
        known = self._stacked.get(id(image))
        if known is not None:
            return known[1]
        channels, height, width = image.shape
        tall = np.zeros((channels, height + len(TURNS) * self.side, max(width, self.side)))
        tall[:, :height, :width] = image
        rows, columns = (
            self._mirrored(np.arange(begin, begin + self.side), count)
            for begin, count in zip(self._begin, self._shape, strict=True)
        )
        for c in range(channels):
            square = image[c][np.ix_(rows, columns)]
            for first, angle in zip(self.firsts(), TURNS, strict=True):
                tall[c, first : first + self.side, : self.side] = turn_square(square, angle)
        # The image is kept beside its copies, so that its identity stays its own.
        self._stacked[id(image)] = (image, tall)
        return tall

    @staticmethod
    def _mirrored(positions: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        positions = positions % (2 * count)
        return np.where(positions < count, positions, 2 * count - 1 - positions)

    def outside(self) -> NDArray[np.bool_]:
        """Pixels of the tall array that show nothing of the image."""
        height, width = self._shape
        result = np.ones((height + len(TURNS) * self.side, max(width, self.side)), bool)
        result[:height, :width] = False
        centre = (self.side - 1) / 2
        i, j = np.mgrid[: self.side, : self.side] - centre
        for first, angle in zip(self.firsts(), TURNS, strict=True):
            c, s = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
            v = c * i + s * j + centre + self._begin[0]
            h = -s * i + c * j + centre + self._begin[1]
            shown = (v >= 0) & (v <= height - 1) & (h >= 0) & (h <= width - 1)
            result[first : first + self.side, : self.side] = ~shown
        return result

    def centres(self, corner: tuple[int, int], patch_size: int) -> list[tuple[int, int]]:
        """Top left corners, in the tall array, of the patches that show what a patch of the image shows."""
        half, centre = (patch_size - 1) / 2, (self.side - 1) / 2
        v, h = (at + half - begin - centre for at, begin in zip(corner, self._begin, strict=True))
        found = []
        for first, angle in zip(self.firsts(), TURNS, strict=True):
            c, s = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
            row = int(np.rint(c * v - s * h + centre - half))
            column = int(np.rint(s * v + c * h + centre - half))
            found.append((first + row, column))
        return found
