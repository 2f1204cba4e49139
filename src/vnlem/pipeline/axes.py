"""The letters of a stack's axes: checked, and which pages belong together."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LETTERS = {
    "T": "time",
    "Z": "depth",
    "C": "channels",
    "N": "several images",
    "Y": "rows",
    "X": "columns",
}
# Along which of the axes planes help each other; the first that has more than one plane is taken.
HELPFUL = "ZTN"


def check_axes(axes: Any, shape: tuple[int, ...]) -> str:
    """The letters in capitals, or a sentence about what does not fit.

    Examples
    --------
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
        raise ValueError(f"axes {axes!r} names {doubled[0]!r} twice; every axis needs a letter of its own")
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
class Series:
    """Pages that help each other: indices into the array, in order."""

    kind: str  # "T", "Z" or "N"; "" for pages that stand alone
    channel: int
    pages: tuple[tuple[Any, ...], ...]


def series_of(letters: str, shape: tuple[int, ...]) -> list[Series]:
    """The pages of an array, in series along the axis in which they help each other.

    Depth comes before time: the slices of a volume belong closer together than two volumes do.

    Examples
    --------
    >>> [(one.kind, one.channel, len(one.pages)) for one in series_of("TCYX", (5, 2, 8, 8))]
    [('T', 0, 5), ('T', 1, 5)]
    """
    sizes = dict(zip(letters, shape, strict=True))
    kind = next((letter for letter in HELPFUL if sizes.get(letter, 1) > 1), "")
    outer = [letter for letter in letters if letter not in ("Y", "X", kind)]
    found = []
    for numbers in np.ndindex(*(sizes[letter] for letter in outer)):
        fixed: dict[str, Any] = dict(zip(outer, numbers, strict=True))
        pages = tuple(
            tuple(slice(None) if letter in "YX" else (fixed | {kind: i})[letter] for letter in letters)
            for i in range(sizes.get(kind, 1))
        )
        found.append(Series(kind, int(fixed.get("C", 0)), pages))
    return found


class PagesOf:
    """The pages of a series, each cut from the array when it is asked for.

    The array may lie on the disk: what it is asked for is whole pages.

    Examples
    --------
    >>> stack = np.zeros((4, 3, 2))
    >>> pages = PagesOf(stack, "XYT", series_of("XYT", stack.shape)[0])
    >>> len(pages), pages[0].shape
    (2, (3, 4))
    """

    def __init__(self, array: Any, letters: str, series: Series) -> None:
        self._array, self._series = array, series
        self._transposed = letters.index("Y") > letters.index("X")

    def __len__(self) -> int:
        return len(self._series.pages)

    def __getitem__(self, index: int) -> NDArray[Any]:
        page: NDArray[Any] = self._array[self._series.pages[index]]
        return page.T if self._transposed else page

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[index] for index in range(len(self)))

    def put(self, index: int, page: NDArray[Any]) -> None:
        """Write a page into the array."""
        self._array[self._series.pages[index]] = page.T if self._transposed else page


def shown_size(shape: tuple[int, ...]) -> str:
    """A page's size as people write it.

    Examples
    --------
    >>> shown_size((64, 48))
    '64x48'
    """
    return "x".join(map(str, shape)) if math.prod(shape) else "nothing"
