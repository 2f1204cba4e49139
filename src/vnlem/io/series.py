"""Images of a file, read plane by plane: a file may hold several, and opening it reads no pixels."""

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.io.pages import PagesOnDisk
from vnlem.io.picture import Metadata, Picture

_ALL = slice(None)
SAMPLES = "S"
# For axes that are neither time, channel, depth nor a set of images: pages along them are independent.
_FREE_LETTERS = "QRUVWIJKLMABDEFGHOP"
_MOST_LISTED = 8


@dataclass(frozen=True)
class Series:
    """One image of a file, which stays on the disk.

    Attributes
    ----------
    axes : str
        A letter for each axis: any that count planes, then Y and X, then S for the samples of a colour.
    shape : tuple of int
    dtype : dtype
        Of the pixels, in the byte order of this machine.
    read : callable(number, rows, columns)
        The part of a plane that two slices name; planes are counted in the order of the axes.
    key : str
        The name of the image after a colon: ``file.lif:2``.
    name : str
        Its name in the file.
    metadata : Metadata
    preferred : bool
        Whether it is the default image of the file.

    Examples
    --------
    >>> pixels = np.arange(24).reshape(2, 3, 4)
    >>> series = Series("ZYX", pixels.shape, pixels.dtype, lambda k, rows, columns: pixels[k, rows, columns])
    >>> series.n_planes, series.page(1)[0, 0]
    (2, np.int64(12))
    """

    axes: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[int, slice, slice], NDArray[Any]]
    key: str = "1"
    name: str = ""
    metadata: Metadata = field(default_factory=Metadata)
    preferred: bool = False

    @property
    def is_colour(self) -> bool:
        """Whether a pixel has several samples."""
        return self.axes.endswith(SAMPLES)

    @property
    def n_planes(self) -> int:
        """How many planes there are."""
        return math.prod(self.shape[: -3 if self.is_colour else -2])

    def page(self, number: int, rows: slice = _ALL, columns: slice = _ALL) -> NDArray[Any]:
        """A plane, or a part of it, in memory and in the byte order of this machine."""
        return np.array(self.read(number, rows, columns), self.dtype, order="C")

    def read_all(self) -> Picture:
        """The picture with all its pixels."""
        pixels = np.empty((self.n_planes, *self.shape[-3 if self.is_colour else -2 :]), self.dtype)
        for number, plane in enumerate(pixels):
            plane[...] = self.read(number, _ALL, _ALL)
        return Picture(pixels.reshape(self.shape), -1 if self.is_colour else None, None, self.metadata)

    def blank(self) -> Picture:
        """The picture with zeros that take no memory instead of its pixels."""
        pixels = np.broadcast_to(np.zeros((), self.dtype), self.shape)
        return Picture(pixels, -1 if self.is_colour else None, None, self.metadata)


class SeriesPages(PagesOnDisk):
    """The planes of an image as pages."""

    def __init__(self, series: Series) -> None:
        super().__init__(series.shape, series.dtype, 3 if series.is_colour else 2)
        self._series = series

    def page(self, number: int) -> NDArray[Any]:
        """One plane."""
        return self._series.page(number)


def split_series(path: str | os.PathLike[str]) -> tuple[Path, str]:
    """A file, and which of its images a name such as ``scan.lif:2`` selects; empty for none.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "scan.lif"
    >>> _ = file.write_bytes(b"")
    >>> split_series(f"{file}:2") == (file, "2"), split_series(file) == (file, "")
    (True, True)
    """
    text = os.fspath(path)
    before, colon, key = text.rpartition(":")
    if colon and key and not os.path.exists(text) and os.path.isfile(before):
        return Path(before), key
    return Path(text), ""


def choose_series(found: list[Series], key: str, place: Path) -> Series:
    """The image requested by its number or name, or the only one.

    >>> both = [Series("YX", (4, 5), np.dtype("u1"), None, str(k), f"Series {k}") for k in (1, 2)]
    >>> choose_series(both, "2", Path("a.lif")).name
    'Series 2'
    >>> choose_series(both, "", Path("a.lif"))
    Traceback (most recent call last):
    ...
    ValueError: it holds 2 images: 1 (Series 1, 4x5), 2 (Series 2, 4x5); name one, as in a.lif:1
    """
    if not found:
        raise ValueError("it holds no image")
    likely = [series for series in found if series.preferred] or found
    if not key and len(likely) == 1:
        return likely[0]
    # Exact names come first: an image called "2" is found by its name.
    for attribute in ("name", "key"):
        chosen = [series for series in found if key and getattr(series, attribute) == key]
        if len(chosen) == 1:
            return chosen[0]
    listed = ", ".join(listed_series(series) for series in found[:_MOST_LISTED])
    more = f" and {len(found) - _MOST_LISTED} more" if len(found) > _MOST_LISTED else ""
    which = "1 image" if len(found) == 1 else f"{len(found)} images"
    missing = f"it holds no image {key!r}, but {which}" if key else f"it holds {which}"
    raise ValueError(f"{missing}: {listed}{more}; name one, as in {place.name}:{found[0].key}")


def listed_series(series: Series) -> str:
    """An image of a file in a few words: ``2 (Series 2, 10x64x64)``."""
    size = "x".join(map(str, series.shape))
    return f"{series.key} ({series.name}, {size})" if series.name else f"{series.key} ({size})"


def unique_letters(wanted: Iterable[str]) -> str:
    """A letter for each axis: the one that is wanted, or a free one if it is empty or taken.

    >>> unique_letters(["T", "C", "", "C", "Y", "X"])
    'TCQRYX'
    """
    free = iter(_FREE_LETTERS)
    letters = ""
    for letter in wanted:
        letters += letter if letter and letter not in letters else next(free)
    return letters
