"""What the window methods (NLM, NLEM, NLPR) share: their parameters and the run over the tiles."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.features.square import noise_bandwidth
from vnlem.pipeline import checks
from vnlem.pipeline.run import Job
from vnlem.pipeline.tiles import Tile, grid
from vnlem.pipeline.workers import for_each


@dataclass(frozen=True)
class WindowParams:
    """Parameters of a window method, in standardised units."""

    patch_size: int  # q
    patch_distance: int  # N2: the window is (2 N2 + 1) pixels a side
    n_neighbors: int  # N1: patches of the window that are kept
    bandwidth: float  # square root of the paper's epsilon
    gamma: float  # power of the norm in the regression: 2 mean, 1 median
    noise_correction: bool  # subtract from squared distances what noise alone adds to them


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
    """Validated parameters for an image (`ndim` 2, 3) or a signal (1), or one clear sentence.

    `n_neighbors` None means half of the window; `bandwidth` None means the scale of the noise itself.
    """
    size = checks.odd("patch_size", patch_size)
    distance = checks.whole("patch_distance", patch_distance)
    axes = 1 if ndim == 1 else 2
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


def pad(pixels: NDArray[np.float32], patch_size: int) -> tuple[NDArray[np.float32], tuple[int, int]]:
    """Planes with the symmetric border that patches see, and the patch's radii (rows, columns)."""
    radius = patch_size // 2
    radius_y = 0 if is_signal(pixels) else radius
    padded = np.pad(pixels, ((0, 0), (radius_y, radius_y), (radius, radius)), mode="symmetric")
    return np.ascontiguousarray(padded), (radius_y, radius)


def reach(job: Job[WindowParams]) -> tuple[int, int]:
    """How far the window reaches along rows and columns."""
    return (0 if is_signal(job.pixels) else job.params.patch_distance, job.params.patch_distance)


def noise_floor(pixels: NDArray[Any], sigma: float, params: WindowParams) -> float:
    """Expected squared distance of two noisy copies of one patch, where it is to be subtracted."""
    area = params.patch_size if is_signal(pixels) else params.patch_size**2
    return 2 * sigma**2 * area if params.noise_correction else 0.0


def decay_and_floor(job: Job[WindowParams]) -> tuple[np.float32, np.float32]:
    """What the kernels' weights exp(-decay * max(squared distance - floor, 0)) need."""
    decay = np.float32(1 / job.params.bandwidth**2)
    return decay, np.float32(noise_floor(job.pixels, job.sigma, job.params))


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
