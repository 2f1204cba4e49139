"""The noise of a stack: found once on some of its pages, and then the same for all pages of a channel."""

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.noise.correlated import SMALLEST_IMAGE
from vnlem.noise.field import field_of
from vnlem.noise.find import CAMERA, find_noise
from vnlem.noise.frames import PAIRS, matched
from vnlem.noise.levels import Differences
from vnlem.noise.lines import check_lines, find_lines, with_lines
from vnlem.noise.model import NoiseModel
from vnlem.noise.parts import steps
from vnlem.noise.poisson_gaussian import are_maps
from vnlem.pipeline.axes import PagesOf, shapes_of
from vnlem.pipeline.device import to_host
from vnlem.pipeline.image import Planes, to_planes
from vnlem.pipeline.page_queue import Incoming
from vnlem.pipeline.regions import Region

Pages = Sequence[NDArray[Any]] | PagesOf
Arriving = Pages | Incoming  # or pages of a stream, which can be taken once
# Pages on which the noise is estimated, spread over the series.
SAMPLE = 12
SAMPLE_PIXELS = 4e6  # the most pixels for that, but at least one page
PAGES_WITH_LINES = 3  # pages that are checked for lines
NOT_IN_PARTS = (
    "offsets of lines and maps of the noise need whole images, and this one is denoised in parts; use "
    "vnlem.denoise, or leave them out"
)


class StackNoise:
    """The noise of a channel: how to make it white, and its level then.

    region: if pages are parts of larger ones: what they hold, and which part is wanted.
    lines: whether rows and columns have offsets that differ from page to page.
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
        """The given noise, or an estimate on some pages of all series of a channel.

        in_parts: pages are denoised part by part; lines and maps, which need whole pages, are refused.
        """
        asked = check_lines(about_noise.get("lines"))
        if in_parts and asked is True:
            raise ValueError(NOT_IN_PARTS)
        seen = _Seen.of(series, sigma, noise_model, about_noise, plain=plain, in_parts=in_parts)
        model = seen.noise(sigma, noise_model, about_noise, plain)
        if noise_model == "field" or (seen.looks and model.kind == "white"):
            model = field_of(seen.pages, sure=noise_model == "field") or model
        if model.maps is not None:
            if in_parts:
                raise ValueError(NOT_IN_PARTS)
            for shape in shapes_of(series[0]):
                model.maps.check(*shape)
        return cls(model, lines=seen.lines)

    @property
    def is_white(self) -> bool:
        """Whether pages are denoised without a transform."""
        return self.model.is_white and not self._lines

    @classmethod
    def of_channels(
        cls,
        series: list[Pages],
        sigmas: list[Any],
        noise_model: Any,
        about_noise: dict[str, Any],
        plain: bool,
        in_parts: bool = False,
    ) -> "StackNoise | None":
        """The noise of channels that are denoised together; None if there is no common estimate.

        Colours are estimated together if they may share noise, other channels separately. Channels whose
        noise varies over the page are denoised one by one.

        series: with all channels.
        sigmas: a number, or None, for each channel.
        noise_model, about_noise, plain, in_parts: as for :meth:`of`.
        """
        if has_maps(noise_model, about_noise) or noise_model == "field":
            return None
        alike = all(sigma == sigmas[0] for sigma in sigmas)
        sigma, kind = (sigmas[0], noise_model) if alike else (0.0, "gaussian")
        seen = _Seen.of(series, sigma, kind, about_noise, plain=plain, in_parts=in_parts)
        if seen.lines and in_parts:
            return None
        looks_for = "gaussian" if plain and noise_model == "auto" else noise_model
        colours = len(sigmas) == 3 and min(seen.sample.data.shape[1:]) >= SMALLEST_IMAGE
        apart = looks_for == "gaussian" or (looks_for in ("auto", "correlated") and not colours)
        if alike and (sigmas[0] is not None or not apart or about_noise.get("gain") is not None):
            model = seen.noise(sigmas[0], noise_model, about_noise, plain)
            return None if seen.has_field(model) else cls(model, lines=seen.lines)
        curves = []
        for number, sigma in enumerate(sigmas):
            found = seen.of_channel(number).noise(sigma, noise_model, about_noise, plain)
            if found.is_correlated or not max(found.curves[0].variances) > 0:
                return None
            if seen.has_field(found, number):
                return None
            curves.append(found.curves[0])
        return cls(NoiseModel(tuple(curves)), lines=seen.lines)

    def levels(self, channels: int) -> list[float]:
        """The standard deviation in each channel, at the middle of its curve."""
        model = self.model
        curves = model.curves * channels if len(model.curves) == 1 else model.curves
        middles = [float(np.mean(curve.levels)) for curve in curves]
        return [float(np.sqrt(model.variance(middle, number))) for number, middle in enumerate(middles)]

    def forward(self, planes: Planes) -> NDArray[np.float64]:
        """A page (H, W), or (channels, H, W), whose noise is white, with the level `sigma`."""
        data = _without_lines(planes.data) if self._lines else planes.data
        white = self.model.is_white
        page: NDArray[np.float64] = data if white else self.model.stabilise(data, region=self._stabilise)
        return page if planes.channel_axis is not None else page[0]

    def backward(self, page: NDArray[np.float64], given: Planes) -> NDArray[np.float64]:
        """The wanted part of a denoised page, as planes (channels, H, W) in the units of the given ones."""
        found = page if page.ndim == 3 else page[None]
        white, maps = self.model.is_white, self.model.maps
        planes: NDArray[np.float64] = (
            self.wanted(found) if white else self.model.unstabilise(found, self._unstabilise)
        )
        return planes if maps is None else maps.kept(planes, given.data, given.dtype)

    def of_page(self, planes: Planes) -> NoiseModel:
        """The noise of a page, with the offsets of its own lines."""
        return with_lines(self.model, find_lines(planes.data, sure=True) if self._lines else None)

    def size_of(self, shape: tuple[int, ...]) -> tuple[int, int]:
        """Height and width of a page once its noise is white."""
        if self._stabilise is None:
            height, width = shape[-2:]
            return height, width
        top, bottom, left, right = self._stabilise.write
        return bottom - top, right - left

    def wanted(self, page: NDArray[Any]) -> NDArray[Any]:
        """The wanted part of a page of white noise."""
        return page if self._region is None else page[(..., *self._region.written())]


def has_maps(noise_model: Any, about_noise: dict[str, Any]) -> bool:
    """Whether the noise was given with a map.

    >>> has_maps("auto", {"gain": np.ones((4, 4))}), has_maps("auto", {"gain": 2.0})
    (True, False)
    """
    if isinstance(noise_model, NoiseModel):
        return noise_model.maps is not None
    return are_maps({name: about_noise.get(name) for name in CAMERA})


class _Seen(NamedTuple):
    """The pages on which the noise of some series is found."""

    pages: list[NDArray[np.float64]]  # some of them, without their lines; empty if not needed
    sample: Planes  # the same, one below another
    differences: list[Differences] | None  # of neighbours, for each channel
    lines: bool  # whether the lines of each page differ
    looks: bool  # whether the noise may vary over a page, if not given

    @classmethod
    def of(
        cls,
        series: list[Pages],
        sigma: Any,
        noise_model: Any,
        about_noise: dict[str, Any],
        *,
        plain: bool,
        in_parts: bool,
    ) -> "_Seen":
        told = sigma is not None and noise_model == "gaussian"
        asked = check_lines(about_noise.get("lines"))
        looks = sigma is None and noise_model == "auto" and about_noise.get("gain") is None
        looks = looks and not (plain or in_parts)
        pages = [] if told and asked is not True else sampled_pages(series)
        lines = asked is True or (asked == "auto" and looks and _have_lines(pages))
        if lines:
            pages = [_without_lines(page.reshape(-1, *page.shape[-2:])).reshape(page.shape) for page in pages]
        several = len(shapes_of(series[0])[0]) == 3
        blank = np.zeros((1, 1, 1) if several else (1, 1))
        sample = to_planes(blank if told else mosaic(pages), 0 if several else None)
        pairs = neighbouring_pages(series) if sigma is None and not lines else []
        differences = [matched(list(of_channel)) for of_channel in zip(*pairs, strict=True)]
        return cls(pages, sample, differences or None, lines, looks)

    def of_channel(self, number: int) -> "_Seen":
        """The same with the sample and the differences of one channel."""
        data = self.sample.data[number % len(self.sample.data)][None]
        sample = replace(self.sample, data=data, channel_axis=None, ndim=2)
        return self._replace(sample=sample, differences=self.differences and [self.differences[number]])

    def noise(self, sigma: Any, noise_model: Any, about_noise: dict[str, Any], plain: bool) -> NoiseModel:
        """The given noise, or an estimate."""
        options: dict[str, Any] = {"plain": plain, "differences": self.differences, "in_place": False}
        model = find_noise(self.sample, sigma, noise_model, about_noise, **options)
        assert model is not None  # sigma is a single number here
        return model

    def has_field(self, model: NoiseModel, channel: int | None = None) -> bool:
        """Whether white noise clearly varies over the pages, in all channels or in one."""
        if not self.looks or model.kind != "white":
            return False
        planes = [plane for page in self.pages for plane in (page if channel is None else page[[channel]])]
        return field_of(planes) is not None


def sampled_pages(series: list[Pages]) -> list[NDArray[np.float64]]:
    """Some pages, spread over all series."""
    places = [(pages, index) for pages in series for index in range(len(pages))]
    most = max(1, min(SAMPLE, len(places), int(SAMPLE_PIXELS / max(prod(shapes_of(series[0])[0]), 1))))
    chosen = np.unique(np.linspace(0, len(places) - 1, most).astype(int))
    return [_pixels(checked_page(places[i][0], places[i][1])) for i in chosen]


def _pixels(planes: Planes) -> NDArray[np.float64]:
    """A page (H, W), or (channels, H, W) if it has several."""
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


def planes_of(page: Any, index: int, count: int | None) -> Planes:
    """A page as planes; an error says which page of how many it was."""
    try:
        return to_planes(page, None if np.ndim(page) == 2 else 0)
    except ValueError as error:
        if count == 1:
            raise
        raise ValueError(f"{page_name(index, count)}: {error}") from error


def page_name(index: int, count: int | None) -> str:
    """The name of a page in a message; count: None in a stream.

    >>> page_name(2, 9), page_name(2, None)
    ('page 3 of 9', 'frame 3')
    """
    return f"frame {index + 1}" if count is None else f"page {index + 1} of {count}"


def _without_lines(planes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Planes (channels, H, W) without the offsets of their rows and columns."""
    found = find_lines(planes, sure=True)
    return planes if found is None else found.enter(planes)


def _have_lines(pages: list[NDArray[np.float64]]) -> bool:
    """Whether the lines of most of some pages clearly differ."""
    some = pages[:: max(1, len(pages) // PAGES_WITH_LINES)]
    planes = (page.reshape(-1, *page.shape[-2:]) for page in some)
    return 2 * sum(find_lines(page) is not None for page in planes) > len(some)


def mosaic(pages: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Pages one below another, cut to the narrowest.

    >>> mosaic([np.zeros((2, 4, 5)), np.zeros((2, 3, 4))]).shape
    (2, 7, 4)
    """
    width = min(page.shape[-1] for page in pages)
    return np.concatenate([page[..., :width] for page in pages], axis=-2)
