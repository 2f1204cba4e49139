"""Ring features of a region in two frames: the image's own, and each pixel's SIFT orientation."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vnlem.features import orientation
from vnlem.features.rings import RingLayout, ring_features
from vnlem.kernels.numba.neighbours import squared_lengths
from vnlem.kernels.numba.vnlem import Region
from vnlem.pipeline.tiles import Tile

# Kernels read candidates in fours and pixels in pairs: so many columns of zeros follow the last one.
SPARE_COLUMNS = 4


@dataclass(frozen=True)
class Extended:
    """A standardised image with its symmetric extension, wide enough for features at its border."""

    padded: NDArray[np.float32]  # (channels, height + 2 border, width + 2 border)
    grey: NDArray[np.float32]  # mean over the channels
    border: int

    @property
    def shape(self) -> tuple[int, int]:
        return (self.grey.shape[0] - 2 * self.border, self.grey.shape[1] - 2 * self.border)

    @classmethod
    def of(cls, pixels: NDArray[np.float32], rings: RingLayout, scale: float) -> "Extended":
        """Extend an image (channels, height, width) by what features and orientations look at."""
        border = max(rings.halo, orientation.halo(scale, rings.patch_size))
        padded = np.pad(pixels, ((0, 0), (border, border), (border, border)), mode="symmetric")
        return cls(padded, np.ascontiguousarray(padded.mean(axis=0)), border)

    def window(self, plane: NDArray[np.float32], tile: Tile, reach: int) -> NDArray[np.float32]:
        """A plane over a tile of the image and `reach` pixels around it."""
        shift = self.border - reach
        return plane[
            ...,
            tile.top + shift : tile.bottom + self.border + reach,
            tile.left + shift : tile.right + self.border + reach,
        ]


def expand(tile: Tile, reach: int, height: int, width: int) -> Tile:
    """A tile with `reach` pixels around it, clipped to the image.

    Examples
    --------
    >>> expand(Tile(0, 4, 2, 6), 3, 100, 8)
    Tile(top=0, bottom=7, left=0, right=8)
    """
    return Tile(
        max(tile.top - reach, 0),
        min(tile.bottom + reach, height),
        max(tile.left - reach, 0),
        min(tile.right + reach, width),
    )


def canonical_region(image: Extended, tile: Tile, rings: RingLayout, scale: float, arc: float) -> Region:
    """Features of the pixels of a tile, ready for the kernels."""
    reach = orientation.halo(scale, rings.patch_size)
    found = orientation.orientation_of_region(
        image.window(image.grey, tile, reach), scale, rings.patch_size, arc
    )
    return region_with_angles(image, tile, rings, found.angle)


def region_with_angles(image: Extended, tile: Tile, rings: RingLayout, angles: NDArray[np.float32]) -> Region:
    """Features of the pixels of a tile, in frames turned by given angles."""
    raw, canonical = ring_features(
        image.window(image.padded, tile, rings.halo), angles, rings, spare_columns=SPARE_COLUMNS
    )
    lengths = np.empty(raw.shape[:2], dtype=np.float32)
    squared_lengths(raw, lengths)
    width = tile.right - tile.left
    beside = ((0, 0), (0, raw.shape[1] - width))
    pixels = np.zeros((*lengths.shape, rings.channels), dtype=np.float32)
    pixels[:, :width] = np.moveaxis(image.window(image.padded, tile, 0), 0, -1)
    sharp = np.zeros_like(lengths)
    if not rings.average_down:
        energy = disc_energy(image.window(image.padded, tile, rings.n_rings), rings.patch_size)
        sharp[:, :width] = np.maximum(energy - lengths[:, :width], 0)
    return Region(raw, canonical, lengths, sharp, np.pad(angles, beside), pixels, width)


def disc_energy(padded: NDArray[np.float32], patch_size: int) -> NDArray[np.float32]:
    """Integral of the squared pixels over the disc around every pixel, mean over the channels.

    padded: (channels, height, width) with a border of patch_size // 2 pixels. Pixel is added to pixel in one
    order everywhere: the result does not depend on the region.

    Examples
    --------
    >>> disc_energy(np.ones((1, 6, 7), dtype=np.float32), 5).round(3)
    array([[19.635, 19.635, 19.635],
           [19.635, 19.635, 19.635]], dtype=float32)
    """
    half = patch_size // 2
    squares = (padded**2).sum(axis=0)
    height, width = squares.shape[0] - 2 * half, squares.shape[1] - 2 * half
    offsets = [
        (y, x)
        for y in range(-half, half + 1)
        for x in range(-half, half + 1)
        if math.hypot(y, x) <= half + 0.5
    ]
    total = np.zeros((height, width), dtype=np.float32)
    for y, x in offsets:
        total += squares[half + y : half + y + height, half + x : half + x + width]
    area = math.pi / 4 * patch_size**2
    return total * np.float32(area / len(offsets) / len(padded))
