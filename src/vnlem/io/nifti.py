"""NIfTI: volumes and series of volumes of magnetic resonance; MGH, which only FreeSurfer writes, in."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vnlem.io.pages import PagesOnDisk
from vnlem.io.picture import Calibration, Metadata, Picture
from vnlem.io.raw_planes import RawPlanes
from vnlem.io.scaled import Scaling
from vnlem.io.series import Series
from vnlem.io.units import size_in

_MOST_AXES = 4
_LARGEST_OF_VERSION_1 = 32767
_UNITS = {
    "mm": "millimeter",
    "micron": "micrometer",
    "meter": "meter",
    "sec": "second",
    "msec": "millisecond",
    "usec": "microsecond",
}
_ORIENTATION = 2  # "aligned": the position in the scanner is unknown


@dataclass(frozen=True)
class NiftiHeader:
    """The original header with its extensions, and how its numbers become values."""

    header: Any
    scaling: Scaling


@contextmanager
def open_file(path: Path, place: Path) -> Iterator[list[Series]]:
    """The volume, or volumes, of a plain NIfTI or MGH file."""
    with open(path, "rb") as stream:
        start = stream.read(540)
    header, scaling, offset, ends = (
        _read_mgh(path) if start[:4] == b"\x00\x00\x00\x01" else _read(path, start)
    )
    shape = tuple(int(size) for size in header.get_data_shape())
    while len(shape) > _MOST_AXES and shape[-1] == 1:
        shape = shape[:-1]
    if not 2 <= len(shape) <= _MOST_AXES or min(shape) < 1:
        sizes = "x".join(map(str, shape)) or "no"
        raise ValueError(f"it has {sizes} voxels; images of two to four axes can be denoised")
    _check_kind(scaling.stored)
    needed, found = offset + math.prod(shape) * scaling.stored.itemsize, path.stat().st_size
    if found < needed or (ends and found > needed):
        sizes = "x".join(map(str, shape))
        raise ValueError(
            f"its length does not fit its header, which says {sizes} voxels of {scaling.stored.name}, "
            f"{needed} bytes in all, and it has {found}; copy it again from its source"
        )
    axes = _axes(header, shape, place)
    metadata = Metadata(
        "nifti", axes=axes, native=NiftiHeader(header, scaling), calibration=_calibration(header, axes)
    )
    # The first axis of the file varies fastest: in the order of memory it is the last.
    order = (math.prod(shape[2:]), shape[1], shape[0])
    with RawPlanes(path, scaling.stored, offset, order) as planes:
        read = lambda *part: scaling.to_values(planes.read(*part))  # noqa: E731
        yield [Series(axes, shape[::-1], scaling.dtype, read, metadata=metadata)]


def _read(path: Path, start: bytes) -> tuple[Any, Scaling, int, bool]:
    from nibabel.nifti1 import Nifti1Header
    from nibabel.nifti2 import Nifti2Header

    version_2 = start[4:7] in (b"n+2", b"ni2")
    if (start[4:7] if version_2 else start[344:347]) in (b"ni1", b"ni2"):
        raise ValueError("it is the header of a pair of files (.hdr and .img); save both as one .nii file")
    with open(path, "rb") as stream:
        header = (Nifti2Header if version_2 else Nifti1Header).from_fileobj(stream)
    slope, intercept = header.get_slope_inter()
    plain = slope is None or header.get_data_dtype().kind not in "iuf"
    scaling = Scaling(
        header.get_data_dtype(), *((1.0, 0.0) if plain else (float(slope), float(intercept or 0)))
    )
    return header, scaling, int(header.get_data_offset()), True


def _read_mgh(path: Path) -> tuple[Any, Scaling, int, bool]:
    """The NIfTI equivalent of an MGH file, which may have more data after its voxels."""
    import nibabel
    from nibabel.freesurfer.mghformat import MGHHeader

    with open(path, "rb") as stream:
        mgh = MGHHeader.from_fileobj(stream)
    blank = np.broadcast_to(np.zeros((), mgh.get_data_dtype().newbyteorder("=")), mgh.get_data_shape())
    header = nibabel.Nifti1Image(blank, mgh.get_affine()).header
    header.set_xyzt_units("mm", "msec")
    return header, Scaling(mgh.get_data_dtype()), int(mgh.get_data_offset()), False


def _check_kind(dtype: np.dtype[Any]) -> None:
    if dtype.kind == "V":
        raise ValueError("its voxels are colours; save each colour as a volume of numbers")
    if dtype.kind == "c":
        raise ValueError("its voxels are complex numbers; save real and imaginary part as two volumes")
    if dtype.kind not in "iuf" or dtype.itemsize > 8:
        raise ValueError(f"its voxels are {dtype}; save them as integers or floats of at most 64 bits")


def _axes(header: Any, shape: tuple[int, ...], place: Path) -> str:
    """The fourth axis is time if the header has a unit of time and no diffusion table is next to the file."""
    stem = place.name.lower().removesuffix(".gz").removesuffix(".nii")
    directions = any((place.parent / (place.name[: len(stem)] + end)).exists() for end in (".bval", ".bvals"))
    time = header.get_xyzt_units()[1] in ("sec", "msec", "usec") and not directions
    return ("TZYX" if time else "NZYX")[-len(shape) :]


def _calibration(header: Any, axes: str) -> Calibration:
    names = header.get_xyzt_units()
    steps = [float(step) for step in header.get_zooms()]
    sizes = {
        axis: step
        for axis, step in zip("XYZT", steps, strict=False)
        if axis in axes and step > 0 and math.isfinite(step)
    }
    units = {axis: _UNITS.get(names[axis == "T"], "") for axis in sizes}
    return Calibration(sizes, {axis: unit for axis, unit in units.items() if unit})


def write(path: Path, picture: Picture, *, pages: PagesOnDisk | None = None) -> None:
    """Write a plain NIfTI file; `pages` hold the pixels if the picture has only their shape."""
    shape, dtype = picture.pixels.shape, picture.pixels.dtype
    native = picture.metadata.native if picture.metadata.format == "nifti" else None
    if native is None:
        header, scaling = _new_header(picture), Scaling(dtype.newbyteorder("<"))
    else:
        header, scaling = native.header.copy(), native.scaling
        if math.prod(header.get_data_shape()) != math.prod(shape):
            header.set_data_shape(shape[::-1])
        if dtype != scaling.dtype:
            scaling = Scaling(dtype.newbyteorder(header.endianness))
            header.set_data_dtype(dtype)
            header.set_slope_inter(1, 0)
    stored = scaling.stored.newbyteorder(header.endianness)
    with open(path, "wb") as stream:
        header.write_to(stream)
        offset = int(header.get_data_offset())
        stream.write(bytes(max(0, offset - stream.tell())))
        stream.seek(offset)
        for page in picture.pages() if pages is None else pages:
            stream.write(scaling.to_stored(page).astype(stored).tobytes())


def _new_header(picture: Picture) -> Any:
    """The header of a picture from another format: its corner is the origin."""
    from nibabel.nifti1 import Nifti1Header
    from nibabel.nifti2 import Nifti2Header

    shape, calibration = picture.pixels.shape[::-1], picture.metadata.calibration
    version = Nifti2Header if max(shape) > _LARGEST_OF_VERSION_1 else Nifti1Header
    header = version(endianness="<")
    header.set_data_dtype(picture.pixels.dtype)
    header.set_data_shape(shape)
    steps = [size_in(calibration, axis, "millimeter") for axis in "XYZ"]
    time = size_in(calibration, "T", "second")
    zooms = [1.0 if step is None else step for step in (*steps, time)]
    header.set_zooms(zooms[: len(shape)])
    has_time = picture.metadata.axes[:1] == "T" and len(shape) == _MOST_AXES
    header.set_xyzt_units("unknown" if steps[0] is None else "mm", "sec" if has_time else "unknown")
    header.set_sform(np.diag([*zooms[:3], 1.0]), _ORIENTATION)
    header.set_slope_inter(1, 0)
    header["magic"] = header.single_magic
    header.set_data_offset(header.single_vox_offset)
    return header
