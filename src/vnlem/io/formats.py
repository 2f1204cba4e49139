"""Formats of image files: how their files begin and are called, and what each can hold."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vnlem.io.ome import DTYPES, PAGE_AXES
from vnlem.io.picture import Picture


@dataclass(frozen=True)
class Format:
    """What a format is called and what it can hold."""

    title: str
    suffixes: tuple[str, ...]
    magic: tuple[bytes, ...]  # how its files begin
    dtypes: tuple[str, ...]
    # Where its functions live: path -> Picture, or (path, channels) -> Picture where the file does not say
    # which axis is colour; and (path, Picture) -> None.
    read: str
    write: str
    asks_channels: bool = False
    pages: bool = False
    alpha: bool = True
    any_channels: bool = False
    page_axes: int | None = None  # the largest number of axes that count pages


# A new format is a module and an entry here.
_INTEGERS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
_FLOATS = ("float16", "float32", "float64")
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
        (b"II*\x00", b"MM\x00*", b"II+\x00", b"MM\x00+"),
        (*_INTEGERS, *_FLOATS),
        "vnlem.io.tiff:read",
        "vnlem.io.tiff_writer:write",
        asks_channels=True,
        pages=True,
        any_channels=True,
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
FAMILY = {"ome": "tiff"}  # a format and its reader's name for it


def sniff(path: Path) -> str:
    """The format of a file, from its first bytes."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name an image file")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    with open(path, "rb") as stream:
        start = stream.read(16)
    for name, format_ in FORMATS.items():
        if format_.magic and start.startswith(format_.magic):
            return name
    if not start:
        raise ValueError(f"cannot read {path}: it is empty")
    titles = _either([format_.title for format_ in FORMATS.values() if format_.magic])
    raise ValueError(f"cannot read {path}: it is not a {titles} file; convert it to one of them")


def format_of(path: Path) -> str:
    """The format a file name asks for."""
    for name in ("ome", *FORMATS):
        if path.name.lower().endswith(FORMATS[name].suffixes) and path.suffix:
            return name
    suffixes = [suffix for name, format_ in FORMATS.items() if name != "ome" for suffix in format_.suffixes]
    got = f"the suffix {path.suffix!r}" if path.suffix else "no suffix"
    raise ValueError(f"{path} has {got}, which names no format; choose {_either(suffixes)}")


def is_tiff_name(path: str | os.PathLike[str]) -> bool:
    """Whether a file name asks for TIFF.

    Examples
    --------
    >>> is_tiff_name("a.ome.tif"), is_tiff_name("a.png")
    (True, False)
    """
    return os.fspath(path).lower().endswith(FORMATS["tiff"].suffixes)


def format_that_holds(path: Path, picture: Picture) -> tuple[str, str]:
    """The format a file name asks for, and its suffix there; an error where it cannot hold the picture."""
    name = format_of(path)
    suffix = next(s for s in FORMATS[name].suffixes if path.name.lower().endswith(s))
    for what, holds in _needs(picture):
        if not holds(FORMATS[name]):
            able = [f for k, f in FORMATS.items() if k != "ome" and all(h(f) for _, h in _needs(picture))]
            cure = f"choose {_either([s for f in able for s in f.suffixes])}" if able else "convert it first"
            raise ValueError(f"a {suffix} file cannot hold {what}; {cure}")
    return name, suffix


def _needs(picture: Picture) -> list[tuple[str, Callable[[Format], bool]]]:
    """What a format must be able to hold for this picture, and whether a given one can."""
    needs: list[tuple[str, Callable[[Format], bool]]] = [
        (f"{picture.pixels.dtype} pixels", lambda format_: picture.pixels.dtype.name in format_.dtypes)
    ]
    if picture.page_axes:
        needs.append((f"{picture.n_pages} pages", lambda format_: format_.pages))
    n_axes = len(picture.page_axes)
    if n_axes > 1:
        needs.append((f"{n_axes} axes of pages", lambda f: f.page_axes is None or n_axes <= f.page_axes))
    if picture.n_channels not in (1, 3) or (picture.channel_axis is not None and picture.n_channels == 1):
        needs.append((f"{picture.n_channels} colour channels", lambda format_: format_.any_channels))
    if picture.alpha is not None:
        needs.append(("an alpha channel", lambda format_: format_.alpha))
    return needs


def _either(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
