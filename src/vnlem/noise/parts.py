"""Parts of an image between a noise model's transform and its inverse: what each step needs and gives."""

from typing import NamedTuple

from vnlem.noise import tiled_filter
from vnlem.noise.model import NoiseModel
from vnlem.pipeline.regions import Region


class Steps(NamedTuple):
    """The regions that a part of an image goes through; each reads at most what the one before writes."""

    stabilise: Region
    denoise: Region
    unstabilise: Region


def steps(model: NoiseModel, region: Region) -> Steps:
    """The steps from what a region reads to what it writes.

    The filters of correlated noise write less than they read. Everything else works pixel by pixel.

    >>> from vnlem.pipeline.tiles import Tile
    >>> region = Region((1000, 1000), Tile(400, 500, 400, 500), Tile(200, 700, 200, 700))
    >>> steps(NoiseModel.camera(1.0), region).denoise == region
    True
    """
    shape, write, read = region
    if not model.is_correlated:
        return Steps(Region(shape, read, read), region, Region(shape, write, write))
    known, around = tiled_filter.certain(read, shape), tiled_filter.needed(write, shape)
    return Steps(Region(shape, known, read), Region(shape, around, known), Region(shape, write, around))


def halo(model: NoiseModel) -> int:
    """Pixels around a part that the first step needs, and the last one.

    >>> halo(NoiseModel.white(2.0))
    0
    """
    return tiled_filter.HALO if model.is_correlated else 0
