"""Coarser scales: an image at half its size, and where its denoised version is better than the fine one.

At half the size four pixels become one, so the noise is half as strong and structures are half as large
relative to a patch: broad weak structures and flat areas get better, edges and texture worse. So the low
frequencies of the fine result are replaced by those of the coarse one only where the two hardly differ, i.e.
where noise alone explains the difference [1]_, and where the fine one has little detail that the coarse one
cannot show: detail is an edge or texture, for which fine patches are better. Arrays of a GPU stay there.

.. [1] G. Facciolo, N. Pierazzo, J.-M. Morel, "Conservative scale recomposition for multiscale denoising (the
   devil is in the high frequency detail)", SIAM Journal on Imaging Sciences 10, 2017.
   :DOI:`10.1137/17M1111826`
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cpu.scales import Taps, filter_planes
from vnlem.pipeline import checks
from vnlem.pipeline.device import lies_on_gpu
from vnlem.pipeline.lazy import load
from vnlem.pipeline.tiles import Tile, grid
from vnlem.pipeline.workers import Pool

Float = NDArray[np.float64]

MOST_SCALES = 6
SMALLEST = 48  # pixels: an image is not made smaller than that
LOBES = 3  # of the windowed sinc that halves and doubles
# After a method for white noise, a difference of this share of the noise variance is as likely residual noise
# as structure.
LEFT_OVER = 0.012
# Detail that the coarse image cannot show counts as a difference of this share of its energy.
DETAIL = 0.4
WINDOW = 13  # pixels across, over which difference and detail are averaged
# Pixels around a fine pixel that halving and the join read, rounded up to an even number; half of a join's
# `level` is added.
REACH = 24
STRIP, LONGEST = 128, 512  # rows and columns per task, even


def check_scales(scales: Any) -> int:
    """A number of scales, or a clear error.

    >>> check_scales(3)
    3
    """
    number = checks.whole("scales", scales)
    if number > MOST_SCALES:
        raise ValueError(f"scales must be at most {MOST_SCALES}, got {number}")
    return number


def count_scales(height: int, width: int, scales: int) -> int:
    """How many of the wanted scales an image of this size has.

    >>> count_scales(1000, 100, 3), count_scales(1000, 90, 3)
    (2, 1)
    """
    count = 1
    while count < scales and min(height, width) >= 2 * SMALLEST:
        height, width, count = -(-height // 2), -(-width // 2), count + 1
    return count


@cache
def low_pass_taps() -> Float:
    """Half of the symmetric low-pass filter, from its centre outwards; the whole filter sums to one.

    >>> round(2 * float(low_pass_taps().sum()), 12)
    1.0
    """
    x = (np.arange(2 * LOBES) + 0.5) / 2
    values = np.sinc(x) * np.sinc(x / LOBES)
    taps: Float = values / (2 * values.sum())
    taps.flags.writeable = False
    return taps


def halve(planes: Any) -> Any:
    """Planes (C, H, W) at half the size, sizes rounded up.

    White noise of standard deviation one becomes nearly white noise of standard deviation one half.

    >>> halve(np.ones((1, 5, 8))).shape
    (1, 3, 4)
    """
    if lies_on_gpu(planes):
        return load("vnlem.estimate.scales_on_gpu:halve")(planes)
    taps = low_pass_taps()
    halving = Taps(taps[None], np.arange(taps.size, dtype=np.int32)[None], True)
    return _filtered(planes, halving, halving, -(-planes.shape[1] // 2), -(-planes.shape[2] // 2))


def double(planes: Float, height: int, width: int) -> Float:
    """Planes at twice the size, cut to (height, width): the reverse of :func:`halve`.

    >>> smooth = np.cos(np.arange(64.0) / 9)[None, :, None] * np.ones((1, 64, 64))
    >>> bool(np.abs(double(halve(smooth), 64, 64) - smooth)[:, 8:-8, 8:-8].max() < 0.02)
    True
    """
    doubling = Taps(*doubling_weights(), False)
    return _filtered(planes, doubling, doubling, height, width)


@cache
def doubling_weights() -> tuple[Float, NDArray[np.int32]]:
    """Weights of coarse rows in the even and in the odd fine rows, and their distances from the own row.

    A fine pixel lies a quarter of a coarse step from the centre of its coarse one. The weights of either
    side are every second tap.

    >>> doubling_weights()[1].tolist()
    [[0, -1, 1, -2, 2, -3], [0, 1, -1, 2, -2, 3]]
    """
    weights, steps = [], []
    for beside in (-0.5, 0.5):  # from the centre of the fine pixel to that of its coarse one, in fine pixels
        found = {}
        for k, tap in enumerate(low_pass_taps()):
            for distance in (-k - 0.5, k + 0.5):
                step = (distance + beside) / 2
                if step == int(step):
                    found[int(step)] = 2 * tap
        total = sum(found.values())
        weights.append([weight / total for weight in found.values()])
        steps.append(list(found))
    found_weights, found_steps = np.array(weights), np.array(steps, np.int32)
    found_weights.flags.writeable = found_steps.flags.writeable = False
    return found_weights, found_steps


def _filtered(planes: Float, down: Taps, across: Taps, height: int, width: int) -> Float:
    result = np.empty((len(planes), height, width))
    filter_planes(np.ascontiguousarray(planes, np.float64), down, across, result)
    return result


def join(fine: Any, coarse: Any, sigma: Any, left_over: float = LEFT_OVER, level: int = 1) -> Any:
    """The fine result with the low frequencies of the coarse one, where the two hardly differ.

    The weight of the coarse one is d / (d + e + DETAIL * h), where d is `left_over` times the noise variance,
    e the energy of the difference at low frequencies, and h the energy of the fine result at high ones.

    fine: (C, H, W), denoised at full size.
    coarse: denoised at half the size.
    sigma: noise of the full size; a number, or broadcastable to `fine`.
    left_over: a difference of this share of the noise variance is as likely residual noise as structure.
    level: if more than one, the mean of the difference over a square of this side is always applied: the
        coarse result sets the brightness of an area.

    >>> flat = np.random.default_rng(0).normal(0, 0.02, (1, 32, 32))
    >>> bool(join(flat, np.zeros((1, 16, 16)), 1.0).std() < 0.95 * flat.std())
    True
    """
    if lies_on_gpu(fine):
        return load("vnlem.estimate.scales_on_gpu:join")(fine, coarse, sigma)
    height, width = fine.shape[1:]
    low = halve(fine)
    change = double(coarse - low, height, width)
    detail = double(low, height, width)
    np.subtract(fine, detail, out=detail)
    brightness = _mean(change, level) if level > 1 else 0.0
    change -= brightness
    # Products, not powers, whose last digit may differ: a device joins with the same bits.
    detail *= detail
    detail *= DETAIL
    detail += change * change
    energy = _mean(detail, WINDOW)
    noise = np.asarray(sigma)
    doubt = left_over * (noise * noise)
    energy += doubt
    energy += 1e-300
    change *= doubt
    change /= energy
    change += fine + brightness
    return change


def level_around(sigma: Any) -> Any:
    """The noise, (C, H, W), over the windows in which a join compares: filled pixels have less than measured.

    >>> float(level_around(np.full((1, 20, 20), 3.0))[0, 0, 0])
    3.0
    """
    if lies_on_gpu(sigma):
        return load("vnlem.estimate.scales_on_gpu:level_around")(sigma)
    return np.sqrt(_mean(sigma * sigma, WINDOW))


def halve_in_tiles(planes: Any, pool: Pool) -> Any:
    """:func:`halve`, tile by tile on all workers, with the same bits.

    >>> with Pool(2) as pool:
    ...     halve_in_tiles(np.ones((1, 300, 301)), pool).shape
    (1, 150, 151)
    """
    if lies_on_gpu(planes):
        return halve(planes)
    channels, height, width = planes.shape
    result = np.empty((channels, -(-height // 2), -(-width // 2)))

    def look(tile: Tile) -> None:
        seen = tile.grown(REACH, (height, width))
        found = halve(planes[:, *seen.slices])
        result[:, *tile.halved().slices] = found[:, *tile.halved().inside(seen.halved())]

    pool.for_each(look, grid(height, width, STRIP, LONGEST))
    return result


def double_in_tiles(planes: Float, height: int, width: int, pool: Pool) -> Float:
    """:func:`double`, tile by tile on all workers, with the same bits.

    >>> with Pool(2) as pool:
    ...     double_in_tiles(np.ones((1, 150, 151)), 300, 301, pool).shape
    (1, 300, 301)
    """
    result = np.empty((len(planes), height, width))

    def look(tile: Tile) -> None:
        seen = tile.grown(REACH, (height, width))
        found = double(planes[:, *seen.halved().slices], *seen.shape)
        result[:, *tile.slices] = found[:, *tile.inside(seen)]

    pool.for_each(look, grid(height, width, STRIP, LONGEST))
    return result


def join_in_tiles(
    fine: Any, coarse: Any, sigma: Any, pool: Pool, left_over: float = LEFT_OVER, level: int = 1
) -> Any:
    """:func:`join`, tile by tile on all workers, with the same bits.

    >>> flat = np.random.default_rng(0).normal(0, 0.02, (1, 300, 40))
    >>> with Pool(2) as pool:
    ...     found = join_in_tiles(flat, np.zeros((1, 150, 20)), 1.0, pool)
    >>> bool((found == join(flat, np.zeros((1, 150, 20)), 1.0)).all())
    True
    """
    if lies_on_gpu(fine):
        return join(fine, coarse, sigma)
    _, height, width = fine.shape
    noise = np.asarray(sigma)
    if noise.ndim > 0:
        noise = np.broadcast_to(noise, fine.shape)
    result = np.empty(fine.shape)
    reach = REACH + (level // 2 + 1) // 2 * 2

    def look(tile: Tile) -> None:
        seen = tile.grown(reach, (height, width))
        own = noise[:, *seen.slices] if noise.ndim > 0 else noise
        found = join(fine[:, *seen.slices], coarse[:, *seen.halved().slices], own, left_over, level)
        result[:, *tile.slices] = found[:, *tile.inside(seen)]

    pool.for_each(look, grid(height, width, STRIP, LONGEST))
    return result


def _mean(planes: Float, window: int) -> Float:
    """Means over squares of `window` pixels across.

    Plain sums: a running sum would depend on where the planes begin.
    """

    def taps(count: int) -> Taps:
        size = min(window, count)
        steps = np.arange(size, dtype=np.int32) - np.int32(size // 2)
        return Taps(np.ones((1, size)), steps[None], False, size)

    height, width = planes.shape[1:]
    return _filtered(planes, taps(height), taps(width), height, width)
