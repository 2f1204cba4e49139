"""Parts of an image at full and at half its size: where they lie, and what is certain about them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.estimate.scales import LOBES
from vnlem.pipeline.tiles import Tile

FILTER_REACH = 8  # pixels that halving reads around twice a coarse part, rounded up to be even
DOUBLE_REACH = LOBES  # coarse pixels that doubling reads around a part


def half_of(shape: tuple[int, int]) -> tuple[int, int]:
    """Height and width of an image at half its size.

    >>> half_of((5, 8))
    (3, 4)
    """
    return -(-shape[0] // 2), -(-shape[1] // 2)


def part_of(planes: NDArray[Any], of: Tile, tile: Tile) -> NDArray[Any]:
    """The pixels of a tile in planes (C, H, W) that are those of a larger tile."""
    if not of.contains(tile):
        raise ValueError(f"{tuple(tile)} is needed and {tuple(of)} is there (top, bottom, left, right)")
    return planes[:, *tile.inside(of)]


def halve_part(
    planes: Any, read: Tile, shape: tuple[int, int], halve: Callable[[Any], Any]
) -> tuple[Any, Tile]:
    """A part at half its size, and where it lies in the whole at half its size: only what is certain.

    halve: :func:`vnlem.estimate.scales.halve`, or its counterpart on a device.
    """
    even = Tile(
        read.top + read.top % 2,
        read.bottom if read.bottom == shape[0] else read.bottom - read.bottom % 2,
        read.left + read.left % 2,
        read.right if read.right == shape[1] else read.right - read.right % 2,
    )
    smaller = halve(part_of(planes, read, even))
    found = even.halved()
    # At an edge that is not the image's own, the filter read a mirror image.
    edge = FILTER_REACH // 2 - 1
    known = Tile(
        found.top + edge * (even.top > 0),
        found.bottom - edge * (even.bottom < shape[0]),
        found.left + edge * (even.left > 0),
        found.right - edge * (even.right < shape[1]),
    )
    return part_of(smaller, found, known), known


def needed_to_double(tile: Tile, shape: tuple[int, int]) -> Tile:
    """The coarse pixels that `double_part` needs for a tile of an image of this shape."""
    return tile.halved().grown(DOUBLE_REACH, half_of(shape))


def double_part(
    coarse: NDArray[np.float64],
    tile: Tile,
    shape: tuple[int, int],
    double: Callable[[Any, int, int], NDArray[np.float64]],
) -> NDArray[np.float64]:
    """A tile at full size, from the pixels of the image at half its size that `needed_to_double` names."""
    fine = needed_to_double(tile, shape).doubled(shape)
    found = double(coarse, *fine.shape)
    return part_of(found, fine, tile)
