"""Copies of a whole image turned by any angle: three shears, each a row-wise shift by Fourier phases.

For devices, which hold an image as a whole; on the CPU every tile has its own (`vnlem.neighbours.turned`).

A shift by phases is an orthogonal map, so white noise stays white with the same variance and no detail is
lost, which interpolation could not promise. The copies widen the search for similar patches from the
symmetries of the square to all rotations.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.pipeline.device import namespace

Float = NDArray[np.float64]

# Angles of the turned copies that "so2" searches beside the image; the symmetries of the square do the rest.
TURNS = (15.0, 30.0, 45.0, 60.0, 75.0)


def shear_rows(image: Float, slope: float) -> Float:
    """Shift row y by slope * (y - centre) pixels to the right, periodically, by Fourier phases.

    Examples
    --------
    >>> square = np.random.default_rng(0).normal(size=(5, 5))
    >>> bool(np.allclose(shear_rows(shear_rows(square, 0.3), -0.3), square))
    True
    """
    xp = namespace(image)
    height, width = image.shape
    shifts = slope * (xp.arange(height) - (height - 1) / 2)
    frequencies = xp.fft.rfftfreq(width)
    phases = xp.exp(-2j * np.pi * shifts[:, None] * frequencies[None, :])
    if width % 2 == 0:
        # The Nyquist frequency has no sine: a real shift leaves its amplitude to the cosine's sign.
        phases[:, -1] = 1.0
    sheared: Float = xp.fft.irfft(xp.fft.rfft(image, axis=1) * phases, n=width, axis=1)
    return sheared


def turn_square(square: Float, degrees: float) -> Float:
    """A square array turned about its centre, counter-clockwise on the screen, by at most 45 degrees."""
    angle = np.deg2rad(degrees)
    slope, lift = np.tan(angle / 2), -np.sin(angle)
    first = shear_rows(square, slope)
    second = shear_rows(first.T, lift).T
    return shear_rows(second, slope)


class TurnedCopies:
    """An image and its turned copies, one below the other ("sheets") in one tall array.

    Parameters
    ----------
    height, width : int
        Size of the image.
    angles : sequence of float
        Degrees between 0 and 90; quarter turns are left to the symmetries of the square.

    Examples
    --------
    >>> copies = TurnedCopies(8, 8, [45.0])
    >>> [first for first, *_ in copies.sheets()]
    [0, 8]
    """

    def __init__(self, height: int, width: int, angles: tuple[float, ...]) -> None:
        self._size = (height, width)
        self._angles = angles
        # A margin lets a shear move content sideways without wrapping it into the image.
        diagonal = int(np.ceil(np.hypot(height, width)))
        self._side = diagonal + diagonal % 2 + 16
        self._canvas = max(self._side, width)

    def sheets(self) -> list[tuple[int, int, int]]:
        """First row, number of rows and of columns of every sheet."""
        height, width = self._size
        firsts = [height + i * self._side for i in range(len(self._angles))]
        return [(0, height, width)] + [(first, self._side, self._side) for first in firsts]

    def _on_canvas(self, plane: Float) -> Float:
        height, width = self._size
        top, left = (self._side - height) // 2, (self._side - width) // 2
        wide = ((top, self._side - height - top), (left, self._side - width - left))
        canvas: Float = namespace(plane).pad(plane, wide, mode="symmetric")
        return canvas

    def stack(self, image: NDArray[np.float32]) -> NDArray[np.float32]:
        """(channels, H, W) -> (channels, rows of all sheets, columns)."""
        xp = namespace(image)
        channels, height, width = image.shape
        rows = height + len(self._angles) * self._side
        tall: NDArray[np.float32] = xp.zeros((channels, rows, self._canvas), np.float32)
        tall[:, :height, :width] = image
        for channel in range(channels):
            canvas = self._on_canvas(image[channel].astype(np.float64))
            for (first, count, _), angle in zip(self.sheets()[1:], self._angles, strict=True):
                quarter = angle > 45
                turned = turn_square(xp.rot90(canvas) if quarter else canvas, angle - 90 * quarter)
                tall[channel, first : first + count, : self._side] = turned
        return tall

    def _turned_coordinates(self, y: Any, x: Any, angle: float) -> tuple[Any, Any]:
        """Where a point of the image lies in the copy turned by `angle`."""
        height, width = self._size
        centre = (self._side - 1) / 2
        v = y + (self._side - height) // 2 - centre
        h = x + (self._side - width) // 2 - centre
        c, s = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
        return c * v - s * h + centre, s * v + c * h + centre

    def outside(self) -> NDArray[np.bool_]:
        """Pixels of the tall array that show nothing of the image."""
        height, width = self._size
        result = np.ones((height + len(self._angles) * self._side, self._canvas), bool)
        result[:height, :width] = False
        y, x = np.mgrid[: self._side, : self._side].astype(float)
        centre = (self._side - 1) / 2
        for (first, count, _), angle in zip(self.sheets()[1:], self._angles, strict=True):
            c, s = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
            v = c * (y - centre) + s * (x - centre) + centre - (self._side - height) // 2
            h = -s * (y - centre) + c * (x - centre) + centre - (self._side - width) // 2
            shown = (v >= 0) & (v <= height - 1) & (h >= 0) & (h <= width - 1)
            result[first : first + count, : self._side] = ~shown
        return result

    def centres(self, corners: NDArray[np.int64], patch_size: int) -> NDArray[np.int64]:
        """Top left corners (r, angles, 2), in tall coordinates, of the patches seen at the same points."""
        half = (patch_size - 1) / 2
        found = np.empty((len(corners), len(self._angles), 2), np.int64)
        for i, ((first, *_), angle) in enumerate(zip(self.sheets()[1:], self._angles, strict=True)):
            v, h = self._turned_coordinates(corners[:, 0] + half, corners[:, 1] + half, angle)
            found[:, i, 0] = np.rint(v - half).astype(np.int64) + first
            found[:, i, 1] = np.rint(h - half).astype(np.int64)
        return found
