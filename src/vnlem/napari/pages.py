"""An array of several dimensions as pages, denoised one after another.

A page is a plane of Y and X, with the colours of an RGB layer. Only one page of a dask or
zarr array is in memory at a time, in addition to the result.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.napari.noise import find_noise
from vnlem.napari.settings import Settings
from vnlem.noise import NoiseCheck, NoiseModel, predictive_check
from vnlem.pipeline.axes import check_axes

Report = Callable[[float], None]  # takes the share of the work that is done, 0 to 1; raises to cancel
Index = tuple[int | slice, ...]

# The noise is estimated from at most this many pixels along each side, around the middle of a page.
SAMPLE_SIDE = 1024


@dataclass(frozen=True)
class Pages:
    """How an array divides into pages.

    >>> pages = Pages("TYX", (3, 64, 48))
    >>> [index[0] for index in pages.indices()], pages.channel_axis
    ([0, 1, 2], None)
    """

    axes: str
    shape: tuple[int, ...]
    rgb: bool = False

    def __post_init__(self) -> None:
        check_axes(self.axes, self.shape)

    @property
    def _kept(self) -> str:
        return "YXC" if self.rgb else "YX"

    @property
    def channel_axis(self) -> int | None:
        """The colour axis of a page."""
        kept = [letter for letter in self.axes if letter in self._kept]
        return kept.index("C") if "C" in kept else None

    @property
    def is_stack(self) -> bool:
        """Whether there are several grey pages, which ``vnlem.denoise`` takes all at once."""
        return not self.rgb and len(self.axes) > 2

    def indices(self) -> Iterator[Index]:
        """What picks each page from the array."""
        ranges: list[Any] = [
            [slice(None)] if letter in self._kept else range(size)
            for letter, size in zip(self.axes, self.shape, strict=True)
        ]
        return itertools.product(*ranges)

    def channel_of(self, index: Index) -> int:
        """The fluorescence channel of a page; 0 if there is only one. Channels differ in their noise."""
        place = index[self.axes.index("C")] if "C" in self.axes else 0
        return place if isinstance(place, int) else 0

    def middle(self, channel: int) -> Index:
        """The page in the middle of one channel."""
        return tuple(
            slice(None) if letter in self._kept else channel if letter == "C" else size // 2
            for letter, size in zip(self.axes, self.shape, strict=True)
        )


def read(data: Any, index: Index) -> NDArray[Any]:
    """One page as a NumPy array, from any kind of array."""
    return np.asarray(data[index])


def has_missing(data: Any, pages: Pages) -> bool:
    """Whether pixels of any page are missing, that is NaN.

    Examples
    --------
    >>> has_missing(np.array([[1.0, np.nan]]), Pages("YX", (1, 2)))
    True
    """
    return data.dtype.kind == "f" and any(
        bool(np.isnan(read(data, index)).any()) for index in pages.indices()
    )


def find_page_noise(data: Any, pages: Pages, settings: Settings, channel: int = 0) -> NoiseModel:
    """The noise of one channel, estimated from the middle of its middle page."""
    index = list(pages.middle(channel))
    for place, (letter, size) in enumerate(zip(pages.axes, pages.shape, strict=True)):
        if letter in "YX" and size > SAMPLE_SIDE:
            begin = (size - SAMPLE_SIDE) // 2
            index[place] = slice(begin, begin + SAMPLE_SIDE)
    page, _ = _without_alpha(read(data, tuple(index)), pages.channel_axis)
    return find_noise(page, settings, pages.channel_axis)


def denoise_page(
    page: NDArray[Any], noise: NoiseModel, settings: Settings, channel_axis: int | None, report: Report
) -> NDArray[Any]:
    """One page denoised; transparency is kept as it is."""
    import vnlem

    colours, alpha = _without_alpha(page, channel_axis)
    result = vnlem.denoise(
        colours,
        noise_model=noise,
        **settings.method_arguments(),
        channel_axis=channel_axis,
        progress=lambda done, total: report(done / max(total, 1)),
    )
    return result if alpha is None else np.concatenate([result, alpha], axis=channel_axis)


def check_page(
    before: NDArray[Any], after: NDArray[Any], noise: NoiseModel, channel_axis: int | None
) -> NoiseCheck:
    """Whether simulated noise, added to a denoised page, looks like the page.

    Transparency is ignored, and so are missing pixels (NaN), which the denoised page fills.

    >>> page = np.random.default_rng(0).normal(100, 3.0, (64, 64))
    >>> check_page(page, np.full_like(page, 100), NoiseModel.white(3.0), None).verdict
    'yes'
    """
    first, second = (_without_alpha(page, channel_axis)[0] for page in (before, after))
    if first.dtype.kind == "f":
        first = np.where(np.isnan(first), second, first)
    return predictive_check(first, second, noise, channel_axis)


def denoise_pages(
    data: Any, pages: Pages, settings: Settings, report: Report
) -> tuple[NDArray[Any], dict[int, NoiseModel]]:
    """Denoise every page separately, with the noise of each channel estimated once."""
    result = np.empty(pages.shape, data.dtype)
    noise: dict[int, NoiseModel] = {}
    indices = list(pages.indices())
    for number, index in enumerate(indices):
        channel = pages.channel_of(index)
        if channel not in noise:
            noise[channel] = find_page_noise(data, pages, settings, channel)
        result[index] = denoise_page(
            read(data, index),
            noise[channel],
            settings,
            pages.channel_axis,
            lambda share, number=number: report((number + share) / len(indices)),  # type: ignore[misc]
        )
        report((number + 1) / len(indices))
    return result, noise


def _without_alpha(page: NDArray[Any], channel_axis: int | None) -> tuple[NDArray[Any], NDArray[Any] | None]:
    if channel_axis is None or page.shape[channel_axis] != 4:
        return page, None
    colours, alpha = np.split(page, [3], axis=channel_axis)
    return colours, alpha
