"""A method at several scales, in parts: what each scale must know so that a block has the bytes of the whole.

The whole image is halved again and again, every size is denoised, and the results are joined from coarse to
fine. A block needs a part of every size. Parts begin at even pixels, where halving begins in the whole too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.estimate.scales import halve, join
from vnlem.noise.model import NoiseModel
from vnlem.noise.rounds import join_in_units
from vnlem.pipeline.regions import Region
from vnlem.pipeline.run import solve_region
from vnlem.pipeline.scale import Scale
from vnlem.pipeline.tiles import Tile

# Coarse pixels around a part that joining two sizes looks at: filters of 3 in both directions, and half of
# the window that differences are averaged over.
JOIN_REACH = 10
FILTER_REACH = 8  # pixels around twice a coarse part that halving looks at, rounded up to be even


@dataclass(frozen=True)
class Size:
    """One size of the image: units of its pixels, and the method's parameters and halos for its noise."""

    scale: Scale
    params: Any
    halo: int
    work_halo: int
    grain: int = 1  # parts are read from multiples of it on, for solvers whose sums begin anew there
    peak: float | None = None  # the largest absolute value in units of the scale, for solvers of a GPU
    noise: NoiseModel | None = None  # of pixels that are yet to be stabilised


def solve_at_sizes(
    planes: NDArray[np.float64],
    region: Region,
    sizes: tuple[Size, ...],
    solver: Callable[[Any], NDArray[np.float32]],
    workers: int,
) -> NDArray[np.float64]:
    """The denoised pixels of ``region.write`` from those of ``region.read``."""
    shape, write, read = region
    first = sizes[0]
    if len(sizes) == 1:
        return _solve(planes, region, first, solver, workers)
    height, width = shape
    half = (-(-height // 2), -(-width // 2))
    # What the coarser sizes must give, and twice that: what this size must give to be joined with it.
    coarse = _grown(_halved(write), JOIN_REACH, half)
    fine = _cut(Tile(*(2 * edge for edge in coarse)), shape)
    result = _solve(planes, Region(shape, fine, read), first, solver, workers)
    smaller, known = _halve_part(planes, read, shape)
    below = solve_at_sizes(smaller, Region(half, coarse, known), sizes[1:], solver, workers)
    if first.noise is None:
        joined = join(result, below, first.scale.noise)
    else:
        joined = join_in_units(first.noise, result, below)
    return _part(joined, fine, write)


def _solve(
    planes: NDArray[np.float64],
    region: Region,
    size: Size,
    solver: Callable[[Any], NDArray[np.float32]],
    workers: int,
) -> NDArray[np.float64]:
    """One size; of what was read, what it needs."""
    shape, write, read = region
    around = _grown(write, size.halo + size.grain - 1, shape)
    around = around._replace(top=_up(around.top, size.grain), left=_up(around.left, size.grain))
    pixels = _part(planes, read, around)
    solved = solve_region(
        pixels if size.noise is None else size.noise.stabilise(pixels),
        Region(shape, write, around),
        size.scale,
        size.params,
        solver,
        workers=workers,
        peak=size.peak,
    )
    return solved if size.noise is None else size.noise.unstabilise(solved)


def _up(line: int, grain: int) -> int:
    return -(-line // grain) * grain


def reach(sizes: tuple[Size, ...], margin: int = 0) -> int:
    """Pixels around a part of an image that its result, and that `margin` pixels beyond it, depends on."""
    halo = sizes[0].halo + sizes[0].grain - 1
    if len(sizes) == 1:
        return margin + halo
    coarse = margin // 2 + 1 + JOIN_REACH
    return max(2 * coarse + 2 + halo, 2 * reach(sizes[1:], coarse) + FILTER_REACH)


def work_reach(sizes: tuple[Size, ...], side: int, margin: int = 0) -> int:
    """Pixels around a part that are worked on, as if it were one size: for parts of `side` pixels."""
    done = whole = 0.0
    for number, size in enumerate(sizes):
        own = 2 * (margin // 2 + 1 + JOIN_REACH) + 2 if number + 1 < len(sizes) else margin
        done += (side / 2**number + 2 * (own + size.work_halo)) ** 2
        whole += (side / 2**number) ** 2
        margin = own // 2
    return int(np.ceil(side / 2 * (np.sqrt(done / whole) - 1)))


def _halved(tile: Tile) -> Tile:
    return Tile(tile.top // 2, -(-tile.bottom // 2), tile.left // 2, -(-tile.right // 2))


def _grown(tile: Tile, by: int, shape: tuple[int, int]) -> Tile:
    return _cut(Tile(tile.top - by, tile.bottom + by, tile.left - by, tile.right + by), shape)


def _cut(tile: Tile, shape: tuple[int, int]) -> Tile:
    return Tile(max(tile.top, 0), min(tile.bottom, shape[0]), max(tile.left, 0), min(tile.right, shape[1]))


def _part(planes: NDArray[Any], of: Tile, tile: Tile) -> NDArray[Any]:
    if tile.top < of.top or tile.bottom > of.bottom or tile.left < of.left or tile.right > of.right:
        raise ValueError(f"{tuple(tile)} is needed and {tuple(of)} is there (top, bottom, left, right)")
    return planes[:, tile.top - of.top : tile.bottom - of.top, tile.left - of.left : tile.right - of.left]


def _halve_part(
    planes: NDArray[np.float64], read: Tile, shape: tuple[int, int]
) -> tuple[NDArray[np.float64], Tile]:
    """A part at half its size, and where it lies in the whole at half its size: only what is certain."""
    even = Tile(
        read.top + read.top % 2,
        read.bottom if read.bottom == shape[0] else read.bottom - read.bottom % 2,
        read.left + read.left % 2,
        read.right if read.right == shape[1] else read.right - read.right % 2,
    )
    smaller = halve(_part(planes, read, even))
    found = _halved(even)
    # At an edge that is not the image's own, the filter has seen a mirror image.
    edge = FILTER_REACH // 2 - 1
    known = Tile(
        found.top + edge * (even.top > 0),
        found.bottom - edge * (even.bottom < shape[0]),
        found.left + edge * (even.left > 0),
        found.right - edge * (even.right < shape[1]),
    )
    return _part(smaller, found, known), known
