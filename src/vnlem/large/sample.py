"""A sample of a large array, to estimate noise and brightness and to identify the array."""

import hashlib
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.large.boxes import Box
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

    Examples
    --------
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
        planes = _mosaic(source, channels)
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

    Examples
    --------
    >>> from vnlem.large.sources import open_source
    >>> sample_of_map(open_source(np.zeros((3, 20, 30))), np.ones((20, 30), bool)).shape
    (3, 20, 30)
    """
    if is_all(source):
        pages = prod(source.shape[: source.axes.index("y")]) // _joint(source)
        return np.broadcast_to(values, (pages, *values.shape))
    height, width = (min(TILE, size) for size in source.shape[-2:])
    tiles = [
        values[top:bottom, left:right] for *_, (top, bottom), (left, right) in _tiles(source, (height, width))
    ]
    rows = [np.concatenate(tiles[k : k + PER_SIDE], axis=1) for k in range(0, PER_SIDE**2, PER_SIDE)]
    return np.concatenate(rows)[None]


def _joint(source: Source) -> int:
    axis = source.axis("c")
    return source.shape[axis] if source.colour and axis is not None else 1


def _mosaic(source: Source, channels: int) -> NDArray[Any]:
    height, width = (min(TILE, size) for size in source.shape[-2:])
    mosaic = np.empty((channels, PER_SIDE * height, PER_SIDE * width), source.dtype)
    for number, box in enumerate(_tiles(source, (height, width))):
        row, column = divmod(number, PER_SIDE)
        tile = source.read(box).reshape(channels, height, width)
        mosaic[:, row * height : (row + 1) * height, column * width : (column + 1) * width] = tile
    return mosaic[None] if channels > 1 else mosaic


def _tiles(source: Source, tile: tuple[int, int]) -> list[Box]:
    """Boxes of one tile each: spread over rows and columns, cycling through the other axes."""
    leading = [
        1 if source.colour and name == "c" else size
        for name, size in zip(source.axes, source.shape, strict=True)
    ][:-2]
    count = PER_SIDE**2
    boxes = []
    for number in range(count):
        row, column = divmod(number, PER_SIDE)
        page = number * prod(leading) // count
        spans = []
        for axis in reversed(range(len(leading))):
            page, index = divmod(page, leading[axis])
            joint = source.colour and source.axes[axis] == "c"
            spans.append((0, source.shape[axis]) if joint else (index, index + 1))
        y, x = (
            (place * (size - side)) // (PER_SIDE - 1)
            for place, size, side in zip((row, column), source.shape[-2:], tile, strict=True)
        )
        boxes.append((*spans[::-1], (y, y + tile[0]), (x, x + tile[1])))
    return boxes
