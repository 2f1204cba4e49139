"""Holes in the pages of large stacks: what is known about them before the work; pages without them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.large.sample import is_all
from vnlem.large.sources import Source
from vnlem.noise.stack_holes import HoleSurvey, PageRepair, Seen, find_repair
from vnlem.pipeline.axes import series_of
from vnlem.pipeline.regions import Region
from vnlem.repair import EVERY_PIXEL, PixelOptions


def repairs_of(
    source: Source, letters: str, sigma: Any, pixels: PixelOptions
) -> tuple[tuple[PageRepair, ...], list[HoleSurvey]]:
    """How the holes of each channel are filled, empty if there are none; and what was seen of them."""
    if pixels.mask is not None and pixels.mask.all():
        raise ValueError("all pixels are masked; there is nothing to denoise")
    reads = ReadInPages(source)
    # Pixels that the maps of a sensor even out look like impulses.
    asked = False if pixels.impulses == "auto" and source.sensor is not None else pixels.impulses
    found = []
    for channel in range(dict(zip(letters, source.shape, strict=True)).get("C", 1)):
        pages = [one.pages[0] for one in series_of(letters, source.shape, "") if one.channel == channel]

        def page_at(number: int, pages: Any = pages) -> Seen:
            page, missing = seen_page(reads[pages[number]], pixels)
            if missing is not None and missing.all():
                raise ValueError(f"all pixels of a page of {source.name} are NaN or masked; leave it out")
            return page, missing

        found.append(find_repair(len(pages), page_at, sigma, asked, over_time="T" in letters))
    told = pixels.mask is not None or pixels.defects is not None
    needed = told or any(one.missing or one.repair.finds for one in found) or _holds_nan(source)
    return tuple(one.repair for one in found) if needed else (), found


def _holds_nan(source: Source) -> bool:
    """Whether a source that is small enough to be checked holds NaN anywhere."""
    if source.dtype.kind != "f" or not is_all(source):
        return False
    return bool(np.isnan(source.read(tuple((0, size) for size in source.shape))).any())


def seen_page(page: NDArray[Any], pixels: PixelOptions, region: Region | None = None) -> Seen:
    """A page (H, W), or what a region reads of it, without NaN, and its missing pixels."""
    found = np.isnan(page) if page.dtype.kind == "f" else None
    for values in (pixels.mask, pixels.defects):
        if values is not None:
            own = values if region is None else values[region.read.slices]
            found = own if found is None else found | own
    if found is None or not found.any():
        return page, None
    return np.where(found, page.dtype.type(0), page), found


def repaired(
    page: NDArray[Any], pixels: PixelOptions, repair: PageRepair, region: Region | None = None
) -> tuple[NDArray[Any], Any, Any]:
    """A page (H, W), or what a region reads of it, filled; its missing pixels; and these with impulses."""
    page, gone = seen_page(page, pixels, region)
    missing = np.zeros(page.shape, bool) if gone is None else gone
    holes = missing | repair.impulses(page, gone, region) if repair.finds else missing
    return repair.fill(page, holes), missing, holes


class ReadInPages:
    """A source that gives whole pages by their index, filled if needed."""

    def __init__(
        self, source: Source, pixels: PixelOptions = EVERY_PIXEL, repairs: tuple[PageRepair, ...] = ()
    ) -> None:
        self.source, self.shape = source, source.shape
        self._pixels, self._repairs = pixels, repairs

    def __getitem__(self, index: tuple[Any, ...]) -> NDArray[Any]:
        box = tuple(
            (0, size) if isinstance(part, slice) else (part, part + 1)
            for part, size in zip(index, self.shape, strict=True)
        )
        page = self.source.read(box).reshape(self.shape[-2:])
        if not self._repairs:
            return page
        axis = self.source.axis("c")
        return repaired(page, self._pixels, self._repairs[0 if axis is None else index[axis]])[0]
