"""Copies of a square of an image, turned by any angle.

Three shears turn a square; each shifts rows by a few taps of a windowed sinc. White noise stays nearly white,
and a pixel of the copy depends only on some pixels around its source. Images are mirrored at their borders.
"""

from typing import NamedTuple

from vnlem.kernels.cpu.declare import Float1, Float3, Long2, kernel
from vnlem.kernels.cpu.sheets import Images, Tall


class Turn(NamedTuple):
    """A turn as its shears. The first and the last are the same; the second moves columns."""

    quarter: bool  # turned by 90 degrees first
    bases: Long2  # (2, side): whole pixels that each row is shifted by, of the first and second shear
    taps: Float3  # (2, side, taps): the rest of the shift
    cosine: float
    sine: float


class TurnPlace(NamedTuple):
    """Where the square lies."""

    top: int  # of the square in the whole image; may lie outside
    left: int
    height: int  # of the whole image
    width: int
    origin_y: int  # of the images that are given, in the whole image
    origin_x: int
    first: int  # row of the tall arrays that the turned square begins at


@kernel
def turn_into(
    images: Images, weights: Float1, floor: float, turn: Turn, place: TurnPlace, tall: Tall
) -> None:
    """Write a turned square of all images into the tall arrays. floor: least variance."""
