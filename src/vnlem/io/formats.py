"""Formats of image files: their first bytes and suffixes, and what each can hold.

A format is a module and an entry in :data:`FORMATS`. Other packages add theirs through the entry point group
``vnlem.formats``: the name of the entry is the name of the format, its value a :class:`Format`.
"""

import functools
import importlib.util
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np

from vnlem.io.compression import head
from vnlem.io.ome import DTYPES, PAGE_AXES
from vnlem.io.picture import Picture

GROUP = "vnlem.formats"


@dataclass(frozen=True)
class Format:
    """What a format is called, what it can hold, and where the functions that read and write it live.

    Examples
    --------
    A package that reads files of its own adds to its ``pyproject.toml``::

        [project.entry-points."vnlem.formats"]
        raster = "my_package.raster:FORMAT"

    >>> FORMAT = Format(
    ...     "raster",
    ...     (".raster",),
    ...     (b"RASTER",),
    ...     ("uint8",),
    ...     "",
    ...     "my_package.raster:write",
    ...     open="my_package.raster:open_file",
    ... )
    >>> FORMAT.begins(b"RASTER 20 30")
    True
    """

    title: str
    suffixes: tuple[str, ...]
    magic: tuple[bytes, ...]  # how its files begin
    dtypes: tuple[str, ...]
    # Where its functions live: path -> Picture, or (path, channels) -> Picture if the file does not say which
    # axis is colour; and (path, Picture) -> None. Empty if `open` reads, or nothing writes.
    read: str
    write: str
    asks_channels: bool = False
    pages: bool = False
    alpha: bool = True
    colour: bool = True
    any_channels: bool = False
    page_axes: int | None = None  # the largest number of axes that count pages
    # What reads planes one by one, and files with several images: (plain file, the file as it was named)
    # -> context manager that gives a list of Series.
    open: str = ""
    streams: bool = False  # whether `write` takes pages=PagesOnDisk: pixels need not be in memory
    compressible: bool = False  # whether files may be compressed by gzip or bzip2
    signs: tuple[tuple[int, bytes], ...] = ()  # a signature that is not at the beginning, and its position
    library: str = ""  # the reader that an extra brings
    extra: str = ""
    instead: str = ".ome.tif or .ome.zarr"  # what to write if this format is only read
    needs_name: bool = False  # whether files begin like those of another format, and the suffix decides

    def begins(self, start: bytes) -> bool:
        """Whether the first bytes of a file are those of this format."""
        return (bool(self.magic) and start.startswith(self.magic)) or any(
            start[place : place + len(sign)] == sign for place, sign in self.signs
        )

    def check_library(self) -> None:
        """Say which extra to install if the reader of the format is missing."""
        if self.library and importlib.util.find_spec(self.library) is None:
            raise ValueError(
                f"{self.title} files need the package {self.library}: pip install 'vnlem[{self.extra}]'"
            )


_TIFF = (b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+")
_INTEGERS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
_FLOATS = ("float16", "float32", "float64")


def _with_compressed(*suffixes: str) -> tuple[str, ...]:
    return tuple(suffix + end for suffix in suffixes for end in ("", ".gz", ".bz2"))


# A new format is a module and an entry here.
FORMATS = {
    "png": Format(
        "PNG",
        (".png",),
        (b"\x89PNG\r\n\x1a\n",),
        ("uint8", "uint16"),
        "vnlem.io.png:read",
        "vnlem.io.png:write",
    ),
    "jpeg": Format(
        "JPEG",
        (".jpg", ".jpeg"),
        (b"\xff\xd8\xff",),
        ("uint8",),
        "vnlem.io.jpeg:read",
        "vnlem.io.jpeg:write",
        alpha=False,
    ),
    "tiff": Format(
        "TIFF",
        (".tif", ".tiff"),
        _TIFF,
        (*_INTEGERS, *_FLOATS),
        "vnlem.io.tiff:read",
        "vnlem.io.tiff_writer:write",
        asks_channels=True,
        pages=True,
        any_channels=True,
        streams=True,
    ),
    "ome": Format(
        "OME-TIFF",
        (".ome.tif", ".ome.tiff"),
        (),
        DTYPES,
        "vnlem.io.tiff:read",
        "vnlem.io.tiff_writer:write_ome",
        asks_channels=True,
        pages=True,
        any_channels=True,
        page_axes=len(PAGE_AXES),
        streams=True,
    ),
    "npy": Format(
        "NPY",
        (".npy",),
        (b"\x93NUMPY",),
        (*_INTEGERS, *_FLOATS, np.dtype(np.longdouble).name),
        "vnlem.io.npy:read",
        "vnlem.io.npy:write",
        asks_channels=True,
        pages=True,
        any_channels=True,
    ),
}
FORMATS |= {
    "nifti": Format(
        "NIfTI",
        (".nii", ".nii.gz"),
        (),
        ("uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"),
        "",
        "vnlem.io.nifti:write",
        pages=True,
        alpha=False,
        colour=False,
        page_axes=2,
        open="vnlem.io.nifti:open_file",
        streams=True,
        compressible=True,
        signs=((344, b"n+1\x00"), (344, b"ni1\x00"), (4, b"n+2\x00"), (4, b"ni2\x00")),
        library="nibabel",
        extra="mri",
    ),
    "mrc": Format(
        "MRC",
        _with_compressed(".mrc", ".mrcs", ".map", ".rec", ".st", ".ali"),
        (),
        ("int8", "int16", "uint16", "float16", "float32"),
        "",
        "vnlem.io.mrc:write",
        pages=True,
        alpha=False,
        colour=False,
        page_axes=2,
        open="vnlem.io.mrc:open_file",
        streams=True,
        compressible=True,
        signs=((208, b"MAP"),),
        library="mrcfile",
        extra="em",
    ),
    "fits": Format(
        "FITS",
        _with_compressed(".fits", ".fit", ".fts"),
        (b"SIMPLE  =",),
        ("uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"),
        "",
        "vnlem.io.fits:write",
        pages=True,
        alpha=False,
        colour=False,
        open="vnlem.io.fits:open_file",
        streams=True,
        compressible=True,
        library="astropy",
        extra="astro",
    ),
    "czi": Format("CZI", (".czi",), (b"ZISRAWFILE",), (), "", "", open="vnlem.io.czi:open_file"),
    "nd2": Format(
        "ND2",
        (".nd2",),
        (b"\xda\xce\xbe\x0a", b"\x00\x00\x00\x0cjP  "),
        (),
        "",
        "",
        open="vnlem.io.nd2:open_file",
        library="nd2",
        extra="microscopes",
    ),
    "lif": Format(
        "LIF",
        (".lif",),
        (b"\x70\x00\x00\x00",),
        (),
        "",
        "",
        open="vnlem.io.lif:open_file",
        library="liffile",
        extra="microscopes",
    ),
    # Its signature is weak (version 1, and a width below 65536), so it comes last.
    "mgh": Format(
        "MGH",
        (".mgh", ".mgz"),
        (b"\x00\x00\x00\x01\x00\x00",),
        (),
        "",
        "",
        open="vnlem.io.nifti:open_file",
        compressible=True,
        library="nibabel",
        extra="mri",
        instead=".nii.gz",
    ),
}
FORMATS |= {
    "dng": Format(
        "DNG",
        (".dng",),
        _TIFF,
        ("uint16",),
        "vnlem.io.camera_raw:read",
        "vnlem.io.camera_raw:write",
        alpha=False,
        colour=False,
        library="rawpy",
        extra="raw",
        needs_name=True,
    ),
    "raw": Format(
        "camera raw",
        (".cr2", ".cr3", ".nef", ".arw", ".raf", ".rw2", ".orf", ".pef", ".srw"),
        (*_TIFF, b"FUJIFILMCCD-RAW", b"IIU\x00", b"IIRO", b"IIRS"),
        (),
        "vnlem.io.camera_raw:read",
        "",
        signs=((4, b"ftypcrx "),),
        library="rawpy",
        extra="raw",
        instead=".dng, or .tif for a developed picture",
        needs_name=True,
    ),
}
FAMILY = {"ome": "tiff"}  # a format and its reader's name for it


@functools.cache
def _from_elsewhere() -> dict[str, Format]:
    """The formats of other packages."""
    found = {entry.name: entry.load() for entry in entry_points(group=GROUP) if entry.name not in FORMATS}
    for name, format_ in found.items():
        if not isinstance(format_, Format):
            raise TypeError(f"the entry point {name!r} of {GROUP} must be a vnlem.io.Format, got {format_!r}")
    return found


def all_formats() -> Iterator[tuple[str, Format]]:
    """Names and formats: the package's own first; those of other packages are searched for when needed."""
    yield from FORMATS.items()
    yield from _from_elsewhere().items()


def find_format(name: str) -> Format:
    """The format of a name.

    >>> find_format("png").title
    'PNG'
    """
    return FORMATS[name] if name in FORMATS else _from_elsewhere()[name]


def sniff(path: Path) -> str:
    """The format of a file, from its first bytes."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name an image file")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    start, compressed = head(path)
    for name, format_ in sorted(all_formats(), key=lambda item: not item[1].needs_name):
        if format_.begins(start) and (not format_.needs_name or path.suffix.lower() in format_.suffixes):
            if compressed and not format_.compressible:
                raise ValueError(
                    f"cannot read {path}: it is a compressed {format_.title} file; decompress it first"
                )
            return name
    if not start:
        raise ValueError(f"cannot read {path}: it is empty")
    titles = _either([format_.title for _, format_ in all_formats() if format_.magic or format_.signs])
    raise ValueError(f"cannot read {path}: it is not a {titles} file; convert it to one of them")


def format_of(path: Path) -> str:
    """The format of a file name."""
    matches = [
        (len(suffix), name)
        for name, format_ in all_formats()
        for suffix in format_.suffixes
        if path.name.lower().endswith(suffix) and path.suffix
    ]
    if matches:
        return max(matches)[1]
    suffixes = [suffix for format_ in _general() for suffix in format_.suffixes]
    got = f"the suffix {path.suffix!r}" if path.suffix else "no suffix"
    raise ValueError(f"{path} has {got}, which names no format; choose {_either(suffixes)}")


def _general() -> list[Format]:
    """The formats to suggest instead of an unsuitable one: those that need no further package."""
    return [
        format_ for name, format_ in FORMATS.items() if name != "ome" and format_.write and not format_.extra
    ]


def takes_pages(path: str | os.PathLike[str]) -> bool:
    """Whether a file of this name can be written page by page.

    Examples
    --------
    >>> takes_pages("a.ome.tif"), takes_pages("a.png"), takes_pages("a")
    (True, False, False)
    """
    try:
        return find_format(format_of(Path(path))).streams
    except ValueError:
        return False


def format_that_holds(path: Path, picture: Picture) -> tuple[str, str]:
    """The format of a file name, and its suffix; an error if it cannot hold the picture."""
    name = format_of(path)
    format_ = find_format(name)
    suffix = max((s for s in format_.suffixes if path.name.lower().endswith(s)), key=len)
    if not format_.write:
        raise ValueError(
            f"{format_.title} files ({suffix}) are read and not written; choose {format_.instead}"
        )
    format_.check_library()
    for what, holds in _needs(picture):
        if not holds(format_):
            able = [f for f in _general() if all(h(f) for _, h in _needs(picture))]
            cure = f"choose {_either([s for f in able for s in f.suffixes])}" if able else "convert it first"
            raise ValueError(f"a {suffix} file cannot hold {what}; {cure}")
    return name, suffix


def _needs(picture: Picture) -> list[tuple[str, Callable[[Format], bool]]]:
    """What a format must hold for this picture, and a test for each."""
    needs: list[tuple[str, Callable[[Format], bool]]] = [
        (f"{picture.pixels.dtype} pixels", lambda format_: picture.pixels.dtype.name in format_.dtypes)
    ]
    if picture.page_axes:
        needs.append((f"{picture.n_pages} pages", lambda format_: format_.pages))
    n_axes = len(picture.page_axes)
    if n_axes > 1:
        needs.append((f"{n_axes} axes of pages", lambda f: f.page_axes is None or n_axes <= f.page_axes))
    if picture.channel_axis is not None:
        needs.append(("colours", lambda format_: format_.colour))
    if picture.n_channels not in (1, 3) or (picture.channel_axis is not None and picture.n_channels == 1):
        needs.append((f"{picture.n_channels} colour channels", lambda format_: format_.any_channels))
    if picture.alpha is not None:
        needs.append(("an alpha channel", lambda format_: format_.alpha))
    return needs


def _either(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
