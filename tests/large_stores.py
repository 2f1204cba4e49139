"""Stores that the tests of large images read."""

import json
from pathlib import Path
from typing import Any

import numpy as np


def make_image(
    path: Path,
    pixels: Any,
    version: str,
    axes: str,
    chunks: tuple[int, ...],
    shards: tuple[int, ...] | None = None,
    levels: int = 2,
) -> Path:
    """An OME-Zarr image with a pyramid, channel names and colours, and unexpected content."""
    import zarr

    zarr_format = 2 if version == "0.4" else 3
    kinds = {"t": "time", "c": "channel"}
    described: list[dict[str, str]] = [{"name": a, "type": kinds.get(a, "space")} for a in axes]
    for entry in described:
        if entry["type"] == "space":
            entry["unit"] = "micrometer"
    datasets = []
    for level in range(levels):
        factor = 2**level
        scale = [0.5 * factor if axis in "yx" else 1.0 for axis in axes]
        datasets.append(
            {"path": str(level), "coordinateTransformations": [{"type": "scale", "scale": scale}]}
        )
    content: dict[str, Any] = {
        "multiscales": [{"name": "cells", "axes": described, "datasets": datasets}],
        "omero": {
            "channels": [
                {
                    "label": "DAPI",
                    "color": "0000FF",
                    "active": True,
                    "window": {"min": 0, "max": 65535, "start": 0, "end": 1500},
                }
            ]
        },
    }
    if version == "0.4":
        content["multiscales"][0]["version"] = "0.4"
        attributes = content
    else:
        attributes = {"ome": {"version": "0.5", **content}}
    attributes["somebody"] = {"wrote": "this"}
    group = zarr.create_group(path, zarr_format=zarr_format, attributes=attributes)
    for level in range(levels):
        factor = 2**level
        thin = pixels[..., ::factor, ::factor]
        options: dict[str, Any] = {"shards": shards} if shards is not None else {}
        if zarr_format == 3:
            options["dimension_names"] = list(axes)
        else:
            options["chunk_key_encoding"] = {"name": "v2", "separator": "/"}
        array = group.create_array(
            str(level), shape=thin.shape, dtype=thin.dtype, chunks=chunks, fill_value=0, **options
        )
        array[:] = thin
    return path


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file of a folder with its bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def document(path: Path) -> Any:
    """A JSON document."""
    return json.loads(path.read_text())


def halved(pixels: Any) -> Any:
    """Means over 2 x 2 pixels, rounded; sizes must be even."""
    *leading, height, width = pixels.shape
    blocks = pixels.reshape(*leading, height // 2, 2, width // 2, 2).astype(np.float64)
    return np.rint(blocks.mean((-3, -1))).astype(pixels.dtype)
