"""Putting groups of patches back: accumulators per tile, added in tile order, then the weighted mean.

Floating point sums depend on their order, so every tile has accumulators of its own and they join the
image's in the fixed order of the tiles. The result is then the same for any number of workers, and only
tiles that wait for a slower predecessor are held.
"""

import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.numba.match import PADDING

Image = NDArray[np.float32]


@dataclass
class TileSums:
    """What one tile adds: weighted changes per pixel, weights at the patches' top left corners."""

    origin: tuple[int, int]
    sums: Image  # (h, w, 2): sums of weight * change and of weight * (1 - share kept) * change
    weights: Image  # (h, w)

    @classmethod
    def empty(cls, origin: tuple[int, int], height: int, width: int) -> "TileSums":
        """Nothing added yet; `origin` is the top left corner in the image."""
        return cls(origin, np.zeros((height, width, 2), np.float32), np.zeros((height, width), np.float32))


class Aggregate:
    """The image's accumulators. `add` may be called from any thread, in any order."""

    def __init__(self, height: int, width: int) -> None:
        self._total = TileSums.empty((0, 0), height, width)
        self._lock = threading.Lock()
        self._waiting: dict[int, TileSums] = {}
        self._next = 0

    def add(self, index: int, tile: TileSums) -> None:
        """Add tile number `index`; tiles that come early wait for their turn."""
        with self._lock:
            self._waiting[index] = tile
            while self._next in self._waiting:
                self._join(self._waiting.pop(self._next))
                self._next += 1

    def _join(self, tile: TileSums) -> None:
        top, left = tile.origin
        height, width = tile.weights.shape[:2]
        rows, columns = slice(top, top + height), slice(left, left + width)
        self._total.sums[rows, columns] += tile.sums
        self._total.weights[rows, columns] += tile.weights

    def images(self, working: Image, patch_size: int) -> tuple[Image, Image]:
        """The new pilot and the new working image, both (H, W)."""
        weights = spread(self._total.weights, patch_size)
        if not weights.min() > 0:
            raise RuntimeError(
                f"{np.count_nonzero(~(weights > 0))} pixels are covered by no patch; this is a fault of vnlem"
            )
        changes, kept = np.moveaxis(self._total.sums, -1, 0)
        return working + changes / weights, working + kept / weights


def spread(corners: Image, patch_size: int) -> Image:
    """Sum over all patches that cover a pixel of the value at the patch's top left corner.

    Examples
    --------
    >>> spread(np.array([[1, 0, 2, 0]], np.float32), 2)
    array([[1., 1., 2., 2.]], dtype=float32)
    """
    rows = corners.copy()
    for shift in range(1, min(patch_size, corners.shape[0])):
        rows[shift:] += corners[:-shift]
    result = rows.copy()
    for shift in range(1, min(patch_size, corners.shape[1])):
        result[:, shift:] += rows[:, :-shift]
    return result


def patch_sums(values: NDArray[np.floating], patch_size: int) -> NDArray[np.float64]:
    """Sum of an image (H, W) over each patch, at its top left corner: (H - p + 1, W - p + 1).

    Examples
    --------
    >>> patch_sums(np.arange(6.0).reshape(2, 3), 2)
    array([[ 8., 12.]])
    """
    rows = values.shape[0] - patch_size + 1
    columns = values.shape[1] - patch_size + 1
    vertical = np.zeros((rows, values.shape[1]))
    for shift in range(patch_size):
        vertical += values[shift : shift + rows]
    result = np.zeros((rows, columns))
    for shift in range(patch_size):
        result += vertical[:, shift : shift + columns]
    return result


def padded(image: NDArray[np.floating], fill: float = 0.0) -> Image:
    """An image with the spare columns the kernels read beyond the last one."""
    widths = [(0, 0)] * (image.ndim - 1) + [(0, PADDING)]
    return np.ascontiguousarray(np.pad(image, widths, constant_values=fill), dtype=np.float32)
