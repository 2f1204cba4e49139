"""Nearest neighbours under the RID over the whole image, exact: pruning by lower bounds, no window."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vnlem import tiles
from vnlem._kernels import vnlem as kernels
from vnlem._kernels import whole_image
from vnlem.features.rings import RingLayout


@dataclass(frozen=True)
class ImageIndex:
    """Features of a whole image with the moduli that bound their distances."""

    region: kernels.Region
    order_of_lane: NDArray[np.int64]
    order_moduli: NDArray[np.float32]
    ring_moduli: NDArray[np.float32]

    @classmethod
    def of(cls, region: kernels.Region, rings: RingLayout) -> "ImageIndex":
        """Index the features of a region that is the whole image."""
        dim = region.raw.shape[2]
        pixels = region.raw.shape[0] * region.raw.shape[1]
        order_of_lane = np.tile(rings.lane_order, rings.channels)
        # Padded to sixteen orders: the innermost loop is then two vectors and no remainder.
        orders = 16 * -(-(rings.highest_order + 1) // 16)
        order_moduli = np.empty((pixels, orders), dtype=np.float32)
        ring_moduli = np.empty((pixels, dim // 2), dtype=np.float32)
        whole_image.moduli(region.raw.reshape(-1, dim), order_of_lane, order_moduli, ring_moduli)
        return cls(region, order_of_lane, order_moduli, ring_moduli)


@dataclass(frozen=True)
class Found:
    """Neighbours of a list of pixels, nearest first.

    Attributes
    ----------
    position : ndarray of int64, shape (pixels, neighbours)
        Numbers of pixels in the index's region (row * stride + column).
    squared, which : ndarray
        Squared distance of features, and the angle that attains it (see the kernels).
    left : ndarray of int64, shape (4,)
        Pairs in all, and pairs left by each of the three bounds.
    """

    position: NDArray[np.int64]
    squared: NDArray[np.float32]
    which: NDArray[np.int64]
    left: NDArray[np.int64]


def find(
    index: ImageIndex,
    search: kernels.Search,
    rule: kernels.Rule,
    pixels: NDArray[np.int64],
    *,
    prune: bool = True,
    workers: int = 1,
    progress: tiles.ProgressCallback | None = None,
) -> Found:
    """The nearest neighbours of pixels (numbers in the region) among all pixels of the image.

    With ``prune=False`` every pair is searched over all angles; the result is the same.
    """
    count = min(search.n_neighbors, index.region.raw.shape[0] * index.region.width)
    position = np.empty((len(pixels), count), dtype=np.int64)
    squared = np.empty((len(pixels), count), dtype=np.float32)
    which = np.empty((len(pixels), count), dtype=np.int64)
    block = 64
    starts = range(0, len(pixels), block)
    left = np.zeros((len(starts), 4), dtype=np.int64)

    def work(number: int) -> None:
        part = slice(number * block, (number + 1) * block)
        whole_image.neighbours_in_image(
            index.region,
            search,
            rule,
            index.order_of_lane,
            index.order_moduli,
            index.ring_moduli,
            pixels[part],
            prune,
            position[part],
            squared[part],
            which[part],
            left[number],
        )

    tiles.for_each(work, range(len(starts)), workers, progress)
    return Found(position, squared, which, left.sum(axis=0))
