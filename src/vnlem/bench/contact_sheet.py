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


def to_bytes(image: NDArray[Any]) -> NDArray[np.uint8]:
    """Grey values rounded and clipped to 0..255.

    Examples
    --------
    >>> to_bytes(np.array([-3.0, 99.6, 300.0]))
    array([  0, 100, 255], dtype=uint8)
    """
    grey: NDArray[np.uint8] = np.clip(np.rint(image), 0, 255).astype(np.uint8)
    return grey


def error_image(error: NDArray[Any], limit: float) -> NDArray[np.uint8]:
    """An error on a grey scale: -limit is black, 0 mid-grey, +limit white.

    Examples
    --------
    >>> error_image(np.array([-9.0, 0.0, 3.0]), limit=3.0)
    array([  0, 128, 255], dtype=uint8)
    """
    return to_bytes(127.5 + 127.5 * error / limit)


def contact_sheet(title: str, entries: Sequence[Entry]) -> NDArray[np.uint8]:
    """All entries on one grey picture, in reading order.

    Examples
    --------
    >>> grey = np.full((40, 60), 128)
    >>> contact_sheet("two", [Entry("a", "", grey), Entry("b", "", grey, grey)]).shape
    (152, 424)
    """
    from PIL import Image, ImageDraw, ImageFont

    height = max(entry.image.shape[0] for entry in entries)
    width = max(_NARROWEST, *(entry.image.shape[1] for entry in entries))
    columns = min(_COLUMNS, len(entries))
    rows = -(-len(entries) // columns)
    with_errors = any(entry.error is not None for entry in entries)
    tile_height = 2 * _LINE + height + (_SEAM + height if with_errors else 0)
    size = (columns * (width + _GAP) + _GAP, _LINE + _GAP + rows * (tile_height + _GAP))
    sheet = Image.new("L", size, _PAPER)
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(size=13)
    draw.text((_GAP, 3), title, fill=_INK, font=font)
    for k, entry in enumerate(entries):
        left = _GAP + (k % columns) * (width + _GAP)
        top = _LINE + _GAP + (k // columns) * (tile_height + _GAP)
        for line, text in enumerate((entry.label, entry.note)):
            draw.text((left, top + line * _LINE), text, fill=_INK, font=font)
        sheet.paste(Image.fromarray(to_bytes(entry.image)), (left, top + 2 * _LINE))
        if entry.error is not None:
            place = (left, top + 2 * _LINE + height + _SEAM)
            sheet.paste(Image.fromarray(to_bytes(entry.error)), place)
    return np.asarray(sheet)
