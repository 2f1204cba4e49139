"""ND2, the format of Nikon microscopes. Each position of the stage is a separate image."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.io.picture import Calibration, Metadata
from vnlem.io.series import SAMPLES, Series, unique_letters

_POSITION, _CHANNEL = "P", "C"
_KNOWN = {"T": "T", "C": "C", "Z": "Z"}


@contextmanager
def open_file(path: Path, place: Path) -> Iterator[list[Series]]:
    """All positions of an ND2 file."""
    from nd2 import ND2File

    with ND2File(path) as opened:
        sizes = {name: int(size) for name, size in opened.sizes.items()}
        if min(sizes.values()) < 1 or opened.dtype.kind not in "iuf":
            raise ValueError(f"it is damaged (its axes are {sizes})")
        frames = _Frames(opened, sizes, path.stat().st_size)
        try:
            calibration = _calibration(opened, sizes)
        except Exception:  # a description that the reader cannot parse; the pixels are readable anyway
            calibration = Calibration()
        yield [_series(frames, number, calibration) for number in range(sizes.get(_POSITION, 1))]


class _Frames:
    """Frames by their place along the loops of the experiment; the last one read is kept for its channels."""

    def __init__(self, opened: Any, sizes: dict[str, int], file_size: int) -> None:
        self.dtype = np.dtype(opened.dtype).newbyteorder("=")
        self.loops = {name: size for name, size in sizes.items() if name not in (_CHANNEL, "Y", "X", SAMPLES)}
        self.colour = SAMPLES in sizes
        self.axes = [name for name in sizes if name not in (_POSITION, SAMPLES, "Y", "X")]
        self.sizes, self._size = sizes, file_size
        self._opened, self._number, self._frame = opened, -1, np.empty(0)
        expected, found = math.prod(self.loops.values()), int(opened.attributes.sequenceCount or 0)
        if expected > found:
            raise ValueError(f"it is damaged: its axes name {expected} frames, and it has {found}")

    def plane(self, index: dict[str, int]) -> NDArray[Any]:
        """The plane at a place along all axes."""
        at = [index.get(name, 0) for name in self.loops]
        number = int(np.ravel_multi_index(at, tuple(self.loops.values()))) if at else 0
        if number != self._number:
            height, width = self.sizes["Y"], self.sizes["X"]
            inner = (height, width, self.sizes[SAMPLES]) if self.colour else (height, width)
            self._check_frame(number)
            frame = np.array(self._opened.read_frame(number), order="C")
            self._frame = frame.reshape(self.sizes.get(_CHANNEL, 1), *inner)
            self._number = number
        plane: NDArray[Any] = self._frame[index.get(_CHANNEL, 0)]
        return plane

    def _check_frame(self, number: int) -> None:
        """The reader returns black frames for missing ones."""
        places = getattr(self._opened._rdr, "_frame_offsets", None)
        if isinstance(places, dict):
            stored = self._opened.attributes
            compressed = stored.compressionType is not None
            length = 1 if compressed else stored.heightPx * (stored.widthBytes or 0)
            if number not in places or places[number] + length > self._size:
                raise ValueError(f"it is truncated: frame {number + 1} is missing")


def _series(frames: _Frames, position: int, calibration: Calibration) -> Series:
    counted = tuple(frames.sizes[name] for name in frames.axes)
    inner = (frames.sizes["Y"], frames.sizes["X"]) + ((frames.sizes[SAMPLES],) if frames.colour else ())
    axes = unique_letters(_KNOWN.get(name, "") for name in frames.axes) + "YX" + SAMPLES * frames.colour

    def read(plane: int, rows: slice, columns: slice) -> NDArray[Any]:
        place = dict(zip(frames.axes, map(int, np.unravel_index(plane, counted)), strict=True))
        return frames.plane(place | {_POSITION: position})[rows, columns]

    return Series(
        axes,
        counted + inner,
        frames.dtype,
        read,
        key=str(position + 1),
        name=f"position {position + 1}" if frames.sizes.get(_POSITION, 1) > 1 else "",
        metadata=Metadata("nd2", axes=axes, calibration=calibration),
    )


def _calibration(opened: Any, sizes: dict[str, int]) -> Calibration:
    """Sizes of voxels, the period of a movie and names of channels, if the file has them."""
    voxel = opened.voxel_size()
    steps = {"X": float(voxel.x), "Y": float(voxel.y), "Z": float(voxel.z)}
    steps = {axis: step for axis, step in steps.items() if axis in sizes and step > 0}
    units = dict.fromkeys(steps, "micrometer")
    for loop in opened.experiment:
        period = getattr(loop.parameters, "periodMs", None)
        if loop.type == "TimeLoop" and period:
            steps["T"], units["T"] = float(period) / 1000, "second"
    channels = getattr(opened.metadata, "channels", None) or []
    names = tuple(str(channel.channel.name) for channel in channels)
    return Calibration(steps, units, names if len(names) == sizes.get(_CHANNEL, 1) else ())
