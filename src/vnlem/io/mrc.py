"""MRC: micrographs, particles, movies and volumes of electron microscopy."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.io.pages import PagesOnDisk
from vnlem.io.picture import Calibration, Metadata, Picture
from vnlem.io.raw_planes import RawPlanes
from vnlem.io.series import Series
from vnlem.io.units import size_in

_MODES = {"int8": 0, "int16": 1, "float32": 2, "uint16": 6, "float16": 12}
_IMAGES, _VOLUME, _VOLUMES = 0, 1, 401  # space groups of stacks of images, of one volume, of several
_VERSION = 20141  # MRC2014 with 16-bit floats
_LITTLE_ENDIAN = (0x44, 0x44, 0, 0)
_LABEL = 80
# IMOD writes its name here, and whether the bytes of mode 0 are signed.
_IMOD_STAMP, _IMOD_PLACE, _IMOD_SIGNED = 1146047817, 40, 1
_SYMMETRY_RECORD = 80


@dataclass(frozen=True)
class MrcHeader:
    """The header of a file, and what lies between it and the pixels."""

    header: Any  # NumPy record
    extended: bytes


@contextmanager
def open_file(path: Path, place: Path) -> Iterator[list[Series]]:
    """The stack or volume of a plain MRC file."""
    import mrcfile
    from mrcfile.utils import data_dtype_from_header, data_shape_from_header

    with mrcfile.open(path, permissive=True, header_only=True) as opened:
        header, extended = opened.header.copy(), opened.extended_header
        if min(header.nx, header.ny, header.nz) < 1 or extended is None:
            raise ValueError(_sizes_do_not_fit(header))
        dtype, extended = data_dtype_from_header(header), extended.tobytes()
    if dtype.kind == "c":
        raise ValueError("it holds complex numbers (a Fourier transform); denoise the image it was made from")
    shape = _shape(data_shape_from_header(header), header, place)
    start = header.nbytes + len(extended)
    expected, found = start + math.prod(shape) * dtype.itemsize, path.stat().st_size
    if expected != found:
        raise ValueError(
            f"{_sizes_do_not_fit(header)}, {expected} bytes in all, and it has {found}; copy it again from "
            "its source"
        )
    unsigned = _has_unsigned_bytes(header)
    native = np.dtype(np.uint16) if unsigned else dtype.newbyteorder("=")
    axes = _axes(shape, header, place)
    metadata = Metadata(
        "mrc", axes=axes, native=MrcHeader(header, extended), calibration=_calibration(header, axes)
    )
    stored = np.dtype(np.uint8) if unsigned else dtype
    with RawPlanes(path, stored, start, _sections(shape)) as planes:
        yield [Series(axes, shape, native, planes.read, metadata=metadata)]


def _sizes_do_not_fit(header: Any) -> str:
    sizes = f"{int(header.nx)}x{int(header.ny)}x{int(header.nz)}"
    return f"its length does not fit its header, which says {sizes} pixels of mode {int(header.mode)}"


def _shape(shape: tuple[int, ...], header: Any, place: Path) -> tuple[int, ...]:
    """As the header says; a file of one section is a single image, one of particles a plain stack."""
    if _is_particles(place):
        return int(header.nz), int(header.ny), int(header.nx)
    return shape[-2:] if math.prod(shape[:-2]) == 1 else shape


def _is_particles(place: Path) -> bool:
    """Programs write stacks of particles with the header of a volume: only the name tells them apart."""
    return ".mrcs" in place.name.lower()


def _axes(shape: tuple[int, ...], header: Any, place: Path) -> str:
    if len(shape) == 3:
        return "NYX" if _is_particles(place) or int(header.ispg) == _IMAGES else "ZYX"
    return "NZYX"[-len(shape) :]


def _has_unsigned_bytes(header: Any) -> bool:
    if int(header.mode) != 0:
        return False
    order = header.dtype["nx"].byteorder
    about = header.extra2.tobytes()[_IMOD_PLACE : _IMOD_PLACE + 8]
    stamp, flags = np.frombuffer(about, np.dtype(np.int32).newbyteorder(order))
    return bool(stamp == _IMOD_STAMP and not flags & _IMOD_SIGNED)


def _calibration(header: Any, axes: str) -> Calibration:
    """Lengths along columns, rows and sections; the header has them along the axes of the crystal."""
    edges = [float(header.cella[axis]) for axis in "xyz"]
    counts = [int(header.mx), int(header.my), int(header.mz)]
    sizes = {}
    for letter, axis in zip("XYZ", (header.mapc, header.mapr, header.maps), strict=True):
        if letter in axes and 1 <= int(axis) <= 3 and counts[int(axis) - 1] > 0 and edges[int(axis) - 1] > 0:
            sizes[letter] = edges[int(axis) - 1] / counts[int(axis) - 1]
    return Calibration(sizes, dict.fromkeys(sizes, "angstrom"))


def write(path: Path, picture: Picture, *, pages: PagesOnDisk | None = None) -> None:
    """Write a plain MRC file; `pages` hold the pixels if the picture has only their shape."""
    shape, dtype = picture.pixels.shape, picture.pixels.dtype
    native = picture.metadata.native if picture.metadata.format == "mrc" else None
    header = _new_header(picture) if native is None else native.header.copy()
    extended = b"" if native is None else native.extended
    if _shape_of(header) != _sections(shape):
        header.nz, header.ny, header.nx = _sections(shape)
        header.mz, header.my, header.mx = _grid(shape, picture.metadata.axes)
    header.mode = _MODES[dtype.name]
    _mark(header, extended, picture.metadata.history)
    stored = dtype.newbyteorder(header.dtype["nx"].byteorder)
    statistics = _Statistics()
    with open(path, "wb") as stream:
        stream.write(header.tobytes() + extended)
        for page in picture.pages() if pages is None else pages:
            statistics.add(page)
            stream.write(np.ascontiguousarray(page, stored).tobytes())
        header.dmin, header.dmax, header.dmean, header.rms = statistics.all()
        stream.seek(0)
        stream.write(header.tobytes())


def _shape_of(header: Any) -> tuple[int, int, int]:
    return int(header.nz), int(header.ny), int(header.nx)


def _sections(shape: tuple[int, ...]) -> tuple[int, int, int]:
    return math.prod(shape[:-2]), shape[-2], shape[-1]


def _grid(shape: tuple[int, ...], axes: str) -> tuple[int, ...]:
    """Points of the unit cell: an image has one section, a stack of volumes those of one volume."""
    is_stack = len(shape) == 2 or (len(shape) == 3 and axes[:1] != "Z")
    return 1 if is_stack else shape[-3], *shape[-2:]


def _new_header(picture: Picture) -> Any:
    """The header of a picture from another format."""
    from mrcfile.dtypes import HEADER_DTYPE

    shape, axes = picture.pixels.shape, picture.metadata.axes
    header = np.zeros((), HEADER_DTYPE.newbyteorder("<")).view(np.recarray)
    header.map, header.machst = b"MAP ", np.array(_LITTLE_ENDIAN, np.uint8)
    header.mapc, header.mapr, header.maps = 1, 2, 3
    header.nz, header.ny, header.nx = _sections(shape)
    header.mz, header.my, header.mx = _grid(shape, axes)
    header.ispg = _VOLUMES if len(shape) > 3 else _VOLUME if header.mz > 1 else _IMAGES
    for letter, name, count in (("X", "x", header.mx), ("Y", "y", header.my), ("Z", "z", header.mz)):
        header.cellb["alpha" if name == "x" else "beta" if name == "y" else "gamma"] = 90
        size = size_in(picture.metadata.calibration, letter, "angstrom")
        in_plane = size_in(picture.metadata.calibration, "X", "angstrom")
        if size is None and letter == "Z" and header.mz == 1:
            size = in_plane  # a section is as thick as its pixels are wide
        header.cella[name] = 0 if size is None else size * int(count)
    return header


def _mark(header: Any, extended: bytes, history: str) -> None:
    """What makes a file MRC2014: its version, the kind of an extended header, labels without gaps."""
    if int(header.nversion) < _VERSION - 1 or int(header.mode) == _MODES["float16"]:
        header.nversion = _VERSION
    header.map = b"MAP "
    if extended and not bytes(header.exttyp.item()).strip(b"\x00 ") and len(extended) % _SYMMETRY_RECORD == 0:
        header.exttyp = b"CCP4"  # the records of symmetry that older files have
    given = header.label.tolist()
    used = [label for label in given if label.strip(b"\x00 ")]
    empty = [label for label in given if not label.strip(b"\x00 ")]
    if history and empty:
        used.append(history.encode("ascii", "replace")[:_LABEL])
        empty.pop()
    header.nlabl, header.label = len(used), used + empty


class _Statistics:
    """Smallest, largest, mean value and deviation of pages that arrive one by one."""

    def __init__(self) -> None:
        self._low, self._high = math.inf, -math.inf
        self._count, self._mean, self._squares = 0, 0.0, 0.0

    def add(self, page: NDArray[Any]) -> None:
        """Add a page."""
        values = page.astype(np.float64)
        count, mean = values.size, float(values.mean())
        change, total = mean - self._mean, self._count + values.size
        self._squares += float(((values - mean) ** 2).sum()) + change**2 * self._count * count / total
        self._mean += change * count / total
        self._count = total
        self._low, self._high = min(self._low, float(values.min())), max(self._high, float(values.max()))

    def all(self) -> tuple[float, float, float, float]:
        """All four."""
        return self._low, self._high, self._mean, math.sqrt(self._squares / max(self._count, 1))
