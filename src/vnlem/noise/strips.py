"""Work on every pixel of an image, strip by strip on all workers, with the same bytes as the whole."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.noise import tiled_filter
from vnlem.noise.model import NoiseModel
from vnlem.noise.rician import Rician
from vnlem.pipeline.regions import Region
from vnlem.pipeline.workers import Pool

Float = NDArray[np.float64]

ROWS = tiled_filter.TILE  # of a strip: filters work in tiles of this side


def pixel_by_pixel(function: Callable[..., Any], pool: Pool, *planes: Float) -> Float:
    """A function of planes (C, H, W) of one shape that works on every pixel separately.

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


def stabilise(model: NoiseModel, planes: Float, pool: Pool, region: Region | None = None) -> Float:
    """:meth:`NoiseModel.stabilise`: what a region writes from what it reads, the whole image when None.

    >>> photons = np.random.default_rng(0).poisson(9.0, (1, 150, 40)).astype(float)
    >>> model = NoiseModel.camera(1.0)
    >>> with Pool(2) as pool:
    ...     bool((stabilise(model, photons, pool) == model.stabilise(photons)).all())
    True
    """
    return _in_strips(lambda part, own: model.stabilise(part, region=own), model, planes, pool, region)


def unstabilise(model: NoiseModel, planes: Float, pool: Pool, region: Region | None = None) -> Float:
    """:meth:`NoiseModel.unstabilise`, strip by strip."""
    return _in_strips(model.unstabilise, model, planes, pool, region)


def limits(model: NoiseModel, planes: Float) -> tuple[float, float]:
    """The range of the pixels without their noise: that of the image. Magnitudes may also be zero.

    >>> magnitudes = np.array([[[0.5, 3.0]]])
    >>> limits(NoiseModel.camera(1.0), magnitudes), limits(NoiseModel.rician(1.0), magnitudes)
    ((0.5, 3.0), (0.0, 3.0))
    """
    low, high = float(planes.min()), float(planes.max())
    biased = any(isinstance(curve.law, Rician) for curve in model.curves)
    return min(low, 0.0) if biased else low, high


def _in_strips(
    function: Callable[[Float, Region], Float],
    model: NoiseModel,
    planes: Float,
    pool: Pool,
    region: Region | None,
) -> Float:
    """A transform of a model. Only the filters of correlated noise use pixels around a pixel."""
    shape, write, read = region or Region.whole(*planes.shape[1:])
    result = np.empty((len(planes), *write.shape))

    def work(first: int) -> None:
        strip = write._replace(top=max(first, write.top), bottom=min(first + ROWS, write.bottom))
        needed = tiled_filter.needed(strip, shape) if model.is_correlated else strip
        part = planes[:, *needed.inside(read)]
        result[:, *strip.inside(write)] = function(part, Region(shape, strip, needed))

    pool.for_each(work, range(write.top // ROWS * ROWS, write.bottom, ROWS))
    return result
