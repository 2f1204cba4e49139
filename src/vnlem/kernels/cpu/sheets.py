"""The images of a tile as VNLR's kernels see them, and how results return to the image.

The surroundings of a tile are cut out of the image and copied into one tall array per image: its sheets one
below another (see `vnlem.neighbours.sheets`). A patch is then one number, row * stride + column of its corner
in the tall arrays, whatever it was cut from. The results of a tile depend only on its tall arrays.
"""

from typing import NamedTuple

from vnlem.kernels.cpu.declare import (
    Byte2,
    Double3,
    Float1,
    Float3,
    Float4,
    Written,
    brief_kernel,
    kernel,
)
from vnlem.pipeline.tiles import Tile

# Candidates are compared in blocks of sixteen, so tall arrays have spare columns.
PADDING = 24


class Images(NamedTuple):
    """The images of one pass, (channels, H, W); variance also (channels, 1, 1)."""

    noisy: Float3
    working: Written[Float3]  # ever less noisy
    pilot: Written[Float3]  # the best estimate so far
    variance: Float3  # of the noise in `noisy`


class Tall(NamedTuple):
    """The tall arrays of one tile, (channels, rows, stride)."""

    compared: Written[Float3]  # in which patches are compared
    pilot: Written[Float3]
    working: Written[Float3]
    change: Written[Float3]  # (noisy - working)^2
    variance: Written[Float3]
    outside: Written[Byte2]  # (rows, stride): not zero if a sheet shows nothing of its image there


class Sums(NamedTuple):
    """What groups add to an image: weighted changes per pixel, weights at the patches' top left corners."""

    changes: Written[Float4]  # (channels, rows, columns, 2): of the pilot and the working image
    weights: Written[Float3]  # (channels, rows, columns)


class CutPlace(NamedTuple):
    """A rectangle of the images, and where it goes in the tall arrays."""

    top: int
    left: int
    height: int
    width: int
    first: int  # row


@brief_kernel
def cut(images: Images, weights: Float1, place: CutPlace, tall: Tall) -> None:
    """Copy a rectangle of the images into the tall arrays, with zeros to its right.

    weights: of each channel in comparisons.
    """


class Totals(NamedTuple):
    """Sums of the image, (channels, H, W): as `Sums`, and the weights that the next pass will add up."""

    changes: Written[Float4]
    weights: Written[Float3]
    next_weights: Written[Float3]


class TilePlace(NamedTuple):
    """Where a tile lies in the image, which it may exceed."""

    top: int
    left: int
    height: int
    width: int


@kernel
def settle(
    tile: Sums,
    place: TilePlace,
    total: Totals,
    taps: Float1,
    done: Tile,
    needed: Tile,
    images: Images,
) -> int:
    """Add a tile's sums to those of the image, and apply complete changes, in place.

    taps (p): weights of a patch's pixels, see `vnlem.kernels.cpu.ridge.Ridge`; symmetric. done: where the
    sums are complete; needed: where changes are applied. Complete sums are cleared for the next pass, those
    of the tile for another tile. Returns how many pixels no patch covers.
    """


@kernel
def sum_patches(planes: Float3, patch_size: int, squared: int, sums: Written[Double3]) -> None:
    """Sums of each plane (C, H, W), or of its squares, over all patches: (C, H - p + 1, W - p + 1)."""
