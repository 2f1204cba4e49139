"""TIFF out: the pages as they were, in ImageJ's, OME's or the plain layout."""

import warnings
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from tifffile import TiffWriter

from vnlem.io.ome import axes_for, describe, with_dtype, without_file_names
from vnlem.io.pages import PagesOnDisk
from vnlem.io.picture import Picture, Resolution
from vnlem.io.tiff import (
    DATETIME,
    DESCRIPTION,
    MINISBLACK,
    RGB,
    SOFTWARE,
    X_RESOLUTION,
    Y_RESOLUTION,
    Tag,
    TiffLayout,
)
from vnlem.io.units import size_in

_ALPHA = 2  # unassociated: colours are not multiplied by it
_SUBFILE_TYPE = 254
_LARGEST_CLASSIC = 2**32 - 2**25  # room for the tags below the 4 GB that 32-bit offsets reach
_RESOLUTION_UNITS = {"": 1, "inch": 2, "cm": 3}
# ImageJ's counts of pages follow from the axes.
_IMAGEJ_COUNTS = ("ImageJ", "images", "channels", "slices", "frames", "hyperstack", "axes", "shape")
_PLAIN_KINDS = ("uniform", "generic", "shaped", "ome", "mmstack")


def write(path: Path, picture: Picture, *, ome: bool = False, pages: PagesOnDisk | None = None) -> None:
    """Write a TIFF file; `ome` makes it OME-TIFF, which a file that was read as OME stays anyway.

    `pages` hold the pixels if the picture has only their shape.
    """
    array = picture.joined()
    layout = picture.metadata.native if picture.metadata.format == "tiff" else None
    if layout is not None and layout.shape != array.shape:
        layout = None
    options = _options(picture, layout)
    axes = _axes(picture, array)
    if ome:
        axes = axes_for(axes)
    if layout is not None and layout.imagej is not None and not ome:
        _write_imagej(path, _pixels(array, pages), axes, layout, options)
        return
    as_pages = layout is not None and bool(layout.page_order) and layout.kind in _PLAIN_KINDS
    if ome and layout is not None and layout.kind != "ome":
        as_pages = False
    with TiffWriter(path, bigtiff=_needs_bigtiff(array, layout), ome=ome and not as_pages) as tif:
        if layout is not None and as_pages:
            single = array.reshape(len(layout.page_order), *array.shape[-layout.page_ndim :])
            _write_pages(tif, single if pages is None else pages, layout, options)
            return
        if layout is not None and layout.kind == "ome":
            warnings.warn(
                "the OME metadata name other files or missing pages: only the axes are kept", stacklevel=5
            )
        several = ome or len(axes.replace("S", "")) > 2
        pixels = _pixels(array, pages)
        metadata = describe(picture.metadata.calibration, axes) if ome else {"axes": axes}
        tif.write(**pixels, metadata=metadata if several else None, software=False, **options)


def write_ome(path: Path, picture: Picture, *, pages: PagesOnDisk | None = None) -> None:
    """Write an OME-TIFF file."""
    write(path, picture, ome=True, pages=pages)


def _pixels(array: NDArray[Any], pages: PagesOnDisk | None) -> dict[str, Any]:
    """Pixels as tifffile takes them: an array, or pages one after another."""
    if pages is None:
        return {"data": array}
    return {"data": iter(pages), "shape": pages.shape, "dtype": pages.dtype}


def _write_imagej(
    path: Path, pixels: dict[str, Any], axes: str, layout: TiffLayout, options: dict[str, Any]
) -> None:
    details = {key: value for key, value in (layout.imagej or {}).items() if key not in _IMAGEJ_COUNTS}
    # ImageJ reads uncompressed pages that follow each other, and takes the order of the axes as given.
    options = options | {"compression": None, "predictor": None, "colormap": layout.colormap}
    with TiffWriter(path, imagej=True) as tif:
        tif.write(**pixels, metadata=details | {"axes": axes}, **options)


def _write_pages(
    tif: TiffWriter, pages: NDArray[Any] | PagesOnDisk, layout: TiffLayout, options: dict[str, Any]
) -> None:
    """Page after page in the order of the source, each with its own tags."""
    for k, tags in zip(layout.page_order, layout.tags, strict=True):
        kept = {tag[0]: tag for tag in tags if tag[0] != DESCRIPTION}
        # A page may have two descriptions: its own, and the shape that tifffile writes after it.
        descriptions = [tag for tag in tags if tag[0] == DESCRIPTION]
        several = descriptions if len(descriptions) > 1 else []
        subfile = kept.pop(_SUBFILE_TYPE, None)
        description = None if several or not descriptions else _text(descriptions[0])
        if layout.kind == "ome" and description is not None:
            description = with_dtype(without_file_names(description), pages.dtype)
        resolution = [kept.pop(code, None) for code in (X_RESOLUTION, Y_RESOLUTION)]
        if None not in resolution:
            options = options | {"resolution": tuple(tag[3] for tag in resolution if tag is not None)}
        tif.write(
            pages.page(k) if isinstance(pages, PagesOnDisk) else pages[k],
            metadata=None,
            description=description,
            software=_text(kept.pop(SOFTWARE, None)) or False,
            datetime=_text(kept.pop(DATETIME, None), "ascii"),
            subfiletype=None if subfile is None else int(subfile[3]),
            extratags=[(*tag, True) for tag in (*kept.values(), *several)],
            **options,
        )


def _text(tag: Tag | None, encoding: str = "") -> Any:
    if tag is None:
        return None
    value = tag[3].rstrip(b"\x00") if isinstance(tag[3], bytes) else str(tag[3]).encode()
    return value.decode(encoding, "replace") if encoding else value


def _options(picture: Picture, layout: TiffLayout | None) -> dict[str, Any]:
    """Meaning and layout of samples, compression, resolution and colour profile."""
    options: dict[str, Any] = {"iccprofile": picture.metadata.icc_profile}
    if layout is None:
        colour = picture.channel_axis is not None and picture.n_channels == 3
        n_samples = picture.n_channels + (picture.alpha is not None)
        extra = [0] * (picture.n_channels - (3 if colour else 1)) + [_ALPHA] * (picture.alpha is not None)
        options["photometric"] = RGB if colour else MINISBLACK
        options["planarconfig"] = None if n_samples == 1 else (2 if picture.channel_axis == -3 else 1)
        options["extrasamples"] = extra or None
        resolution = picture.metadata.resolution or _resolution(picture)
        if resolution is not None:
            options["resolution"] = (resolution.x, resolution.y)
            options["resolutionunit"] = _RESOLUTION_UNITS[resolution.unit]
        return options
    options["photometric"] = layout.photometric
    options["planarconfig"] = layout.planarconfig
    options["extrasamples"] = layout.extrasamples or None
    if layout.compressed:
        options |= {"compression": "zlib", "predictor": True}
    if layout.resolution is not None:
        options |= {"resolution": layout.resolution, "resolutionunit": layout.resolution_unit}
    return options


def _resolution(picture: Picture) -> Resolution | None:
    """Pixels per centimetre, if another format gives the length of a pixel."""
    x, y = (size_in(picture.metadata.calibration, axis, "centimeter") for axis in "XY")
    return Resolution(1 / x, 1 / y, "cm") if x and y else None


def _axes(picture: Picture, array: NDArray[Any]) -> str:
    """A letter per axis of the array as written: the file's own if they fit."""
    if len(picture.metadata.axes) == array.ndim:
        return picture.metadata.axes
    page = {None: "YX", -1: "YXS", -3: "SYX"}[picture.channel_axis]
    if picture.alpha is not None and picture.channel_axis is None:
        page = "YXS"
    names = "TZC"[-len(picture.page_axes) :] if picture.page_axes else ""
    if len(picture.page_axes) == 1:
        names = "Z"
    elif len(picture.page_axes) > 3:
        names = "ABDEFGH"[: len(picture.page_axes) - 3] + "TZC"
    return names + page


def _needs_bigtiff(array: NDArray[Any], layout: TiffLayout | None) -> bool:
    return array.nbytes > _LARGEST_CLASSIC or (layout is not None and layout.bigtiff)
