"""The orientation feature of the paper's Definition, in float64.

theta* is the direction for which the gradients of the smoothed patch that point less than delta away from it
have the largest sum of lengths.
"""

import math

import numpy as np
from scipy import ndimage

BINS = 3600  # resolution of directions: a tenth of a degree


def arc_sums(directions, lengths, arc):
    """Sum of the lengths of the gradients less than `arc` degrees from every tenth of a degree.

    directions (degrees), lengths : (..., gradients) -> (..., 3600)

    Examples
    --------
    >>> sums = arc_sums(np.array([10.0, 20.0, 200.0]), np.array([1.0, 2.0, 2.5]), 15.0)
    >>> sums[[0, 150, 2000]]
    array([1. , 3. , 2.5])
    """
    histogram = _histogram(directions, lengths, BINS)
    # Circular box sums over the open arc: bin b belongs to angle t where |b - t| < reach.
    reach = max(1, round(arc * BINS / 360))
    wrapped = np.concatenate(
        [histogram[..., BINS - reach + 1 :], histogram, histogram[..., : reach - 1]], axis=-1
    )
    sums = np.cumsum(wrapped, axis=-1)
    sums = np.concatenate([np.zeros_like(sums[..., :1]), sums], axis=-1)
    return sums[..., 2 * reach - 1 :] - sums[..., :BINS]


def _histogram(directions, lengths, count):
    """Sum of the lengths of the gradients nearest to each of `count` directions: (..., count)."""
    lead = directions.shape[:-1]
    bins = np.rint(directions.reshape(-1, directions.shape[-1]) * (count / 360)).astype(np.intp) % count
    bins += count * np.arange(len(bins))[:, None]
    counted = np.bincount(bins.ravel(), lengths.ravel(), minlength=count * len(bins))
    return counted.reshape(*lead, count)


def strongest(sums):
    """Direction of the largest sum in degrees: the middle of the interval on which it is reached.

    Examples
    --------
    >>> float(strongest(arc_sums(np.array([10.0, 20.0, 200.0]), np.array([1.0, 2.0, 2.5]), 15.0)))
    15.0
    """
    flat = sums.reshape(-1, BINS)
    plateau = flat >= flat.max(axis=1, keepdims=True) * (1 - 1e-9)
    begins = plateau & ~np.roll(plateau, 1, axis=1)
    start = np.argmax(begins, axis=1)
    onwards = np.take_along_axis(plateau, (start[:, None] + np.arange(BINS)) % BINS, axis=1)
    length = np.where(onwards.all(axis=1), 1, np.argmin(onwards, axis=1))
    return ((start + (length - 1) / 2) * (360 / BINS) % 360).reshape(sums.shape[:-1])


def _strongest_tapered(directions, lengths, arc):
    """The same with gradients that count less the further they are from the direction (a raised cosine).

    That is the rule of the fast engine: the sum has one maximum, and a parabola places it between half
    degrees.
    """
    halves = _histogram(directions, lengths, 720)
    away = np.abs((np.arange(720)[:, None] - np.arange(720) + 360) % 720 - 360) / 2
    sums = halves @ np.where(away < arc, 0.5 + 0.5 * np.cos(np.pi * away / arc), 0)
    each, best = np.arange(len(sums)), sums.argmax(axis=1)
    before, here, after = (sums[each, (best + step) % 720] for step in (-1, 0, 1))
    curvature = before - 2 * here + after
    shift = np.divide(0.5 * (before - after), curvature, out=np.zeros(len(sums)), where=curvature < 0)
    return (best + shift) / 2


def orientation(pixels, scale=1.0, patch_size=13, arc=18.0, taper=False):
    """Orientation (radians, from the column axis towards the row axis) of every pixel of a plane (H, W).

    Examples
    --------
    >>> ramp = np.add.outer(np.zeros(16), np.arange(16.0))
    >>> float(orientation(ramp)[8, 8].round(6)), float(orientation(ramp, taper=True)[8, 8].round(6))
    (0.0, 0.0)
    """
    half = patch_size // 2
    reach = math.ceil(4 * scale)
    padded = np.pad(pixels.astype(np.float64), half + reach, mode="symmetric")
    gx = ndimage.gaussian_filter(padded, scale, order=(0, 1), radius=reach)
    gy = ndimage.gaussian_filter(padded, scale, order=(1, 0), radius=reach)
    inner = np.s_[reach : padded.shape[0] - reach, reach : padded.shape[1] - reach]
    length, direction = np.hypot(gx, gy)[inner], np.degrees(np.arctan2(gy, gx))[inner]
    y, x = np.mgrid[-half : half + 1, -half : half + 1]
    # The integral over the disc: pixels on its edge count in part.
    area = np.clip(half + 0.5 - np.hypot(y, x), 0, 1)
    inside = area > 0
    patches = [
        np.lib.stride_tricks.sliding_window_view(each, (patch_size, patch_size))
        for each in (length, direction)
    ]
    out = np.zeros(pixels.shape)
    for row in range(pixels.shape[0]):
        lengths, directions = (patch[row][:, inside] for patch in patches)
        lengths = lengths * area[inside]
        found = (
            _strongest_tapered(directions, lengths, arc)
            if taper
            else strongest(arc_sums(directions, lengths, arc))
        )
        # Gradients below this are rounding: no orientation.
        out[row] = np.where(
            lengths.sum(axis=1) > 1e-5 * area.sum(), np.angle(np.exp(1j * np.radians(found))), 0
        )
    return out
