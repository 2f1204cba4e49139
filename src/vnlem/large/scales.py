"""A method at several scales, in parts: what each scale must know so that a block has the bytes of the whole.

The whole image is halved again and again, every size is denoised, and the results are joined from coarse to
fine. A block needs a part of every size. Parts begin at even pixels, where halving begins in the whole too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.estimate.scales import join
from vnlem.large.halved import FILTER_REACH, doubled, grown, half_of, halve_part, halved, part_of
from vnlem.noise.model import NoiseModel
from vnlem.noise.rounds import join_in_units
from vnlem.pipeline.regions import Region
from vnlem.pipeline.run import solve_region
from vnlem.pipeline.scale import Scale

# Coarse pixels around a part that joining two sizes looks at: filters of 3 in both directions, and half of
# the windows that differences are averaged over.
JOIN_REACH = 10
JOIN_REACH_IN_UNITS = 16


@dataclass(frozen=True)
class Group:
    """Channels that are denoised together: units of their pixels, parameters and halos for their noise."""

    channels: tuple[int, ...]
    scale: Scale
    params: Any
    halo: int
    work_halo: int
    peak: float | None = None  # the largest absolute value in units of the scale, for solvers of a GPU


@dataclass(frozen=True)
class Size:
    """One size of the image, and how its channels are denoised there."""

    groups: tuple[Group, ...]
    same: bool = False  # whether the channels of the only group are one picture: it is their mean
    grain: int = 1  # parts are read from multiples of it on, for solvers whose sums begin anew there
    noise: NoiseModel | None = None  # of pixels that are yet to be stabilised

    @property
    def level(self) -> float:
        """Standard deviation of the noise, where it is the same in all channels."""
        return self.groups[0].scale.noise

    @property
    def margin(self) -> int:
        """Pixels around a part that are read, so that its sums begin where those of the whole do.

        Beyond the halo: as far as the multiple of the grain before the part, and up to one before its halo.
        """
        return max(group.halo for group in self.groups) + 2 * (self.grain - 1)

    @property
    def work_halo(self) -> int:
        """Pixels around a part that are worked on."""
        return max(group.work_halo for group in self.groups)


def pictures(planes: NDArray[np.float64], handling: str) -> list[tuple[tuple[int, ...], NDArray[np.float64]]]:
    """The pictures that planes (C, H, W) are denoised as, each with its channels.

    Examples
    --------
    >>> planes = np.zeros((3, 4, 5))
    >>> [(c, p.shape) for c, p in pictures(planes, "same")]
    [((0, 1, 2), (1, 4, 5))]
    >>> [c for c, _ in pictures(planes, "separate")]
    [(0,), (1,), (2,)]
    """
    every = tuple(range(len(planes)))
    if handling == "separate":
        return [((channel,), planes[channel : channel + 1]) for channel in every]
    return [(every, planes.mean(axis=0, keepdims=True) if handling == "same" else planes)]


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
    half = half_of(shape)
    # What the coarser sizes must give, and twice that: what this size must give to be joined with it.
    coarse = grown(halved(write), _join_reach(first), half)
    fine = doubled(coarse, shape)
    result = _solve(planes, Region(shape, fine, read), first, solver, workers)
    smaller, known = halve_part(planes, read, shape)
    below = solve_at_sizes(smaller, Region(half, coarse, known), sizes[1:], solver, workers)
    if first.noise is None:
        joined = join(result, below, first.level)
    else:
        joined = join_in_units(first.noise, result, below)
    return part_of(joined, fine, write)


def _solve(
    planes: NDArray[np.float64],
    region: Region,
    size: Size,
    solver: Callable[[Any], NDArray[np.float32]],
    workers: int,
) -> NDArray[np.float64]:
    """One size; of what was read, what it needs."""
    shape, write, read = region
    around = grown(write, size.margin, shape)
    around = around._replace(top=_up(around.top, size.grain), left=_up(around.left, size.grain))
    pixels = part_of(planes, read, around)
    if size.noise is not None:
        pixels = size.noise.stabilise(pixels)
    own = Region(shape, write, around)

    def solved(group: Group, picture: NDArray[np.float64]) -> NDArray[np.float64]:
        return solve_region(picture, own, group.scale, group.params, solver, workers=workers, peak=group.peak)

    if size.same:
        (group,) = size.groups
        mean = pixels.mean(axis=0, keepdims=True)
        rows, columns = own.written()
        result = pixels[:, rows, columns] + (solved(group, mean) - mean[:, rows, columns])
    else:
        result = np.concatenate([solved(group, pixels[list(group.channels)]) for group in size.groups])
    return result if size.noise is None else size.noise.unstabilise(result)


def _join_reach(size: Size) -> int:
    return JOIN_REACH if size.noise is None else JOIN_REACH_IN_UNITS


def _up(line: int, grain: int) -> int:
    return -(-line // grain) * grain


def reach(sizes: tuple[Size, ...], margin: int = 0) -> int:
    """Pixels around a part of an image that its result, and that `margin` pixels beyond it, depends on."""
    halo = sizes[0].margin
    if len(sizes) == 1:
        return margin + halo
    coarse = margin // 2 + 1 + _join_reach(sizes[0])
    return max(2 * coarse + 2 + halo, 2 * reach(sizes[1:], coarse) + FILTER_REACH)


def work_reach(sizes: tuple[Size, ...], side: int, margin: int = 0) -> int:
    """Pixels around a part that are worked on, as if it were one size: for parts of `side` pixels."""
    done = whole = 0.0
    for number, size in enumerate(sizes):
        own = 2 * (margin // 2 + 1 + _join_reach(size)) + 2 if number + 1 < len(sizes) else margin
        done += (side / 2**number + 2 * (own + size.work_halo)) ** 2
        whole += (side / 2**number) ** 2
        margin = own // 2
    return int(np.ceil(side / 2 * (np.sqrt(done / whole) - 1)))
