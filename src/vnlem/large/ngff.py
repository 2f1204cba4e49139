"""OME-Zarr (NGFF) metadata: where the image is, what its axes mean, and metadata for a denoised copy."""

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vnlem.large.nodes import Node, check_array, damaged, read_node

VERSIONS = ("0.4", "0.5")
CHANNEL = "c"


@dataclass(frozen=True)
class Image:
    """A multiscale image: its group and its levels, the finest first."""

    group: Node
    axes: tuple[str, ...]
    paths: tuple[str, ...]
    levels: tuple[Node, ...]


def find_image(path: Path) -> Image | Node:
    """The image in a folder: an OME-Zarr image, or a plain zarr array.

    Everything else is refused with a sentence that names what to pass instead.
    """
    node = read_node(path)
    if node is None:
        raise ValueError(f"{path} holds no zarr group or array; name the folder of a zarr store")
    if node.is_array:
        check_array(node)
        return node
    content, version = _content(node)
    if "plate" in content:
        try:
            example = f"{content['plate']['wells'][0]['path']}/0"
        except (KeyError, IndexError, TypeError):
            example = "A/1/0"
        raise ValueError(f"{path} is a plate of wells; denoise its images one by one, e.g. {path / example}")
    if "well" in content:
        raise ValueError(f"{path} is a well; denoise its images one by one, e.g. {path / '0'}")
    if "image-label" in content or "labels" in content:
        raise ValueError(f"{path} holds labels, which have no noise; denoise the image they belong to")
    if "bioformats2raw.layout" in content:
        raise ValueError(f"{path} is a collection of images; denoise them one by one, e.g. {path / '0'}")
    if "multiscales" not in content:
        raise ValueError(f"{path} is a zarr group without an image; {_members(path)}")
    return _image(node, content, version)


def _content(node: Node) -> tuple[dict[str, Any], str | None]:
    """The NGFF content of a group, and the version if it is given once for all."""
    if node.zarr_format == 3 and isinstance(node.attributes.get("ome"), dict):
        content: dict[str, Any] = node.attributes["ome"]
        return content, content.get("version")
    return node.attributes, None


def _image(node: Node, content: dict[str, Any], version: str | None) -> Image:
    images = content["multiscales"]
    if not isinstance(images, list) or not all(isinstance(image, dict) for image in images):
        raise damaged(node.path, "'multiscales' is not a list of images")
    if len(images) != 1:
        raise ValueError(f"{node.path} must describe exactly one multiscale image, got {len(images)}")
    (image,) = images
    version = str(version or image.get("version"))
    if version not in VERSIONS:
        raise ValueError(
            f"{node.path} has NGFF version {version}; versions {' and '.join(VERSIONS)} are supported, "
            "convert it first"
        )
    try:
        axes = tuple(str.lower(axis["name"]) for axis in image["axes"])
        paths = tuple(str.strip(level["path"]) for level in image["datasets"])
    except KeyError as error:
        raise damaged(node.path, f"{error} is missing in 'multiscales'") from error
    except TypeError as error:
        raise damaged(node.path, "'multiscales' must name its axes and the paths of its datasets") from error
    if not paths:
        raise damaged(node.path, "'multiscales' names no datasets")
    levels: list[Node] = []
    for path in paths:
        level = read_node(node.path / path)
        if level is None or not level.is_array:
            raise ValueError(f"{node.path} names the array {path!r}, which is not there")
        check_array(level)
        if len(level.shape) != len(axes):
            raise ValueError(f"{node.path / path} has {len(level.shape)} axes, its metadata {len(axes)}")
        if 0 in level.shape:
            raise ValueError(
                f"{node.path / path} is empty (shape {level.shape}); it needs at least one pixel"
            )
        if levels and any(here > finer for here, finer in zip(level.shape, levels[-1].shape, strict=True)):
            raise damaged(
                level.path, f"its shape {level.shape} is larger than {levels[-1].shape} of the finer level"
            )
        levels.append(level)
    return Image(node, axes, paths, tuple(levels))


def _members(path: Path) -> str:
    found = sorted(child.name for child in path.iterdir() if child.is_dir() and read_node(child))
    return f"pass one of its members: {', '.join(found[:5])}" if found else "it is empty"


def moved(image: Image, offset: tuple[int, ...]) -> Node:
    """The group of an image that begins at `offset` of this one: every level is translated accordingly."""
    if not any(offset):
        return image.group
    attributes = copy.deepcopy(image.group.attributes)
    content = attributes.get("ome", attributes)
    datasets = content["multiscales"][0]["datasets"]
    try:
        _move(datasets, offset)
    except (KeyError, TypeError, ValueError, AttributeError, StopIteration) as error:
        reason = "'coordinateTransformations' must give each level a scale for every axis"
        raise damaged(image.group.path, reason) from error
    return image.group.with_attributes(attributes)


def _move(datasets: list[dict[str, Any]], offset: tuple[int, ...]) -> None:
    finest = next(t["scale"] for t in datasets[0]["coordinateTransformations"] if t["type"] == "scale")
    by = [scale * start for scale, start in zip(finest, offset, strict=True)]
    for level in datasets:
        transformations = level["coordinateTransformations"]
        for transformation in transformations:
            if transformation["type"] == "translation":
                old = transformation["translation"]
                transformation["translation"] = [a + b for a, b in zip(old, by, strict=True)]
                break
        else:
            transformations.append({"type": "translation", "translation": by})


def describe_new(
    axes: tuple[str, ...],
    scales: list[list[float]],
    units: dict[str, str],
    name: str,
    channels: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """Attributes (NGFF 0.5) of an image from another format.

    axes: names, of t, c, z, y, x.
    scales: size of a pixel along each axis, for each level.
    units: unit of an axis, if known.
    name: name of the image.
    channels: names and colours of the channels, as ``omero`` has them.

    >>> describe_new(("y", "x"), [[0.5, 0.5]], {"y": "micrometer"}, "cells")["ome"]["multiscales"][0]["axes"]
    [{'name': 'y', 'type': 'space', 'unit': 'micrometer'}, {'name': 'x', 'type': 'space'}]
    """
    kinds = {"t": "time", CHANNEL: "channel"}
    described: list[dict[str, str]] = []
    for axis in axes:
        entry = {"name": axis, "type": kinds.get(axis, "space")}
        if axis in units:
            entry["unit"] = units[axis]
        described.append(entry)
    datasets = [
        {"path": str(level), "coordinateTransformations": [{"type": "scale", "scale": scale}]}
        for level, scale in enumerate(scales)
    ]
    image = {"name": name, "axes": described, "datasets": datasets, "type": "mean"}
    content: dict[str, Any] = {"version": "0.5", "multiscales": [image]}
    if channels:
        content["omero"] = {"channels": channels}
    return {"ome": content}
