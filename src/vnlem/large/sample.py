"""A sample of a large array, to estimate noise and brightness and to identify the array."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.large.boxes import Box, slices
from vnlem.large.sources import Source
from vnlem.pipeline import checks

MOST_PIXELS = 2**24  # up to here the sample is the array itself
TILE = 512
PER_SIDE = 8  # tiles of a sample along both sides of the mosaic they form


@dataclass(frozen=True)
class SourceSample:
    """Some pixels of a source, and their fingerprint."""

    planes: NDArray[Any]  # (n, height, width), or (n, channels, height, width) for colours
    digest: str


def is_all(source: Source) -> bool:
    """Whether the sample of a source is the source itself."""
    return prod(source.shape) <= MOST_PIXELS


def take_sample(source: Source) -> SourceSample:
    """The whole array if it is small, else a mosaic of tiles spread evenly over it.

    The choice depends only on the shape, so every process gets the same sample.

    >>> from vnlem.large.sources import open_source
    >>> take_sample(open_source(np.zeros((3, 20, 30)))).planes.shape
    (3, 20, 30)
    """
    channels = _joint(source)
    if is_all(source):
        pixels = source.read(tuple((0, size) for size in source.shape))
        planes = pixels.reshape(-1, *source.shape[source.axes.index("y") :])
        if channels > 1:
            planes = np.moveaxis(pixels, source.axes.index("c"), -3).reshape(-1, channels, *planes.shape[1:])
    else:
        planes = _mosaic(source, channels, source.dtype, source.read)
    if planes.dtype.kind == "f":
        if np.isinf(planes).any():
            raise ValueError(f"{source.name} holds infinite values; replace them first, e.g. with NaN")
        valid = planes[~np.isnan(planes)]
        if not valid.size:
            raise ValueError(
                f"all pixels of {source.name} that were looked at are NaN; nothing is there to denoise"
            )
        checks.refuse_outliers(source.name, valid if valid.size < planes.size else planes)
    digest = hashlib.sha256(np.ascontiguousarray(planes).tobytes()).hexdigest()[:32]
    return SourceSample(planes, digest)


def sample_of_map(source: Source, values: NDArray[Any]) -> NDArray[Any]:
    """A map (height, width) of a source, laid out as :func:`take_sample` lays out its pages.

    >>> from vnlem.large.sources import open_source
    >>> sample_of_map(open_source(np.zeros((3, 20, 30))), np.ones((20, 30), bool)).shape
    (3, 20, 30)
    """
    if is_all(source):
        pages = prod(source.shape[: source.axes.index("y")]) // _joint(source)
        return np.broadcast_to(values, (pages, *values.shape))
    return _mosaic(source, 1, values.dtype, lambda box: values[slices(box[-2:])])


def _joint(source: Source) -> int:
    axis = source.axis("c")
    return source.shape[axis] if source.colour and axis is not None else 1


def _mosaic(
    source: Source, channels: int, dtype: np.dtype[Any], read: Callable[[Box], NDArray[Any]]
) -> NDArray[Any]:
    height, width = (min(TILE, size) for size in source.shape[-2:])
    mosaic = np.empty((channels, PER_SIDE * height, PER_SIDE * width), dtype)
    for number, box in enumerate(_tiles(source, (height, width))):
        row, column = divmod(number, PER_SIDE)
        tile = read(box).reshape(channels, height, width)
        mosaic[:, row * height : (row + 1) * height, column * width : (column + 1) * width] = tile
    return mosaic[None] if channels > 1 else mosaic


def _tiles(source: Source, tile: tuple[int, int]) -> list[Box]:
    """Boxes of one tile each: spread over rows and columns, cycling through the other axes."""
    joint = [source.colour and name == "c" for name in source.axes[:-2]]
    leading = [1 if whole else size for whole, size in zip(joint, source.shape, strict=False)]
    count = PER_SIDE**2
    boxes = []
    for number in range(count):
        row, column = divmod(number, PER_SIDE)
        pages = np.unravel_index(number * prod(leading) // count, leading) if leading else ()
        spans = [
            (0, size) if whole else (int(page), int(page) + 1)
            for whole, size, page in zip(joint, source.shape, pages, strict=False)
        ]
        y, x = (
            (place * (size - side)) // (PER_SIDE - 1)
            for place, size, side in zip((row, column), source.shape[-2:], tile, strict=True)
        )
        boxes.append((*spans, (y, y + tile[0]), (x, x + tile[1])))
    return boxes
