"""Zarr stores in folders as sources: OME-Zarr images, and plain arrays."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vnlem.large.ngff import find_image
from vnlem.large.nodes import Node, read_node
from vnlem.large.sources import NAMES, Source, plain_source


def open_stored(path: str) -> Any:
    """An array of a zarr store."""
    import zarr

    return zarr.open_array(path, mode="r")


def open_folder(path: Path, axes: str | None) -> Source:
    """The finest level of an OME-Zarr image, or an array."""
    image = find_image(path)
    if isinstance(image, Node):
        opener = partial(open_stored, str(path.resolve()))
        source = plain_source(str(path), opener, axes or _dimension_names(image))
        source.image = image
        return source
    if axes is not None and tuple(axes.lower()) != image.axes:
        raise ValueError(f"{path} says that its axes are {', '.join(image.axes)}, got axes={axes!r}")
    opener = partial(open_stored, str((path / image.paths[0]).resolve()))
    shape, order = image.levels[0].shape, tuple(range(len(image.axes)))
    array = opener()
    return Source(
        name=str(path),
        open=opener,
        axes=image.axes,
        shape=shape,
        dtype=np.dtype(array.dtype),
        order=order,
        image=image,
        _array=array,
    )


def open_array(array: Any, axes: str | None) -> Source | None:
    """The store of a zarr array, if it is a folder."""
    root = getattr(getattr(array, "store", None), "root", None)
    if not isinstance(root, Path):
        return None
    path = root / str(getattr(array, "path", ""))
    return open_folder(path, axes) if read_node(path) is not None else None


def _dimension_names(node: Node) -> str | None:
    """The axes of a plain array, if its dimensions have the names of axes."""
    names = node.metadata.get("dimension_names") or node.attributes.get("_ARRAY_DIMENSIONS")
    if names and all(name in NAMES for name in names):
        return "".join(names)
    return None
