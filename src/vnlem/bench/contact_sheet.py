"""One picture that shows many: labelled tiles, each with its error image below it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_NARROWEST = 200  # pixels a column takes at least: room for the note above small images
_COLUMNS = 5
_GAP = 8
_SEAM = 2  # between an image and its error
_LINE = 18  # height of a line of text
_PAPER, _INK = 255, 0


class Entry(NamedTuple):
    """A tile of the sheet."""

    label: str
    note: str
    image: NDArray[Any]  # 0..255
    error: NDArray[Any] | None = None  # as drawn by error_image
    large: bool = False


def to_bytes(image: NDArray[Any]) -> NDArray[np.uint8]:
    """Grey values rounded and clipped to 0..255.

    >>> to_bytes(np.array([-3.0, 99.6, 300.0]))
    array([  0, 100, 255], dtype=uint8)
    """
    grey: NDArray[np.uint8] = np.clip(np.rint(image), 0, 255).astype(np.uint8)
    return grey


def error_image(error: NDArray[Any], limit: float) -> NDArray[np.uint8]:
    """An error on a grey scale: -limit is black, 0 mid-grey, +limit white.

    >>> error_image(np.array([-9.0, 0.0, 3.0]), limit=3.0)
    array([  0, 128, 255], dtype=uint8)
    """
    return to_bytes(127.5 + 127.5 * error / limit)


def contact_sheet(title: str, entries: Sequence[Entry]) -> NDArray[np.uint8]:
    """All entries on one grey picture, in reading order: first the large ones, at twice their size.

    >>> grey = np.full((40, 60), 128)
    >>> contact_sheet("two", [Entry("a", "", grey), Entry("b", "", grey, grey)]).shape
    (152, 424)
    """
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(size=13)
    placed: list[tuple[int, int, Entry, int]] = []
    top, right = _LINE + _GAP, 0
    for size, columns in ((2, _COLUMNS // 2), (1, _COLUMNS)):
        group = [entry for entry in entries if entry.large == (size == 2)]
        if not group:
            continue
        height = size * max(entry.image.shape[0] for entry in group)
        width = max(_NARROWEST, *(size * entry.image.shape[1] for entry in group))
        with_errors = any(entry.error is not None for entry in group)
        tile_height = 2 * _LINE + height + (_SEAM + height if with_errors else 0)
        columns = min(columns, len(group))
        for k, entry in enumerate(group):
            left = _GAP + (k % columns) * (width + _GAP)
            placed.append((left, top + (k // columns) * (tile_height + _GAP), entry, size))
        top += -(-len(group) // columns) * (tile_height + _GAP)
        right = max(right, columns * (width + _GAP) + _GAP)
    sheet = Image.new("L", (right, top), _PAPER)
    draw = ImageDraw.Draw(sheet)
    draw.text((_GAP, 3), title, fill=_INK, font=font)
    for left, upper, entry, size in placed:
        for line, text in enumerate((entry.label, entry.note)):
            draw.text((left, upper + line * _LINE), text, fill=_INK, font=font)
        below = upper + 2 * _LINE
        for pixels in (entry.image, entry.error):
            if pixels is not None:
                enlarged = to_bytes(pixels).repeat(size, axis=0).repeat(size, axis=1)
                sheet.paste(Image.fromarray(enlarged), (left, below))
                below += enlarged.shape[0] + _SEAM
    return np.asarray(sheet)
