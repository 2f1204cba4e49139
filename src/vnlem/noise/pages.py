"""The noise of a stack: found once on some of its pages, and then the same for all pages of a channel."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.noise.auto import find_noise
from vnlem.noise.model import NoiseModel
from vnlem.noise.parts import steps
from vnlem.pipeline.axes import PagesOf
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
        cls, series: list[Pages], sigma: Any, noise_model: Any, camera: dict[str, Any], *, plain: bool
    ) -> "StackNoise":
        """What is given, or estimated on some pages of all series of a channel."""
        told = sigma is not None and noise_model == "gaussian"
        sample = to_planes(np.zeros((1, 1)) if told else _mosaic(sampled_pages(series)))
        model = find_noise(sample, sigma, noise_model, camera, plain=plain)
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
    most = max(1, min(SAMPLE, len(places), int(SAMPLE_PIXELS / max(series[0][0].size, 1))))
    chosen = np.unique(np.linspace(0, len(places) - 1, most).astype(int))
    return [checked_page(places[i][0], places[i][1]).data[0] for i in chosen]


def checked_page(pages: Pages, index: int) -> Planes:
    """A page as planes, on the host."""
    return planes_of(to_host(pages[index]), index, len(pages))


def planes_of(page: Any, index: int, count: int) -> Planes:
    """A page as planes; an error says which page of how many it was."""
    try:
        return to_planes(page, None)
    except ValueError as error:
        if count == 1:
            raise
        raise ValueError(f"page {index + 1} of {count}: {error}") from error


def _mosaic(pages: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Pages below each other, cut to the narrowest."""
    width = min(page.shape[1] for page in pages)
    return np.concatenate([page[:, :width] for page in pages])


def units_of(
    pages: Pages, noise: StackNoise, planes_at: Callable[[int], Planes] | None = None
) -> tuple[float, float]:
    """Mean of all pages, and the standard deviation that they seem to have without their noise.

    planes_at: gives a page as planes, here or on a device; :func:`checked_page` when None.
    """
    planes = (checked_page(pages, i) if planes_at is None else planes_at(i) for i in range(len(pages)))
    return _Statistics.of(_moments(noise, one) for one in planes).scale(noise.sigma)


def _moments(noise: StackNoise, planes: Planes) -> tuple[int, float, float]:
    """How many pixels a page has, their mean, and the sum of their squares about it."""
    known = planes.statistics
    if known is not None and noise.model.is_white:
        return planes.data.size, known.mean, planes.data.size * known.deviation**2
    page = noise.forward(planes)
    mean = float(page.mean())
    return page.size, mean, float(((page - mean) ** 2).sum())


class _Statistics:
    """Mean and variance of all pages, page by page."""

    def __init__(self, count: int, mean: float, squares: float) -> None:
        self._count, self._mean, self._squares = count, mean, squares

    @classmethod
    def of(cls, moments: Iterator[tuple[int, float, float]]) -> "_Statistics":
        """Pages are joined two by two, which loses no digits where the mean is far from zero."""
        count, mean, squares = 0, 0.0, 0.0
        for n, page_mean, page_squares in moments:
            shift = page_mean - mean
            both = count + n
            squares += page_squares + shift**2 * count * n / both
            mean += shift * n / both
            count = both
        return cls(count, mean, squares)

    def scale(self, sigma: float) -> tuple[float, float]:
        """Mean, and the standard deviation that the clean pages seem to have."""
        variance = self._squares / self._count
        if sigma > 0 and variance < 1.01 * sigma**2:
            warn(
                f"sigma {sigma:g} accounts for all of the stack's own standard deviation "
                f"{np.sqrt(variance):g}: there may be nothing but noise; check the units of sigma"
            )
        return self._mean, float(np.sqrt(max(variance - sigma**2, 0.01 * sigma**2)))
