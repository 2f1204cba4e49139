"""Nearest neighbours under the RID over the whole image, exact: pruning by lower bounds, no window."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem.features.canonical import Extended, whole_region
from vnlem.features.orientation import DEFAULT_ARC
from vnlem.features.rings import RingLayout, layout
from vnlem.kernels.cpu import vnlem as kernels
from vnlem.kernels.cpu import whole_image
from vnlem.kernels.cpu.vnlem import IDENTITY
from vnlem.neighbours.rid import check_angles
from vnlem.neighbours.window import make_search
from vnlem.pipeline import checks
from vnlem.pipeline.image import to_planes
from vnlem.pipeline.progress import ProgressCallback
from vnlem.pipeline.workers import for_each


@dataclass(frozen=True)
class ImageIndex:
    """Features of a whole image with the moduli that bound their distances."""

    region: kernels.Features
    order_of_lane: NDArray[np.int64]
    order_moduli: NDArray[np.float32]
    ring_moduli: NDArray[np.float32]

    @classmethod
    def of(cls, region: kernels.Features, rings: RingLayout) -> "ImageIndex":
        """Index the features of a region that is the whole image."""
        dim = region.raw.shape[2]
        pixels = region.raw.shape[0] * region.raw.shape[1]
        order_of_lane = np.tile(rings.lane_order, rings.channels)
        order_moduli = np.empty((rings.highest_order + 1, pixels), dtype=np.float32)
        ring_moduli = np.empty((pixels, dim // 2), dtype=np.float32)
        whole_image.moduli(region.raw.reshape(-1, dim), order_of_lane, order_moduli, ring_moduli)
        return cls(region, order_of_lane, order_moduli, ring_moduli)


@dataclass(frozen=True)
class FoundInImage:
    """Neighbours of a list of pixels, nearest first.

    position: (pixels, neighbours), numbers of pixels in the index's region (row * stride + column).
    squared, which: squared distance of features, and the angle that attains it (see the kernels).
    left: (4,), pairs in all, and pairs left by each of the three bounds.
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
    progress: ProgressCallback | None = None,
) -> FoundInImage:
    """The nearest neighbours of pixels (numbers in the region) among all pixels of the image.

    With ``prune=False`` every pair is searched over all angles; the result is the same.
    """
    count = min(search.n_neighbors, index.region.raw.shape[0] * index.region.width)
    pixels = np.ascontiguousarray(pixels)
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
            whole_image.Index(index.order_of_lane, index.order_moduli, index.ring_moduli),
            pixels[part],
            prune,
            whole_image.Found(position[part], squared[part], which[part]),
            left[number],
        )

    for_each(work, range(len(starts)), workers, progress)
    return FoundInImage(position, squared, which, left.sum(axis=0))


@dataclass(frozen=True)
class Matches:
    """Patches of one image nearest to one of them, nearest first.

    distance: scaled to a square patch of patch_size^2 pixels.
    angle: rotation in radians that takes the match onto the patch; 0 if it is not rotated.
    factor: by which the match is made larger or smaller before.
    """

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    distance: NDArray[np.float64]
    angle: NDArray[np.float64]
    factor: NDArray[np.float64]


def matches(
    image: ArrayLike,
    at: tuple[int, int],
    count: int = 49,
    *,
    patch_size: int = 13,
    rotated: bool = True,
    angle_range: float = 30.0,
    angle_step: float = 5.0,
    scale: float = 1.0,
) -> Matches:
    """The patches of an image nearest to the one at (row, column), itself included.

    image: (height, width).
    at: (row, column).
    count: how many, at most the number of pixels.
    rotated: by the rotation-invariant distance; otherwise by the Euclidean one, on the same features.
    angle_range, angle_step, scale: as in :func:`vnlem.denoise_vnlem`.

    >>> image = np.add.outer(np.arange(20.0) ** 2, np.arange(20.0))
    >>> found = matches(image, (10, 10), 5)
    >>> int(found.row[0]), int(found.column[0]), float(found.distance[0])
    (10, 10, 0.0)
    """
    pixels = to_planes(image).data[0]
    row, column, patch_size, count = checked_place(pixels, at, patch_size, count)
    angle_range, angle_step = check_angles(angle_range, angle_step)
    # One scale for the whole image keeps float32 accurate; distances are mapped back.
    spread = float(pixels.std()) or 1.0
    standard = ((pixels - pixels.mean()) / spread).astype(np.float32)[None]
    rings = layout(patch_size)
    extended = Extended.of(standard, rings, scale)
    region = whole_region(extended, rings, scale, DEFAULT_ARC)
    search = make_search(
        rings=rings,
        patch_distance=10,
        n_candidates=count,
        n_neighbors=count,
        angle_range=angle_range,
        angle_step=angle_step,
        try_unrotated=True,
    )
    # With a margin that no rotation can beat, the Euclidean distance is left.
    rule = kernels.Rule(
        with_margin=not rotated,
        factor=1.0,
        offset=1e30,
        noise=0.0,
        inverse_bandwidths=np.ones(1, dtype=np.float32),
        own_as_best=False,
        gamma=2.0,
        step=1.0,
    )
    own = row * region.raw.shape[1] + column
    found = find(ImageIndex.of(region, rings), search, rule, np.array([own]), prune=rotated)
    rows, columns = np.divmod(found.position[0], region.raw.shape[1])
    which = found.which[0]
    turned = np.where(which == IDENTITY, 0.0, np.radians(angle_step) * np.where(which == IDENTITY, 0, which))
    difference = region.angle[row, column].astype(float) - region.angle[rows, columns]
    angle = np.where(which == IDENTITY, 0.0, np.angle(np.exp(1j * (difference + turned))))
    distance = spread * np.sqrt(found.squared[0].astype(np.float64) * rings.distance_scale)
    return Matches(rows, columns, distance, angle, np.ones(len(rows)))


def checked_place(
    pixels: NDArray[np.float64], at: tuple[int, int], patch_size: int, count: int
) -> tuple[int, int, int, int]:
    """Row and column of a patch, its size and a number of neighbours, or a clear error.

    >>> checked_place(np.zeros((20, 20)), (3, 4), 13, 49)
    (3, 4, 13, 49)
    """
    row, column = (checks.whole("at", value, 0) for value in at)
    height, width = pixels.shape
    if row >= height or column >= width:
        raise ValueError(f"at is ({row}, {column}) but the image has {height}x{width} pixels")
    patch_size = checks.odd("patch_size", patch_size, 3)
    if min(height, width) < patch_size:
        raise ValueError(f"the image ({height}x{width}) is smaller than the patch ({patch_size})")
    count = checks.whole("count", count)
    if count > pixels.size:
        raise ValueError(f"count is {count} but the image has only {pixels.size} patches")
    return row, column, patch_size, count
