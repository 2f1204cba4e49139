"""What is done to every pixel of an image, strip by strip on all workers, with the bytes of the whole."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.noise import tiled
from vnlem.noise.model import NoiseModel
from vnlem.pipeline.regions import Region
from vnlem.pipeline.tiles import Tile
from vnlem.pipeline.workers import Pool

Float = NDArray[np.float64]

ROWS = tiled.TILE  # of a strip: filters work in tiles of this side


def pixel_by_pixel(function: Callable[..., Any], pool: Pool, *planes: Float) -> Float:
    """A function of planes (C, H, W) of one shape in which every pixel depends on the same pixels alone.

    Examples
    --------
    >>> with Pool(2) as pool:
    ...     pixel_by_pixel(np.add, pool, np.ones((1, 100, 3)), np.ones((1, 100, 3))).sum()
    np.float64(600.0)
    """
    result: Float = np.empty(planes[0].shape)

    def work(top: int) -> None:
        rows = slice(top, top + ROWS)
        result[:, rows] = function(*(one[:, rows] for one in planes))

    pool.for_each(work, range(0, result.shape[1], ROWS))
    return result


def stabilise(model: NoiseModel, planes: Float, pool: Pool) -> Float:
    """:meth:`NoiseModel.stabilise`.

    Examples
    --------
    >>> photons = np.random.default_rng(0).poisson(9.0, (1, 150, 40)).astype(float)
    >>> model = NoiseModel.camera(1.0)
    >>> with Pool(2) as pool:
    ...     bool((stabilise(model, photons, pool) == model.stabilise(photons)).all())
    True
    """
    return _in_regions(lambda part, region: model.stabilise(part, region=region), model, planes, pool)


def unstabilise(model: NoiseModel, planes: Float, pool: Pool) -> Float:
    """:meth:`NoiseModel.unstabilise`."""
    return _in_regions(model.unstabilise, model, planes, pool)


def _in_regions(
    function: Callable[[Float, Region], Float], model: NoiseModel, planes: Float, pool: Pool
) -> Float:
    """A transform of a model. Only the filters of correlated noise look around a pixel."""
    _, height, width = planes.shape
    result = np.empty(planes.shape)

    def work(top: int) -> None:
        write = Tile(top, min(top + ROWS, height), 0, width)
        read = tiled.needed(write, (height, width)) if model.is_correlated else write
        region = Region((height, width), write, read)
        result[:, write.top : write.bottom] = function(planes[:, read.top : read.bottom], region)

    pool.for_each(work, range(0, height, ROWS))
    return result
