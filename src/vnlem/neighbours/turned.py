"""Turned copies of the surroundings of a tile: sheets that widen the search to all rotations (group "so2").

Three shears turn a square about the tile's centre. Each shifts rows by a windowed sinc of few taps. Unlike
interpolation it keeps white noise nearly white, and it reads no further than its taps.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cpu.sheets import Images, Tall
from vnlem.kernels.cpu.turn import Turn, TurnPlace, turn_into
from vnlem.neighbours.sheets import TILE, Reach, Sheet, Whole
from vnlem.pipeline.tiles import Tile

# Angles of the turned copies that "so2" also searches; the symmetries of the square do the rest.
TURNS = (15.0, 30.0, 45.0, 60.0, 75.0)
TAPS = 12
_KAISER = 2.5


def shift_taps(shifts: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Whole parts of shifts, and the taps of a windowed sinc for the remainders.

    >>> bases, taps = shift_taps(np.array([2.0, 0.5]))
    >>> bases, taps[0].round(3).max(), int(taps[0].argmax())
    (array([2, 0]), np.float32(1.0), 6)
    """
    bases = np.floor(shifts).astype(np.int64)
    at = (shifts - bases)[:, None] + np.arange(-(TAPS // 2), TAPS // 2)
    window = np.i0(_KAISER * np.sqrt(np.maximum(1 - (at / (TAPS / 2)) ** 2, 0))) / np.i0(_KAISER)
    taps = np.sinc(at) * window
    return bases, (taps / taps.sum(axis=1, keepdims=True)).astype(np.float32)


@lru_cache(maxsize=64)
def make_turn(side: int, degrees: float) -> Turn:
    """The turn of a square by an angle between 0 and 90 degrees, counter-clockwise on the screen."""
    quarter = degrees > 45
    angle = np.deg2rad(degrees - 90 * quarter)
    rows = np.arange(side) - (side - 1) / 2
    shears = [shift_taps(slope * rows) for slope in (np.tan(angle / 2), -np.sin(angle))]
    bases, taps = (np.stack(parts) for parts in zip(*shears, strict=True))
    whole = np.deg2rad(degrees)
    return Turn(bool(quarter), bases, taps, float(np.cos(whole)), float(np.sin(whole)))


def square_side(tile: int, radius: int, patch_size: int) -> int:
    """Side of the square around a tile that holds all its reference patches read, at any angle.

    A turned point keeps its distance from the centre; between shears it may be eight percent farther out.
    """
    farthest = 0.7072 * tile + 1.4143 * (radius + patch_size)
    return 2 * (int(np.ceil(1.09 * farthest)) + TAPS)


def reach(radius: int, patch_size: int) -> int:
    """How far from a reference patch the image is read to make its copies."""
    return int(np.ceil(1.4143 * (radius + patch_size))) + 2 * TAPS


def sheets(reach: Reach, tile: Tile, least_variance: float) -> list[Sheet]:
    """A turned copy for each angle."""
    side = square_side(TILE, reach.radius, reach.patch_size)
    return [TurnedSheet(reach, tile, side, degrees, least_variance) for degrees in TURNS]


class TurnedSheet:
    """The surroundings of a tile, turned about the tile's centre."""

    put_back, same_noise = False, True

    def __init__(self, reach: Reach, tile: Tile, side: int, degrees: float, least_variance: float) -> None:
        self._reach, self._turn = reach, make_turn(side, degrees)
        self._floor = least_variance
        self.height = self.width = side
        full = 2 * reach.radius + 1
        self.candidates = (full, full)
        # Tiles are full squares even at the end of the image: their centres are those of the grid.
        self._top = tile.top + (TILE - side) // 2
        self._left = tile.left + (TILE - side) // 2

    def corners(self, references: Whole) -> Whole:
        """Windows around the turned places of the references."""
        half, centre = (self._reach.patch_size - 1) / 2, (self.height - 1) / 2
        v = references[:, 0] + half - self._top - centre
        h = references[:, 1] + half - self._left - centre
        c, s = self._turn.cosine, self._turn.sine
        rows = np.rint(c * v - s * h + centre - half)
        columns = np.rint(s * v + c * h + centre - half)
        return np.stack([rows, columns], axis=1).astype(np.int64) - self._reach.radius

    def fill(self, images: Images, weights: NDArray[np.float32], tall: Tall, first: int) -> None:
        """Turn the square."""
        height, width = self._reach.region.shape
        read = self._reach.region.read
        place = TurnPlace(
            top=self._top,
            left=self._left,
            height=height,
            width=width,
            origin_y=read.top,
            origin_x=read.left,
            first=first,
        )
        turn_into(images, weights, self._floor, self._turn, place, tall)
