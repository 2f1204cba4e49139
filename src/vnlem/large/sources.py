"""Inputs: anything with shape, dtype and slicing, and how another process opens it again."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.io.files import one_sentence
from vnlem.io.formats import find_format, sniff
from vnlem.io.series import split_series
from vnlem.large.boxes import Box, cut_at, describe, slices
from vnlem.large.ngff import Image
from vnlem.large.nodes import Node
from vnlem.noise.sensor import HALO, Sensor
from vnlem.pipeline.lazy import load

PLANE = ("y", "x")
NAMES = ("t", "c", "z", "y", "x")  # the order of axes in NGFF
TIFF_SUFFIXES = (".tif", ".tiff")

# Suffix of a file -> what opens it: (path, axes) -> Source. A new kind of source is a module and a line here.
FILES = {
    ".npy": "vnlem.large.npy_source:open_file",
    ".h5": "vnlem.large.hdf5_source:open_file",
    ".hdf5": "vnlem.large.hdf5_source:open_file",
    **dict.fromkeys(TIFF_SUFFIXES, "vnlem.large.tiff_source:open_tiff"),
}
# For other files a path may end in :NAME, the array of the file.
ONE_ARRAY = (".npy", *TIFF_SUFFIXES)
FOLDER = "vnlem.large.zarr_source:open_folder"
SERIES = "vnlem.large.format_source:open_file"
# Library of an array -> what finds the file it lies in: (array, axes) -> Source, or None if there is none.
ARRAYS = {
    "numpy": "vnlem.large.npy_source:open_array",
    "h5py": "vnlem.large.hdf5_source:open_array",
    "zarr": "vnlem.large.zarr_source:open_array",
}


@dataclass
class Source:
    """An array with named axes, read box by box. Other processes receive only how to open it."""

    name: str  # for messages
    open: Callable[[], Any]
    axes: tuple[str, ...]  # in the order of the array after `order`
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    order: tuple[int, ...]  # the axes of the opened array, in the order of `axes`
    image: Image | Node | None = None  # if it comes from a zarr store
    colour: bool = False  # whether the channels are colours, to be denoised together
    guessed: bool = False  # whether the meaning of its pages is unknown; then each is denoised alone
    details: dict[str, Any] = field(default_factory=dict)  # sizes of pixels, units, names of channels
    wanted: np.dtype[Any] | None = None  # dtype of the result, if it is not that of the source
    sensor: Sensor | None = None  # whose differences are evened out when pixels are read
    _array: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_array": None}

    def read(self, box: Box) -> NDArray[Any]:
        """The pixels of a box, evened out if a sensor is known."""
        if self.sensor is None:
            return self.raw(box)
        *pages, rows, columns = box
        around = [
            (max(start - HALO, 0), min(stop + HALO, size))
            for (start, stop), size in zip((rows, columns), self.shape[-2:], strict=True)
        ]
        pixels = self.raw((*pages, *around)).astype(np.float64)
        own = self.sensor.part(*slices(tuple(around)))
        even = own.correct(pixels.reshape(-1, *pixels.shape[-2:])).reshape(pixels.shape)
        down, across = (slice(a - b, c - b) for (a, c), (b, _) in zip((rows, columns), around, strict=True))
        return np.asarray(even[..., down, across])

    def raw(self, box: Box) -> NDArray[Any]:
        """The pixels of a box as stored, or one sentence that says where they cannot be read."""
        if self._array is None:
            self._array = self.open()
        try:
            return self._pixels(box)
        except MemoryError:
            raise
        except Exception as error:  # codecs raise any kind of error on damaged data
            files = self._files(box)
            damaged = [(file, found) for file in files if (found := self._unreadable(file)) is not None]
            where, found = damaged[0] if damaged else (box, error)
            reason = " ".join(str(found).split()).rstrip(".") or type(found).__name__
            which = f": {len(damaged)} of {len(files)} files are damaged, the first" if damaged[1:] else ""
            raise ValueError(
                f"cannot read {self.name}{which} at {describe(where, self.axes)} ({reason}); replace it"
            ) from error

    def _pixels(self, box: Box) -> NDArray[Any]:
        inner: list[Any] = [slice(None)] * len(self.order)
        for axis, part in zip(self.order, slices(box), strict=True):
            inner[axis] = part
        return np.asarray(self._array[tuple(inner)]).transpose(self.order)

    def _unreadable(self, box: Box) -> Exception | None:
        """The error when a box is read."""
        try:
            self._pixels(box)
        except Exception as error:
            return error
        return None

    def _files(self, box: Box) -> list[Box]:
        """The parts of a box that lie in one file or chunk each; the box itself if these are unknown."""
        held = self._array
        sides = getattr(held, "shards", None) or getattr(held, "chunks", None)
        if not isinstance(sides, tuple) or not all(isinstance(side, int) for side in sides):
            return [box]
        return list(cut_at(box, [sides[axis] for axis in self.order]))

    def close(self) -> None:
        """Close the files opened for reading; they open again when needed."""
        if not isinstance(self.open, Given) and self._array is not None:
            held, self._array = self._array, None
            # A zarr array is closed by its store, an HDF5 data set by its file.
            owner = getattr(held, "store", getattr(held, "file", held))
            if hasattr(owner, "close"):
                owner.close()

    @property
    def result_dtype(self) -> np.dtype[Any]:
        """The dtype of what is written."""
        return self.dtype if self.wanted is None else self.wanted

    @property
    def rounded(self) -> bool:
        """Whether the result is rounded to integers although no dtype was requested."""
        return self.wanted is None and self.dtype.kind in "iu"

    @property
    def travels(self) -> bool:
        """Whether other processes can read it without the pixels being sent to them."""
        return not (isinstance(self.open, Given) and isinstance(self.open.array, np.ndarray))

    def axis(self, name: str) -> int | None:
        """Where an axis is, None if there is none of that name."""
        return self.axes.index(name) if name in self.axes else None


@dataclass(frozen=True)
class Given:
    """An array that the caller holds; it is sent as a whole."""

    array: Any

    def __call__(self) -> Any:
        return self.array


def open_source(source: Any, axes: str | None = None) -> Source:
    """Anything that can be denoised part by part, as a Source.

    source: the path of a zarr store or of a TIFF, HDF5 (``file.h5:dataset``) or NPY file; or anything with
        shape, dtype and slicing: a zarr, h5py, dask or NumPy array.
    axes: names of the axes, e.g. "tzyx"; if the source does not name them, the last two are y and x.

    >>> source = open_source(np.zeros((3, 40, 50), np.uint16))
    >>> source.axes, source.read(((0, 1), (0, 2), (10, 13))).shape
    (('z', 'y', 'x'), (1, 2, 3))
    """
    is_path = isinstance(source, str | os.PathLike)
    found = _open_path(Path(source), axes) if is_path else _open_array(source, axes)
    if found.axes[-2:] != PLANE:
        raise ValueError(f"{found.name} has the axes {', '.join(found.axes)}; the last two must be y and x")
    if found.dtype.kind not in "iuf":
        raise ValueError(f"{found.name} holds {found.dtype}; integers or floats can be denoised")
    if 0 in found.shape:
        raise ValueError(f"{found.name} is empty (shape {found.shape}); pass at least one pixel")
    return found


def _open_path(path: Path, axes: str | None) -> Source:
    place, key = split_series(path)
    file = place if key and place.suffix.lower() not in ONE_ARRAY else path
    if not file.exists():
        raise FileNotFoundError(f"there is no file or folder {path}")
    opener = FOLDER if file.is_dir() else FILES.get(file.suffix.lower()) or _plane_by_plane(file)
    if opener is None:
        raise ValueError(
            f"{path} is neither a zarr store nor a file with one of the suffixes {', '.join(FILES)}"
        )
    with one_sentence(path):
        found: Source = load(opener)(path, axes)
    return found


def _plane_by_plane(file: Path) -> str | None:
    """What opens a file whose format is known by its content and read plane by plane."""
    try:
        return SERIES if find_format(sniff(file)).open else None
    except ValueError:
        return None


def _open_array(array: Any, axes: str | None) -> Source:
    for needed in ("shape", "dtype", "__getitem__"):
        if not hasattr(array, needed):
            raise TypeError(
                f"the source must be a path or have shape, dtype and slicing, got {type(array).__name__}"
            )
    library = type(array).__module__.partition(".")[0]
    found: Source | None = load(ARRAYS[library])(array, axes) if library in ARRAYS else None
    return found or plain_source(name_of(array), Given(array), axes)


def name_of(array: Any) -> str:
    """The name of an array in messages."""
    return f"the {type(array).__module__.partition('.')[0]} array"


def plain_source(name: str, opener: Callable[[], Any], axes: str | None) -> Source:
    """An array without metadata; without `axes` the last two are y and x, and z before them."""
    array = opener()
    shape = tuple(int(size) for size in array.shape)
    names = _axes(axes, shape, name)
    dtype = np.dtype(array.dtype)
    return ordered_source(name, opener, names, shape, dtype, guessed=axes is None, _array=array)


def ordered_source(
    name: str,
    opener: Callable[[], Any],
    names: tuple[str, ...],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    **about: Any,
) -> Source:
    """A source from the axes of the opened array, which it has in the order of NGFF."""
    order = tuple(sorted(range(len(names)), key=lambda axis: NAMES.index(names[axis])))
    axes = tuple(names[axis] for axis in order)
    return Source(name, opener, axes, tuple(shape[axis] for axis in order), dtype, order, **about)


def check_names(names: tuple[str, ...], given: str, shape: tuple[int, ...], what: object) -> tuple[str, ...]:
    """Our names for the axes of a file, or an error that says which letters the file gives them."""
    if len(names) != len(shape) or len(set(names)) != len(names) or not set(names) <= set(NAMES):
        raise ValueError(f"{what} has the axes {given} (shape {shape}); say what they are, e.g. axes='tzyx'")
    return names


def _axes(axes: str | None, shape: tuple[int, ...], name: str) -> tuple[str, ...]:
    if axes is None:
        if not 2 <= len(shape) <= 3:
            raise ValueError(
                f"{name} has {len(shape)} dimensions (shape {shape}); say what they are, e.g. axes='tczyx'"
            )
        return NAMES[-len(shape) :]
    names = tuple(axes.lower())
    if (
        len(names) != len(shape)
        or len(set(names)) != len(names)
        or not set(PLANE) <= set(names) <= set(NAMES)
    ):
        raise ValueError(
            f"axes must name the {len(shape)} axes of {name} once each, of t, c, z, y and x, got {axes!r}"
        )
    return names
