"""Movies, volumes and sets of images, whose pages help each other: a whole layer, or a few for a preview.

A dask or zarr array is read page by page. Only the result and the pages in flight are in memory.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.napari.noise import noise_arguments
from vnlem.napari.pages import Index, Pages, Report, has_missing, read
from vnlem.napari.settings import Settings
from vnlem.noise import NoiseModel
from vnlem.noise.pages import StackNoise
from vnlem.pipeline.axes import PagesOf, helpful_axis, series_of
from vnlem.pipeline.dtypes import as_dtype
from vnlem.registry import stack_method
from vnlem.repair_stack import shows_impulses
from vnlem.stacks import denoise_pages_on_disk

# Pages on each side that a preview uses: they give most of the benefit of all pages.
PREVIEW_REACH = 3
# Largest height and width of a preview in pixels: of a page alone, and of several that help each other.
PREVIEW_SIDE, STACK_PREVIEW_SIDE = 512, 256


class InPages:
    """An array of any kind that gives its pages as NumPy arrays."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self.shape = tuple(array.shape)

    def __getitem__(self, index: Index) -> NDArray[Any]:
        return read(self._array, index)


def helping_axis(data: Any, pages: Pages, settings: Settings) -> str:
    """The axis along which pages help each other; "" if pages are independent.

    >>> movie, pages = np.zeros((5, 32, 32)), Pages("TYX", (5, 32, 32))
    >>> helping_axis(movie, pages, Settings()), helping_axis(movie, pages, Settings(method="nlem"))
    ('T', '')
    """
    if not pages.is_stack:
        return ""
    kind = helpful_axis(InPages(data), pages.axes)
    return kind if kind and stack_method(settings.method, kind) is not None else ""


def preview_side(pages: Pages, settings: Settings) -> int:
    """Largest height and width of a preview: less if it takes several pages."""
    several = pages.is_stack and stack_method(settings.method) is not None
    return STACK_PREVIEW_SIDE if several else PREVIEW_SIDE


def denoise_stack(
    data: Any, pages: Pages, settings: Settings, report: Report
) -> tuple[NDArray[Any], dict[int, NoiseModel]]:
    """All pages denoised by ``vnlem.denoise``, and the noise of each channel."""
    result = np.empty(pages.shape, data.dtype)
    noise = noise_arguments(settings)
    chosen = settings.method_arguments()
    strength = chosen.pop("strength", 1.0)
    chosen |= settings.channel_arguments(pages.axes)
    impulses = {"impulses": chosen.pop("impulses", "auto")}
    options: dict[str, Any] = {
        "axes": pages.axes,
        "progress": lambda done, total: report(done / max(total, 1)),
    }
    options |= {"workers": None, "device": None, **noise, **chosen}
    sigma = options.pop("sigma")
    if has_missing(data, pages) or shows_impulses(InPages(data), sigma, **options, **impulses):
        import vnlem

        # Such pixels are replaced in the whole stack at once.
        result, info = vnlem.denoise(
            np.asarray(data), sigma, return_info=True, strength=strength, **options, **impulses
        )
    else:
        _, info = denoise_pages_on_disk(InPages(data), result, sigma, **options)
        for page in range(len(result)) if strength < 1 else ():
            given = read(data, (page,)).astype(np.float64)
            result[page] = as_dtype(given + strength * (result[page] - given), result.dtype)
    return result, dict(enumerate(info.details.get("noise_models", [info.noise])))


def find_stack_noise(data: Any, pages: Pages, settings: Settings, channel: int, kind: str) -> NoiseModel:
    """The noise that :func:`denoise_stack` finds in one channel of a stack whose pages help each other."""
    noise = noise_arguments(settings)
    sigma, model = noise.pop("sigma"), noise.pop("noise_model")
    all_series = series_of(pages.axes, pages.shape, kind)
    series = [PagesOf(InPages(data), pages.axes, one) for one in all_series if one.channel == channel]
    return StackNoise.of(list(series), sigma, model, noise, plain=False).model


def denoise_in_sight(
    data: Any, index: Index, pages: Pages, kind: str, settings: Settings, noise: NoiseModel, report: Report
) -> tuple[NDArray[Any], NDArray[Any]]:
    """A part of one page before and after, with the help of the same part of a few pages around it."""
    import vnlem

    axis = pages.axes.index(kind)
    here, size = index[axis], pages.shape[axis]
    assert isinstance(here, int)
    count = min(2 * PREVIEW_REACH + 1, size)
    first = min(max(here - PREVIEW_REACH, 0), size - count)
    block = read(data, (*index[:axis], slice(first, first + count), *index[axis + 1 :]))
    axes = "".join(letter for letter in pages.axes if letter in ("Y", "X", kind))
    result = vnlem.denoise(
        block,
        axes=axes,
        noise_model=noise,
        **settings.method_arguments(),
        progress=lambda done, total: report(done / max(total, 1)),
    )
    place = axes.index(kind)
    return block.take(here - first, place), result.take(here - first, place)
