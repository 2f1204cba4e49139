"""VNLEM, the paper's Algorithm 1: features in canonical frames, neighbours by RID, gamma-power regression."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vnlem import checks, tiles
from vnlem._kernels import vnlem as kernels
from vnlem.features.canonical import Extended, canonical_region, expand
from vnlem.features.orientation import DEFAULT_ARC
from vnlem.features.rings import layout
from vnlem.frame import Job, Progress, Result, run
from vnlem.neighbours.window import make_search

# Large enough for the halo to be a small share of the work, small enough for many tiles in an image.
TILE = 128


@dataclass(frozen=True)
class VnlemParams:
    """Parameters of VNLEM, in the units of the standardised image; the paper's symbol in brackets."""

    patch_size: int  # q
    patch_distance: int  # N2
    n_neighbors: int  # N1
    bandwidth: float  # square root of epsilon
    gamma: float
    angle_range: float  # theta_l, degrees
    angle_step: float  # degrees
    try_unrotated: bool
    scale: float  # l
    arc: float  # delta, degrees
    upsample: int  # k of U_k


PAPER = VnlemParams(
    patch_size=13,
    patch_distance=10,
    n_neighbors=100,
    bandwidth=16.5,
    gamma=0.1,
    angle_range=30.0,
    angle_step=5.0,
    try_unrotated=True,
    scale=1.0,
    arc=DEFAULT_ARC,
    upsample=2,
)


def solve(job: Job[VnlemParams]) -> NDArray[np.float32]:
    """Algorithm 1 on the tiles of a standardised image."""
    params = job.params
    rings = layout(params.patch_size, params.upsample, len(job.pixels))
    search = make_search(
        rings,
        params.patch_distance,
        params.n_neighbors,
        math.ceil(params.n_neighbors / 2),
        params.angle_range,
        params.angle_step,
        params.try_unrotated,
    )
    image = Extended.of(job.pixels, rings, params.scale)
    height, width = image.shape
    out = np.empty_like(job.pixels)
    lane_order = np.tile(rings.lane_order, rings.channels)
    inverse_epsilon = np.float32(rings.distance_scale / params.bandwidth**2)

    def work(tile: tiles.Tile) -> None:
        around = expand(tile, params.patch_distance, height, width)
        region = canonical_region(image, around, rings, params.scale, params.arc)
        result = np.empty((rings.channels, tile.bottom - tile.top, tile.right - tile.left), dtype=np.float32)
        kernels.denoise_tile(
            region,
            search,
            lane_order,
            tile.top - around.top,
            tile.left - around.left,
            np.float32(rings.centre_factor),
            inverse_epsilon,
            np.float32(params.gamma),
            result,
        )
        out[:, tile.top : tile.bottom, tile.left : tile.right] = result

    tiles.for_each(work, tiles.grid(height, width, TILE, TILE), job.workers, job.progress)
    return out
