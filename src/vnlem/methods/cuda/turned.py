"""Turned copies of what lies around tiles on a device: where members of VNLR's groups may be found (so2).

As on the CPU (`vnlem.neighbours.sheets.TurnedSheet`) every tile of reference patches has its own copies. The
images' tall arrays hold the image first and below it the copies of some tiles at a time, side by side.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cuda.engine import Engine
from vnlem.kernels.cuda.match import References
from vnlem.kernels.cuda.patches import patch_energy, patch_maps
from vnlem.kernels.cuda.ridge import Images
from vnlem.kernels.cuda.turn import Place, Turns, turn_into
from vnlem.neighbours.groups import Matching
from vnlem.neighbours.sheets import TILE
from vnlem.neighbours.turned import TURNS, make_turn, square_side

Array = Any  # of the engine's library

# Copies of so many pixels are held at a time.
BATCH_PIXELS = 2**22


class Planes(NamedTuple):
    """The images of a pass, (channels, height, width)."""

    noisy: Array
    working: Array
    pilot: Array
    variance: Array
    varies: bool  # whether the variance is not the same everywhere


class Batch(NamedTuple):
    """Reference patches that are worked on together."""

    references: References  # in the arrays of the region
    centres: Array | None  # see `match`
    place: Place | None  # the copies of their tiles


class Lines(NamedTuple):
    """Rows and columns of the reference patches, in the whole image."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]


def whole_batch(engine: Engine, lines: Lines, matching: Matching) -> Batch:
    """All reference patches, without copies."""
    read = matching.reach.region.read
    rows, columns = (
        engine.xp.asarray((positions - first).astype(np.int32))
        for positions, first in zip(lines, (read.top, read.left), strict=True)
    )
    return Batch(References(rows, columns), None, None)


class TurnedTiles:
    """The tall arrays of a pass, and the batches of tiles whose copies they hold in turn."""

    def __init__(self, engine: Engine, planes: Planes, matching: Matching, lines: Lines) -> None:
        xp = engine.xp
        self._engine, self._planes, self._matching, self._lines = engine, planes, matching, lines
        reach = matching.reach
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

    def batches(self) -> Iterator[Batch]:
        """The batches, in reading order."""
        lines = [
            [positions[np.isin(positions // TILE, some)] for some in _chunks(np.unique(positions // TILE), n)]
            for positions, n in zip(self._lines, self._together, strict=True)
        ]
        for rows in lines[0]:
            for columns in lines[1]:
                yield self._batch(rows, columns)

    def _batch(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Batch:
        xp = self._engine.xp
        reach, side, n_turns = self._matching.reach, self._side, len(TURNS)
        # Tiles are full squares, also where the image ends in them.
        tops, left_edges = (np.unique(p // TILE) * TILE + (TILE - side) // 2 for p in (rows, columns))
        number = np.arange(len(tops) * len(left_edges) * n_turns)
        tile = number // n_turns
        squares = np.stack(
            [
                tops[tile // len(left_edges)],
                left_edges[tile % len(left_edges)],
                self._height + number // self._per_row * side,
                number % self._per_row * side,
            ],
            axis=1,
        )
        of_row, of_column = (np.searchsorted(np.unique(p // TILE), p // TILE) for p in (rows, columns))
        own = (of_row[:, None] * len(left_edges) + of_column)[..., None] * n_turns + np.arange(n_turns)
        half, centre = (reach.patch_size - 1) / 2, (side - 1) / 2
        v = (rows + half - tops[of_row] - centre)[:, None, None]
        h = (columns + half - left_edges[of_column] - centre)[None, :, None]
        turns = [make_turn(side, angle) for angle in TURNS]
        c, s = (np.array([getattr(turn, name) for turn in turns]) for name in ("cosine", "sine"))
        centres = np.stack(
            [
                np.rint(c * v - s * h + centre - half) + squares[own, 2],
                np.rint(s * v + c * h + centre - half) + squares[own, 3],
            ],
            axis=-1,
        )
        read = reach.region.read
        place = Place(
            xp.asarray(squares.astype(np.int32)), self._turns, reach.region.shape, (read.top, read.left)
        )
        lines = Lines(rows, columns)
        return Batch(
            whole_batch(self._engine, lines, self._matching).references,
            xp.asarray(centres.reshape(-1, n_turns, 2).astype(np.int32)),
            place,
        )

    def fill(self, batch: Batch) -> None:
        """Turn what lies around the batch's tiles."""
        engine, planes, place = self._engine, self._planes, batch.place
        assert place is not None
        for c in range(self._shape[0]):
            noisy, working, pilot = planes.noisy[c], planes.working[c], planes.pilot[c]
            turn_into(engine, pilot, place, self.pilot[c], outside=self._outside)
            turn_into(engine, working, place, self.working[c])
            turn_into(engine, noisy, place, self._change[c], less=working, squared=True)
            if planes.varies:
                floor = self._matching.least_variance
                turn_into(engine, planes.variance[c], place, self._variance[c], floor=floor)

    def compared(self, channels: list[int], factors: Array) -> tuple[Array, Array]:
        """What patches are compared on, and the patches' squared norms, for the batch that is filled in."""
        image = self.pilot if self._shape[0] == 1 else self.pilot[channels] * factors
        first = 0 if self._energy is None else self._height
        size = self._matching.reach.patch_size
        self._energy = patch_energy(self._engine, image, size, self._outside, into=self._energy, first=first)
        return image, self._energy

    def images(self) -> Images:
        """What groups are combined from, for the batch that is filled in."""
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


def _chunks(values: NDArray[np.int64], count: int) -> list[NDArray[np.int64]]:
    return [values[i : i + count] for i in range(0, len(values), count)]
