"""Shared by the window methods (NLM, NLEM, NLPR): their parameters and the loop over the tiles."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.estimate.weights import inverse_square
from vnlem.features.square import noise_bandwidth
from vnlem.kernels.cpu.patch_distance import Decay, Window
from vnlem.pipeline import checks
from vnlem.pipeline.device import namespace
from vnlem.pipeline.run import Job
from vnlem.pipeline.tiles import Tile, grid
from vnlem.pipeline.workers import for_each

# Limits for signals (1) and images (2): beyond them patches and windows take too much memory to be useful.
LARGEST_PATCH = {1: 9999, 2: 99}
LARGEST_DISTANCE = {1: 5000, 2: 100}


@dataclass(frozen=True)
class WindowParams:
    """Parameters of a window method, in standardised units."""

    patch_size: int  # q
    patch_distance: int  # N2: the window is (2 N2 + 1) pixels a side
    n_neighbors: int  # N1: patches of the window that are kept
    bandwidth: float  # square root of the paper's epsilon
    gamma: float  # power of the norm in the regression: 2 mean, 1 median
    noise_correction: bool  # subtract the expected contribution of noise from squared distances


def check_params(
    sigma: float,
    ndim: int,
    *,
    patch_size: Any,
    patch_distance: Any,
    gamma: Any,
    noise_correction: Any,
    n_neighbors: Any = None,
    bandwidth: Any = None,
) -> WindowParams:
    """Validated parameters for an image (`ndim` 2, 3) or a signal (1), or a clear error.

    `n_neighbors` None means half of the window; `bandwidth` None means the scale of the noise itself.
    """
    axes = 1 if ndim == 1 else 2
    size = checks.odd("patch_size", patch_size, largest=LARGEST_PATCH[axes])
    distance = checks.whole("patch_distance", patch_distance, largest=LARGEST_DISTANCE[axes])
    if bandwidth is None:
        bandwidth = noise_bandwidth(size, sigma, axes)
    window = (2 * distance + 1) ** axes
    neighbors = (window + 1) // 2 if n_neighbors is None else checks.whole("n_neighbors", n_neighbors)
    if neighbors > window:
        raise ValueError(
            f"n_neighbors is {neighbors} but the window holds only {window} patches; "
            "ask for fewer or raise patch_distance"
        )
    return WindowParams(
        size,
        distance,
        neighbors,
        checks.real("bandwidth", bandwidth, 0, open_low=True),
        checks.real("gamma", gamma, 0, 2, open_low=True),
        checks.flag("noise_correction", noise_correction),
    )


def is_signal(pixels: NDArray[Any]) -> bool:
    """An image of one row is a signal: its patches and its window have one row."""
    return bool(pixels.shape[1] == 1)


def pad(pixels: NDArray[np.float32], patch_size: int) -> NDArray[np.float32]:
    """Planes with the symmetric border that patches read."""
    radius = patch_size // 2
    radius_y = 0 if is_signal(pixels) else radius
    xp = namespace(pixels)
    padded = xp.pad(pixels, ((0, 0), (radius_y, radius_y), (radius, radius)), mode="symmetric")
    result: NDArray[np.float32] = xp.ascontiguousarray(padded)
    return result


def window_of(job: Job[WindowParams]) -> Window:
    """Half sizes of patches and window for the kernels; the window is cut to the image."""
    _, height, width = job.pixels.shape
    radius, distance = job.params.patch_size // 2, job.params.patch_distance
    radius_y = 0 if is_signal(job.pixels) else radius
    return Window(radius_y, radius, min(distance, height - 1), min(distance, width - 1))


def decay_of(job: Job[WindowParams]) -> Decay:
    """Weights for the kernels; the floor is the expected squared distance of equal patches with noise."""
    params = job.params
    area = params.patch_size if is_signal(job.pixels) else params.patch_size**2
    floor = 2 * job.sigma**2 * area if params.noise_correction else 0.0
    return Decay(float(inverse_square(params.bandwidth)), floor)


def halo(params: WindowParams) -> int:
    """How many pixels around a part of an image its result depends on: the window and the patches in it."""
    return params.patch_distance + params.patch_size // 2


def run_tiles(
    job: Job[Any],
    tile_shape: tuple[int, int],
    work: Callable[[Tile, NDArray[np.float32]], object],
) -> NDArray[np.float32]:
    """Call ``work(tile, out)`` for every tile of the fixed grid; returns out, the planes they filled."""
    out = np.empty_like(job.pixels)
    _, height, width = job.pixels.shape
    tiles = grid(height, width, *tile_shape)
    for_each(lambda tile: work(tile, out), tiles, job.workers, job.progress)
    return out
