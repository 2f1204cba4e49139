"""The noise of a stack: found once on some of its pages, and then the same for all pages of a channel."""

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.noise.find import find_noise
from vnlem.noise.frames import PAIRS, matched
from vnlem.noise.model import NoiseModel
from vnlem.noise.parts import steps
from vnlem.pipeline.axes import PagesOf, shapes_of
from vnlem.pipeline.device import to_host
from vnlem.pipeline.image import Planes, to_planes
from vnlem.pipeline.incoming import Incoming
from vnlem.pipeline.regions import Region
from vnlem.pipeline.warn import warn

Pages = Sequence[NDArray[Any]] | PagesOf
Arriving = Pages | Incoming  # or pages of a stream, which can be taken once
# Noise is estimated on so many pages, spread over the series.
SAMPLE = 12
SAMPLE_PIXELS = 4e6  # and on no more than so many pixels, but one page at least


class StackNoise:
    """The noise of a channel: its level once it is white, and how to make it so.

    Parameters
    ----------
    model : NoiseModel
    region : Region, optional
        Where pages are parts of larger ones: what they hold, and what is wanted of them.
    """

    def __init__(self, model: NoiseModel, region: Region | None = None) -> None:
        self.model = model
        self.sigma = model.sigma if model.is_white else 1.0
        self._region = region
        self._stabilise: Region | None = None
        self._unstabilise: Region | None = None
        if region is not None:
            first, _, last = steps(model, region)
            self._stabilise, self._unstabilise = first, last._replace(read=first.write)

    @classmethod
    def of(
        cls, series: list[Pages], sigma: Any, noise_model: Any, about_noise: dict[str, Any], *, plain: bool
    ) -> "StackNoise":
        """What is given, or estimated on some pages of all series of a channel."""
        told = sigma is not None and noise_model == "gaussian"
        sample = to_planes(np.zeros((1, 1)) if told else _mosaic(sampled_pages(series)))
        pairs = neighbouring_pages(series) if sigma is None else []
        found = matched(pairs) if pairs else None
        model = find_noise(sample, sigma, noise_model, about_noise, plain=plain, differences=found)
        assert model is not None  # a level per channel is a single number here
        return cls(model)

    def forward(self, planes: Planes) -> NDArray[np.float64]:
        """A page (H, W) whose noise is white, with the level `sigma`."""
        white = self.model.is_white
        page: NDArray[np.float64] = (
            planes.data if white else self.model.stabilise(planes.data, region=self._stabilise)
        )[0]
        return page

    def backward(self, page: NDArray[np.float64]) -> NDArray[np.float64]:
        """What is wanted of a denoised page, as planes (1, H, W) in the units of the input."""
        white = self.model.is_white
        planes: NDArray[np.float64] = (
            self.wanted(page)[None] if white else self.model.unstabilise(page[None], self._unstabilise)
        )
        return planes

    def size_of(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Height and width of a page once its noise is white."""
        if self._stabilise is None:
            height, width = shape
            return height, width
        top, bottom, left, right = self._stabilise.write
        return bottom - top, right - left

    def wanted(self, page: NDArray[Any]) -> NDArray[Any]:
        """What is wanted of a page of white noise."""
        return page if self._region is None else page[self._region.written()]


def sampled_pages(series: list[Pages]) -> list[NDArray[np.float64]]:
    """Some pages, spread over all series."""
    places = [(pages, index) for pages in series for index in range(len(pages))]
    most = max(1, min(SAMPLE, len(places), int(SAMPLE_PIXELS / max(prod(shapes_of(series[0])[0]), 1))))
    chosen = np.unique(np.linspace(0, len(places) - 1, most).astype(int))
    return [checked_page(places[i][0], places[i][1]).data[0] for i in chosen]


def neighbouring_pages(series: list[Pages]) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Some pairs of neighbours of one size, spread over all series."""
    places = [(pages, index) for pages in series for index in range(len(pages) - 1)]
    chosen = np.unique(np.linspace(0, len(places) - 1, min(PAIRS, len(places))).astype(int))
    pairs = [[checked_page(places[i][0], places[i][1] + k).data[0] for k in (0, 1)] for i in chosen]
    return [(first, second) for first, second in pairs if first.shape == second.shape]


def checked_page(pages: Pages, index: int) -> Planes:
    """A page as planes, on the host."""
    return planes_of(to_host(pages[index]), index, len(pages))


def planes_of(page: Any, index: int, count: int | None) -> Planes:
    """A page as planes; an error says which page of how many it was."""
    try:
        return to_planes(page, None)
    except ValueError as error:
        if count == 1:
            raise
        raise ValueError(f"{page_name(index, count)}: {error}") from error


def page_name(index: int, count: int | None) -> str:
    """What a page is called in a message; count: None in a stream.

    Examples
    --------
    >>> page_name(2, 9), page_name(2, None)
    ('page 3 of 9', 'frame 3')
    """
    return f"frame {index + 1}" if count is None else f"page {index + 1} of {count}"


def _mosaic(pages: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Pages below each other, cut to the narrowest."""
    width = min(page.shape[1] for page in pages)
    return np.concatenate([page[:, :width] for page in pages])


class StackUnits(NamedTuple):
    """Mean, scale and brightness of all pages of a series: measured once, handed to every part of it."""

    mean: float
    scale: float  # standard deviation of the clean pages
    peak: float  # what no pixel exceeds in units of the scale


def units_of(pages: Pages, noise: StackNoise, planes_at: Callable[[int], Planes] | None = None) -> StackUnits:
    """Mean of all pages, the standard deviation that they seem to have without their noise, and their peak.

    planes_at: gives a page as planes, here or on a device; :func:`checked_page` when None.
    """
    planes = (checked_page(pages, i) if planes_at is None else planes_at(i) for i in range(len(pages)))
    found = _Statistics.of(_moments(noise, one) for one in planes)
    return found.units(noise.sigma, warns=noise.model.is_white)


class _Moments(NamedTuple):
    """Of one page, or of several."""

    pixels: int
    mean: float
    squares: float  # the sum of squares about the mean
    low: float  # no pixel is below
    high: float  # no pixel is above


def _moments(noise: StackNoise, planes: Planes) -> _Moments:
    known = planes.statistics
    if known is not None and noise.model.is_white:
        count = planes.data.size
        # One pixel far from all others would have all of the deviation.
        away = known.deviation * count**0.5
        low, high = max(known.mean - away, -known.largest), min(known.mean + away, known.largest)
        return _Moments(count, known.mean, count * known.deviation**2, low, high)
    page = noise.forward(planes)
    mean = float(page.mean())
    squares = float(((page - mean) ** 2).sum())
    return _Moments(page.size, mean, squares, float(page.min()), float(page.max()))


class _Statistics:
    """Mean and variance of all pages, page by page."""

    def __init__(self, found: _Moments) -> None:
        self._found = found

    @classmethod
    def of(cls, moments: Iterator[_Moments]) -> "_Statistics":
        """Pages are joined two by two, which loses no digits where the mean is far from zero."""
        count, mean, squares, low, high = 0, 0.0, 0.0, np.inf, -np.inf
        for one in moments:
            shift = one.mean - mean
            both = count + one.pixels
            squares += one.squares + shift**2 * count * one.pixels / both
            mean += shift * one.pixels / both
            count, low, high = both, min(low, one.low), max(high, one.high)
        return cls(_Moments(count, mean, squares, low, high))

    def units(self, sigma: float, *, warns: bool = True) -> StackUnits:
        """The units of pages whose noise has this standard deviation; a warning where that was given."""
        count, mean, squares, low, high = self._found
        variance = squares / count
        if warns and sigma > 0 and variance < 1.01 * sigma**2:
            warn(
                f"sigma {sigma:g} accounts for all of the stack's own standard deviation "
                f"{np.sqrt(variance):g}: there may be nothing but noise; check the units of sigma"
            )
        scale = float(np.sqrt(max(variance - sigma**2, 0.01 * sigma**2)))
        return StackUnits(mean, scale, max(high - mean, mean - low) / scale if scale > 0 else 0.0)
