"""Turned copies of the surroundings of tiles on a device, in which VNLR's group "so2" also finds members.

As on the CPU (`vnlem.neighbours.sheets`) copies are made for every tile of reference patches. The images'
tall arrays hold the image and below it the copies of some tiles at a time, side by side in squares of one
size.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cuda.engine import Engine
from vnlem.kernels.cuda.match import References
from vnlem.kernels.cuda.patches import patch_energy, patch_maps
from vnlem.kernels.cuda.ridge import Images
from vnlem.kernels.cuda.turn import TurnPlace, Turns, turn_into
from vnlem.neighbours.groups import Matching
from vnlem.neighbours.sheets import TILE
from vnlem.neighbours.turned import TURNS, make_turn, square_side

Array = Any  # of the engine's library
Whole = NDArray[np.int64]

# Pixels of the copies that are held at a time.
BATCH_PIXELS = 2**22


class DevicePlanes(NamedTuple):
    """The images of a pass, (channels, height, width)."""

    noisy: Array
    working: Array
    pilot: Array
    variance: Array
    varies: bool  # whether the variance varies over the image
    maps: dict[int, tuple[Array, Array]]  # what `patch_maps` gave last, by patch size


class Batch(NamedTuple):
    """Reference patches that are processed together."""

    references: References  # in the arrays of the region
    centres: Array | None  # see `match`
    copies: TurnPlace | None


class Lines(NamedTuple):
    """Rows and columns of the reference patches, in the whole image."""

    rows: Whole
    columns: Whole


def whole_batch(engine: Engine, lines: Lines, matching: Matching) -> Batch:
    """All reference patches, without copies."""
    read = matching.reach.region.read
    rows, columns = (
        engine.constant((positions - first).astype(np.int32))
        for positions, first in zip(lines, (read.top, read.left), strict=True)
    )
    return Batch(References(rows, columns), None, None)


class CopiedTiles:
    """The tall arrays of a pass, and the batches of tiles whose copies they hold in turn."""

    def __init__(self, engine: Engine, planes: DevicePlanes, matching: Matching, lines: Lines) -> None:
        xp = engine.xp
        self._engine, self._planes, self._matching, self._lines = engine, planes, matching, lines
        reach = matching.copied_reach()
        self._side = square_side(TILE, reach.radius, reach.patch_size)
        self._turns = Turns.of(engine, [make_turn(self._side, angle) for angle in TURNS])
        channels, height, width = planes.noisy.shape
        self._height = height
        stride = max(width, self._side)
        self._per_row = stride // self._side
        # Tiles of a batch: rows and columns of tiles.
        tiles = [len(np.unique(positions // TILE)) for positions in lines]
        most = max(1, BATCH_PIXELS // (len(TURNS) * self._side**2))
        across = min(tiles[1], most)
        self._together = (min(max(1, most // across), tiles[0]), across)
        squares = len(TURNS) * self._together[0] * self._together[1]
        rows = height + -(-squares // self._per_row) * self._side
        self._shape = (channels, rows, stride)
        self.pilot, self.working, self._change, self._variance = (
            xp.zeros(self._shape, np.float32) for _ in range(4)
        )
        self._outside = xp.zeros(self._shape[1:], np.uint8)
        own = (slice(None), slice(height), slice(width))
        self.pilot[own], self.working[own] = planes.pilot, planes.working
        self._change[own] = (planes.noisy - planes.working) ** 2
        if planes.varies:
            self._variance[own] = planes.variance
        else:
            self._variance[:] = planes.variance[:, :1, :1]
        self._maps: tuple[Array, Array] | None = None
        self._energy: Array | None = None

    def _places(self, n_tiles: int) -> Whole:
        """Row and column (tiles, copies, 2) in the tall arrays of the copies of a batch's tiles."""
        number = np.arange(n_tiles * len(TURNS)).reshape(n_tiles, len(TURNS))
        rows = self._height + number // self._per_row * self._side
        return np.stack([rows, number % self._per_row * self._side], axis=-1)

    def batches(self, searched: bool) -> Iterator[Batch]:
        """The batches, in reading order; searched: whether the copies will be searched for members."""
        lines = [
            [positions[np.isin(positions // TILE, some)] for some in _chunks(np.unique(positions // TILE), n)]
            for positions, n in zip(self._lines, self._together, strict=True)
        ]
        for rows in lines[0]:
            for columns in lines[1]:
                yield self._batch(Lines(rows, columns), searched)

    def _batch(self, lines: Lines, searched: bool) -> Batch:
        xp = self._engine.xp
        # Tiles are full squares even at the end of the image.
        tops, lefts = (np.unique(positions // TILE) * TILE for positions in lines)
        corners = np.stack(np.meshgrid(tops, lefts, indexing="ij"), axis=-1).reshape(-1, 2)
        places = self._places(len(corners))
        region = self._matching.reach.region
        whole = (region.shape, (region.read.top, region.read.left))
        first = np.repeat((corners + (TILE - self._side) // 2)[:, None], len(TURNS), axis=1)
        squares = np.concatenate([first, places], axis=2).reshape(-1, 4)
        copies = TurnPlace(xp.asarray(squares.astype(np.int32)), self._turns, *whole)
        centres = self._centres(lines, places) if searched else None
        return Batch(whole_batch(self._engine, lines, self._matching).references, centres, copies)

    def _centres(self, lines: Lines, places: Whole) -> Array:
        """Where the references of a batch lie in the copies of their tiles: int32 (references, copies, 2)."""
        put = self._engine.xp.asarray
        of_row, of_column = (np.searchsorted(np.unique(p // TILE), p // TILE) for p in lines)
        tile = of_row[:, None] * len(np.unique(lines.columns // TILE)) + of_column
        half = (self._matching.reach.patch_size - 1) / 2
        # From the middle of the tile: a copy turns about it.
        v, h = (put(p + half - p // TILE * TILE - (TILE - 1) / 2) for p in lines)
        v, h = v[:, None, None], h[None, :, None]
        turns = [make_turn(self._side, angle) for angle in TURNS]
        cosine = put(np.array([turn.cosine for turn in turns]))
        sine = put(np.array([turn.sine for turn in turns]))
        middle = (self._side - 1) / 2
        corners = put(places)[put(tile)]
        centres = self._engine.xp.empty(corners.shape, np.int32)
        centres[..., 0] = (cosine * v - sine * h + middle - half).round() + corners[..., 0]
        centres[..., 1] = (sine * v + cosine * h + middle - half).round() + corners[..., 1]
        return centres.reshape(-1, len(TURNS), 2)

    def fill(self, batch: Batch) -> None:
        """Turn the surroundings of the batch's tiles."""
        engine, planes, turned = self._engine, self._planes, batch.copies
        assert turned is not None
        for c in range(self._shape[0]):
            noisy, working, pilot = planes.noisy[c], planes.working[c], planes.pilot[c]
            turn_into(engine, pilot, turned, self.pilot[c], outside=self._outside)
            turn_into(engine, working, turned, self.working[c])
            turn_into(engine, noisy, turned, self._change[c], less=working, squared=True)
            if planes.varies:
                floor = self._matching.least_variance
                turn_into(engine, planes.variance[c], turned, self._variance[c], floor=floor)

    def compared(self, channels: list[int], factors: Array) -> tuple[Array, Array]:
        """The image in which patches are compared, and their squared norms, for the current batch."""
        image = self.pilot if self._shape[0] == 1 else self.pilot[channels] * factors
        first = 0 if self._energy is None else self._height
        size = self._matching.reach.patch_size
        self._energy = patch_energy(self._engine, image, size, self._outside, into=self._energy, first=first)
        return image, self._energy

    def images(self) -> Images:
        """The images from which groups are combined, for the current batch."""
        size = self._matching.reach.patch_size
        again = self._maps is not None
        self._maps = patch_maps(
            self._engine,
            None,
            self._change,
            self._variance,
            size,
            into=self._maps,
            first=self._height if again else 0,
            noise_too=self._planes.varies or not again,
        )
        return Images(self.pilot, self.working, *self._maps)


def _chunks(values: Whole, count: int) -> list[Whole]:
    return [values[i : i + count] for i in range(0, len(values), count)]
