"""TIFF files as targets: assembled, tile by tile, from the store that the units wrote.

Units may end in any order, on any machine, and a killed one must leave nothing half-written; a TIFF file can
offer none of that. So units write a zarr store next to the target, and when all are done the file is written
in one go, under a temporary name.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.io.atomic import whole_file
from vnlem.io.ome import describe, with_dtype
from vnlem.io.picture import Calibration
from vnlem.large.stores import open_level
from vnlem.large.worker import RunTask

TILE = 512
_LARGEST_CLASSIC = 2**32 - 2**25  # room for the tags below the 4 GB that 32-bit offsets reach


def assemble(task: RunTask) -> None:
    """Write the TIFF file: BigTIFF if needed, tiled, with its coarser levels as sub-images."""
    from tifffile import TiffWriter

    source = task.source
    about = source.details.get("tiff", {})
    axes = _file_axes(source.axes, about, source.colour)
    arrays = [open_level(task.root, level) for level in task.levels]
    nbytes = sum(int(np.prod(array.shape)) * array.dtype.itemsize for array in arrays)
    whole = task.plans[0].shape == source.shape
    ome = bool(about.get("ome")) or task.target.name.lower().endswith((".ome.tif", ".ome.tiff"))
    description = about.get("description") if whole and ome else None
    options: dict[str, Any] = {
        "tile": _tile(about),
        "photometric": "rgb" if source.colour else "minisblack",
        "compression": "zlib" if about.get("compressed", True) else None,
        "predictor": about.get("compressed", True),
        "software": False,
        **_resolution(source.details, ome),
    }
    if source.colour:
        options["planarconfig"] = "contig"
    with (
        whole_file(task.target) as temporary,
        TiffWriter(
            temporary,
            bigtiff=bool(about.get("bigtiff")) or nbytes > _LARGEST_CLASSIC,
            ome=ome and description is None,
        ) as tif,
    ):
        for number, array in enumerate(arrays):
            first = number == 0
            tif.write(
                _tiles(array, source.axes, axes, options["tile"]),
                shape=_shape(array.shape, source.axes, axes),
                dtype=array.dtype.newbyteorder("="),
                metadata=_metadata(source.details, axes, ome) if first and description is None else None,
                description=with_dtype(description.encode(), array.dtype) if first and description else None,
                subifds=len(arrays) - 1 if first and len(arrays) > 1 else None,
                subfiletype=0 if first else 1,
                **options,
            )


def _file_axes(axes: tuple[str, ...], about: dict[str, Any], colour: bool) -> tuple[str, ...]:
    """The order of axes in the file: that of the source, or ours with the colours last."""
    if "axes" in about:
        return tuple(about["axes"])
    return (*(axis for axis in axes if axis != "c"), "c") if colour else axes


def _shape(shape: tuple[int, ...], axes: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(shape[axes.index(axis)] for axis in wanted)


def _tile(about: dict[str, Any]) -> tuple[int, int]:
    height, width = (about.get("tile") or (TILE, TILE))[-2:]
    return (height, width) if height % 16 == 0 and width % 16 == 0 else (TILE, TILE)


def _tiles(
    array: Any, axes: tuple[str, ...], wanted: tuple[str, ...], tile: tuple[int, int]
) -> Iterator[NDArray[Any]]:
    """All tiles in the order of the file; a row of them is read at a time."""
    colour = wanted[-1] == "c"
    counted = [axis for axis in wanted if axis not in ("y", "x") and not (colour and axis == "c")]
    height, width = array.shape[-2:]
    for place in product(*(range(array.shape[axes.index(axis)]) for axis in counted)):
        index: list[Any] = [slice(None)] * len(axes)
        for axis, number in zip(counted, place, strict=True):
            index[axes.index(axis)] = number
        for top in range(0, height, tile[0]):
            index[-2] = slice(top, min(top + tile[0], height))
            row = np.asarray(array[tuple(index)])
            if colour:
                row = np.moveaxis(row, 0, -1)
            for left in range(0, width, tile[1]):
                part = row[:, left : left + tile[1]]
                missing = [(0, tile[0] - part.shape[0]), (0, tile[1] - part.shape[1])]
                yield np.pad(part, missing + [(0, 0)] * (part.ndim - 2))


def _metadata(details: dict[str, Any], axes: tuple[str, ...], ome: bool) -> dict[str, Any] | None:
    names = "".join("S" if axis == "c" and axes[-1] == "c" else axis.upper() for axis in axes)
    if not ome:
        return {"axes": names} if len(names.replace("S", "")) > 2 else None
    sizes = {axis.upper(): size for axis, size in details.get("pixel_sizes", {}).items()}
    units = {axis.upper(): unit for axis, unit in details.get("units", {}).items()}
    channels = tuple(channel["label"] for channel in details.get("channels") or ())
    return describe(Calibration(sizes, units, channels), names)


def _resolution(details: dict[str, Any], ome: bool) -> dict[str, Any]:
    sizes, units = details.get("pixel_sizes", {}), details.get("units", {})
    if ome or units.get("x") != "micrometer" or not {"x", "y"} <= sizes.keys():
        return {}
    return {"resolution": (1e4 / sizes["x"], 1e4 / sizes["y"]), "resolutionunit": "CENTIMETER"}
