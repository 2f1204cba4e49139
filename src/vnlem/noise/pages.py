"""The noise of a stack: found once on some of its pages, and then the same for all pages of a channel."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.noise.correlated import SMALLEST_IMAGE
from vnlem.noise.find import find_noise
from vnlem.noise.frames import PAIRS, matched
from vnlem.noise.levels import Differences
from vnlem.noise.model import NoiseModel
from vnlem.noise.parts import steps
from vnlem.pipeline.axes import PagesOf, shapes_of
from vnlem.pipeline.device import to_host
from vnlem.pipeline.image import Planes, to_planes
from vnlem.pipeline.regions import Region
from vnlem.pipeline.warn import warn

Pages = Sequence[NDArray[Any]] | PagesOf
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
        sample, found = _seen_of(series, sigma, noise_model)
        model = find_noise(sample, sigma, noise_model, about_noise, plain=plain, differences=found)
        assert model is not None  # a level per channel is a single number here
        return cls(model)

    @classmethod
    def of_channels(
        cls,
        series: list[Pages],
        sigmas: list[Any],
        noise_model: Any,
        about_noise: dict[str, Any],
        plain: bool,
    ) -> "StackNoise | None":
        """The noise of channels that are denoised together; None where it cannot be told for all at once.

        Colours are estimated together where they may share noise, other channels each on its own.

        Parameters
        ----------
        series : list of Pages
            With all channels.
        sigmas : list
            A number, or None, for each channel.
        noise_model, about_noise, plain
            As for :meth:`of`.
        """
        alike = all(sigma == sigmas[0] for sigma in sigmas)
        sample, differences = _seen_of(
            series, sigmas[0] if alike else 0.0, noise_model if alike else "gaussian"
        )
        looks_for = "gaussian" if plain and noise_model == "auto" else noise_model
        colours = len(sigmas) == 3 and min(sample.data.shape[1:]) >= SMALLEST_IMAGE
        apart = looks_for == "gaussian" or (looks_for in ("auto", "correlated") and not colours)
        if alike and (sigmas[0] is not None or not apart or about_noise.get("gain") is not None):
            model = find_noise(
                sample, sigmas[0], noise_model, about_noise, plain=plain, differences=differences
            )
            assert model is not None
            return cls(model)
        curves = []
        for number, sigma in enumerate(sigmas):
            own = replace(
                sample, data=sample.data[number % len(sample.data)][None], channel_axis=None, ndim=2
            )
            seen = None if differences is None else [differences[number]]
            found = find_noise(own, sigma, noise_model, about_noise, plain=plain, differences=seen)
            if found is None or found.is_correlated or not max(found.curves[0].variances) > 0:
                return None
            curves.append(found.curves[0])
        return cls(NoiseModel(tuple(curves)))

    def levels(self, channels: int) -> list[float]:
        """The standard deviation in each of so many channels, at the middle of its curve."""
        model = self.model
        curves = model.curves * channels if len(model.curves) == 1 else model.curves
        middles = [float(np.mean(curve.levels)) for curve in curves]
        return [float(np.sqrt(model.variance(middle, number))) for number, middle in enumerate(middles)]

    def forward(self, planes: Planes) -> NDArray[np.float64]:
        """A page (H, W), or (channels, H, W), whose noise is white, with the level `sigma`."""
        white = self.model.is_white
        page: NDArray[np.float64] = (
            planes.data if white else self.model.stabilise(planes.data, region=self._stabilise)
        )
        return page if planes.channel_axis is not None else page[0]

    def backward(self, page: NDArray[np.float64]) -> NDArray[np.float64]:
        """What is wanted of a denoised page, as planes (channels, H, W) in the units of the input."""
        found = page if page.ndim == 3 else page[None]
        white = self.model.is_white
        planes: NDArray[np.float64] = (
            self.wanted(found) if white else self.model.unstabilise(found, self._unstabilise)
        )
        return planes

    def size_of(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Height and width of a page once its noise is white."""
        if self._stabilise is None:
            height, width = shape[-2:]
            return height, width
        top, bottom, left, right = self._stabilise.write
        return bottom - top, right - left

    def wanted(self, page: NDArray[Any]) -> NDArray[Any]:
        """What is wanted of a page of white noise."""
        return page if self._region is None else page[(..., *self._region.written())]


def _seen_of(series: list[Pages], sigma: Any, noise_model: Any) -> tuple[Planes, list[Differences] | None]:
    """Some pages below each other, and for each channel the differences of neighbours, if they are needed."""
    several = len(shapes_of(series[0])[0]) == 3
    told = sigma is not None and noise_model == "gaussian"
    pages = np.zeros((1, 1, 1) if several else (1, 1)) if told else mosaic(sampled_pages(series))
    sample = to_planes(pages, 0 if several else None)
    pairs = neighbouring_pages(series) if sigma is None else []
    if not pairs:
        return sample, None
    return sample, [matched(list(of_channel)) for of_channel in zip(*pairs, strict=True)]


def sampled_pages(series: list[Pages]) -> list[NDArray[np.float64]]:
    """Some pages, spread over all series."""
    places = [(pages, index) for pages in series for index in range(len(pages))]
    most = max(1, min(SAMPLE, len(places), int(SAMPLE_PIXELS / max(prod(shapes_of(series[0])[0]), 1))))
    chosen = np.unique(np.linspace(0, len(places) - 1, most).astype(int))
    return [_pixels(checked_page(places[i][0], places[i][1])) for i in chosen]


def _pixels(planes: Planes) -> NDArray[np.float64]:
    """A page (H, W), or (channels, H, W) where it has several."""
    return planes.data if planes.channel_axis is not None else planes.data[0]


def neighbouring_pages(series: list[Pages]) -> list[list[tuple[NDArray[np.float64], NDArray[np.float64]]]]:
    """Some pairs of neighbours of one size, spread over all series: for each the pairs of its channels."""
    places = [(pages, index) for pages in series for index in range(len(pages) - 1)]
    chosen = np.unique(np.linspace(0, len(places) - 1, min(PAIRS, len(places))).astype(int))
    pairs = [[checked_page(places[i][0], places[i][1] + k).data for k in (0, 1)] for i in chosen]
    return [list(zip(first, second, strict=True)) for first, second in pairs if first.shape == second.shape]


def checked_page(pages: Pages, index: int) -> Planes:
    """A page as planes, on the host."""
    return planes_of(to_host(pages[index]), index, len(pages))


def planes_of(page: Any, index: int, count: int) -> Planes:
    """A page as planes; an error says which page of how many it was."""
    try:
        return to_planes(page, None if np.ndim(page) == 2 else 0)
    except ValueError as error:
        if count == 1:
            raise
        raise ValueError(f"page {index + 1} of {count}: {error}") from error


def mosaic(pages: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Pages below each other, cut to the narrowest.

    Examples
    --------
    >>> mosaic([np.zeros((2, 4, 5)), np.zeros((2, 3, 4))]).shape
    (2, 7, 4)
    """
    width = min(page.shape[-1] for page in pages)
    return np.concatenate([page[..., :width] for page in pages], axis=-2)


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
