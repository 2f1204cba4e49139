"""The zarr store to write: its documents, its levels, and the files of a box."""

import contextlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from vnlem.large import ngff
from vnlem.large.boxes import Box, cut_at, inside, slices
from vnlem.large.nodes import Node, read_node, write_json
from vnlem.large.sources import Source
from vnlem.pipeline.workers import for_each

# Sizes in stores made here: a unit of work covers a shard of 2048 x 2048, viewers fetch chunks.
CHUNK_SIDE = 512
SHARD_SIDE = 2048
SMALLEST_LEVEL = 512  # a pyramid ends when its coarsest level fits in this many pixels a side


@dataclass(frozen=True)
class StoreLevel:
    """One array of the store."""

    path: str  # below the store's folder, "" for the store itself
    shape: tuple[int, ...]
    file: tuple[int, ...]  # what one file covers: a shard, or a chunk


@dataclass(frozen=True)
class Store:
    """A store to write: its levels, the finest first, and all its metadata documents."""

    levels: tuple[StoreLevel, ...]
    documents: dict[str, dict[str, Any]]  # by path below the store's folder


def store_like(source: Source, shape: tuple[int, ...], offset: tuple[int, ...]) -> Store:
    """The store for a denoised copy of a zarr store, or of a part of it: the same except for the pixels."""
    image = source.image
    assert image is not None
    if isinstance(image, Node):
        copied = image.with_shape(shape).with_dtype(source.wanted)
        return Store((StoreLevel("", shape, image.file_shape),), _documents(copied, ""))
    documents = _documents(ngff.moved(image, offset).without_consolidated(), "")
    shapes = [shape]
    for level in image.levels[1:]:
        if shape == image.levels[0].shape:
            shapes.append(level.shape)
        else:
            shapes.append(shape_of_part(shape, image.levels[0].shape, level.shape))
    levels = []
    for path, node, level_shape in zip(image.paths, image.levels, shapes, strict=True):
        for parent in list(Path(path).parents)[-2::-1]:  # groups between the image and its level
            between = read_node(image.group.path / parent)
            if between is not None:
                documents |= _documents(between.without_consolidated(), str(parent))
        documents |= _documents(node.with_shape(level_shape).with_dtype(source.wanted), path)
        levels.append(StoreLevel(path, level_shape, node.file_shape))
    return Store(tuple(levels), documents)


def shape_of_part(part: tuple[int, ...], whole: tuple[int, ...], coarse: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that a part of an image has in a coarser level.

    >>> shape_of_part((100, 31), (400, 400), (200, 200))
    (50, 16)
    """
    factors = [max(1, round(a / b)) for a, b in zip(whole, coarse, strict=True)]
    return tuple(-(-size // factor) for size, factor in zip(part, factors, strict=True))


def new_store(source: Source, shapes: list[tuple[int, ...]], name: str) -> Store:
    """The store for an image from another format: NGFF 0.5, zarr 3, sharded.

    source: its dtype, its axes, the size of its pixels.
    shapes: shape of each level, the finest first.
    name: name of the image.
    """
    import zarr
    from zarr.storage import MemoryStore

    sizes = source.details.get("pixel_sizes", {})
    scales, levels, documents = [], [], {}
    for number, level_shape in enumerate(shapes):
        leading = len(level_shape) - 2
        side = [-(-min(size, SHARD_SIDE) // CHUNK_SIDE) * CHUNK_SIDE for size in level_shape[-2:]]
        array = zarr.create_array(
            MemoryStore(),
            shape=level_shape,
            chunks=(1,) * leading + (CHUNK_SIDE,) * 2,
            shards=(1,) * leading + tuple(side),
            dtype=source.result_dtype.newbyteorder("="),
            dimension_names=source.axes,
            zarr_format=3,
        )
        documents[f"{number}/zarr.json"] = dict(array.metadata.to_dict())
        levels.append(StoreLevel(str(number), level_shape, (1,) * leading + tuple(side)))
        scales.append([sizes.get(axis, 1.0) * 2 ** (number if axis in "yx" else 0) for axis in source.axes])
    units = source.details.get("units", {})
    channels = source.details.get("channels")
    attributes = ngff.describe_new(source.axes, scales, units, name, channels)
    documents["zarr.json"] = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
    return Store(tuple(levels), documents)


def _documents(node: Node, path: str) -> dict[str, dict[str, Any]]:
    return {os.path.join(path, name): document for name, document in node.documents.items()}


def create(root: Path, store: Store) -> None:
    """Write the missing documents, the store's own last. It is safe to do this twice."""
    for name, document in sorted(store.documents.items(), key=lambda item: -item[0].count("/")):
        path = root / name
        if not path.exists():
            write_json(path, document)


def try_out(store: Store, name: str) -> None:
    """Write a pixel of every level elsewhere, to find codecs that cannot write before the work."""
    with tempfile.TemporaryDirectory() as folder:
        create(Path(folder), store)
        try:
            for level in store.levels:
                array = open_level(Path(folder), level, "r+")
                array[tuple(slice(0, 1) for _ in level.shape)] = 1
        except Exception as error:  # codecs raise any kind of error
            if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno is not None):
                raise
            raise ValueError(
                f"arrays with the metadata of {name} cannot be written; restore them from a copy"
            ) from error


def open_level(root: Path, level: StoreLevel, mode: str = "r") -> Any:
    """The array of a level."""
    import zarr

    return zarr.open_array(str(root / level.path), mode=mode)


def write_box(
    array: Any, root: Path, level: StoreLevel, box: Box, pixels: NDArray[Any], workers: int = 1
) -> tuple[int, int]:
    """Write whole files and wait until they are safe; returns how many there are and their bytes.

    Files from an interrupted run are removed first: they may be incomplete and must not be read again. Each
    file is written separately: if one of many fails, zarr would leave the others unfinished.
    """
    paths = [root / level.path / key for key in file_keys(array, level, box)]
    for path in paths:
        path.unlink(missing_ok=True)

    def write(part: Box) -> None:
        array[slices(part)] = pixels[slices(inside(part, box))]

    for_each(write, list(cut_at(box, level.file)), workers)
    count = total = 0
    for path in paths:
        try:
            with open(path, "rb+") as stream:
                os.fsync(stream.fileno())
                total += stream.seek(0, os.SEEK_END)
                count += 1
        except FileNotFoundError:
            pass  # a chunk that holds only the fill value has no file
    return count, total


def measure_box(array: Any, root: Path, level: StoreLevel, box: Box) -> tuple[int, int]:
    """How many files of a box there are, and their bytes."""
    sizes = []
    for key in file_keys(array, level, box):
        with contextlib.suppress(FileNotFoundError):
            sizes.append((root / level.path / key).stat().st_size)
    return len(sizes), sum(sizes)


def file_keys(array: Any, level: StoreLevel, box: Box) -> list[str]:
    """The files of a box, below the array's folder."""
    places = (
        tuple(start // side for (start, _), side in zip(part, level.file, strict=True))
        for part in cut_at(box, level.file)
    )
    return [array.metadata.encode_chunk_key(place) for place in places]
