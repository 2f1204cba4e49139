"""FITS: images of telescopes. One extension is denoised, all others are copied byte for byte."""

import math
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.io.compression import decompressed
from vnlem.io.pages import PagesOnDisk
from vnlem.io.picture import Metadata, Picture
from vnlem.io.raw_planes import RawPlanes
from vnlem.io.scaled import Scaling
from vnlem.io.series import Series, unique_letters

_BLOCK, _CARD = 2880, 80
_COPIED = 2**22
_BITPIX = {8: "u1", 16: ">i2", 32: ">i4", 64: ">i8", -32: ">f4", -64: ">f8"}
_OTHER_SIGN = {"int8": "u1", "uint16": ">i2", "uint32": ">i4", "uint64": ">i8"}
_ABOUT_THE_PIXELS = ("CHECKSUM", "DATASUM", "DATAMIN", "DATAMAX")  # not true of new pixels
_TIME = ("TIME", "UTC", "TAI", "TDB")
_SPECTRUM = ("FREQ", "WAVE", "AWAV", "ENER", "VELO", "VRAD", "VOPT", "STOKES")
_SKY = ("RA", "DEC", "GLON", "GLAT", "ELON", "ELAT")
_SCIENCE = "SCI"


@dataclass(frozen=True)
class FitsHeader:
    """The header of the image, where it is in its file, and how its numbers become values."""

    header: Any
    scaling: Scaling
    place: Path
    span: tuple[int, int]  # bytes of the plain file that belong to this extension
    image_shape: tuple[int, ...]
    compressed: bool  # by fpack; it is written as a plain extension


@contextmanager
def open_file(path: Path, place: Path) -> Iterator[list[Series]]:
    """All images of a plain FITS file: the primary one, image extensions, and those that fpack compressed."""
    from astropy.io import fits

    with (
        ExitStack() as held,
        open(path, "rb") as stream,
        fits.open(path, memmap=False, do_not_scale_image_data=True, ignore_missing_simple=False) as opened,
    ):
        size = path.stat().st_size
        found = []
        for number, hdu in enumerate(opened):
            info = hdu.fileinfo()
            if info["datLoc"] + info["datSpan"] > size:
                raise ValueError(f"it is truncated: extension {number} ends behind the end of the file")
            stream.seek(info["hdrLoc"])
            if not _is_one_header(stream.read(info["datLoc"] - info["hdrLoc"])):
                raise ValueError(
                    f"it is damaged: the header of extension {number} does not end where it should"
                )
            if isinstance(hdu, fits.PrimaryHDU | fits.ImageHDU | fits.CompImageHDU) and len(hdu.shape) > 1:
                found.append(_series(hdu, number, path, place, held))
        if not found:
            raise ValueError("it holds no image, only tables or spectra; name a FITS file with an image")
        yield _with_preferred(found)


def _is_one_header(header: bytes) -> bool:
    """Whether this is one header: astropy reads on into the next one if the END card is damaged."""
    cards = [header[at : at + _CARD].rstrip(b" \x00") for at in range(0, len(header), _CARD)]
    if b"END" not in cards or any(cards[cards.index(b"END") + 1 :]):
        return False
    return sum(card.startswith(b"NAXIS   =") for card in cards) == 1


def _with_preferred(found: list[Series]) -> list[Series]:
    """The primary image is the one to denoise, else the only extension that is called SCI."""
    wanted = [series for series in found if series.key == "0"] or [
        series for series in found if series.name.upper() == _SCIENCE
    ]
    return [replace(series, preferred=wanted == [series]) for series in found]


def _series(hdu: Any, number: int, path: Path, place: Path, held: ExitStack) -> Series:
    from astropy.io import fits

    header = hdu.header.copy()
    shape = tuple(int(size) for size in hdu.shape)
    scaling = _scaling(header)
    info = hdu.fileinfo()
    span = (int(info["hdrLoc"]), int(info["datLoc"] + info["datSpan"]))
    axes = _axes(header, len(shape))
    compressed = isinstance(hdu, fits.CompImageHDU)
    native = FitsHeader(header, scaling, place.resolve(), span, shape, compressed)
    planes = held.enter_context(
        RawPlanes(path, scaling.stored, int(info["datLoc"]), (math.prod(shape[:-2]), shape[-2], shape[-1]))
    )

    def read(plane: int, rows: slice, columns: slice) -> NDArray[Any]:
        if not compressed:
            return scaling.to_values(planes.read(plane, rows, columns))
        place_of = np.unravel_index(plane, shape[:-2])
        stored = np.asarray(hdu.section[(*(slice(int(k), int(k) + 1) for k in place_of), rows, columns)])
        return scaling.to_values(stored.reshape(stored.shape[-2:]))

    return Series(
        axes,
        shape,
        scaling.dtype,
        read,
        key=str(number),
        name=str(hdu.name),
        metadata=Metadata("fits", axes=axes, native=native),
    )


def _scaling(header: Any) -> Scaling:
    stored = np.dtype(_BITPIX[int(header["BITPIX"])])
    slope, zero = float(header.get("BSCALE", 1)), float(header.get("BZERO", 0))
    if not (math.isfinite(slope) and math.isfinite(zero) and slope != 0):
        raise ValueError(f"its BSCALE is {slope:g} and its BZERO {zero:g}; repair its header")
    blank = header.get("BLANK")
    return Scaling(stored, slope, zero, int(blank) if blank is not None and stored.kind in "iu" else None)


def _axes(header: Any, count: int) -> str:
    """Letters for the axes: those of time and of the spectrum are named by the header."""
    kinds = [str(header.get(f"CTYPE{axis}", "")).upper() for axis in range(count, 2, -1)]
    return (
        unique_letters(
            "T" if kind.startswith(_TIME) else "C" if kind.startswith(_SPECTRUM) else "" for kind in kinds
        )
        + "YX"
    )


def write(path: Path, picture: Picture, *, pages: PagesOnDisk | None = None) -> None:
    """Write a plain FITS file; `pages` hold the pixels if the picture has only their shape."""
    shape, dtype = picture.pixels.shape, picture.pixels.dtype
    native = picture.metadata.native if picture.metadata.format == "fits" else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about cards that were not standard in the source
        header, scaling = _header(native, shape, dtype, picture.metadata.history)
        text = header.tostring()
    with open(path, "wb") as stream:
        # A corner, written as a trial, has no other extensions.
        if native is None or native.image_shape != shape:
            _write_image(stream, text, scaling, picture, pages)
            return
        with decompressed(native.place) as plain, open(plain, "rb") as source:
            _copy(source, stream, 0, native.span[0])
            _write_image(stream, text, scaling, picture, pages)
            source.seek(0, 2)
            _copy(source, stream, native.span[1], source.tell())


def _header(
    native: FitsHeader | None, shape: tuple[int, ...], dtype: np.dtype[Any], history: str
) -> tuple[Any, Scaling]:
    if native is not None and native.scaling.dtype == dtype:
        scaling = native.scaling
    elif dtype.name in _OTHER_SIGN:
        stored = np.dtype(_OTHER_SIGN[dtype.name])
        half = 2.0 ** (8 * stored.itemsize - 1)
        scaling = Scaling(stored, 1.0, half if stored.kind == "i" else -half)
    else:
        scaling = Scaling(dtype.newbyteorder(">"))
    header = (
        _new_header(native, shape, scaling) if native is None or native.compressed else native.header.copy()
    )
    for number, size in enumerate(reversed(shape), start=1):
        header[f"NAXIS{number}"] = size
    for name in _ABOUT_THE_PIXELS:
        header.remove(name, ignore_missing=True)
    if native is None or native.scaling is not scaling:
        _set_scaling(header, scaling)
    if history:
        header.add_history(history)
    return header, scaling


def _new_header(native: FitsHeader | None, shape: tuple[int, ...], scaling: Scaling) -> Any:
    """The header of one pixel: the cards that each kind of extension needs, in their order."""
    from astropy.io import fits

    pixel = np.zeros((1,) * len(shape), scaling.stored)
    if native is None:
        return fits.PrimaryHDU(pixel).header
    header = fits.ImageHDU(pixel, native.header).header
    _set_scaling(header, scaling)
    return header


def _set_scaling(header: Any, scaling: Scaling) -> None:
    header["BITPIX"] = next(bits for bits, stored in _BITPIX.items() if np.dtype(stored) == scaling.stored)
    for name in ("BSCALE", "BZERO", "BLANK"):
        header.remove(name, ignore_missing=True)
    if scaling.slope != 1 or scaling.intercept != 0:
        header["BSCALE"] = (scaling.slope, "value = BSCALE * stored + BZERO")
        header["BZERO"] = int(scaling.intercept) if scaling.intercept.is_integer() else scaling.intercept
    if scaling.blank is not None:
        header["BLANK"] = (scaling.blank, "stored number of missing values")


def _write_image(
    stream: Any, header: str, scaling: Scaling, picture: Picture, pages: PagesOnDisk | None
) -> None:
    stream.write(header.encode("ascii", "replace"))
    count = 0
    for page in picture.pages() if pages is None else pages:
        count += stream.write(scaling.to_stored(page).tobytes())
    stream.write(bytes(-count % _BLOCK))


def _copy(source: Any, target: Any, start: int, stop: int) -> None:
    source.seek(start)
    while start < stop:
        block = source.read(min(_COPIED, stop - start))
        if not block:
            raise ValueError("the file it came from has become shorter; read it again")
        target.write(block)
        start += len(block)


def sky_steps(header: Any) -> dict[str, float]:
    """Sides of a pixel in arcseconds, if the header places the image in the sky.

    >>> sky_steps({"CTYPE1": "RA---TAN", "CTYPE2": "DEC--TAN", "CDELT1": -1 / 3600, "CDELT2": 1 / 3600})
    {'X': 1.0, 'Y': 1.0}
    """
    found = {}
    for number, axis in ((1, "X"), (2, "Y")):
        if not str(header.get(f"CTYPE{number}", "")).upper().startswith(_SKY):
            return {}
        parts = [header.get(f"CD{row}_{number}", 0.0) for row in (1, 2)]
        step = math.hypot(*map(float, parts)) or abs(float(header.get(f"CDELT{number}", 0.0)))
        if step > 0 and str(header.get(f"CUNIT{number}", "deg")).strip().lower().startswith("deg"):
            found[axis] = round(3600 * step, 9)
    return found
