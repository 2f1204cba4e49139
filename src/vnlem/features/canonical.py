"""Ring features of a region in two frames: the image's own, and each pixel's SIFT orientation."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vnlem.features import orientation
from vnlem.features.rings import RingLayout, aligned, ring_features
from vnlem.kernels.cpu.vnlem import Features, squared_lengths
from vnlem.pipeline.device import namespace
from vnlem.pipeline.tiles import Tile
from vnlem.pipeline.workers import for_each

# Columns of zeros after the last one: kernels read candidates in eights and pixels in pairs.
SPARE_COLUMNS = 8
# Rows of an image whose features one task computes.
STRIP = 16


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
        """Extend an image (channels, height, width) by the support radius of features and orientations."""
        border = max(rings.halo, orientation.halo(scale, rings.patch_size))
        xp = namespace(pixels)
        padded = xp.pad(pixels, ((0, 0), (border, border), (border, border)), mode="symmetric")
        return cls(padded, xp.ascontiguousarray(padded.mean(axis=0)), border)

    def window(self, plane: NDArray[np.float32], tile: Tile, reach: int) -> NDArray[np.float32]:
        """A plane over a tile of the image and `reach` pixels around it."""
        shift = self.border - reach
        return plane[
            ...,
            tile.top + shift : tile.bottom + self.border + reach,
            tile.left + shift : tile.right + self.border + reach,
        ]


def canonical_region(
    image: Extended, tile: Tile, rings: RingLayout, scale: float, arc: float, *, with_raw: bool = True
) -> Features:
    """Features of the pixels of a tile, ready for the kernels.

    Raw features serve only unrotated matches; without them the canonical ones take their place.
    """
    region = _empty_region(*tile.shape, rings, with_raw)
    _fill(region, image, tile, rings, scale, arc, with_raw)
    return region


def whole_region(
    image: Extended, rings: RingLayout, scale: float, arc: float, workers: int = 1, *, with_raw: bool = True
) -> Features:
    """Features of all pixels of an image, strip by strip on `workers` threads; about 1 kB per pixel."""
    height, width = image.shape
    region = _empty_region(height, width, rings, with_raw)

    def work(top: int) -> None:
        bottom = min(top + STRIP, height)
        # Contiguous rows of the whole arrays.
        strip = Features(
            raw=region.raw[top:bottom],
            canonical=region.canonical[top:bottom],
            lengths=region.lengths[top:bottom],
            sharp=region.sharp[top:bottom],
            angle=region.angle[top:bottom],
            pixels=region.pixels[top:bottom],
            width=width,
        )
        _fill(strip, image, Tile(top, bottom, 0, width), rings, scale, arc, with_raw)

    for_each(work, range(0, height, STRIP), workers)
    return region


def _empty_region(height: int, width: int, rings: RingLayout, with_raw: bool) -> Features:
    wide = width + SPARE_COLUMNS
    canonical = aligned((height, wide, rings.dim))
    raw = aligned((height, wide, rings.dim)) if with_raw else canonical
    lengths, sharp, angle = (np.zeros((height, wide), dtype=np.float32) for _ in range(3))
    pixels = np.zeros((height, wide, rings.channels), dtype=np.float32)
    return Features(
        raw=raw, canonical=canonical, lengths=lengths, sharp=sharp, angle=angle, pixels=pixels, width=width
    )


def _fill(
    region: Features, image: Extended, tile: Tile, rings: RingLayout, scale: float, arc: float, with_raw: bool
) -> None:
    """Write the features of the pixels of a tile into a region of its size."""
    # Not where the region is allocated: the first write to new memory is slow, and strips share that work.
    for features in (region.raw, region.canonical):
        features[:, region.width :] = 0
    reach = orientation.halo(scale, rings.patch_size)
    found = orientation.orientation_of_region(
        image.window(image.grey, tile, reach), scale, rings.patch_size, arc, details=False
    )
    region.angle[:, : region.width] = found.angle
    raw = region.raw if with_raw else region.raw[:0]
    ring_features(image.window(image.padded, tile, rings.halo), found.angle, rings, (raw, region.canonical))
    squared_lengths(region.canonical, region.lengths)
    region.pixels[:, : region.width] = np.moveaxis(image.window(image.padded, tile, 0), 0, -1)
    if not rings.average_down:
        energy = disc_energy(image.window(image.padded, tile, rings.n_rings), rings.patch_size)
        beyond = energy - region.lengths[:, : region.width]
        region.sharp[:, : region.width] = np.maximum(beyond, 0)


def disc_energy(padded: NDArray[np.float32], patch_size: int) -> NDArray[np.float32]:
    """Integral of the squared pixels over the disc around every pixel, mean over the channels.

    padded: (channels, height, width) with a border of patch_size // 2 pixels. Pixels are added in the same
    order everywhere: the result does not depend on the region.

    >>> disc_energy(np.ones((1, 6, 7), dtype=np.float32), 5).round(3)
    array([[19.635, 19.635, 19.635],
           [19.635, 19.635, 19.635]], dtype=float32)
    """
    half = patch_size // 2
    squares = (padded**2).sum(axis=0)
    height, width = squares.shape[0] - 2 * half, squares.shape[1] - 2 * half
    offsets = _disc_offsets(half)
    total: NDArray[np.float32] = namespace(padded).zeros((height, width), dtype=np.float32)
    for y, x in offsets:
        total += squares[half + y : half + y + height, half + x : half + x + width]
    return total * np.float32(disc_share(patch_size, len(padded)))


def disc_share(patch_size: int, channels: int) -> float:
    """The factor from a sum of squared pixels over a disc and all channels to the disc's energy."""
    return math.pi / 4 * patch_size**2 / len(_disc_offsets(patch_size // 2)) / channels


def _disc_offsets(half: int) -> list[tuple[int, int]]:
    """The pixels of a disc that reaches `half` pixels and a half."""
    reach = range(-half, half + 1)
    return [(y, x) for y in reach for x in reach if math.hypot(y, x) <= half + 0.5]
