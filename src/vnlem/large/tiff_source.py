"""TIFF files as sources: tiled, striped, pyramidal, BigTIFF, OME; read in parts by tifffile's zarr view."""

import xml.etree.ElementTree as ElementTree
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tifffile import TiffFile, TiffPageSeries, imread

from vnlem.io.files import one_sentence
from vnlem.io.tiff import only_series
from vnlem.io.units import OME_UNITS
from vnlem.large.sources import NAMES, Source, check_names, ordered_source

_SAMPLES = "S"
_MICROMETERS = {2: 25400.0, 3: 10000.0}  # in an inch, in a centimetre
_SECONDS = ("s", "sec", "second", "seconds")  # as ImageJ names them
_NGFF_UNITS = {shown: unit for unit, shown in OME_UNITS.items()}
_NGFF_UNITS |= dict.fromkeys(("um", "\\u00B5m", "micron"), "micrometer")


def open_view(path: str) -> Any:
    """The finest level of a TIFF file's image as an array."""
    import zarr

    # The view holds the file open; closing the view closes the file.
    with one_sentence(Path(path)):
        return zarr.open_array(imread(path, aszarr=True, level=0), mode="r")


def open_tiff(path: Path, axes: str | None) -> Source:
    """A TIFF file with one image."""
    with one_sentence(path), TiffFile(path) as tif:
        series = only_series(tif)
        names = _names(series, axes)
        colour = _SAMPLES in series.axes
        if colour and series.keyframe.extrasamples:
            raise ValueError("it has an alpha channel; large TIFF files can be grey or RGB, remove it first")
        details = _details(tif, series, names)
        shape, dtype = series.shape, series.dtype
    return ordered_source(
        str(path),
        partial(open_view, str(path.resolve())),
        names,
        shape,
        np.dtype(dtype).newbyteorder("="),
        colour=colour,
        guessed=axes is None and not set(series.axes.lower()) - {_SAMPLES.lower()} <= set(NAMES),
        details=details,
    )


def _names(series: TiffPageSeries, axes: str | None) -> tuple[str, ...]:
    """Our name for each axis of the file; pages that the file does not explain are time points."""
    found = "".join({_SAMPLES: "c", "I": "t", "Q": "t", "R": "t"}.get(a, a) for a in series.axes)
    return check_names(tuple((found if axes is None else axes).lower()), series.axes, series.shape, "it")


def _details(tif: TiffFile, series: TiffPageSeries, names: tuple[str, ...]) -> dict[str, Any]:
    page = series.keyframe
    details: dict[str, Any] = {
        "tiff": {
            "axes": names,
            "level_shapes": [level.shape for level in series.levels],
            "tile": page.tile if page.is_tiled else None,
            "compressed": int(page.compression) != 1,
            "bigtiff": tif.is_bigtiff,
            "ome": tif.is_ome,
            "description": _own_description(tif, series),
        }
    }
    if tif.is_ome and tif.ome_metadata:
        details |= _of_ome(tif.ome_metadata)
    else:
        details |= _of_resolution(tif, series)
    return details


def _own_description(tif: TiffFile, series: TiffPageSeries) -> str | None:
    """The OME-XML, if it can describe a copy: it names no files, and pages are in its order."""
    text = tif.ome_metadata if tif.is_ome else None
    in_order = all(page is not None and page.index == k for k, page in enumerate(series.pages))
    return text if text and "FileName=" not in text and in_order else None


def _of_ome(text: str) -> dict[str, Any]:
    """Sizes of pixels, their units, names and colours of the channels."""
    root = ElementTree.fromstring(text)
    pixels = next((element for element in root.iter() if element.tag.endswith("}Pixels")), None)
    if pixels is None:
        return {}
    sizes, units = {}, {}
    for axis in "xyz":
        value = pixels.get(f"PhysicalSize{axis.upper()}")
        if value:
            sizes[axis] = float(value)
            unit = pixels.get(f"PhysicalSize{axis.upper()}Unit", "µm")
            units[axis] = _NGFF_UNITS.get(unit, unit)
    step = pixels.get("TimeIncrement")
    if step:
        sizes["t"], units["t"] = float(step), _NGFF_UNITS.get(pixels.get("TimeIncrementUnit", "s"), "second")
    channels = [
        {"label": c.get("Name") or f"channel {k}", "color": _colour(c.get("Color")), "active": True}
        for k, c in enumerate(element for element in pixels if element.tag.endswith("}Channel"))
    ]
    return {"pixel_sizes": sizes, "units": units, "channels": channels}


def _colour(text: str | None) -> str:
    """The colour as six hexadecimal digits (NGFF), from OME's signed number of red, green, blue, alpha."""
    value = int(text) if text else -1
    return f"{(value & 0xFFFFFFFF) >> 8:06X}"


def _of_resolution(tif: TiffFile, series: TiffPageSeries) -> dict[str, Any]:
    tags = series.keyframe.tags
    unit = tags.get("ResolutionUnit")
    known = _MICROMETERS.get(int(unit.value) if unit else 2)
    imagej = tif.imagej_metadata or {}
    per_pixel: dict[str, float] = {}
    for axis, name in (("x", "XResolution"), ("y", "YResolution")):
        tag = tags.get(name)
        if tag is not None and tag.value[0]:
            per_pixel[axis] = tag.value[1] / tag.value[0]
    named = _NGFF_UNITS.get(str(imagej.get("unit", "")))
    if named and per_pixel:
        if "spacing" in imagej:
            per_pixel["z"] = float(imagej["spacing"])
        units = dict.fromkeys(per_pixel, named)
        step = float(imagej.get("finterval", 0))
        if step > 0 and imagej.get("frames", 1) > 1 and imagej.get("tunit", "sec") in _SECONDS:
            per_pixel["t"], units["t"] = step, "second"
        return {"pixel_sizes": per_pixel, "units": units}
    # A resolution of 1 means that none was set.
    if known is None or set(per_pixel.values()) in (set(), {1.0}):
        return {}
    sizes = {axis: size * known for axis, size in per_pixel.items()}
    return {"pixel_sizes": sizes, "units": dict.fromkeys(sizes, "micrometer")}
