"""Pages that stay on the disk: each is read, or written, when it is requested."""

import errno
import math
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from vnlem.io.picture import Picture


class PagesOnDisk(ABC):
    """An array of pages (H, W) that is not in memory. It can only be indexed by whole pages.

    Parameters
    ----------
    shape : tuple of int
        The last two are height and width, those in front count pages.
    dtype : dtype
    page_ndim : int
        3 for pages (H, W, samples).

    Examples
    --------
    >>> class Counted(PagesOnDisk):
    ...     def page(self, number):
    ...         return np.full(self.shape[-2:], number, self.dtype)
    >>> pages = Counted((2, 3, 4, 5), np.dtype(np.uint8))
    >>> len(pages), int(pages[1, 2, :, :].max())
    (6, 5)
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], page_ndim: int = 2) -> None:
        self.shape, self.dtype, self._counts = shape, dtype, shape[:-page_ndim]

    def __len__(self) -> int:
        return math.prod(self._counts)

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self.page(number) for number in range(len(self)))

    def __getitem__(self, index: tuple[Any, ...]) -> NDArray[Any]:
        return self.page(self.number_of(index))

    def number_of(self, index: tuple[Any, ...]) -> int:
        """The page of an index: a number for each axis of pages, then all of the page's own axes."""
        n_axes = len(self._counts)
        if any(part != slice(None) for part in index[n_axes:]):
            raise IndexError(f"only whole pages can be read, got the index {index!r}")
        return int(np.ravel_multi_index(index[:n_axes], self._counts))

    @abstractmethod
    def page(self, number: int) -> NDArray[Any]:
        """One page, counted in the order of the array."""


@dataclass(frozen=True)
class OpenedPages:
    """A file whose pages are read when they are requested.

    picture: what the file says about itself. Its pixels are zeros that take no memory.
    pages: the pixels.
    """

    picture: Picture
    pages: PagesOnDisk


class ScratchPages(PagesOnDisk):
    """Pages in a file without a name, which vanishes when it is closed or the process ends in any way.

    Parameters
    ----------
    beside : Path
        A file in the folder that has room for it.
    shape, dtype
        As in :class:`PagesOnDisk`.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp())
    >>> with ScratchPages(folder / "out.tif", (3, 4, 5), np.dtype("uint8")) as pages:
    ...     pages[1, :, :] = np.full((4, 5), 7)
    ...     int(pages[1, :, :].sum()), list(folder.iterdir())
    (140, [])
    """

    def __init__(self, beside: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        super().__init__(shape, dtype)
        self._beside = beside
        self._bytes = math.prod(shape[-2:]) * dtype.itemsize
        self._file = tempfile.TemporaryFile(dir=beside.parent, prefix=".vnlem-")  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def page(self, number: int) -> NDArray[Any]:
        """One page."""
        self._file.seek(number * self._bytes)
        return np.frombuffer(self._file.read(self._bytes), self.dtype).reshape(self.shape[-2:])

    def __setitem__(self, index: tuple[Any, ...], page: NDArray[Any]) -> None:
        self.put(self.number_of(index), page)

    def put(self, number: int, page: NDArray[Any]) -> None:
        """Store a page, counted in the order of the array."""
        try:
            self._file.seek(number * self._bytes)
            self._file.write(np.ascontiguousarray(page, self.dtype).tobytes())
            self._file.flush()
        except OSError as error:
            raise cannot_write(self._beside, error) from error


def cannot_write(place: Path, error: OSError) -> OSError:
    """One sentence about an error while writing a file.

    >>> cannot_write(Path("a.tif"), OSError(28, "No space left on device"))
    OSError(28, 'cannot write a.tif (No space left on device); make room or choose another folder')
    """
    # Without a message from the system NumPy only counts bytes.
    reason = error.strerror or f"{error}: the disk may be full"
    return OSError(
        error.errno or errno.EIO, f"cannot write {place} ({reason}); make room or choose another folder"
    )
