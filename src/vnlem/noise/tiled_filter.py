"""Filters of finite length, tile by tile: a part of an image gets the bytes that the whole would.

Tiles are anchored at the origin of the whole image. Each is transformed with the pixels that the filter
reaches around it, always in an array of the same size, so its bytes depend on these pixels alone.
"""

import numpy as np
from numpy.typing import NDArray

from vnlem.pipeline.regions import Region
from vnlem.pipeline.tiles import Tile

Float = NDArray[np.float64]

TILE = 64  # side in pixels of the output of one transform
REACH = 48  # of the filters, in pixels
TAPER = 16  # of these, over which a filter fades out
SIDE = TILE + 2 * REACH
# How far around a part of an image pixels are needed: to the end of its tiles, plus the filter's reach.
HALO = TILE - 1 + REACH
_DENSE = 512  # frequencies of a response before it becomes a filter of finite length


def frequencies() -> tuple[Float, Float]:
    """Rows and columns at which :func:`finite` takes a response, in cycles per pixel from 0 to 0.5.

    >>> rows, columns = frequencies()
    >>> rows.shape, columns.shape, float(rows.max()), float(columns.max())
    ((512, 1), (1, 257), 0.5, 0.5)
    """
    along: Float = np.arange(_DENSE // 2 + 1) / _DENSE
    return np.concatenate([along, along[-2:0:-1]])[:, None], along[None, :]


def finite(response: Float) -> Float:
    """The response, on the grid of one tile's transform, of the filter cut to REACH pixels on all sides.

    response: real, at :func:`frequencies`; that of a constant image is kept.

    >>> finite(np.full((512, 257), 2.0)).shape, float(finite(np.full((512, 257), 2.0)).std())
    ((160, 81), 0.0)
    """
    taps = np.fft.irfft2(response, (_DENSE, _DENSE))
    distance = np.arange(REACH + 1)
    fade = np.sin(0.5 * np.pi * np.minimum((REACH + 1 - distance) / TAPER, 1.0)) ** 2
    taps = taps[: REACH + 1, : REACH + 1] * np.outer(fade, fade)
    place = np.abs(np.arange(SIDE) - SIDE // 2)
    near = place <= REACH
    kernel = np.zeros((SIDE, SIDE))
    kernel[np.ix_(near, near)] = taps[np.ix_(place[near], place[near])]
    found: Float = np.fft.rfft2(np.fft.ifftshift(kernel)).real
    found *= response[0, 0] / found[0, 0]
    return found


def needed(write: Tile, shape: tuple[int, int]) -> Tile:
    """The part of an image that must be read to filter a part of it.

    >>> needed(Tile(100, 200, 0, 50), (1000, 300))
    Tile(top=16, bottom=304, left=0, right=112)
    """
    (top, bottom), (left, right) = (
        (max(start // TILE * TILE - REACH, 0), min(-(-stop // TILE) * TILE + REACH, size))
        for start, stop, size in zip(write[::2], write[1::2], shape, strict=True)
    )
    return Tile(top, bottom, left, right)


def certain(read: Tile, shape: tuple[int, int]) -> Tile:
    """The part of an image that can be filtered if only a part of it was read.

    >>> certain(Tile(16, 304, 0, 112), (1000, 300))
    Tile(top=64, bottom=256, left=0, right=64)
    """
    (top, bottom), (left, right) = (
        (
            0 if start == 0 else -(-(start + REACH) // TILE) * TILE,
            size if stop == size else (stop - REACH) // TILE * TILE,
        )
        for start, stop, size in zip(read[::2], read[1::2], shape, strict=True)
    )
    return Tile(top, bottom, left, right)


def filtered(plane: Float, response: Float, region: Region) -> Float:
    """The filtered pixels of ``region.write`` from those of ``region.read``.

    The image is mirrored at its edges.

    plane: the pixels of ``region.read``, which holds :func:`needed` pixels.
    response: from :func:`finite`.

    >>> image = np.random.default_rng(0).random((100, 300))
    >>> unchanged = filtered(image, finite(np.ones((512, 257))), Region.whole(100, 300))
    >>> bool(np.allclose(unchanged, image))
    True
    """
    from scipy import fft

    shape, write, read = region
    result = np.empty(write.shape)
    columns, beyond_columns = _mirrored(write.left, write.right, shape[1])
    for top in range(write.top // TILE * TILE, write.bottom, TILE):
        rows, beyond_rows = _mirrored(top, top + TILE, shape[0])
        strip = plane[np.ix_(rows - read.top, columns - read.left)]
        strip[beyond_rows], strip[:, beyond_columns] = 0.0, 0.0
        for number, left in enumerate(range(write.left // TILE * TILE, write.right, TILE)):
            window = strip[:, number * TILE : number * TILE + SIDE]
            # One call per tile: in larger batches rounding could depend on a tile's place.
            done = fft.irfft2(fft.rfft2(window, workers=1) * response, (SIDE, SIDE), workers=1)
            tile = Tile(
                max(top, write.top),
                min(top + TILE, write.bottom),
                max(left, write.left),
                min(left + TILE, write.right),
            )
            corner = Tile(top - REACH, top + TILE + REACH, left - REACH, left + TILE + REACH)
            result[tile.inside(write)] = done[tile.inside(corner)]
    return result


def _mirrored(start: int, stop: int, size: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Lines that the tiles from `start` to `stop` read, and which of them no pixel of the image needs."""
    lines = np.arange(start // TILE * TILE - REACH, -(-stop // TILE) * TILE + REACH)
    beyond = lines >= size + REACH
    lines = np.minimum(lines, size + REACH - 1) % (2 * size)
    return np.where(lines < size, lines, 2 * size - 1 - lines), beyond
