"""TIFF in: every layout tifffile knows, with the tags that a rewritten file has to carry."""

import os
import struct
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tifffile import TiffFile, TiffFrame, TiffPage, TiffPageSeries, TiffTag

from vnlem.io import ome
from vnlem.io.picture import Metadata, Picture, Resolution, from_array, split_alpha

MINISWHITE, MINISBLACK, RGB, PALETTE, SEPARATED, YCBCR = 0, 1, 2, 3, 5, 6
_PHOTOMETRICS = (MINISWHITE, MINISBLACK, RGB, PALETTE, SEPARATED, YCBCR)
_JPEG = (6, 7)  # compressions whose decoder turns YCbCr into RGB
_NOT_ALPHA = 0  # extra sample of unspecified meaning
DESCRIPTION, SOFTWARE, DATETIME, ORIENTATION = 270, 305, 306, 274
X_RESOLUTION, Y_RESOLUTION, _RESOLUTION_UNIT = 282, 283, 296
_UNITS = {1: "", 2: "inch", 3: "cm"}
# Tags about the picture that hold no file offsets: they are copied page by page.
_ABOUT_THE_PAGE = (254, 269, DESCRIPTION, ORIENTATION, X_RESOLUTION, Y_RESOLUTION, 285, 286, 287, 297)
_ABOUT_ITS_ORIGIN = (271, 272, SOFTWARE, DATETIME, 315, 316, 33432)  # makers, programs, dates, rights
_BLOCKS = (700, 33723, 51123)  # XMP, IPTC, Micro-Manager
_GEOGRAPHY = (33550, 33922, 34264, 34735, 34736, 34737, 42112, 42113)  # GeoTIFF, GDAL
_KEPT_TAGS = (*_ABOUT_THE_PAGE, *_ABOUT_ITS_ORIGIN, *_BLOCKS, *_GEOGRAPHY)
_BYTE_TYPES = (1, 2, 7)  # BYTE, ASCII, UNDEFINED: copied byte by byte
Tag = tuple[int, int, int, Any]  # code, type, count, value


@dataclass(frozen=True)
class TiffLayout:
    """How a TIFF file stores its pages, for writing them again in the same way."""

    shape: tuple[int, ...]
    kind: str  # tifffile's name for the flavour: "imagej", "ome", "shaped", "uniform", ...
    page_ndim: int
    photometric: int
    planarconfig: int | None  # None if a pixel has one sample
    extrasamples: tuple[int, ...]
    compressed: bool
    bigtiff: bool
    tags: tuple[tuple[Tag, ...], ...]  # of every page, in the order of the file
    page_order: tuple[int, ...]  # which page of the array comes first in the file, second, ...
    resolution: tuple[Any, Any] | None  # the fractions as stored
    resolution_unit: int
    imagej: dict[str, Any] | None
    colormap: NDArray[Any] | None  # of an ImageJ file: how its grey values are shown


def read(path: Path, channels: str) -> Picture:
    """Read a TIFF file: the sample axis is colour, every other axis in front counts pages."""
    with TiffFile(path) as tif:
        series = checked_series(tif, path)
        array = series.asarray()
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        metadata = describe(tif, series)
    axes, layout = metadata.axes, metadata.native
    if layout.photometric == PALETTE and layout.imagej is None:
        array, axes, layout = _expanded(array, axes, layout)
        metadata = replace(metadata, axes=axes, native=layout)
    return _picture(array, axes, layout, channels, metadata)


def checked_series(tif: TiffFile, path: Path) -> TiffPageSeries:
    """The one image of a file, if it is whole and its colours are known."""
    _check_chain(path)
    if tif.ome_metadata:
        ome.check_members(tif.ome_metadata, path)
    series = only_series(tif)
    _check_colours(series.keyframe)
    _check_complete(series, path.stat().st_size)
    return series


def only_series(tif: TiffFile) -> TiffPageSeries:
    """The image of a file that holds one; for others an error that says which there are."""
    if not tif.series:
        raise ValueError("it holds no image")
    if len(tif.series) == 1:
        return tif.series[0]
    shown = [
        " ".join(filter(None, (series.name, "x".join(map(str, series.shape)), str(series.dtype))))
        for series in tif.series[:4]
    ]
    more = ", ..." if len(tif.series) > 4 else ""
    raise ValueError(
        f"it holds {len(tif.series)} images ({', '.join(shown)}{more}); "
        "save the one to denoise in a separate file"
    )


def describe(tif: TiffFile, series: TiffPageSeries) -> Metadata:
    """What a file says about its pixels."""
    if len(series.levels) > 1:
        name = tif.filehandle.path
        warnings.warn(f"{name}: the smaller copies (pyramid levels) are not kept", stacklevel=5)
    layout = _layout(tif, series)
    x, y = layout.resolution or (None, None)
    orientation = next((tag[3] for tag in layout.tags[0] if tag[0] == ORIENTATION), 1)
    return Metadata(
        format="tiff",
        resolution=Resolution(_number(x), _number(y), _UNITS.get(layout.resolution_unit, "")) if x else None,
        icc_profile=series.keyframe.iccprofile,
        orientation=int(orientation) if orientation in range(1, 9) else 1,
        axes=series.axes,
        native=layout,
    )


def _check_colours(page: TiffPage) -> None:
    colours = int(page.photometric)
    if colours not in _PHOTOMETRICS or (colours == YCBCR and int(page.compression) not in _JPEG):
        name = getattr(page.photometric, "name", colours)
        raise ValueError(f"its colours are {name}; convert it to RGB or grey first")


def _picture(
    array: NDArray[Any], axes: str, layout: TiffLayout, channels: str, metadata: Metadata
) -> Picture:
    if channels != "auto":
        return from_array(array, channels, metadata)
    if not axes.endswith(("YX", "YXS")):
        raise ValueError(f"its axes are {axes}; pass channels='first', 'last' or 'none'")
    if "S" not in axes:
        return from_array(array, "none", metadata)
    if not axes.endswith(("YXS", "SYX")):
        raise ValueError(f"its axes are {axes}; pass channels='none' to denoise every plane on its own")
    axis = -1 if axes.endswith("S") else -3
    alpha = layout.extrasamples[-1:] not in ((), (_NOT_ALPHA,))
    return split_alpha(array, axis, alpha and array.shape[axis] > 1, metadata)


def _layout(tif: TiffFile, series: TiffPageSeries) -> TiffLayout:
    page = series.keyframe
    unit = page.tags.get(_RESOLUTION_UNIT)
    x, y = page.tags.get(X_RESOLUTION), page.tags.get(Y_RESOLUTION)
    pages = [found for found in series.pages if found is not None]
    indices = [found.index for found in pages]
    # Pages in other files, missing ones, or data of many pages in one: no page to copy tags to.
    in_file = sorted(indices) == list(range(series.size // max(1, page.size)))
    order = tuple(int(k) for k in np.argsort(indices)) if in_file else ()
    return TiffLayout(
        shape=series.shape,
        kind=series.kind,
        page_ndim=min(page.ndim, len(series.shape)),
        photometric=RGB if page.photometric == YCBCR else int(page.photometric),
        planarconfig=int(page.planarconfig) if page.samplesperpixel > 1 else None,
        extrasamples=tuple(int(sample) for sample in page.extrasamples),
        compressed=int(page.compression) != 1,
        bigtiff=tif.is_bigtiff,
        tags=tuple(_kept_tags(tif, pages[k]) for k in (order or (0,))),
        page_order=order,
        resolution=(x.value, y.value) if x and y and _is_resolution(x) and _is_resolution(y) else None,
        resolution_unit=2 if unit is None else int(unit.value),
        imagej=dict(tif.imagej_metadata or {}) if series.kind == "imagej" else None,
        colormap=page.colormap if page.photometric == PALETTE else None,
    )


def _kept_tags(tif: TiffFile, page: TiffPage | TiffFrame) -> tuple[Tag, ...]:
    full = page.aspage() if isinstance(page, TiffFrame) else page
    kept: list[Tag] = []
    for tag in full.tags:
        if tag.code not in _KEPT_TAGS:
            continue
        if tag.code in (X_RESOLUTION, Y_RESOLUTION) and not _is_resolution(tag):
            continue
        value = tag.value
        if tag.dtype in _BYTE_TYPES:
            tif.filehandle.seek(tag.valueoffset)
            value = tif.filehandle.read(tag.valuebytecount)
        kept.append((int(tag.code), int(tag.dtype), int(tag.count), value))
    return tuple(kept)


def _expanded(indices: NDArray[Any], axes: str, layout: TiffLayout) -> tuple[NDArray[Any], str, TiffLayout]:
    """Palette indices as RGB: 8 bits per sample for 8-bit indices, else the 16 bits of the palette."""
    if layout.colormap is None:
        raise ValueError("it is a palette image without a palette; convert it to RGB or grey first")
    short = indices.dtype.itemsize == 1
    colours = (layout.colormap >> 8).astype(np.uint8) if short else layout.colormap.astype(np.uint16)
    pixels = np.ascontiguousarray(np.moveaxis(colours[:, indices], 0, -1))
    tags = layout.tags
    if layout.kind == "shaped":  # its description states the shape of the indices
        tags = tuple(tuple(tag for tag in page if tag[0] != DESCRIPTION) for page in tags)
    layout = replace(
        layout,
        shape=pixels.shape,
        page_ndim=layout.page_ndim + 1,
        photometric=RGB,
        planarconfig=1,
        extrasamples=(),
        tags=tags,
        colormap=None,
    )
    return pixels, axes + "S", layout


def _number(fraction: Any) -> float:
    numerator, denominator = fraction
    return float(numerator / denominator)


def _is_resolution(tag: TiffTag) -> bool:
    """Whether a tag holds a positive fraction; some programs write 0/0."""
    value = tag.value
    return isinstance(value, tuple) and len(value) == 2 and value[0] > 0 and value[1] > 0


def _check_complete(series: TiffPageSeries, size: int) -> None:
    """Every strip and tile must lie inside the file: missing ones would be read as black."""
    ends = [
        offset + count
        for page in series.pages
        if page is not None
        for offset, count in zip(page.dataoffsets, page.databytecounts, strict=False)
    ]
    if series.dataoffset is not None:
        ends.append(series.dataoffset + series.nbytes)
    if max(ends, default=0) > size:
        raise ValueError("it is truncated")


def _check_chain(path: Path) -> None:
    """Walk from page to page: a chain that leaves the file would silently be read as fewer pages."""
    size = os.path.getsize(path)
    with open(path, "rb") as stream:
        header = stream.read(16)
        order = "<" if header[:2] == b"II" else ">"
        big = struct.unpack_from(order + "H", header.ljust(4), 2)[0] == 43
        count_type, entry_size, offset_type = ("Q", 20, "Q") if big else ("H", 12, "I")
        try:
            (offset,) = struct.unpack_from(order + offset_type, header, 8 if big else 4)
            seen: set[int] = set()
            while offset:
                if offset >= size or offset in seen:
                    raise ValueError("it is truncated")
                seen.add(offset)
                stream.seek(offset)
                (n_entries,) = _unpack(stream, order + count_type)
                stream.seek(n_entries * entry_size, os.SEEK_CUR)
                (offset,) = _unpack(stream, order + offset_type)
        except struct.error:
            raise ValueError("it is truncated") from None


def _unpack(stream: Any, format_: str) -> tuple[Any, ...]:
    return struct.unpack(format_, stream.read(struct.calcsize(format_)))
