"""The orientation of EXIF and TIFF: which way up to show the stored pixels.

A file written in its own format keeps pixels and orientation as they were. A file that changes format gets
upright pixels, because many formats and readers know no orientation.
"""

import struct
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vnlem.io.picture import Picture, Resolution

_ORIENTATION_TAG = 0x0112


def upright(picture: Picture) -> Picture:
    """The picture with its orientation applied to the pixels, and marked as upright.

    >>> from vnlem.io.picture import Metadata
    >>> turned = Picture(np.array([[1, 2, 3], [4, 5, 6]]), metadata=Metadata(orientation=6))
    >>> upright(turned).pixels
    array([[4, 1],
           [5, 2],
           [6, 3]])
    """
    metadata = picture.metadata
    if metadata.orientation == 1:
        return picture
    rows = -3 if picture.channel_axis == -1 else -2
    alpha = picture.alpha
    resolution = metadata.resolution
    if resolution is not None and metadata.orientation >= 5:
        resolution = Resolution(resolution.y, resolution.x, resolution.unit)
    return replace(
        picture,
        pixels=_turned(picture.pixels, metadata.orientation, rows),
        alpha=None if alpha is None else _turned(alpha, metadata.orientation, -2),
        metadata=replace(
            metadata,
            orientation=1,
            resolution=resolution,
            exif=None if metadata.exif is None else mark_upright(metadata.exif),
        ),
    )


def _turned(pixels: NDArray[Any], orientation: int, rows: int) -> NDArray[Any]:
    """Apply an orientation (2..8); `rows` is the axis of the height, the width follows it."""
    columns = rows + 1
    if orientation >= 5:
        pixels = np.swapaxes(pixels, rows, columns)
    # After their transposition 5..8 need a mirroring too, as 2..4 do.
    flips: dict[int, tuple[int, ...]] = {
        2: (columns,),
        3: (rows, columns),
        4: (rows,),
        6: (columns,),
        7: (rows, columns),
        8: (rows,),
    }
    return np.ascontiguousarray(np.flip(pixels, flips.get(orientation, ())))


def orientation_in(exif: bytes | None) -> int:
    """The orientation in an EXIF block, 1 if it has none or is damaged.

    >>> orientation_in(None)
    1
    """
    place = _find(exif) if exif else None
    if place is None or exif is None:
        return 1
    value = int(struct.unpack_from(place[1], exif, place[0])[0])
    return value if 1 <= value <= 8 else 1


def mark_upright(exif: bytes) -> bytes:
    """The EXIF block with its orientation set to 1 and every other byte as it was."""
    place = _find(exif)
    if place is None:
        return exif
    block = bytearray(exif)
    struct.pack_into(place[1], block, place[0], 1)
    return bytes(block)


def _find(exif: bytes) -> tuple[int, str] | None:
    """Where the orientation's 16-bit value lies in the EXIF block, and how it is packed."""
    order = {b"II": "<", b"MM": ">"}.get(exif[:2])
    if order is None:
        return None
    try:
        (first_ifd,) = struct.unpack_from(order + "I", exif, 4)
        (n_entries,) = struct.unpack_from(order + "H", exif, first_ifd)
        for entry in range(first_ifd + 2, first_ifd + 2 + 12 * n_entries, 12):
            if struct.unpack_from(order + "H", exif, entry)[0] == _ORIENTATION_TAG:
                struct.unpack_from(order + "H", exif, entry + 8)
                return entry + 8, order + "H"
    except struct.error:
        pass
    return None
