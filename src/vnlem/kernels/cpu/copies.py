"""Copies of a square of an image: turned by any angle, or made smaller or larger.

Three shears turn a square, each a shift of rows; a change of size scales columns, then rows. All use a few
taps of a windowed sinc: white noise stays nearly white, nothing aliases, and a pixel of the copy depends on
some pixels around its source and on nothing else. Images are mirrored at their borders.
"""

from typing import NamedTuple

from vnlem.kernels.cpu.declare import Float1, Float2, Float3, Long1, Long2, kernel
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


class Stretch(NamedTuple):
    """A change of size about the centre of a tile, the same along both axes."""

    factor: float  # target pixels per source pixel
    bases: Long1  # (side): first source pixel of every target pixel, from the centre pixel of the tile
    taps: Float2  # (side, taps)
    noise: float  # factor on the variance of white noise


class StretchPlace(NamedTuple):
    """Where the square lies."""

    centre_y: int  # pixel of the whole image that `bases` count from
    centre_x: int
    height: int  # of the whole image
    width: int
    origin_y: int  # of the images that are given, in the whole image
    origin_x: int
    first: int  # row of the tall arrays that the stretched square begins at


@kernel
def stretch_into(
    images: Images, weights: Float1, floor: float, stretch: Stretch, place: StretchPlace, tall: Tall
) -> None:
    """Write a stretched square of all images into the tall arrays. floor: least variance."""
