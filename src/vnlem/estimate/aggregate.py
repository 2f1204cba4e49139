"""Aggregation of estimated patches: sums per tile, added in the order of the tiles, then the weighted mean.

Floating point sums depend on their order, so every tile has its own sums, which are added to the image's in a
fixed order (see `vnlem.pipeline.schedule`). The result is then the same for any number of workers, and for
any part of the image that is solved separately.
"""

from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vnlem.kernels.cpu.declare import packed
from vnlem.kernels.cpu.sheets import Images, Sums, TilePlace, Totals, settle
from vnlem.neighbours.sheets import Layout
from vnlem.pipeline.schedule import Span, Spans, Step
from vnlem.pipeline.tiles import Tile


class _PassOf(NamedTuple):
    """The pixels that each tile of a pass completes."""

    totals: Totals
    taps: NDArray[np.float32]  # weights of a pixel in its patch, by row and column
    rows: list[Span]  # of the rectangle that each row of tiles completes
    columns: list[Span]
    needed: Tile  # in the arrays


class Aggregate:
    """The image's sums, for one pass after another. Tiles may come from any thread.

    When the last tile that uses a pixel is done, its change is applied and its sums are cleared. A pixel's
    weight has parts above it and to its left, so the weights of one pass are kept until the next gets there.
    """

    def __init__(self, images: Images, read: Tile) -> None:
        self._images, self._read = images, read
        shape = images.noisy.shape
        self._changes = np.zeros((*shape, 2), np.float32)
        self._weights = np.zeros((2, *shape), np.float32)
        self._passes: list[_PassOf] = []
        self._waiting: dict[Step, tuple[Sums, TilePlace]] = {}
        # New memory is slow to write.
        self._unused: dict[tuple[int, ...], list[Sums]] = {}

    def add_pass(self, spans: Spans, taps: NDArray[np.float32], needed: Tile) -> None:
        """Add a pass; `needed`: the pixels of the whole image that it must change."""
        own = len(self._passes) % 2
        read = self._read
        self._passes.append(
            _PassOf(
                packed(Totals(self._changes, self._weights[own], self._weights[1 - own])),
                taps,
                _done_with(spans.rows, read.top, self._changes.shape[1]),
                _done_with(spans.columns, read.left, self._changes.shape[2]),
                Tile(
                    needed.top - read.top,
                    needed.bottom - read.top,
                    needed.left - read.left,
                    needed.right - read.left,
                ),
            )
        )

    def blank(self, layout: Layout) -> Sums:
        """Zero sums for a tile: reused from a settled tile of the same shape, if there is one."""
        unused = self._unused.get((layout.own_rows, layout.stride))
        with suppress(IndexError):
            if unused is not None:
                return unused.pop()
        return layout.sums(len(self._images.noisy))

    def put(self, step: Step, tile: Sums, place: TilePlace) -> None:
        """Store the sums of a tile, for a place in the arrays."""
        self._waiting[step] = tile, place

    def settle(self, step: Step) -> None:
        """Add the sums of a tile, and update the pixels that no other tile will add to."""
        tile, place = self._waiting.pop(step)
        one = self._passes[step.number]
        rectangle = Tile(*one.rows[step.row], *one.columns[step.column])
        missing = settle(tile, place, one.totals, one.taps, rectangle, one.needed, self._images)
        self._unused.setdefault(tile.weights.shape[1:], []).append(tile)
        if missing:
            raise RuntimeError(f"no patch covers {missing} pixels; please report this fault of vnlem")


def _done_with(spans: Sequence[Span], first: int, count: int) -> list[Span]:
    """From where each span begins to where the next one does, in an array that begins at `first`.

    >>> _done_with([(-9, 30), (-3, 40), (14, 50)], 5, 40)
    [(0, 0), (0, 9), (9, 40)]
    """
    begins = [0, *(min(max(begin - first, 0), count) for begin, _ in spans[1:]), count]
    return list(pairwise(begins))
