"""The letters of a stack's axes: checked, and which pages belong together."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.pipeline.device import lies_on_gpu, namespace, to_host
from vnlem.pipeline.page_queue import ENDLESS, Incoming

LETTERS = {
    "T": "time",
    "Z": "depth",
    "C": "channels",
    "N": "several images",
    "Y": "rows",
    "X": "columns",
}
# Axes along which planes help each other; the first with more than one plane is used, except for time and
# depth together.
HELPFUL = "ZTN"
SPOTS = 8  # places at which time and depth are compared
CLEARLY = 0.97  # of the difference between slices: frames that differ by less help more
ENOUGH = 3  # planes without which an axis helps little


def check_axes(axes: Any, shape: tuple[int, ...]) -> str:
    """The letters in capitals, or an error about what does not fit.

    >>> check_axes("tyx", (5, 64, 64))
    'TYX'
    """
    if not isinstance(axes, str):
        raise TypeError(f"axes must be a text with a letter for each axis, such as 'TYX', got {axes!r}")
    letters = axes.upper()
    unknown = [letter for letter in letters if letter not in LETTERS]
    if unknown:
        known = ", ".join(f"{letter} ({meaning})" for letter, meaning in LETTERS.items())
        raise ValueError(f"axes {axes!r} holds the letter {unknown[0]!r}; the letters are {known}")
    doubled = [letter for letter in letters if letters.count(letter) > 1]
    if doubled:
        raise ValueError(f"axes {axes!r} names {doubled[0]!r} twice; every axis needs its own letter")
    missing = [letter for letter in "YX" if letter not in letters]
    if missing:
        raise ValueError(f"axes {axes!r} names no {missing[0]}; a page needs both Y (rows) and X (columns)")
    if len(letters) != len(shape):
        raise ValueError(
            f"axes {axes!r} names {len(letters)} axes, but the array has {len(shape)} (shape {shape}); "
            "give one letter for each"
        )
    if 0 in shape:
        raise ValueError(f"the stack is empty (shape {shape}); pass at least one page")
    return letters


@dataclass(frozen=True)
class PageSeries:
    """Pages that help each other: indices into the array, in order."""

    kind: str  # "T", "Z" or "N"; "" for independent pages
    channel: int  # 0 if the pages have several channels
    pages: tuple[tuple[Any, ...], ...]
    channels: Sequence[int] | None = None  # that pages with several channels have; all when None


def helpful_axis(array: Any, letters: str, channels: Sequence[int] | None = None) -> str:
    """The axis along which the pages of a stack help each other: "Z", "T", "N", or "" for pages alone.

    With both time and depth, the axis with the more similar neighbours is used. Noise adds the same to the
    differences of both, so it need not be known. Depth is used if they are about equal, and an axis of less
    than three pages only if the other has no more.

    array: has a shape, and gives whole pages by their index.
    letters: one for each axis.
    channels: that are compared; all when None.

    >>> slices = np.random.default_rng(0).normal(size=(1, 5, 8, 8))
    >>> helpful_axis(np.repeat(slices, 4, axis=0), "TZYX"), helpful_axis(slices[0], "ZYX")
    ('T', 'Z')
    """
    sizes = dict(zip(letters, array.shape, strict=True))
    kept = _chosen(sizes, channels)
    sizes |= {"C": len(kept)}
    many = [letter for letter in HELPFUL if sizes.get(letter, 1) > 1]
    if not {"T", "Z"} <= set(many):
        return many[0] if many else ""
    if min(sizes["T"], sizes["Z"]) < ENOUGH:
        return "T" if sizes["T"] > sizes["Z"] else "Z"
    counted = [letter for letter in letters if letter not in "YX"]
    # A spot needs a neighbour along both axes.
    inner = [sizes[letter] - (letter in "TZ") for letter in counted]
    spots = np.unique(np.linspace(0, math.prod(inner) - 1, SPOTS).astype(int))
    apart = {"T": 0.0, "Z": 0.0}
    for spot in spots:
        at = dict(zip(counted, map(int, np.unravel_index(spot, inner)), strict=True))
        at |= {"C": kept[at.get("C", 0)]}
        page = _page_at(array, letters, at)
        for axis in apart:
            other = _page_at(array, letters, at | {axis: at[axis] + 1})
            with np.errstate(invalid="ignore", over="ignore"):  # pages with NaN are refused later
                apart[axis] += float(np.mean((other - page) ** 2))
    return "T" if apart["T"] < CLEARLY * apart["Z"] else "Z"


def _page_at(array: Any, letters: str, at: dict[str, int]) -> NDArray[np.float64]:
    index = tuple(slice(None) if letter in "YX" else at[letter] for letter in letters)
    page = array[index]
    return np.asarray(to_host(page) if lies_on_gpu(page) else page, np.float64)


def _chosen(sizes: dict[str, int], channels: Sequence[int] | None) -> Sequence[int]:
    return range(sizes.get("C", 1)) if channels is None else channels


def series_of(
    letters: str,
    shape: tuple[int, ...],
    kind: str,
    *,
    joint: bool = False,
    channels: Sequence[int] | None = None,
) -> list[PageSeries]:
    """The pages of an array, in series along the axis in which they help each other, "" for none.

    joint: the pages have several channels; else each channel has separate pages.
    channels: to take; all when None.

    >>> [(one.kind, one.channel, len(one.pages)) for one in series_of("TCYX", (5, 2, 8, 8), "T")]
    [('T', 0, 5), ('T', 1, 5)]
    >>> [(one.kind, len(one.pages)) for one in series_of("TCYX", (5, 2, 8, 8), "T", joint=True)]
    [('T', 5)]
    """
    sizes = dict(zip(letters, shape, strict=True))
    kept = _chosen(sizes, channels)
    whole = "CYX" if joint else "YX"
    outer = [letter for letter in letters if letter not in (*whole, kind)]
    found = []
    for numbers in product(*(kept if letter == "C" else range(sizes[letter]) for letter in outer)):
        fixed: dict[str, Any] = dict(zip(outer, numbers, strict=True))
        pages = tuple(
            tuple(slice(None) if letter in whole else (fixed | {kind: i})[letter] for letter in letters)
            for i in range(sizes.get(kind, 1))
        )
        found.append(PageSeries(kind, fixed.get("C", 0), pages, channels if joint else None))
    return found


class PagesOf:
    """The pages of a series, each cut from the array when it is requested.

    A page is (H, W), or (channels, H, W) if the series has several. The array may be on disk: if its
    last axes are Y and X, only whole pages of one channel are requested from it. Pages have the dtype
    `dtype`, if it is given.

    >>> stack = np.zeros((4, 3, 2))
    >>> pages = PagesOf(stack, "XYT", series_of("XYT", stack.shape, "T")[0])
    >>> len(pages), pages[0].shape
    (2, (3, 4))
    >>> movie = np.zeros((2, 5, 6, 3))
    >>> PagesOf(movie, "TYXC", series_of("TYXC", movie.shape, "T", joint=True)[0])[0].shape
    (3, 5, 6)
    """

    def __init__(
        self, array: Any, letters: str, series: PageSeries, dtype: np.dtype[Any] | None = None
    ) -> None:
        self._array, self._series, self._dtype = array, series, dtype
        whole = [isinstance(part, slice) for part in series.pages[0]]
        kept = "".join(letter for letter, is_whole in zip(letters, whole, strict=True) if is_whole)
        self._order = [kept.index(letter) for letter in "CYX" if letter in kept]
        plane = kept.replace("C", "")
        self._order_of_planes = [plane.index(letter) for letter in "YX"]
        # The axis of the channels, if they are read one by one.
        one_by_one = kept[0] == "C" or ("C" in kept and series.channels is not None)
        self._apart = letters.index("C") if one_by_one else None

    def __len__(self) -> int:
        return len(self._series.pages)

    def __getitem__(self, index: int) -> NDArray[Any]:
        if self._apart is None:
            page: NDArray[Any] = self._array[self._series.pages[index]].transpose(self._order)
        else:
            planes = [self._array[one].transpose(self._order_of_planes) for one in self._planes(index)]
            # In their own byte order, which stacking would change.
            page = namespace(planes[0]).stack(planes).astype(planes[0].dtype, copy=False)
        return page if self._dtype is None else page.astype(self._dtype, copy=False)

    def _planes(self, index: int) -> list[tuple[Any, ...]]:
        """Where the channels of a page lie, one by one."""
        at, axis = self._series.pages[index], self._apart
        assert axis is not None
        return [(*at[:axis], number, *at[axis + 1 :]) for number in self._channels(axis)]

    def _channels(self, axis: int) -> Sequence[int]:
        return range(self._array.shape[axis]) if self._series.channels is None else self._series.channels

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[index] for index in range(len(self)))

    @property
    def page_shape(self) -> tuple[int, ...]:
        """Of every page."""
        sizes = zip(self._array.shape, self._series.pages[0], strict=True)
        shape = tuple(size for size, part in sizes if isinstance(part, slice))
        page = tuple(shape[axis] for axis in self._order)
        return page if self._apart is None else (len(self._channels(self._apart)), *page[1:])

    def put(self, index: int, page: NDArray[Any]) -> None:
        """Write a page into the array."""
        page = namespace(self._array).asarray(page)
        if self._apart is None:
            self._array[self._series.pages[index]] = page.transpose(np.argsort(self._order).tolist())
            return
        back = np.argsort(self._order_of_planes).tolist()
        for at, plane in zip(self._planes(index), page, strict=True):
            self._array[at] = plane.transpose(back)


def shapes_of(pages: Any) -> list[tuple[int, ...]]:
    """The shape of each page, without reading any; for ENDLESS pages of a stream.

    >>> stack = np.zeros((4, 3, 2))
    >>> shapes_of(PagesOf(stack, "XYT", series_of("XYT", stack.shape, "T")[0]))
    [(3, 4), (3, 4)]
    """
    if isinstance(pages, PagesOf):
        return [pages.page_shape] * len(pages)
    if isinstance(pages, Incoming):
        return [pages.page_shape] * ENDLESS
    return [page.shape for page in pages]


def count_of(pages: Any) -> int | None:
    """How many pages there are; None if they are still to come.

    >>> count_of([np.zeros((4, 3))]), count_of(Incoming((4, 3)))
    (1, None)
    """
    return None if isinstance(pages, Incoming) else len(pages)


def shown_size(shape: tuple[int, ...]) -> str:
    """A page's size in the usual notation.

    >>> shown_size((64, 48))
    '64x48'
    """
    return "x".join(map(str, shape)) if math.prod(shape) else "nothing"
