"""The units of a series of pages: its mean, its scale and its brightness, measured once."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from vnlem.noise.pages import Pages, StackNoise, checked_page
from vnlem.pipeline.image import Planes
from vnlem.pipeline.warn import warn


class StackUnits(NamedTuple):
    """Mean, scale and brightness of all pages of a series: measured once, passed to every part of it."""

    mean: float
    scale: float  # standard deviation of the clean pages
    peak: float  # what no pixel exceeds in units of the scale


def units_of(pages: Pages, noise: StackNoise, planes_at: Callable[[int], Planes] | None = None) -> StackUnits:
    """Mean of all pages, the standard deviation that they seem to have without their noise, and their peak.

    planes_at: gives a page as planes, here or on a device; :func:`checked_page` when None.
    """
    planes = (checked_page(pages, i) if planes_at is None else planes_at(i) for i in range(len(pages)))
    count, mean, squares, low, high = 0, 0.0, 0.0, np.inf, -np.inf
    for one in (_moments(noise, page) for page in planes):
        # Joined in pairs, which loses no digits if the mean is far from zero.
        shift = one.mean - mean
        both = count + one.pixels
        squares += one.squares + shift**2 * count * one.pixels / both
        mean += shift * one.pixels / both
        count, low, high = both, min(low, one.low), max(high, one.high)
    sigma, variance = noise.sigma, squares / count
    if noise.model.is_white and sigma > 0 and variance < 1.01 * sigma**2:
        warn(
            f"sigma {sigma:g} accounts for all of the stack's own standard deviation "
            f"{np.sqrt(variance):g}: there may be nothing but noise; check the units of sigma"
        )
    scale = float(np.sqrt(max(variance - sigma**2, 0.01 * sigma**2)))
    return StackUnits(mean, scale, max(high - mean, mean - low) / scale if scale > 0 else 0.0)


class _Moments(NamedTuple):
    """Of one page."""

    pixels: int
    mean: float
    squares: float  # the sum of squares about the mean
    low: float  # no pixel is below
    high: float  # no pixel is above


def _moments(noise: StackNoise, planes: Planes) -> _Moments:
    known = planes.statistics
    if known is not None and noise.is_white:
        count = planes.data.size
        # The farthest a single pixel can be from all others with this deviation.
        away = known.deviation * count**0.5
        low, high = max(known.mean - away, -known.largest), min(known.mean + away, known.largest)
        return _Moments(count, known.mean, count * known.deviation**2, low, high)
    page = noise.forward(planes)
    mean = float(page.mean())
    squares = float(((page - mean) ** 2).sum())
    return _Moments(page.size, mean, squares, float(page.min()), float(page.max()))
