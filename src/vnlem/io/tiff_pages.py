"""The pages of a grey TIFF file, without reading the file whole."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tifffile import TiffFile, TiffPageSeries

from vnlem.io.pages import OpenedPages, PagesOnDisk
from vnlem.io.picture import Picture
from vnlem.io.tiff import PALETTE, checked_series, describe


@contextmanager
def open_pages(path: Path) -> Iterator[OpenedPages | None]:
    """Open a TIFF file of several grey pages; None for any other file, which must be read whole."""
    with TiffFile(path) as tif:
        series = checked_series(tif, path)
        if not _is_stack_of_grey(tif, series):
            yield None
            return
        metadata = describe(tif, series)
        pages = _TiffPages(tif, series)
        # All pixels are views of a single zero.
        blank = np.broadcast_to(np.zeros((), pages.dtype), pages.shape)
        yield OpenedPages(Picture(blank, None, None, metadata), pages)


def _is_stack_of_grey(tif: TiffFile, series: TiffPageSeries) -> bool:
    page = series.keyframe
    grey = "S" not in series.axes and (page.photometric != PALETTE or series.kind == "imagej")
    in_pages = series.axes.endswith("YX") and series.size > page.size and page.shape == series.shape[-2:]
    in_this_file = not series.is_multifile
    numbers = series.dtype is not None and series.dtype.kind in "iuf"
    return bool(grey and in_pages and in_this_file and numbers and len(tif.series) == 1)


class _TiffPages(PagesOnDisk):
    """Pages of one series, uncompressed one after another or anywhere in the file."""

    def __init__(self, tif: TiffFile, series: TiffPageSeries) -> None:
        super().__init__(series.shape, np.dtype(series.dtype).newbyteorder("="))
        self._tif, self._series = tif, series

    def page(self, number: int) -> NDArray[Any]:
        """One page, in the byte order of this machine."""
        try:
            return self._decoded(number).astype(self.dtype, copy=False)
        except (MemoryError, ImportError):
            raise
        except Exception as error:  # decoders raise any kind of error on damaged data
            if isinstance(error, OSError) and error.errno is not None:
                raise
            reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
            name = self._tif.filehandle.path
            raise ValueError(
                f"cannot read {name}: page {number + 1} of {len(self)} is damaged ({reason})"
            ) from error

    def _decoded(self, number: int) -> NDArray[Any]:
        shape = self.shape[-2:]
        if self._series.dataoffset is not None:
            stored = self.dtype.newbyteorder(self._tif.byteorder)
            count = shape[0] * shape[1]
            offset = self._series.dataoffset + number * count * stored.itemsize
            page = self._tif.filehandle.read_array(stored, count, offset).reshape(shape)
        else:
            found = self._series.pages[number]
            page = np.zeros(shape, self.dtype) if found is None else found.asarray()
        if page.shape != shape:
            raise ValueError(f"its shape is {page.shape} instead of {shape}")
        return page
