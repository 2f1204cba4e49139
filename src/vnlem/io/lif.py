"""LIF, the format of Leica microscopes: one file with many images."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.io.picture import Calibration, Metadata
from vnlem.io.series import SAMPLES, Series, unique_letters

_KNOWN = {"T": "T", "C": "C", "Z": "Z", "λ": "C", "Λ": "C"}  # a spectrum is a set of channels
_MICROMETERS = 1e6  # in a metre


@contextmanager
def open_file(path: Path, place: Path) -> Iterator[list[Series]]:
    """All images of a LIF file."""
    from liffile import LifFile

    with LifFile(path) as opened:
        size = path.stat().st_size
        images = [image for image in opened.images if len(image.dims) > 1 and not image.is_flim]
        yield [_series(image, number, size) for number, image in enumerate(images, start=1)]


def _series(image: Any, number: int, file_size: int) -> Series:
    dims, shape = image.dims, tuple(int(size) for size in image.shape)
    colour = dims[-1] == SAMPLES
    counted = len(dims) - (3 if colour else 2)
    axes = unique_letters(_KNOWN.get(name, "") for name in dims[:counted]) + "YX" + SAMPLES * colour

    def read(plane: int, rows: slice, columns: slice) -> NDArray[Any]:
        block = image.memory_block
        if block.offset + block.size > file_size or image.nbytes > block.size:
            raise ValueError("it is truncated: its pixels end behind the end of the file")
        index = np.unravel_index(plane, shape[:counted])
        frame = image.frame(**{name: int(k) for name, k in zip(dims[:counted], index, strict=True)})
        pixels: NDArray[Any] = frame.reshape(shape[counted:])
        return pixels[rows, columns]

    return Series(
        axes,
        shape,
        np.dtype(image.dtype).newbyteorder("="),
        read,
        key=str(number),
        name=str(getattr(image, "path", image.name)),
        metadata=Metadata("lif", axes=axes, calibration=_calibration(image, axes)),
    )


def _calibration(image: Any, axes: str) -> Calibration:
    """Steps along the axes; the rows of a vertical scan are slices, and so is their length."""
    sizes: dict[str, float] = {}
    units: dict[str, str] = {}
    for letter, name in zip(axes, image.dims, strict=True):
        places = image.coords.get(name)
        if letter not in "TZYX" or places is None or len(places) < 2:
            continue
        step = abs(float(places[-1] - places[0])) / (len(places) - 1)
        if step > 0 and np.isfinite(step):
            sizes[letter] = step if letter == "T" else step * _MICROMETERS
            units[letter] = "second" if letter == "T" else "micrometer"
    names = _channels(image) if "C" in image.dims else ()
    return Calibration(sizes, units, names if len(names) == image.sizes.get("C") else ())


def _channels(image: Any) -> tuple[str, ...]:
    """The colour table of each channel: the only name that the description gives it."""
    found = image.xml_element.iter("ChannelDescription")
    return tuple(channel.get("LUTName") or f"channel {k}" for k, channel in enumerate(found, start=1))
