"""The noise of a stack: found once on some of its pages, and then the same for all pages of a channel."""

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.noise.field import SMALLEST, Cells, find_field, with_surface
from vnlem.noise.find import find_noise
from vnlem.noise.frames import PAIRS, matched
from vnlem.noise.levels import cut
from vnlem.noise.lines import check_lines, find_lines, with_lines
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
PAGES_WITH_LINES = 3  # so many are asked whether their lines differ
NOT_IN_PARTS = (
    "offsets of lines and maps of the noise need whole images, and this one is denoised in parts; use "
    "vnlem.denoise, or leave them out"
)


class StackNoise:
    """The noise of a channel: its level once it is white, and how to make it so.

    Parameters
    ----------
    model : NoiseModel
    region : Region, optional
        Where pages are parts of larger ones: what they hold, and what is wanted of them.
    lines : bool
        Whether the rows and columns of each page have offsets of their own.
    """

    def __init__(self, model: NoiseModel, region: Region | None = None, lines: bool = False) -> None:
        self.model = model
        self.sigma = model.sigma if model.is_white else 1.0
        self._lines = lines
        self._region = region
        self._stabilise: Region | None = None
        self._unstabilise: Region | None = None
        if region is not None:
            first, _, last = steps(model, region)
            self._stabilise, self._unstabilise = first, last._replace(read=first.write)

    @classmethod
    def of(
        cls,
        series: list[Pages],
        sigma: Any,
        noise_model: Any,
        about_noise: dict[str, Any],
        *,
        plain: bool,
        in_parts: bool = False,
    ) -> "StackNoise":
        """What is given, or estimated on some pages of all series of a channel.

        in_parts: pages are denoised part by part, and what needs whole pages is refused: lines and maps.
        """
        told = sigma is not None and noise_model == "gaussian"
        asked = check_lines(about_noise.get("lines"))
        if in_parts and asked is True:
            raise ValueError(NOT_IN_PARTS)
        open_question = sigma is None and noise_model == "auto" and about_noise.get("gain") is None
        pages = [] if told and asked is not True else sampled_pages(series)
        lines = asked is True or (
            asked == "auto" and open_question and not (plain or in_parts) and _have_lines(pages)
        )
        if lines:
            pages = [_without_lines(page[None])[0] for page in pages]
        sample = to_planes(np.zeros((1, 1)) if told else _mosaic(pages))
        pairs = neighbouring_pages(series) if sigma is None and not lines else []
        found = matched(pairs) if pairs else None
        model = find_noise(
            sample, sigma, noise_model, about_noise, plain=plain, differences=found, in_place=False
        )
        assert model is not None  # a level per channel is a single number here
        if noise_model == "field" or (open_question and not plain and model.kind == "white"):
            model = _with_field(model, pages, sure=noise_model == "field")
        if model.maps is not None:
            if in_parts:
                raise ValueError(NOT_IN_PARTS)
            for shape in shapes_of(series[0]):
                model.maps.check(*shape)
        return cls(model, lines=lines)

    @property
    def is_white(self) -> bool:
        """Whether pages are denoised as they are."""
        return self.model.is_white and not self._lines

    def forward(self, planes: Planes) -> NDArray[np.float64]:
        """A page (H, W) whose noise is white, with the level `sigma`."""
        data = _without_lines(planes.data) if self._lines else planes.data
        white = self.model.is_white
        page: NDArray[np.float64] = (data if white else self.model.stabilise(data, region=self._stabilise))[0]
        return page

    def backward(self, page: NDArray[np.float64], given: Planes) -> NDArray[np.float64]:
        """What is wanted of a denoised page, as planes (1, H, W) in the units of the given ones."""
        white, maps = self.model.is_white, self.model.maps
        planes: NDArray[np.float64] = (
            self.wanted(page)[None] if white else self.model.unstabilise(page[None], self._unstabilise)
        )
        return planes if maps is None else maps.kept(planes, given.data, given.dtype)

    def of_page(self, planes: Planes) -> NoiseModel:
        """The noise of a page, with the offsets of its own lines."""
        return with_lines(self.model, find_lines(planes.data, sure=True) if self._lines else None)

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


def _without_lines(planes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Planes (1, H, W) without the offsets of their rows and columns."""
    found = find_lines(planes, sure=True)
    return planes if found is None else found.enter(planes)


def _have_lines(pages: list[NDArray[np.float64]]) -> bool:
    """Whether the lines of most of some pages plainly differ."""
    some = pages[:: max(1, len(pages) // PAGES_WITH_LINES)]
    return 2 * sum(find_lines(page[None]) is not None for page in some) > len(some)


def _with_field(model: NoiseModel, pages: list[NDArray[np.float64]], *, sure: bool) -> NoiseModel:
    """A model whose noise varies over the pages, where it does so in all of them."""
    shapes = {page.shape for page in pages}
    if len(shapes) > 1 or min(pages[0].shape) < SMALLEST:
        return model
    height, width = pages[0].shape
    blocks = [found for page in pages if (found := cut(page)) is not None]
    surface = find_field([Cells.of(one, (height, width)) for one in blocks], sure=sure)
    return model if surface is None else with_surface(surface, blocks, height, width)


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
    if known is not None and noise.is_white:
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
