"""Reading and writing by file name."""

import errno
import importlib
import os
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from vnlem.io.atomic import whole_file
from vnlem.io.compression import compressing, decompressed
from vnlem.io.formats import FAMILY, find_format, format_of, format_that_holds, sniff
from vnlem.io.pages import OpenedPages, PagesOnDisk, cannot_write
from vnlem.io.picture import Picture, corner, from_array
from vnlem.io.series import Series, SeriesPages, choose_series, split_series
from vnlem.io.upright import upright

_PACKAGE = Path(__file__).parents[1]


def read(path: str | os.PathLike[str], channels: str = "auto") -> Picture:
    """Read an image file.

    Parameters
    ----------
    path : str or path
        An image file of any format in the table of docs/files.md; the content decides which, not the name.
        ``file.lif:2`` is the image number 2, or of that name, of a file that holds several.
    channels : {"auto", "last", "first", "none"}
        Which axis of a TIFF or NPY array holds colour. "auto": what the TIFF file says (its sample axis), or
        in NPY files a last axis of 2, 3 or 4 (grey+alpha, RGB, RGBA). "last" and "first": the axis after or
        before height and width, all of it denoised together. "none": no axis is colour. All other axes in
        front count pages.

    Returns
    -------
    Picture
        Pixels in the dtype of the file; palettes are expanded, alpha is kept apart.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        The file is not an image in one of these formats, is damaged or truncated, or is 1-bit.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> path = os.path.join(tempfile.mkdtemp(), "ramp.png")
    >>> write(path, np.arange(600, dtype=np.uint16).reshape(20, 30))
    >>> picture = read(path)
    >>> picture.pixels.dtype, picture.pixels.shape, picture.n_pages
    (dtype('uint16'), (20, 30), 1)
    """
    place, key = split_series(path)
    found = find_format(sniff(place))
    if found.open and channels in ("auto", "none"):
        with open_series(place) as series, one_sentence(place):
            return choose_series(series, key, place).read_all()
    if key:
        raise ValueError(
            f"{path} asks for one of several images; {place} is a {found.title} file, which holds one"
        )
    if channels != "auto" and not found.asks_channels:
        raise ValueError(
            f"channels={channels!r} is for TIFF and NPY files; {place} is a {found.title} file, "
            "which says where its colours are"
        )
    found.check_library()
    with one_sentence(place):
        picture: Picture = _load(found.read)(place, *([channels] if found.asks_channels else []))
        return picture


@contextmanager
def open_pages(path: str | os.PathLike[str]) -> Iterator[OpenedPages | None]:
    """Open a stack of pages without reading it whole.

    Parameters
    ----------
    path : str or path
        Any image file.

    Yields
    ------
    OpenedPages or None
        The pages of a grey file, and what it says about itself; None for a file that :func:`read` has to
        read whole.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> path = os.path.join(tempfile.mkdtemp(), "stack.tif")
    >>> write(path, np.arange(600, dtype=np.uint16).reshape(5, 10, 12))
    >>> with open_pages(path) as opened:
    ...     opened.picture.n_pages, int(opened.pages.page(1)[0, 0])
    (5, 120)
    """
    place, key = split_series(path)
    name = sniff(place)
    if find_format(name).open:
        with open_series(place) as found:
            with one_sentence(place):
                series = choose_series(found, key, place)
            yield None if series.is_colour else OpenedPages(series.blank(), SeriesPages(series))
        return
    if name != "tiff":
        yield None
        return
    from vnlem.io import tiff_pages

    with ExitStack() as stack:
        with one_sentence(place):
            opened = stack.enter_context(tiff_pages.open_pages(place))
        yield opened


@contextmanager
def open_series(path: str | os.PathLike[str]) -> Iterator[list[Series]]:
    """Open a file of a format that may hold several images, without reading their pixels.

    Parameters
    ----------
    path : str or path
        A NIfTI, MGH, MRC, FITS, CZI, ND2 or LIF file, or one of a format that another package brings.

    Yields
    ------
    list of Series
        Its images; their planes can be read until the block ends.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> path = os.path.join(tempfile.mkdtemp(), "stack.fits")
    >>> write(path, np.arange(600, dtype=np.uint16).reshape(5, 10, 12))
    >>> with open_series(path) as (series,):
    ...     series.axes, series.shape, int(series.page(1)[0, 0])
    ('QYX', (5, 10, 12), 120)
    """
    place = Path(path)
    found = find_format(sniff(place))
    if not found.open:
        raise ValueError(f"{place} is a {found.title} file, which holds one image; read it whole")
    found.check_library()
    with ExitStack() as stack:
        with one_sentence(place), _readers_warnings_ignored():
            plain = stack.enter_context(decompressed(place)) if found.compressible else place
            series = stack.enter_context(_load(found.open)(plain, place))
        lock = threading.Lock()
        yield [replace(one, read=_guarded(one.read, place, lock)) for one in series]


def _guarded(read: Callable[..., Any], place: Path, lock: threading.Lock) -> Callable[..., Any]:
    """A reader that reports errors in one sentence and serves one thread at a time."""

    def guarded(*arguments: Any) -> Any:
        with lock, one_sentence(place), _readers_warnings_ignored():
            return read(*arguments)

    return guarded


@contextmanager
def _readers_warnings_ignored() -> Iterator[None]:
    """Readers warn about headers that they can read anyway."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def one_sentence(place: Path) -> Iterator[None]:
    """Decoders raise any kind of error on damaged files: turn each into one sentence."""
    try:
        yield
    except (ImportError, Warning):
        raise
    except Exception as error:
        if (isinstance(error, OSError) and error.filename is not None) or str(place) in str(error):
            raise
        if str(error).startswith(f"cannot read {place}"):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        place_of_error = traceback.extract_tb(error.__traceback__)[-1].filename
        if not Path(place_of_error).is_relative_to(_PACKAGE):  # not our own message
            reason = f"it is damaged ({reason})"
        raise ValueError(f"cannot read {place}: {reason}") from error


def _load(place: str) -> Callable[..., Any]:
    """A function of a format; its libraries are loaded when such a file is met."""
    module, name = place.split(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


def write(path: str | os.PathLike[str], picture: Picture | ArrayLike) -> None:
    """Write an image file, whole or not at all.

    Parameters
    ----------
    path : str or path
        The suffix decides the format: .png, .jpg, .jpeg, .tif, .tiff or .npy; .ome.tif gives OME-TIFF,
        .nii NIfTI, .mrc MRC and .fits FITS, also compressed (.nii.gz, .mrc.gz, .fits.gz).
    picture : Picture or array_like
        A result of :func:`read`, perhaps with other pixels, or a bare array (grey, or with a last axis of 2,
        3 or 4 for grey+alpha, RGB, RGBA).

    Raises
    ------
    FileNotFoundError
        The folder does not exist.
    ValueError
        The format cannot hold the dtype, the pages, the channels or the alpha of the picture.

    Notes
    -----
    The data go to a temporary name in the same folder first; on any failure that file is removed and an
    existing file stays.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> path = os.path.join(tempfile.mkdtemp(), "ramp.jpg")
    >>> write(path, np.arange(600, dtype=np.uint16).reshape(20, 30))
    Traceback (most recent call last):
    ...
    ValueError: a .jpg file cannot hold uint16 pixels; choose .png, .tif, .tiff or .npy
    """
    if not isinstance(picture, Picture):
        picture = from_array(picture)
    _write(Path(path), picture)


def write_pages(path: str | os.PathLike[str], picture: Picture, pages: PagesOnDisk) -> None:
    """Write pages on disk, whole or not at all, without holding them all.

    Parameters
    ----------
    path : str or path
        A name for which :func:`takes_pages` is true, such as .tif, .ome.tif, .nii.gz, .mrc or .fits.
    picture : Picture
        What :func:`open_pages` says about the source file.
    pages : PagesOnDisk
        The pixels.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from vnlem.io.pages import ScratchPages
    >>> folder = Path(tempfile.mkdtemp())
    >>> write(folder / "in.tif", np.arange(600, dtype=np.uint16).reshape(5, 10, 12))
    >>> with open_pages(folder / "in.tif") as opened:
    ...     with ScratchPages(folder / "out.tif", (5, 10, 12), np.dtype("uint16")) as pages:
    ...         for number in range(5):
    ...             pages[number, :, :] = np.full((10, 12), number)
    ...         write_pages(folder / "out.tif", opened.picture, pages)
    >>> read(folder / "out.tif").pixels[:, 0, 0].tolist()
    [0, 1, 2, 3, 4]
    """
    _write(Path(path), picture, pages=pages)


def _write(place: Path, picture: Picture, **pages: PagesOnDisk) -> None:
    check_writable(place, picture)
    try:
        with whole_file(place) as temporary:
            _encode(format_of(place), temporary, picture, **pages)
    except OSError as error:
        raise cannot_write(place, error) from error


def _encode(name: str, path: Path, picture: Picture, **pages: PagesOnDisk) -> None:
    if FAMILY.get(name, name) != picture.metadata.format:
        picture = upright(picture)
    found = find_format(name)
    with compressing(path) if found.compressible else nullcontext(path) as plain:
        _load(found.write)(plain, picture, **pages)


def check_writable(path: str | os.PathLike[str], picture: Picture) -> None:
    """Raise what :func:`write` would raise for this name and picture, without writing.

    Call it before long work, which must not end without a file for its result.

    Examples
    --------
    >>> import numpy as np
    >>> check_writable("stack.png", Picture(np.zeros((5, 40, 50), np.uint8)))
    Traceback (most recent call last):
    ...
    ValueError: a .png file cannot hold 5 pages; choose .tif, .tiff or .npy
    """
    place = Path(path)
    name, suffix = format_that_holds(place, picture)
    folder = place.parent
    if place.is_dir():
        raise IsADirectoryError(f"{place} is a folder; name a file to write")
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}; create it first")
    if place.exists() and not place.is_file():
        raise ValueError(f"{place} is not a regular file; name a file to write")
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, f"no permission to write in the folder {folder}")
    # An administrator may write everywhere, but a file without write permission still counts as protected.
    if place.exists() and not (os.access(place, os.W_OK) and place.stat().st_mode & 0o222):
        raise PermissionError(errno.EACCES, f"{place} is write-protected; choose another name")
    _try_out(name, suffix, picture)


def _try_out(name: str, suffix: str, picture: Picture) -> None:
    """Write a corner of every page, to find metadata that a format cannot take before the work."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _encode(name, Path(folder) / f"corner{suffix}", corner(picture))
        except Exception as error:  # damaged metadata raise any kind of error
            if isinstance(error, OSError) and error.errno is not None:
                raise
            reason = " ".join(str(error).split()) or type(error).__name__
            raise ValueError(
                f"a {suffix} file cannot hold what the image file says about itself ({reason}); choose .npy, "
                "which holds only the pixels"
            ) from error
