"""CZI, the format of Zeiss microscopes. Each scene is an image; its planes are assembled from blocks."""

import math
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from vnlem.io.czi_blocks import Block, CziBlocks
from vnlem.io.picture import Calibration, Metadata
from vnlem.io.series import SAMPLES, Series, unique_letters

_SCENE, _TILE = "S", "M"
_INSIDE = ("X", "Y", _SCENE, _TILE)  # axes that count no planes
_ORDER = "VHIRBTCZ"  # axes that do, the slowest first: views, phases, angles, ..., time, channel, depth
_KNOWN = {"T": "T", "C": "C", "Z": "Z"}
_BLOCKS_KEPT = 4
_MICROMETERS = 1e6  # in a metre


@contextmanager
def open_file(path: Path, place: Path) -> Iterator[list[Series]]:
    """All scenes of a CZI file."""
    with open(path, "rb") as stream:
        found = CziBlocks(stream)
        scenes: dict[int, list[Block]] = defaultdict(list)
        for block in found.blocks:
            if block.is_full_size:
                scenes[block.starts.get(_SCENE, 0)].append(block)
        about = _Description(found.description())
        kept = lru_cache(_BLOCKS_KEPT)(lambda number: found.pixels(found.blocks[number]))
        numbers = {id(block): number for number, block in enumerate(found.blocks)}
        several = len(scenes) > 1
        yield [
            _series(
                _Scene(blocks, lambda block: kept(numbers[id(block)])),
                about,
                number,
                about.scene(key) if several else "",
            )
            for number, (key, blocks) in enumerate(sorted(scenes.items()), start=1)
        ]


class _Scene:
    """The planes of a scene."""

    def __init__(self, blocks: list[Block], pixels: Any) -> None:
        self._pixels = pixels
        kinds = {block.samples for block in blocks}
        if len(kinds) > 1:
            raise ValueError("some of its channels are grey and some RGB; split the channels in ZEN")
        self.samples = kinds.pop()
        self.dtype = np.result_type(*(block.dtype for block in blocks)).newbyteorder("=")
        names = {name for block in blocks for name in block.starts if name not in _INSIDE}
        self._first = {
            name: min(block.starts.get(name, 0) for block in blocks) for name in (*names, "X", "Y")
        }
        ends = {
            name: max(block.starts.get(name, 0) + block.sizes.get(name, 1) for block in blocks)
            for name in self._first
        }
        sizes = {name: ends[name] - self._first[name] for name in self._first}
        ordered = sorted(names, key=lambda name: _ORDER.find(name))
        self.names = tuple(name for name in ordered if sizes[name] > 1)
        self.counts = tuple(sizes[name] for name in self.names)
        self.height, self.width = sizes["Y"], sizes["X"]
        self._check_size(blocks)
        self._by_plane: dict[tuple[int, ...], list[Block]] = defaultdict(list)
        # Later tiles of a mosaic lie on top of earlier ones.
        for block in sorted(blocks, key=lambda block: block.starts.get(_TILE, 0)):
            spans = [range(block.sizes.get(name, 1)) for name in self.names]
            for offset in np.ndindex(*map(len, spans)):
                begin = (block.starts.get(name, 0) - self._first[name] for name in self.names)
                self._by_plane[tuple(a + b for a, b in zip(begin, offset, strict=True))].append(block)

    def _check_size(self, blocks: list[Block]) -> None:
        """Damaged files may have any coordinates: refuse planes much larger than the blocks in them."""
        planes = math.prod(self.counts)
        filled = sum(math.prod(block.sizes.values()) for block in blocks)
        if planes > filled or self.height * self.width > 1000 * filled:
            sizes = "x".join(map(str, (*self.counts, self.height, self.width)))
            raise ValueError(f"it is damaged: its blocks are scattered over {sizes} pixels")

    def read(self, plane: int, rows: slice, columns: slice) -> NDArray[Any]:
        """A part of a plane; zero where a mosaic has no tile."""
        index = tuple(map(int, np.unravel_index(plane, self.counts))) if self.counts else ()
        blocks = self._by_plane.get(index)
        if not blocks:
            at = ", ".join(f"{name} {k + 1}" for name, k in zip(self.names, index, strict=True))
            raise ValueError(
                f"it has no pixels for {at}: the recording is not complete; export the part that is"
            )
        top, bottom, _ = rows.indices(self.height)
        left, right, _ = columns.indices(self.width)
        inner = (bottom - top, right - left)
        out = np.zeros((*inner, self.samples) if self.samples > 1 else inner, self.dtype)
        for block in blocks:
            y, x = (block.starts[name] - self._first[name] for name in "YX")
            y0, y1 = max(y, top), min(y + block.sizes["Y"], bottom)
            x0, x1 = max(x, left), min(x + block.sizes["X"], right)
            if y0 < y1 and x0 < x1:
                part = self._plane_of(block, index)[y0 - y : y1 - y, x0 - x : x1 - x]
                out[y0 - top : y1 - top, x0 - left : x1 - left] = part
        return out

    def _plane_of(self, block: Block, index: tuple[int, ...]) -> NDArray[Any]:
        """The rows and columns of a plane in a block."""
        wanted = dict(zip(self.names, index, strict=True))
        at: list[Any] = []
        for name in reversed(block.names):
            inside = wanted.get(name, 0) + self._first.get(name, 0) - block.starts[name]
            at.append(slice(None) if name in "YX" else inside if name in wanted else 0)
        plane: NDArray[Any] = self._pixels(block)[tuple(at)]
        rows_first = block.names.index("Y") > block.names.index("X")
        return plane if rows_first else np.swapaxes(plane, 0, 1)


def _series(scene: _Scene, about: "_Description", number: int, name: str) -> Series:
    colour = scene.samples > 1
    letters = unique_letters(_KNOWN.get(axis, "") for axis in scene.names)
    axes = letters + "YX" + SAMPLES * colour
    shape = (*scene.counts, scene.height, scene.width) + ((scene.samples,) if colour else ())
    metadata = Metadata("czi", axes=axes, calibration=about.calibration(axes, shape))
    return Series(axes, shape, scene.dtype, scene.read, key=str(number), name=name, metadata=metadata)


class _Description:
    """What the XML of a file says; empty if it is damaged."""

    def __init__(self, text: str) -> None:
        try:
            self._root = ElementTree.fromstring(text) if text else ElementTree.Element("none")
        except ElementTree.ParseError:
            self._root = ElementTree.Element("none")

    def scene(self, index: int) -> str:
        """The name of a scene."""
        for scene in self._root.iterfind("./Metadata/Information/Image/Dimensions/S/Scenes/Scene"):
            if scene.get("Index") == str(index):
                return scene.get("Name") or f"scene {index + 1}"
        return f"scene {index + 1}"

    def calibration(self, axes: str, shape: tuple[int, ...]) -> Calibration:
        """Lengths of pixels, the interval of a movie, names of channels."""
        sizes, units = {}, {}
        for axis in self._root.iterfind("./Metadata/Scaling/Items/Distance"):
            letter, step = axis.get("Id", ""), _number(axis.findtext("Value"))
            if letter and letter in "XYZ" and letter in axes and step:
                sizes[letter], units[letter] = step * _MICROMETERS, "micrometer"
        dimensions = "./Metadata/Information/Image/Dimensions"
        interval = _number(self._root.findtext(f"{dimensions}/T/Positions/Interval/Increment"))
        if interval and "T" in axes:
            sizes["T"], units["T"] = interval, "second"
        channels = self._root.iterfind(f"{dimensions}/Channels/Channel")
        names = tuple(found.get("Name") or found.get("Id") or "" for found in channels)
        fit = "C" in axes and shape[axes.index("C")] == len(names)
        return Calibration(sizes, units, names if fit else ())


def _number(text: str | None) -> float:
    """A positive number, or zero."""
    try:
        value = float(text or 0)
    except ValueError:
        return 0.0
    return value if math.isfinite(value) and value > 0 else 0.0
